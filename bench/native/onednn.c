/* onednn.c: the few primitives of oneDNN's C interface (2.x, as Debian has it) that the bench harness
 * times: a row-major matrix product in f32 or bf16, bare or with bias, gelu and a residual added; and
 * softmax along rows. A primitive is made once for its memory and executed many times, as a program
 * that uses the library would. */
#include <dnnl.h>
#include <omp.h>
#include <stdlib.h>

enum { MOST_ARGS = 5 };

typedef struct {
	dnnl_engine_t engine;
	dnnl_stream_t stream;
	dnnl_primitive_t primitive;
	dnnl_exec_arg_t arg[MOST_ARGS];
	int narg;
} Job;

void
onednn_threads(int n)
{
	omp_set_num_threads(n);
}

void
onednn_version(int *major, int *minor, int *patch)
{
	const dnnl_version_t *v = dnnl_version();
	*major = v->major;
	*minor = v->minor;
	*patch = v->patch;
}

static dnnl_memory_desc_t
row_major(dnnl_data_type_t type, dnnl_dim_t rows, dnnl_dim_t columns)
{
	dnnl_memory_desc_t d;
	dnnl_dims_t dims = {rows, columns};
	dnnl_memory_desc_init_by_tag(&d, 2, dims, type, dnnl_ab);
	return d;
}

static int
add_arg(Job *j, int which, const dnnl_memory_desc_t *d, void *data)
{
	dnnl_memory_t m;
	if (dnnl_memory_create(&m, d, j->engine, data) != dnnl_success)
		return -1;
	j->arg[j->narg++] = (dnnl_exec_arg_t){which, m};
	return 0;
}

void
onednn_free(Job *j)
{
	if (!j)
		return;
	for (int k = 0; k < j->narg; k++)
		dnnl_memory_destroy(j->arg[k].memory);
	if (j->primitive)
		dnnl_primitive_destroy(j->primitive);
	if (j->stream)
		dnnl_stream_destroy(j->stream);
	if (j->engine)
		dnnl_engine_destroy(j->engine);
	free(j);
}

static Job *
job_new(void)
{
	Job *j = calloc(1, sizeof *j);
	if (!j || dnnl_engine_create(&j->engine, dnnl_cpu, 0) != dnnl_success
	    || dnnl_stream_create(&j->stream, j->engine, dnnl_stream_default_flags) != dnnl_success) {
		onednn_free(j);
		return NULL;
	}
	return j;
}

static int
make_primitive(Job *j, const_dnnl_op_desc_t op, const_dnnl_primitive_attr_t attr)
{
	dnnl_primitive_desc_t pd;
	if (dnnl_primitive_desc_create(&pd, op, attr, j->engine, NULL) != dnnl_success)
		return -1;
	dnnl_status_t st = dnnl_primitive_create(&j->primitive, pd);
	dnnl_primitive_desc_destroy(pd);
	return st == dnnl_success ? 0 : -1;
}

/* gelu (the erf form) of the product with its bias, then the residual added. */
static dnnl_primitive_attr_t
gelu_residual(const dnnl_memory_desc_t *residual)
{
	dnnl_post_ops_t ops;
	dnnl_primitive_attr_t attr;
	if (dnnl_post_ops_create(&ops) != dnnl_success)
		return NULL;
	if (dnnl_primitive_attr_create(&attr) != dnnl_success)
		attr = NULL;
	else if (dnnl_post_ops_append_eltwise(ops, 1, dnnl_eltwise_gelu_erf, 0, 0) != dnnl_success
	         || dnnl_post_ops_append_binary(ops, dnnl_binary_add, residual) != dnnl_success
	         || dnnl_primitive_attr_set_post_ops(attr, ops) != dnnl_success) {
		dnnl_primitive_attr_destroy(attr);
		attr = NULL;
	}
	dnnl_post_ops_destroy(ops);
	return attr;
}

/* y[m, n] = x w, or gelu(x w + b) + r where b is given; bf16 operands and result where `narrow`. NULL where
 * the library has no such primitive. */
Job *
onednn_product(long m, long n, long k, int narrow, void *x, void *w, void *b, void *r, void *y)
{
	dnnl_data_type_t type = narrow ? dnnl_bf16 : dnnl_f32;
	dnnl_memory_desc_t dx = row_major(type, m, k), dw = row_major(type, k, n), dy = row_major(type, m, n);
	dnnl_memory_desc_t db = row_major(dnnl_f32, 1, n), dr = row_major(dnnl_f32, m, n);
	dnnl_primitive_attr_t attr = NULL;
	dnnl_matmul_desc_t op;
	Job *j = job_new();
	if (!j)
		return NULL;
	int bad = dnnl_matmul_desc_init(&op, &dx, &dw, b ? &db : NULL, &dy) != dnnl_success;
	bad = bad || (b && !(attr = gelu_residual(&dr)));
	bad = bad || make_primitive(j, &op, attr);
	bad = bad || add_arg(j, DNNL_ARG_SRC, &dx, x) || add_arg(j, DNNL_ARG_WEIGHTS, &dw, w)
	      || add_arg(j, DNNL_ARG_DST, &dy, y);
	if (b)
		bad = bad || add_arg(j, DNNL_ARG_BIAS, &db, b)
		      || add_arg(j, DNNL_ARG_ATTR_MULTIPLE_POST_OP(1) | DNNL_ARG_SRC_1, &dr, r);
	if (attr)
		dnnl_primitive_attr_destroy(attr);
	if (bad) {
		onednn_free(j);
		return NULL;
	}
	return j;
}

/* softmax, or its logarithm, along the rows of x[rows, columns] */
Job *
onednn_softmax(long rows, long columns, int logarithm, void *x, void *y)
{
	dnnl_memory_desc_t d = row_major(dnnl_f32, rows, columns);
	dnnl_softmax_v2_desc_t op;
	Job *j = job_new();
	if (!j)
		return NULL;
	if (dnnl_softmax_v2_forward_desc_init(&op, dnnl_forward_inference,
	                                      logarithm ? dnnl_softmax_log : dnnl_softmax_accurate, &d, &d, 1) != dnnl_success
	    || make_primitive(j, &op, NULL) || add_arg(j, DNNL_ARG_SRC, &d, x) || add_arg(j, DNNL_ARG_DST, &d, y)) {
		onednn_free(j);
		return NULL;
	}
	return j;
}

/* 0, or -1 */
int
onednn_run(Job *j)
{
	if (dnnl_primitive_execute(j->primitive, j->stream, j->narg, j->arg) != dnnl_success)
		return -1;
	return dnnl_stream_wait(j->stream) == dnnl_success ? 0 : -1;
}
