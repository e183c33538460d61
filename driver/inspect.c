/* inspect.c: texo inspect X: the graphs of a program's text, or of an object, library, program or artefact
 * with compiled graphs in it: signatures, where dims come from, what is checked at launch; and of what is
 * compiled the processors, kernels and sizes. Nothing is compiled and nothing is loaded. */
#include "codegen/image_write.h"
#include "driver/compile.h"
#include "driver/inspection.h"
#include "driver/source.h"
#include "ir/gpu_facts.h"

#include <string.h>

enum { MAX_FILE = 256 << 20 };

/* --- a program's text --- */

static void
add_param(Session *s, const Graph *g, Name name, const char *kind, TensorId id, InspectGraph *to)
{
	const Tensor *t = &g->tensor.at[id];
	Text shape;
	text_init(&shape, &s->arena);
	signature_shape(g, t, &shape);
	InspectParam param = {name_text(g->names, name), kind, dtype_info[t->dtype].text, text_get(&shape)};
	vec_push(&s->arena, &to->param, param);
}

static void
add_dims(Session *s, const Graph *g, InspectGraph *to)
{
	for (DimId k = 1; k < g->dim.n && dim_is_users(g, k); k++) {
		const Dim *d = &g->dim.at[k];
		InspectDim dim = {name_text(g->names, d->name), NULL, d->axis, d->scale, d->offset, d->value, d->hint,
		                  d->turn > 0};
		if (!d->fixed && d->param >= 0)
			dim.param = name_text(g->names, g->tensor.at[g->param.at[d->param]].name);
		vec_push(&s->arena, &to->dim, dim);
	}
}

static void
add_source_graph(Session *s, const Graph *g, Inspection *out)
{
	InspectGraph to = {.name = name_text(g->names, g->name), .signature = signature_json(&s->arena, g)};
	for (uint32_t k = 0; k < g->param.n; k++) {
		const Tensor *t = &g->tensor.at[g->param.at[k]];
		const char *kind = t->kind == TENSOR_SCALAR ? "scalar" : t->kind == TENSOR_INOUT ? "inout" : "input";
		add_param(s, g, t->name, kind, g->param.at[k], &to);
	}
	for (uint32_t k = 0; k < g->result.n; k++)
		if (!g->result.at[k].inout)
			add_param(s, g, g->result.at[k].name, "result", g->result.at[k].tensor, &to);
	add_dims(s, g, &to);
	for (uint32_t k = 0; k < g->check.n; k++) {
		const Check *c = &g->check.at[k];
		vec_push(&s->arena, &to.check, ((InspectCheck){c->text, c->at.line, c->at.col}));
	}
	vec_push(&s->arena, &out->graph, to);
}

/* False after the errors were said. */
static bool
inspect_text(Session *s, const char *text, size_t n, Inspection *out)
{
	SourceUnit u;
	compile_begin(s, out->path, text, n, &u);
	compile_unit(s, &u, NULL);
	session_diags(s, &u.diags);
	for (uint32_t k = 0; !u.failed && k < u.unit->graph.n; k++)
		add_source_graph(s, u.unit->graph.at[k], out);
	return !u.failed;
}

/* --- as text --- */

static void
print_signature(const InspectGraph *g, Text *out)
{
	bool result = false, first = true;
	text_printf(out, "\ngraph %s(", g->name);
	for (uint32_t k = 0; k < g->param.n; k++) {
		const InspectParam *p = &g->param.at[k];
		if (!result && strcmp(p->kind, "result") == 0) {
			text_printf(out, ") -> (");
			result = first = true;
		}
		text_printf(out, "%s%s%s: %s%s", first ? "" : ", ", strcmp(p->kind, "inout") == 0 ? "inout " : "", p->name,
		            p->dtype, p->shape);
		first = false;
	}
	text_printf(out, result ? ")\n" : ") -> ()\n");
}

/* "axis 1 of x", "(axis 0 of x - 1) / 2" */
static const char *
dim_source(Arena *a, const InspectDim *d)
{
	if (!d->param)
		return arena_text(a, "%lld, fixed", (long long)d->value);
	if (d->axis < 0)
		return arena_text(a, "the scalar %s", d->param);
	const char *axis = arena_text(a, "axis %d of %s", d->axis, d->param);
	if (d->solved)
		return arena_text(a, "solved from %s", axis);
	if (d->offset)
		axis = arena_text(a, d->scale == 1 ? "%s %c %llu" : "(%s %c %llu)", axis, d->offset > 0 ? '-' : '+',
		                  (unsigned long long)(d->offset > 0 ? (uint64_t)d->offset : 0 - (uint64_t)d->offset));
	return d->scale == 1 ? axis : arena_text(a, "%s / %lld", axis, (long long)d->scale);
}

/* Names of features, each with `before` and `after` around it. */
static void
print_features(uint64_t set, const char *before, const char *after, const char *between, Text *out)
{
	static const char *const name[] = {
#define FEATURE(id, text, leaf, sub, reg, bit, state) text,
#include "ir/cpu_features.def"
	};
	const char *sep = "";
	for (unsigned k = 0; k < sizeof name / sizeof name[0]; k++)
		if (set >> k & 1) {
			text_printf(out, "%s%s%s%s", sep, before, name[k], after);
			sep = between;
		}
}

/* ": 640 bytes, 32 registers, no spills", as far as it is known. */
static void
print_code(const InspectKernel *k, Text *out)
{
	if (k->bytes >= 0)
		text_printf(out, ": %lld bytes", (long long)k->bytes);
	if (k->registers >= 0)
		text_printf(out, ", %lld registers", (long long)k->registers);
	if (k->stack > 0)
		text_printf(out, ", %lld bytes of stack for spills", (long long)k->stack);
	else if (k->stack == 0)
		text_printf(out, ", no spills");
	text_printf(out, "\n");
}

static void
print_level(Session *s, const InspectLevel *l)
{
	Text *out = &s->out;
	int64_t code = 0;
	for (uint32_t k = 0; k < l->kernel.n; k++)
		code = code < 0 || l->kernel.at[k].bytes < 0 ? -1 : code + l->kernel.at[k].bytes;
	text_printf(out, "  %s: %u kernel%s", *l->cpu ? l->cpu : "compiled", l->kernel.n, l->kernel.n == 1 ? "" : "s");
	if (code >= 0)
		text_printf(out, ", %lld bytes of code", (long long)code);
	if (!*l->cpu || (strncmp(l->cpu, "sm_", 3) != 0 && option_on(s->options, OPT_VERBOSE))) {
		text_printf(out, "; needs %s", l->features ? "" : "x86-64 alone");
		print_features(l->features, "", "", " ", out);
	}
	text_printf(out, "\n");
	for (uint32_t k = 0; k < l->kernel.n; k++) {
		const InspectKernel *kernel = &l->kernel.at[k];
		text_printf(out, "    %-5s %s", kernel->template_name, kernel->symbol);
		print_code(kernel, out);
	}
}

static void
print_text(Session *s, const Inspection *x)
{
	Text *out = &s->out;
	uint32_t n = x->kernel.n ? x->kernel.n : x->graph.n;
	text_printf(out, "%s: %s, %zu bytes, %u %s%s\n", x->path, x->kind, x->bytes, n, x->kernel.n ? "kernel" : "graph",
	            n == 1 ? "" : "s");
	for (uint32_t k = 0; k < x->key.n; k++)
		text_printf(out, "  %s: %s\n", x->key.at[k].name, x->key.at[k].value);
	for (uint32_t k = 0; k < x->kernel.n; k++) {
		text_printf(out, "  %s", x->kernel.at[k].symbol);
		print_code(&x->kernel.at[k], out);
	}
	for (uint32_t k = 0; k < x->graph.n; k++) {
		const InspectGraph *g = &x->graph.at[k];
		print_signature(g, out);
		for (uint32_t d = 0; d < g->dim.n; d++) {
			const InspectDim *dim = &g->dim.at[d];
			text_printf(out, "  dim %s: %s", dim->name, dim_source(&s->arena, dim));
			if (dim->hint)
				text_printf(out, ", about %lld", (long long)dim->hint);
			text_printf(out, "\n");
		}
		for (uint32_t c = 0; c < g->check.n; c++)
			text_printf(out, "  must hold: %s (line %u)\n", g->check.at[c].text, g->check.at[c].line);
		for (uint32_t l = 0; l < g->level.n; l++)
			print_level(s, &g->level.at[l]);
	}
}

/* --- as JSON --- */

static void
json_word(Text *out, const char *before, const char *word)
{
	text_printf(out, "%s", before);
	text_json(out, word, strlen(word));
}

static void
json_dims(const InspectGraph *g, Text *out)
{
	for (uint32_t k = 0; k < g->dim.n; k++) {
		const InspectDim *d = &g->dim.at[k];
		json_word(out, k ? ",{\"name\":" : "{\"name\":", d->name);
		if (!d->param)
			text_printf(out, ",\"value\":%lld", (long long)d->value);
		else
			json_word(out, ",\"param\":", d->param);
		if (d->param && d->solved)
			text_printf(out, ",\"axis\":%d,\"solved\":true", d->axis);
		else if (d->param && d->axis >= 0)
			text_printf(out, ",\"axis\":%d,\"scale\":%lld,\"offset\":%lld", d->axis, (long long)d->scale,
			            (long long)d->offset);
		if (d->hint)
			text_printf(out, ",\"hint\":%lld", (long long)d->hint);
		text_printf(out, "}");
	}
}

static void
json_count(const char *before, int64_t n, Text *out)
{
	if (n >= 0)
		text_printf(out, "%s%lld", before, (long long)n);
	else
		text_printf(out, "%snull", before);
}

static void
json_kernel(const InspectKernel *k, Text *out)
{
	json_word(out, "{\"name\":", k->name);
	json_word(out, ",\"template\":", k->template_name);
	json_word(out, ",\"symbol\":", k->symbol);
	json_count(",\"bytes\":", k->bytes, out);
	json_count(",\"registers\":", k->registers, out);
	json_count(",\"spill_bytes\":", k->stack, out);
	text_printf(out, "}");
}

static void
json_level(const InspectLevel *l, Text *out)
{
	json_word(out, "{\"cpu\":", l->cpu);
	text_printf(out, ",\"features\":[");
	print_features(l->features, "\"", "\"", ",", out);
	text_printf(out, "],\"tables_bytes\":%llu,\"kernels\":[", (unsigned long long)l->tables);
	for (uint32_t k = 0; k < l->kernel.n; k++) {
		text_printf(out, k ? "," : "");
		json_kernel(&l->kernel.at[k], out);
	}
	text_printf(out, "]}");
}

static void
json_graph(const InspectGraph *g, Text *out)
{
	json_word(out, "{\"name\":", g->name);
	text_printf(out, ",\"params\":[");
	for (uint32_t k = 0; k < g->param.n; k++) {
		const InspectParam *p = &g->param.at[k];
		json_word(out, k ? ",{\"name\":" : "{\"name\":", p->name);
		json_word(out, ",\"kind\":", p->kind);
		json_word(out, ",\"dtype\":", p->dtype);
		json_word(out, ",\"shape\":", p->shape);
		text_printf(out, "}");
	}
	text_printf(out, "],\"dims\":[");
	json_dims(g, out);
	text_printf(out, "],\"checks\":[");
	for (uint32_t k = 0; k < g->check.n; k++) {
		json_word(out, k ? ",{\"text\":" : "{\"text\":", g->check.at[k].text);
		text_printf(out, ",\"line\":%u,\"column\":%u}", g->check.at[k].line, g->check.at[k].column);
	}
	text_printf(out, "],\"levels\":[");
	for (uint32_t k = 0; k < g->level.n; k++) {
		text_printf(out, k ? "," : "");
		json_level(&g->level.at[k], out);
	}
	text_printf(out, "]}");
}

static void
print_json(Session *s, const Inspection *x)
{
	Text *out = &s->out;
	json_word(out, "{\"file\":", x->path);
	json_word(out, ",\"kind\":", x->kind);
	text_printf(out, ",\"bytes\":%zu,\"key\":[", x->bytes);
	for (uint32_t k = 0; k < x->key.n; k++) {
		json_word(out, k ? ",{\"name\":" : "{\"name\":", x->key.at[k].name);
		json_word(out, ",\"value\":", x->key.at[k].value);
		text_printf(out, "}");
	}
	text_printf(out, "],\"graphs\":[");
	for (uint32_t k = 0; k < x->graph.n; k++) {
		text_printf(out, k ? "," : "");
		json_graph(&x->graph.at[k], out);
	}
	text_printf(out, "]");
	for (uint32_t k = 0; k < x->kernel.n; k++) {
		text_printf(out, k ? "," : ",\"kernels\":[");
		json_kernel(&x->kernel.at[k], out);
	}
	text_printf(out, x->kernel.n ? "]}\n" : "}\n");
}

ExitCode
command_inspect(Session *s, void *arg)
{
	Inspection x = {.path = "<stdin>"};
	const char *bytes;
	(void)arg;
	const char *path = s->options->operand.at[0];
	if (strcmp(path, "-") != 0)
		x.path = path;
	if (!source_read(&s->host->files, &s->data, path, MAX_FILE, &bytes, &x.bytes, &s->problem))
		return session_fail(s);
	x.kind = inspect_kind(bytes, x.bytes);
	if (x.bytes > MAX_FILE) {
		problem(&s->problem, EXIT_INPUT, "%s has more than %d MiB", x.path, MAX_FILE >> 20);
		return session_fail(s);
	}
	if (!x.kind && memchr(bytes, 0, x.bytes)) {
		problem(&s->problem, EXIT_INPUT, "%s is neither a program's text nor code that texo made", x.path);
		return session_fail(s);
	}
	if (x.kind && (!inspect_key(s, bytes, x.bytes, &x) || !inspect_code(s, bytes, x.bytes, &x)))
		return session_fail(s);
	if (!x.kind && !inspect_text(s, bytes, x.bytes, &x))
		return EXIT_INPUT;
	if (!x.kind)
		x.kind = "program text";
	if (option_on(s->options, OPT_JSON))
		print_json(s, &x);
	else
		print_text(s, &x);
	return EXIT_OK;
}
