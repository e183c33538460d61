/* take_ptx_test.c: what threads take of a channel (tests/ir/tir/tir_takes.h), in PTX: one load of as many words as a vector has, of
 * where TMA's swizzle has put them, whose elements of 4 bits are in their order; a slot that they have read is released by each of their
 * warps; boxes of elements of 8 and 4 bits begin at whole elements of their maps, before the first one too. And the assembler takes it,
 * with registers for all.
 *
 *   take_ptx_test
 *   TEXO_PTXAS=ptxas take_ptx_test       also assembled */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/codegen/rig.h"
#include "tir_takes.h"

enum { ROW = 128, UNIT = 16 }; /* bytes of a part's row; what the swizzle moves at once */

static const DType types[] = {DT_BF16, DT_F16, DT_U16, DT_F8E4M3, DT_F8E5M2, DT_I8, DT_U8, DT_F4E2M1, DT_I4, DT_U4};
enum { TYPES = sizeof types / sizeof *types };

static const char *
text_of(Rig *r, const Takes *x)
{
	takes_build(r->k, r->names, x);
	return rig_ptx(r, "sm_90a", 8);
}

/* What TMA makes of an address in a block's shared memory: bits 4 to 6 change with bits 7 to 9. */
static unsigned
swizzled(unsigned address)
{
	return address ^ (address / ROW % (ROW / UNIT) * UNIT);
}

/* The line that gives this register its value, from its operands on; NULL: none of these operations does. */
static const char *
operands_of(Rig *r, const char *op, const char *name)
{
	const char *line = arena_text(&r->arena, "\t%s \t%s, ", op, name), *at = strstr(r->out.assembly, line);
	return at ? at + strlen(line) : NULL;
}

/* The name that begins here. */
static const char *
register_at(Rig *r, const char *at)
{
	return arena_text(&r->arena, "%.*s", (int)strspn(at, "%rd0123456789"), at);
}

/* Where the text's only load of shared memory is, from where the ring begins: some of it in the load, some added before. */
static unsigned
loaded_from(Rig *r, const char *load)
{
	const char *at = strstr(r->out.assembly, load), *place = at ? strchr(at, '[') : NULL, *name, *of;
	assert_int_equal(rig_count(r->out.assembly, "ld.shared"), 1);
	assert_non_null(place);
	name = register_at(r, place + 1);
	at = place + 1 + strlen(name);
	unsigned far = *at == '+' ? (unsigned)strtoul(at + 1, NULL, 10) : 0;
	of = operands_of(r, "cvt.u64.u32", name);
	name = of ? register_at(r, of) : name;
	of = operands_of(r, "add.s32", name);
	of = of ? of : operands_of(r, "or.b32", name);
	return far + (of ? (unsigned)strtoul(strchr(of, ',') + 2, NULL, 10) : 0);
}

static const char *
load_of(unsigned bytes)
{
	return bytes == 4 ? "ld.shared.b32" : bytes == 8 ? "ld.shared.v2.b32" : "ld.shared.v4.b32";
}

static void
is_where_the_swizzle_has_it(Rig *r, const void *arg)
{
	const Takes *x = arg;
	const TakesPlace *p = x->place;
	unsigned want = swizzled((p->part * TAKES_ROWS + p->row) * ROW + p->term * dtype_info[x->t].bits / 8);
	text_of(r, x);
	unsigned got = loaded_from(r, load_of(x->bytes));
	if (got != want)
		fail_msg("%s by %u bytes: row %u, term %u of part %u is at %u, not %u", dtype_info[x->t].text, x->bytes, p->row, p->term, p->part, got, want);
}

static void
all_of_a_row(Takes x, unsigned part, unsigned row)
{
	for (unsigned byte = 0; byte < ROW; byte += x.bytes) {
		TakesPlace p = {part, row, byte * 8 / dtype_info[x.t].bits};
		x.place = &p;
		rig_run("k", is_where_the_swizzle_has_it, &x);
	}
}

/* All places of rows that differ in how they are swizzled; of what is smaller than the swizzle's units, some rows. */
static void
places(void **state)
{
	(void)state;
	for (unsigned row = 0; row < ROW / UNIT; row++)
		all_of_a_row((Takes){DT_BF16, 16, 1, 1, NULL, TAKES_RIGHT, 0}, 0, row);
	all_of_a_row((Takes){DT_I4, 16, 1, 1, NULL, TAKES_RIGHT, 0}, 1, 29);
	all_of_a_row((Takes){DT_U8, 8, 1, 1, NULL, TAKES_RIGHT, 0}, 0, 14);
	all_of_a_row((Takes){DT_U4, 4, 1, 1, NULL, TAKES_RIGHT, 0}, 0, 3);
}

static void
loads_words(Rig *r, const void *arg)
{
	const Takes *x = arg;
	unsigned vectors = TAKES_PARTS * TAKES_ROWS * ROW / x->bytes / (x->groups * TIR_GROUP);
	const char *text = text_of(r, x);
	assert_int_equal(rig_count(text, load_of(x->bytes)), vectors);
	assert_int_equal(rig_count(text, "ld.shared"), vectors);
}

static void
vectors(void **state)
{
	(void)state;
	for (unsigned n = 0; n < TYPES; n++)
		for (unsigned bytes = 4; bytes <= 16; bytes *= 2)
			rig_run("k", loads_words, &(Takes){types[n], bytes, 1 + n % 2, 2, NULL, TAKES_RIGHT, 0});
}

/* The register that has this byte of a word, shifted down or picked; the word's own has the first one. "": there is none. */
static const char *
register_of_byte(Rig *r, const char *word, unsigned byte)
{
	const char *shifted = arena_text(&r->arena, ", %s, %u;", word, 8 * byte), *picked = arena_text(&r->arena, ", %s, 0, 0x777%uU;", word, byte);
	const char *at = strstr(r->out.assembly, shifted);
	at = at ? at : strstr(r->out.assembly, picked);
	if (!byte || !at)
		return byte ? "" : word;
	while (at[-1] != '%')
		at--;
	return register_at(r, at - 1);
}

/* Elements of 4 bits that are stored as they were taken are the bytes of the words, in their order: nothing is left of taking them
 * apart and joining them. */
static void
keeps_their_order(Rig *r, const void *arg)
{
	enum { WORD = 4 };
	const Takes *x = arg;
	const char *text = text_of(r, x), *at = strstr(text, load_of(x->bytes)), *stored = strstr(text, "\tst.global.b8");
	assert_true(at && stored);
	at = strchr(at, '%');
	for (unsigned byte = 0; byte < x->bytes; byte++) {
		if (byte && byte % WORD == 0)
			at = strchr(at + 1, '%');
		const char *name = register_of_byte(r, register_at(r, at), byte % WORD);
		const char *line = byte ? arena_text(&r->arena, "+%u], %s;\n", byte, name) : arena_text(&r->arena, "], %s;\n", name), *end = strstr(stored, line);
		if (!end || end > strstr(stored, "bar.warp.sync"))
			fail_msg("%s by %u bytes: byte %u is not stored", dtype_info[x->t].text, x->bytes, byte);
	}
	assert_int_equal(rig_count(text, "st.global.b8"), x->bytes);
}

static void
nibbles(void **state)
{
	static const DType of[] = {DT_I4, DT_U4, DT_F4E2M1};
	static const TakesPlace place = {0, 0, 0};
	(void)state;
	for (unsigned n = 0; n < sizeof of / sizeof *of; n++)
		for (unsigned bytes = 4; bytes <= 16; bytes *= 2)
			rig_run("k", keeps_their_order, &(Takes){of[n], bytes, 1, 1, &place, TAKES_RIGHT, 0});
}

/* The number that a register of the text always has. */
static unsigned
constant(const char *text, const char *name, size_t length)
{
	char word[64];
	snprintf(word, sizeof word, "mov.b32 \t%.*s, ", (int)length, name);
	const char *at = strstr(text, word);
	if (!at)
		fail_msg("no %s", word);
	return (unsigned)strtoul(at + strlen(word), NULL, 10);
}

/* One arrival fills a slot; each warp of each group empties it, which has met before. */
static void
warps_release(Rig *r, const void *arg)
{
	const Takes *x = arg;
	const char *text = text_of(r, x), *at = text, *name;
	unsigned full = 0, empty = 0;
	while ((at = strstr(at, "mbarrier.init.shared::cta.b64"))) {
		name = strchr(at, ',') + 2;
		unsigned n = constant(text, name, strcspn(name, ";"));
		full += n == 1;
		empty += n == x->groups * TIR_GROUP / TIR_WARP;
		at++;
	}
	assert_int_equal(full, x->slots);
	assert_int_equal(empty, x->slots);
	const char *last = NULL;
	for (at = text; (at = strstr(at, "ld.shared")); at++)
		last = at;
	const char *meet = last ? strstr(last, "bar.warp.sync") : NULL;
	assert_non_null(meet);
	assert_non_null(strstr(meet, "mbarrier.arrive.shared::cta.b64"));
}

static void
releases(void **state)
{
	(void)state;
	for (unsigned groups = 1; groups <= 2; groups++)
		rig_run("k", warps_release, &(Takes){DT_I4, 16, groups, 3, NULL, TAKES_RIGHT, 0});
}

typedef struct {
	Takes of;
	const char *shift;
} Box;

/* The last shift before a copy is of the box's index. */
static void
is_divided(Rig *r, const void *arg)
{
	const Box *x = arg;
	const char *text = text_of(r, &x->of), *copy = strstr(text, "cp.async.bulk.tensor.2d"), *at = text, *last = NULL;
	assert_non_null(copy);
	for (; (at = strstr(at, "shr.s32")) && at < copy; at++)
		last = at;
	const char *by = last ? strchr(strchr(last, ',') + 1, ',') : NULL;
	if (x->shift ? !by || strncmp(by, x->shift, strlen(x->shift)) != 0 : last != NULL)
		fail_msg("%s: another index", dtype_info[x->of.t].text);
}

static void
boxes(void **state)
{
	static const Box of[] = {{{DT_BF16, 16, 1, 1, NULL, TAKES_RIGHT, 64}, NULL},
	                         {{DT_I8, 16, 1, 1, NULL, TAKES_RIGHT, 64}, ", 1;"},
	                         {{DT_U4, 16, 1, 1, NULL, TAKES_RIGHT, 64}, ", 2;"}};
	(void)state;
	for (unsigned n = 0; n < sizeof of / sizeof *of; n++)
		rig_run("k", is_divided, &of[n]);
}

static void
is_assembled(Rig *r, const void *arg)
{
	takes_build(r->k, r->names, arg);
	rig_assemble(r, "sm_90a", getenv("TEXO_PTXAS"), 8);
}

static void
assembler(void **state)
{
	(void)state;
	if (!getenv("TEXO_PTXAS") || !*getenv("TEXO_PTXAS"))
		skip();
	for (unsigned n = 0; n < TYPES; n++)
		rig_run("k", is_assembled, &(Takes){types[n], 4u << n % 3, 1 + n % 2, 2, NULL, TAKES_RIGHT, 0});
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(places), cmocka_unit_test(vectors), cmocka_unit_test(nibbles), cmocka_unit_test(releases), cmocka_unit_test(boxes),
	                                   cmocka_unit_test(assembler)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
