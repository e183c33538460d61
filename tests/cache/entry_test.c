/* entry_test.c: digests against published ones, and entries: every changed bit and every other length is noticed;
 * what lies inside its digest and is nonsense all the same reads as nothing. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver/cache/key.h"
#include "driver/cache/entry.h"

enum { LONGEST = 1000, EDITS = 20000 };

static Unwind unwind;
static Arena arena;

static int
setup(void **state)
{
	(void)state;
	arena_init(&arena, &host_default()->memory, &unwind);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	arena_free(&arena);
	return 0;
}

/* By hashlib.blake2b(bytes, digest_size=32) of Python, for byte i = (7 i + 3) mod 256. */
static const struct {
	size_t n;
	const char *digest;
} published[] = {
	{0, "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8"},
	{1, "e88bd757ad5b9bedf372d8d3f0cf6c962a469db61a265f6418e1ffed86da29ec"},
	{3, "9facd640130c81e7f318a8d5c660bc1b0f5d03861ffbd4cc1358e0e904593c28"},
	{127, "c9ae3859964b35f04c54b36d33cf299d7290ee621005d28e51598a943560aaaa"},
	{128, "f0501d06597880592bc49234eef100ec1ff349058d0e9d9b753504e24af86dd6"},
	{129, "a34a4e1e03c541dfbf3099c4b6c143c022ced65c28bd7e8a10e0a098461aecf0"},
	{255, "f2d64a40e9412a3414161ff6250075225418fd7c271c1123e162e1bca0de9f93"},
	{256, "d93ebb9c802f5630ab22516fd82b6c21bc8bd551d531349b715f046ed11ed871"},
	{257, "4ce481b24d387422d2bc2baa03d1afd55a1327939ff537c71eb9b38709268649"},
	{1000, "d62b6c768ce1afc8367e0498ab2f8e3f7c178c35b1429f14c4604b545d200f52"},
};

static void
digests_are_published_ones(void **state)
{
	uint8_t bytes[LONGEST], digest[BLAKE2B_BYTES];
	(void)state;
	for (unsigned i = 0; i < LONGEST; i++)
		bytes[i] = (uint8_t)(i * 7 + 3);
	for (unsigned k = 0; k < sizeof published / sizeof *published; k++) {
		char text[2 * BLAKE2B_BYTES + 1];
		blake2b(bytes, published[k].n, digest);
		for (unsigned i = 0; i < BLAKE2B_BYTES; i++)
			snprintf(text + 2 * i, 3, "%02x", digest[i]);
		assert_string_equal(text, published[k].digest);
	}
}

static const void *
entry_of(const char *key, const char *payload, size_t *n)
{
	return entry_make(&arena, key, strlen(key), ENTRY_IMAGE, payload, strlen(payload), n);
}

static void
parts_come_back(void **state)
{
	static const char key[] = "a key of 20 bytes...", payload[] = "what was kept";
	size_t n, k;
	(void)state;
	const void *entry = entry_of(key, payload, &n);
	assert_true(entry_is_whole(entry, n));
	const void *part = entry_part(entry, ENTRY_KEY, &k);
	assert_int_equal(k, sizeof key - 1);
	assert_memory_equal(part, key, k);
	part = entry_part(entry, ENTRY_IMAGE, &k);
	assert_int_equal(k, sizeof payload - 1);
	assert_memory_equal(part, payload, k);
	assert_int_equal((uintptr_t)part % ENTRY_ALIGN, 0);
	assert_null(entry_part(entry, "other", &k));
	entry = entry_of("", "", &n);
	assert_true(entry_is_whole(entry, n));
	assert_non_null(entry_part(entry, ENTRY_IMAGE, &k));
	assert_int_equal(k, 0);
}

static void
every_bit_and_length_counts(void **state)
{
	size_t n;
	(void)state;
	const void *entry = entry_of("the key", "the payload, which has more than one block of the digest in it, so that all kinds "
	                             "of bytes are there: head, tags, lengths, texts, padding, digest", &n);
	char *at = arena_alloc(&arena, n + 64);
	memcpy(at, entry, n);
	for (size_t bit = 0; bit < 8 * n; bit++) {
		at[bit / 8] ^= (char)(1 << bit % 8);
		assert_false(entry_is_whole(at, n));
		at[bit / 8] ^= (char)(1 << bit % 8);
	}
	for (size_t k = 0; k < n + 64; k++)
		assert_int_equal(entry_is_whole(at, k), k == n);
}

/* Bytes of head and lengths are changed and the digest made anew: whatever is read lies inside, which the
 * address sanitizer holds, since the entry is a block of its own. */
static void
nonsense_with_a_digest_reads_as_nothing(void **state)
{
	size_t n, k, whole = 0;
	(void)state;
	const void *entry = entry_of("a key", "a payload", &n);
	srand(1);
	for (unsigned edit = 0; edit < EDITS; edit++) {
		char *at = malloc(n);
		memcpy(at, entry, n);
		for (unsigned c = 0; c < 1 + edit % 3; c++)
			at[(size_t)rand() % (n - BLAKE2B_BYTES)] = (char)(rand() % 3 ? rand() % 4 : rand());
		blake2b(at, n - BLAKE2B_BYTES, (uint8_t *)at + n - BLAKE2B_BYTES);
		if (entry_is_whole(at, n)) {
			const char *part = entry_part(at, ENTRY_IMAGE, &k);
			whole++;
			assert_true(!part || (part > at && k <= (size_t)(at + n - part)));
			for (size_t i = 0; part && i < k; i++)
				*(volatile char *)(uintptr_t)(part + i) = part[i];
		}
		free(at);
	}
	assert_in_range(whole, EDITS / 100, EDITS * 9 / 10);
}

/* --- keys --- */

static void
keys_read_back(void **state)
{
	Diags files;
	Text key;
	KeyReader r;
	(void)state;
	diags_init(&files, &arena);
	diags_add_file(&files, "a.tex", "graph\n7 8\n", 10);
	diags_add_file(&files, "b.tex", "", 0);
	CacheKey k = {.target = "T", .graph = "g", .fp = FP_FAST, .fuse = FUSE_OFF, .files = &files,
	              .statics = (const char *const[]){"N=4"}, .nstatics = 1};
	static const char *const want[][2] = {{"target", "T"}, {"fp", "fast"}, {"fuse", "off"}, {"static", "N=4"}, {"graph", "g"},
	                                      {"file", "graph\n7 8\n"}, {"file", ""}};
	text_init(&key, &arena);
	key_write(&k, &key);
	key_open(&r, key.at, key.n);
	assert_true(key_next(&r));
	assert_memory_equal(r.name, "build", 5);
	assert_int_equal(r.value_bytes, 64);
	for (unsigned f = 0; f < sizeof want / sizeof *want; f++) {
		assert_true(key_next(&r));
		if (f == 0 && r.name_bytes == 3 && memcmp(r.name, "bug", 3) == 0) /* of a build that has some */
			assert_true(key_next(&r));
		assert_int_equal(r.name_bytes, strlen(want[f][0]));
		assert_memory_equal(r.name, want[f][0], r.name_bytes);
		assert_int_equal(r.value_bytes, strlen(want[f][1]));
		assert_memory_equal(r.value, want[f][1], r.value_bytes);
	}
	assert_false(key_next(&r));
	assert_int_equal(r.left, 0);
	for (size_t n = 0; n < key.n; n++) { /* no length of it reads beyond its end */
		char *cut = malloc(n ? n : 1);
		memcpy(cut, key.at, n);
		key_open(&r, cut, n);
		while (key_next(&r))
			assert_true(r.value + r.value_bytes < cut + n);
		free(cut);
	}
}

/* Kernels that differ in anything have other keys, which begin alike; the same has the same. */
static void
keys_of_kernels(void **state)
{
	static const LateKernel kernel[] = {{"kernel a {}", "a_0_0", 11, false, NULL, NULL}, {"kernel a {}", "a_0_0", 11, true, NULL, NULL},
	                                    {"kernel a {}", "a_0_1", 11, false, NULL, NULL}, {"kernel b {}", "a_0_0", 11, false, NULL, NULL},
	                                    {"kernel a {}", "a_0_0", 10, false, NULL, NULL}};
	const KernelKey k[] = {{"T", "", &kernel[0]}, {"T", "", &kernel[1]}, {"T", "", &kernel[2]}, {"T", "", &kernel[3]},
	                       {"T", "", &kernel[4]}, {"U", "", &kernel[0]}, {"T", "ptxas", &kernel[0]}, {"T", "ptxas 2", &kernel[0]}};
	enum { KEYS = sizeof k / sizeof *k };
	Text key[KEYS], again;
	(void)state;
	for (unsigned n = 0; n < KEYS; n++) {
		text_init(&key[n], &arena);
		kernel_key_write(&k[n], &key[n]);
		text_init(&again, &arena);
		kernel_key_write(&k[n], &again);
		assert_int_equal(key[n].n, again.n);
		assert_memory_equal(key[n].at, again.at, again.n);
		for (unsigned m = 0; m < n; m++)
			assert_false(key[m].n == key[n].n && memcmp(key[m].at, key[n].at, key[n].n) == 0);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(digests_are_published_ones, setup, teardown),
		cmocka_unit_test_setup_teardown(parts_come_back, setup, teardown),
		cmocka_unit_test_setup_teardown(every_bit_and_length_counts, setup, teardown),
		cmocka_unit_test_setup_teardown(nonsense_with_a_digest_reads_as_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(keys_read_back, setup, teardown),
		cmocka_unit_test_setup_teardown(keys_of_kernels, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
