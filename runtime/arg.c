/* arg.c: from a launch's arguments to its frame. The order of the checks is the order in which a caller
 * mends things: number, kind, dtype, rank, device; then the dims; then every extent; the program's
 * own checks; and last, for a launch, the memory itself. */
#include <stdio.h>
#include <string.h>

#include "runtime/inside.h"
#include "ir/bugs.h"

typedef struct {
	texo_kernel *k;
	const Image *im;
	const ImageGraph *g;
	const ImageParam *param;
	Frame *f;
	ExprEnv env;
} Fill;

static const char *
name_of(const Fill *x, uint32_t p)
{
	return x->im->text + x->param[p].name;
}

static texo_status
arg_fail(const Fill *x, uint32_t p, const char *what)
{
	return rt_fail(TEXO_INVALID, "argument %s: %s", name_of(x, p), what);
}

/* --- what an argument is --- */

static void
dtype_text(DLDataType t, char *out, size_t n)
{
	for (uint32_t d = 1; d < ELEMENT_COUNT; d++) {
		const Element *e = element_of(d);
		if (e->dl.code == t.code && e->dl.bits == t.bits && e->dl.lanes == t.lanes) {
			snprintf(out, n, "%s", e->text);
			return;
		}
	}
	snprintf(out, n, "DLPack code %u with %u bits and %u lanes", t.code, t.bits, t.lanes);
}

static texo_status
take_scalar(Fill *x, uint32_t p, const texo_arg *a)
{
	const Element *e = element_of(x->param[p].dtype);
	if (a->tensor || !a->scalar)
		return arg_fail(x, p, "a scalar is expected");
	Arg *to = &x->f->arg[p];
	to->word = 0;
	memcpy(&to->word, a->scalar, e->bits < 8 ? 1 : e->bits / 8);
	if (!e->is_int)
		return TEXO_OK;
	int64_t value = element_int(e, a->scalar);
	x->f->solved = x->f->solved && (value == x->f->param[p] || BUG(count_remembered));
	x->f->param[p] = value;
	return TEXO_OK;
}

static texo_status
check_kind(const Fill *x, uint32_t p, const DLTensor *t)
{
	const ImageParam *want = &x->param[p];
	const Element *e = element_of(want->dtype);
	char got[64];
	if (t->dtype.code != e->dl.code || t->dtype.bits != e->dl.bits || t->dtype.lanes != e->dl.lanes) {
		dtype_text(t->dtype, got, sizeof got);
		return rt_fail(TEXO_INVALID, "argument %s: the dtype is %s, %s is expected", name_of(x, p), got, e->text);
	}
	if (t->ndim < 0 || (uint32_t)t->ndim != want->rank)
		return rt_fail(TEXO_INVALID, "argument %s: the rank is %d, %u is expected", name_of(x, p), t->ndim,
		               want->rank);
	const Rt *rt = x->k->program->rt;
	if (rt->device ? t->device.device_type != rt->device->type || t->device.device_id != rt->ordinal
	               : t->device.device_type != kDLCPU && t->device.device_type != kDLCUDAHost)
		return arg_fail(x, p, rt->device ? "the tensor is not in the device's memory"
		                                 : "the tensor is not in this processor's memory");
	if (want->rank && !t->shape)
		return arg_fail(x, p, "the shape is NULL");
	for (uint32_t k = 0; k < want->rank; k++)
		if (t->shape[k] < 0)
			return rt_fail(TEXO_INVALID, "argument %s: axis %u has %lld elements", name_of(x, p), k,
			               (long long)t->shape[k]);
	return TEXO_OK;
}

/* Whether the tensor lies as the one before it did. */
static bool
lies_as_before(const Arg *a, uint32_t rank, const DLTensor *t)
{
	if (a->strided != (t->strides != NULL))
		return false;
	for (uint32_t k = 0; k < rank; k++)
		if (a->extent[k] != t->shape[k] || (t->strides && a->stride[k] != t->strides[k]))
			return false;
	return true;
}

static texo_status
take_tensor(Fill *x, uint32_t p, const DLTensor *t)
{
	const ImageParam *want = &x->param[p];
	Arg *to = &x->f->arg[p];
	texo_status s = check_kind(x, p, t);
	if (s)
		return s;
	to->data = t->data ? (uint8_t *)t->data + t->byte_offset : NULL; /* for who prepares a launch; not looked at yet */
	if (x->f->solved && lies_as_before(to, want->rank, t))
		return TEXO_OK;
	x->f->solved = to->spanned = false;
	to->strided = t->strides != NULL;
	for (uint32_t k = 0; k < want->rank; k++)
		to->extent[k] = t->shape[k];
	if (!row_major(to->extent, want->rank, to->stride, &to->count))
		return arg_fail(x, p, "the number of elements overflows");
	bool packed = element_of(want->dtype)->bits < 8;
	if (packed && (want->rank == 0 || to->extent[want->rank - 1] % 2))
		return arg_fail(x, p, "two elements share a byte, so the last axis must be even");
	for (uint32_t k = 0; t->strides && k < want->rank; k++) {
		if (packed && to->count && to->extent[k] > 1 && t->strides[k] != to->stride[k])
			return arg_fail(x, p, "two elements share a byte, so it must be contiguous");
		if (!packed)
			to->stride[k] = t->strides[k];
	}
	return TEXO_OK;
}

static texo_status
take_arguments(Fill *x, const texo_arg *args, size_t n)
{
	if (n != x->g->nparam)
		return rt_fail(TEXO_INVALID, "graph %s takes %u arguments, not %zu", x->im->text + x->g->name,
		               x->g->nparam, n);
	if (n && !args)
		return rt_fail(TEXO_INVALID, "the arguments are NULL");
	for (uint32_t p = 0; p < x->g->nparam; p++) {
		texo_status s;
		if (x->param[p].kind == IMG_SCALAR)
			s = take_scalar(x, p, &args[p]);
		else if (!args[p].tensor || args[p].scalar)
			s = arg_fail(x, p, "a tensor is expected");
		else
			s = take_tensor(x, p, args[p].tensor);
		if (s)
			return s;
	}
	return TEXO_OK;
}

/* --- dims and extents --- */

/* (from - offset) / scale, when it is a whole number and at least 0. */
static bool
quotient(int64_t from, int64_t offset, int64_t scale, int64_t *out)
{
	int64_t left, least = scale == -1 ? INT64_MIN + 1 : INT64_MIN; /* its negative overflows */
	if (!checked_mul(offset, -1, &left) || !checked_add(from, left, &left) || left < least || left % scale != 0)
		return false;
	*out = left / scale;
	return *out >= 0;
}

/* A dim with a turn: what its axis's extent is for 0 and 1 gives scale and offset. */
static texo_status
solve_linear(Fill *x, const ImageDim *d, int64_t from, int64_t *out)
{
	uint32_t p = (uint32_t)d->param, extent = x->param[p].extent[d->axis];
	int64_t offset, one, scale;
	const char *name = x->im->text + d->name;
	*out = 0;
	bool exact = expr_exact(&x->env, extent, &offset);
	*out = 1;
	exact = exact && expr_exact(&x->env, extent, &one) && checked_mul(offset, -1, &scale) && checked_add(one, scale, &scale);
	if (!exact || scale == 0)
		return rt_fail(TEXO_INVALID, "argument %s: axis %d has length %lld, which doesn't say what %s is", name_of(x, p),
		               (int)d->axis, (long long)from, name);
	if (quotient(from, offset, scale, out))
		return TEXO_OK;
	return rt_fail(TEXO_INVALID, "argument %s: axis %d has length %lld, which is not %lld*%s + %lld for any %s >= 0",
	               name_of(x, p), (int)d->axis, (long long)from, (long long)scale, name, (long long)offset, name);
}

static texo_status
solve_dim(Fill *x, uint32_t n)
{
	const ImageDim *d = &x->im->dim[x->g->dim0 + n];
	int64_t *out = &x->f->dim[n];
	if (d->param < 0) {
		*out = dim_fixed(d, x->k->program->rt->fact);
		return TEXO_OK;
	}
	uint32_t p = (uint32_t)d->param;
	int64_t from = d->axis < 0 ? x->f->param[p] : x->f->arg[p].extent[d->axis];
	if (d->turn)
		return solve_linear(x, d, from, out);
	if (quotient(from, d->offset, d->scale, out))
		return TEXO_OK;
	const char *name = x->im->text + d->name;
	if (d->axis < 0)
		return rt_fail(TEXO_INVALID, "argument %s: the value is %lld, and a dim is at least 0", name_of(x, p),
		               (long long)from);
	return rt_fail(TEXO_INVALID, "argument %s: axis %d has length %lld, which is not %lld*%s + %lld for any %s >= 0",
	               name_of(x, p), (int)d->axis, (long long)from, (long long)d->scale, name, (long long)d->offset, name);
}

static texo_status
solve_dims(Fill *x)
{
	texo_status s = TEXO_OK;
	for (uint32_t turn = 0; turn <= x->g->ndim; turn++)
		for (uint32_t d = 0; !s && d < x->g->ndim; d++)
			if (x->im->dim[x->g->dim0 + d].turn == turn)
				s = solve_dim(x, d);
	return s;
}

static texo_status
check_extents(Fill *x)
{
	for (uint32_t p = 0; p < x->g->nparam; p++)
		for (uint32_t k = 0; k < x->param[p].rank; k++) {
			int64_t want, got = x->f->arg[p].extent[k];
			if (!expr_exact(&x->env, x->param[p].extent[k], &want))
				return rt_fail(TEXO_LIMIT, "argument %s: the length of axis %u overflows", name_of(x, p), k);
			if (x->param[p].kind == IMG_RESULT && want < 0)
				want = 0;
			if (got != want && !BUG(extents_unchecked))
				return rt_fail(TEXO_INVALID, "argument %s: axis %u has %lld elements, %lld are expected",
				               name_of(x, p), k, (long long)got, (long long)want);
		}
	return TEXO_OK;
}

/* A check whose arithmetic wraps doesn't hold: what was proved from it was proved of integers. */
static texo_status
run_checks(Fill *x)
{
	for (uint32_t k = 0; k < x->g->ncheck; k++) {
		const ImageCheck *c = &x->im->check[x->g->check0 + k];
		int64_t holds;
		if (!(expr_exact(&x->env, c->cond, &holds) && holds) && !BUG(checks_skipped))
			return rt_fail(TEXO_CHECK_FAILED, "%u:%u: this doesn't hold: %s", c->line, c->col,
			               x->im->text + c->text);
	}
	return TEXO_OK;
}

/* --- memory --- */

static bool
is_written(const Fill *x, uint32_t p)
{
	return x->param[p].kind == IMG_INOUT || x->param[p].kind == IMG_RESULT;
}

/* The first and last element, counted from element 0. */
static bool
element_span(const Arg *a, uint32_t rank, int64_t *lo, int64_t *hi)
{
	*lo = *hi = 0;
	for (uint32_t k = 0; k < rank; k++) {
		int64_t reach;
		if (!checked_mul(a->extent[k] - 1, a->stride[k], &reach) ||
		    !checked_add(*(reach < 0 ? lo : hi), reach, reach < 0 ? lo : hi))
			return false;
	}
	return true;
}

static uint64_t
size_of_stride(int64_t s)
{
	return s < 0 ? 0 - (uint64_t)s : (uint64_t)s;
}

/* Whether different indices surely mean different elements: by ascending stride, each is larger than
 * all that the smaller ones reach. The span is known not to overflow. */
static bool
is_injective(const Arg *a, uint32_t rank)
{
	bool done[IMAGE_MAX_RANK] = {false};
	uint64_t reach = 0;
	for (uint32_t turn = 0; turn < rank; turn++) {
		uint32_t least = rank;
		for (uint32_t k = 0; k < rank; k++)
			if (!done[k] && a->extent[k] > 1 &&
			    (least == rank || size_of_stride(a->stride[k]) < size_of_stride(a->stride[least])))
				least = k;
		if (least == rank)
			return true;
		if (size_of_stride(a->stride[least]) <= reach)
			return false;
		reach += size_of_stride(a->stride[least]) * (uint64_t)(a->extent[least] - 1);
		done[least] = true;
	}
	return true;
}

/* The bytes that its elements span. */
static texo_status
find_span(Fill *x, uint32_t p)
{
	Arg *a = &x->f->arg[p];
	const Element *e = element_of(x->param[p].dtype);
	uint32_t rank = x->param[p].rank;
	int64_t lo, hi, span;
	if (!element_span(a, rank, &lo, &hi) || !checked_add(hi, 1, &hi) || !checked_mul(lo, -1, &span) ||
	    !checked_add(span, hi, &span) || !element_bytes(e, span, &span))
		return arg_fail(x, p, "its strides reach outside of all memory");
	if (is_written(x, p) && !is_injective(a, rank))
		return arg_fail(x, p, "it is written, and its strides let elements overlap");
	a->before = (uint64_t)-lo * (e->bits / 8);
	a->span = (uint64_t)span;
	a->spanned = true;
	return TEXO_OK;
}

static texo_status
take_memory(Fill *x, uint32_t p, const DLTensor *t)
{
	Arg *a = &x->f->arg[p];
	const Element *e = element_of(x->param[p].dtype);
	uintptr_t at = (uintptr_t)t->data + (uintptr_t)t->byte_offset;
	a->data = NULL;
	a->lo = a->hi = 0;
	if (a->count == 0)
		return TEXO_OK;
	if (!t->data)
		return arg_fail(x, p, "the data is NULL");
	if (at % e->align)
		return rt_fail(TEXO_INVALID, "argument %s: the data is not aligned to %u bytes", name_of(x, p), e->align);
	texo_status s = a->spanned ? TEXO_OK : find_span(x, p);
	if (s)
		return s;
	a->data = (uint8_t *)t->data + t->byte_offset;
	if (at < a->before || a->span > UINTPTR_MAX - (at - a->before))
		return arg_fail(x, p, "its strides reach outside of all memory");
	a->lo = at - a->before;
	a->hi = a->lo + (uintptr_t)a->span;
	return TEXO_OK;
}

static texo_status
check_overlap(const Fill *x)
{
	for (uint32_t p = 0; p < x->g->nparam; p++)
		for (uint32_t q = 0; is_written(x, p) && q < x->g->nparam; q++) {
			const Arg *a = &x->f->arg[p], *b = &x->f->arg[q];
			if (q == p || x->param[q].kind == IMG_SCALAR || (q < p && is_written(x, q)))
				continue;
			if (a->lo < b->hi && b->lo < a->hi && !BUG(overlap_allowed))
				return rt_fail(TEXO_INVALID, "argument %s is written and shares memory with argument %s",
				               name_of(x, p), name_of(x, q));
		}
	return TEXO_OK;
}

/* All that follows from extents, strides and integer scalars. */
static texo_status
solve(Fill *x)
{
	x->f->bound = NULL;
	texo_status s = solve_dims(x);
	if (!s)
		s = check_extents(x);
	if (!s)
		s = run_checks(x);
	if (!s)
		s = frame_lay_out(x->k);
	x->f->solved = !s;
	x->f->turn++;
	return s;
}

texo_status
frame_fill(texo_kernel *k, const texo_arg *args, size_t n, bool data)
{
	const Image *im = &k->program->image;
	Fill x = {k, im, k->graph, im->param + k->graph->param0, &k->frame, frame_env(k)};
	texo_status s = take_arguments(&x, args, n);
	if (!s && !k->frame.solved)
		s = solve(&x);
	for (uint32_t p = 0; !s && data && p < x.g->nparam; p++)
		if (x.param[p].kind != IMG_SCALAR)
			s = take_memory(&x, p, args[p].tensor);
	return !s && data ? check_overlap(&x) : s;
}
