/* post_ptx_test.c: words that blocks post on a GPU: stored past the first cache, and looked at there, again and again; and what
 * groups hand over with them. */
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

static void
words(Rig *r, const void *arg)
{
	(void)arg;
	build(r);
	const char *text = rig_ptx(r, "sm_90a", 8), *store = strstr(text, "st.relaxed.gpu.global.b64"), *look = strstr(text, "atom.global.or.b64");
	if (!store || !look || look < store)
		fail_msg("%s", text);
	assert_int_equal(rig_count(text, "atom"), 1); /* relaxed, of the device, where it says nothing */
	assert_int_equal(rig_count(text, "ld.global"), 0);
	assert_non_null(strstr(look, "bra")); /* back to it */
}

/* Each of the words, behind the one before it. */
static void
stand_in_order(const char *text, const char *const *word, unsigned n)
{
	for (unsigned k = 0; k < n; k++) {
		const char *at = strstr(text, word[k]);
		if (!at)
			fail_msg("no %s in %s", word[k], text);
		text = at + 1;
	}
}

/* Words that are waited for one after another, where nothing else happens between, are asked for together; those that are
 * waited for elsewhere, under another condition, or at a place that one of them tells, for themselves. */
static void
build_several(Rig *r)
{
	TirKernel *k = r->k;
	ValId one = tir_int(k, DT_I64, 1), n = tir_int(k, DT_I64, 64), sum = 0;
	k->form = TIR_SPREAD;
	k->threads = TIR_WARP;
	k->group = 1;
	unsigned b = tir_add_buffer(k, name_cstr(r->names, "w"), DT_U64, true), z = tir_add_buffer(k, name_cstr(r->names, "z"), DT_U64, true);
	k->buffer.at[b].posted = true;
	ValId posted = tir_view(k, b, 1, &n, &one), to = tir_view(k, z, 1, &n, &one);
	ValId thread = tir_emit(k, OP_THREAD, tir_scalar(DT_I64), 0, NULL, 0), some = tir_binary(k, OP_LT, thread, tir_int(k, DT_I64, 9));
	for (int64_t w = 0; w < 5; w++) {
		ValId at = w == 4 ? tir_cast(k, DT_I64, sum) : tir_binary(k, OP_ADD, tir_binary(k, OP_MUL, thread, tir_int(k, DT_I64, 5)), tir_int(k, DT_I64, w));
		ValId word = tir_load(k, posted, &at, w == 3 ? 0 : some, 0, 0);
		sum = w ? tir_binary(k, OP_BOR, sum, word) : word;
	}
	tir_store(k, to, sum, &thread, 0, 0);
}

static void
several(Rig *r, const void *arg)
{
	(void)arg;
	build_several(r);
	const char *text = rig_ptx(r, "sm_90a", 8);
	stand_in_order(text, (const char *const[]){"bra", "atom", "atom", "atom", "bra", "atom", "bra", "bra", "atom", "bra", "st.global"}, 11);
	assert_int_equal(rig_count(text, "atom"), 5);
	const char *at = strstr(text, "atom");
	for (unsigned w = 1; w < 3; w++) {
		const char *next = strstr(at + 1, "atom"), *branch = strstr(at, "bra");
		assert_true(next < branch);
		at = next;
	}
}

/* The same by a group of a kernel of roles, which hands over what it has stored. */
static void
build_roles(Rig *r)
{
	TirKernel *k = r->k;
	ValId one = tir_int(k, DT_I64, 1), n = tir_int(k, DT_I64, 8192), zero = tir_int(k, DT_I64, 0);
	k->form = TIR_SPREAD;
	k->threads = 2 * TIR_GROUP;
	k->group = 1;
	unsigned b = tir_add_buffer(k, name_cstr(r->names, "w"), DT_U64, true), s = tir_add_buffer(k, name_cstr(r->names, "s"), DT_F32, true);
	unsigned z = tir_add_buffer(k, name_cstr(r->names, "z"), DT_F32, true);
	k->buffer.at[b].posted = true;
	ValId posted = tir_view(k, b, 1, &n, &one), handed = tir_view(k, s, 1, &n, &one), to = tir_view(k, z, 1, &n, &one);
	TirChannel c = {.slots = 1, .nparts = 1, .part = {{DT_BF16, 64, 64, false}}};
	tir_add_channel(k, &c);
	ValId task = tir_emit(k, OP_TASK_LO, tir_scalar(DT_I64), 0, NULL, 0), thread = tir_emit(k, OP_THREAD, tir_scalar(DT_I64), 0, NULL, 0);
	ValId first = tir_binary(k, OP_EQ, thread, zero), place = tir_binary(k, OP_ADD, tir_binary(k, OP_MUL, task, tir_int(k, DT_I64, TIR_GROUP)), thread);
	tir_open_roles(k, TIR_ROLES(1, 240, 24));
	tir_store(k, handed, tir_cast(k, DT_F32, thread), &place, 0, 0);
	tir_emit(k, OP_BARRIER, (TirType){0}, TIR_GROUP_BARRIER, NULL, 0);
	tir_store(k, posted, tir_int(k, DT_U64, 1), &task, first, 0);
	tir_load(k, posted, &zero, first, 0, 0);
	tir_emit(k, OP_BARRIER, (TirType){0}, TIR_GROUP_BARRIER, NULL, 0);
	tir_store(k, to, tir_load(k, handed, &thread, 0, 0, 0), &place, 0, 0);
	tir_other_role(k);
	tir_end_roles(k);
}

static void
roles(Rig *r, const void *arg)
{
	(void)arg;
	build_roles(r);
	const char *text = rig_ptx(r, "sm_90a", 8);
	stand_in_order(text, (const char *const[]){"st.global", "barrier.sync", "st.release.gpu.global.b64", "atom.global.or.b64", "fence.acq_rel.gpu",
	                                           "barrier.sync", "ld.global.b32"}, 7);
	assert_int_equal(rig_count(text, "atom"), 1);
	assert_int_equal(rig_count(text, "ld.global"), 1); /* behind the barrier, and not by the way of what nobody writes */
	assert_int_equal(rig_count(text, ".nc"), 0);
}

static void
groups_post(void **state)
{
	(void)state;
	rig_run("k", roles, NULL);
}

static void
posts(void **state)
{
	(void)state;
	rig_run("k", words, NULL);
}

static void
posts_several(void **state)
{
	(void)state;
	rig_run("k", several, NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(posts), cmocka_unit_test(posts_several), cmocka_unit_test(groups_post)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
