/* stream_blocks_test.c: the graphs of stream.tex and scores.tex, or of pairwise.tex, as a GPU's blocks compute them, by the tile
 * interpreter, which finds races, against the oracle.
 * usage: stream_blocks_test STREAM.TEX SCORES.TEX [GRAPH], or --pairwise PAIRWISE.TEX [GRAPH], or --random RANDOM.TEX SIZES, a file
 * of lines as "graph T=70 S=90", for a GPU whose warps multiply matrices (random_streams.py) */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "frontend/frontend.h"
#include "ir/eval.h"
#include "passes/pass.h"
#include "tests/fuse/arena_setup.h"
#include "tests/passes/interp_program.h"

typedef struct {
	const char *graph, *sizes; /* "T=70 S=90": dims and scalar parameters */
	unsigned kernels;          /* how many there are; 0: several */
	bool odd;                  /* the last row of k is no number, of v infinite; of u all behind a row's own element is no number */
	bool roles;                /* of a GPU with roles */
	unsigned threads;          /* of the kernel that runs; 0: any */
} Row;

/* Sizes are below, at and above those of tiles. */
static const Row rows[] = {
	{"attention", "H=2 T=70 S=90 D=20 E=29", 1, false, false, 0},
	{"attention", "H=1 T=64 S=64 D=16 E=64", 1, false, false, 0},
	{"attention", "H=1 T=65 S=65 D=17 E=65", 1, false, false, 0},
	{"attention", "H=3 T=1 S=131 D=7 E=5", 1, false, false, 0},
	{"attention", "H=2 T=5 S=1 D=1 E=1", 1, false, false, 0},
	{"attention", "H=2 T=0 S=5 D=4 E=4", 1, false, false, 0},
	{"attention", "H=1 T=9 S=5 D=4 E=0", 1, false, false, 0},
	{"weights_renamed", "H=1 T=50 S=70 D=9 E=11", 1, false, false, 0},
	{"causal", "H=2 T=130 S=130 D=9 E=17", 1, false, false, 0},
	{"causal", "H=1 T=33 S=140 D=4 E=4", 1, false, false, 0},
	{"causal", "H=1 T=140 S=33 D=4 E=4", 1, false, false, 0},
	{"causal", "H=1 T=40 S=40 D=3 E=5", 1, true, false, 0},
	{"window", "B=1 H=4 G=2 T=70 S=200 D=8 W=90", 1, false, false, 0},
	{"window", "B=1 H=2 G=1 T=70 S=20 D=3 W=5", 1, true, false, 0},
	{"lengths", "B=3 H=2 T=40 S=90 D=6", 1, false, false, 0},
	{"lengths", "B=3 H=1 T=70 S=70 D=6", 1, true, false, 0},
	{"masked", "T=70 S=100 D=6", 1, false, false, 0},
	{"masked", "T=70 S=70 D=6", 1, true, false, 0},
	{"capped", "T=45 S=60 D=6 E=4", 1, false, false, 0},
	{"capped", "T=45 S=60 D=6 E=0", 1, false, false, 0},
	{"capped", "T=45 S=60 D=0 E=4", 1, false, false, 0},
	{"ends", "H=1 T=70 S=70 D=8 E=40", 1, false, false, 128},
	{"ends", "H=1 T=70 S=70 D=8 E=40", 1, true, false, 128},
	{"into", "T=70 S=70 D=72", 2, false, false, 0},
	{"prefix", "T=135 D=6", 1, false, false, 0},
	{"statistics", "D=6 T=45 S=100", 1, false, false, 0},
	{"regression", "N=45 M=100 C=3 E=2", 1, false, false, 0},
	{"empty", "T=3 S=0 D=4", 1, false, false, 0},
	{"empty", "T=70 S=65 D=4", 1, false, false, 0},
	{"wide", "T=70 S=70 D=18 E=66", 1, false, false, 0},
	{"relative", "T=45 S=60 D=6 E=4", 1, false, false, 0},
	/* by roles: tasks of 128 rows, or of 192 */
	{"narrow", "H=1 T=130 S=130 D=20 E=40", 1, false, true, 384},
	{"ends", "H=1 T=1930 S=130 D=16 E=8", 1, false, true, 512},
	{"ends", "H=1 T=70 S=130 D=8 E=8", 1, false, true, 128}, /* too few terms for powers of sums */
	{"narrow", "H=2 T=40 S=300 D=64 E=64", 1, false, true, 256},
	{"narrow", "H=1 T=150 S=150 D=128 E=104", 1, false, true, 384},
	{"narrow", "H=1 T=200 S=40 D=72 E=16", 1, true, true, 384},
	{"ends", "H=2 T=140 S=200 D=24 E=40", 1, false, true, 384},
	{"bare", "H=1 T=150 S=150 D=24 E=40", 1, true, true, 384},
	{"enlarged", "H=1 T=150 S=150 D=24 E=40", 1, true, true, 384},
	{"ends", "H=1 T=140 S=70 D=24 E=40", 1, true, true, 384},
	{"ends", "H=3 T=270 S=200 D=24 E=40", 1, false, true, 384}, /* of more tasks than three blocks take in a turn */
	{"ends", "H=1 T=40 S=0 D=24 E=40", 1, false, true, 0},
	{"into", "T=150 S=140 D=24", 2, false, true, 384},
	{"documents", "T=300 S=90 D=24", 1, false, true, 384},
	{"documents", "T=140 S=140 D=64", 1, false, true, 384},
	{"below", "T=70 S=150 D=6", 1, false, false, 128},
	{"sloped", "H=2 T=300 S=290 D=24", 1, false, true, 384},
	{"sloped", "H=1 T=20 S=200 D=72", 1, false, true, 256},
	{"sloped", "H=2 T=70 S=90 D=9", 1, false, false, 128},
	{"decode", "B=2 H=6 G=2 S=173 D=24", 1, false, true, 256},
	{"decode", "B=3 H=4 G=4 S=150 D=64", 1, false, true, 256},
	{"decode", "B=1 H=6 G=1 S=40 D=24", 1, true, true, 256},
	{"decode", "B=2 H=6 G=2 S=73 D=9", 1, false, true, 128},
	{"decode", "B=2 H=6 G=2 S=73 D=9", 1, true, false, 128},
	{"decode", "B=2 H=0 G=2 S=73 D=24", 1, false, true, 0},
	{"thirds", "N=8 P=3 S=140 D=24 E=40", 1, false, true, 256},
	{"thirds", "N=7 P=3 S=30 D=24 E=40", 1, false, true, 256},
	{"thirds", "N=7 P=3 S=0 D=24 E=40", 1, false, true, 0},
	{"parts", "N=300 P=2 S=70 D=6", 1, false, false, 128},
	{"parts", "N=210 P=2 S=20 D=6", 1, false, false, 128},
	{"parts", "N=70 P=1 S=20 D=6", 1, false, false, 128},
	{"far", "N=8 P=1 S=140 D=24", 2, false, true, 256},
	{"far", "N=8 P=1 S=200 D=264", 2, false, true, 384},
	{"far", "N=70 P=1 S=20 D=24", 1, false, false, 128},
	{"pooled", "N=5 S=150 D=24", 1, false, true, 256},
	{"pooled", "N=3 S=20 D=40", 1, false, true, 256},
	{"narrow", "H=1 T=3 S=3 D=1 E=1", 1, true, true, 0},
	{"narrow", "H=1 T=20 S=20 D=8 E=304", 1, false, true, 128},
	{"narrow", "H=1 T=70 S=70 D=8 E=8", 1, false, false, 128},
	/* with a tensor of rows and elements */
	{"biased", "B=3 H=2 T=140 S=170 D=24", 1, false, true, 384},
	{"biased", "B=1 H=2 T=20 S=300 D=72", 1, false, true, 256},
	{"biased", "B=2 H=1 T=40 S=90 D=136", 1, false, true, 384},
	{"biased", "B=2 H=1 T=40 S=0 D=24", 1, false, true, 0},
	{"biased", "B=2 H=1 T=0 S=40 D=24", 1, false, true, 0},
	{"biased", "B=2 H=1 T=20 S=70 D=9", 1, false, true, 128},
	{"biased_causal", "H=2 T=150 S=150 D=24 E=40", 1, true, true, 384},
	{"biased_causal", "H=3 T=40 S=140 D=16 E=64", 1, true, true, 256},
	{"biased_causal", "H=1 T=200 S=70 D=64 E=104", 1, true, true, 384},
	{"biased_window", "B=2 H=4 G=2 T=140 S=200 D=16 W=90", 1, false, true, 384},
	{"biased_window", "B=1 H=2 G=1 T=70 S=20 D=16 W=5", 1, true, true, 384},
	{"biased_twice", "H=4 G=2 T=140 S=72 D=24", 1, false, true, 384},
	{"biased_decode", "B=2 H=6 G=2 S=173 D=24", 1, false, true, 256},
	{"biased_decode", "B=3 H=4 G=4 S=150 D=64", 1, false, true, 256},
	/* of which each row folds a part, one fold alone */
	{"unweighed", "H=2 T=150 S=150 D=24 E=40", 1, true, true, 384},
	{"unweighed", "H=1 T=200 S=70 D=128 E=128", 1, true, true, 384},
	{"unweighed", "H=1 T=40 S=140 D=72 E=16", 1, false, true, 256},
	{"unweighed", "H=1 T=70 S=70 D=9 E=8", 1, false, false, 128},
	{"decaying", "H=4 G=2 T=140 S=140 D=24 E=40", 1, false, true, 384},
	{"decaying", "H=2 G=1 T=40 S=90 D=64 E=64", 1, true, true, 256},
	{"retained", "H=2 T=140 S=150", 1, false, true, 384},
	{"retained", "H=1 T=150 S=150", 1, true, true, 384},
	{"best", "H=2 T=140 S=150 D=24", 1, false, true, 384},
	{"best", "H=1 T=40 S=90 D=264", 1, false, true, 384},
	{"chunks", "H=2 T=140 S=150 D=24 E=40", 2, false, true, 0},
	{"gated", "H=2 T=300 D=24 E=40 W=70", 1, false, true, 384},
	{"gated", "H=1 T=130 D=128 E=72 W=200", 1, true, true, 384},
	/* terms piece by piece, and parts of the elements */
	{"normaliser", "T=130 S=200 D=260", 2, false, true, 384},
	{"normaliser", "T=3 S=2120 D=257", 2, false, true, 384},
	{"normaliser", "T=9 S=1 D=300", 2, false, true, 384},
	{"normaliser", "T=140 S=200 D=24", 2, false, true, 384},
	{"normaliser", "T=70 S=200 D=0", 2, false, true, 128},
	{"normaliser", "T=70 S=200 D=9", 1, false, false, 128},
	{"labelled", "T=20 S=210 D=260", 3, false, true, 0},
	{"labelled", "T=4 S=9 D=40", 3, false, true, 0},
	{"labelled", "T=40 S=90 D=7", 2, false, false, 0},
	{"read_beside", "T=20 S=210 D=260", 0, false, true, 0},
	{"read_checked", "T=20 S=210 D=260", 0, false, true, 0},
	{"moments", "B=2 T=40 S=200 D=264", 2, false, true, 384},
	{"moments", "B=1 T=40 S=70 D=24", 2, false, true, 256},
	{"between", "T=45 S=60 D=6", 0, false, false, 0},
	{"shown", "T=45 S=60 D=6", 0, false, false, 0},
};

/* Of a GPU whose warps multiply matrices, without roles, which do: of 24 terms and more, in multiples of 8; of up to 64, 96, 128, 192 and 256. */
static const Row warps_rows[] = {
	{"narrow", "H=1 T=130 S=130 D=24 E=40", 1, false, false, 128},
	{"narrow", "H=2 T=40 S=300 D=64 E=64", 1, false, false, 128},
	{"narrow", "H=1 T=3 S=65 D=32 E=8", 1, false, false, 128},
	{"narrow", "H=1 T=150 S=150 D=72 E=96", 1, false, false, 128},
	{"narrow", "H=1 T=150 S=150 D=128 E=104", 1, false, false, 128},
	{"narrow", "H=1 T=200 S=40 D=104 E=16", 1, true, false, 128},
	{"narrow", "H=1 T=70 S=150 D=192 E=128", 1, false, false, 128},
	{"narrow", "H=1 T=70 S=150 D=200 E=248", 1, true, false, 128},
	{"narrow", "H=1 T=70 S=70 D=256 E=256", 1, false, false, 128},
	{"ends", "H=2 T=140 S=200 D=24 E=40", 1, false, false, 128},
	{"ends", "H=1 T=140 S=70 D=24 E=40", 1, true, false, 128},
	{"ends", "H=1 T=140 S=270 D=128 E=40", 1, true, false, 128},
	{"ends", "H=1 T=40 S=0 D=24 E=40", 1, false, false, 0},
	{"bare", "H=1 T=150 S=150 D=24 E=40", 1, true, false, 128},
	{"enlarged", "H=1 T=150 S=150 D=24 E=40", 1, true, false, 128},
	{"into", "T=150 S=140 D=24", 2, false, false, 128},
	{"documents", "T=300 S=90 D=24", 1, false, false, 128},
	{"documents", "T=140 S=140 D=64", 1, false, false, 128},
	{"documents", "T=300 S=290 D=128", 1, false, false, 128},
	{"sloped", "H=2 T=300 S=290 D=24", 1, false, false, 128},
	{"sloped", "H=1 T=20 S=200 D=72", 1, false, false, 128},
	{"decode", "B=2 H=6 G=2 S=173 D=24", 1, false, false, 128},
	{"decode", "B=3 H=4 G=4 S=150 D=64", 1, false, false, 128},
	{"decode", "B=1 H=6 G=1 S=40 D=24", 1, true, false, 128},
	{"unweighed", "H=2 T=150 S=150 D=24 E=40", 1, true, false, 128},
	{"decaying", "H=4 G=2 T=140 S=140 D=24 E=40", 1, true, false, 128},
	{"gated", "H=2 T=130 D=24 E=40 W=70", 1, false, false, 128},
	{"thirds", "N=8 P=3 S=140 D=24 E=40", 1, false, false, 128},
	{"thirds", "N=7 P=3 S=30 D=24 E=40", 1, false, false, 128},
	{"far", "N=8 P=1 S=140 D=24", 1, false, false, 128},
	{"pooled", "N=5 S=150 D=24", 1, false, false, 128},
	{"biased", "B=3 H=2 T=140 S=170 D=24", 1, false, false, 128},
	{"biased", "B=2 H=1 T=40 S=90 D=136", 1, false, false, 128},
	{"biased_causal", "H=2 T=150 S=150 D=24 E=40", 1, true, false, 128},
	{"biased_causal", "H=1 T=200 S=70 D=64 E=104", 1, true, false, 128},
	{"biased_window", "B=2 H=4 G=2 T=140 S=200 D=24 W=90", 1, false, false, 128},
	{"biased_window", "B=1 H=2 G=1 T=70 S=24 D=24 W=5", 1, true, false, 128},
	{"biased_twice", "H=4 G=2 T=140 S=72 D=24", 1, false, false, 128},
	{"biased_decode", "B=2 H=6 G=2 S=173 D=24", 1, false, false, 128},
	{"normaliser", "T=140 S=200 D=24", 1, false, false, 128},
	{"normaliser", "T=140 S=200 D=256", 1, false, false, 128},
	{"moments", "B=1 T=40 S=72 D=24", 1, false, false, 128},
};

/* Where they don't. */
static const Row not_by_warps[] = {
	{"narrow", "H=1 T=70 S=70 D=16 E=8", 1, false, false, 0},
	{"narrow", "H=1 T=70 S=70 D=28 E=8", 1, false, false, 0},
	{"narrow", "H=1 T=20 S=20 D=24 E=304", 1, false, false, 0},
	{"narrow", "H=1 T=20 S=20 D=24 E=36", 1, false, false, 0},
	{"normaliser", "T=70 S=200 D=264", 1, false, false, 0},
	{"moments", "B=1 T=40 S=70 D=24", 1, false, false, 0},
};

/* With parts of five tiles, or of all. */
static const Row tiles[] = {
	{"normaliser", "T=9 S=790 D=257", 2, false, true, 384},
	{"normaliser", "T=9 S=330 D=257", 2, false, true, 384},
	{"normaliser", "T=3 S=3300 D=257", 2, false, true, 384},
	{"moments", "B=1 T=40 S=500 D=264", 2, false, true, 384},
	{"moments", "B=1 T=40 S=130 D=264", 2, false, true, 384},
};

/* Of pairwise.tex: blocks of up to 128 rows, tiles of 512 elements. threads: 1: another template's kernel runs. */
static const Row pairwise_rows[] = {
	{"kernel_sum", "N=140 M=2100 D=3", 2, false, false, 256},
	{"kernel_sum", "N=3 M=2051 D=1", 2, false, false, 256},
	{"kernel_sum", "N=3 M=2048 D=2", 2, false, false, 256},
	{"kernel_sum", "N=3 M=2049 D=4", 2, false, false, 256},
	{"kernel_sum", "N=3 M=2048 D=5", 2, false, false, 256},
	{"kernel_sum", "N=3 M=2048 D=8", 2, false, false, 256},
	{"kernel_sum", "N=3 M=2048 D=9", 2, false, false, 1},
	{"kernel_sum", "N=9 M=66 D=3", 2, false, false, 1},
	{"kernel_sum", "N=3 M=2048 D=0", 2, false, false, 1},
	{"kernel_sum", "N=0 M=2048 D=3", 2, false, false, 0},
	{"in_space", "N=70 M=90", 1, false, false, 256},
	{"in_space", "N=129 M=1030", 1, false, false, 256},
	{"in_space", "N=9 M=0", 1, false, false, 256},
	{"in_space", "N=300 M=0", 1, false, false, 256}, /* three tasks, with nothing to wait for in one */
	{"in_space", "N=9 M=2050", 1, false, false, 256},
	{"forces", "N=70 D=3", 2, false, false, 256},
	{"forces", "N=600 D=1", 2, false, false, 256},
	{"forces", "N=65 D=6", 2, false, false, 256},
	{"forces", "N=1 D=3", 2, false, false, 256},
	{"moved", "N=70 D=3", 2, false, false, 256},
	{"moved", "N=70 D=1", 2, false, false, 256},
	{"moved", "N=70 D=5", 2, false, false, 256},
	{"smoothed", "N=70 M=90", 1, false, false, 256},
	{"nearest", "B=3 N=70 M=90", 1, false, false, 256},
	{"within", "N=70", 0, false, false, 0},
	{"on_a_line", "N=70 M=90", 1, false, false, 256},
	{"counted", "N=70 M=90", 1, false, false, 256},
	{"counted", "N=7 M=2", 1, false, false, 256},
	{"boxes", "N=70 M=90 D=3", 0, false, false, 256},
	{"boxes", "N=70 M=90 D=2", 0, false, false, 256},
	{"boxes", "N=70 M=90 D=7", 0, false, false, 256},
};

enum { MAX_FILES = 2, FIVE_TILES = 960, SHORT_PARTS = 40, A_TILE = 128 };
static const char *path[MAX_FILES], *only;
static unsigned nfile;
static const char *sizes_path;
static unsigned by_warps; /* programs whose warps multiplied matrices */
static bool pairwise, warps; /* warps: of a GPU whose warps multiply matrices, without roles */

static const char *
read_file(unsigned n, size_t *size)
{
	FILE *f = fopen(path[n], "rb");
	assert_non_null(f);
	char *text = arena_alloc(&arena, 1 << 20);
	*size = fread(text, 1, 1 << 20, f);
	fclose(f);
	return text;
}

static Graph *
graph_in(unsigned n, const char *name)
{
	Diags diags;
	size_t size;
	const char *text = read_file(n, &size);
	diags_init(&diags, &arena);
	FileId file = diags_add_file(&diags, path[n], text, size);
	FrontendOptions o = {.fp = FP_RELAXED};
	Unit *u = frontend_compile(&arena, names_new(&arena), &diags, file, &o);
	assert_non_null(u);
	for (uint32_t k = 0; k < u->graph.n; k++)
		if (strcmp(name_text(u->graph.at[k]->names, u->graph.at[k]->name), name) == 0)
			return u->graph.at[k];
	return NULL;
}

static Graph *
graph_of(const char *name)
{
	for (unsigned n = 0; n < nfile; n++) {
		Graph *g = graph_in(n, name);
		if (g)
			return g;
	}
	fail_msg("no graph %s", name);
	return NULL;
}

static int64_t
size_of(const Row *r, const char *name)
{
	size_t n = strlen(name);
	for (const char *at = r->sizes; at; at = strchr(at, ' ')) {
		at += *at == ' ';
		if (strncmp(at, name, n) == 0 && at[n] == '=')
			return strtoll(at + n + 1, NULL, 10);
	}
	fail_msg("%s: no %s", r->graph, name);
	return 0;
}

static double
next_random(uint64_t *seed)
{
	*seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (double)(*seed >> 11) * 0x1p-53;
}

static void
fill(const Row *r, const char *name, const Tensor *t, int64_t count, int64_t last_row, uint64_t *seed, uint8_t *to)
{
	for (int64_t i = 0; i < count; i++) {
		double x = next_random(seed);
		EvalValue v = {.re = 4 * x - 2};
		if (t->dtype == DT_BOOL)
			v.i = x < 0.4;
		else if (!dtype_is_float((DType)t->dtype))
			v.i = (int64_t)(x * (double)size_of(r, pairwise ? "M" : "S"));
		if (r->odd && i >= count - last_row && (*name == 'k' || *name == 'v'))
			v.re = *name == 'k' ? NAN : INFINITY;
		if (r->odd && *name == 'u' && i % last_row > i / last_row)
			v.re = NAN;
		eval_store((DType)t->dtype, to, i, v);
	}
}

static EvalInputs
make_inputs(const Row *r, Graph *g, const int64_t *dim)
{
	const void **data = ARENA_ARRAY(&arena, const void *, g->param.n);
	const int64_t **shape = ARENA_ARRAY(&arena, const int64_t *, g->param.n);
	uint64_t seed = 1;
	for (uint32_t k = 0; k < g->param.n; k++) {
		const Tensor *t = &g->tensor.at[g->param.at[k]];
		const char *name = name_text(g->names, t->name);
		int64_t *s = ARENA_ARRAY(&arena, int64_t, TG_MAX_RANK + 1), count = 1, bytes;
		for (unsigned a = 0; a < t->rank; a++) {
			const Expr *e = expr_get(g, t->extent[a]);
			assert_true(e->op == OP_DIM || e->op == OP_CONST);
			count *= s[a] = e->op == OP_DIM ? dim[e->ref] : e->imm.i;
		}
		dtype_bytes((DType)t->dtype, count, &bytes);
		uint8_t *to = arena_alloc(&arena, (size_t)bytes + 16);
		if (t->kind == TENSOR_SCALAR)
			eval_store((DType)t->dtype, to, 0, (EvalValue){.i = size_of(r, name)});
		else
			fill(r, name, t, count, t->rank ? s[t->rank - 1] : 1, &seed, to);
		data[k] = to;
		shape[k] = s;
	}
	return (EvalInputs){data, shape};
}

static bool
ran_pairwise(const InterpRun *run)
{
	return run->last && run->last->plan.tmpl == TMPL_PAIRWISE;
}

/* Whether a kernel's warps find out what blocks are to bring: there the order of a block's tasks is its own. */
static bool
asks_data(const Program *p)
{
	for (uint32_t n = 0; n < p->kernel.n; n++) {
		const TirKernel *k = p->kernel.at[n].tir;
		for (ValId v = 1; k->channel.n && v < k->inst.n; v++)
			if (tir_inst(k, v)->op == OP_ROLES && tir_inst(k, v)->imm.i & TIR_ROLES_WARP)
				return true;
	}
	return false;
}

/* part: elements of a part; 0: as many as sizes say. Whether parts were joined that a launch could have had whole. */
static bool
run(const Row *r, uint32_t part)
{
	Graph *g = graph_of(r->graph);
	int64_t *dim = ARENA_ARRAY(&arena, int64_t, g->dim.n);
	Text log;
	EvalOutputs want;
	text_init(&log, &arena);
	for (uint32_t d = 0; d < g->dim.n; d++) /* but for those of no name */
		if (*name_text(g->names, g->dim.at[d].name))
			dim[d] = size_of(r, name_text(g->names, g->dim.at[d].name));
	EvalInputs in = make_inputs(r, g, dim);
	graph_decide(g);
	assert_int_equal(graph_eval(g, &arena, &in, 0, &want), EVAL_OK);
	PassOptions o = {.lanes = 32, .has_fma = true, .blocks = true, .roles = r->roles, .warp_mma = warps, .least_tile = pairwise, .part_terms = part,
	                 .verify_each = true};
	Program *p = compile_graph(g, &o, &log);
	bool streams = false;
	for (uint32_t k = 0; k < p->kernel.n; k++)
		streams |= p->kernel.at[k].plan.tmpl == (pairwise ? TMPL_PAIRWISE : TMPL_STREAM);
	bool any = part == SHORT_PARTS || part == A_TILE || sizes_path, joined = false;
	if (!any && (r->kernels ? program_kernels(p) != r->kernels || !streams : program_kernels(p) < 2 && !pairwise))
		fail_msg("%s: %u kernels", r->graph, program_kernels(p));
	for (unsigned way = 0; way < (asks_data(p) ? 3u : 2u); way++) { /* in one call; split; by blocks that take turns */
		bool split = way != 0;
		InterpRun got = interp_program(p, &arena, &in, dim, &(InterpOptions){.stride = 1, .split = way == 1, .blocks = way == 2 ? 3 : 1});
		if (got.error)
			fail_msg("%s %s: %s", r->graph, r->sizes, got.error);
		if (!split && pairwise && r->threads && ran_pairwise(&got) != (r->threads != 1))
			fail_msg("%s %s: another template's kernel ran", r->graph, r->sizes);
		joined |= got.ran && got.ran->covered;
		by_warps += !split && got.ran && got.ran->plan.tmpl == TMPL_STREAM && got.ran->plan.pairs;
		if (!split && !any && !pairwise && r->threads && (!got.ran || got.ran->plan.threads != r->threads))
			fail_msg("%s %s: another kernel ran, of %u threads", r->graph, r->sizes, got.ran ? got.ran->plan.threads : 0u);
		if (!split && !any && warps && got.ran && (got.ran->plan.pairs > 0) != (r->threads > 0) && size_of(r, "S"))
			fail_msg("%s %s: another kernel ran, which multiplies %s", r->graph, r->sizes, got.ran->plan.pairs ? "matrices" : "by threads");
		if (!split && !part && r->threads > 128 && strncmp(r->graph, "biased", 6) == 0 && !got.ran->plan.beside)
			fail_msg("%s %s: a kernel ran that loads elements one by one", r->graph, r->sizes);
		for (uint32_t k = 0; k < g->result.n; k++) {
			EvalCompare cmp;
			eval_compare(&want.result[k], got.result[k], &cmp);
			if (cmp.mismatches)
				fail_msg("%s %s: result %u element %lld: got %.9g, want %.9g +- %.3g", r->graph, r->sizes, k, (long long)cmp.worst,
				         cmp.worst_got, cmp.worst_want, cmp.worst_bound);
		}
	}
	return joined;
}

static void
run_rows(const Row *row, size_t n, uint32_t part)
{
	for (size_t k = 0; k < n; k++)
		if (!only || strcmp(only, row[k].graph) == 0)
			run(&row[k], part);
}

static void
test_warps(void **state)
{
	(void)state;
	warps = true;
	run_rows(warps_rows, pairwise ? 0 : sizeof warps_rows / sizeof *warps_rows, 0);
	run_rows(not_by_warps, pairwise ? 0 : sizeof not_by_warps / sizeof *not_by_warps, 0);
	warps = false;
}

/* Of random programs a third at least are of sizes for warps. */
static void
test_random(void **state)
{
	char line[128];
	unsigned n = 0;
	FILE *f = fopen(sizes_path, "r");
	(void)state;
	assert_non_null(f);
	warps = true;
	for (; fgets(line, sizeof line, f); n++) {
		char *sizes = strchr(line, ' ');
		line[strcspn(line, "\n")] = 0;
		*sizes = 0;
		run(&(Row){line, sizes + 1, 1, false, false, 0}, 0);
	}
	fclose(f);
	assert_true(n && 3 * by_warps >= n);
}

static const Row *
first_row(const char *graph)
{
	for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
		if (strcmp(graph, rows[k].graph) == 0)
			return &rows[k];
	fail_msg("no row of %s", graph);
	return NULL;
}

/* In parts of so many elements, where a launch would have them whole: which kernels then run is not looked at. None has parts of
 * rows with ends of their own, of elements left out inside, or of columns of 64 bits. */
static void
test_parts(void **state)
{
	static const char *const graphs[] = {"attention", "lengths", "capped", "decode", "thirds", "statistics", "regression", "relative"};
	static const char *const whole[] = {"causal", "window", "ends", "empty", "documents", "narrow", "masked", "wide"};
	unsigned n = 0;
	(void)state;
	for (size_t k = 0; !pairwise && k < sizeof rows / sizeof *rows; k++)
		for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++) {
			if (strcmp(graphs[i], rows[k].graph) != 0 || (only && strcmp(only, rows[k].graph) != 0))
				continue;
			n += run(&rows[k], SHORT_PARTS);
			n += rows[k].roles && run(&rows[k], A_TILE);
		}
	for (size_t i = 0; !pairwise && !only && i < sizeof whole / sizeof *whole; i++)
		assert_false(run(first_row(whole[i]), SHORT_PARTS));
	if (!pairwise && !only)
		assert_true(n >= 20);
}

static void
test_graphs(void **state)
{
	const Row *row = pairwise ? pairwise_rows : rows;
	size_t n = pairwise ? sizeof pairwise_rows / sizeof *pairwise_rows : sizeof rows / sizeof *rows;
	(void)state;
	run_rows(row, n, 0);
	run_rows(tiles, pairwise ? 0 : sizeof tiles / sizeof *tiles, FIVE_TILES);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_graphs, setup, teardown),
		cmocka_unit_test_setup_teardown(test_warps, setup, teardown),
		cmocka_unit_test_setup_teardown(test_parts, setup, teardown),
	};
	const struct CMUnitTest random[] = {cmocka_unit_test_setup_teardown(test_random, setup, teardown)};
	if (argc < 1 + MAX_FILES || argc > 2 + MAX_FILES)
		return 2;
	if (strcmp(argv[1], "--random") == 0 && argc == 4) {
		path[nfile++] = argv[2];
		sizes_path = argv[3];
		return cmocka_run_group_tests(random, NULL, NULL);
	}
	pairwise = strcmp(argv[1], "--pairwise") == 0;
	nfile = pairwise ? 1 : MAX_FILES;
	for (unsigned n = 0; n < nfile; n++)
		path[n] = argv[1 + pairwise + n];
	only = argv[1 + MAX_FILES];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
