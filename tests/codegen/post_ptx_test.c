/* post_ptx_test.c: words that blocks post on a GPU: stored past the first cache, and looked at there, again and again. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "tests/codegen/rig.h"

/* Task n posts 1 to element n, and waits for element 0. */
static void
build(Rig *r)
{
	TirKernel *k = r->k;
	ValId one = tir_int(k, DT_I64, 1), n = tir_int(k, DT_I64, 64), zero = tir_int(k, DT_I64, 0);
	k->form = TIR_SPREAD;
	k->threads = TIR_WARP;
	k->group = 1;
	unsigned b = tir_add_buffer(k, name_cstr(r->names, "w"), DT_U64, true), z = tir_add_buffer(k, name_cstr(r->names, "z"), DT_U64, true);
	k->buffer.at[b].posted = true;
	ValId posted = tir_view(k, b, 1, &n, &one), to = tir_view(k, z, 1, &n, &one);
	ValId task = tir_emit(k, OP_TASK_LO, tir_scalar(DT_I64), 0, NULL, 0);
	ValId first = tir_binary(k, OP_EQ, tir_emit(k, OP_THREAD, tir_scalar(DT_I64), 0, NULL, 0), zero);
	tir_store(k, posted, tir_int(k, DT_U64, 1), &task, first, 0);
	tir_store(k, to, tir_load(k, posted, &zero, 0, 0, 0), &task, first, 0);
}

static unsigned
count(const char *text, const char *word)
{
	unsigned n = 0;
	for (; (text = strstr(text, word)); text++)
		n++;
	return n;
}

static void
words(Rig *r, const void *arg)
{
	(void)arg;
	build(r);
	Program *p = rig_program(r, 8);
	CodegenOptions o = {.cpu = "sm_90a", .opt_level = 2, .want_asm = true};
	if (codegen_cpu(&r->arena, (const Program *const *)&p, 1, &o, &r->out) != CODEGEN_OK)
		fail_msg("codegen: %s", r->out.message);
	const char *text = r->out.assembly, *store = strstr(text, "st.relaxed.gpu.global.b64"), *look = strstr(text, "atom.global.or.b64");
	if (!store || !look || look < store)
		fail_msg("%s", text);
	assert_int_equal(count(text, "atom"), 1); /* relaxed, of the device, where it says nothing */
	assert_int_equal(count(text, "ld.global"), 0);
	assert_non_null(strstr(look, "bra")); /* back to it */
}

static void
posts(void **state)
{
	(void)state;
	rig_run("k", words, NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(posts)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
