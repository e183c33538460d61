/* random_ptx_test.c: usage: random_ptx_test PTXAS SEED COUNT
 *
 * Random programs as machine code of GPUs: what codegen makes of them is assembled, where no GPU need be. A warning is
 * an error. Few kernels spill: bodies are as long as chance will have it. The programs of a batch are one text, for one
 * of the GPUs that texo knows, by their seed. Prints how many registers kernels have; exit status 77 where there is no
 * PTXAS. */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "codegen/codegen.h"
#include "frontend/frontend.h"
#include "passes/pass.h"
#include "program.h"

enum { BATCH = 16, ALL_EVERY = 8, MAX_GPUS = 16, MOST_REGISTERS = 255, SPILLS_PERMILLE = 60 };

typedef struct {
	const char *name;
	unsigned programs, kernels, spills, registers[MOST_REGISTERS + 1];
} Gpu;

typedef struct {
	const char *ptxas;
	Gpu gpu[MAX_GPUS];
	unsigned ngpu, failed;
} Run;

static void
find_gpus(Run *r, Arena *a)
{
	for (const char *n = codegen_sm_names(a); *n && r->ngpu < MAX_GPUS; n += strcspn(n, ","), n += strspn(n, ", "))
		r->gpu[r->ngpu++].name = arena_copy(a, n, strcspn(n, ","));
}

/* Leaves one kernel of those of which a launch runs one. */
static void
pick(Program *p, uint64_t seed)
{
	uint32_t n = 0;
	for (uint32_t k = 0, end; k < p->kernel.n; k = end) {
		for (end = k + 1; end < p->kernel.n && p->kernel.at[end].alternative; end++)
			;
		p->kernel.at[n] = p->kernel.at[k + seed % (end - k)];
		p->kernel.at[n++].alternative = false;
	}
	p->kernel.n = n;
}

static const Program *
compile(Arena *a, const RandomProgram *rp, const PassOptions *po)
{
	Diags d;
	Text log;
	diags_init(&d, a);
	text_init(&log, a);
	FileId id = diags_add_file(&d, "random.tex", text_get(&rp->text), rp->text.n);
	FrontendOptions o = {.fp = rp->seed % 3 == 0 ? FP_STRICT : rp->seed % 5 == 1 ? FP_FAST : FP_RELAXED, .host = host_default()};
	Unit *u = frontend_compile(a, names_new(a), &d, id, &o);
	if (d.nerror || u->graph.n != 1)
		bug(a, "seed %llu: %s", (unsigned long long)rp->seed, diags_render(&d, a, false));
	Program *p = compile_graph(u->graph.at[0], po, &log);
	if (rp->seed % ALL_EVERY)
		pick(p, rp->seed / ALL_EVERY);
	return p;
}

/* What the assembler says of this text: its registers are counted, all else that it should not say fails. */
static bool
assemble(Run *r, Gpu *gpu, Arena *a, const char *text)
{
	char line[4096], path[] = "/tmp/texo-ptx-XXXXXX";
	int fd = mkstemp(path);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
	if (!f || fputs(text, f) < 0 || fclose(f) != 0)
		bug(a, "%s can't be written", path);
	FILE *said = popen(arena_text(a, "'%s' -arch=%s -v --warning-as-error -o /dev/null %s 2>&1", r->ptxas, gpu->name, path), "r");
	bool ok = said != NULL;
	while (said && fgets(line, sizeof line, said)) {
		const char *frame = strstr(line, "bytes stack frame, "), *used = strstr(line, ": Used ");
		unsigned n = 0;
		if (used && sscanf(used, ": Used %u registers", &n) == 1 && n <= MOST_REGISTERS) {
			gpu->registers[n]++;
			gpu->kernels++;
		}
		bool bad = strstr(line, "error") || strstr(line, "arning"), spills = frame && !strstr(frame, ", 0 bytes spill stores");
		gpu->spills += spills;
		if (bad)
			printf("%s", line);
		ok &= !bad;
	}
	ok &= said && pclose(said) == 0;
	remove(path);
	return ok;
}

static void
batch(Run *r, Gpu *gpu, uint64_t first, unsigned n)
{
	const Program *p[BATCH];
	RandomProgram rp[BATCH];
	CodegenOptions co = {.cpu = gpu->name, .opt_level = 2, .want_asm = true, .no_code = true};
	CodegenResult out = {0};
	TargetOffer offer = codegen_target_offer(gpu->name);
	PassOptions po = {.lanes = offer.lanes, .blocks = offer.blocks, .cluster = offer.cluster, .warp_mma = offer.warp_mma, .has_fma = offer.fma,
	                  .has_scale = offer.scale, .has_fp8 = offer.fp8, .dot = offer.dot, .host = host_default()};
	Unwind u = {0};
	Arena a;
	arena_init(&a, &host_default()->memory, &u);
	if (setjmp(u.env)) {
		printf("FAILED seeds %llu to %llu for %s: %s\n", (unsigned long long)first, (unsigned long long)(first + n - 1), gpu->name, u.text);
		r->failed++;
		arena_free(&a);
		return;
	}
	for (unsigned k = 0; k < n; k++) {
		rp_generate(&rp[k], &a, first + k);
		p[k] = compile(&a, &rp[k], &po);
	}
	if (codegen_cpu(&a, p, n, &co, &out) != CODEGEN_OK)
		bug(&a, "code generation: %s", out.message);
	if (!assemble(r, gpu, &a, out.assembly))
		bug(&a, "the assembler refuses it");
	gpu->programs += n;
	arena_free(&a);
}

static unsigned
quantile(const Gpu *g, unsigned percent)
{
	unsigned seen = 0, n = 0;
	while (n < MOST_REGISTERS && (seen += g->registers[n]) * 100ull < (unsigned long long)g->kernels * percent)
		n++;
	return n;
}

int
main(int argc, char **argv)
{
	static Run r;
	Unwind u = {0};
	Arena names;
	if (argc != 4 || access(argv[1], X_OK) != 0) {
		printf("skipped: there is no ptxas\n");
		return 77;
	}
	r.ptxas = argv[1];
	uint64_t seed = strtoull(argv[2], NULL, 10), count = strtoull(argv[3], NULL, 10);
	arena_init(&names, &host_default()->memory, &u);
	if (setjmp(u.env))
		return 1;
	find_gpus(&r, &names);
	for (uint64_t done = 0; done < count; done += BATCH)
		batch(&r, &r.gpu[(seed + done) / BATCH % r.ngpu], seed + done, count - done < BATCH ? (unsigned)(count - done) : BATCH);
	for (unsigned k = 0; k < r.ngpu; k++) {
		const Gpu *g = &r.gpu[k];
		printf("%s: %u programs, %u kernels, %u of them spill; registers: half have at most %u, nine of ten %u, all %u\n", g->name,
		       g->programs, g->kernels, g->spills, quantile(g, 50), quantile(g, 90), quantile(g, 100));
		r.failed += g->spills * 1000ull > (unsigned long long)g->kernels * SPILLS_PERMILLE;
		r.failed += count >= BATCH * r.ngpu && !g->kernels;
	}
	arena_free(&names);
	printf("%u failed\n", r.failed);
	return r.failed != 0;
}
