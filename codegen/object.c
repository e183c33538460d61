/* object.c: the symbol table of a 64-bit ELF object. */
#include "codegen/object.h"

#include <elf.h>

const char *
object_undefined(const void *object, size_t n)
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
			if (symbol[i].st_shndx == SHN_UNDEF)
				return names + symbol[i].st_name;
	}
	return NULL;
}
