/* diag.h: messages to the user, collected in order, rendered as text or JSON.
 *
 * A code's row in codes.def holds its severity, its title and the long text of `texo explain`.
 * Spans are 1-based lines and code-point columns; end_col is one past the last. */
#ifndef TEXO_IR_DIAG_H
#define TEXO_IR_DIAG_H

#include "ir/arena.h"

typedef enum {
	DIAG_NONE = 0,
#define CODE(id, severity, title, text) DIAG_##id,
#include "ir/codes.def"
} DiagCode;

typedef enum { SEV_ERROR, SEV_WARNING, SEV_REMARK } Severity;

typedef struct {
	const char *id; /* "E0207" */
	Severity severity;
	const char *title;
	const char *text;
} CodeInfo;

extern const CodeInfo code_info[];
extern const unsigned code_count; /* rows, entry 0 unused */
const char *severity_text(Severity s);
/* The code spelled "E0207" in any case, or DIAG_NONE. */
DiagCode code_named(const char *id);

typedef uint32_t FileId; /* 0 none */

typedef struct {
	FileId file;
	uint32_t line, col, end_line, end_col;
	uint32_t begin, end; /* byte offsets into the file's text */
} Span;

typedef struct {
	const char *path;
	const char *text; /* n bytes, NUL after them */
	size_t n;
} SourceFile;

typedef struct {
	Span at;
	const char *label;
} DiagNote;

typedef struct {
	DiagCode code;
	Span at;
	const char *message; /* what is wrong, in the user's terms; first line of the report */
	const char *label;   /* under the caret; may be NULL */
	const char *help;    /* the mend; may be NULL */
	VEC(DiagNote) notes; /* secondary spans */
} Diag;

/* A call whose function is being looked into, and the one that that is in. */
typedef struct DiagCall {
	const struct DiagCall *up;
	Span at;
} DiagCall;

typedef struct Diags {
	Arena *arena;
	VEC(SourceFile) files; /* FileId - 1 */
	VEC(Diag) list;
	uint32_t nerror, nwarning;
	uint32_t max_errors; /* 20; further errors are dropped and diags_full() holds */
	const DiagCall *call; /* what is found outside of its text is noted there too; NULL: none */
} Diags;

void diags_init(Diags *d, Arena *a);
FileId diags_add_file(Diags *d, const char *path, const char *text, size_t n);
/* Returns the new diagnostic, so that label, help and notes can be added until the next is made. One
 * said before (code, place and message) or beyond the limit is dropped, and returned all the same. */
Diag *diag_add(Diags *d, DiagCode code, Span at, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
void diag_note(Diags *d, Diag *g, Span at, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
bool diags_full(const Diags *d);
Span span_join(Span a, Span b);

/* The report as in LANGUAGE.md: error[E0207]: …, --> file:line:col, the line, carets, help. Control
 * bytes from the user's text are escaped. */
const char *diags_render(const Diags *d, Arena *out, bool colour);
/* {"diagnostics":[…]} as in INTERFACE.md. */
const char *diags_json(const Diags *d, Arena *out);

#endif
