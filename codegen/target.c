/* target.c: processors. LLVM's name for the host may lie under virtualisation, its feature list does
 * not, so the host's tuning name is chosen from features and the name only breaks ties. */
#include "codegen/target.h"

#include <llvm-c/Core.h>
#include <llvm-c/Support.h>
#include <llvm-c/Target.h>
#include <string.h>
#include <threads.h>

#include "codegen/codegen.h"
#include "ir/cpu_state.h"
#include "ir/text.h"

#define HAS(x) (UINT64_C(1) << FEATURE_##x)

#define SET_V1 UINT64_C(0)
#define SET_V2 (HAS(SSE3) | HAS(SSSE3) | HAS(SSE4_1) | HAS(SSE4_2) | HAS(CX16) | HAS(POPCNT))
#define SET_V3 (SET_V2 | HAS(AVX) | HAS(AVX2) | HAS(BMI) | HAS(BMI2) | HAS(F16C) | HAS(FMA) | HAS(LZCNT) | HAS(MOVBE))
#define SET_V4 (SET_V3 | HAS(AVX512F) | HAS(AVX512BW) | HAS(AVX512CD) | HAS(AVX512DQ) | HAS(AVX512VL))
#define SET_ICL \
	(SET_V4 | HAS(AVX512VBMI) | HAS(AVX512VBMI2) | HAS(AVX512IFMA) | HAS(AVX512VNNI) | \
	 HAS(AVX512BITALG) | HAS(AVX512VPOPCNTDQ) | HAS(GFNI))
#define SET_AMX (HAS(AMX_TILE) | HAS(AMX_INT8) | HAS(AMX_BF16))
#define SET_SPR (SET_ICL | HAS(AVX512BF16) | HAS(AVX512FP16) | HAS(AVXVNNI) | SET_AMX)
#define SET_ZEN4 (SET_ICL | HAS(AVX512BF16))
#define SET_ZEN5 (SET_ZEN4 | HAS(AVXVNNI))

static const char *const feature_text[FEATURE_COUNT] = {
#define FEATURE(id, text, leaf, sub, reg, bit, state) text,
#include "ir/cpu_features.def"
};

/* Loop strength reduction takes a third of a small kernel's compilation and finds little: addresses are
 * an index of the innermost loop plus what is hoisted; on a GPU it costs up to a fifth of the registers. Scheduling takes a twentieth before registers are
 * given and, which LLVM does for Zen only, a fifteenth after it: inner loops stay as long as they were, and
 * processors reorder them. Loads and stores of a GPU are as wide as they can be when they come here: looking for neighbours
 * to join takes a fourteenth of a transpose's compilation and finds none. LLVM is linked into us alone, so that its options are ours. They are the
 * process's: set before the first machine of any target, so that no code depends on what was compiled before. */
static void
set_options(void)
{
	static const char *const option[] = {"texo", "-disable-lsr", "-enable-misched=false", "-post-RA-scheduler=false",
	                                     "-disable-nvptx-load-store-vectorizer"};
	LLVMParseCommandLineOptions(sizeof option / sizeof *option, option, "");
}

static void
init_llvm(void)
{
	LLVMInitializeX86TargetInfo();
	LLVMInitializeX86Target();
	LLVMInitializeX86TargetMC();
	LLVMInitializeX86AsmPrinter();
	LLVMInitializeX86AsmParser(); /* the runtime asks for CPUID by inline assembly */
}

static bool
list_has(const char *list, const char *word)
{
	size_t n = strlen(word);
	for (const char *p = list; (p = strchr(p, '+')) != NULL; p++)
		if (strncmp(p + 1, word, n) == 0 && (p[n + 1] == ',' || p[n + 1] == 0))
			return true;
	return false;
}

static const char *
host_tune(uint64_t features, const char *name)
{
	static const struct {
		const char *tune;
		uint64_t set;
	} best_first[] = {{"sapphirerapids", SET_SPR}, {"icelake-server", SET_ICL}, {"skylake-avx512", SET_V4},
	                  {"haswell", SET_V3}, {"x86-64-v2", SET_V2}};
	static const char *const zen[] = {"znver3", "znver4", "znver5"};
	for (unsigned i = 0; i < sizeof zen / sizeof *zen; i++)
		if (strcmp(name, zen[i]) == 0)
			return zen[i];
	for (unsigned i = 0; i < sizeof best_first / sizeof *best_first; i++)
		if ((features & best_first[i].set) == best_first[i].set)
			return best_first[i].tune;
	return "x86-64";
}

/* What is asked of the processor stops a virtual machine each time, some fifty times: a fiftieth of a small kernel's
 * compilation. It stays as it was first found. */
static Target host;

static void
find_host(void)
{
	Target *t = &host;
	char *list = LLVMGetHostCPUFeatures(), *name = LLVMGetHostCPUName();
	for (unsigned f = 0; f < FEATURE_COUNT; f++)
		if (list_has(list, feature_text[f]))
			t->features |= UINT64_C(1) << f;
	t->tune = host_tune(t->features, name);
	if ((t->features & SET_AMX) && !cpu_tiles_granted())
		t->features &= ~SET_AMX;
	LLVMDisposeMessage(list);
	LLVMDisposeMessage(name);
}

bool
target_named(const char *cpu, Target *t)
{
	if (!cpu || strcmp(cpu, "host") == 0) {
		static once_flag once = ONCE_FLAG_INIT;
		call_once(&once, find_host);
		*t = host;
		return true;
	}
	const struct {
		const char *name;
		uint64_t set;
	} row[] = {
#define CPU(name, set) {name, set},
#include "codegen/cpus.def"
	};
	for (unsigned i = 0; i < sizeof row / sizeof *row; i++)
		if (strcmp(cpu, row[i].name) == 0) {
			*t = (Target){.tune = row[i].name, .features = row[i].set};
			return true;
		}
	return target_sm_named(cpu, t);
}

const char *
target_names(Arena *a)
{
	static const char *const name[] = {
#define CPU(text, set) text,
#include "codegen/cpus.def"
	};
	Text out;
	text_init(&out, a);
	text_printf(&out, "host");
	for (unsigned i = 0; i < sizeof name / sizeof *name; i++)
		text_printf(&out, ", %s", name[i]);
	return text_get(&out);
}

const char *
target_feature_string(const Target *t, Arena *a)
{
	Text out;
	text_init(&out, a);
	for (unsigned f = 0; f < FEATURE_COUNT; f++)
		if (target_has(t, f))
			text_printf(&out, "%s+%s", out.n ? "," : "", feature_text[f]);
	if (target_has(t, FEATURE_AVX512F))
		text_printf(&out, ",-prefer-256-bit");
	return text_get(&out);
}

const char *
target_feature_words(uint64_t set, Arena *a)
{
	Text out;
	text_init(&out, a);
	for (unsigned f = 0; f < FEATURE_COUNT; f++)
		if (set >> f & 1)
			text_printf(&out, "%s%s", out.n ? " " : "", feature_text[f]);
	return text_get(&out);
}

uint16_t
target_lanes(const Target *t)
{
	if (t->arch == ARCH_NVPTX)
		return 32; /* a warp: blocks have vectors of their own lengths */
	return target_has(t, FEATURE_AVX512F) ? 16 : target_has(t, FEATURE_AVX) ? 8 : 4;
}

LLVMTargetMachineRef
target_machine(const Target *t, int level, Arena *a, const char **why)
{
	static once_flag options = ONCE_FLAG_INIT, once = ONCE_FLAG_INIT;
	call_once(&options, set_options);
	if (t->arch == ARCH_NVPTX)
		return target_machine_nvptx(t, level, why);
	call_once(&once, init_llvm);
	LLVMTargetRef x86;
	char *message = NULL;
	if (LLVMGetTargetFromTriple("x86_64-unknown-linux-gnu", &x86, &message)) {
		*why = "LLVM was built without its x86-64 target";
		LLVMDisposeMessage(message);
		return NULL;
	}
	LLVMCodeGenOptLevel at = (LLVMCodeGenOptLevel)level;
	if (at > LLVMCodeGenLevelLess) /* what comes above copies the ends of blocks: inner loops stay as they are */
		at = LLVMCodeGenLevelLess;
	LLVMTargetMachineRef tm = LLVMCreateTargetMachine(x86, "x86_64-unknown-linux-gnu", "x86-64",
		target_feature_string(t, a), at, LLVMRelocPIC, LLVMCodeModelSmall);
	if (!tm)
		*why = "LLVM has no machine for this target";
	return tm;
}

TargetOffer
codegen_target_offer(const char *cpu)
{
	Target t;
	if (!target_named(cpu, &t))
		t = (Target){.tune = "x86-64", .features = SET_V1};
	bool gpu = t.arch == ARCH_NVPTX;
	bool tiles = target_has(&t, FEATURE_AMX_TILE) && target_has(&t, FEATURE_AMX_BF16);
	bool vectors = target_has(&t, FEATURE_AVX512F) && target_has(&t, FEATURE_AVX512BF16);
	return (TargetOffer){.lanes = target_lanes(&t), .blocks = gpu, .cluster = t.cluster, .roles = t.roles, .warp_mma = gpu, .fma = gpu || target_has(&t, FEATURE_FMA),
	                     .scale = target_has(&t, FEATURE_AVX512VL), .masks = target_has(&t, FEATURE_AVX512F), .pick = target_has(&t, FEATURE_AVX2),
	                     .ex2 = gpu, .fp8 = target_converts_fp8(&t), .halves = target_has(&t, FEATURE_F16C),
	                     .dot = tiles ? TIR_DOT_TILES : vectors ? TIR_DOT_VECTORS : TIR_NO_DOT};
}

const char *
codegen_target_text(Arena *a, const char *cpu)
{
	Target t;
	unsigned major, minor, patch;
	if (!target_named(cpu, &t))
		return NULL;
	LLVMGetVersion(&major, &minor, &patch);
	return arena_text(a, "LLVM %u.%u.%u, %s: %s", major, minor, patch, t.tune,
	                  target_feature_words(t.features, a));
}

const char *
codegen_host_summary(Arena *a)
{
	return codegen_target_text(a, "host");
}

const char *
codegen_cpu_names(Arena *a)
{
	return target_names(a);
}

const char *
codegen_sm_names(Arena *a)
{
	return target_sm_names(a);
}
