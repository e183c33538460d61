/* sema_module.c: files and their items. A file's own items come first, then those of the files it
 * uses, in order, the standard library last. */
#include "frontend/sema.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

static void
add_item(Sema *s, uint32_t module, AstId id)
{
	const AstNode *n = ast_get(s->ast, id);
	if (s->item_of.n <= n->name)
		vec_grow(s->arena, &s->item_of, n->name + 1 - s->item_of.n);
	for (uint32_t i = s->item_of.at[n->name]; i; i = s->item_next.at[i - 1])
		if (s->item.at[i - 1].module == module) {
			Diag *d = diag_add(s->diags, DIAG_E0224, n->name_at, "`%s` is defined twice", name_text(s->names, n->name));
			diag_note(s->diags, d, ast_get(s->ast, s->item.at[i - 1].ast)->name_at, "first defined here");
			return;
		}
	if (n->kind == AST_FN && (is_reduction(s, n->name) || is_builtin_call(s, n->name))) {
		diag_add(s->diags, DIAG_E0225, n->name_at, "`%s` is built in", name_text(s->names, n->name))->help =
			"give the function another name";
		return;
	}
	vec_push(s->arena, &s->item, ((Item){.name = n->name, .ast = id, .module = module}));
	vec_push(s->arena, &s->item_next, s->item_of.at[n->name]);
	s->item_of.at[n->name] = s->item.n;
}

/* Formals are distinct, and none has the name of an index. */
static void
check_fn(Sema *s, AstId id)
{
	AstId list[2] = {ast_kid(s->ast, id, 0), ast_kid(s->ast, id, 1)};
	for (int a = 0; a < 2; a++)
		for (unsigned i = 0; i < ast_get(s->ast, list[a])->nkid; i++) {
			const AstNode *n = ast_get(s->ast, ast_kid(s->ast, list[a], i));
			for (int b = 0; b <= a; b++)
				for (unsigned j = 0; j < (b == a ? i : ast_get(s->ast, list[b])->nkid); j++)
					if (ast_get(s->ast, ast_kid(s->ast, list[b], j))->name == n->name)
						diag_add(s->diags, DIAG_E0219, n->at, "`%s` stands twice among the names of `%s`",
						         name_text(s->names, n->name), name_text(s->names, ast_get(s->ast, id)->name));
		}
}

static uint32_t
std_module(Sema *s)
{
	for (uint32_t m = 0; m < s->module.n; m++)
		if (s->module.at[m].is_std)
			return m;
	FileId f = diags_add_file(s->diags, "std.tex", std_text, std_text_size);
	return sema_load(s, f, "std.tex", true);
}

static bool
read_whole(Sema *s, const char *path, char **text, size_t *n)
{
	const HostFiles *h = &s->options->host->files;
	int64_t size;
	int regular;
	if (h->stat(h->user, path, &size, &regular) != 0)
		return false;
	if (!regular) {
		errno = EISDIR;
		return false;
	}
	if (size > 2 * 1024 * 1024)
		size = 2 * 1024 * 1024; /* the parser names the limit */
	*text = arena_alloc(s->arena, (size_t)size + 1); /* before the file is open: it may unwind */
	*n = 0;
	int fd = h->open(h->user, path, O_RDONLY, 0);
	if (fd < 0)
		return false;
	while (*n < (size_t)size) {
		ptrdiff_t got = h->read(h->user, fd, *text + *n, (size_t)size - *n);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		*n += (size_t)got;
	}
	h->close(h->user, fd);
	return true;
}

/* The path of a used file, relative to the file that uses it. */
static const char *
resolve_path(Sema *s, const char *from, const char *path)
{
	const char *slash = strrchr(from, '/');
	if (path[0] == '/' || !slash)
		return arena_text(s->arena, "%s", path);
	return arena_text(s->arena, "%.*s/%s", (int)(slash - from), from, path);
}

static void
use_file(Sema *s, uint32_t module, AstId id)
{
	AstNode n = *ast_get(s->ast, id);
	const char *want = name_text(s->names, n.num.text);
	if (strcmp(want, "std") == 0) {
		uint32_t m = std_module(s);
		vec_push(s->arena, &s->module.at[module].uses, m);
		return;
	}
	const char *path = resolve_path(s, s->module.at[module].path, want);
	for (uint32_t m = 0; m < s->module.n; m++)
		if (!s->module.at[m].is_std && strcmp(s->module.at[m].path, path) == 0) {
			if (s->module.at[m].active)
				diag_add(s->diags, DIAG_E0226, n.at, "`%s` uses itself through this line", want);
			vec_push(s->arena, &s->module.at[module].uses, m);
			return;
		}
	char *text;
	size_t size;
	if (!s->options->host || !read_whole(s, path, &text, &size)) {
		diag_add(s->diags, DIAG_E0801, n.at, "can't read `%s`: %s", path,
		         s->options->host ? strerror(errno) : "files are not available here");
		return;
	}
	FileId f = diags_add_file(s->diags, path, text, size);
	uint32_t m = sema_load(s, f, path, false);
	vec_push(s->arena, &s->module.at[module].uses, m);
}

uint32_t
sema_load(Sema *s, FileId file, const char *path, bool is_std)
{
	vec_push(s->arena, &s->module, ((Module){.file = file, .path = path, .is_std = is_std, .active = true}));
	uint32_t m = s->module.n - 1;
	AstId ast = parse_file(s->ast, file);
	s->module.at[m].ast = ast;
	for (unsigned k = 0; k < ast_get(s->ast, ast)->nkid; k++) {
		AstId id = ast_kid(s->ast, ast, k);
		AstKind kind = (AstKind)ast_get(s->ast, id)->kind;
		if (kind == AST_USE)
			use_file(s, m, id);
		else
			add_item(s, m, id);
		if (kind == AST_FN)
			check_fn(s, id);
	}
	s->module.at[m].active = false;
	return m;
}

static Item *
find_in(Sema *s, uint32_t module, Name name, unsigned depth, bool std)
{
	if (name >= s->item_of.n || depth > 64)
		return NULL;
	for (uint32_t i = s->item_of.at[name]; i; i = s->item_next.at[i - 1])
		if (s->item.at[i - 1].module == module && s->module.at[module].is_std == std)
			return &s->item.at[i - 1];
	for (uint32_t u = 0; u < s->module.at[module].uses.n; u++) {
		Item *found = find_in(s, s->module.at[module].uses.at[u], name, depth + 1, std);
		if (found)
			return found;
	}
	return NULL;
}

Item *
item_find(Sema *s, uint32_t module, Name name)
{
	Item *own = find_in(s, module, name, 0, false);
	return own ? own : find_in(s, module, name, 0, true);
}

const char *
item_std_hint(Sema *s, uint32_t module, Name name)
{
	const char *text = name_text(s->names, name);
	uint32_t before = s->diags->nerror, m = std_module(s);
	if (s->diags->nerror != before)
		return NULL;
	for (uint32_t i = name < s->item_of.n ? s->item_of.at[name] : 0; i; i = s->item_next.at[i - 1])
		if (s->item.at[i - 1].module == m)
			return item_find(s, module, name)
			           ? arena_text(s->arena, "what else is called `%s` hides the standard library's: give it another name", text)
			           : arena_text(s->arena, "`%s` is in the standard library: add `use \"std\"` at the top of the file", text);
	return NULL;
}
