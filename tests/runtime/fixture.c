/* fixture.c: see fixture.h. */
#include "tests/runtime/fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ir/gpu_facts.h"

/* --- tile IR --- */

static const char scale_text[] =
	"kernel scale\n"
	"buffer 0 x : f32\nbuffer 1 t : f32 written\n"
	"scalar 0 n : i64\nscalar 1 m : i64\nscalar 2 sx0 : i64\nscalar 3 sx1 : i64\n"
	"scalar 4 st0 : i64\nscalar 5 st1 : i64\nscalar 6 a : f32\n"
	"{ %1:i64 = task_lo %2:i64 = task_hi %3:i64 = const 1 %4:i64 = const 0\n"
	"  %5:i64 = scalar 0 %6:i64 = scalar 1 %7:i64 = scalar 2 %8:i64 = scalar 3\n"
	"  %9:i64 = scalar 4 %10:i64 = scalar 5 %11:f32 = scalar 6\n"
	"  %12 = buffer 0 %13:f32 = view %12, %5, %6, %7, %8\n"
	"  %14 = buffer 1 %15:f32 = view %14, %5, %6, %9, %10\n"
	"  %16 = for %1, %2, %3 { %17:i64 = blockarg 0\n"
	"    %18 = for %4, %6, %3 { %19:i64 = blockarg 0\n"
	"      %20:f32 = load %13, %17, %19 %21:f32 = * %20, %11 %22 = store %15, %21, %17, %19\n"
	"      %23 = yield } %24 = yield } }\n";

static const char gather_text[] =
	"kernel gather\n"
	"buffer 0 t : f32\nbuffer 1 ids : i64\nbuffer 2 table : f32\nbuffer 3 y : f32 written\n"
	"buffer 4 faults : u32 written\n"
	"scalar 0 n : i64\nscalar 1 m : i64\nscalar 2 v : i64\nscalar 3 sy0 : i64\nscalar 4 sy1 : i64\n"
	"scalar 5 si : i64\nscalar 6 st : i64\n"
	"{ %1:i64 = task_lo %2:i64 = task_hi %3:i64 = const 1 %4:i64 = const 0\n"
	"  %5:i64 = scalar 0 %6:i64 = scalar 1 %7:i64 = scalar 2 %8:i64 = scalar 3 %9:i64 = scalar 4\n"
	"  %10:i64 = scalar 5 %11:i64 = scalar 6\n"
	"  %12 = buffer 0 %13:f32 = view %12, %5, %6, %6, %3\n"
	"  %14 = buffer 1 %15:i64 = view %14, %5, %10\n"
	"  %16 = buffer 2 %17:f32 = view %16, %7, %11\n"
	"  %18 = buffer 3 %19:f32 = view %18, %5, %6, %8, %9\n"
	"  %20 = buffer 4 %21:u32 = view %20, %5, %6, %6, %3\n"
	"  %22:u32 = const 1 %23:u32 = const 0\n"
	"  %24 = for %1, %2, %3 { %25:i64 = blockarg 0\n"
	"    %26:i64 = load %15, %25 %27:bool = <= %4, %26 %28:bool = < %26, %7 %29:bool = && %27, %28\n"
	"    %30:f32 = load %17, %26, %29 masked %31:u32 = select %29, %23, %22\n"
	"    %32 = for %4, %6, %3 { %33:i64 = blockarg 0\n"
	"      %34:f32 = load %13, %25, %33 %35:f32 = + %34, %30 %36 = store %19, %35, %25, %33\n"
	"      %37 = store %21, %31, %25, %33 %38:u32 = load %21, %25, %33 %39 = fault %38\n"
	"      %40 = yield } %41 = yield } }\n";

static const char bump_text[] =
	"kernel bump\n"
	"buffer 0 old : f32\nbuffer 1 new : f32 written\nscalar 0 n : i64\nscalar 1 s : i64\nscalar 2 k : i32\n"
	"{ %1:i64 = task_lo %2:i64 = task_hi %3:i64 = const 1 %4:i64 = scalar 0 %5:i64 = scalar 1 %6:i32 = scalar 2\n"
	"  %7:f32 = cast %6 %8 = buffer 0 %9:f32 = view %8, %4, %5 %10 = buffer 1 %11:f32 = view %10, %4, %5\n"
	"  %12 = for %1, %2, %3 { %13:i64 = blockarg 0\n"
	"    %14:f32 = load %9, %13 %15:f32 = + %14, %7 %16:f32 = const 0.25\n"
	"    %17:f32 = + %15, %16 %18 = store %11, %17, %13 %19 = yield } }\n";

static const char pick_text[] =
	"kernel pick\n"
	"buffer 0 z : i4\nbuffer 1 w : i4 written\nscalar 0 n : i64\nscalar 1 flag : bool\n"
	"{ %1:i64 = task_lo %2:i64 = task_hi %3:i64 = const 1 %4:i64 = scalar 0 %5:bool = scalar 1 %6:i4 = const 0\n"
	"  %7 = buffer 0 %8:i4 = view %7, %4, %3 %9 = buffer 1 %10:i4 = view %9, %4, %3\n"
	"  %11 = for %1, %2, %3 { %12:i64 = blockarg 0\n"
	"    %13:i4 = load %8, %12 %14:i4 = select %5, %13, %6 %15 = store %10, %14, %12 %16 = yield } }\n";

static const char turn_text[] =
	"kernel turn\n"
	"buffer 0 x : f32\nbuffer 1 code : u32\nbuffer 2 y : f32 written\nbuffer 3 row : f32 written\n"
	"buffer 4 count : i64 written\n"
	"scalar 0 n : i64\nscalar 1 m : i64\nscalar 2 sx0 : i64\nscalar 3 sx1 : i64\n"
	"scalar 4 sy0 : i64\nscalar 5 sy1 : i64\nscalar 6 sc : i64\nscalar 7 columns : i64\n"
	"{ %1:i64 = task_lo %2:i64 = task_hi %3:i64 = const 1 %4:i64 = const 0\n"
	"  %5:i64 = scalar 0 %6:i64 = scalar 1 %7:i64 = scalar 2 %8:i64 = scalar 3 %9:i64 = scalar 4\n"
	"  %10:i64 = scalar 5 %11:i64 = scalar 6 %12:i64 = scalar 7\n"
	"  %13 = buffer 0 %14:f32 = view %13, %5, %6, %7, %8\n"
	"  %15 = buffer 1 %16:u32 = view %15, %5, %11\n"
	"  %17 = buffer 2 %18:f32 = view %17, %5, %12, %9, %10\n"
	"  %19 = buffer 3 %20:f32 = view %19, %6, %3\n"
	"  %21 = buffer 4 %22:i64 = view %21, %3, %3\n"
	"  %23 = store %22, %4, %4\n"
	"  %24 = for %1, %2, %3 { %25:i64 = blockarg 0\n"
	"    %26 = for %4, %6, %3 { %27:i64 = blockarg 0\n"
	"      %28:f32 = load %14, %25, %27 %29 = store %20, %28, %27 %30 = yield }\n"
	"    %31:i64 = load %22, %4 %32:i64 = + %31, %3 %33 = store %22, %32, %4\n"
	"    %34 = for %4, %6, %3 { %35:i64 = blockarg 0\n"
	"      %36:i64 = - %6, %35 %37:i64 = - %36, %3 %38:f32 = load %20, %37 %39 = store %18, %38, %25, %35\n"
	"      %40 = yield }\n"
	"    %41:f32 = cast %32 %42 = store %18, %41, %25, %6\n"
	"    %43:u32 = load %16, %25 %44 = fault %43 %45 = yield } }\n";

static const char after_text[] =
	"kernel after\n"
	"buffer 0 x : f32\nbuffer 1 y : f32 written\nbuffer 2 sum : f32 written\n"
	"scalar 0 n : i64\nscalar 1 m : i64\nscalar 2 sx0 : i64\nscalar 3 sx1 : i64\nscalar 4 sy : i64\n"
	"{ %1:i64 = task_lo %2:i64 = task_hi %3:i64 = const 1 %4:i64 = const 0 %5:f32 = const 0\n"
	"  %6:i64 = scalar 0 %7:i64 = scalar 1 %8:i64 = scalar 2 %9:i64 = scalar 3 %10:i64 = scalar 4\n"
	"  %11 = buffer 0 %12:f32 = view %11, %6, %7, %8, %9\n"
	"  %13 = buffer 1 %14:f32 = view %13, %6, %10\n"
	"  %15 = buffer 2 %16:f32 = view %15, %3, %3\n"
	"  %17:i64 = min %2, %3\n"
	"  %18 = for %1, %17, %3 { %19:i64 = blockarg 0 %20 = store %16, %5, %4\n"
	"    %21 = for %4, %6, %3 { %22:i64 = blockarg 0\n"
	"      %23 = for %4, %7, %3 { %24:i64 = blockarg 0\n"
	"        %25:f32 = load %12, %22, %24 %26:f32 = load %16, %4 %27:f32 = + %25, %26 %28 = store %16, %27, %4\n"
	"        %29 = yield } %30 = yield } %31 = yield }\n"
	"  %32:i64 = max %1, %3\n"
	"  %33 = for %32, %2, %3 { %34:i64 = blockarg 0\n"
	"    %35:i64 = - %34, %3 %36:f32 = load %16, %4 %37 = store %14, %36, %35 %38 = yield } }\n";

/* --- graphs --- */

static Name
named(Graph *g, const char *s)
{
	return name_cstr(g->names, s);
}

static TensorId
param(Graph *g, TensorKind kind, const char *name, DType t, unsigned rank, const ExprId *extent)
{
	TensorId id = tensor_new(g, kind, named(g, name), (Span){0}, t, rank, extent);
	vec_push(g->arena, &g->param, id);
	return id;
}

static TensorId
node(Graph *g, const char *name, DType t, unsigned rank, const ExprId *extent)
{
	Node n = {.npar = (uint8_t)rank};
	n.body = dtype_is_float(t) ? expr_float(g, t, 0) : expr_int(g, t, 0);
	return node_add(g, &n, named(g, name), (Span){0}, t, extent);
}

static ExprId
dim(Graph *g, const char *name, int32_t from, int32_t axis, int64_t scale, int64_t offset)
{
	Dim d = {.name = named(g, name), .param = from, .axis = axis, .scale = scale, .offset = offset};
	vec_push(g->arena, &g->dim, d);
	return expr_dim(g, g->dim.n - 1);
}

static Kernel *
kernel(Program *p, const char *text, ExprId ntask)
{
	const char *error = NULL;
	Graph *g = p->graph;
	Kernel k = {.ntask = ntask, .serial = true};
	k.plan.tmpl = TMPL_NEST;
	k.tir = tir_read(g->arena, g->names, text, strlen(text), &error);
	if (!k.tir)
		fail_msg("%s", error);
	vec_push(g->arena, &p->kernel, k);
	return &p->kernel.at[p->kernel.n - 1];
}

static void
buffer(Program *p, Kernel *k, BindKind kind, TensorId t)
{
	vec_push(p->graph->arena, &k->buffer, ((BufferBind){.kind = kind, .tensor = t}));
}

static void
value(Program *p, Kernel *k, ExprId e)
{
	vec_push(p->graph->arena, &k->scalar, ((ScalarBind){.expr = e}));
}

static void
stride(Program *p, Kernel *k, TensorId t, uint8_t axis)
{
	vec_push(p->graph->arena, &k->scalar, ((ScalarBind){.tensor = t, .axis = axis}));
}

static Program *
new_program(Arena *a, const char *name)
{
	Program *p = ARENA_NEW(a, Program);
	p->graph = graph_new(a, names_new(a));
	p->graph->name = named(p->graph, name);
	return p;
}

static ExprId
constant(Graph *g, int64_t v)
{
	return expr_int(g, DT_I64, v);
}

static void
add_check(Graph *g, ExprId cond, const char *text, uint32_t line)
{
	vec_push(g->arena, &g->check, ((Check){.cond = cond, .at = {.line = line, .col = 3}, .text = text}));
}

static Program *
first_program(Arena *a)
{
	Program *p = new_program(a, "first");
	Graph *g = p->graph;
	ExprId n = dim(g, "N", 0, 0, 1, 0), m = dim(g, "M", 0, 1, 1, 0), v = dim(g, "V", 2, 0, 1, 0);
	ExprId two = constant(g, 2), nm[2] = {n, m};
	ExprId odd = expr_binary(g, OP_ADD, expr_binary(g, OP_MUL, two, n), constant(g, 1));
	TensorId x = param(g, TENSOR_INPUT, "x", DT_F32, 2, nm), ids = param(g, TENSOR_INPUT, "ids", DT_I64, 1, &n);
	TensorId table = param(g, TENSOR_INPUT, "table", DT_F32, 1, &v);
	TensorId alpha = param(g, TENSOR_SCALAR, "a", DT_F32, 0, NULL);
	TensorId count = param(g, TENSOR_SCALAR, "k", DT_I32, 0, NULL);
	TensorId acc = param(g, TENSOR_INOUT, "acc", DT_F32, 1, &odd);
	TensorId t = node(g, "t", DT_F32, 2, nm), y = node(g, "y", DT_F32, 2, nm), next = node(g, "acc", DT_F32, 1, &odd);
	vec_push(a, &g->result, ((Result){named(g, "acc"), {0}, next, acc}));
	vec_push(a, &g->result, ((Result){named(g, "y"), {0}, y, 0}));
	ExprId k = expr_read(g, count, NULL, 0, 0), alpha_value = expr_read(g, alpha, NULL, 0, 0);
	add_check(g, expr_binary(g, OP_EQ, expr_binary(g, OP_IMOD, n, two), constant(g, 0)), "N mod 2 == 0", 4);
	add_check(g, expr_binary(g, OP_LT, expr_int(g, DT_I32, 0), k), "k > 0", 5);
	vec_push(a, &g->access, ((Access){ACCESS_GATHER, {.line = 7, .col = 5}, "table[ids[i]]"}));
	/* N in two ways, of one value that launches compute once */
	ExprId half = expr_binary(g, OP_IDIV, expr_binary(g, OP_SUB, odd, constant(g, 1)), two);
	Kernel *scale = kernel(p, scale_text, expr_binary(g, OP_MIN, n, odd));
	buffer(p, scale, BIND_DATA, x), buffer(p, scale, BIND_DATA, t);
	value(p, scale, n), value(p, scale, m), stride(p, scale, x, 0), stride(p, scale, x, 1);
	stride(p, scale, t, 0), stride(p, scale, t, 1), value(p, scale, alpha_value);
	Kernel *gather = kernel(p, gather_text, half);
	buffer(p, gather, BIND_DATA, t), buffer(p, gather, BIND_DATA, ids), buffer(p, gather, BIND_DATA, table);
	buffer(p, gather, BIND_DATA, y), buffer(p, gather, BIND_FAULT, y);
	value(p, gather, n), value(p, gather, m), value(p, gather, v), stride(p, gather, y, 0);
	stride(p, gather, y, 1), stride(p, gather, ids, 0), stride(p, gather, table, 0);
	Kernel *bump = kernel(p, bump_text, odd);
	buffer(p, bump, BIND_DATA, acc), buffer(p, bump, BIND_DATA, next);
	value(p, bump, odd), stride(p, bump, acc, 0), value(p, bump, k);
	return p;
}

static Program *
second_program(Arena *a)
{
	Program *p = new_program(a, "second");
	Graph *g = p->graph;
	ExprId k = dim(g, "K", 0, 0, 3, -2), two = constant(g, 2);
	ExprId rows = expr_binary(g, OP_SUB, expr_binary(g, OP_MUL, constant(g, 3), k), two);
	TensorId z = param(g, TENSOR_INPUT, "z", DT_I4, 2, (ExprId[]){rows, two});
	TensorId flag = param(g, TENSOR_SCALAR, "flag", DT_BOOL, 0, NULL);
	TensorId w = node(g, "w", DT_I4, 2, (ExprId[]){k, two});
	vec_push(a, &g->result, ((Result){named(g, "w"), {0}, w, 0}));
	ExprId all = expr_binary(g, OP_MUL, k, two);
	Kernel *pick = kernel(p, pick_text, all);
	buffer(p, pick, BIND_DATA, z), buffer(p, pick, BIND_DATA, w);
	value(p, pick, all), value(p, pick, expr_read(g, flag, NULL, 0, 0));
	return p;
}

/* Parallel, in calls of two tasks or more, with scratch of two dtypes. */
static Program *
turn_program(Arena *a)
{
	Program *p = new_program(a, "turn");
	Graph *g = p->graph;
	ExprId n = dim(g, "N", 0, 0, 1, 0), m = dim(g, "M", 0, 1, 1, 0), one = constant(g, 1);
	ExprId columns = expr_binary(g, OP_ADD, m, one);
	TensorId x = param(g, TENSOR_INPUT, "x", DT_F32, 2, (ExprId[]){n, m});
	TensorId code = param(g, TENSOR_INPUT, "code", DT_U32, 1, &n);
	TensorId y = node(g, "y", DT_F32, 2, (ExprId[]){n, columns});
	vec_push(a, &g->result, ((Result){named(g, "y"), {0}, y, 0}));
	vec_push(a, &g->access, ((Access){ACCESS_GATHER, {.line = 2, .col = 1}, "one"}));
	vec_push(a, &g->access, ((Access){ACCESS_GATHER, {.line = 3, .col = 1}, "two"}));
	Kernel *turn = kernel(p, turn_text, n);
	turn->serial = false;
	turn->grain = constant(g, 2);
	buffer(p, turn, BIND_DATA, x), buffer(p, turn, BIND_DATA, code), buffer(p, turn, BIND_DATA, y);
	vec_push(a, &turn->buffer, ((BufferBind){.kind = BIND_SCRATCH, .elements = m}));
	vec_push(a, &turn->buffer, ((BufferBind){.kind = BIND_SCRATCH, .elements = one}));
	value(p, turn, n), value(p, turn, m), stride(p, turn, x, 0), stride(p, turn, x, 1);
	stride(p, turn, y, 0), stride(p, turn, y, 1), stride(p, turn, code, 0), value(p, turn, columns);
	return p;
}

/* Parallel, but for the first task. */
static Program *
after_program(Arena *a)
{
	Program *p = new_program(a, "after");
	Graph *g = p->graph;
	ExprId n = dim(g, "N", 0, 0, 1, 0), m = dim(g, "M", 0, 1, 1, 0), one = constant(g, 1);
	TensorId x = param(g, TENSOR_INPUT, "x", DT_F32, 2, (ExprId[]){n, m}), y = node(g, "y", DT_F32, 1, &n);
	vec_push(a, &g->result, ((Result){named(g, "y"), {0}, y, 0}));
	Kernel *after = kernel(p, after_text, expr_binary(g, OP_ADD, n, one));
	after->serial = false;
	after->ahead = one;
	buffer(p, after, BIND_DATA, x), buffer(p, after, BIND_DATA, y);
	vec_push(a, &after->buffer, ((BufferBind){.kind = BIND_SHARED, .elements = one}));
	value(p, after, n), value(p, after, m), stride(p, after, x, 0), stride(p, after, x, 1), stride(p, after, y, 0);
	return p;
}

void
fixture_programs(Arena *a, Program *out[FIXTURE_GRAPHS])
{
	out[0] = first_program(a);
	out[1] = turn_program(a);
	out[2] = after_program(a);
	out[3] = second_program(a);
}

/* Has as many rows of `t` stored as one of 132 processors would be of the GPU's. */
static void
measure_rows(Program *p)
{
	Graph *g = p->graph;
	TensorId t = 1;
	while (strcmp(name_text(g->names, g->tensor.at[t].name), "t") != 0)
		t++;
	ExprId rows = expr_binary(g, OP_MUL, g->tensor.at[t].extent[0], gpu_fact(g, GPU_PROCESSORS));
	g->tensor.at[t].extent[0] = expr_binary(g, OP_IDIV, rows, constant(g, 132));
}

static void *
image_of(const char *cpu, bool scratch, bool late, bool measured, Assemble *assemble, size_t *n)
{
	Arena *a = calloc(1, sizeof *a);
	Unwind *u = calloc(1, sizeof *u);
	Program *program[FIXTURE_GRAPHS];
	CodegenResult r;
	CodegenOptions o = {.cpu = cpu, .opt_level = 2, .late = late, .assemble = assemble};
	assert_true(a && u);
	arena_init(a, &host_default()->memory, u);
	if (setjmp(u->env))
		fail_msg("unwound: %s", u->text);
	fixture_programs(a, program);
	if (measured)
		measure_rows(program[0]);
	if (!scratch)
		program[1] = program[FIXTURE_GRAPHS - 1];
	if (codegen_cpu(a, (const Program *const *)program, scratch ? FIXTURE_GRAPHS : 2, &o, &r) != CODEGEN_OK)
		fail_msg("codegen: %s", r.message);
	void *copy = malloc(r.image_size);
	assert_non_null(copy);
	memcpy(copy, r.image, *n = r.image_size);
	arena_free(a);
	free(a);
	free(u);
	return copy;
}

void *
fixture_image(size_t *n)
{
	return image_of("x86-64-v3", true, false, false, NULL, n);
}

void *
fixture_image_without_scratch(const char *cpu, size_t *n)
{
	return image_of(cpu, false, false, false, NULL, n);
}

/* What begins as machine code does. */
static bool
pretend(void *user, Arena *a, const char *ptx, const char *sm, const void **bytes, size_t *n, const char **why)
{
	static const char code[64] = "\177ELF";
	(void)user, (void)a, (void)ptx, (void)sm, (void)why;
	*bytes = code;
	*n = sizeof code;
	return true;
}

void *
fixture_image_assembled(const char *sm, size_t *n)
{
	return image_of(sm, false, false, false, pretend, n);
}

void *
fixture_image_measured(const char *sm, size_t *n)
{
	return image_of(sm, false, false, true, NULL, n);
}

void *
fixture_image_late(const char *sm, size_t *n)
{
	return image_of(sm, false, true, false, NULL, n);
}

/* --- arguments --- */

static DLTensor
tensor(void *data, uint8_t code, uint8_t bits, int32_t rank, int64_t *shape)
{
	return (DLTensor){.data = data, .device = {kDLCPU, 0}, .ndim = rank, .dtype = {code, bits, 1}, .shape = shape};
}

void
first_init(First *f)
{
	memset(f, 0, sizeof *f);
	for (int i = 0; i < 12; i++)
		f->x[i] = (float)i;
	for (int i = 0; i < 5; i++)
		f->table[i] = 100.0f * (float)i;
	for (int i = 0; i < 9; i++)
		f->acc[i] = (float)-i;
	for (int i = 0; i < 4; i++)
		f->ids[i] = 4 - i;
	f->a = 0.5f;
	f->k = 10;
	f->shape_x[0] = f->shape_y[0] = f->shape_ids[0] = 4;
	f->shape_x[1] = f->shape_y[1] = 3;
	f->shape_table[0] = 5;
	f->shape_acc[0] = 9;
	f->tensor[0] = tensor(f->x, kDLFloat, 32, 2, f->shape_x);
	f->tensor[1] = tensor(f->ids, kDLInt, 64, 1, f->shape_ids);
	f->tensor[2] = tensor(f->table, kDLFloat, 32, 1, f->shape_table);
	f->tensor[3] = tensor(f->acc, kDLFloat, 32, 1, f->shape_acc);
	f->tensor[4] = tensor(f->y, kDLFloat, 32, 2, f->shape_y);
	for (int i = 0; i < 3; i++)
		f->arg[i].tensor = &f->tensor[i];
	f->arg[3].scalar = &f->a;
	f->arg[4].scalar = &f->k;
	f->arg[5].tensor = &f->tensor[3];
	f->arg[6].tensor = &f->tensor[4];
}
