/* damage_test.c: artefacts that accidents or people have changed. A changed byte is always seen by the
 * digest; with the digest made right again, the file is opened or refused, and whatever is opened
 * can be asked about without touching memory outside. (It is not launched: an artefact is code.) */
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ir/image.h"
#include "tests/runtime/fixture.h"

static uint8_t *image;
static size_t bytes;
static texo_rt *rt;
static bool all;

static int
make(void **state)
{
	(void)state;
	image = fixture_image(&bytes);
	return texo_rt_create(NULL, &rt) != TEXO_OK;
}

static int
drop(void **state)
{
	(void)state;
	texo_rt_destroy(rt);
	free(image);
	return 0;
}

static void
redigest(uint8_t *p, size_t n)
{
	size_t from = offsetof(ImageHeader, digest) + 8;
	if (n < from)
		return;
	uint64_t h = image_digest(p + from, n - from);
	memcpy(p + from - 8, &h, 8);
}

/* Opens n bytes and asks everything that runs no code. Returns whether it was opened. */
static bool
explore(const uint8_t *p, size_t n)
{
	static const char *const name[] = {"first", "second", "turn", NULL};
	texo_program *program;
	texo_status s = texo_rt_load(rt, p, n, &program);
	if (s) {
		assert_int_equal(s, TEXO_BAD_ARTEFACT);
		assert_null(program);
		return false;
	}
	int64_t rows = 4;
	DLTensor code = {.device = {kDLCPU, 0}, .ndim = 1, .dtype = {kDLUInt, 32, 1}, .shape = &rows};
	for (unsigned k = 0; k < 4; k++) {
		texo_kernel *kernel;
		const char *json;
		size_t need;
		First f;
		first_init(&f);
		if (texo_program_get_kernel(program, name[k], &kernel))
			continue;
		assert_int_equal(texo_kernel_get_signature(kernel, &json), TEXO_OK);
		(void)strlen(json);
		(void)texo_kernel_workspace(kernel, f.arg, FIRST_ARGS, &need);
		(void)texo_kernel_workspace(kernel, f.arg, SECOND_ARGS, &need);
		f.shape_y[1] = 4;
		texo_arg turn[TURN_ARGS] = {f.arg[0], {.tensor = &code}, f.arg[6]};
		(void)texo_kernel_workspace(kernel, turn, TURN_ARGS, &need);
	}
	texo_program_destroy(program);
	return true;
}

static void
every_flip_is_seen(void **state)
{
	(void)state;
	assert_true(explore(image, bytes));
	for (size_t i = 0; i < bytes; i++)
		for (unsigned bit = 0; bit < 8; bit += all ? 1 : 3) {
			image[i] ^= (uint8_t)(1u << bit);
			assert_false(explore(image, bytes));
			image[i] ^= (uint8_t)(1u << bit);
		}
}

static void
every_truncation_is_seen(void **state)
{
	(void)state;
	for (size_t n = 0; n < bytes; n++) {
		uint8_t *p = malloc(n + 1); /* exactly n, for the sanitizer */
		assert_non_null(p);
		uint8_t *q = realloc(p, n ? n : 1);
		memcpy(q, image, n);
		assert_false(explore(q, n));
		if (n >= sizeof(ImageHeader)) {
			uint64_t length = n;
			memcpy(q + offsetof(ImageHeader, bytes), &length, 8);
			redigest(q, n);
			(void)explore(q, n);
		}
		free(q);
	}
}

/* An expression shares those before it: not itself, none that there isn't. */
static void
shared_values_have_an_order(void **state)
{
	(void)state;
	uint8_t *p = malloc(bytes);
	assert_non_null(p);
	memcpy(p, image, bytes);
	const ImageHeader *h = (const void *)p;
	ImageGraph *g = (void *)(p + h->graph.at);
	uint32_t *words = (void *)(p + h->words.at);
	assert_true(g->nshared > 0);
	uint32_t first = words[g->shared0], had = words[first];
	words[first] = IMG_SHARED;
	redigest(p, bytes);
	assert_false(explore(p, bytes));
	words[first] = had;
	g->nshared--;
	redigest(p, bytes);
	assert_false(explore(p, bytes));
	g->nshared++;
	redigest(p, bytes);
	assert_true(explore(p, bytes));
	free(p);
}

/* With the digest right: each byte, and each word of four and eight bytes, set to telling values. */
static void
the_validator_holds(void **state)
{
	(void)state;
	static const uint64_t word[] = {0, 1, 2, 7, 0x7f, 0x100, 0x7fffffff, 0x80000000, 0xffffffff,
	                                0xfffffffffffffff8, 0x8000000000000000, 0x7fffffffffffffff};
	size_t opened = 0, refused = 0;
	uint8_t *p = malloc(bytes);
	assert_non_null(p);
	memcpy(p, image, bytes);
	for (size_t i = 0; i < bytes; i += all ? 1 : 4)
		for (unsigned v = 0; v < sizeof word / sizeof *word; v++) {
			size_t size = i % 8 == 0 && word[v] > 0xffffffff ? 8 : i % 4 == 0 ? 4 : 1;
			if (i + size > bytes)
				continue;
			memcpy(p + i, &word[v], size);
			redigest(p, bytes);
			if (explore(p, bytes))
				opened++;
			else
				refused++;
			memcpy(p + i, image + i, size);
		}
	assert_true(refused > 1000 && opened > 1000);
	free(p);
}

/* With the digest right: a few random bytes at once, half of them small numbers. */
static void
random_edits(void **state)
{
	(void)state;
	uint64_t seed = 1;
	uint8_t *p = malloc(bytes);
	assert_non_null(p);
	for (unsigned turn = 0; turn < (all ? 100000 : 3000); turn++) {
		memcpy(p, image, bytes);
		seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		for (uint64_t n = seed >> 61, x = seed; n <= 7; n++) {
			x = (x ^ x >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
			p[(x >> 20) % bytes] = (uint8_t)(x >> 60 & 1 ? x & 7 : x & 255);
		}
		redigest(p, bytes);
		(void)explore(p, bytes);
	}
	free(p);
}

/* --- what the loader of the code refuses, by name --- */

/* A copy whose words at a place found in the object are changed; the load must fail and say so. */
static void
expect_refusal(size_t at, uint32_t value, const char *text)
{
	texo_program *program;
	uint8_t *p = malloc(bytes);
	assert_non_null(p);
	memcpy(p, image, bytes);
	memcpy(p + at, &value, 4);
	redigest(p, bytes);
	assert_int_equal(texo_rt_load(rt, p, bytes, &program), TEXO_BAD_ARTEFACT);
	if (!strstr(texo_last_error(), text))
		fail_msg("'%s' doesn't say '%s'", texo_last_error(), text);
	free(p);
}

typedef struct {
	size_t object, headers; /* offsets in the image */
	Elf64_Ehdr file;
} Object;

static Elf64_Shdr
section_of(const Object *o, unsigned n)
{
	Elf64_Shdr s;
	memcpy(&s, image + o->headers + n * sizeof s, sizeof s);
	return s;
}

static Object
find_object(void)
{
	ImageHeader h;
	Object o;
	memcpy(&h, image, sizeof h);
	o.object = h.code.at;
	memcpy(&o.file, image + o.object, sizeof o.file);
	o.headers = o.object + o.file.e_shoff;
	return o;
}

static void
code_is_refused(void **state)
{
	(void)state;
	Object o = find_object();
	unsigned relocations = 0, data = 0, symbols = 0;
	for (unsigned n = 0; n < o.file.e_shnum; n++) {
		Elf64_Shdr s = section_of(&o, n);
		if (s.sh_type == SHT_RELA && s.sh_size)
			relocations = n;
		if (s.sh_type == SHT_SYMTAB)
			symbols = n;
		if (s.sh_type == SHT_PROGBITS && (s.sh_flags & SHF_ALLOC) && !(s.sh_flags & SHF_EXECINSTR) && s.sh_size)
			data = n;
	}
	assert_true(relocations && data && symbols);
	size_t rela = o.object + section_of(&o, relocations).sh_offset, symbol = o.object + section_of(&o, symbols).sh_offset;
	Elf64_Rela r;
	memcpy(&r, image + rela, sizeof r);
	size_t used = symbol + ELF64_R_SYM(r.r_info) * sizeof(Elf64_Sym);
	size_t header = o.headers + data * sizeof(Elf64_Shdr);
	expect_refusal(rela + offsetof(Elf64_Rela, r_info), R_X86_64_GOTPCREL, "relocation of an unknown kind");
	expect_refusal(rela + offsetof(Elf64_Rela, r_info), R_X86_64_COPY, "relocation of an unknown kind");
	expect_refusal(rela + offsetof(Elf64_Rela, r_info) + 4, 100000, "a symbol that it doesn't define");
	expect_refusal(rela + offsetof(Elf64_Rela, r_info) + 4, 0, "a symbol that it doesn't define");
	expect_refusal(rela + offsetof(Elf64_Rela, r_offset), 0x7fffffff, "a relocation lies outside");
	expect_refusal(rela + offsetof(Elf64_Rela, r_addend) + 4, 0x100, "a relocation doesn't reach");
	expect_refusal(used + offsetof(Elf64_Sym, st_value) + 4, 1, "a symbol that it doesn't define");
	expect_refusal(header + offsetof(Elf64_Shdr, sh_flags), SHF_ALLOC | SHF_WRITE, "writable data");
	expect_refusal(header + offsetof(Elf64_Shdr, sh_size), 0x7fffffff, "a section lies outside");
	expect_refusal(header + offsetof(Elf64_Shdr, sh_addralign), 3, "a section is too large");
	expect_refusal(o.object, 0x7f454c45, "no x86-64 object");
	expect_refusal(o.object + offsetof(Elf64_Ehdr, e_type), EM_AARCH64 << 16 | ET_REL, "no x86-64 object");
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_flip_is_seen),
		cmocka_unit_test(every_truncation_is_seen),
		cmocka_unit_test(shared_values_have_an_order),
		cmocka_unit_test(the_validator_holds),
		cmocka_unit_test(random_edits),
		cmocka_unit_test(code_is_refused),
	};
	all = argc > 1 && strcmp(argv[1], "all") == 0;
	return cmocka_run_group_tests(tests, make, drop);
}
