/* cuda_late_test.c: artefacts whose kernels' code is made when it is first wanted (cuda_fixture.h): by whom, how
 * often, and what becomes of a failure. The code is that of the artefact that has it all. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/runtime/cuda_fixture.h"

static void *late_image;
static size_t late_size;

typedef struct {
	int made, released, kept, refused;
	texo_status fails;
	bool machine; /* beside the text */
	bool keeps;   /* what the driver's assembler makes: of the kernel that was made last */
	bool without; /* text that does not say how many threads a block has: */
	char *text;
	size_t bytes[8];
	void *code[8];
	const char *symbol[8];
	char by[8][200], assembler[200];
} Maker;

static const char *
text_of(const char *symbol)
{
	const ImageHeader *h = image;
	const ImageModule *m = (const void *)((const char *)image + h->module.at);
	char entry[64];
	snprintf(entry, sizeof entry, ".entry %s(", symbol);
	for (uint64_t n = 0; n < h->module.n; n++) {
		const char *text = (const char *)image + h->code.at + m[n].at;
		if (m[n].form == IMG_PTX && strstr(text, entry))
			return text;
	}
	return NULL;
}

/* What was kept of the kernel. */
static void *
code_of(const Maker *m, const char *symbol)
{
	for (int k = 0; k < m->kept; k++)
		if (strcmp(m->symbol[k], symbol) == 0 && strcmp(m->by[k], m->assembler) == 0)
			return m->code[k];
	return NULL;
}

static char *
without_threads(const char *text)
{
	char *copy = strdup(text), *at = strstr(copy, "\n.maxntid ");
	assert_non_null(at);
	memcpy(at + 1, "//", 2);
	return copy;
}

static texo_status
make(void *user, const texo_private_kernel *k, texo_private_code *out)
{
	static const char code[64] = "\177ELF";
	Maker *m = user;
	assert_true(k->serial == 1 && strncmp(k->tir, "kernel ", 7) == 0 && strlen(k->tir) == k->n);
	m->made++;
	snprintf(m->assembler, sizeof m->assembler, "%s", k->assembler);
	if (m->fails)
		return texo_private_fail(m->fails, "this is no day for %s", k->symbol);
	void *own = code_of(m, k->symbol);
	*out = (texo_private_code){own ? own : m->machine ? code : NULL, text_of(k->symbol), m, own != NULL, m->keeps && !own};
	if (m->without)
		out->text = m->text = without_threads(out->text);
	return TEXO_OK;
}

static void
keep(void *user, const texo_private_kernel *k, const void *machine, size_t n)
{
	Maker *m = user;
	assert_true(m->keeps && m->made > m->released && m->kept < 8);
	assert_string_equal(k->assembler, m->assembler);
	m->refused += !machine;
	if (!machine)
		return;
	m->symbol[m->kept] = strdup(k->symbol);
	memcpy(m->by[m->kept], m->assembler, sizeof *m->by);
	m->code[m->kept] = malloc(n);
	memcpy(m->code[m->kept], machine, n);
	m->bytes[m->kept++] = n;
}

static void
forget(Maker *m)
{
	for (; m->kept; m->kept--) {
		free(m->code[m->kept - 1]);
		free((char *)(uintptr_t)m->symbol[m->kept - 1]);
	}
}

static void
release(void *user, texo_private_code *code)
{
	assert_ptr_equal(code->memory, user);
	Maker *m = user;
	m->released++;
	free(m->text);
	m->text = NULL;
}

static texo_status
start_late(Whole *w, Maker *m)
{
	texo_rt_options o = cuda_options();
	const texo_private_maker maker = {make, keep, release, m};
	first_init(&w->f);
	assert_int_equal(texo_rt_create(&o, &w->rt), TEXO_OK);
	texo_status s = texo_private_load(w->rt, late_image, late_size, m ? &maker : NULL, &w->program);
	return s ? s : texo_program_get_kernel(w->program, "first", &w->kernel);
}

static void
each_is_made_once(void **state)
{
	(void)state;
	for (int machine = 0; machine < 4; machine++) { /* code that the driver takes, and that it doesn't */
		Maker m = {.machine = machine & 1};
		Whole w = {0};
		fake_reset();
		fake->cubins = machine >> 1;
		assert_int_equal(start_late(&w, &m), TEXO_OK);
		assert_int_equal(m.made, 0);
		assert_int_equal(whole_move_in(&w), TEXO_OK); /* prepares */
		assert_int_equal(m.made, 3);
		assert_int_equal(m.released, 3);
		assert_int_equal(fake->loads, 3);
		fake->capturing = 1;
		assert_int_equal(texo_kernel_launch(w.kernel, w.f.arg, FIRST_ARGS, w.workspace, NULL), TEXO_OK);
		fake->capturing = 0;
		assert_int_equal(whole_run(&w), TEXO_OK);
		assert_int_equal(m.made, 3);
		whole_end(&w);
		nothing_alive();
	}
}

static void
results(void **state)
{
	Maker m = {0};
	Whole w = {0};
	(void)state;
	assert_int_equal(start_late(&w, &m), TEXO_OK);
	assert_int_equal(whole_move_in(&w), TEXO_OK);
	assert_int_equal(whole_run(&w), TEXO_OK);
	results_are_right(&w);
	whole_end(&w);
	nothing_alive();
}

/* N = 0: two of three kernels have no tasks. */
static void
what_does_not_run_is_not_made(void **state)
{
	Maker m = {0};
	Whole w = {0};
	(void)state;
	assert_int_equal(start_late(&w, &m), TEXO_OK);
	w.f.shape_x[0] = w.f.shape_y[0] = w.f.shape_ids[0] = 0;
	w.f.shape_acc[0] = 1;
	assert_int_equal(whole_move_in(&w), TEXO_OK);
	assert_int_equal(m.made, 1);
	whole_end(&w);
	nothing_alive();
}

static void
failures_are_statuses(void **state)
{
	static const texo_status status[] = {TEXO_NO_MEMORY, TEXO_NO_DEVICE, TEXO_LIMIT, TEXO_BAD_ARTEFACT, TEXO_INTERNAL};
	(void)state;
	for (unsigned k = 0; k < sizeof status / sizeof *status; k++) {
		Maker m = {.fails = status[k]};
		Whole w = {0};
		fake_reset();
		assert_int_equal(start_late(&w, &m), TEXO_OK);
		REFUSED(whole_move_in(&w), status[k], "this is no day for first_0_0");
		assert_int_equal(m.made, 1);
		assert_int_equal(m.released, 0);
		assert_int_equal(fake->loads, 0);
		whole_end(&w);
		nothing_alive();
	}
}

static void
nobody_makes_it(void **state)
{
	Whole w = {0};
	(void)state;
	assert_int_equal(start_late(&w, NULL), TEXO_OK);
	REFUSED(whole_move_in(&w), TEXO_BAD_ARTEFACT, "the artefact has no code for kernel scale on Fake");
	whole_end(&w);
	nothing_alive();
}

/* What the driver's assembler made is handed over, and taken the next time, also by a device that the artefact is older than;
 * another driver assembles anew. */
static void
what_the_driver_assembles_is_kept(void **state)
{
	(void)state;
	Maker m = {.keeps = true};
	char first[200];
	for (int turn = 0; turn < 3; turn++) {
		Whole w = {0};
		fake_reset();
		fake->version = turn == 2 ? 12080 : 13000;
		m.made = m.released = 0;
		assert_int_equal(start_late(&w, &m), TEXO_OK);
		assert_int_equal(whole_move_in(&w), TEXO_OK);
		assert_int_equal(fake->assembled, turn == 1 ? 0 : 3); /* an older one doesn't take the newer's */
		assert_int_equal(m.kept, turn == 2 ? 6 : 3);
		assert_int_equal(m.made, 3);
		assert_int_equal(m.released, 3);
		assert_int_equal(fake->modules, 3);
		assert_int_equal(whole_run(&w), TEXO_OK);
		results_are_right(&w);
		assert_non_null(strstr(m.assembler, turn == 2 ? "CUDA 12080, " : "CUDA 13000, "));
		assert_non_null(strstr(m.assembler, ", for 9.0"));
		assert_true(turn == 0 || (strcmp(first, m.assembler) == 0) == (turn == 1));
		memcpy(first, m.assembler, sizeof first);
		whole_end(&w);
		nothing_alive();
	}
	forget(&m);
}

/* What is linked is kept where it takes no more of a multiprocessor. */
static void
worse_code_is_not_kept(void **state)
{
	static const struct {
		int more, local, kept;
	} row[] = {{0, 0, 3}, {-8, 0, 3}, {0, 8, 0}, {32, 0, 3}, {33, 0, 0}, {64, 0, 0}}; /* of one thread: 32 blocks at most, of 64 registers */
	(void)state;
	for (unsigned k = 0; k < sizeof row / sizeof *row; k++) {
		Maker m = {.keeps = true};
		Whole w = {0};
		fake_reset();
		fake->linked_more = row[k].more;
		fake->linked_local = row[k].local;
		assert_int_equal(start_late(&w, &m), TEXO_OK);
		assert_int_equal(whole_move_in(&w), TEXO_OK);
		assert_int_equal(fake->assembled, 3);
		assert_int_equal(m.kept, row[k].kept);
		assert_int_equal(m.refused, 3 - row[k].kept);
		assert_int_equal(fake->modules, 3);
		whole_end(&w);
		nothing_alive();
		forget(&m);
	}
}

/* Text that does not say how many threads a block has has no place for how many blocks are to be resident: the driver's own
 * code runs, and is not kept. */
static void
text_without_threads_is_not_linked(void **state)
{
	(void)state;
	Maker m = {.keeps = true, .without = true};
	Whole w = {0};
	assert_int_equal(start_late(&w, &m), TEXO_OK);
	assert_int_equal(whole_move_in(&w), TEXO_OK);
	assert_int_equal(m.made, 3);
	assert_int_equal(fake->assembled, 0);
	assert_int_equal(m.kept + m.refused, 0);
	assert_int_equal(whole_run(&w), TEXO_OK);
	results_are_right(&w);
	whole_end(&w);
	nothing_alive();
}

/* Each call fails: where it is one of the assembler's, the driver takes the text; nothing that was not loaded is kept. */
static void
assembling_fails(void **state)
{
	static const int with[] = {1, 2, 200, 218, 222, 700};
	(void)state;
	for (unsigned c = 0; c < sizeof with / sizeof *with; c++)
		for (int n = 1, more = 1; more; n++)
			for (int nothing = 0; nothing < 2; nothing++) {
				Maker m = {.keeps = true};
				Whole w = {0};
				fake_reset();
				assert_int_equal(start_late(&w, &m), TEXO_OK);
				fake->fail_at = nothing ? 0 : fake->calls + n;
				fake->null_at = nothing ? fake->calls + n : 0;
				fake->fail_with = with[c];
				texo_status s = whole_move_in(&w);
				const char *call = fake->failed ? fake->failed : "";
				more = *call != 0;
				bool links = strncmp(call, "cuLink", 6) == 0 && strcmp(call, "cuLinkDestroy") != 0;
				if (links && (nothing || with[c] < 700)) {
					assert_int_equal(s, TEXO_OK);
					assert_int_equal(fake->modules, 3);
					assert_int_equal(m.kept, 2);
				}
				if (links && !nothing && with[c] == 700)
					assert_int_equal(s, TEXO_DEVICE_LOST);
				assert_true(m.kept <= fake->loads && m.made == m.released && m.refused <= nothing);
				fake->fail_at = fake->null_at = 0;
				if (!s && (links || !nothing)) {
					assert_int_equal(whole_run(&w), TEXO_OK);
					results_are_right(&w);
				}
				whole_end(&w);
				if (!nothing)
					nothing_alive();
				forget(&m);
			}
}

static void
a_capture_loads_nothing(void **state)
{
	static const char words[] = "the stream is being captured, and code that this launch needs is not loaded";
	Maker m = {0};
	Whole w = {0};
	(void)state;
	assert_int_equal(start_late(&w, &m), TEXO_OK);
	m.fails = TEXO_LIMIT;
	REFUSED(whole_move_in(&w), TEXO_LIMIT, "this is no day"); /* all is there but the code, and the workspace */
	m = (Maker){0};
	assert_int_equal(cuda_memory_alloc(w.rt, 4096, &w.workspace), TEXO_OK);
	fake->cleared = 0;
	fake->capturing = 1;
	REFUSED(texo_kernel_launch(w.kernel, w.f.arg, FIRST_ARGS, w.workspace, &w), TEXO_INVALID, words);
	fake->capturing = 0;
	assert_int_equal(m.made, 0);
	assert_int_equal(fake->launches, 0);
	assert_int_equal(fake->cleared, 0); /* nothing is on the stream */
	assert_int_equal(whole_run(&w), TEXO_OK);
	assert_int_equal(m.made, 3);
	whole_end(&w);
	nothing_alive();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(each_is_made_once, set_up),
		cmocka_unit_test_setup(results, set_up),
		cmocka_unit_test_setup(what_does_not_run_is_not_made, set_up),
		cmocka_unit_test_setup(failures_are_statuses, set_up),
		cmocka_unit_test_setup(nobody_makes_it, set_up),
		cmocka_unit_test_setup(what_the_driver_assembles_is_kept, set_up),
		cmocka_unit_test_setup(worse_code_is_not_kept, set_up), cmocka_unit_test_setup(assembling_fails, set_up),
		cmocka_unit_test_setup(text_without_threads_is_not_linked, set_up),
		cmocka_unit_test_setup(a_capture_loads_nothing, set_up),
	};
	late_image = fixture_image_late("sm_90a", &late_size);
	return open_fake() || cmocka_run_group_tests(tests, NULL, NULL);
}
