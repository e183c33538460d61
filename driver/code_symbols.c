/* code_symbols.c: the functions and their sizes in an ELF file, or in the members of an archive. The bytes
 * are hostile: every offset and count is held against the file, and copied out, since members of archives
 * are not aligned. */
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

static void
table_symbols(const Object *o, const Elf64_Shdr *table, const Elf64_Shdr *names)
{
	const char *text = (const char *)o->at + names->sh_offset;
	for (uint64_t k = 0; k < table->sh_size / sizeof(Elf64_Sym); k++) {
		Elf64_Sym s;
		if (!take(o, table->sh_offset + k * sizeof s, &s, sizeof s))
			return;
		bool function = ELF64_ST_TYPE(s.st_info) == STT_FUNC && s.st_shndx != SHN_UNDEF;
		if (function && s.st_name < names->sh_size && memchr(text + s.st_name, 0, names->sh_size - s.st_name))
			vec_push(o->arena, o->out, ((CodeSymbol){text + s.st_name, s.st_size}));
	}
}

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
	if (n < sizeof(Elf64_Ehdr) || memcmp(b, ELFMAG, SELFMAG) != 0)
		return NULL;
	Elf64_Ehdr h;
	memcpy(&h, b, sizeof h);
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
