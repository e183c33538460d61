/* c_header.c: the C header of graphs compiled ahead of time: C99 and C++, in need of no other file of
 * texo's. Its text depends on the program and the target alone. */
#include "codegen/c_signature.h"

#include <inttypes.h>

#include "codegen/image_write.h"
#include "ir/gpu_facts.h"

static const char about_cpu[] =
	" * int GRAPH(arrays and scalars..., results..., dims..., workspace)\n"
	" *     runs the graph. Arrays are row-major and contiguous; none that is written may overlap another.\n"
	" *     workspace is GRAPH_workspace(dims...) bytes, aligned to 64; NULL will do for 0 bytes.\n"
	" * int GRAPH_dl(args, n, stream)\n"
	" *     the same for DLPack tensors, n inputs then results, of any strides; scalars are tensors of rank 0,\n"
	" *     stream is NULL. It takes its workspace from malloc.\n"
	" * size_t GRAPH_workspace(dims...)\n"
	" *     (size_t)-1 when the sizes are wrong.\n"
	" *\n";

static const char about_gpu[] =
	" * int GRAPH_cuda(arrays and scalars..., results..., dims..., workspace, stream)\n"
	" *     puts the graph on a CUDA stream (a CUstream or cudaStream_t; NULL is the default one) of the GPU whose\n"
	" *     context is the calling thread's, or without one of the first, and doesn't wait for it. Arrays and\n"
	" *     workspace are the device's, as large as on the processor. The first call loads the code.\n"
	" * int GRAPH_cuda_status(void)\n"
	" *     once the stream was waited for: how the last launch there ended.\n"
	" * size_t GRAPH_workspace(dims...)\n"
	" *     bytes that are enough wherever the code runs; (size_t)-1 when the sizes are wrong.\n"
	" * int GRAPH_dl(args, n, stream)\n"
	" *     for DLPack tensors, n inputs then results, of any strides, on a GPU or, where there is code for it,\n"
	" *     the processor; scalars are tensors of rank 0 in the processor's memory.\n"
	" *\n";

static const char about_both[] =
	" * The functions may be called from many threads at the same time. They return 0 when all is well; 1: an\n"
	" * argument is wrong; 3: a fact that the program states does not hold; 4: a subscript that was read from\n"
	" * data lay outside, and results are unspecified; 5: out of memory; 6: the processor lacks what the code\n"
	" * needs, or there is no GPU; 7: the GPU's context is lost; 8: the GPU can't run the code; 11: a size is too\n"
	" * large.\n"
	" *\n"
	" * f16 and bf16 are uint16_t; f8, e8m0 and 4-bit types uint8_t, two 4-bit elements to a byte, the first\n"
	" * in the low half; c64 is texo_c64. */\n";

/* As in include/texo_rt.h; a test compares the two. */
static const char dlpack[] =
	"/* DLPack 1.x tensor layout (dmlc/dlpack), declared here so that no other header is needed. */\n"
	"#if !defined(DLPACK_DLPACK_H_) && !defined(TEXO_DLPACK)\n"
	"#define TEXO_DLPACK\n"
	"typedef enum { kDLCPU = 1, kDLCUDA = 2, kDLCUDAHost = 3 } DLDeviceType;\n"
	"typedef struct { DLDeviceType device_type; int32_t device_id; } DLDevice;\n"
	"typedef enum {\n"
	"\tkDLInt = 0, kDLUInt = 1, kDLFloat = 2, kDLOpaqueHandle = 3, kDLBfloat = 4, kDLComplex = 5, kDLBool = 6,\n"
	"\tkDLFloat8_e4m3fn = 10, kDLFloat8_e5m2 = 12, kDLFloat8_e8m0fnu = 14, kDLFloat4_e2m1fn = 17\n"
	"} DLDataTypeCode;\n"
	"typedef struct { uint8_t code; uint8_t bits; uint16_t lanes; } DLDataType;\n"
	"typedef struct {\n"
	"\tvoid *data;\n"
	"\tDLDevice device;\n"
	"\tint32_t ndim;\n"
	"\tDLDataType dtype;\n"
	"\tint64_t *shape;\n"
	"\tint64_t *strides; /* in elements; NULL: row-major contiguous */\n"
	"\tuint64_t byte_offset;\n"
	"} DLTensor;\n"
	"#endif\n";

static const char c64[] =
	"#ifndef TEXO_C64\n#define TEXO_C64\ntypedef struct { float re, im; } texo_c64;\n#endif\n";

static const char *
c_type(Arena *a, DType t)
{
	unsigned bits = dtype_info[t].bits;
	switch (dtype_info[t].kind) {
	case KIND_FLOAT:
		return bits == 64 ? "double" : bits == 32 ? "float" : bits == 16 ? "uint16_t" : "uint8_t";
	case KIND_INT:
		return bits < 8 ? "uint8_t" : arena_text(a, "int%u_t", bits);
	case KIND_UINT:
		return bits < 8 ? "uint8_t" : arena_text(a, "uint%u_t", bits);
	case KIND_BOOL:
		return "bool";
	case KIND_COMPLEX:
		break;
	}
	return "texo_c64";
}

static void
put_arg(Text *out, const CArg *a)
{
	switch (a->kind) {
	case CARG_DATA:
		text_printf(out, "%s%s *%s", a->is_const ? "const " : "", c_type(out->arena, a->dtype), a->name);
		break;
	case CARG_VALUE:
		text_printf(out, "%s %s", c_type(out->arena, a->dtype), a->name);
		break;
	case CARG_DIM:
		text_printf(out, "int64_t %s", a->name);
		break;
	case CARG_WORKSPACE:
	case CARG_STREAM:
		text_printf(out, "void *%s", a->name);
		break;
	}
}

static void
put_args(Text *out, const CArg *a, uint32_t n)
{
	text_printf(out, n ? "(" : "(void");
	for (uint32_t k = 0; k < n; k++) {
		text_printf(out, k ? ", " : "");
		put_arg(out, &a[k]);
	}
	text_printf(out, ");\n");
}

/* "x: f32[N, M]", under the name that the argument has in C. */
static void
put_tensor(Text *out, const Graph *g, const CArg *a, TensorId id)
{
	const Tensor *t = &g->tensor.at[id];
	text_printf(out, "%s%s: %s", t->kind == TENSOR_INOUT ? "inout " : "", a->name, dtype_info[t->dtype].text);
	signature_shape(g, t, out);
}

static void
put_functions(Text *out, const CSignature *s, bool cpu, bool gpu)
{
	Arena *a = out->arena;
	if (cpu) {
		text_printf(out, "int %s", s->name);
		put_args(out, s->call.at, s->call.n);
	}
	if (gpu) {
		CArg *with = ARENA_ARRAY(a, CArg, s->call.n + 1);
		for (uint32_t k = 0; k < s->call.n; k++)
			with[k] = s->call.at[k];
		with[s->call.n] = s->stream;
		text_printf(out, "int %s_cuda", s->name);
		put_args(out, with, s->call.n + 1);
		text_printf(out, "int %s_cuda_status(void);\n", s->name);
	}
	text_printf(out, "int %s_dl(const DLTensor *const *args, size_t n, void *stream);\n", s->name);
	text_printf(out, "size_t %s_workspace", s->name);
	put_args(out, s->sizes.at, s->sizes.n);
	text_printf(out, "extern const char %s_signature_json[];\n", s->name);
}

static void
put_graph(Text *out, const CSignature *s, bool cpu, bool gpu)
{
	const Graph *g = s->graph;
	uint32_t word = g->param.n, first = true;
	text_printf(out, "\n/* %s(", s->name);
	for (uint32_t k = 0; k < g->param.n; k++) {
		text_printf(out, k ? ", " : "");
		put_tensor(out, g, &s->call.at[k], g->param.at[k]);
	}
	text_printf(out, ") -> (");
	for (uint32_t k = 0; k < g->result.n; k++) {
		if (g->result.at[k].inout)
			continue;
		text_printf(out, first ? "" : ", ");
		put_tensor(out, g, &s->call.at[word++], g->result.at[k].tensor);
		first = false;
	}
	text_printf(out, ")");
	for (DimId d = 1; d < g->dim.n; d++)
		if (g->dim.at[d].fixed && dim_is_users(g, d))
			text_printf(out, ", %s = %" PRId64, name_text(g->names, g->dim.at[d].name), g->dim.at[d].value);
	text_printf(out, " */\n");
	put_functions(out, s, cpu, gpu);
}

static bool
has_complex(const CSignature *s, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++)
		for (uint32_t i = 0; i < s[k].call.n; i++)
			if (s[k].call.at[i].kind <= CARG_VALUE && s[k].call.at[i].dtype == DT_C64)
				return true;
	return false;
}

/* A guard must differ from other headers' and not depend on where this one is written. */
static uint64_t
digest(const char *p, size_t n)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);
	for (size_t i = 0; i < n; i++)
		h = (h ^ (unsigned char)p[i]) * UINT64_C(0x100000001b3);
	return h;
}

const char *
c_header(Arena *a, const CSignature *s, uint32_t n, const char *levels, bool cpu, bool gpu)
{
	Text out, body;
	text_init(&out, a);
	text_init(&body, a);
	for (uint32_t k = 0; k < n; k++)
		put_graph(&body, &s[k], cpu, gpu);
	uint64_t guard = digest(text_get(&body), body.n);
	text_printf(&out, "/* Made by texo, for %s.\n *\n%s%s%s", levels, cpu ? about_cpu : "", gpu ? about_gpu : "", about_both);
	text_printf(&out, "#ifndef TEXO_%016" PRIX64 "\n#define TEXO_%016" PRIX64 "\n\n", guard, guard);
	text_printf(&out, "#include <stdbool.h>\n#include <stddef.h>\n#include <stdint.h>\n\n%s%s\n", dlpack,
	            has_complex(s, n) ? c64 : "");
	text_printf(&out, "#ifdef __cplusplus\nextern \"C\" {\n#endif\n");
	text_add(&out, text_get(&body), body.n);
	text_printf(&out, "\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
	return text_get(&out);
}
