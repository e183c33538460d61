/* fmt.c: texo fmt F...: every file into the one layout, each in a session of its own. A file that does
 * not parse stays as it is and is reported; one that changes is written aside and renamed, at the place
 * a symbolic link leads to. */
#define _XOPEN_SOURCE 700 /* realpath */
#include "driver/compile.h"
#include "driver/diag_entries.h"
#include "driver/output_file.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
	const char *path;
	Text files, diags; /* JSON entries */
} Formatting;

static void
add_file_entry(Formatting *f, const char *path, bool differs, const char *text, size_t n)
{
	text_printf(&f->files, "%s{\"file\":", f->files.n ? "," : "");
	text_json(&f->files, path, strlen(path));
	text_printf(&f->files, ",\"differs\":%s", differs ? "true" : "false");
	if (text) {
		text_printf(&f->files, ",\"text\":");
		text_json(&f->files, text, n);
	}
	text_printf(&f->files, "}");
}

static bool
write_back(Session *s, const char *path, const char *text, size_t n)
{
	char *place = realpath(path, NULL);
	const char *target = place ? arena_text(&s->arena, "%s", place) : path;
	free(place);
	return output_add(&s->host->files, target, text, n, &s->problem) && output_commit(&s->host->files, &s->problem);
}

static ExitCode
format_body(Session *s, void *arg)
{
	Formatting *f = arg;
	SourceUnit u;
	size_t n = 0;
	bool json = option_on(s->options, OPT_JSON), check = option_on(s->options, OPT_CHECK);
	bool input = strcmp(f->path, "-") == 0;
	if (!compile_open(s, f->path, &u)) {
		diag_entries_plain(&f->diags, code_info[DIAG_E0890].id, f->path, s->problem.text, s->problem.help);
		return session_fail(s);
	}
	const char *text = frontend_layout(&s->arena, u.names, &u.diags, u.file, &n);
	if (!text) {
		diag_entries_add(&f->diags, diags_json(&u.diags, &s->arena));
		if (!json)
			session_diags(s, &u.diags);
		return EXIT_INPUT;
	}
	bool differs = n != u.n || memcmp(text, u.text, n) != 0;
	add_file_entry(f, u.path, differs, input && !check ? text : NULL, n);
	if (check && differs && !json)
		text_printf(&s->out, "%s\n", u.path);
	if (!check && input && !json)
		text_add(&s->out, text, n);
	if (!check && !input && differs && !write_back(s, f->path, text, n))
		return session_fail(s);
	if (differs && !check)
		say_detail(s, "%s: laid out", u.path);
	return check && differs ? EXIT_INPUT : EXIT_OK;
}

ExitCode
command_fmt(Session *s, void *arg)
{
	const Options *o = s->options;
	ExitCode worst = EXIT_OK;
	Formatting f = {0};
	(void)arg;
	text_init(&f.files, &s->arena);
	text_init(&f.diags, &s->arena);
	for (uint32_t i = 0; i < o->operand.n; i++) {
		const char *why = NULL;
		f.path = o->operand.at[i];
		ExitCode code = session_run(s->host, o, s->arena.limit, format_body, &f, &why);
		if (why)
			diag_entries_plain(&f.diags, code_info[DIAG_E0990].id, f.path, why, NULL);
		worst = code > worst ? code : worst;
	}
	if (option_on(o, OPT_JSON))
		text_printf(&s->out, "{\"files\":[%s],\"diagnostics\":[%s]}\n", text_get(&f.files), text_get(&f.diags));
	return worst;
}
