/* tir_roles_test.c: roles and channels (ir/channel.h): a product by one group and one that loads, and by two that take
 * turns, in text, verified and run; and what is wrong with either when one thing is changed. */
#include <math.h>
#include <stdlib.h>

#include "ir/fragment.h"
#include "tir_fixture.h"

/* out[m, n] = sum[k] a[m, k] b[n, k], in tiles of 64 x 16 and steps of 64 terms; tasks are tiles. */
static const char header[] =
	"kernel k threads 256 by 1\n"
	"buffer 0 a : bf16\nbuffer 1 b : bf16\nbuffer 2 out : f32 written\n"
	"scalar 0 m : i64\nscalar 1 n : i64\nscalar 2 k : i64\n"
	"channel 0 slots 2 part bf16 64 by 64 part bf16 16 by 64\n"
	"{\n"
	"  %1:i64 = scalar 0\n  %2:i64 = scalar 1\n  %3:i64 = scalar 2\n  %4:i64 = const 1\n"
	"  %5 = buffer 0\n  %6:bf16 = view %5, %1, %3, %3, %4\n"
	"  %7 = buffer 1\n  %8:bf16 = view %7, %2, %3, %3, %4\n"
	"  %9 = buffer 2\n  %10:f32 = view %9, %1, %2, %2, %4\n"
	"  %11:i64 = const 0\n  %12:i64 = const 64\n  %13:i64 = const 63\n  %14:i64 = + %3, %13\n"
	"  %15:i64 = div %14, %12\n  %16:i64 = const 16\n  %17:i64 = const 15\n  %18:i64 = + %2, %17\n"
	"  %19:i64 = div %18, %16\n  %20:i64 = task_lo\n  %21:i64 = task_hi\n  %22:i64 = task_step\n"
	"  %23:i64 = thread\n  %24:i64 = const 4\n  %25:i64 = const 2\n  %26:i64 = const 32\n  %27:i64 = const 8\n";
static const char multiplies[] =
	"  %30 = roles 1 by 240 rest 24 {\n"
	"    %31 = for %20, %21, %22, %11 {\n"
	"      %32:i64 = blockarg 0\n      %33:i64 = blockarg 1\n"
	"      %34 = for %11, %15, %4, %33 {\n"
	"        %35:i64 = blockarg 0\n        %36:i64 = blockarg 1\n"
	"        %37 = wait 0 %36\n        %38:bool = < %11, %35\n"
	"        %39 = mma 0 part 0 by 1 %36, %38\n        %40 = settle 1\n        %41:i64 = - %36, %4\n"
	"        %42 = release 0 %41, %38\n        %43:i64 = + %36, %4\n"
	"        %44 = yield %43\n"
	"      }\n"
	"      %45:i64 = result 0 %34\n      %46 = settle 0\n      %47:i64 = - %45, %4\n      %48:bool = const true\n"
	"      %49 = release 0 %47, %48\n"
	"      %50:i64 = div %32, %19\n      %51:i64 = mod %32, %19\n      %52:i64 = * %50, %12\n      %53:i64 = * %51, %16\n"
	"      %54:i64 = div %23, %26\n      %55:i64 = * %54, %16\n      %56:i64 = mod %23, %26\n      %57:i64 = div %56, %24\n"
	"      %58:i64 = + %55, %57\n      %59:i64 = + %52, %58\n      %60:i64 = mod %56, %24\n      %61:i64 = * %60, %25\n"
	"      %62:i64 = + %53, %61\n      %63:i64 = + %59, %27\n      %64:i64 = + %62, %4\n      %65:bool = < %59, %1\n"
	"      %66:bool = < %62, %2\n      %67:bool = && %65, %66\n      %68:f32 = piece 0\n      %69 = store %10, %68, %59, %62, %67 masked\n"
	"      %70:bool = < %64, %2\n      %71:bool = && %65, %70\n      %72:f32 = piece 1\n      %73 = store %10, %72, %59, %64, %71 masked\n"
	"      %74:bool = < %63, %1\n      %75:bool = && %74, %66\n      %76:f32 = piece 2\n      %77 = store %10, %76, %63, %62, %75 masked\n"
	"      %78:bool = && %74, %70\n      %79:f32 = piece 3\n      %80 = store %10, %79, %63, %64, %78 masked\n"
	"      %81:i64 = + %62, %27\n      %82:i64 = + %64, %27\n      %83:bool = < %81, %2\n      %84:bool = < %82, %2\n"
	"      %85:bool = && %65, %83\n      %86:bool = && %65, %84\n      %87:bool = && %74, %83\n      %88:bool = && %74, %84\n"
	"      %89:f32 = piece 4\n      %90 = store %10, %89, %59, %81, %85 masked\n"
	"      %91:f32 = piece 5\n      %92 = store %10, %91, %59, %82, %86 masked\n"
	"      %93:f32 = piece 6\n      %94 = store %10, %93, %63, %81, %87 masked\n"
	"      %95:f32 = piece 7\n      %96 = store %10, %95, %63, %82, %88 masked\n"
	"      %97 = yield %45\n"
	"    }\n"
	"    %98 = yield\n";
static const char loads[] =
	"  } else {\n"
	"    %101 = for %20, %21, %22, %11 {\n"
	"      %102:i64 = blockarg 0\n      %103:i64 = blockarg 1\n"
	"      %104:i64 = div %102, %19\n      %105:i64 = mod %102, %19\n      %106:i64 = * %104, %12\n      %107:i64 = * %105, %16\n"
	"      %108 = for %11, %15, %4, %103 {\n"
	"        %109:i64 = blockarg 0\n        %110:i64 = blockarg 1\n        %111:i64 = * %109, %12\n"
	"        %112 = acquire 0 %110\n"
	"        %113 = copy 0 part 0 %6, %110, %106, %111\n"
	"        %114 = copy 0 part 1 %8, %110, %107, %111\n"
	"        %115:i64 = + %110, %4\n"
	"        %116 = yield %115\n"
	"      }\n"
	"      %117:i64 = result 0 %108\n"
	"      %118 = yield %117\n"
	"    }\n"
	"    %119 = yield\n"
	"  }\n"
	"}\n";

static const char *
replaced(Fixture *f, const char *all, const char *what, const char *by)
{
	const char *at;
	Text t;
	text_init(&t, &f->arena);
	while (*what && (at = strstr(all, what)) != NULL) {
		text_add(&t, all, (size_t)(at - all));
		text_add(&t, by, strlen(by));
		all = at + strlen(what);
	}
	text_add(&t, all, strlen(all));
	return text_get(&t);
}

/* The kernel with `what` replaced by `by` wherever it stands. */
static const char *
changed(Fixture *f, const char *what, const char *by)
{
	return replaced(f, arena_text(&f->arena, "%s%s%s", header, multiplies, loads), what, by);
}

/* Ids from 30 on times `by`, for others between them. */
static const char *
spaced_by(Fixture *f, const char *text, unsigned by)
{
	Text t;
	text_init(&t, &f->arena);
	for (char *end; *text; text = end) {
		end = (char *)(uintptr_t)text + 1;
		unsigned long id = *text == '%' ? strtoul(text + 1, &end, 10) : 0;
		if (id >= 30)
			text_printf(&t, "%%%lu", by * id);
		else
			text_add(&t, text, (size_t)(end - text));
	}
	return text_get(&t);
}

static const char *
spaced(Fixture *f, const char *text)
{
	return spaced_by(f, text, 2);
}

/* The same with a's element of the row and column added, which threads read of a channel of their own, with `what` replaced by `by`. */
static const char *
with_held(Fixture *f, const char *what, const char *by)
{
	static const unsigned piece[] = {68, 72, 76, 79, 89, 91, 93, 95};
	static const char *const change[][2] = {
		{"part bf16 16 by 64\n", "part bf16 16 by 64\nchannel 1 slots 1 part bf16 64 by 64\n"},
		{"%1472 = settle 0\n", "%1472 = settle 0\n      %1473:i64 = - %1024, %20\n      %1474:i64 = div %1473, %22\n      %1475 = wait 1 %1474\n"
		                       "      %1476:bf16x8 = held 1 %1474\n      LANES      %1500:bool = const true\n"
		                       "      %1501 = release 1 %1474, %1500\n"},
		{"      %3456 = for", "      %3425:i64 = - %3264, %20\n      %3426:i64 = div %3425, %22\n      %3427 = acquire 1 %3426\n"
		                     "      %3428 = copy 1 part 0 %6, %3426, %3392, %3424\n      %3456 = for"},
	};
	const char *all = arena_text(&f->arena, "%s%s%s", header, spaced_by(f, multiplies, 32), spaced_by(f, loads, 32));
	Text lanes;
	text_init(&lanes, &f->arena);
	for (unsigned n = 0; n < sizeof change / sizeof *change; n++)
		all = replaced(f, all, change[n][0], change[n][1]);
	for (unsigned n = 0; n < TIR_HELD_LANES; n++) {
		const char *was = arena_text(&f->arena, "%%%u:f32 = piece %u\n", 32 * piece[n], n);
		text_printf(&lanes, "%%%u:bf16 = lane %u %%1476\n      %%%u:f32 = cast %%%u\n", 1480 + 2 * n, n, 1481 + 2 * n, 1480 + 2 * n);
		all = replaced(f, all, was, arena_text(&f->arena, "%%%u:f32 = piece %u\n      %%%u:f32 = + %%%u, %%%u\n", 32 * piece[n] - 1, n,
		                                       32 * piece[n], 32 * piece[n] - 1, 1481 + 2 * n));
	}
	return replaced(f, replaced(f, all, "LANES", text_get(&lanes)), what, by);
}

/* The same by two groups that take turns, with `what` replaced by `by`. */
static const char *
turning(Fixture *f, const char *what, const char *by)
{
	static const char own[] = "  %30:i64 = const 128\n  %31:i64 = div %23, %30\n  %32:i64 = mod %23, %30\n  %33:i64 = * %31, %22\n"
	                          "  %34:i64 = + %20, %33\n  %35:i64 = * %22, %25\n  %36:i64 = * %31, %15\n";
	static const char *const change[][2] = {
		{"threads 256", "threads 384"},
		{"roles 1 by 240 rest 24", "roles 2 by 240 rest 24 turns"},
		{"%62 = for %20, %21, %22, %11", "%62 = for %34, %21, %35, %36"},
		{"      %68 = for", "      %67 = turn 0\n      %68 = for"},
		{"%92 = settle 0", "%91 = turn 1\n      %92 = settle 0"},
		{"%194 = yield %90", "%193:i64 = + %90, %15\n      %194 = yield %193"},
		{"%23, %26", "%32, %26"},
	};
	const char *all = arena_text(&f->arena, "%s%s%s%s", header, own, spaced(f, multiplies), spaced(f, loads));
	for (unsigned n = 0; n < sizeof change / sizeof *change; n++)
		all = replaced(f, all, change[n][0], change[n][1]);
	return replaced(f, all, what, by);
}

/* The same, or with `turns` that by two groups, by two blocks with a tile of rows each that bring b's columns for both, with
 * `what` replaced by `by`. */
static const char *
jointly(Fixture *f, bool turns, const char *what, const char *by)
{
	static const char *const change[][2] = {
		{" by 1\n", " by 1 cluster 2\n"},
		{"part bf16 16 by 64\n", "part bf16 16 by 64 joint\n"},
		{"%27:i64 = const 8\n", "%27:i64 = const 8\n  %28:i64 = rank\n"},
		{"%100:i64 = div %64, %19", "%99:i64 = div %64, %19\n      %100:i64 = + %99, %99\n      %101:i64 = + %100, %28"},
		{"%104:i64 = * %100, %12", "%104:i64 = * %101, %12"},
		{"%208:i64 = div %204, %19", "%207:i64 = div %204, %19\n      %208:i64 = + %207, %207\n      %209:i64 = + %208, %28"},
		{"%212:i64 = * %208, %12", "%212:i64 = * %209, %12"},
	};
	const char *all = turns ? turning(f, "", "") : arena_text(&f->arena, "%s%s%s", header, spaced(f, multiplies), spaced(f, loads));
	for (unsigned n = 0; n < sizeof change / sizeof *change; n++)
		all = replaced(f, all, change[n][0], change[n][1]);
	return replaced(f, all, what, by);
}

/* The same where rows come by pairs, as boxes with counts and steps, with `what` replaced by `by`. */
static const char *
by_pairs(Fixture *f, const char *what, const char *by)
{
	static const char *const change[][2] = {
		{"%27:i64 = const 8\n", "%27:i64 = const 8\n  %28:i64 = const 32\n  %29:bf16 = view %5, %1, %25, %3, %3, %3, %4\n"},
		{"%6, %110, %106, %111", "%29, %110, %106, %11, %111, %28, %25, %12, %25, %4, %4"},
	};
	const char *all = changed(f, "", "");
	for (unsigned n = 0; n < sizeof change / sizeof *change; n++)
		all = replaced(f, all, change[n][0], change[n][1]);
	return replaced(f, all, what, by);
}

/* The same of f32, of which the first thirds are multiplied. */
static const char *
of_thirds(Fixture *f, const char *what, const char *by)
{
	static const char *const change[][2] = {
		{"buffer 0 a : bf16\nbuffer 1 b : bf16", "buffer 0 a : f32\nbuffer 1 b : f32"},
		{"%6:bf16 = view", "%6:f32 = view"},
		{"%8:bf16 = view", "%8:f32 = view"},
		{"%106, %111", "%106, %111, %11"},
		{"%107, %111", "%107, %111, %11"},
	};
	const char *all = changed(f, "", "");
	for (unsigned n = 0; n < sizeof change / sizeof *change; n++)
		all = replaced(f, all, change[n][0], change[n][1]);
	return replaced(f, all, what, by);
}

/* The same with b's columns in two parts or, with `rows`, with a's rows twice, of which the second ones are stored. */
static const char *
in_parts(Fixture *f, bool rows, const char *what, const char *by)
{
	int64_t imm = rows ? TIR_PRODUCT(0, 0, 0, 2, 0) | TIR_PRODUCT_ROWS(2) : TIR_PRODUCT(0, 0, 0, 1, 0) | TIR_PRODUCT_COLUMNS(2);
	const char *const change[][2] = {
		{rows ? "part bf16 64 by 64" : "part bf16 16 by 64", rows ? "part bf16 64 by 64 part bf16 64 by 64" : "part bf16 8 by 64 part bf16 8 by 64"},
		{"%78 = mma 0 part 0 by 1 %72, %76", arena_text(&f->arena, "%%78 = product %lld %%72, %%72, %%76", (long long)imm)},
		{"%222:i64 = * %218, %12\n", "%222:i64 = * %218, %12\n        %223:i64 = + %214, %27\n"},
		{"%228 = copy 0 part 1", rows ? "%227 = copy 0 part 1 %6, %220, %212, %222\n        %228 = copy 0 part 2"
		                              : "%227 = copy 0 part 2 %8, %220, %223, %222\n        %228 = copy 0 part 1"},
	};
	const char *all = arena_text(&f->arena, "%s%s%s", header, spaced(f, multiplies), spaced(f, loads));
	for (unsigned n = 0; n < sizeof change / sizeof *change; n++)
		all = replaced(f, all, change[n][0], change[n][1]);
	for (int n = 7; rows && n >= 0; n--)
		all = replaced(f, all, arena_text(&f->arena, "piece %d\n", n), arena_text(&f->arena, "piece %d\n", n + 8));
	return replaced(f, all, what, by);
}

static void
the_text_is_read_back(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	const char *in_order = replaced(f, turning(f, "rest 24 turns", "rest 24 order"), "64 by 64 part", "128 by 64 part");
	const char *text[] = {changed(f, "", ""), turning(f, "", ""), in_order, changed(f, "rest 24 {", "rest 24 anew {"), changed(f, "rest 24 {", "rest 24 anew warp {"), turning(f, "24 turns", "24 turns anew"), by_pairs(f, "", ""), in_parts(f, false, "", ""),
	                      in_parts(f, true, "", ""), with_held(f, "", ""), of_thirds(f, "", ""), jointly(f, false, "", ""), jointly(f, true, "", "")};
	for (unsigned n = 0; n < sizeof text / sizeof *text; n++) {
		TirKernel *k = fixture_read(f, text[n]);
		fixture_verify(f, k);
		fixture_round_trip(f, tir_rewrite(k, &f->arena, fixture_copy, NULL)); /* without gaps between ids */
	}
}

static const struct {
	const char *what, *by, *error;
} refused[] = {
	{"slots 2", "slots 0", "channel 0 has 0 slots"},
	{"64 by 64 part", "64 by 32 part", "part 0 of channel 0 is none that copies bring"},
	{"bf16 16 by 64", "bf16 16 by 64 turned", "part 1 of channel 0 is none that copies bring"},
	{"bf16 16 by 64", "bf16 16 by 64 joint", "part 1 of channel 0 is none that copies bring"}, /* no cluster has it */
	{"buffer 1 b : bf16", "buffer 1 b : f16", "%8 view: has not the buffer's type"},
	{"bf16 16 by 64", "f16 16 by 64", "%39 mma: of two types"},
	{"threads 256", "threads 384", "%30 roles: 1 groups and one that loads are not 384 threads"},
	{"by 240 rest 24", "by 240 rest 28", "%30 roles: 240 and 28 registers can't be asked for"},
	{"by 240 rest 24", "by 248 rest 24", "%30 roles: 248 and 24 registers can't be asked for"},
	{"rest 24 {", "rest 24 turns {", "%30 roles: 1 groups take no turns"},
	{"rest 24 {", "rest 24 order {", "%30 roles: 1 groups have no order"},
	{"%46 = settle 0", "%46 = turn 0", "%46 turn: there is no such turn"},
	{"by 240 rest 24", "by 24 rest 24", "%39 mma: accumulators of 8 registers"},
	{"piece 7", "piece 8", "%95 piece: a thread has 8"},
	{"part 0 by 1 %36", "part 0 by 2 %36", "%39 mma: there are 2 parts"},
	{"part 0 by 1 %36", "part 1 by 0 %36", "%39 mma: 16 rows are not shared by 1 groups"},
	{"%46 = settle 0", "%46 = barrier", "%46 barrier: is met by other threads than those of its role"},
	{"%112 = acquire", "%112 = wait", "%112 wait: stands in another role"},
	{"%105:i64 = mod %102, %19", "%105:i64 = shuffle 1 %102", "%105 shuffle: is met by other threads than those of its role"},
	{"%37 = wait", "%37 = acquire", "%37 acquire: stands in another role"},
	{"buffer 0 a : bf16", "buffer 0 a : bf16 written", "%113 copy: of a buffer that is written"},
	{"view %5, %1, %3, %3, %4", "view %5, %1, %3, %4, %3", "%113 copy: the view's last stride is not 1"},
	{"view %5, %1, %3, %3, %4", "view %5, %4, %1, %3, %3, %3, %4", "%113 copy: rank 3 takes 5 operands, 6 or 11, not 4"},
};

static void
refusals(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	for (unsigned i = 0; i < sizeof refused / sizeof refused[0]; i++) {
		const char *error = "accepted", *want = arena_text(&f->arena, "kernel k: %s", refused[i].error);
		TirKernel *k = fixture_read(f, changed(f, refused[i].what, refused[i].by));
		if (tir_verify(k, &f->arena, &error) || strcmp(error, want) != 0)
			fail_msg("%s -> %s\n gives: %s\n wants: %s", refused[i].what, refused[i].by, error, want);
	}
}

static const struct {
	const char *what, *by, *error;
} refused_boxes[] = {
	{"%12, %25, %4, %4", "%28, %25, %4, %4", "%113 copy: the last axis of the box is not the terms"},
	{"%12, %25, %4, %4", "%12, %25, %4, %25", "%113 copy: the last axis of the box is not the terms"},
	{"%28, %25, %12, %25", "%11, %25, %12, %25", "%113 copy: axis 0 of the box has no such count"},
	{"%12, %25, %4, %4", "%12, %16, %4, %4", "%113 copy: axis 0 of the box has no such step"},
	{"%12, %25, %4, %4", "%12, %20, %4, %4", "%113 copy: axis 0 of the box is not known at launch"},
	{"part bf16 64 by 64 part", "part bf16 64 by 64 turned part", "%113 copy: a box with counts, of a part that is turned"},
};

static void
boxes_are_refused(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	for (unsigned i = 0; i < sizeof refused_boxes / sizeof refused_boxes[0]; i++) {
		const char *error = "accepted", *want = arena_text(&f->arena, "kernel k: %s", refused_boxes[i].error);
		TirKernel *k = fixture_read(f, by_pairs(f, refused_boxes[i].what, refused_boxes[i].by));
		if (tir_verify(k, &f->arena, &error) || strcmp(error, want) != 0)
			fail_msg("%s -> %s\n gives: %s\n wants: %s", refused_boxes[i].what, refused_boxes[i].by, error, want);
	}
}

static const struct {
	const char *what, *by, *error;
} refused_thirds[] = {
	{"%106, %111, %11\n", "%106, %111\n", "%113 copy: the part is of another type"},
	{"part bf16 64 by 64 part bf16", "part f16 64 by 64 part f16", "%113 copy: the part is of another type"},
	{"buffer 0 a : f32", "buffer 0 a : bf16", "%6 view: has not the buffer's type"},
	{"%106, %111, %11\n", "%106, %111, %11, %11\n", "%113 copy: rank 2 takes 4 operands, 5 or 8, not 6"},
};

static void
thirds_are_refused(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	for (unsigned i = 0; i < sizeof refused_thirds / sizeof refused_thirds[0]; i++) {
		const char *error = "accepted", *want = arena_text(&f->arena, "kernel k: %s", refused_thirds[i].error);
		TirKernel *k = fixture_read(f, of_thirds(f, refused_thirds[i].what, refused_thirds[i].by));
		if (tir_verify(k, &f->arena, &error) || strcmp(error, want) != 0)
			fail_msg("%s -> %s\n gives: %s\n wants: %s", refused_thirds[i].what, refused_thirds[i].by, error, want);
	}
}

static const struct {
	bool turns;
	const char *what, *by, *error;
} refused_joint[] = {
	{false, "16 by 64 joint", "24 by 64 joint", "part 1 of channel 0 is none that copies bring"},
	{false, "cluster 2", "cluster 3", "part 1 of channel 0 is none that copies bring"},
	{false, "joint\n", "joint\nchannel 1 slots 1 part bf16 64 by 64\n", "channel 1 has nothing in common where another has"},
	{false, "%92 = settle 0", "%92 = barrier 1", "%92 barrier: is met by other threads than those of its role"},
	{true, " joint", "", "%60 roles: 2 groups take no turns"},
};

static void
joint_ones_are_refused(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	for (unsigned i = 0; i < sizeof refused_joint / sizeof refused_joint[0]; i++) {
		const char *error = "accepted", *want = arena_text(&f->arena, "kernel k: %s", refused_joint[i].error);
		TirKernel *k = fixture_read(f, jointly(f, refused_joint[i].turns, refused_joint[i].what, refused_joint[i].by));
		if (tir_verify(k, &f->arena, &error) || strcmp(error, want) != 0)
			fail_msg("%s -> %s\n gives: %s\n wants: %s", refused_joint[i].what, refused_joint[i].by, error, want);
	}
}

static const struct {
	bool rows;
	const char *what, *by, *error;
} refused_parts[] = {
	{false, "part bf16 8 by 64\n", "part bf16 16 by 64\n", "%78 product: of parts that are no factor together"},
	{false, "product 8796093087744", "product 8796093153280", "%78 product: of parts that are no factor together"}, /* from part 2 on */
	{false, "part bf16 8 by 64 part bf16 8 by 64", "part bf16 136 by 64 part bf16 136 by 64", "%78 product: of 272 columns"},
	{false, "piece 7", "piece 8", "%190 piece: a thread has 8"},
	{true, "64 by 64 part bf16 64 by 64", "64 by 64 part bf16 128 by 64", "%78 product: of parts that are no factor together"},
	{true, "piece 15", "piece 16", "%190 piece: a thread has 16"},
	{true, "product 2199023386624", "product 35184372219904", "%78 product: of parts that have no terms together"}, /* b ends */
	{true, "product 2199023386624", "product 37383395475456", "%78 product: of parts that have no terms together"}, /* and rows of two */
};

static void
parts_are_refused(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	for (unsigned i = 0; i < sizeof refused_parts / sizeof refused_parts[0]; i++) {
		const char *error = "accepted", *want = arena_text(&f->arena, "kernel k: %s", refused_parts[i].error);
		TirKernel *k = fixture_read(f, in_parts(f, refused_parts[i].rows, refused_parts[i].what, refused_parts[i].by));
		if (tir_verify(k, &f->arena, &error) || strcmp(error, want) != 0)
			fail_msg("%s -> %s\n gives: %s\n wants: %s", refused_parts[i].what, refused_parts[i].by, error, want);
	}
}

static const struct {
	const char *what, *by, *error;
} refused_held[] = {
	{"slots 1 part bf16 64 by 64", "slots 1 part bf16 64 by 64 turned", "%1476 held: of parts that do not lie side by side"},
	{"slots 1 part bf16 64 by 64", "slots 1 part bf16 64 by 64 part bf16 128 by 64", "%1476 held: of parts that do not lie side by side"},
	{"slots 1 part bf16 64 by 64", "slots 1 part bf16 72 by 64", "%1476 held: 72 rows are not shared by 1 groups"},
	{"held 1 %1474", "held 1025 %1474", "%1476 held: a thread has 32"},
	{"bf16x8", "bf16x16", "%1476 held: is no vector of 8 of the channel's type"},
	{"held 1 %1474", "held 2 %1474", "%1476 held: there are 2 channels"},
	{"%3427 = acquire 1 %3426", "%3427:bf16x8 = held 1 %3426", "%3427 held: stands in another role"},
};

static void
held_are_refused(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	for (unsigned i = 0; i < sizeof refused_held / sizeof refused_held[0]; i++) {
		const char *error = "accepted", *want = arena_text(&f->arena, "kernel k: %s", refused_held[i].error);
		TirKernel *k = fixture_read(f, with_held(f, refused_held[i].what, refused_held[i].by));
		if (tir_verify(k, &f->arena, &error) || strcmp(error, want) != 0)
			fail_msg("%s -> %s\n gives: %s\n wants: %s", refused_held[i].what, refused_held[i].by, error, want);
	}
}

enum { MOST = 160 };

static uint16_t
bf16_of(int v)
{
	float x = (float)v;
	uint32_t bits;
	memcpy(&bits, &x, sizeof bits);
	return (uint16_t)(bits >> 16);
}

/* Element i of so many bytes: bf16, or f32. */
static void
store(void *to, int64_t i, int64_t each, int v)
{
	if (each == sizeof(float))
		((float *)to)[i] = (float)v;
	else
		((uint16_t *)to)[i] = bf16_of(v);
}

/* Runs k on small integers; NULL, or what went wrong. more: a's elements are added. */
static const char *
run_on(Fixture *f, const TirKernel *k, int64_t m, int64_t n, int64_t terms, int64_t step, bool more)
{
	static uint32_t a[MOST * MOST], b[MOST * MOST];
	static float out[MOST * MOST];
	const char *error = NULL;
	int64_t each = k->buffer.at[0].dtype == DT_F32 ? 4 : 2;
	int64_t tiles = (m + 63) / 64 * ((n + 15) / 16);
	for (int64_t i = 0; i < m * terms; i++)
		store(a, i, each, (int)(i * 7 % 13) - 6);
	for (int64_t i = 0; i < n * terms; i++)
		store(b, i, each, (int)(i * 5 % 11) - 5);
	TirMemory buffer[3] = {{a, m * terms * each}, {b, n * terms * each}, {out, m * n * 4}};
	const void *scalar[3] = {&m, &n, &terms};
	for (int64_t first = 0; first < step; first++) {
		TirRun r = {.buffer = buffer, .scalar = scalar, .task_lo = first, .task_hi = tiles, .task_step = step, .max_steps = 1 << 24};
		if (!tir_interpret(k, &f->arena, &r, &error))
			return error;
	}
	for (int64_t i = 0; i < m; i++)
		for (int64_t j = 0; j < n; j++) {
			int sum = more && j < terms ? (int)((i * terms + j) * 7 % 13) - 6 : 0;
			for (int64_t t = 0; t < terms; t++)
				sum += ((int)((i * terms + t) * 7 % 13) - 6) * ((int)((j * terms + t) * 5 % 11) - 5);
			if (out[i * n + j] != (float)sum)
				return arena_text(&f->arena, "[%d, %d] is %g, not %d", (int)i, (int)j, (double)out[i * n + j], sum);
		}
	return NULL;
}

static const char *
run(Fixture *f, const TirKernel *k, int64_t m, int64_t n, int64_t terms, int64_t step)
{
	return run_on(f, k, m, n, terms, step, false);
}

static void
it_multiplies(void **state)
{
	static const int64_t size[][4] = {{64, 16, 64, 1}, {64, 16, 320, 1}, {70, 40, 72, 1}, {1, 1, 8, 1}, {150, 33, 136, 2}, {65, 17, 8, 3}};
	Fixture *f = *state;
	GUARD(f);
	TirKernel *k[2] = {fixture_read(f, changed(f, "", "")), fixture_read(f, turning(f, "", ""))};
	for (unsigned i = 0; i < 2 * sizeof size / sizeof size[0]; i++) {
		const int64_t *s = size[i / 2];
		const char *error = run(f, k[i % 2], s[0], s[1], s[2], s[3]);
		if (error)
			fail_msg("case %u, %u groups: %s", i / 2, 1 + i % 2, error);
	}
}

static void
parts_are_one_factor(void **state)
{
	static const int64_t size[][4] = {{64, 16, 64, 1}, {70, 40, 72, 1}, {150, 33, 136, 2}};
	Fixture *f = *state;
	GUARD(f);
	for (unsigned i = 0; i < 2 * sizeof size / sizeof size[0]; i++) {
		const int64_t *s = size[i / 2];
		const char *error = run(f, fixture_read(f, in_parts(f, i % 2, "", "")), s[0], s[1], s[2], s[3]);
		if (error)
			fail_msg("case %u, parts of %s: %s", i / 2, i % 2 ? "rows" : "columns", error);
	}
}

/* Of an odd number of tiles of rows too: one block's last one is beyond the output. */
static void
blocks_have_a_part_in_common(void **state)
{
	static const int64_t size[][4] = {{128, 16, 64, 1}, {64, 16, 320, 1}, {150, 33, 136, 2}, {150, 40, 160, 1}, {65, 17, 8, 3}};
	Fixture *f = *state;
	GUARD(f);
	for (unsigned i = 0; i < 2 * sizeof size / sizeof size[0]; i++) {
		const int64_t *s = size[i / 2];
		const char *error = run(f, fixture_read(f, jointly(f, i % 2, "", "")), s[0], s[1], s[2], s[3]);
		if (error)
			fail_msg("case %u, %u groups: %s", i / 2, 1 + i % 2, error);
	}
}

static const struct {
	bool turns;
	const char *what, *by, *error;
} wrong_joint[] = {
	{false, "%96:bool = const true", "%96:bool = == %28, %11", "%60 roles: all roles wait for one another"},   /* one releases its last fill */
	{false, "%202 = for %20,", "%202 = for %28,", "%60 roles: all roles wait for one another"},                 /* one brings a tile less */
	{false, "%212:i64 = * %209, %12", "%212:i64 = * %208, %12", "[64, 0] is"},                                  /* both bring the same rows */
	{true, "%67 = turn 0", "%67 = settle 3", "%74 wait: for fill 3 where 0 is next"},
};

static void
wrong_joint_ones_are_found(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	for (unsigned i = 0; i < sizeof wrong_joint / sizeof wrong_joint[0]; i++) {
		TirKernel *k = fixture_read(f, jointly(f, wrong_joint[i].turns, wrong_joint[i].what, wrong_joint[i].by));
		const char *error = run(f, k, 150, 33, 136, 1);
		if (!error || !strstr(error, wrong_joint[i].error))
			fail_msg("%s -> %s\n gives: %s\n wants: %s", wrong_joint[i].what, wrong_joint[i].by, error ? error : "nothing", wrong_joint[i].error);
	}
}

/* A row of the last pair that is not there is 0. */
static void
boxes_are_copied(void **state)
{
	static const int64_t size[][4] = {{64, 16, 64, 1}, {70, 40, 72, 1}, {150, 33, 136, 2}, {2, 17, 8, 3}};
	Fixture *f = *state;
	GUARD(f);
	TirKernel *k = fixture_read(f, by_pairs(f, "", ""));
	for (unsigned i = 0; i < sizeof size / sizeof size[0]; i++) {
		const char *error = run(f, k, size[i][0], size[i][1], size[i][2], size[i][3]);
		if (error)
			fail_msg("case %u: %s", i, error);
	}
	const char *error = run(f, fixture_read(f, by_pairs(f, "%28, %25, %12, %25", "%12, %25, %12, %25")), 64, 16, 64, 1);
	assert_non_null(error);
	assert_string_equal(error, "kernel k: %113 copy: the box is not what its part has");
}

/* Whole numbers of few bits are their first thirds. */
static void
thirds_are_multiplied(void **state)
{
	static const int64_t size[][4] = {{64, 16, 64, 1}, {70, 40, 72, 1}, {150, 33, 136, 2}};
	Fixture *f = *state;
	GUARD(f);
	for (unsigned i = 0; i < sizeof size / sizeof size[0]; i++) {
		const char *error = run(f, fixture_read(f, of_thirds(f, "", "")), size[i][0], size[i][1], size[i][2], size[i][3]);
		if (error)
			fail_msg("case %u: %s", i, error);
	}
	const char *second = run(f, fixture_read(f, of_thirds(f, "%106, %111, %11\n", "%106, %111, %4\n")), 64, 16, 64, 1);
	assert_non_null(second);
	assert_string_equal(second, "[0, 0] is 0, not -189");
	const char *error = run(f, fixture_read(f, of_thirds(f, "%106, %111, %11\n", "%106, %111, %24\n")), 64, 16, 64, 1);
	assert_non_null(error);
	assert_string_equal(error, "kernel k: %113 copy: an element has no such third");
}

/* Once they are there. */
static void
held_elements_are_read(void **state)
{
	static const int64_t size[][4] = {{64, 16, 64, 1}, {70, 40, 72, 1}, {150, 33, 24, 2}};
	Fixture *f = *state;
	GUARD(f);
	for (unsigned i = 0; i < sizeof size / sizeof size[0]; i++) {
		const char *error = run_on(f, fixture_read(f, with_held(f, "", "")), size[i][0], size[i][1], size[i][2], size[i][3], true);
		if (error)
			fail_msg("case %u: %s", i, error);
	}
	const char *early = run_on(f, fixture_read(f, with_held(f, "%1475 = wait 1 %1474", "%1475 = settle 1")), 64, 16, 64, 1, true);
	assert_non_null(early);
	assert_string_equal(early, "kernel k: %1476 held: of fill 0, which the group does not have");
}

/* What is found although the order of the interpreter's would hide it. */
static const struct {
	const char *what, *by, *error;
} wrong[] = {
	{"%37 = wait 0 %36", "%37 = settle 1", "%39 mma: of fill 0, which the group does not have"},
	{"settle 1\n", "settle 2\n", "%42 release: of fill 0, which a product reads"},
	{"%46 = settle 0", "%46 = settle 1", "%49 release: of fill 2, which a product reads"},
	{"release 0 %41", "release 0 %36", "%42 release: of fill 1, which the group does not have"},
	{"%49 = release 0 %47, %48", "%49 = settle 0", "%30 roles: all roles wait for one another"},
	{"acquire 0 %110", "acquire 0 %109", "%112 acquire: fill 0 where 3 is next"},
	{"%112 = acquire 0 %110", "%112 = fetch %6, %11, %11", "%113 copy: to a slot that is not acquired"},
	{"copy 0 part 1 %8", "copy 0 part 0 %6", "%114 copy: the part is there already"},
	{"%114 = copy 0 part 1 %8, %110, %107, %111", "%114 = fetch %8, %11, %11", "%112 acquire: the fill before lacks a part"},
};

/* A warp that loads asks its threads what to load; and all of them say the same. */
static void
a_warp_loads(void **state)
{
	static const int64_t size[][4] = {{64, 16, 64, 1}, {70, 40, 72, 1}, {150, 33, 136, 2}};
	static const struct {
		const char *what, *by, *error;
	} apart[] = {
		{"%214:i64 = shuffle 1 %213", "%214:i64 = + %213, %23", "kernel k: %228 copy: threads of a warp differ in what they fill"},
		{"acquire 0 %220", "acquire 0 %23", "kernel k: %224 acquire: threads of a warp differ in what they fill"},
		{"for %11, %15, %4, %206", "for %11, %23, %4, %206", "kernel k: %216 for: threads of a group differ in how often they run it"},
	};
	Fixture *f = *state;
	GUARD(f);
	const char *text = arena_text(&f->arena, "%s%s%s", header, spaced(f, multiplies), spaced(f, loads));
	text = replaced(f, replaced(f, text, "rest 24 {", "rest 24 warp {"), "%214:i64 = * %210, %16", "%213:i64 = * %210, %16\n      %214:i64 = shuffle 1 %213");
	TirKernel *k = fixture_read(f, text);
	for (unsigned i = 0; i < sizeof size / sizeof size[0]; i++) {
		const char *error = run(f, k, size[i][0], size[i][1], size[i][2], size[i][3]);
		if (error)
			fail_msg("case %u: %s", i, error);
	}
	for (unsigned i = 0; i < sizeof apart / sizeof apart[0]; i++) {
		const char *error = run(f, fixture_read(f, replaced(f, text, apart[i].what, apart[i].by)), 128, 16, 136, 1);
		if (!error || strcmp(error, apart[i].error) != 0)
			fail_msg("%s gives: %s", apart[i].by, error ? error : "nothing");
	}
}

static void
wrong_ones_are_found(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	for (unsigned i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		TirKernel *k = fixture_read(f, changed(f, wrong[i].what, wrong[i].by));
		const char *error = run(f, k, 128, 16, 136, 1), *want = arena_text(&f->arena, "kernel k: %s", wrong[i].error);
		if (!error || strcmp(error, want) != 0)
			fail_msg("%s -> %s\n gives: %s\n wants: %s", wrong[i].what, wrong[i].by, error ? error : "nothing", want);
	}
}

static const struct {
	const char *what, *by, *error;
} wrong_turns[] = {
	{"%67 = turn 0", "%67 = settle 3", "%74 wait: for fill 3 where 0 is next"},
	{"%91 = turn 1", "%91 = settle 3", "%74 wait: for fill 6 where 3 is next"},
	{"%92 = settle 0", "%92 = turn 1", "%92 turn: of another group's"},
	{"%194 = yield %193", "%194 = yield %90", "%74 wait: for fill 3 where 6 is next"},
	{"%36:i64 = * %31, %15", "%36:i64 = * %31, %11", "%74 wait: for fill 0 where 3 is next"},
};

static void
wrong_turns_are_found(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	for (unsigned i = 0; i < sizeof wrong_turns / sizeof wrong_turns[0]; i++) {
		TirKernel *k = fixture_read(f, turning(f, wrong_turns[i].what, wrong_turns[i].by));
		const char *error = run(f, k, 150, 33, 136, 1), *want = arena_text(&f->arena, "kernel k: %s", wrong_turns[i].error);
		if (!error || strcmp(error, want) != 0)
			fail_msg("%s -> %s\n gives: %s\n wants: %s", wrong_turns[i].what, wrong_turns[i].by, error ? error : "nothing", want);
	}
}

/* The table that says where the accumulator is, and the function that all others use. */
static void
pieces_are_where_the_fragment_says(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	enum { COLUMNS = 32 };
	Layout l;
	assert_true(fragment_layout(&f->arena, FRAGMENT_WGMMA_D, (unsigned[]){TIR_MMA_ROWS, COLUMNS}, (unsigned[]){1, 0}, &l));
	for (unsigned thread = 0; thread < TIR_GROUP; thread++)
		for (unsigned k = 0; k < COLUMNS / 2; k++) {
			Place p = {{0}};
			p.at[AXIS_REG] = k;
			p.at[AXIS_LANE] = thread % TIR_WARP;
			p.at[AXIS_WARP] = thread / TIR_WARP;
			uint64_t c = layout_at(&l, &p);
			assert_int_equal(coord_get(c, 0), tir_piece_row(k, thread, COLUMNS));
			assert_int_equal(coord_get(c, 1), tir_piece_column(k, thread, COLUMNS));
		}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_text_is_read_back),
		TEST(refusals),
		TEST(boxes_are_refused),
		TEST(parts_are_refused),
		TEST(thirds_are_refused),
		TEST(joint_ones_are_refused),
		TEST(held_are_refused),
		TEST(it_multiplies),
		TEST(parts_are_one_factor),
		TEST(blocks_have_a_part_in_common),
		TEST(wrong_joint_ones_are_found),
		TEST(boxes_are_copied),
		TEST(thirds_are_multiplied),
		TEST(held_elements_are_read),
		TEST(a_warp_loads),
		TEST(wrong_ones_are_found),
		TEST(wrong_turns_are_found),
		TEST(pieces_are_where_the_fragment_says),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
