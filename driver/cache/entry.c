/* entry.c: see entry.h. */
#include "driver/cache/entry.h"

#include <string.h>

#include "ir/bugs.h"

static size_t
round_up(size_t n)
{
	return (n + ENTRY_ALIGN - 1) / ENTRY_ALIGN * ENTRY_ALIGN;
}

/* What is between the end of a part and the next is zero already. */
static char *
put_part(char *at, const char *tag, const void *bytes, size_t n)
{
	EntryPart part = {.bytes = n};
	memcpy(part.tag, tag, strnlen(tag, ENTRY_TAG));
	memcpy(at, &part, sizeof part);
	if (n)
		memcpy(at + sizeof part, bytes, n);
	return at + sizeof part + round_up(n);
}

const void *
entry_make(Arena *a, const void *key, size_t key_bytes, const char *tag, const void *payload, size_t bytes, size_t *n)
{
	EntryHead head = {.version = ENTRY_VERSION, .nparts = 2};
	memcpy(head.magic, ENTRY_MAGIC, sizeof head.magic);
	*n = sizeof head + 2 * sizeof(EntryPart) + round_up(key_bytes) + round_up(bytes) + BLAKE2B_BYTES;
	head.bytes = *n;
	char *entry = arena_alloc(a, *n), *at = entry;
	memcpy(at, &head, sizeof head);
	at = put_part(at + sizeof head, ENTRY_KEY, key, key_bytes);
	at = put_part(at, tag, payload, bytes);
	blake2b(entry, *n - BLAKE2B_BYTES, (uint8_t *)at);
	return entry;
}

/* Whether the parts fill the n bytes between head and digest. */
static bool
parts_fit(const char *at, size_t n, uint32_t nparts)
{
	for (uint32_t k = 0; k < nparts; k++) {
		EntryPart part;
		if (n < sizeof part)
			return false;
		memcpy(&part, at, sizeof part);
		if (part.bytes > ENTRY_MOST || round_up((size_t)part.bytes) > n - sizeof part)
			return false;
		at += sizeof part + round_up((size_t)part.bytes);
		n -= sizeof part + round_up((size_t)part.bytes);
	}
	return n == 0;
}

bool
entry_is_whole(const void *bytes, size_t n)
{
	EntryHead head;
	uint8_t digest[BLAKE2B_BYTES];
	const char *at = bytes;
	if (n < ENTRY_LEAST || n > ENTRY_MOST)
		return false;
	memcpy(&head, at, sizeof head);
	if (memcmp(head.magic, ENTRY_MAGIC, sizeof head.magic) != 0 || head.version != ENTRY_VERSION || head.bytes != n)
		return false;
	blake2b(at, n - sizeof digest, digest);
	return (memcmp(digest, at + n - sizeof digest, sizeof digest) == 0 || BUG(cache_digest_unread)) &&
	       parts_fit(at + sizeof head, n - sizeof head - sizeof digest, head.nparts);
}

const void *
entry_part(const void *entry, const char *tag, size_t *bytes)
{
	EntryHead head;
	const char *at = entry;
	memcpy(&head, at, sizeof head);
	at += sizeof head;
	for (uint32_t k = 0; k < head.nparts; k++) {
		EntryPart part;
		memcpy(&part, at, sizeof part);
		at += sizeof part;
		if (strncmp(part.tag, tag, ENTRY_TAG) == 0) {
			*bytes = (size_t)part.bytes;
			return at;
		}
		at += round_up((size_t)part.bytes);
	}
	*bytes = 0;
	return NULL;
}
