/* format_files.c: usage: format_files ROOT SEED
 *
 * Every program of the tree that parses is laid out: to the same meaning (frontend_layout compares the
 * trees itself and unwinds otherwise), with the same comments, stable when laid out again, without
 * blanks at line ends, tabs outside comments, or two empty lines. Then with its blanks changed at random,
 * line ends added where they mean nothing: laid out to the same text. Then with comments put in at random
 * line ends and blanks: same comments, stable. What does not parse is refused with an error. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/frontend.h"

enum { MAX_BYTES = 1 << 21, ROUNDS = 6 };

typedef struct {
	Arena arena;
	Unwind unwind;
	Names *names;
	Diags diags;
	uint64_t rng;
	const char *path;
	unsigned failed, laid, refused, comments;
} Files;

static unsigned
below(Files *f, unsigned n)
{
	f->rng = f->rng * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(f->rng >> 33) % n;
}

static void
fail(Files *f, const char *what, const char *text)
{
	f->failed++;
	printf("%s: %s\n%s\n", f->path, what, text ? text : "");
}

/* NULL where it does not parse. */
static const char *
lay(Files *f, const char *text)
{
	size_t n;
	f->diags.list.n = f->diags.nerror = f->diags.nwarning = 0;
	const char *out = frontend_layout(&f->arena, f->names, &f->diags,
	                                  diags_add_file(&f->diags, f->path, text, strlen(text)), &n);
	if (!out && f->diags.nerror == 0)
		fail(f, "refused without an error", text);
	return out;
}

/* Its comments, one a line, without blanks at their ends. No program here has a `#` in a string. */
static const char *
comments_of(Files *f, const char *text, unsigned *count)
{
	Text out;
	text_init(&out, &f->arena);
	*count = 0;
	for (const char *c = text; (c = strchr(c, '#')); c += strcspn(c, "\n")) {
		size_t n = strcspn(c, "\n");
		while (strchr(" \t\r", c[n - 1]))
			n--;
		text_add(&out, c, n);
		text_add(&out, "\n", 1);
		++*count;
	}
	return text_get(&out);
}

static bool
is_tidy(const char *text)
{
	bool comment = false;
	for (const char *c = text; *c; c++) {
		comment = *c == '#' || (comment && *c != '\n');
		if (*c == '\n' && (c[1] == 0 ? c > text && c[-1] == '\n' : c[1] == '\n' && c[2] == '\n'))
			return false;
		if ((*c == '\t' && !comment) || (*c == ' ' && c[1] == '\n') || (c == text && *c == '\n'))
			return false;
	}
	return !*text || text[strlen(text) - 1] == '\n';
}

/* What holds for every layout. */
static const char *
check(Files *f, const char *text)
{
	unsigned before, after;
	const char *out = lay(f, text), *again = out ? lay(f, out) : NULL;
	if (!out)
		return NULL;
	f->laid++;
	if (!again || strcmp(out, again) != 0)
		fail(f, "is not stable", out);
	if (strcmp(comments_of(f, text, &before), comments_of(f, out, &after)) != 0)
		fail(f, "loses comments", out);
	if (!is_tidy(out))
		fail(f, "is not tidy", out);
	f->comments += before;
	return out;
}

/* The text with its blanks changed, and with comments; what stands in comments and strings stays. */
static const char *
change(Files *f, const char *text, bool comments)
{
	static const char *const blanks[] = {" ", "  ", "\t", "    ", " \t "};
	int depth = 0;
	Text out;
	text_init(&out, &f->arena);
	for (const char *c = text; *c;) {
		size_t kept = *c == '#' ? strcspn(c, "\n") : *c == '"' ? strcspn(c + 1, "\"") + 2 : 0;
		if (kept) {
			text_add(&out, c, kept);
			c += kept;
			continue;
		}
		depth += (*c == '(' || *c == '[') - (*c == ')' || *c == ']');
		if (comments && (*c == '\n' || (*c == ' ' && depth > 0)) && below(f, 8) == 0)
			text_printf(&out, "%*s# note %u \n%*s", (int)below(f, 4), "", below(f, 99), (int)below(f, 9), "");
		else if (*c == ' ' && depth > 0 && below(f, 4) == 0)
			text_add(&out, "\n", 1);
		else if (*c == ' ')
			text_printf(&out, "%s", blanks[below(f, 5)]);
		if (*c != ' ')
			text_add(&out, c, 1);
		c++;
	}
	return text_get(&out);
}

static void
check_file(Files *f, const char *text)
{
	const char *plain = check(f, text);
	if (!plain) {
		f->refused++;
		return;
	}
	for (unsigned k = 0; k < ROUNDS; k++) {
		const char *same = change(f, text, false), *noted = change(f, text, true);
		const char *out = check(f, same);
		if (!out || strcmp(out, plain) != 0)
			fail(f, "blanks make a difference", same);
		if (!check(f, noted))
			fail(f, "a comment makes a difference", noted);
	}
}

static void
run_file(Files *f, const char *path)
{
	FILE *in = fopen(path, "rb");
	arena_init(&f->arena, &host_default()->memory, &f->unwind);
	f->path = path;
	if (setjmp(f->unwind.env)) {
		fail(f, f->unwind.text, NULL);
	} else if (in) {
		char *text = arena_alloc(&f->arena, MAX_BYTES);
		text[fread(text, 1, MAX_BYTES - 1, in)] = 0;
		f->names = names_new(&f->arena);
		diags_init(&f->diags, &f->arena);
		check_file(f, text);
	}
	if (in)
		fclose(in);
	arena_free(&f->arena);
}

static void
run_folder(Files *f, const char *root, const char *folder)
{
	char path[1024];
	snprintf(path, sizeof path, "%s/%s", root, folder);
	DIR *d = opendir(path);
	for (struct dirent *e; d && (e = readdir(d));) {
		size_t n = strlen(e->d_name);
		if (n < 4 || strcmp(e->d_name + n - 4, ".tex") != 0)
			continue;
		snprintf(path, sizeof path, "%s/%s/%s", root, folder, e->d_name);
		run_file(f, path);
	}
	if (d)
		closedir(d);
}

int
main(int argc, char **argv)
{
	static const char *const folders[] = {"examples", "frontend", "tests/lang/rules", "tests/lang/must_fail",
	                                      "tests/run/programs", "tests/text", "tests/structure"};
	static Files f;
	if (argc != 3)
		return 2;
	f.rng = strtoull(argv[2], NULL, 10);
	for (size_t k = 0; k < sizeof folders / sizeof folders[0]; k++)
		run_folder(&f, argv[1], folders[k]);
	printf("seed %s: %u texts laid out, %u comments, %u files refused, %u failed\n", argv[2], f.laid, f.comments,
	       f.refused, f.failed);
	return f.failed || f.laid < 1000 || f.refused < 20 || f.comments < 1000;
}
