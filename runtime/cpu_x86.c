/* cpu_x86.c: what this processor and its operating system can do, by CPUID, XCR0 and what Linux grants
 * this process. */
#include <cpuid.h>

#include "ir/cpu_state.h"
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
static const uint64_t KNOWN = UINT64_C(1) << 63; /* no feature's bit */

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

static uint64_t
detect(void)
{
	uint64_t state = saved_state(), found = 0;
	if ((state & STATE_AMX) && !cpu_tiles_granted())
		state &= ~(uint64_t)STATE_AMX;
	for (unsigned k = 0; k < FEATURES; k++)
		if (has(&feature[k], state))
			found |= UINT64_C(1) << k;
	return found;
}

/* CPUID takes long on a virtual machine, so the answer is kept; threads that ask at the same time for the
 * first time find the same. */
static uint64_t
features(void)
{
	static _Atomic uint64_t kept;
	uint64_t f = atomic_load_explicit(&kept, memory_order_relaxed);
	if (f)
		return f;
	f = detect() | KNOWN;
	atomic_store_explicit(&kept, f, memory_order_relaxed);
	return f;
}

const char *
cpu_lacks(uint64_t needs)
{
	uint64_t missing = needs & ~features();
	if (needs >> FEATURES)
		return "a processor feature that this runtime doesn't know";
	for (unsigned k = 0; k < FEATURES; k++)
		if (missing >> k & 1)
			return feature[k].text;
	return NULL;
}
