/* object.c: the symbol table of a 64-bit ELF object. */
#include "codegen/object.h"

#include <elf.h>
#include <stdbool.h>
#include <string.h>

static bool
may_import(const char *name, const char *const *more)
{
	static const char *const import[] = {
#define IMPORT(id, summary) #id,
#include "ir/image_imports.def"
	};
	for (unsigned k = 0; k < sizeof import / sizeof *import; k++)
		if (strcmp(name, import[k]) == 0)
			return true;
	for (; *more; more++)
		if (strcmp(name, *more) == 0)
			return true;
	return false;
}

const char *
object_undefined(const void *object, size_t n, const char *const *import)
{
	const char *base = object;
	const Elf64_Ehdr *h = object;
	if (n < sizeof *h)
		return "";
	const Elf64_Shdr *section = (const Elf64_Shdr *)(base + h->e_shoff);
	for (unsigned s = 0; s < h->e_shnum; s++) {
		if (section[s].sh_type != SHT_SYMTAB)
			continue;
		const Elf64_Sym *symbol = (const Elf64_Sym *)(base + section[s].sh_offset);
		const char *names = base + section[section[s].sh_link].sh_offset;
		for (size_t i = 1; i < section[s].sh_size / sizeof *symbol; i++)
			if (symbol[i].st_shndx == SHN_UNDEF && !may_import(names + symbol[i].st_name, import))
				return names + symbol[i].st_name;
	}
	return NULL;
}
