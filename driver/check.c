/* check.c: texo check F...: parse and check every file, each in a session of its own, so that what
 * one file runs into does not touch the next. Diagnostics of all files make one JSON object. */
#include "driver/compile.h"
#include "driver/diag_entries.h"

typedef struct {
	const char *path;
	Text *json; /* of the outer session: entries so far, or NULL */
} CheckOne;

static ExitCode
check_body(Session *s, void *arg)
{
	CheckOne *one = arg;
	SourceUnit u;
	if (!compile_open(s, one->path, &u)) {
		if (one->json)
			diag_entries_plain(one->json, code_info[DIAG_E0890].id, one->path, s->problem.text,
			                   s->problem.help);
		return session_fail(s);
	}
	compile_unit(s, &u, NULL);
	if (one->json)
		diag_entries_add(one->json, diags_json(&u.diags, &s->arena));
	else
		session_diags(s, &u.diags);
	if (!u.failed)
		say_detail(s, "%s: %u graph%s, no error", u.path, u.unit->ngraph, u.unit->ngraph == 1 ? "" : "s");
	return u.failed ? EXIT_INPUT : EXIT_OK;
}

ExitCode
command_check(Session *s, void *arg)
{
	const Options *o = s->options;
	ExitCode worst = EXIT_OK;
	Text json;
	(void)arg;
	text_init(&json, &s->arena);
	for (uint32_t i = 0; i < o->operand.n; i++) {
		CheckOne one = {o->operand.at[i], option_on(o, OPT_JSON) ? &json : NULL};
		const char *why = NULL;
		ExitCode code = session_run(s->host, o, s->arena.limit, check_body, &one, &why);
		if (one.json && why)
			diag_entries_plain(one.json, code_info[DIAG_E0990].id, one.path, why, NULL);
		worst = code > worst ? code : worst;
	}
	if (option_on(o, OPT_JSON))
		text_printf(&s->out, "{\"diagnostics\":[%s]}\n", text_get(&json));
	return worst;
}
