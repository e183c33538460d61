/* tir_interp.c: runs the steps of tir_interp_decode.c. Exact to the bit as generated code must be,
 * but for the sign and payload of NaNs. Every access is checked: each index of an unmasked lane
 * against the view's extent, the element against the buffer. */
#include "ir/tir_interp.h"

#include <inttypes.h>
#include <string.h>

#include "ir/tir_slot.h"

typedef struct {
	const TirKernel *k;
	Arena *scratch;
	TirRun *run;
	const StepProgram *program;
	uint64_t *slot;
	const char *error;
} Interp;

static bool
violation(Interp *x, const Step *s, const char *what)
{
	x->error = arena_text(x->scratch, "kernel %s: %%%" PRIu32 " %s: %s", name_text(x->k->names, x->k->name),
	                      s->inst, op_info[tir_inst(x->k, s->inst)->op].text, what);
	return false;
}

static bool
outside_view(Interp *x, const Step *s, unsigned axis, unsigned lane, int64_t index, int64_t extent)
{
	return violation(x, s, arena_text(x->scratch, "index %u of lane %u is %" PRId64 ", the extent %" PRId64,
	                                  axis, lane, index, extent));
}

static bool
outside_buffer(Interp *x, const Step *s, unsigned lane, const StepAccess *a)
{
	const char *name = name_text(x->k->names, x->k->buffer.at[a->buffer].name);
	return violation(x, s, arena_text(x->scratch, "lane %u lies outside the %" PRId64 " bytes of buffer %s",
	                                  lane, x->run->buffer[a->buffer].bytes, name));
}

/* Where lane l of the access lies, in elements. */
static bool
locate(Interp *x, const Step *s, const StepAccess *a, unsigned l, int64_t *element)
{
	int64_t at = 0, end;
	for (unsigned n = 0; n < a->rank; n++) {
		const StepAxis *axis = &a->axis[n];
		int64_t index = (int64_t)x->slot[axis->index + (axis->each_lane ? l : 0)], step;
		int64_t extent = (int64_t)x->slot[axis->extent], stride = (int64_t)x->slot[axis->stride];
		int64_t lane = x->k->columns ? l % x->k->columns : l;
		if (axis->along && __builtin_add_overflow(index, lane, &index))
			index = -1;
		if (index < 0 || index >= extent)
			return outside_view(x, s, n, l, index, extent);
		if (__builtin_mul_overflow(index, stride, &step) || __builtin_add_overflow(at, step, &at))
			return outside_buffer(x, s, l, a);
	}
	*element = at;
	if (at < 0 || at == INT64_MAX || !dtype_bytes((DType)a->dtype, at + 1, &end) ||
	    end > x->run->buffer[a->buffer].bytes)
		return outside_buffer(x, s, l, a);
	return true;
}

static bool
run_load(Interp *x, const Step *s)
{
	const StepAccess *a = &x->program->access.at[s->access];
	const void *data = x->run->buffer[a->buffer].data;
	for (unsigned l = 0; l < s->lanes; l++) {
		int64_t element;
		if (a->mask && !x->slot[a->mask + l]) {
			x->slot[a->value + l] = 0;
			continue;
		}
		if (!locate(x, s, a, l, &element))
			return false;
		x->slot[a->value + l] = slot_load((DType)a->dtype, data, element);
		if (x->k->buffer.at[a->buffer].posted && !x->slot[a->value + l])
			return violation(x, s, "waits for what no task has posted");
	}
	return true;
}

static bool
run_store(Interp *x, const Step *s)
{
	const StepAccess *a = &x->program->access.at[s->access];
	void *data = x->run->buffer[a->buffer].data;
	for (unsigned l = 0; l < s->lanes; l++) {
		int64_t element;
		if (a->mask && !x->slot[a->mask + l])
			continue;
		if (!locate(x, s, a, l, &element))
			return false;
		if (x->k->buffer.at[a->buffer].posted && (slot_load((DType)a->dtype, data, element) || !x->slot[a->value + l]))
			return violation(x, s, "posts 0, or once more");
		slot_store((DType)a->dtype, data, element, x->slot[a->value + l]);
	}
	return true;
}

static void
run_fault(Interp *x, const Step *s)
{
	for (unsigned l = 0; l < s->lanes; l++) {
		uint32_t id = (uint32_t)x->slot[s->src[0] + l];
		if (!x->run->fault)
			x->run->fault = id & 0xffff;
		if (!x->run->cut)
			x->run->cut = id >> 16;
	}
}

static void
run_moves(Interp *x, const Step *s)
{
	for (uint32_t n = 0; n < s->nmove; n++) {
		const StepMove *m = &x->program->move.at[s->move + n];
		memcpy(x->slot + m->dst, x->slot + m->src, m->lanes * sizeof *x->slot);
	}
}

static void
run_cast(Interp *x, const Step *s)
{
	slot_cast_all((DType)s->dtype, (DType)s->from, x->slot + s->src[0], x->slot + s->dst, s->lanes);
}

static void
run_bitcast(Interp *x, const Step *s)
{
	uint64_t *d = x->slot + s->dst, keep = UINT64_MAX >> (64 - dtype_info[s->dtype].bits);
	const uint64_t *a = x->slot + s->src[0];
	bool wrap = dtype_is_int((DType)s->dtype);
	for (unsigned l = 0; l < s->lanes; l++)
		d[l] = wrap ? (uint64_t)slot_wrap((DType)s->dtype, (int64_t)a[l]) : a[l] & keep;
}

/* Lane by lane through memory, which is little endian as lanes are. */
void
step_regroup(const Step *s, const uint64_t *src, uint64_t *dst, size_t pitch)
{
	unsigned char bits[TIR_MAX_LANES * sizeof(uint64_t)];
	size_t from = dtype_info[s->from].bits / 8, to = dtype_info[s->dtype].bits / 8;
	for (unsigned l = 0; l * from < s->lanes * to; l++)
		memcpy(bits + l * from, src + l * pitch, from);
	for (unsigned l = 0; l < s->lanes; l++)
		dst[l * pitch] = slot_load((DType)s->dtype, bits, l);
}

/* The element at these inner indices. */
static bool
locate_inner(Interp *x, const Step *s, const StepAccess *a, unsigned inner, const int64_t *index, int64_t *element)
{
	for (unsigned k = 0; k < inner; k++)
		x->slot[a->axis[a->rank - inner + k].index] = (uint64_t)index[k];
	return locate(x, s, a, 0, element);
}

/* One group of a or b: outer x inner elements. */
static bool
fetch_group(Interp *x, const Step *s, const StepAccess *a, int64_t group, unsigned outer, unsigned inner, uint32_t *to)
{
	const void *data = x->run->buffer[a->buffer].data;
	for (unsigned k = 0; k < outer * inner; k++) {
		int64_t at[3] = {group, k / inner, k % inner}, element;
		if (!locate_inner(x, s, a, 3, at, &element))
			return false;
		to[k] = (uint32_t)slot_load(DT_U32, data, element);
	}
	return true;
}

/* Every element of c becomes 0, or takes what the group adds to it. */
static bool
dot_elements(Interp *x, const Step *s, TirDot d, const uint32_t *a, const uint32_t *b)
{
	const StepAccess *c = &x->program->access.at[s->access];
	void *data = x->run->buffer[c->buffer].data;
	uint64_t (*add)(uint64_t, const uint32_t *, const uint32_t *, unsigned, unsigned) =
		d.chained ? lane_dot_chained : lane_dot;
	for (unsigned k = 0; k < d.rows * d.columns; k++) {
		int64_t at[2] = {k / d.columns, k % d.columns}, element;
		if (!locate_inner(x, s, c, 2, at, &element))
			return false;
		uint64_t sum = a ? slot_load(DT_F32, data, element) : 0;
		if (a)
			sum = add(sum, a + k / d.columns * d.pairs, b + k % d.columns, d.columns, d.pairs);
		slot_store(DT_F32, data, element, sum);
	}
	return true;
}

static bool
run_dot(Interp *x, const Step *s)
{
	const StepAccess *c = &x->program->access.at[s->access];
	TirDot d = tir_dot_shape(tir_inst(x->k, s->inst)->imm.i);
	uint32_t a[TIR_MAX_DOT * TIR_MAX_DOT], b[TIR_MAX_DOT * TIR_MAX_DOT];
	int64_t n = (int64_t)x->slot[s->src[0]];
	if (d.anew && !dot_elements(x, s, d, NULL, NULL))
		return false;
	for (int64_t group = 0; group < n; group++)
		if (!fetch_group(x, s, c + 1, group, d.rows, d.pairs, a) ||
		    !fetch_group(x, s, c + 2, group, d.pairs, d.columns, b) || !dot_elements(x, s, d, a, b))
			return false;
	return true;
}

static void
run_select(Interp *x, const Step *s)
{
	uint64_t *d = x->slot + s->dst;
	for (unsigned l = 0; l < s->lanes; l++)
		d[l] = x->slot[s->src[x->slot[s->src[0] + l] ? 1 : 2] + l];
}

static void
run_splat(Interp *x, const Step *s)
{
	for (unsigned l = 0; l < s->lanes; l++)
		x->slot[s->dst + l] = x->slot[s->src[0]];
}

static void
run_half(Interp *x, const Step *s)
{
	unsigned bit = s->src[2] / 2, low = (1u << bit) - 1;
	for (unsigned l = 0; l < s->lanes; l++)
		x->slot[s->dst + l] = x->slot[s->src[0] + ((l & ~low) << 1 | (s->src[2] & 1) << bit | (l & low))];
}

static void
run_weave(Interp *x, const Step *s)
{
	unsigned bit = s->src[2] / 2, low = (1u << bit) - 1;
	for (unsigned l = 0; l < s->lanes; l++)
		x->slot[s->dst + l] = x->slot[s->src[l >> bit & 1] + (l >> 1 & ~low) + (l & low)];
}

static bool
run_for(Interp *x, const Step *s)
{
	if ((int64_t)x->slot[s->src[2]] <= 0)
		return violation(x, s, "the step is not positive");
	x->slot[s->dst] = x->slot[s->src[0]];
	run_moves(x, s);
	return true;
}

static bool
run_next(Interp *x, const Step *s)
{
	int64_t index = (int64_t)x->slot[s->dst], step = (int64_t)x->slot[s->src[2]];
	run_moves(x, s);
	if (__builtin_add_overflow(index, step, &index))
		return violation(x, s, "the index overflows");
	x->slot[s->dst] = (uint64_t)index;
	return true;
}

static void
run_pick(Interp *x, const Step *s)
{
	for (unsigned l = 0; l < s->lanes; l++)
		x->slot[s->dst + l] = x->slot[s->src[0] + (x->slot[s->src[1] + l] & (s->src[2] - 1))];
}

static void
run_any(Interp *x, const Step *s)
{
	uint64_t any = 0;
	for (unsigned l = 0; l < s->src[2]; l++)
		any |= x->slot[s->src[0] + l];
	x->slot[s->dst] = any;
}

static bool
run_steps(Interp *x)
{
	const Step *first = x->program->step.at;
	int64_t left = x->run->max_steps ? x->run->max_steps : INT64_C(1) << 40;
	for (const Step *s = first;; s++) {
		if (left-- <= 0 && s->kind != STEP_END)
			return violation(x, s, "runs too long");
		bool ok = true;
		switch ((StepKind)s->kind) {
		case STEP_LANES:
			s->fn(x->slot + s->dst, x->slot + s->src[0], x->slot + s->src[1], x->slot + s->src[2],
			      s->lanes);
			break;
		case STEP_CAST: run_cast(x, s); break;
		case STEP_BITCAST: run_bitcast(x, s); break;
		case STEP_REGROUP: step_regroup(s, x->slot + s->src[0], x->slot + s->dst, 1); break;
		case STEP_DOT: ok = run_dot(x, s); break;
		case STEP_SELECT: run_select(x, s); break;
		case STEP_SPLAT: run_splat(x, s); break;
		case STEP_COPY: memcpy(&x->slot[s->dst], &x->slot[s->src[0]], s->lanes * sizeof *x->slot); break;
		case STEP_HALF: run_half(x, s); break;
		case STEP_WEAVE: run_weave(x, s); break;
		case STEP_PICK: run_pick(x, s); break;
		case STEP_ANY: run_any(x, s); break;
		case STEP_LOAD: ok = run_load(x, s); break;
		case STEP_STORE: ok = run_store(x, s); break;
		case STEP_FAULT: run_fault(x, s); break;
		case STEP_FOR: ok = run_for(x, s); break;
		case STEP_HEAD:
			if ((int64_t)x->slot[s->dst] < (int64_t)x->slot[s->src[1]])
				run_moves(x, s);
			else
				s = first + s->target - 1;
			break;
		case STEP_NEXT:
			ok = run_next(x, s);
			s = ok ? first + s->target - 1 : s;
			break;
		case STEP_IF: s = x->slot[s->src[0]] ? s : first + s->target - 1; break;
		case STEP_JUMP:
			run_moves(x, s);
			s = first + s->target - 1;
			break;
		case STEP_ACQUIRE: case STEP_BOX: case STEP_WAIT: case STEP_RELEASE: case STEP_MMA: case STEP_PRODUCT: case STEP_KEEP: case STEP_PUT: case STEP_SETTLE: case STEP_TURN: case STEP_PIECE: case STEP_HELD: case STEP_TAKE: case STEP_ROLES:
		case STEP_SHUFFLE: case STEP_WARP_MMA: case STEP_LOAD_MATRIX: case STEP_STORE_MATRIX: case STEP_ASYNC_COPY: case STEP_ASYNC_WAIT: case STEP_BARRIER: ok = violation(x, s, "without threads"); break;
		case STEP_END: return true;
		}
		if (!ok)
			return false;
	}
}

/* Memory for the shared buffers, which come last and which nobody hands over. */
static void
add_shared(const TirKernel *k, Arena *scratch, TirRun *run)
{
	TirMemory *m = ARENA_ARRAY(scratch, TirMemory, k->buffer.n + 1);
	for (uint32_t b = 0; b < k->buffer.n; b++) {
		const TirBuffer *buffer = &k->buffer.at[b];
		if (!buffer->shared) {
			m[b] = run->buffer[b];
			continue;
		}
		dtype_bytes(buffer->dtype, buffer->shared, &m[b].bytes);
		m[b].data = arena_alloc(scratch, (size_t)m[b].bytes);
		memset(m[b].data, 0xa5, (size_t)m[b].bytes);
	}
	run->buffer = m;
}

static bool
interpret_call(const TirKernel *k, Arena *scratch, TirRun *run, const char **error)
{
	StepProgram program;
	interp_decode(k, scratch, run, &program);
	Interp x = {.k = k, .scratch = scratch, .run = run, .program = &program, .slot = program.slot};
	run->fault = run->cut = 0;
	if (k->form == TIR_SPREAD)
		return interp_threads(k, scratch, run, &program, error);
	const TirMemory *handed = run->buffer;
	add_shared(k, scratch, run);
	bool ok = run_steps(&x);
	run->buffer = handed;
	if (!ok)
		*error = x.error;
	return ok;
}

/* A task in each call. */
static bool
interpret_tasks(const TirKernel *k, Arena *scratch, TirRun *run, const char **error)
{
	int64_t step = run->task_step > 0 ? run->task_step : 1;
	TirRun all = {0};
	for (int64_t t = run->task_lo; t < run->task_hi; t += step) {
		TirRun call = *run;
		call.task_lo = t;
		call.task_hi = t + 1;
		if (!interpret_call(k, scratch, &call, error))
			return false;
		all.fault = all.fault ? all.fault : call.fault;
		all.cut = all.cut ? all.cut : call.cut;
	}
	run->fault = all.fault;
	run->cut = all.cut;
	return true;
}

bool
tir_interpret(const TirKernel *k, Arena *scratch, TirRun *run, const char **error)
{
	if (!run->verified && !tir_verify(k, scratch, error))
		return false;
	return k->cluster && k->channel.n && !tir_has_joint(k) ? interpret_tasks(k, scratch, run, error) : interpret_call(k, scratch, run, error);
}
