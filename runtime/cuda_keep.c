/* cuda_keep.c: machine code of the driver's assembler, for a maker that keeps it. A driver tells nobody what it has made of
 * a text that it was given to load; what it links it tells. But it assembles what it links for code to be added, and then
 * takes more registers, so that fewer blocks are resident. So a kernel runs as it was loaded, and once, where it is to be
 * kept, it is linked as well, with as many blocks to be resident as those registers allow; it is kept if they are and no
 * register is spilled that was not, and else it is kept that they are not. Whatever fails here is nobody's failure: another
 * process assembles the text. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/cuda.h"
#include "runtime/cuda_program.h"

enum { LOCAL_BYTES = 3, REGISTERS = 4 }; /* attributes of a function */
enum { ALL_REGISTERS = 1 << 16, UNIT = 8, WARP = 32, MOST_BLOCKS = 32 };

typedef struct {
	int registers, local;
} Needs;

static bool
ask(Cuda *c, void *module, const char *symbol, Needs *out)
{
	void *f = NULL;
	return !cuda_find_function(c, module, symbol, &f) &&
	       !cuda_result(c, c->driver.function_attribute(&out->registers, REGISTERS, f), "tell a kernel's registers") &&
	       !cuda_result(c, c->driver.function_attribute(&out->local, LOCAL_BYTES, f), "tell a kernel's memory");
}

/* Of so many threads, how many a multiprocessor has registers for. */
static unsigned
blocks_of(const Needs *n, unsigned threads)
{
	unsigned each = ((unsigned)n->registers + UNIT - 1) / UNIT * UNIT, lanes = (threads + WARP - 1) / WARP * WARP;
	unsigned blocks = each && lanes ? ALL_REGISTERS / (each * lanes) : 1;
	return blocks < 1 ? 1 : blocks > MOST_BLOCKS ? MOST_BLOCKS : blocks;
}

/* The text, which says that so many blocks are to be resident; NULL: there is no memory, or no place for it. */
static char *
with_blocks(Rt *rt, const char *text, unsigned blocks)
{
	static const char word[] = "\n.minnctapersm ";
	const char *at = strstr(text, word), *rest = at ? at : strstr(text, "\n.reqntid ");
	rest = rest ? rest : strstr(text, "\n.maxntid ");
	rest = rest ? strchr(rest + 1, '\n') : NULL;
	if (!rest)
		return NULL;
	size_t head = (size_t)((at ? at : rest) - text), room = strlen(text) + 32;
	char *to = rt_alloc(rt, room, 1);
	if (to)
		snprintf(to, room, "%.*s%s%u%s", (int)head, text, word, blocks, rest);
	return to;
}

static bool
suits(Cuda *c, const char *machine, const char *symbol, const Needs *loaded, unsigned threads, bool *worse)
{
	void *module = NULL;
	Needs linked = {0};
	if (cuda_load_text(c, machine, &module))
		return false;
	bool known = ask(c, module, symbol, &linked);
	*worse = known && (linked.local > loaded->local || blocks_of(&linked, threads) < blocks_of(loaded, threads));
	c->driver.module_unload(module);
	return known && !*worse;
}

void
cuda_keep_code(const texo_program *p, const texo_private_kernel *kernel, const texo_private_code *made, unsigned threads, void *module)
{
	Cuda *c = p->rt->cuda;
	Needs loaded = {0};
	void *link, *machine;
	size_t bytes;
	bool worse = false;
	char *text = ask(c, module, kernel->symbol, &loaded) ? with_blocks(p->rt, made->text, blocks_of(&loaded, threads)) : NULL;
	if (text && !cuda_assemble(c, text, &link, &machine, &bytes)) {
		if (suits(c, machine, kernel->symbol, &loaded, threads, &worse) || worse)
			p->maker.keep(p->maker.user, kernel, worse ? NULL : machine, worse ? 0 : bytes);
		cuda_forget_code(c, link);
	}
	rt_release(p->rt, text);
}
