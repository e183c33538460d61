/* load_elf.c: maps the code of an x86-64 relocatable object. Its text and read-only sections go into
 * one mapping, text pages first, so that 32-bit displacements reach; relocations are applied while
 * the pages are writable and not executable; then text becomes read-execute and the rest read-only.
 * Code that wants writable data, another relocation, or a symbol that neither it
 * nor ir/image_imports.def has is refused. The object is
 * hostile: every offset, count and index in it is checked against the file. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include <elf.h>
#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/inside.h"

/* The mapping begins with LEAD bytes of nothing, since a caller built with clang's sanitizer reads
 * before the function it calls; then a jump to each import, which may lie anywhere. */
enum {
	LEAD = 16,
	THUNK = 16,
	IMPORTS = 0
#define IMPORT(id, summary) +1
#include "ir/image_imports.def"
};

static const struct {
	const char *name;
	void (*function)(void);
} import[IMPORTS] = {
#define IMPORT(id, summary) {#id, (void (*)(void))id},
#include "ir/image_imports.def"
};

static const uint64_t NOT_MAPPED = UINT64_MAX;
static const uint64_t MAX_CODE = UINT64_C(1) << 30;

static texo_status
bad(const char *what)
{
	return rt_fail(TEXO_BAD_ARTEFACT, "the artefact's code can't be loaded: %s", what);
}

static bool
inside(const Code *c, uint64_t at, uint64_t n, size_t align)
{
	return at % align == 0 && at <= c->object_bytes && n <= c->object_bytes - at;
}

static const Elf64_Ehdr *
header(const Code *c)
{
	return (const Elf64_Ehdr *)(const void *)c->object;
}

static const Elf64_Shdr *
section(const Code *c, uint32_t n)
{
	return (const Elf64_Shdr *)(const void *)(c->object + header(c)->e_shoff) + n;
}

static bool
header_ok(const Code *c)
{
	if (!inside(c, 0, sizeof(Elf64_Ehdr), 1))
		return false;
	const Elf64_Ehdr *h = header(c);
	return memcmp(h->e_ident, ELFMAG, SELFMAG) == 0 && h->e_ident[EI_CLASS] == ELFCLASS64 &&
	       h->e_ident[EI_DATA] == ELFDATA2LSB && h->e_type == ET_REL && h->e_machine == EM_X86_64 &&
	       h->e_shentsize == sizeof(Elf64_Shdr) && h->e_shnum > 0 &&
	       inside(c, h->e_shoff, (uint64_t)h->e_shnum * sizeof(Elf64_Shdr), 8);
}

static bool
is_mapped(const Elf64_Shdr *s)
{
	return (s->sh_flags & SHF_ALLOC) && s->sh_size > 0;
}

/* --- layout --- */

static uint64_t
round_up(uint64_t n, uint64_t to)
{
	return (n + to - 1) / to * to;
}

/* Places the mapped sections that are (text) or are not executable from *end on. */
static bool
place(const Code *c, uint64_t *at, bool text, uint64_t page, uint64_t *end)
{
	for (uint32_t n = 0; n < header(c)->e_shnum; n++) {
		const Elf64_Shdr *s = section(c, n);
		if (!is_mapped(s) || ((s->sh_flags & SHF_EXECINSTR) != 0) != text)
			continue;
		uint64_t align = s->sh_addralign ? s->sh_addralign : 1;
		if ((align & (align - 1)) || align > page || s->sh_size > MAX_CODE)
			return false;
		at[n] = round_up(*end, align);
		*end = at[n] + s->sh_size;
		if (*end > MAX_CODE)
			return false;
	}
	*end = round_up(*end, page);
	return true;
}

static texo_status
lay_out(Rt *rt, Code *c)
{
	uint32_t count = header(c)->e_shnum;
	uint64_t *at = rt_alloc(rt, count, sizeof *at), end = LEAD + IMPORTS * THUNK, page = (uint64_t)sysconf(_SC_PAGESIZE);
	if (!at)
		return rt_fail(TEXO_NO_MEMORY, "out of memory");
	c->section_at = at;
	for (uint32_t n = 0; n < count; n++) {
		const Elf64_Shdr *s = section(c, n);
		at[n] = NOT_MAPPED;
		if (!is_mapped(s))
			continue;
		if (s->sh_flags & (SHF_WRITE | SHF_TLS))
			return bad("it has writable data");
		if (s->sh_type != SHT_NOBITS && !inside(c, s->sh_offset, s->sh_size, 1))
			return bad("a section lies outside");
	}
	if (!place(c, at, true, page, &end))
		return bad("a section is too large");
	c->text_bytes = (size_t)end;
	if (!place(c, at, false, page, &end))
		return bad("a section is too large");
	c->bytes = (size_t)end;
	return TEXO_OK;
}

/* jmp *0(%rip), and the address behind it. */
static void
put_thunks(Code *c)
{
	static const uint8_t jump[6] = {0xff, 0x25};
	for (unsigned n = 0; n < IMPORTS; n++) {
		uint8_t *at = c->at + LEAD + n * THUNK;
		memcpy(at, jump, sizeof jump);
		memcpy(at + sizeof jump, &import[n].function, sizeof import[n].function);
	}
}

static texo_status
map_sections(Code *c)
{
	void *p = mmap(NULL, c->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return rt_fail(TEXO_NO_MEMORY, "no memory can be mapped for code");
	c->at = p;
	put_thunks(c);
	for (uint32_t n = 0; n < header(c)->e_shnum; n++) {
		const Elf64_Shdr *s = section(c, n);
		if (c->section_at[n] != NOT_MAPPED && s->sh_type != SHT_NOBITS)
			memcpy(c->at + c->section_at[n], c->object + s->sh_offset, s->sh_size);
	}
	return TEXO_OK;
}

/* --- symbols --- */

static bool
table_ok(const Code *c, const Elf64_Shdr *s, size_t size)
{
	return s->sh_entsize == size && s->sh_size % size == 0 && inside(c, s->sh_offset, s->sh_size, 8);
}

/* Whether the string at offset `at` of the section is `name`. */
static bool
is_text(const Code *c, const Elf64_Shdr *strings, uint64_t at, const char *name)
{
	size_t length = strlen(name) + 1;
	return at < strings->sh_size && strings->sh_size - at >= length &&
	       memcmp(c->object + strings->sh_offset + at, name, length) == 0;
}

/* The string table of symbol table s, or NULL. */
static const Elf64_Shdr *
strings_of(const Code *c, const Elf64_Shdr *s)
{
	if (s->sh_link >= header(c)->e_shnum)
		return NULL;
	const Elf64_Shdr *strings = section(c, s->sh_link);
	return inside(c, strings->sh_offset, strings->sh_size, 1) ? strings : NULL;
}

/* The offset of the jump to an import of this name. */
static bool
import_at(const Code *c, const Elf64_Shdr *strings, const Elf64_Sym *s, uint64_t *at)
{
	for (unsigned n = 0; strings && n < IMPORTS; n++)
		if (is_text(c, strings, s->st_name, import[n].name)) {
			*at = LEAD + n * THUNK;
			return true;
		}
	return false;
}

/* The offset in the mapping of a symbol that the object defines. */
static bool
symbol_at(const Code *c, const Elf64_Sym *s, uint64_t *at)
{
	if (s->st_shndx == SHN_UNDEF || s->st_shndx >= header(c)->e_shnum ||
	    c->section_at[s->st_shndx] == NOT_MAPPED || s->st_value > section(c, s->st_shndx)->sh_size)
		return false;
	*at = c->section_at[s->st_shndx] + s->st_value;
	return true;
}

/* --- relocations --- */

static bool
fits(int64_t v, uint32_t type)
{
	return type == R_X86_64_32 ? v >= 0 && v <= UINT32_MAX : v >= INT32_MIN && v <= INT32_MAX;
}

/* Writes s + a, or s + a - p, at p. */
static texo_status
relocate(Code *c, uint32_t type, uint64_t p, uint64_t space, uint64_t s, int64_t addend)
{
	uint64_t base = (uint64_t)(uintptr_t)c->at, v = base + s + (uint64_t)addend;
	bool relative = type == R_X86_64_PC32 || type == R_X86_64_PLT32 || type == R_X86_64_PC64;
	bool wide = type == R_X86_64_64 || type == R_X86_64_PC64;
	if (!relative && !wide && type != R_X86_64_32 && type != R_X86_64_32S)
		return bad("it has a relocation of an unknown kind");
	if (space < (wide ? 8 : 4))
		return bad("a relocation lies outside");
	if (relative)
		v -= base + p;
	if (!wide && !fits((int64_t)v, type))
		return bad("a relocation doesn't reach");
	memcpy(c->at + p, &v, wide ? 8 : 4);
	return TEXO_OK;
}

static texo_status
relocate_section(Code *c, const Elf64_Shdr *r)
{
	uint32_t count = header(c)->e_shnum;
	if (r->sh_info >= count || c->section_at[r->sh_info] == NOT_MAPPED)
		return TEXO_OK; /* about a section that isn't loaded */
	if (!table_ok(c, r, sizeof(Elf64_Rela)) || r->sh_link >= count ||
	    section(c, r->sh_link)->sh_type != SHT_SYMTAB ||
	    !table_ok(c, section(c, r->sh_link), sizeof(Elf64_Sym)))
		return bad("a table lies outside");
	const Elf64_Shdr *target = section(c, r->sh_info), *symbols = section(c, r->sh_link);
	const Elf64_Rela *rela = (const Elf64_Rela *)(const void *)(c->object + r->sh_offset);
	const Elf64_Sym *symbol = (const Elf64_Sym *)(const void *)(c->object + symbols->sh_offset);
	for (uint64_t n = 0; n < r->sh_size / sizeof *rela; n++) {
		uint64_t s, index = ELF64_R_SYM(rela[n].r_info);
		if (index >= symbols->sh_size / sizeof *symbol ||
		    (symbol[index].st_shndx == SHN_UNDEF ? !import_at(c, strings_of(c, symbols), &symbol[index], &s)
		                                         : !symbol_at(c, &symbol[index], &s)))
			return bad("it needs a symbol that it doesn't define");
		if (rela[n].r_offset > target->sh_size)
			return bad("a relocation lies outside");
		texo_status status = relocate(c, ELF64_R_TYPE(rela[n].r_info), c->section_at[r->sh_info] + rela[n].r_offset,
		                              target->sh_size - rela[n].r_offset, s, rela[n].r_addend);
		if (status)
			return status;
	}
	return TEXO_OK;
}

static texo_status
protect(Code *c)
{
	if (mprotect(c->at, c->text_bytes, PROT_READ | PROT_EXEC) != 0 ||
	    (c->bytes > c->text_bytes && mprotect(c->at + c->text_bytes, c->bytes - c->text_bytes, PROT_READ) != 0))
		return rt_fail(TEXO_NO_DEVICE, "the system doesn't let generated code run");
	return TEXO_OK;
}

texo_status
code_load(Rt *rt, const uint8_t *object, size_t n, Code *c)
{
	*c = (Code){.object = object, .object_bytes = n};
	if (!header_ok(c))
		return bad("it is no x86-64 object");
	texo_status s = lay_out(rt, c);
	if (!s)
		s = map_sections(c);
	for (uint32_t k = 0; !s && k < header(c)->e_shnum; k++) {
		uint32_t type = section(c, k)->sh_type;
		if (type == SHT_REL)
			s = bad("it has relocations without addends");
		if (type == SHT_RELA)
			s = relocate_section(c, section(c, k));
	}
	if (!s)
		s = protect(c);
	if (s)
		code_unload(rt, c);
	return s;
}

void
code_unload(Rt *rt, Code *c)
{
	if (c->at)
		munmap(c->at, c->bytes);
	rt_release(rt, (void *)(uintptr_t)c->section_at);
	*c = (Code){0};
}

/* --- entry points --- */

/* The symbol of this name in symbol table s; NULL if it isn't there. */
static const Elf64_Sym *
find_symbol(const Code *c, const Elf64_Shdr *s, const char *name)
{
	const Elf64_Shdr *strings = strings_of(c, s);
	if (!table_ok(c, s, sizeof(Elf64_Sym)) || !strings)
		return NULL;
	const Elf64_Sym *symbol = (const Elf64_Sym *)(const void *)(c->object + s->sh_offset);
	for (uint64_t n = 0; n < s->sh_size / sizeof *symbol; n++)
		if (is_text(c, strings, symbol[n].st_name, name))
			return &symbol[n];
	return NULL;
}

ImageCpuKernel *
code_symbol(const Code *c, const char *name)
{
	for (uint32_t k = 0; k < header(c)->e_shnum; k++) {
		const Elf64_Sym *s = section(c, k)->sh_type == SHT_SYMTAB ? find_symbol(c, section(c, k), name) : NULL;
		uint64_t at;
		if (!s || !symbol_at(c, s, &at) || at >= c->text_bytes)
			continue;
		void *p = c->at + at;
		ImageCpuKernel *f;
		memcpy(&f, &p, sizeof f); /* ISO C has no cast from object to function */
		return f;
	}
	return NULL;
}
