/* code_symbols.c: the functions and their sizes in an ELF file, or in the members of an archive; of a GPU's
 * file also what each takes of a thread's registers and stack. The bytes
 * are hostile: every offset and count is held against the file, and copied out, since members of archives
 * are not aligned. */
#include "driver/cache/entry.h"
#include "driver/inspection.h"
#include "ir/image.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
	Arena *arena;
	const uint8_t *at;
	size_t n;
	CodeSymbols *out;
} Object;

static bool
take(const Object *o, uint64_t at, void *to, size_t size)
{
	if (at > o->n || size > o->n - at)
		return false;
	memcpy(to, o->at + at, size);
	return true;
}

static bool
section(const Object *o, const Elf64_Ehdr *h, uint32_t k, Elf64_Shdr *out)
{
	return k < h->e_shnum && h->e_shentsize == sizeof *out && h->e_shoff <= o->n &&
	       take(o, h->e_shoff + (uint64_t)k * sizeof *out, out, sizeof *out) && out->sh_offset <= o->n &&
	       out->sh_size <= o->n - out->sh_offset;
}

/* The name of symbol k, or NULL. */
static const char *
symbol_name(const Object *o, const Elf64_Shdr *table, const Elf64_Shdr *names, uint64_t k, Elf64_Sym *s)
{
	const char *text = (const char *)o->at + names->sh_offset;
	if (k >= table->sh_size / sizeof *s || !take(o, table->sh_offset + k * sizeof *s, s, sizeof *s) ||
	    s->st_name >= names->sh_size || !memchr(text + s->st_name, 0, names->sh_size - s->st_name))
		return NULL;
	return text + s->st_name;
}

static void
table_symbols(const Object *o, const Elf64_Shdr *table, const Elf64_Shdr *names)
{
	for (uint64_t k = 0; k < table->sh_size / sizeof(Elf64_Sym); k++) {
		Elf64_Sym s;
		const char *name = symbol_name(o, table, names, k, &s);
		if (name && ELF64_ST_TYPE(s.st_info) == STT_FUNC && s.st_shndx != SHN_UNDEF)
			vec_push(o->arena, o->out, ((CodeSymbol){name, s.st_size, -1, -1}));
	}
}

/* --- a GPU's --- */

enum { INFO_SECTION = 0x70000000, FORMAT_SIZED = 4, REGISTERS = 0x2f, FRAME = 0x11 };

static void
note_info(const Object *o, const char *name, uint8_t what, uint32_t value)
{
	for (uint32_t k = 0; name && k < o->out->n; k++) {
		CodeSymbol *s = &o->out->at[k];
		if (strcmp(s->name, name) != 0)
			continue;
		s->registers = what == REGISTERS ? value : s->registers;
		s->stack = what == FRAME ? value : s->stack;
	}
}

/* Records of a format, what they tell, and with FORMAT_SIZED so many bytes: a symbol and a value. */
static void
info_symbols(const Object *o, const Elf64_Shdr *info)
{
	Elf64_Ehdr h;
	Elf64_Shdr table, names;
	Elf64_Sym s;
	uint8_t head[4];
	uint32_t word[2];
	uint64_t at = info->sh_offset, end = at + info->sh_size;
	if (!take(o, 0, &h, sizeof h) || !section(o, &h, info->sh_link, &table) || table.sh_type != SHT_SYMTAB ||
	    !section(o, &h, table.sh_link, &names))
		return;
	while (end - at >= sizeof head && take(o, at, head, sizeof head)) {
		uint64_t n = head[0] == FORMAT_SIZED ? (uint64_t)(head[2] | head[3] << 8) : 0;
		at += sizeof head;
		if (n > end - at)
			return;
		if (n == sizeof word && (head[1] == REGISTERS || head[1] == FRAME) && take(o, at, word, sizeof word))
			note_info(o, symbol_name(o, &table, &names, word[0], &s), head[1], word[1]);
		at += n;
	}
}

/* --- files --- */

static void
object_symbols(const Object *o)
{
	Elf64_Ehdr h;
	Elf64_Shdr table, names;
	if (!take(o, 0, &h, sizeof h) || memcmp(h.e_ident, ELFMAG, SELFMAG) != 0 || h.e_ident[EI_CLASS] != ELFCLASS64 ||
	    h.e_ident[EI_DATA] != ELFDATA2LSB)
		return;
	for (uint32_t k = 0; k < h.e_shnum; k++)
		if (section(o, &h, k, &table) && table.sh_type == SHT_SYMTAB && section(o, &h, table.sh_link, &names))
			table_symbols(o, &table, &names);
	for (uint32_t k = 0; h.e_machine == EM_CUDA && k < h.e_shnum; k++)
		if (section(o, &h, k, &table) && table.sh_type == INFO_SECTION)
			info_symbols(o, &table);
}

static void
archive_symbols(const Object *o)
{
	enum { MAGIC = 8, HEADER = 60, SIZE = 48 };
	for (size_t at = MAGIC; at + HEADER <= o->n;) {
		char digits[11] = {0};
		memcpy(digits, o->at + at + SIZE, 10);
		size_t size = strtoul(digits, NULL, 10), from = at + HEADER;
		if (size > o->n - from)
			return;
		object_symbols(&(Object){o->arena, o->at + from, size, o->out});
		at = from + size + size % 2;
	}
}

const char *
inspect_kind(const void *bytes, size_t n)
{
	const uint8_t *b = bytes;
	if (n >= 8 && memcmp(b, "!<arch>\n", 8) == 0)
		return "library";
	if (n >= 8 && memcmp(b, IMAGE_MAGIC, 8) == 0)
		return "artefact";
	if (n >= 8 && memcmp(b, ENTRY_MAGIC, 8) == 0)
		return "cache entry";
	if (n < sizeof(Elf64_Ehdr) || memcmp(b, ELFMAG, SELFMAG) != 0)
		return NULL;
	Elf64_Ehdr h;
	memcpy(&h, b, sizeof h);
	if (h.e_machine == EM_CUDA)
		return "cubin";
	return h.e_type == ET_REL ? "object" : h.e_type == ET_EXEC || h.e_entry ? "program" : "shared library";
}

void
code_symbols(Arena *a, const void *bytes, size_t n, CodeSymbols *out)
{
	const char *kind = inspect_kind(bytes, n);
	Object o = {a, bytes, n, out};
	if (kind && strcmp(kind, "library") == 0)
		archive_symbols(&o);
	else if (kind)
		object_symbols(&o);
}
