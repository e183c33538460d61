/* object_form.c: a module's program compiled ahead of time: what `texo build` writes, in memory. Each
 * level of processors has passes of its own, which change the graphs, so each checks the text again. */
#include "driver/api/objects.h"

#include <string.h>

enum { MAX_LEVELS = 16 };

static texo_status
make_level(Compilation *c, const char *cpu, ObjectLevel *out)
{
	texo_status s = compilation_source(c);
	c->cpu = cpu;
	if (!s)
		s = compilation_check(c);
	if (!s)
		s = compilation_lower(c, false);
	*out = (ObjectLevel){cpu, c->program};
	return s;
}

/* The processors of a request: as `texo build` has them for its --target. */
static uint32_t
choose_cpus(const Compilation *c, const char **cpu)
{
	uint32_t n = 0;
	if (strcmp(c->cpu, "host") != 0) {
		cpu[n++] = c->cpu;
		return n;
	}
	for (const char *const *at = codegen_object_cpus(); *at && n < MAX_LEVELS; at++)
		cpu[n++] = *at;
	return n;
}

texo_status
compilation_object(Compilation *c, ObjectResult *out)
{
	const char *cpu[MAX_LEVELS];
	ObjectLevel level[MAX_LEVELS];
	texo_status s = compilation_source(c); /* for the target */
	uint32_t n = s ? 0 : choose_cpus(c, cpu);
	bool gpu = c->gpu;
	for (uint32_t k = 0; !s && k < n; k++)
		s = make_level(c, cpu[k], &level[k]);
	if (s)
		return s;
	if (c->unit.unit->graph.n == 0)
		return texo_private_fail(TEXO_NOT_FOUND, "%s has no graph", c->request->name);
	ObjectInput in = {.level = level, .nlevel = gpu ? 0 : n, .gpu = level, .ngpu = gpu ? n : 0,
	                  .nprogram = c->unit.unit->graph.n, .opt_level = 2};
	switch (codegen_object(&c->arena, &in, out)) {
	case CODEGEN_OK:
		return TEXO_OK;
	case CODEGEN_ILLEGAL:
		return texo_private_fail(TEXO_NOT_BUILT, "%s can't be built: %s", c->request->name, out->message);
	case CODEGEN_FAILED:
		break;
	}
	return texo_private_fail(TEXO_INTERNAL, "%s: code generation failed: %s", c->request->name, out->message);
}
