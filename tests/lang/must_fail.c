/* must_fail.c: usage: must_fail DIR [ROOT ELSEWHERE]
 *
 * Every .tex file in DIR says in comment lines which diagnostics it must give,
 *
 *     # error E0207 at 3:8
 *     # warning W0311 at 5:3
 *
 * and gives exactly these errors, at these places; warnings that are named must be there.
 *
 * With ROOT and ELSEWHERE, all errors and warnings of codes.def must be met by a file here, or be
 * named in the file ELSEWHERE with the test (a path below ROOT) that meets them and names them. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/frontend.h"

enum { MOST = 32, MAX_FILES = 4096, MAX_CODES = 1024, MAX_BYTES = 1 << 21 };

typedef struct {
	DiagCode code;
	unsigned line, col;
	bool met;
} Want;

typedef struct {
	Want at[MOST];
	unsigned n;
} Wants;

static bool covered[MAX_CODES];
static unsigned total;

static int
by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The whole file with a NUL after it; NULL when it can't be read. */
static char *
read_whole(const char *path, size_t *n)
{
	FILE *f = fopen(path, "rb");
	char *text = f ? malloc(MAX_BYTES) : NULL;
	if (f) {
		*n = fread(text, 1, MAX_BYTES - 1, f);
		text[*n] = 0;
		fclose(f);
	}
	return text;
}

/* Reads the expectations; false when a line that looks like one is not. */
static bool
read_wants(const char *text, const char *path, Wants *w)
{
	for (const char *s = text; s; s = strchr(s, '\n')) {
		s += *s == '\n';
		char word[16], id[16];
		unsigned line, col;
		if (strncmp(s, "# error", 7) != 0 && strncmp(s, "# warning", 9) != 0 && strncmp(s, "% error", 7) != 0)
			continue;
		if (sscanf(s + 1, " %15s %15s at %u:%u", word, id, &line, &col) != 4 || !code_named(id)
		    || w->n == MOST) {
			printf("%s: an expectation that can't be read: %.40s\n", path, s);
			return false;
		}
		w->at[w->n++] = (Want){code_named(id), line, col, false};
	}
	if (w->n == 0)
		printf("%s: no expectation\n", path);
	return w->n > 0;
}

/* Finds and marks the expectation that g meets. */
static bool
meets(Wants *w, const Diag *g)
{
	for (unsigned k = 0; k < w->n; k++)
		if (!w->at[k].met && w->at[k].code == g->code && w->at[k].line == g->at.line
		    && w->at[k].col == g->at.col)
			return w->at[k].met = true;
	return false;
}

static bool
compare(const Diags *d, Wants *w, const char *path)
{
	bool ok = true;
	for (uint32_t k = 0; k < d->list.n; k++) {
		const Diag *g = &d->list.at[k];
		bool met = meets(w, g);
		if (met)
			covered[g->code] = true, total++;
		if (met || code_info[g->code].severity != SEV_ERROR)
			continue;
		printf("%s: not expected: %s at %u:%u\n", path, code_info[g->code].id, g->at.line, g->at.col);
		ok = false;
	}
	for (unsigned k = 0; k < w->n; k++) {
		if (w->at[k].met)
			continue;
		printf("%s: missing: %s at %u:%u\n", path, code_info[w->at[k].code].id, w->at[k].line, w->at[k].col);
		ok = false;
	}
	return ok;
}

/* Compiles a text as `texo check` does and compares what it says. */
static bool
fails_as_wanted(const char *path, const char *text, size_t n, Wants *w)
{
	Unwind unwind;
	Arena arena;
	arena_init(&arena, &host_default()->memory, &unwind);
	if (setjmp(unwind.env)) {
		printf("%s: unwound: %s\n", path, unwind.text);
		arena_free(&arena);
		return false;
	}
	Diags d;
	diags_init(&d, &arena);
	Names *names = names_new(&arena);
	FrontendOptions options = {.fp = FP_RELAXED, .host = host_default()};
	frontend_compile(&arena, names, &d, diags_add_file(&d, path, text, n), &options);
	bool ok = compare(&d, w, path);
	const char *report = diags_render(&d, &arena, false);
	ok = *diags_json(&d, &arena) == '{' && ok;
	if (!ok)
		printf("%s", report);
	arena_free(&arena);
	return ok;
}

static bool
run_file(const char *path)
{
	size_t n = 0;
	Wants w = {0};
	char *text = read_whole(path, &n);
	bool ok = text && read_wants(text, path, &w) && fails_as_wanted(path, text, n, &w);
	free(text);
	return ok;
}

/* Takes the codes that other tests meet, each line "E0901 tests/lang/limits_test.c". */
static bool
read_elsewhere(const char *root, const char *path)
{
	char id[16], test[200], full[4096];
	bool ok = true;
	FILE *f = fopen(path, "r");
	if (!f) {
		printf("%s: can't be read\n", path);
		return false;
	}
	while (fscanf(f, "%15s %199s", id, test) == 2) {
		size_t n = 0;
		snprintf(full, sizeof full, "%s/%s", root, test);
		char *text = read_whole(full, &n);
		if (!code_named(id) || !text || !strstr(text, id)) {
			printf("%s: %s does not name %s\n", path, test, id);
			ok = false;
		} else {
			covered[code_named(id)] = true;
		}
		free(text);
	}
	fclose(f);
	return ok;
}

static bool
all_covered(void)
{
	bool ok = true;
	for (unsigned c = 1; c < code_count; c++) {
		if (covered[c] || code_info[c].severity == SEV_REMARK)
			continue;
		printf("%s (%s) is met by no test\n", code_info[c].id, code_info[c].title);
		ok = false;
	}
	return ok;
}

int
main(int argc, char **argv)
{
	static char *file[MAX_FILES];
	unsigned n = 0, failed = 0;
	DIR *dir = (argc == 2 || argc == 4) && code_count <= MAX_CODES ? opendir(argv[1]) : NULL;
	if (!dir) {
		printf("usage: must_fail DIR [ROOT ELSEWHERE]\n");
		return 2;
	}
	for (const struct dirent *e; (e = readdir(dir)) != NULL && n < MAX_FILES;) {
		size_t len = strlen(e->d_name);
		if (len < 4 || strcmp(e->d_name + len - 4, ".tex") != 0)
			continue;
		file[n] = malloc(strlen(argv[1]) + len + 2);
		sprintf(file[n++], "%s/%s", argv[1], e->d_name);
	}
	closedir(dir);
	qsort(file, n, sizeof file[0], by_name);
	for (unsigned k = 0; k < n; k++) {
		failed += !run_file(file[k]);
		free(file[k]);
	}
	bool ok = true;
	if (argc == 4) {
		ok = read_elsewhere(argv[2], argv[3]);
		ok = all_covered() && ok;
	}
	printf("%u programs, %u failed; %u diagnostics at their places\n", n, failed, total);
	return failed || !ok || n == 0 ? 1 : 0;
}
