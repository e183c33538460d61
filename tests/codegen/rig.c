/* rig.c: see rig.h. */
#include "tests/codegen/rig.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MAX_ACCESS = 65535 };

void
rig_init(Rig *r, const char *name)
{
	memset(r, 0, sizeof *r);
	arena_init(&r->arena, &host_default()->memory, &r->unwind);
	r->names = names_new(&r->arena);
	r->k = tir_new(&r->arena, r->names, name_cstr(r->names, name));
}

void
rig_close(Rig *r)
{
	texo_program_destroy(r->program);
	texo_rt_destroy(r->rt);
	arena_free(&r->arena);
}

void
rig_run(const char *name, RigBody *body, const void *arg)
{
	Rig *r = calloc(1, sizeof *r);
	assert_non_null(r);
	rig_init(r, name);
	if (setjmp(r->unwind.env))
		fail_msg("unwound: %s", r->unwind.text);
	body(r, arg);
	rig_close(r);
	free(r);
}

static TensorId
add_param(Rig *r, TensorKind kind, Name name, DType t, unsigned rank, const ExprId *extent)
{
	TensorId id = tensor_new(r->graph, kind, name, (Span){0}, t, rank, extent);
	vec_push(&r->arena, &r->graph->param, id);
	return id;
}

static void
add_buffer(Rig *r, Kernel *out, const TirBuffer *b)
{
	Graph *g = r->graph;
	Dim d = {.name = name_cstr(r->names, arena_text(&r->arena, "n%u", out->buffer.n)),
	         .param = (int32_t)g->param.n, .axis = 0, .scale = 1};
	vec_push(&r->arena, &g->dim, d);
	ExprId n = expr_dim(g, g->dim.n - 1);
	TensorId id = add_param(r, b->written ? TENSOR_INOUT : TENSOR_INPUT, b->name, b->dtype, 1, &n);
	vec_push(&r->arena, &out->buffer, ((BufferBind){.kind = BIND_DATA, .tensor = id}));
}

Program *
rig_program(Rig *r, int64_t ntask)
{
	Program *p = ARENA_NEW(&r->arena, Program);
	Graph *g = p->graph = r->graph = graph_new(&r->arena, r->names);
	g->name = r->k->name;
	Kernel k = {.tir = r->k, .ntask = expr_int(g, DT_I64, ntask), .serial = !r->k->channel.n};
	k.plan.tmpl = TMPL_NEST;
	for (uint32_t b = 0; b < r->k->buffer.n && !r->k->buffer.at[b].shared; b++) /* shared ones come last */
		add_buffer(r, &k, &r->k->buffer.at[b]);
	for (uint32_t s = 0; s < r->k->scalar.n; s++) {
		TensorId id = add_param(r, TENSOR_SCALAR, r->k->scalar.at[s].name, r->k->scalar.at[s].dtype, 0, NULL);
		vec_push(&r->arena, &k.scalar, ((ScalarBind){.expr = expr_read(g, id, NULL, 0, 0)}));
	}
	vec_grow(&r->arena, &g->access, MAX_ACCESS);
	for (AccessId a = 1; a < g->access.n; a++) /* its line is its id */
		g->access.at[a] = (Access){ACCESS_GATHER, {.line = a, .col = 1}, "t[i]"};
	vec_push(&r->arena, &p->kernel, k);
	return p;
}

void
rig_load(Rig *r, const char *cpu, int64_t ntask)
{
	Program *p = rig_program(r, ntask);
	CodegenOptions o = {.cpu = cpu, .opt_level = 2};
	if (codegen_cpu(&r->arena, (const Program *const *)&p, 1, &o, &r->out) != CODEGEN_OK)
		fail_msg("codegen: %s", r->out.message);
	if (texo_rt_create(NULL, &r->rt) || texo_rt_load(r->rt, r->out.image, r->out.image_size, &r->program) ||
	    texo_program_get_kernel(r->program, NULL, &r->kernel))
		fail_msg("load: %s", texo_last_error());
}

const char *
rig_ptx(Rig *r, const char *sm, int64_t ntask)
{
	Program *p = rig_program(r, ntask);
	CodegenOptions o = {.cpu = sm, .opt_level = 2, .want_asm = true};
	if (codegen_cpu(&r->arena, (const Program *const *)&p, 1, &o, &r->out) != CODEGEN_OK)
		fail_msg("codegen: %s", r->out.message);
	return r->out.assembly;
}

unsigned
rig_count(const char *text, const char *word)
{
	unsigned n = 0;
	for (; (text = strstr(text, word)); text++)
		n++;
	return n;
}

void
rig_assemble(Rig *r, const char *sm, const char *ptxas, int64_t ntask)
{
	const char *ptx = rig_ptx(r, sm, ntask);
	char path[] = "/tmp/texo-ptx-XXXXXX";
	int fd = mkstemp(path);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
	if (!f || fputs(ptx, f) < 0 || fclose(f) != 0)
		fail_msg("%s can't be written", path);
	const char *spills = r->k->channel.n ? "--warn-on-spills" : ""; /* roles say how many registers they have */
	const char *command = arena_text(&r->arena, "'%s' -arch=%s --warning-as-error %s -o /dev/null %s", ptxas, sm, spills, path);
	if (system(command) != 0)
		fail_msg("%s\n%s", command, ptx);
	remove(path);
}

typedef struct {
	const char *cpu;
	bool *can;
} CanRun;

static void
try_load(Rig *r, const void *arg)
{
	const CanRun *c = arg;
	texo_status status = TEXO_INTERNAL;
	Program *p = rig_program(r, 0);
	CodegenOptions o = {.cpu = c->cpu};
	if (codegen_cpu(&r->arena, (const Program *const *)&p, 1, &o, &r->out) == CODEGEN_OK &&
	    texo_rt_create(NULL, &r->rt) == TEXO_OK)
		status = texo_rt_load(r->rt, r->out.image, r->out.image_size, &r->program);
	*c->can = status == TEXO_OK;
	if (status && !(status == TEXO_BAD_ARTEFACT && strstr(texo_last_error(), "lacks")))
		fail_msg("%s: %s", c->cpu, texo_last_error());
}

bool
rig_can_run(const char *cpu)
{
	bool can = false;
	rig_run("nothing", try_load, &(CanRun){cpu, &can});
	return can;
}

DLTensor
rig_tensor(DType t, void *data, int32_t rank, int64_t *shape)
{
	static const DLDataType type[DT_COUNT] = {
		[DT_F64] = {kDLFloat, 64, 1}, [DT_F32] = {kDLFloat, 32, 1}, [DT_F16] = {kDLFloat, 16, 1},
		[DT_BF16] = {kDLBfloat, 16, 1}, [DT_F8E4M3] = {kDLFloat8_e4m3fn, 8, 1},
		[DT_F8E5M2] = {kDLFloat8_e5m2, 8, 1}, [DT_F4E2M1] = {kDLFloat4_e2m1fn, 4, 1},
		[DT_E8M0] = {kDLFloat8_e8m0fnu, 8, 1}, [DT_I64] = {kDLInt, 64, 1}, [DT_I32] = {kDLInt, 32, 1},
		[DT_I16] = {kDLInt, 16, 1}, [DT_I8] = {kDLInt, 8, 1}, [DT_I4] = {kDLInt, 4, 1},
		[DT_U64] = {kDLUInt, 64, 1}, [DT_U32] = {kDLUInt, 32, 1}, [DT_U16] = {kDLUInt, 16, 1},
		[DT_U8] = {kDLUInt, 8, 1}, [DT_U4] = {kDLUInt, 4, 1}, [DT_BOOL] = {kDLBool, 8, 1},
		[DT_C64] = {kDLComplex, 64, 1}};
	return (DLTensor){.data = data, .device = {kDLCPU, 0}, .ndim = rank, .dtype = type[t], .shape = shape};
}

void
rig_launch(Rig *r, RigRun *run)
{
	DLTensor tensor[RIG_MAX];
	texo_arg arg[2 * RIG_MAX] = {0};
	size_t n = 0;
	for (uint32_t b = 0; b < r->k->buffer.n; b++) {
		tensor[b] = rig_tensor(r->k->buffer.at[b].dtype, run->data[b], 1, &run->count[b]);
		arg[n++].tensor = &tensor[b];
	}
	for (uint32_t s = 0; s < r->k->scalar.n; s++)
		arg[n++].scalar = run->scalar[s];
	texo_status status = texo_kernel_launch(r->kernel, arg, n, NULL, NULL);
	if (status != TEXO_OK && status != TEXO_FAULT)
		fail_msg("launch: %s", texo_last_error());
	texo_fault fault = {.struct_size = sizeof fault};
	assert_int_equal(texo_kernel_status(r->kernel, &fault), TEXO_OK);
	assert_int_equal(fault.failed, status == TEXO_FAULT);
	run->fault = fault.failed ? fault.line : 0;
	run->cut = fault.cut && !fault.failed ? fault.line : 0; /* the status names one, a failure first */
}

void
rig_interpret(Rig *r, RigRun *run)
{
	TirMemory memory[RIG_MAX];
	for (uint32_t b = 0; b < r->k->buffer.n; b++)
		memory[b] = (TirMemory){run->data[b], (int64_t)rig_bytes(r->k->buffer.at[b].dtype, run->count[b])};
	TirRun t = {.buffer = memory, .scalar = run->scalar, .task_hi = run->ntask};
	const char *error = NULL;
	if (!tir_interpret(r->k, &r->arena, &t, &error))
		fail_msg("interpreter: %s", error);
	run->fault = t.fault;
	run->cut = t.fault ? 0 : t.cut;
}

size_t
rig_bytes(DType t, int64_t count)
{
	int64_t bytes;
	assert_true(dtype_bytes(t, count, &bytes));
	return (size_t)bytes;
}

static bool
both_nan(DType t, const uint8_t *a, const uint8_t *b)
{
	float f[2];
	double d[2];
	if (t == DT_F32) {
		memcpy(&f[0], a, 4);
		memcpy(&f[1], b, 4);
		return isnan(f[0]) && isnan(f[1]);
	}
	if (t != DT_F64)
		return false;
	memcpy(&d[0], a, 8);
	memcpy(&d[1], b, 8);
	return isnan(d[0]) && isnan(d[1]);
}

int64_t
rig_differ(DType t, const void *a, const void *b, int64_t count)
{
	const uint8_t *x = a, *y = b;
	size_t size = dtype_info[t].bits / 8u, bytes = rig_bytes(t, count);
	if (size == 0) {
		for (size_t i = 0; i < bytes; i++)
			if (x[i] != y[i])
				return (int64_t)i * 2 + ((x[i] & 15) == (y[i] & 15));
		return -1;
	}
	for (size_t i = 0; i < bytes; i += size)
		if (memcmp(x + i, y + i, size) != 0 && !both_nan(t, x + i, y + i))
			return (int64_t)(i / size);
	return -1;
}
