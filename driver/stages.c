/* stages.c: see stages.h. */
#include "driver/stages.h"

#include <stdlib.h>
#include <string.h>

void
unit_begin(Arena *a, const char *path, const char *text, size_t n, SourceUnit *out)
{
	*out = (SourceUnit){.path = path, .text = text, .n = n, .names = names_new(a)};
	diags_init(&out->diags, a);
	out->file = diags_add_file(&out->diags, path, text, n);
}

void
unit_check(Arena *a, SourceUnit *u, const FrontendOptions *o, bool werror)
{
	u->unit = frontend_compile(a, u->names, &u->diags, u->file, o);
	u->failed = u->diags.nerror > 0 || (werror && u->diags.nwarning > 0);
	for (uint32_t i = 0; u->unit && i < u->unit->graph.n; i++)
		graph_decide(u->unit->graph.at[i]);
}

bool
fp_named(const char *text, FpMode *out)
{
	*out = FP_RELAXED;
	if (!text || strcmp(text, "relaxed") == 0)
		return true;
	*out = strcmp(text, "fast") == 0 ? FP_FAST : FP_STRICT;
	return *out == FP_FAST || strcmp(text, "strict") == 0;
}

bool
statics_differ(const char *a, const char *b)
{
	size_t n = strcspn(a, "=");
	return strncmp(a, b, n + 1) == 0 && strtoll(a + n + 1, NULL, 10) != strtoll(b + n + 1, NULL, 10);
}

bool
fuse_named(const char *text, FuseMode *out)
{
	*out = FUSE_ALL;
	if (!text || strcmp(text, "all") == 0)
		return true;
	*out = strcmp(text, "off") == 0 ? FUSE_OFF : FUSE_ELEMENTWISE;
	return *out == FUSE_OFF || strcmp(text, "elementwise") == 0;
}

/* Whether `name` is one of the comma-separated names. */
static bool
is_listed(const char *names, const char *name)
{
	for (const char *n = names; *n; n += strspn(n, ", ")) {
		size_t k = strcspn(n, ",");
		if (k == strlen(name) && memcmp(n, name, k) == 0)
			return true;
		n += k;
	}
	return false;
}

static TargetKind
parse_cuda(Arena *a, const char *rest, const char **cpu)
{
	const char *names = codegen_sm_names(a);
	*cpu = *rest ? rest + 1 : arena_copy(a, names, strcspn(names, ","));
	return *rest && *rest != ':' ? TARGET_NONE : is_listed(names, *cpu) ? TARGET_CUDA : TARGET_NO_SUCH_GPU;
}

TargetKind
target_parse(Arena *a, const char *target, const char **cpu)
{
	*cpu = "host";
	if (!target || strcmp(target, "cpu") == 0)
		return TARGET_CPU;
	if (strncmp(target, "cuda", 4) == 0)
		return parse_cuda(a, target + 4, cpu);
	if (strncmp(target, "cpu:", 4) != 0)
		return TARGET_NONE;
	*cpu = target + 4;
	return is_listed(codegen_cpu_names(a), *cpu) ? TARGET_CPU : TARGET_NO_SUCH_CPU;
}

void
pass_options_for(const char *cpu, const Host *host, PassOptions *out)
{
	memset(out, 0, sizeof *out);
	out->host = host;
	TargetOffer offer = codegen_target_offer(cpu);
	out->lanes = offer.lanes;
	out->blocks = offer.blocks;
	out->cluster = offer.cluster;
	out->roles = offer.roles;
	out->warp_mma = offer.warp_mma;
	out->has_fma = offer.fma;
	out->has_scale = offer.scale;
	out->has_pick = offer.pick;
	out->has_masks = offer.masks;
	out->has_ex2 = offer.ex2;
	out->has_fp8 = offer.fp8;
	out->has_halves = offer.halves;
	out->dot = offer.dot;
}

const TirKernel *
late_finish(const char *cpu, FpMode fp, const TirKernel *early, Arena *a)
{
	PassOptions o;
	pass_options_for(cpu, NULL, &o);
	return compile_kernel(early, fp, &o, a);
}

const Program **
programs_of(Arena *a, const Unit *u, const PassOptions *o, Text *log)
{
	const Program **p = ARENA_ARRAY(a, const Program *, u->graph.n + 1);
	for (uint32_t g = 0; g < u->graph.n; g++)
		p[g] = compile_graph(u->graph.at[g], o, log);
	return p;
}
