/* kp.c: kernel plans as one line of text, and back. */
#include "ir/kp.h"

#include <string.h>

const TemplateInfo template_info[TMPL_COUNT] = {
	[TMPL_NONE] = {"none", ""},
#define TEMPLATE(id, text, summary) [TMPL_##id] = {text, summary},
#include "ir/templates.def"
};

static bool
has_blocks(const KernelPlan *kp)
{
	return kp->tmpl == TMPL_CONTRACT || kp->tmpl == TMPL_STREAM || kp->tmpl == TMPL_PAIRWISE;
}

void
kp_print(const KernelPlan *kp, Text *out)
{
	text_printf(out, "%s lanes=%u unroll=%u ", template_info[kp->tmpl].text, kp->lanes, kp->unroll);
	if (has_blocks(kp))
		text_printf(out, "tile=%ux%u block=%ux%ux%u tasks=%u ", kp->tile_rows, kp->tile_columns,
		            kp->block_rows, kp->block_columns, kp->block_terms, kp->block_tasks);
	if (kp->pairs)
		text_printf(out, "pairs=%u %s", kp->pairs, kp->chained ? "chained " : "");
	if (kp->turns)
		text_printf(out, "turns ");
	if (kp->pieces)
		text_printf(out, "pieces ");
	if (kp->joins)
		text_printf(out, "joins ");
	if (kp->joint)
		text_printf(out, "joint ");
	if (kp->thirds)
		text_printf(out, "thirds=%u ", kp->thirds);
	if (kp->halo)
		text_printf(out, "halo ");
	if (kp->sums)
		text_printf(out, "sums=%u ", kp->sums);
	if (kp->threads)
		text_printf(out, "threads=%u group=%u ", kp->threads, kp->group);
	if (kp->anywhere)
		text_printf(out, "anywhere ");
	if (kp->cluster)
		text_printf(out, "cluster=%u ", kp->cluster);
	if (kp->columns)
		text_printf(out, "columns=%u ", kp->columns);
	if (kp->resident)
		text_printf(out, "resident=%u ", kp->resident);
	text_printf(out, "%s%s%s%s%s%s", kp->held ? "held " : "", kp->filled ? "filled " : "", kp->short_axis ? "short " : "", kp->flat ? "flat " : "",
	            kp->long_sums ? "long " : "", kp->beside ? "beside " : "");
	if (kp->once)
		text_printf(out, "once=%u ", kp->once);
	if (kp->posts)
		text_printf(out, "posts=%u ", kp->posts);
	text_printf(out, "nodes=");
	for (unsigned k = 0; k < kp->nnode; k++)
		text_printf(out, "%s%%%u", k ? "," : "", kp->node[k]);
}

typedef struct {
	const char *at, *end;
} Cursor;

static bool
take(Cursor *c, const char *word)
{
	size_t n = strlen(word);
	if ((size_t)(c->end - c->at) < n || memcmp(c->at, word, n) != 0)
		return false;
	c->at += n;
	return true;
}

static bool
take_number(Cursor *c, uint32_t max, uint32_t *out)
{
	uint64_t v = 0;
	const char *start = c->at;
	for (; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++) {
		v = v * 10 + (uint64_t)(*c->at - '0');
		if (v > max)
			return false;
	}
	*out = (uint32_t)v;
	return c->at > start;
}

static bool
take_template(Cursor *c, uint8_t *out)
{
	for (uint8_t t = 1; t < TMPL_COUNT; t++) {
		Cursor try = *c;
		if (take(&try, template_info[t].text) && take(&try, " ")) {
			*c = try;
			*out = t;
			return true;
		}
	}
	return false;
}

static bool
take_nodes(Cursor *c, KernelPlan *kp)
{
	do {
		uint32_t t;
		if (kp->nnode == KP_MAX_NODES || !take(c, "%") || !take_number(c, UINT32_MAX, &t))
			return false;
		kp->node[kp->nnode++] = t;
	} while (take(c, ","));
	return true;
}

static bool
take_blocks(Cursor *c, KernelPlan *kp)
{
	uint32_t rows, columns, tasks, pairs = 0, thirds = 0, sums = 0;
	if (!take(c, " tile=") || !take_number(c, UINT16_MAX, &rows) || !take(c, "x") ||
	    !take_number(c, UINT16_MAX, &columns))
		return false;
	kp->tile_rows = (uint16_t)rows;
	kp->tile_columns = (uint16_t)columns;
	if (!take(c, " block=") || !take_number(c, UINT32_MAX, &kp->block_rows) || !take(c, "x") ||
	    !take_number(c, UINT32_MAX, &kp->block_columns) || !take(c, "x") ||
	    !take_number(c, UINT32_MAX, &kp->block_terms) || !take(c, " tasks=") ||
	    !take_number(c, UINT16_MAX, &tasks))
		return false;
	if (take(c, " pairs=") && !take_number(c, UINT8_MAX, &pairs))
		return false;
	kp->chained = pairs && take(c, " chained");
	kp->turns = take(c, " turns");
	kp->pieces = take(c, " pieces");
	kp->joins = take(c, " joins");
	kp->joint = take(c, " joint");
	if (take(c, " thirds=") && !take_number(c, UINT8_MAX, &thirds))
		return false;
	kp->thirds = (uint8_t)thirds;
	kp->halo = take(c, " halo");
	if (take(c, " sums=") && !take_number(c, UINT8_MAX, &sums))
		return false;
	kp->sums = (uint8_t)sums;
	kp->block_tasks = (uint16_t)tasks;
	kp->pairs = (uint8_t)pairs;
	return true;
}

static bool
take_threads(Cursor *c, KernelPlan *kp)
{
	uint32_t threads, group, cluster = 0, columns = 0, resident = 0;
	Cursor rest = *c;
	if (!take(&rest, " threads="))
		return true;
	if (!take_number(&rest, UINT16_MAX, &threads) || !take(&rest, " group=") || !take_number(&rest, UINT16_MAX, &group))
		return false;
	kp->threads = (uint16_t)threads;
	kp->group = (uint16_t)group;
	kp->anywhere = take(&rest, " anywhere");
	if (take(&rest, " cluster=") && !take_number(&rest, UINT16_MAX, &cluster))
		return false;
	if (take(&rest, " columns=") && !take_number(&rest, UINT16_MAX, &columns))
		return false;
	if (take(&rest, " resident=") && !take_number(&rest, UINT16_MAX, &resident))
		return false;
	kp->cluster = (uint16_t)cluster;
	kp->columns = (uint16_t)columns;
	kp->resident = (uint16_t)resident;
	kp->held = take(&rest, " held");
	kp->filled = take(&rest, " filled");
	kp->short_axis = take(&rest, " short");
	kp->flat = take(&rest, " flat");
	kp->long_sums = take(&rest, " long");
	kp->beside = take(&rest, " beside");
	if (take(&rest, " once=") && !take_number(&rest, UINT32_MAX, &kp->once))
		return false;
	if (take(&rest, " posts=") && !take_number(&rest, UINT32_MAX, &kp->posts))
		return false;
	*c = rest;
	return true;
}

bool
kp_read(KernelPlan *kp, const char *text, size_t n, const char **error)
{
	Cursor c = {text, text + n};
	uint32_t lanes, unroll;
	memset(kp, 0, sizeof *kp);
	if (!take_template(&c, &kp->tmpl))
		*error = "a plan starts with the name of a template";
	else if (!take(&c, "lanes=") || !take_number(&c, TIR_MAX_BLOCK_LANES * TIR_MAX_CLUSTER, &lanes))
		*error = "expected lanes=N after the template";
	else if (!take(&c, " unroll=") || !take_number(&c, UINT16_MAX, &unroll))
		*error = "expected unroll=N after the lanes";
	else if (has_blocks(kp) && !take_blocks(&c, kp))
		*error = "expected tile=RxC block=RxCxT tasks=N after the unrolling";
	else if (!take_threads(&c, kp))
		*error = "expected threads=N group=N before the nodes";
	else if (!take(&c, " nodes=") || !take_nodes(&c, kp))
		*error = "expected nodes=%N,%N… after the unrolling, 64 at most";
	else if (c.at != c.end)
		*error = "something follows the nodes";
	else {
		kp->lanes = lanes;
		kp->unroll = (uint16_t)unroll;
		return true;
	}
	return false;
}

const bool *
kernel_groups(const Kernel *kernel, Arena *a)
{
	const TirKernel *k = kernel->tir;
	bool *found = ARENA_ARRAY(a, bool, k->buffer.n + 1);
	for (ValId v = 1; v < k->inst.n; v++) {
		const TirInst *p = tir_inst(k, v);
		if (p->op == OP_ASYNC_COPY)
			found[tir_inst(k, tir_arg(k, tir_arg(k, v, 1), 0))->imm.i] = true;
		if (p->op != OP_LOAD && p->op != OP_STORE)
			continue;
		const TirInst *value = p->op == OP_STORE ? tir_inst(k, tir_arg(k, v, 1)) : p;
		if (value->type.lanes)
			found[tir_inst(k, tir_arg(k, tir_arg(k, v, 0), 0))->imm.i] = true;
	}
	return found;
}

bool
kernel_takes_rows(const Kernel *k, const Graph *g, ExtentFn *value, void *user, Arena *a)
{
	enum { GROUP_BITS = 128 };
	if (!k->aligned || k->plan.flat)
		return true;
	const bool *groups = kernel_groups(k, a);
	for (uint32_t b = 0; b < k->buffer.n && b < k->tir->buffer.n; b++) {
		if (!groups[b] || k->buffer.at[b].kind != BIND_DATA)
			continue;
		const Tensor *t = &g->tensor.at[k->buffer.at[b].tensor];
		int64_t last;
		if (t->rank && value(user, t->extent[t->rank - 1], &last) && last * dtype_info[t->dtype].bits % GROUP_BITS)
			return false;
	}
	return true;
}
