/* tir_posts_test.c: groups of a kernel of roles that hand over what they have stored, by words that they post: verified and
 * run; and what is wrong with it when one thing is changed. */
#include "tir_fixture.h"

/* Task n stores numbers from 128 n on, a thread each, posts, and takes those of the task before, the other way round. */
static const char kernel[] =
	"kernel k threads 256 by 1\n"
	"buffer 0 w : u64 written posted\nbuffer 1 s : f32 written\nbuffer 2 out : f32 written\n"
	"channel 0 slots 1 part bf16 64 by 64\n"
	"{\n"
	"  %1:i64 = const 0\n  %2:i64 = const 1\n  %3:i64 = const 128\n  %4:i64 = const 5\n  %5:i64 = const 640\n  %6:i64 = const 127\n"
	"  %7 = buffer 0\n  %8:u64 = view %7, %4, %2\n  %9 = buffer 1\n  %10:f32 = view %9, %5, %2\n"
	"  %11 = buffer 2\n  %12:f32 = view %11, %5, %2\n"
	"  %13:i64 = task_lo\n  %14:i64 = task_hi\n  %15:i64 = task_step\n  %16:i64 = thread\n  %17:u64 = const 1\n"
	"  %18:bool = == %16, %1\n"
	"  %20 = roles 1 by 240 rest 24 {\n"
	"    %21 = for %13, %14, %15 {\n"
	"      %22:i64 = blockarg 0\n      %23:i64 = * %22, %3\n      %24:i64 = + %23, %16\n      %25:f32 = cast %24\n"
	"      %26 = store %10, %25, %24\n"
	"      %27 = barrier -1\n"
	"      %28 = store %8, %17, %22, %18 masked\n"
	"      %29:bool = < %1, %22\n      %30:i64 = - %22, %2\n      %31:bool = && %29, %18\n"
	"      %32:u64 = load %8, %30, %31 masked\n"
	"      %33 = barrier -1\n"
	"      %34:i64 = * %30, %3\n      %35:i64 = - %6, %16\n      %36:i64 = + %34, %35\n"
	"      %37:f32 = load %10, %36, %29 masked\n"
	"      %38 = store %12, %37, %24\n"
	"      %39 = yield\n"
	"    }\n"
	"    %40 = yield\n"
	"  } else {\n"
	"    %41 = yield\n"
	"  }\n"
	"}\n";

/* The kernel with `what`, which stands there once, replaced by `by`. */
static TirKernel *
changed(Fixture *f, const char *what, const char *by)
{
	const char *at = strstr(kernel, what);
	assert_non_null(at);
	return fixture_read(f, arena_text(&f->arena, "%.*s%s%s", (int)(at - kernel), kernel, by, at + strlen(what)));
}

/* NULL, or what went wrong. */
static const char *
run(Fixture *f, const TirKernel *k)
{
	enum { TASKS = 5 };
	uint64_t w[TASKS] = {0};
	static float s[TASKS * TIR_GROUP], out[TASKS * TIR_GROUP];
	TirMemory buffer[3] = {{w, sizeof w}, {s, sizeof s}, {out, sizeof out}};
	TirRun r = {.buffer = buffer, .task_hi = TASKS, .max_steps = 1 << 20};
	const char *error = NULL;
	if (!tir_interpret(k, &f->arena, &r, &error))
		return error;
	for (int n = 0; n < TASKS * TIR_GROUP; n++) {
		int task = n / TIR_GROUP, want = task ? TIR_GROUP * task - 1 - n % TIR_GROUP : 0;
		if (out[n] != (float)want)
			return arena_text(&f->arena, "[%d] is %g, not %d", n, (double)out[n], want);
	}
	return NULL;
}

static void
it_hands_over(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	TirKernel *k = changed(f, "kernel k", "kernel k");
	fixture_verify(f, k);
	fixture_round_trip(f, tir_rewrite(k, &f->arena, fixture_copy, NULL));
	const char *error = run(f, k);
	assert_null(error);
}

static void
wrong_ones_are_found(void **state)
{
	static const struct {
		const char *what, *by, *error;
	} wrong[] = {
		{"      %27 = barrier -1\n", "", "%37 load: thread 0 reads byte 508 of s, which thread 127 wrote, which no post has handed over"},
		{"      %33 = barrier -1\n", "", "%37 load: thread 0 reads byte 508 of s, which thread 127 wrote, which no post has handed over"},
		{"      %32:u64 = load %8, %30, %31 masked\n", "", "%37 load: thread 0 reads byte 508 of s, which thread 127 wrote, which no post has handed over"},
		{"      %28 = store %8, %17, %22, %18 masked\n", "", "%32 load: waits for what no task has posted"},
		{", %18 masked\n", "\n", "%28 store: posts 0, or once more"},
	};
	Fixture *f = *state;
	GUARD(f);
	for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		const char *error = run(f, changed(f, wrong[i].what, wrong[i].by)), *want = arena_text(&f->arena, "kernel k: %s", wrong[i].error);
		if (!error || strcmp(error, want) != 0)
			fail_msg("%s -> %s\n gives: %s\n wants: %s", wrong[i].what, wrong[i].by, error ? error : "nothing", want);
	}
}

/* Who loads neither posts nor waits: it is ahead of those who do. */
static void
the_loading_role_does_not_wait(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	const char *error = "accepted";
	TirKernel *k = changed(f, "    %41 = yield\n", "    %41:u64 = load %8, %1\n    %42 = yield\n");
	assert_false(tir_verify(k, &f->arena, &error));
	assert_string_equal(error, "kernel k: %41 load: in the loading role");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {TEST(it_hands_over), TEST(wrong_ones_are_found), TEST(the_loading_role_does_not_wait)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
