/* hostile_test.c: wrong arguments to every function: a status, a text that names the argument, and no
 * result. What a launch refuses is in tests/runtime/launch_test.c; here is what a caller of the whole
 * library meets too. */
#include "tests/library/fixture.h"
#include "tests/runtime/refused.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static texo_ctx *ctx;
static texo_module *module;
static const char text[] = "graph g(x: f32[N, M], k: i32) -> (y: f32[N, M]) { y[i, j] = x[i, j] * k }\n";

static int
setup(void **state)
{
	(void)state;
	return texo_ctx_create(NULL, &ctx) != TEXO_OK || !(module = fixture_compile(ctx, text));
}

static int
teardown(void **state)
{
	(void)state;
	texo_module_destroy(module);
	texo_ctx_destroy(ctx);
	return 0;
}

/* --- contexts --- */

static void *
no_alloc(void *user, size_t n)
{
	(void)user;
	(void)n;
	return NULL;
}

static void
context_options(void **state)
{
	(void)state;
	texo_ctx *made = ctx;
	texo_ctx_options o = TEXO_INIT(texo_ctx_options);
	REFUSED(texo_ctx_create(&o, NULL), TEXO_INVALID, "out is NULL");
	o.struct_size = 0;
	REFUSED(texo_ctx_create(&o, &made), TEXO_INVALID, "options: struct_size is 0");
	assert_null(made);
	o.struct_size = 40;
	REFUSED(texo_ctx_create(&o, &made), TEXO_INVALID, "options: struct_size is 40");
	o.struct_size = UINT32_MAX;
	REFUSED(texo_ctx_create(&o, &made), TEXO_INVALID, "options: struct_size is 4294967295");
	o = TEXO_INIT(texo_ctx_options);
	o.alloc = no_alloc;
	REFUSED(texo_ctx_create(&o, &made), TEXO_INVALID, "options: alloc, resize and release");
	o = TEXO_INIT(texo_ctx_options);
	o.isolation = 7;
	REFUSED(texo_ctx_create(&o, &made), TEXO_INVALID, "options: isolation is 7");
	o.isolation = 0;
	o.reserved = 1;
	REFUSED(texo_ctx_create(&o, &made), TEXO_INVALID, "options: reserved");
	o.reserved = 0;
	o.worker_seconds = 4000;
	REFUSED(texo_ctx_create(&o, &made), TEXO_INVALID, "options: worker_seconds is 4000");
}

/* What a later release's caller sends: fine while its new fields are zero. */
static void
later_structs(void **state)
{
	(void)state;
	struct {
		texo_ctx_options known;
		uint64_t later;
	} o = {.known = {.struct_size = sizeof o}};
	texo_ctx *made;
	assert_int_equal(texo_ctx_create(&o.known, &made), TEXO_OK);
	texo_ctx_destroy(made);
	o.later = 1;
	REFUSED(texo_ctx_create(&o.known, &made), TEXO_INVALID, "options: struct_size");
	struct {
		texo_rt_options known;
		uint64_t later;
	} r = {.known = {.struct_size = sizeof r}, .later = 1};
	texo_rt *rt;
	REFUSED(texo_rt_create(&r.known, &rt), TEXO_INVALID, "options: struct_size");
}

/* --- compiling --- */

static texo_status
compile(const texo_options *o)
{
	texo_module *m = module;
	texo_status s = texo_compile_string(ctx, text, sizeof text - 1, "a.tex", o, &m);
	assert_null(m);
	return s;
}

static void
compile_arguments(void **state)
{
	(void)state;
	texo_module *m = module;
	REFUSED(texo_compile_string(ctx, text, 5, NULL, NULL, NULL), TEXO_INVALID, "out is NULL");
	REFUSED(texo_compile_string(NULL, text, 5, NULL, NULL, &m), TEXO_INVALID, "ctx is NULL");
	assert_null(m);
	REFUSED(texo_compile_string(ctx, NULL, 5, NULL, NULL, &m), TEXO_INVALID, "src is NULL");
	REFUSED(texo_compile_string(ctx, text, SIZE_MAX, NULL, NULL, &m), TEXO_LIMIT, "len is 18446744073709551615");
	REFUSED(texo_compile_file(ctx, NULL, NULL, &m), TEXO_INVALID, "path is NULL");
	REFUSED(texo_compile_file(NULL, "a", NULL, &m), TEXO_INVALID, "ctx is NULL");
	REFUSED(texo_compile_file(ctx, "a", NULL, NULL), TEXO_INVALID, "out is NULL");
	REFUSED(texo_compile_file(ctx, "/nowhere/a.tex", NULL, &m), TEXO_IO, "path: cannot read /nowhere/a.tex");
	REFUSED(texo_compile_file(ctx, "-", NULL, &m), TEXO_IO, "path: cannot read -"); /* no standard input */
	assert_int_equal(texo_compile_string(ctx, NULL, 0, NULL, NULL, &m), TEXO_OK); /* nothing is a program */
	texo_module_destroy(m);
}

static void
compile_options(void **state)
{
	(void)state;
	texo_options o = TEXO_INIT(texo_options);
	o.struct_size = 3;
	REFUSED(compile(&o), TEXO_INVALID, "options: struct_size is 3");
	o = TEXO_INIT(texo_options);
	o.target = "gpu";
	REFUSED(compile(&o), TEXO_INVALID, "options: target is 'gpu'");
	o.target = "cpu:z80";
	REFUSED(compile(&o), TEXO_INVALID, "options: target is 'cpu:z80'; the processors are host, ");
	o.target = "cuda:sm_1";
	REFUSED(compile(&o), TEXO_INVALID, "options: target is 'cuda:sm_1'; the GPUs are sm_90a");
	o = TEXO_INIT(texo_options);
	o.fp = "sloppy";
	REFUSED(compile(&o), TEXO_INVALID, "options: fp is 'sloppy'");
	o = TEXO_INIT(texo_options);
	o.fuse = "some";
	REFUSED(compile(&o), TEXO_INVALID, "options: fuse is 'some'");
	o = TEXO_INIT(texo_options);
	o.flags = 1u << 31;
	REFUSED(compile(&o), TEXO_INVALID, "options: flags has unknown bits: 0x80000000");
}

static void
compile_statics(void **state)
{
	(void)state;
	static const char *const bad[] = {"", "N", "N=", "=4", "N=-1", "N=4x", "N = 4", "N=99999999999999999999"};
	texo_options o = TEXO_INIT(texo_options);
	texo_module *m;
	o.nstatics = 1;
	REFUSED(compile(&o), TEXO_INVALID, "options: statics is NULL");
	for (unsigned k = 0; k < sizeof bad / sizeof *bad; k++) {
		o.statics = &bad[k];
		REFUSED(compile(&o), TEXO_INVALID, "options: statics[0] is '");
	}
	const char *list[] = {"N=4", NULL}, *twice[] = {"N=4", "M=7", "N=04", "N=5"};
	o.statics = twice;
	o.nstatics = 4;
	REFUSED(compile(&o), TEXO_INVALID, "options: statics[0] is 'N=4', and statics[3] is 'N=5'");
	o.nstatics = 3;
	assert_int_equal(texo_compile_string(ctx, text, sizeof text - 1, NULL, &o, &m), TEXO_OK);
	texo_module_destroy(m);
	o.statics = list;
	o.nstatics = 2;
	REFUSED(compile(&o), TEXO_INVALID, "options: statics[1] is NULL");
	o.nstatics = SIZE_MAX;
	REFUSED(compile(&o), TEXO_INVALID, "options: nstatics");
	list[0] = "Q=4"; /* well-formed, and about no dim of the program: the program's diagnostics say so */
	o.nstatics = 1;
	assert_int_equal(texo_compile_string(ctx, text, sizeof text - 1, NULL, &o, &m), TEXO_COMPILE_ERROR);
	texo_module_destroy(m);
}

/* Texts that are no programs end with diagnostics. */
static void
hostile_texts(void **state)
{
	(void)state;
	enum { N = 100000 };
	char *long_text = malloc(N);
	texo_module *m;
	const char *const fill[] = {"(", "-", "[", "a", "1", "\"", "\n", "\377", "graph g("};
	for (unsigned k = 0; k < sizeof fill / sizeof *fill; k++) {
		size_t n = strlen(fill[k]);
		for (size_t i = 0; i + n <= N; i += n)
			memcpy(long_text + i, fill[k], n);
		texo_status s = texo_compile_string(ctx, long_text, N / n * n, "hostile", NULL, &m);
		assert_int_equal(s, *fill[k] == '\n' ? TEXO_OK : TEXO_COMPILE_ERROR);
		assert_true(s == TEXO_OK || texo_module_diagnostic_count(m) > 0);
		texo_module_destroy(m);
	}
	memset(long_text, 0, N);
	assert_int_equal(texo_compile_string(ctx, long_text, N, "zeros", NULL, &m), TEXO_COMPILE_ERROR);
	texo_module_destroy(m);
	free(long_text);
}

/* --- modules --- */

static void
module_arguments(void **state)
{
	(void)state;
	texo_diagnostic d = TEXO_INIT(texo_diagnostic);
	texo_kernel *k = (texo_kernel *)&d;
	const void *bytes = &d;
	size_t n = 1;
	assert_int_equal(texo_module_diagnostic_count(NULL), 0);
	REFUSED(texo_module_get_diagnostic(NULL, 0, &d), TEXO_INVALID, "module is NULL");
	REFUSED(texo_module_get_diagnostic(module, 0, NULL), TEXO_INVALID, "out is NULL");
	REFUSED(texo_module_get_diagnostic(module, 0, &d), TEXO_INVALID, "i is 0");
	d.struct_size = 1;
	REFUSED(texo_module_get_diagnostic(module, 0, &d), TEXO_INVALID, "out: struct_size is 1");
	REFUSED(texo_module_emit(NULL, "tg", &bytes, &n), TEXO_INVALID, "module is NULL");
	assert_true(!bytes && !n);
	REFUSED(texo_module_emit(module, NULL, &bytes, &n), TEXO_INVALID, "kind is NULL");
	REFUSED(texo_module_emit(module, "tg", NULL, &n), TEXO_INVALID, "bytes is NULL");
	REFUSED(texo_module_emit(module, "tg", &bytes, NULL), TEXO_INVALID, "n is NULL");
	REFUSED(texo_module_emit(module, "mlir", &bytes, &n), TEXO_INVALID, "kind is 'mlir'");
	REFUSED(texo_module_get_kernel(NULL, NULL, &k), TEXO_INVALID, "module is NULL");
	assert_null(k);
	REFUSED(texo_module_get_kernel(module, NULL, NULL), TEXO_INVALID, "out is NULL");
	REFUSED(texo_module_get_kernel(module, "h", &k), TEXO_NOT_FOUND, "h");
	texo_module_destroy(NULL);
	texo_ctx_destroy(NULL);
}

/* --- launches --- */

typedef struct {
	DLTensor tensor[2];
	int64_t shape[2][2], stride[2];
	int32_t k;
	texo_arg arg[3];
	float memory[64];
} Call;

static texo_status
launch(Call *c)
{
	texo_kernel *k;
	assert_int_equal(texo_module_get_kernel(module, NULL, &k), TEXO_OK);
	return texo_kernel_launch(k, c->arg, 3, NULL, NULL);
}

static void
prepare(Call *c)
{
	memset(c, 0, sizeof *c);
	for (int t = 0; t < 2; t++) {
		c->shape[t][0] = c->shape[t][1] = 4;
		c->tensor[t] = (DLTensor){.data = c->memory + 32 * t, .device = {kDLCPU, 0}, .ndim = 2, .dtype = {kDLFloat, 32, 1},
		                          .shape = c->shape[t]};
	}
	c->k = 3;
	c->arg[0].tensor = &c->tensor[0];
	c->arg[1].scalar = &c->k;
	c->arg[2].tensor = &c->tensor[1];
}

static void
launch_arguments(void **state)
{
	(void)state;
	Call c;
	prepare(&c);
	assert_int_equal(launch(&c), TEXO_OK);
	c.tensor[0].dtype.bits = 64;
	REFUSED(launch(&c), TEXO_INVALID, "argument x: the dtype is f64");
	prepare(&c);
	c.tensor[1].ndim = 3;
	REFUSED(launch(&c), TEXO_INVALID, "argument y: the rank is 3");
	prepare(&c);
	c.tensor[1].device.device_type = kDLCUDA;
	REFUSED(launch(&c), TEXO_INVALID, "argument y: the tensor is not in this processor's memory");
	prepare(&c);
	c.tensor[1].data = c.memory + 8;
	REFUSED(launch(&c), TEXO_INVALID, "argument y is written and shares memory with argument x");
	prepare(&c);
	c.tensor[0].byte_offset = 2;
	REFUSED(launch(&c), TEXO_INVALID, "argument x: the data is not aligned");
	prepare(&c);
	c.shape[0][0] = c.shape[0][1] = c.shape[1][0] = c.shape[1][1] = INT64_C(1) << 40;
	REFUSED(launch(&c), TEXO_INVALID, "argument x: the number of elements overflows");
	prepare(&c);
	c.stride[0] = INT64_MAX / 2;
	c.stride[1] = 1;
	c.tensor[0].strides = c.stride;
	REFUSED(launch(&c), TEXO_INVALID, "argument x: its strides reach outside");
	prepare(&c);
	c.arg[1].scalar = NULL;
	REFUSED(launch(&c), TEXO_INVALID, "argument k: a scalar is expected");
	prepare(&c);
	c.arg[0].tensor = NULL;
	REFUSED(launch(&c), TEXO_INVALID, "argument x: a tensor is expected");
}

/* What a graph takes for granted of its dims is checked: a value below 0 would reach outside of x. */
static void
launch_dims(void **state)
{
	(void)state;
	static const char dims[] = "graph g(x: f32[K], m: i64) -> (y: f32[m], z: f32) where m + 3 < K {\n"
	                           "  y[i] = 1\n  z = x[m + 3]\n}\n"
	                           "graph h(x: f32[T*B + 1], b: f32[B]) -> (y: f32[T, B]) { y[t, j] = x[t*B + j + 1] }\n";
	float x[16] = {0, 1, 2, 3, 4, 5, 6}, y[16], z;
	int64_t n = 7, b = 3, m, rows[2] = {2, 3}, big = 16;
	DLTensor tx = {.data = x, .device = {kDLCPU, 0}, .ndim = 1, .dtype = {kDLFloat, 32, 1}, .shape = &n}, ty = tx, tz = tx, tb = tx;
	texo_arg g_arg[4] = {{.tensor = &tx}, {.scalar = &m}, {.tensor = &ty}, {.tensor = &tz}};
	texo_arg h_arg[3] = {{.tensor = &tx}, {.tensor = &tb}, {.tensor = &ty}};
	texo_module *made = fixture_compile(ctx, dims);
	texo_kernel *g, *h;
	assert_int_equal(texo_module_get_kernel(made, "g", &g), TEXO_OK);
	assert_int_equal(texo_module_get_kernel(made, "h", &h), TEXO_OK);
	ty.data = y;
	ty.shape = &big;
	tz.data = &z;
	tz.ndim = 0;
	for (m = -1; m > -1000000; m *= 10)
		REFUSED(texo_kernel_launch(g, g_arg, 4, NULL, NULL), TEXO_INVALID, "argument m: the value is -1");
	m = 3;
	big = 3;
	assert_int_equal(texo_kernel_launch(g, g_arg, 4, NULL, NULL), TEXO_OK);
	assert_true(z == 6);
	tb.shape = &b;
	tb.data = x + 8;
	ty.ndim = 2;
	ty.shape = rows;
	assert_int_equal(texo_kernel_launch(h, h_arg, 3, NULL, NULL), TEXO_OK);
	assert_true(y[0] == 1 && y[5] == 6);
	n = 8;
	REFUSED(texo_kernel_launch(h, h_arg, 3, NULL, NULL), TEXO_INVALID,
	        "argument x: axis 0 has length 8, which is not 3*T + 1 for any T >= 0");
	n = 1;
	b = rows[1] = 0;
	REFUSED(texo_kernel_launch(h, h_arg, 3, NULL, NULL), TEXO_INVALID,
	        "argument x: axis 0 has length 1, which doesn't say what T is");
	texo_module_destroy(made);
}

/* Facts and lengths are of integers: what holds only because 64 bits wrap would reach outside of x. */
static void
launch_sizes_that_wrap(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		int64_t good, bad;
		texo_status status;
		const char *words;
	} cases[] = {
		{"graph g(x: u8[8], m: i64) -> (y: i64) where m >= 0 && 4*m <= 8 { y = sum[i in 0..m](i64(x[4*i])) }\n", 2,
		 INT64_C(1) << 62, TEXO_CHECK_FAILED, "4*m <= 8"},
		{"graph g(x: u8[8], m: i64) -> (y: i64) where abs(m) < 8 { y = i64(x[abs(m)]) }\n", -7, INT64_MIN, TEXO_CHECK_FAILED,
		 "abs(m) < 8"},
		{"graph g(x: u8[8], m: i64) -> (y: i64) where m > 1 && m**4 <= 256 { y = i64(x[m]) }\n", 4, INT64_C(1) << 16,
		 TEXO_CHECK_FAILED, "m**4 <= 256"},
		{"graph g(x: u8[4*m], m: i64) -> (y: i64) where m > 0 { y = i64(x[4*m - 1]) }\n", 2, INT64_C(1) << 62,
		 TEXO_LIMIT, "argument x: the length of axis 0 overflows"},
		{"graph g(x: u8[8], m: i64) -> (y: i64) where u64(m) * 3 < 100 { y = i64(x[7]) }\n", 33, INT64_C(1) << 40,
		 TEXO_CHECK_FAILED, "u64(m) * 3 < 100"},
	};
	uint8_t x[8] = {1, 2, 3, 4, 5, 6, 7, 8};
	int64_t y, m, n = 8, none = 0;
	DLTensor tx = {.data = x, .device = {kDLCPU, 0}, .ndim = 1, .dtype = {kDLUInt, 8, 1}, .shape = &n};
	DLTensor ty = {.data = &y, .device = {kDLCPU, 0}, .dtype = {kDLInt, 64, 1}};
	texo_arg arg[3] = {{.tensor = &tx}, {.scalar = &m}, {.tensor = &ty}};
	for (unsigned c = 0; c < sizeof cases / sizeof *cases; c++) {
		texo_module *made = fixture_compile(ctx, cases[c].text);
		texo_kernel *k;
		assert_int_equal(texo_module_get_kernel(made, "g", &k), TEXO_OK);
		tx.shape = &n;
		m = cases[c].good;
		assert_int_equal(texo_kernel_launch(k, arg, 3, NULL, NULL), TEXO_OK);
		m = cases[c].bad;
		tx.shape = cases[c].status == TEXO_LIMIT ? &none : &n; /* what the length wraps to */
		REFUSED(texo_kernel_launch(k, arg, 3, NULL, NULL), cases[c].status, cases[c].words);
		texo_module_destroy(made);
	}
}

/* More rows than can be counted, each of nothing, are no work. */
static void
rows_of_nothing(void **state)
{
	(void)state;
	static const char rows[] = "graph g(x: f32[N, M]) -> (y: f32[N, M]) { y[i, j] = x[i, j] - max[k](x[i, k]) }\n";
	texo_module *made = fixture_compile(ctx, rows);
	texo_kernel *k;
	int64_t shape[2] = {INT64_MAX, 0};
	DLTensor t = {.device = {kDLCPU, 0}, .ndim = 2, .dtype = {kDLFloat, 32, 1}, .shape = shape};
	texo_arg arg[2] = {{.tensor = &t}, {.tensor = &t}};
	assert_int_equal(texo_module_get_kernel(made, "g", &k), TEXO_OK);
	assert_int_equal(texo_kernel_launch(k, arg, 2, NULL, NULL), TEXO_OK);
	texo_module_destroy(made);
}

/* An intermediate tensor that no memory holds, of inputs that stand still. */
static void
workspace_that_overflows(void **state)
{
	(void)state;
	static const char outer[] = "graph g(x: f32[N], y: f32[M]) -> (r: f32[N], c: f32[M]) {\n"
	                            "  s[i, j] = exp(x[i] * y[j])\n"
	                            "  r[i] = sum[j](s[i, j])\n  c[j] = sum[i](s[i, j])\n}\n";
	texo_options o = TEXO_INIT(texo_options);
	texo_module *made;
	texo_kernel *k;
	size_t bytes = 1;
	int64_t n = INT64_C(1) << 40, still = 0;
	DLTensor t = {.device = {kDLCPU, 0}, .ndim = 1, .dtype = {kDLFloat, 32, 1}, .shape = &n, .strides = &still}, r = t;
	texo_arg arg[4] = {{.tensor = &t}, {.tensor = &t}, {.tensor = &r}, {.tensor = &r}};
	r.strides = NULL;
	o.fuse = "off";
	assert_int_equal(texo_compile_string(ctx, outer, sizeof outer - 1, NULL, &o, &made), TEXO_OK);
	assert_int_equal(texo_module_get_kernel(made, "g", &k), TEXO_OK);
	REFUSED(texo_kernel_workspace(k, arg, 4, &bytes), TEXO_LIMIT, "more workspace than there are addresses");
	REFUSED(texo_kernel_launch(k, arg, 4, NULL, NULL), TEXO_LIMIT, "more workspace than there are addresses");
	n = 4;
	assert_int_equal(texo_kernel_workspace(k, arg, 4, &bytes), TEXO_OK);
	assert_true(bytes >= 64);
	texo_module_destroy(made);
}

/* --- every function of the runtime without its arguments --- */

static void
runtime_arguments(void **state)
{
	(void)state;
	texo_rt *rt = (texo_rt *)&ctx;
	texo_program *p = (texo_program *)&ctx;
	texo_kernel *k = (texo_kernel *)&ctx, *own;
	texo_fault fault = TEXO_INIT(texo_fault);
	const char *json = "";
	const void *image;
	size_t n = 1;
	Call c;
	prepare(&c);
	REFUSED(texo_rt_create(NULL, NULL), TEXO_INVALID, "out is NULL");
	REFUSED(texo_rt_load(NULL, "", 0, &p), TEXO_INVALID, "rt is NULL");
	assert_null(p);
	REFUSED(texo_program_get_kernel(NULL, NULL, &k), TEXO_INVALID, "p is NULL");
	assert_null(k);
	REFUSED(texo_kernel_prepare(NULL, c.arg, 3), TEXO_INVALID, "k is NULL");
	REFUSED(texo_kernel_workspace(NULL, c.arg, 3, &n), TEXO_INVALID, "k is NULL");
	assert_int_equal(n, 0);
	REFUSED(texo_kernel_launch(NULL, c.arg, 3, NULL, NULL), TEXO_INVALID, "k is NULL");
	REFUSED(texo_kernel_status(NULL, &fault), TEXO_INVALID, "k is NULL");
	REFUSED(texo_kernel_get_signature(NULL, &json), TEXO_INVALID, "k is NULL");
	assert_null(json);
	REFUSED(texo_rt_share(NULL), TEXO_INVALID, "rt is NULL");
	assert_int_equal(texo_module_get_kernel(module, NULL, &own), TEXO_OK);
	REFUSED(texo_kernel_workspace(own, c.arg, 3, NULL), TEXO_INVALID, "bytes is NULL");
	REFUSED(texo_kernel_status(own, NULL), TEXO_INVALID, "out is NULL");
	REFUSED(texo_kernel_get_signature(own, NULL), TEXO_INVALID, "json is NULL");
	fault.struct_size = 2;
	REFUSED(texo_kernel_status(own, &fault), TEXO_INVALID, "out: struct_size is 2");
	REFUSED(texo_kernel_launch(own, c.arg, SIZE_MAX, NULL, NULL), TEXO_INVALID, "takes 3 arguments, not");
	REFUSED(texo_kernel_launch(own, NULL, 3, NULL, NULL), TEXO_INVALID, "the arguments are NULL");
	assert_int_equal(texo_rt_create(NULL, &rt), TEXO_OK);
	REFUSED(texo_rt_load(rt, NULL, 8, &p), TEXO_INVALID, "artefact is NULL");
	REFUSED(texo_rt_load(rt, "", 0, &p), TEXO_BAD_ARTEFACT, "not a usable artefact");
	REFUSED(texo_rt_load(rt, "", 0, NULL), TEXO_INVALID, "out is NULL");
	assert_int_equal(texo_module_emit(module, "image", &image, &n), TEXO_OK);
	assert_int_equal(texo_rt_load(rt, image, n, &p), TEXO_OK);
	assert_int_equal(texo_program_get_kernel(p, NULL, &k), TEXO_OK);
	texo_program_destroy(p);
	REFUSED(texo_kernel_launch(k, c.arg, 3, NULL, NULL), TEXO_INVALID, "k: the program or module");
	assert_int_equal(texo_rt_load(rt, image, n, &p), TEXO_OK);
	texo_rt_destroy(rt); /* the program keeps what it needs */
	REFUSED(texo_program_get_kernel(p, NULL, NULL), TEXO_INVALID, "out is NULL");
	REFUSED(texo_program_get_kernel(p, "h", &k), TEXO_NOT_FOUND, "h");
	assert_int_equal(texo_program_get_kernel(p, NULL, &k), TEXO_OK);
	assert_int_equal(texo_kernel_launch(k, c.arg, 3, NULL, NULL), TEXO_OK);
	texo_program_destroy(p);
	texo_program_destroy(NULL);
	texo_rt_destroy(NULL);
}

/* --- what comes too late --- */

static void
kernel_after_its_module(void **state)
{
	(void)state;
	texo_options o = TEXO_INIT(texo_options);
	texo_fault fault = TEXO_INIT(texo_fault);
	texo_module *m;
	texo_kernel *k;
	const char *json;
	size_t bytes;
	Call c;
	prepare(&c);
	o.flags = TEXO_NO_CACHE;
	assert_int_equal(texo_compile_string(ctx, text, sizeof text - 1, NULL, &o, &m), TEXO_OK);
	assert_int_equal(texo_module_get_kernel(m, NULL, &k), TEXO_OK);
	texo_module_destroy(m);
	for (int n = 0; n < 2; n++) {
		REFUSED(texo_kernel_launch(k, c.arg, 3, NULL, NULL), TEXO_INVALID, "k: the program or module");
		REFUSED(texo_kernel_prepare(k, c.arg, 3), TEXO_INVALID, "k: the program or module");
		REFUSED(texo_kernel_workspace(k, c.arg, 3, &bytes), TEXO_INVALID, "k: the program or module");
		REFUSED(texo_kernel_status(k, &fault), TEXO_INVALID, "k: the program or module");
		REFUSED(texo_kernel_get_signature(k, &json), TEXO_INVALID, "k: the program or module");
		texo_module *other = fixture_compile(ctx, text); /* others come and go meanwhile */
		texo_module_destroy(other);
	}
}

/* The context goes with the last of its modules. */
static void
kernel_after_its_context(void **state)
{
	(void)state;
	texo_options o = TEXO_INIT(texo_options);
	texo_ctx *own;
	texo_module *m, *last;
	texo_kernel *k;
	Call c;
	prepare(&c);
	o.flags = TEXO_NO_CACHE;
	assert_int_equal(texo_ctx_create(NULL, &own), TEXO_OK);
	assert_int_equal(texo_compile_string(own, text, sizeof text - 1, NULL, &o, &m), TEXO_OK);
	assert_int_equal(texo_compile_string(own, text, sizeof text - 1, NULL, &o, &last), TEXO_OK);
	assert_int_equal(texo_module_get_kernel(m, NULL, &k), TEXO_OK);
	texo_ctx_destroy(own);
	assert_int_equal(texo_kernel_launch(k, c.arg, 3, NULL, NULL), TEXO_OK);
	texo_module_destroy(m);
	REFUSED(texo_kernel_launch(k, c.arg, 3, NULL, NULL), TEXO_INVALID, "k: the program or module");
	assert_int_equal(texo_module_get_kernel(last, NULL, &k), TEXO_OK);
	assert_int_equal(texo_kernel_launch(k, c.arg, 3, NULL, NULL), TEXO_OK);
	texo_module_destroy(last);
}

/* Results that share memory with one another, and one whose elements do. */
static void
results_that_overlap(void **state)
{
	(void)state;
	static const char two[] = "graph g(x: f32[N]) -> (p: f32[N], q: f32[N]) {\n  p[i] = x[i] + 1\n  q[i] = x[i] * 2\n}\n";
	float x[4] = {1, 2, 3, 4}, y[8];
	int64_t n = 4, still = 0;
	DLTensor t[3];
	texo_arg arg[3] = {{.tensor = &t[0]}, {.tensor = &t[1]}, {.tensor = &t[2]}};
	texo_module *made = fixture_compile(ctx, two);
	texo_kernel *k;
	for (int a = 0; a < 3; a++)
		t[a] = (DLTensor){.data = a ? y + 4 * (a - 1) : x, .device = {kDLCPU, 0}, .ndim = 1, .dtype = {kDLFloat, 32, 1}, .shape = &n};
	assert_int_equal(texo_module_get_kernel(made, NULL, &k), TEXO_OK);
	assert_int_equal(texo_kernel_launch(k, arg, 3, NULL, NULL), TEXO_OK);
	assert_true(y[3] == 5 && y[7] == 8);
	t[2].data = y + 3;
	REFUSED(texo_kernel_launch(k, arg, 3, NULL, NULL), TEXO_INVALID, "argument p is written and shares memory with argument q");
	t[2].data = y + 4;
	t[2].strides = &still;
	REFUSED(texo_kernel_launch(k, arg, 3, NULL, NULL), TEXO_INVALID, "argument q: it is written, and its strides let elements overlap");
	texo_module_destroy(made);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kernel_after_its_context),
		cmocka_unit_test(results_that_overlap),
		cmocka_unit_test(context_options),
		cmocka_unit_test(later_structs),
		cmocka_unit_test(compile_arguments),
		cmocka_unit_test(compile_options),
		cmocka_unit_test(compile_statics),
		cmocka_unit_test(hostile_texts),
		cmocka_unit_test(rows_of_nothing),
		cmocka_unit_test(module_arguments),
		cmocka_unit_test(launch_arguments),
		cmocka_unit_test(launch_dims),
		cmocka_unit_test(launch_sizes_that_wrap),
		cmocka_unit_test(workspace_that_overflows),
		cmocka_unit_test(runtime_arguments),
		cmocka_unit_test(kernel_after_its_module),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
