/* cuda_failures_test.c: a lost device; then every call of the driver failing in turn, in several ways, and every
 * allocation: a status, the driver's words, and nothing left alive (cuda_fixture.h). */
#include <stdlib.h>
#include <string.h>

#include "tests/runtime/cuda_fixture.h"

/* --- a lost device --- */

static void
lost(void **state)
{
	(void)state;
	Whole w = {0}, again = {0};
	texo_rt_options o = cuda_options();
	first_init(&w.f);
	assert_int_equal(whole_start(&w, &o), TEXO_OK);
	assert_int_equal(whole_move_in(&w), TEXO_OK);
	fake->fail_at = fake->calls + 7; /* enter, clear, three launches, leave; the wait's own enter */
	fake->fail_with = 700;
	REFUSED(whole_run(&w), TEXO_DEVICE_LOST, "CUDA_ERROR_ILLEGAL_ADDRESS (700)");
	int calls = fake->calls;
	REFUSED(texo_kernel_launch(w.kernel, w.f.arg, FIRST_ARGS, w.workspace, NULL), TEXO_DEVICE_LOST,
	        "an earlier failure, CUDA_ERROR_ILLEGAL_ADDRESS (700)");
	REFUSED(cuda_wait(w.rt, NULL), TEXO_DEVICE_LOST, "an earlier failure");
	REFUSED(texo_kernel_status(w.kernel, &w.fault), TEXO_DEVICE_LOST, "an earlier failure");
	void *module = &w, *function = &w;
	REFUSED(cuda_function_new(w.rt, "", "none", &module, &function), TEXO_DEVICE_LOST, "an earlier failure");
	assert_true(!module && !function);
	cuda_function_free(w.rt, module);
	assert_int_equal(fake->calls, calls); /* the driver is left in peace */
	whole_end(&w);
	assert_int_equal(fake->contexts, 0);
	assert_int_equal(fake->allocations, 0);
	fake->fail_at = 0;
	first_init(&again.f);
	assert_int_equal(whole_launch(&again, &o), TEXO_OK);
	results_are_right(&again);
	whole_end(&again);
	nothing_alive();
}

/* --- everything fails once --- */

/* What ends things can't fail: its results are not looked at. */
static bool
only_ends(const char *call)
{
	return strcmp(call, "cuMemFree_v2") == 0 || strcmp(call, "cuModuleUnload") == 0 ||
	       strcmp(call, "cuDevicePrimaryCtxRelease_v2") == 0;
}

static bool
gives_a_handle(const char *call)
{
	return strstr(call, "Retain") || strstr(call, "LoadData") || strstr(call, "GetFunction") || strstr(call, "Alloc");
}

typedef struct {
	const char *name;
	bool strided, cubins, borrowed;
} Scenario;

static const Scenario scenario[] = {
	{"rows", false, false, false}, {"columns", true, false, false}, {"cubins", false, true, false}, {"a host's context", false, false, true},
};

typedef struct {
	const Scenario *scenario;
	int at, with;
	bool on; /* this call and all after it */
} Failure;

static char host_context;

/* Whether the driver's refusal of machine code, for which there is text, is no failure. */
static bool
is_taken_back(const Failure *f)
{
	return f->scenario->cubins && strcmp(fake->failed, "cuModuleLoadDataEx") == 0 &&
	       (f->with == 200 || f->with == 209 || f->with == 218 || f->with == 222 || f->with == 500);
}

static bool
loses_the_device(int result)
{
	return result == 201 || result == 700 || (result > 701 && result < 720);
}

static void
check_failure(const Failure *f, texo_status status)
{
	const char *name = f->scenario->name;
	if (status && !strstr(texo_last_error(), "CUDA"))
		fail_msg("%s: call %d, %s, gives %d: %s", name, f->at, fake->failed, f->with, texo_last_error());
	if (!status && fake->failed && f->with && !only_ends(fake->failed) && !is_taken_back(f))
		fail_msg("%s: call %d, %s, gives %d, and nobody says so", name, f->at, fake->failed, f->with);
	if (status && f->with == 2 && status != TEXO_NO_MEMORY)
		fail_msg("%s: call %d is out of memory, and the status is %s", name, f->at, texo_status_name(status));
	if (status && loses_the_device(f->with) && status != TEXO_DEVICE_LOST)
		fail_msg("%s: call %d gives %d, and the status is %s", name, f->at, f->with, texo_status_name(status));
}

/* A launch with a failure in it; false when it has fewer calls. */
static bool
fails_at(const Failure *f, texo_status *status)
{
	int64_t columns[2], backwards;
	const Scenario *x = f->scenario;
	Whole w = {.image = x->strided ? rows_image : x->cubins ? assembled : NULL};
	texo_rt_options o = cuda_options();
	fake_reset();
	fake->host_context = o.context = x->borrowed ? &host_context : NULL;
	fake->cubins = x->cubins;
	if (x->strided)
		strided_init(&w, columns, &backwards);
	else
		first_init(&w.f);
	fake->fail_at = f->at;
	fake->fail_with = f->with;
	fake->fail_on = f->on;
	*status = whole_launch(&w, &o);
	check_failure(f, *status);
	if (!*status && x->strided)
		strided_results(&w);
	else if (!*status)
		results_are_right(&w);
	whole_end(&w);
	nothing_alive();
	return fake->failed != NULL;
}

/* Every call of every scenario, once and from there on, with each result that the runtime tells apart and
 * some that it doesn't. */
static void
every_call_fails(void **state)
{
	static const int with[] = {1, 2, 3, 100, 101, 200, 201, 209, 218, 222, 500, 700, 701, 716, 719, 803, 999};
	unsigned total = 0;
	(void)state;
	for (unsigned k = 0; k < sizeof scenario / sizeof *scenario; k++)
		for (unsigned c = 0; c < sizeof with / sizeof *with; c++)
			for (int on = 0; on < 2; on++) {
				texo_status status, seen = TEXO_OK;
				Failure f = {&scenario[k], 1, with[c], on};
				for (; fails_at(&f, &status); f.at++, total++)
					seen = status ? status : seen;
				assert_true(f.at > 50);
				assert_int_not_equal(seen, TEXO_OK);
			}
	print_message("%u calls made to fail\n", total);
	assert_true(total >= 2000);
}

static void
every_handle_is_null(void **state)
{
	texo_status status;
	int found = 0;
	(void)state;
	fake_reset();
	for (int n = 1;; n++) {
		Whole w = {0};
		texo_rt_options o = cuda_options();
		fake_reset();
		first_init(&w.f);
		fake->null_at = n;
		status = whole_start(&w, &o);
		if (!status)
			status = whole_move_in(&w);
		if (!status && !fake->failed) {
			whole_end(&w);
			break;
		}
		if (fake->failed && gives_a_handle(fake->failed)) {
			found++;
			if (status != TEXO_INTERNAL || !strstr(texo_last_error(), "CUDA gives no"))
				fail_msg("%s gives nothing: %s", fake->failed, texo_last_error());
		}
		bool is_handle = fake->failed && gives_a_handle(fake->failed);
		whole_end(&w);
		if (is_handle)
			nothing_alive();
	}
	assert_true(found >= 7); /* a context, a module, functions, memory of two graphs */
}

static int allowed;

static void *
rationed(void *user, size_t n)
{
	(void)user;
	return allowed-- > 0 ? malloc(n) : NULL;
}

static void *
rationed_resize(void *user, void *p, size_t n)
{
	(void)user;
	return allowed-- > 0 ? realloc(p, n) : NULL;
}

static void
release(void *user, void *p)
{
	(void)user;
	free(p);
}

static void
every_allocation_fails(void **state)
{
	texo_rt_options o = cuda_options();
	texo_status s = TEXO_NO_MEMORY;
	(void)state;
	o.alloc = rationed;
	o.resize = rationed_resize;
	o.release = release;
	for (int n = 0; s; n++) {
		Whole w = {0};
		first_init(&w.f);
		allowed = n;
		s = whole_launch(&w, &o);
		assert_true(s == TEXO_OK || s == TEXO_NO_MEMORY);
		allowed = 1000;
		whole_end(&w);
		nothing_alive();
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(lost, set_up),
		cmocka_unit_test_setup(every_call_fails, set_up),
		cmocka_unit_test_setup(every_handle_is_null, set_up),
		cmocka_unit_test_setup(every_allocation_fails, set_up),
	};
	return open_fake() || cmocka_run_group_tests(tests, NULL, NULL);
}
