/* strides_test.c: a launch gives the same bits whatever the strides of its arguments, and touches nothing
 * between their elements: axes in any order in memory, elements apart, reversed, inputs repeated; with
 * one thread and several. Kernels of several templates, dtypes and sizes about those of the copies that
 * kernels are handed. */
#include "tests/library/fixture.h"

#include <stdlib.h>
#include <string.h>

enum { RANK = 3, ARGS = 4, GAP = 0x5a };

/* Two inputs and an inout or a result, or two; each of the extents. */
typedef struct {
	const char *text;
	unsigned bytes;     /* of an element, of any argument */
	unsigned nin, nout; /* arguments that are read, and after them results */
	bool inout;         /* the last that is read is written too */
	unsigned rank;
} Case;

static const Case cases[] = {
	{"graph g(x: f32[A, B, C], y: f32[A, B, C]) -> (z: f32[A, B, C]) { z[a, b, c] = x[a, b, c] * y[a, b, c] + y[a, b, c] }",
	 4, 2, 1, false, 3},
	{"graph g(x: f64[A, B, C]) -> (z: f64[A, B, C]) { z[a, b, c] = x[a, b, c] / sum[k](abs(x[a, b, k])) }", 8, 1, 1, false, 3},
	{"graph g(x: f16[A, B, C], inout y: f16[A, B, C]) -> (z: f16[A, B, C])\n"
	 "{ z[a, b, c] = max[k](f32(x[a, b, k])) + y[a, b, c]\n  y[a, b, c] = y[a, b, c] * x[a, b, c] }", 2, 2, 1, true, 3},
	{"graph g(x: u8[A, B, C], y: u8[A, B, C]) -> (z: u8[A, B, C], w: u8[A, B, C])\n"
	 "{ z[a, b, c] = x[a, b, c] + y[a, b, c]\n  w[a, b, c] = sum[k where k <= c](x[a, b, k]) }", 1, 2, 2, false, 3},
	{"graph g(x: f32[A, B], y: f32[A, B]) -> (z: f32[A, B]) { z[a, b] = sum[k](x[a, k] * y[a, k]) + x[a, b] }", 4, 2, 1, false, 2},
	{"graph g(x: f32[A, B], y: f32[A, B]) -> (z: f32[A, B]) where A == B { z[a, b] = sum[k](x[a, k] * y[k, b]) }", 4, 2, 1, false, 2},
	{"graph g(x: f32[A], y: f32[A]) -> (z: f32[A]) { z[a] = exp(x[a]) + y[a] }", 4, 2, 1, false, 1},
};

static uint64_t seed = 1;

static uint64_t
draw(uint64_t n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (seed >> 33) % n;
}

/* --- arguments in memory --- */

typedef struct {
	unsigned char *memory;
	int64_t bytes;                   /* of all */
	int64_t extent[RANK], stride[RANK];
	DLTensor tensor;
} Laid;

static int64_t
count_of(const int64_t *extent, unsigned rank)
{
	int64_t n = 1;
	for (unsigned k = 0; k < rank; k++)
		n *= extent[k];
	return n;
}

/* Axes in some order of memory, some with gaps, some reversed; an input's may be repeated. */
static void
lay(Laid *l, const Case *c, const int64_t *extent, bool input, bool plain)
{
	unsigned order[RANK], n = c->rank;
	int64_t span = 1, first = 0;
	for (unsigned k = 0; k < n; k++)
		order[k] = k;
	for (unsigned k = n; !plain && k-- > 1;) {
		unsigned other = (unsigned)draw(k + 1), was = order[k];
		order[k] = order[other], order[other] = was;
	}
	for (unsigned k = n; k-- > 0;) {
		unsigned a = order[k];
		int64_t step = plain || draw(2) ? span : span * (int64_t)(2 + draw(2));
		bool repeated = !plain && input && draw(6) == 0;
		l->extent[a] = extent[a];
		l->stride[a] = repeated ? 0 : step;
		span = repeated ? span : step * (extent[a] ? extent[a] : 1);
		if (!plain && draw(4) == 0) {
			first += (extent[a] ? extent[a] - 1 : 0) * l->stride[a];
			l->stride[a] = -l->stride[a];
		}
	}
	l->bytes = span * c->bytes;
	l->memory = malloc((size_t)l->bytes);
	memset(l->memory, GAP, (size_t)l->bytes);
	l->tensor = (DLTensor){.data = l->memory, .device = {kDLCPU, 0}, .ndim = (int32_t)n, .shape = l->extent,
	                       .strides = l->stride, .byte_offset = (uint64_t)(first * c->bytes)};
	l->tensor.dtype = (DLDataType){c->bytes == 1 ? kDLUInt : kDLFloat, (uint8_t)(8 * c->bytes), 1};
}

static unsigned char *
element(const Laid *l, const Case *c, int64_t number)
{
	int64_t at = 0;
	for (unsigned k = c->rank; k-- > 0; number /= l->extent[k])
		at += number % l->extent[k] * l->stride[k];
	return l->memory + l->tensor.byte_offset + at * (int64_t)c->bytes;
}

/* Small numbers of any of the types. Where axes are repeated the last one stays. */
static void
fill(Laid *l, const Case *c)
{
	static const uint16_t half[4] = {0x3c00, 0xbe00, 0x3555, 0x4100};
	for (int64_t n = count_of(l->extent, c->rank); n-- > 0;) {
		double d = (double)draw(2001) / 500 - 2;
		float f = (float)d;
		uint16_t h = half[draw(4)];
		uint8_t u = (uint8_t)draw(200);
		const void *from = c->bytes == 8 ? (const void *)&d : c->bytes == 4 ? (const void *)&f : c->bytes == 2 ? (const void *)&h : &u;
		memcpy(element(l, c, n), from, c->bytes);
	}
}

static void
copy(const Case *c, Laid *to, const Laid *from)
{
	for (int64_t n = count_of(to->extent, c->rank); n-- > 0;)
		memcpy(element(to, c, n), element(from, c, n), c->bytes);
}

/* --- launches --- */

static void
launch(texo_kernel *k, Laid *l, unsigned nargs)
{
	texo_arg arg[ARGS];
	size_t bytes;
	for (unsigned n = 0; n < nargs; n++)
		arg[n] = (texo_arg){.tensor = &l[n].tensor};
	assert_int_equal(texo_kernel_workspace(k, arg, nargs, &bytes), TEXO_OK);
	void *workspace = bytes ? aligned_alloc(64, bytes) : NULL;
	if (bytes)
		memset(workspace, 0xff, bytes);
	texo_status s = texo_kernel_launch(k, arg, nargs, workspace, NULL);
	if (s != TEXO_OK)
		fail_msg("%s", texo_last_error());
	free(workspace);
}

/* Whether all that is no element of l still has the gap's bytes. Overwrites the elements. */
static bool
gaps_live(const Laid *l, const Case *c)
{
	for (int64_t n = count_of(l->extent, c->rank); n-- > 0;)
		memset(element(l, c, n), GAP, c->bytes);
	for (int64_t n = 0; n < l->bytes; n++)
		if (l->memory[n] != GAP)
			return false;
	return true;
}

static void
compare(const Case *c, texo_kernel *k, const int64_t *extent)
{
	Laid strided[ARGS], plain[ARGS];
	unsigned nargs = c->nin + c->nout;
	for (unsigned n = 0; n < nargs; n++) {
		bool input = n < c->nin && !(c->inout && n + 1 == c->nin);
		lay(&strided[n], c, extent, input, false);
		lay(&plain[n], c, extent, input, true);
		fill(&strided[n], c);
		copy(c, &plain[n], &strided[n]);
	}
	launch(k, strided, nargs);
	launch(k, plain, nargs);
	for (unsigned n = 0; n < nargs; n++) {
		for (int64_t e = count_of(extent, c->rank); e-- > 0;)
			if (memcmp(element(&strided[n], c, e), element(&plain[n], c, e), c->bytes) != 0)
				fail_msg("argument %u, element %lld", n, (long long)e);
		assert_true(gaps_live(&strided[n], c));
		free(strided[n].memory);
		free(plain[n].memory);
	}
}

static texo_kernel *
compile(texo_ctx *ctx, const Case *c, texo_module **m)
{
	texo_kernel *k;
	*m = fixture_compile(ctx, c->text);
	assert_int_equal(texo_module_get_kernel(*m, "g", &k), TEXO_OK);
	return k;
}

static void
same_bits(void **state)
{
	static const int64_t sizes[][RANK] = {{1, 1, 1}, {3, 2, 5}, {2, 33, 31}, {32, 3, 32}, {65, 2, 70}, {0, 3, 2}, {2, 2, 2500}};
	(void)state;
	for (unsigned nthreads = 1; nthreads <= 3; nthreads += 2) {
		texo_ctx_options o = TEXO_INIT(texo_ctx_options);
		texo_ctx *ctx;
		o.threads = nthreads;
		assert_int_equal(texo_ctx_create(&o, &ctx), TEXO_OK);
		for (unsigned n = 0; n < sizeof cases / sizeof *cases; n++) {
			texo_module *m;
			texo_kernel *k = compile(ctx, &cases[n], &m);
			for (unsigned s = 0; s < sizeof sizes / sizeof *sizes; s++) {
				int64_t extent[RANK];
				for (unsigned a = 0; a < RANK; a++)
					extent[a] = strstr(cases[n].text, "A == B") ? sizes[s][0] : sizes[s][(a + 3 - cases[n].rank) % RANK];
				for (unsigned turn = 0; turn < 6; turn++)
					compare(&cases[n], k, extent);
			}
			texo_module_destroy(m);
		}
		texo_ctx_destroy(ctx);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(same_bits)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
