/* cpu_x86.c: what this processor and its operating system can do, by CPUID and XCR0. */
#include <cpuid.h>

#include "runtime/inside.h"

enum { REG_EAX, REG_EBX, REG_ECX, REG_EDX };
enum { STATE_NONE = 0, STATE_AVX = 0x6, STATE_AVX512 = 0xe6, STATE_AMX = 0x60000 };

typedef struct {
	const char *text;
	uint32_t leaf, sub, reg, bit;
	uint64_t state;
} Feature;

static const Feature feature[] = {
#define FEATURE(id, text, leaf, sub, reg, bit, state) {text, leaf, sub, REG_##reg, bit, STATE_##state},
#include "ir/cpu_features.def"
};

enum { FEATURES = sizeof feature / sizeof *feature };

/* The register state the operating system saves; 0 when it doesn't say. */
static uint64_t
saved_state(void)
{
	uint32_t a, b, c, d;
	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c >> 27 & 1))
		return 0;
	uint32_t lo, hi;
	__asm__("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
	return (uint64_t)hi << 32 | lo;
}

static bool
has(const Feature *f, uint64_t state)
{
	uint32_t r[4];
	if (!__get_cpuid_count(f->leaf, f->sub, &r[0], &r[1], &r[2], &r[3]))
		return false;
	return (r[f->reg] >> f->bit & 1) && (state & f->state) == f->state;
}

const char *
cpu_lacks(uint64_t needs)
{
	uint64_t state = saved_state();
	if (needs >> FEATURES)
		return "a processor feature that this runtime doesn't know";
	for (unsigned k = 0; k < FEATURES; k++)
		if ((needs >> k & 1) && !has(&feature[k], state))
			return feature[k].text;
	return NULL;
}
