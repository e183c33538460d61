/* arena.h: the memory of one compilation, growable arrays in it, and the one way out of it.
 *
 * An Arena hands out zeroed memory that is freed all at once. When the host has no more memory, or
 * a bug() is met, control unwinds to the arena's `unwind` point with a status; nothing in between
 * owns anything outside the arena, so nothing leaks. This is the only longjmp in the tree. */
#ifndef TEXO_IR_ARENA_H
#define TEXO_IR_ARENA_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ir/host.h"

typedef enum { UNWIND_NONE = 0, UNWIND_NO_MEMORY, UNWIND_LIMIT, UNWIND_BUG } UnwindWhy;

typedef struct {
	jmp_buf env;
	UnwindWhy why;
	char text[512]; /* which limit or which bug */
} Unwind;

typedef struct ArenaBlock ArenaBlock;

typedef struct Arena {
	const HostMemory *memory;
	Unwind *unwind;  /* must be set before the first allocation */
	ArenaBlock *top;
	size_t used, limit; /* bytes handed out; limit 0 = none (UNWIND_LIMIT beyond it) */
} Arena;

void arena_init(Arena *a, const HostMemory *m, Unwind *u);
void arena_free(Arena *a);
/* n zeroed bytes, aligned to 16; never NULL. */
void *arena_alloc(Arena *a, size_t n);
void *arena_copy(Arena *a, const void *p, size_t n);
char *arena_text(Arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
_Noreturn void arena_unwind(Arena *a, UnwindWhy why, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Our own mistake: names the place and unwinds with UNWIND_BUG. */
#define bug(arena, ...) arena_unwind((arena), UNWIND_BUG, __VA_ARGS__)

#define ARENA_NEW(a, T) ((T *)arena_alloc((a), sizeof(T)))
#define ARENA_ARRAY(a, T, n) ((T *)arena_array((a), sizeof(T), (n)))
void *arena_array(Arena *a, size_t size, size_t n); /* checks size * n */

/* VEC(T): a growable array in an arena. vec_push appends a value, vec_grow adds n zeroed ones. */
#define VEC(T)            \
	struct {              \
		T *at;            \
		uint32_t n, cap;  \
	}
#define vec_room(a, v, k) ((v)->at = arena_grow((a), (v)->at, sizeof *(v)->at, (v)->n, &(v)->cap, (k)))
#define vec_grow(a, v, k) (vec_room((a), (v), (k)), (v)->n += (uint32_t)(k))
#define vec_push(a, v, x) \
	((void)((v)->n < (v)->cap || vec_room((a), (v), 1)), (v)->n += 1, (v)->at[(v)->n - 1] = (x))
void *arena_grow(Arena *a, void *at, size_t size, uint32_t n, uint32_t *cap, size_t extra);

#endif
