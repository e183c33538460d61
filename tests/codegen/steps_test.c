/* steps_test.c: the addresses of a GPU's thread that goes from row to row (codegen/nvptx_steps.c), generated for this processor: what
 * they are, in any order of indices, and that those a step apart are multiplied for once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "codegen/lower.h"
#include "tests/codegen/module_code.h"
#include "tests/codegen/rig.h"

enum { MOST = 32, ROW = 1000, PLANE = 100000, I = 3, J = 5 };

typedef void Addresses(const char *base, int64_t i, int64_t j, int64_t row, int64_t plane, int64_t *at);

/* i + j, (i + j) + c, (i + c) + j, i + (j + c), (i + j) + row * c, (i + j) + plane * c */
typedef enum { BARE, LAST, FIRST, SECOND, BY_ROW, BY_PLANE, FORMS } Form;

typedef struct {
	Form form;
	int64_t plane, c;
} Place;

typedef struct {
	const char *name;
	Place place[MOST];
	unsigned n, products;
	bool flat; /* elements of the index are a row's, not rows */
} Case;

static ValId
index_of(TirKernel *k, const ValId *scalar, ValId sum, const Place *x)
{
	ValId c = tir_int(k, DT_I64, x->c), i = scalar[0], j = scalar[1];
	switch (x->form) {
	case LAST: return tir_binary(k, OP_ADD, sum, c);
	case FIRST: return tir_binary(k, OP_ADD, tir_binary(k, OP_ADD, i, c), j);
	case SECOND: return tir_binary(k, OP_ADD, i, tir_binary(k, OP_ADD, j, c));
	case BY_ROW: return tir_binary(k, OP_ADD, sum, tir_binary(k, OP_MUL, scalar[2], c));
	case BY_PLANE: return tir_binary(k, OP_ADD, sum, tir_binary(k, OP_MUL, scalar[3], c));
	case BARE: case FORMS: break;
	}
	return sum;
}

/* Of bf16, so that elements are not bytes: plane, row, column 7. */
static void
generate(Arena *a, LLVMContextRef ctx, LLVMModuleRef module, const Case *c)
{
	static const Target gpu = {.arch = ARCH_NVPTX};
	Names *names = names_new(a);
	TirKernel *k = tir_new(a, names, name_cstr(names, "k"));
	Lower l = {.arena = a, .ctx = ctx, .module = module, .b = LLVMCreateBuilderInContext(ctx), .k = k, .target = &gpu};
	ValId scalar[4], index[MOST][3];
	uint32_t buffer = tir_add_buffer(k, name_cstr(names, "b"), DT_BF16, false);
	for (unsigned n = 0; n < 4; n++)
		scalar[n] = tir_emit(k, OP_SCALAR, tir_scalar(DT_I64), tir_add_scalar(k, name_cstr(names, "s"), DT_I64), NULL, 0);
	ValId one = tir_int(k, DT_I64, 1), seven = tir_int(k, DT_I64, 7);
	ValId sum = tir_binary(k, OP_ADD, scalar[0], scalar[1]);
	const ValId plane[3] = {tir_int(k, DT_I64, 0), one, tir_int(k, DT_I64, 2)};
	ValId view = tir_view(k, buffer, 3, (ValId[]){one, one, one}, (ValId[]){scalar[3], c->flat ? one : scalar[2], one});
	for (unsigned n = 0; n < c->n; n++) {
		index[n][0] = plane[c->place[n].plane];
		index[n][1] = index_of(k, scalar, sum, &c->place[n]);
		index[n][2] = seven;
	}
	LLVMTypeRef p = LLVMPointerTypeInContext(ctx, 0), i64 = LLVMInt64TypeInContext(ctx), type[6] = {p, i64, i64, i64, i64, p};
	l.fn = LLVMAddFunction(module, c->name, LLVMFunctionType(LLVMVoidTypeInContext(ctx), type, 6, 0));
	LLVMPositionBuilderAtEnd(l.b, LLVMAppendBasicBlockInContext(ctx, l.fn, ""));
	l.val = ARENA_ARRAY(a, Val, k->inst.n);
	l.buffer = ARENA_ARRAY(a, Val, 1);
	l.buffer[0] = LLVMGetParam(l.fn, 0);
	for (unsigned n = 0; n < 4; n++)
		l.val[scalar[n]] = LLVMGetParam(l.fn, 1 + n);
	for (ValId v = 1; v < k->inst.n; v++)
		if (tir_inst(k, v)->op == OP_CONST || tir_inst(k, v)->op == OP_ADD || tir_inst(k, v)->op == OP_MUL)
			l.val[v] = lower_value(&l, v);
	for (unsigned n = 0; n < c->n; n++) {
		Val to = LLVMBuildGEP2(l.b, i64, LLVMGetParam(l.fn, 5), (Val[]){lower_int(&l, i64, n)}, 1, "");
		LLVMBuildStore(l.b, LLVMBuildPtrToInt(l.b, lower_address(&l, view, index[n]), i64, ""), to);
	}
	LLVMBuildRetVoid(l.b);
	LLVMDisposeBuilder(l.b);
}

/* Of a number by another that is not a constant. */
static unsigned
count_products(LLVMModuleRef module, const char *name)
{
	unsigned n = 0;
	for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(LLVMGetNamedFunction(module, name)); b; b = LLVMGetNextBasicBlock(b))
		for (Val i = LLVMGetFirstInstruction(b); i; i = LLVMGetNextInstruction(i))
			n += LLVMGetInstructionOpcode(i) == LLVMMul && !LLVMIsAConstant(LLVMGetOperand(i, 0)) && !LLVMIsAConstant(LLVMGetOperand(i, 1));
	return n;
}

static void
check(const Case *c)
{
	static const char memory[1];
	Arena a;
	Unwind u;
	Code code;
	int64_t at[MOST];
	arena_init(&a, &host_default()->memory, &u);
	assert_int_equal(setjmp(u.env), 0);
	LLVMContextRef ctx = LLVMContextCreate();
	LLVMModuleRef module = LLVMModuleCreateWithNameInContext("k", ctx);
	generate(&a, ctx, module, c);
	unsigned products = count_products(module, c->name);
	assert_true(module_load(module, "x86-64", &code));
	LLVMDisposeModule(module);
	LLVMContextDispose(ctx);
	ImageCpuKernel *symbol = code_symbol(&code, c->name);
	assert_non_null(symbol);
	Addresses *f;
	memcpy(&f, &symbol, sizeof f);
	f(memory, I, J, ROW, PLANE, at);
	for (unsigned n = 0; n < c->n; n++) {
		const Place *x = &c->place[n];
		int64_t times = x->form == BY_ROW ? ROW : x->form == BY_PLANE ? PLANE : 1, index = I + J + (x->form == BARE ? 0 : x->c * times);
		int64_t want = 2 * (x->plane * PLANE + index * (c->flat ? 1 : ROW) + 7);
		if (at[n] - (int64_t)(uintptr_t)memory != want)
			fail_msg("%s: address %u is %lld elements from the start, not %lld", c->name, n, (long long)(at[n] - (int64_t)(uintptr_t)memory) / 2,
			         (long long)want / 2);
	}
	if (products != c->products)
		fail_msg("%s: %u products", c->name, products);
	arena_free(&a);
}

static void
all(void **state)
{
	/* products: of the row's index for each address that is no step away, those of planes being constants' */
	static const Case row[] = {
		{"last", {{BARE, 0, 0}, {LAST, 0, 4}, {LAST, 0, 8}, {LAST, 0, 12}}, 4, 1, false},
		{"first", {{BARE, 0, 0}, {FIRST, 0, 4}, {FIRST, 0, 8}, {FIRST, 0, 12}}, 4, 1, false},
		{"second", {{BARE, 0, 0}, {SECOND, 0, 32}, {SECOND, 0, 64}}, 3, 1, false},
		{"back", {{FIRST, 0, 8}, {FIRST, 0, 4}, {FIRST, 0, 8}}, 3, 2, false},
		{"further", {{FIRST, 0, 4}, {FIRST, 0, 8}, {FIRST, 0, 16}, {FIRST, 0, 24}}, 4, 2, false},
		{"planes", {{FIRST, 0, 4}, {FIRST, 1, 8}, {FIRST, 1, 12}, {FIRST, 2, 12}}, 4, 3, false},
		{"same", {{FIRST, 0, 4}, {FIRST, 0, 4}, {FIRST, 0, 8}}, 3, 2, false},
		{"flat", {{BARE, 0, 0}, {BY_ROW, 0, 2}, {BY_ROW, 0, 4}, {BY_ROW, 0, 6}}, 4, 0, true},
		{"times", {{BY_ROW, 0, 2}, {BY_ROW, 0, 4}, {BY_ROW, 0, 6}}, 3, 3, false},
		{"others", {{BY_ROW, 0, 2}, {BY_PLANE, 0, 4}, {BY_ROW, 0, 6}, {LAST, 0, 8}, {BY_PLANE, 0, 9}, {BY_PLANE, 0, 10}}, 6, 0, true},
	};
	(void)state;
	for (unsigned n = 0; n < sizeof row / sizeof *row; n++)
		check(&row[n]);
}

int
main(void)
{
	if (!rig_can_run("x86-64"))
		return 77;
	const struct CMUnitTest tests[] = {cmocka_unit_test(all)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
