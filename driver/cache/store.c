/* store.c: see store.h. Everything is done by descriptors and by names in the folder, so that the folder that
 * was looked at is the one that is used. What is open is closed on every way out, an unwinding's too. */
#include "driver/cache/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "driver/source.h"
#include "ir/bugs.h"

enum { NAME = 64, ATTEMPTS = 16, PRUNE_ONE_IN = 32, NAMES_AT_ONCE = 4096 };
#define ASIDE "aside."
#define ABANDONED_NS ((int64_t)3600 * 1000000000) /* nobody writes an entry for an hour */

typedef struct {
	const Store *store;
	const HostFiles *files;
	Arena *arena;
	const char **why;
	const void *key;
	size_t key_bytes;
	const char *tag;
	const void *payload;
	size_t bytes;
	uint64_t limit;
	StoreList *list;
	const void *found;
	int folder, fd; /* -1: not open */
} Job;

typedef bool JobFn(Job *j);

static bool
say(Job *j, const char *what)
{
	*j->why = arena_text(j->arena, "the cache %s: %s", j->store->path, what);
	return false;
}

static bool
say_errno(Job *j, const char *doing)
{
	return say(j, arena_text(j->arena, "%s: %s", doing, strerror(errno)));
}

/* --- the folder --- */

static bool
folder_is_ours(Job *j)
{
	HostStatus st;
	if (j->files->status(j->files->user, j->folder, &st) != 0)
		return say_errno(j, "its owner is not known");
	if (!st.mine)
		return say(j, "it is another user's, and is not used");
	if ((st.mode & 022) && !BUG(cache_of_anybody))
		return say(j, "others may write to it, so it is not used; chmod 700 makes it usable");
	return true;
}

/* Makes the folder, and the one that it is in. */
static bool
make_folder(Job *j)
{
	const HostFiles *f = j->files;
	const char *path = j->store->path, *slash = strrchr(path, '/');
	if (f->make_folder(f->user, path, 0700) == 0 || errno == EEXIST)
		return true;
	if (errno == ENOENT && slash && slash > path) {
		const char *above = arena_copy(j->arena, path, (size_t)(slash - path));
		if ((f->make_folder(f->user, above, 0700) == 0 || errno == EEXIST) &&
		    (f->make_folder(f->user, path, 0700) == 0 || errno == EEXIST))
			return true;
	}
	return say_errno(j, "it can't be made");
}

static bool
open_folder(Job *j, bool make)
{
	const HostFiles *f = j->files;
	const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;
	j->folder = f->open(f->user, j->store->path, flags, 0);
	if (j->folder < 0 && errno == ENOENT) {
		if (!make || !make_folder(j))
			return false;
		j->folder = f->open(f->user, j->store->path, flags, 0);
	}
	if (j->folder < 0)
		return say_errno(j, "it can't be opened");
	return folder_is_ours(j);
}

static void
close_all(Job *j)
{
	if (j->fd >= 0)
		j->files->close(j->files->user, j->fd);
	if (j->folder >= 0)
		j->files->close(j->files->user, j->folder);
	j->fd = j->folder = -1;
}

/* Opens the folder, which body then has. Too little memory is no reason to end the compilation. */
static bool
with_folder(Job *j, bool make, JobFn *body)
{
	Unwind inner, *outer = j->arena->unwind;
	j->files = &j->store->host->files;
	j->folder = j->fd = -1;
	*j->why = NULL;
	if (setjmp(inner.env)) {
		close_all(j);
		j->arena->unwind = outer;
		if (inner.why == UNWIND_BUG)
			bug(j->arena, "%s", inner.text);
		*j->why = "the cache: there is no memory for it";
		return false;
	}
	j->arena->unwind = &inner;
	bool ok = open_folder(j, make) && body(j);
	close_all(j);
	j->arena->unwind = outer;
	return ok;
}

void
store_name(const void *key, size_t n, char name[NAME + 1])
{
	static const char digits[] = "0123456789abcdef";
	uint8_t digest[BLAKE2B_BYTES];
	blake2b(key, n, digest);
	for (unsigned k = 0; k < BLAKE2B_BYTES; k++) {
		name[2 * k] = digits[digest[k] >> 4];
		name[2 * k + 1] = digits[digest[k] & 15];
	}
	name[NAME] = 0;
}

/* --- reading --- */

/* The entry's bytes, all of them. What was opened may be anything that has the name, hence O_NONBLOCK. */
static const char *
read_entry(Job *j, const char *name, size_t *n)
{
	const HostFiles *f = j->files;
	HostStatus st;
	j->fd = f->open_at(f->user, j->folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	if (j->fd < 0) {
		if (errno != ENOENT)
			say_errno(j, "an entry can't be opened");
		return NULL;
	}
	if (f->status(f->user, j->fd, &st) != 0) {
		say_errno(j, "an entry can't be read");
		return NULL;
	}
	if (!st.regular || !st.mine || (st.mode & 022) || st.bytes < ENTRY_LEAST || st.bytes > ENTRY_MOST) {
		say(j, "an entry is no file of ours");
		return NULL;
	}
	*n = (size_t)st.bytes;
	char *bytes = arena_alloc(j->arena, *n);
	ptrdiff_t got = read_fully(f, j->fd, bytes, *n);
	if (got == st.bytes)
		return bytes;
	if (got < 0)
		say_errno(j, "an entry can't be read");
	else
		say(j, "an entry is damaged");
	return NULL;
}

static bool
get(Job *j)
{
	char name[NAME + 1];
	size_t n, key_bytes;
	store_name(j->key, j->key_bytes, name);
	const char *entry = read_entry(j, name, &n);
	if (!entry)
		return false;
	if (!entry_is_whole(entry, n))
		return say(j, "an entry is damaged");
	const void *key = entry_part(entry, ENTRY_KEY, &key_bytes);
	bool same = key && key_bytes == j->key_bytes && memcmp(key, j->key, key_bytes) == 0;
	if (!same && !BUG(cache_name_is_key))
		return say(j, "an entry has another key");
	j->found = entry_part(entry, j->tag, &j->bytes);
	j->files->touch(j->files->user, j->fd); /* its last use; where that can't be written, its age counts */
	return j->found != NULL;
}

const void *
store_get(const Store *s, Arena *a, const void *key, size_t n, const char *tag, size_t *bytes, const char **why)
{
	Job j = {.store = s, .arena = a, .why = why, .key = key, .key_bytes = n, .tag = tag};
	bool found = with_folder(&j, false, get);
	*bytes = j.bytes;
	return found ? j.found : NULL;
}

/* --- listing and dropping --- */

static bool
is_entry_name(const char *name)
{
	return strspn(name, "0123456789abcdef") == NAME && name[NAME] == 0;
}

static void
note_file(Job *j, const char *name)
{
	const HostFiles *f = j->files;
	HostStatus st;
	StoreFile file = {.aside = strncmp(name, ASIDE, sizeof ASIDE - 1) == 0 && strlen(name) <= NAME};
	if ((!file.aside && !is_entry_name(name)) || f->status_at(f->user, j->folder, name, &st) != 0 || !st.regular || !st.mine)
		return; /* nothing of ours, or dropped by somebody else meanwhile */
	memcpy(file.name, name, strlen(name) + 1);
	file.bytes = st.bytes;
	file.changed_ns = st.changed_ns;
	vec_push(j->arena, &j->list->file, file);
	j->list->bytes += file.aside ? 0 : (uint64_t)st.bytes;
	j->list->nentry += !file.aside;
}

static bool
list(Job *j)
{
	char names[NAMES_AT_ONCE];
	ptrdiff_t n;
	while ((n = j->files->list(j->files->user, j->folder, names, sizeof names)) > 0)
		for (const char *at = names; at < names + n; at += strlen(at) + 1)
			note_file(j, at);
	return n == 0 || say_errno(j, "it can't be listed");
}

bool
store_list(const Store *s, Arena *a, StoreList *out, const char **why)
{
	Job j = {.store = s, .arena = a, .why = why, .list = out};
	*out = (StoreList){0};
	return with_folder(&j, false, list) || !*why;
}

static int
by_use(const void *a, const void *b)
{
	const StoreFile *x = a, *y = b;
	if (x->changed_ns != y->changed_ns)
		return x->changed_ns < y->changed_ns ? -1 : 1;
	return strcmp(x->name, y->name);
}

/* The clock is the newest file's, so that the machine's may be wrong. */
static bool
prune(Job *j)
{
	StoreList all = {0}, *dropped = j->list;
	j->list = &all;
	if (!list(j))
		return false;
	if (all.file.n)
		qsort(all.file.at, all.file.n, sizeof *all.file.at, by_use);
	int64_t now = all.file.n ? all.file.at[all.file.n - 1].changed_ns : 0;
	uint64_t left = all.bytes;
	for (uint32_t k = 0; k < all.file.n; k++) {
		const StoreFile *f = &all.file.at[k];
		bool drop = f->aside ? j->limit == 0 || now - f->changed_ns > ABANDONED_NS : left > j->limit;
		if (!drop)
			continue;
		if (j->files->unlink_at(j->files->user, j->folder, f->name) != 0 && errno != ENOENT)
			return say_errno(j, "an entry can't be dropped");
		left -= f->aside ? 0 : (uint64_t)f->bytes;
		vec_push(j->arena, &dropped->file, *f);
		dropped->bytes += (uint64_t)f->bytes;
		dropped->nentry += !f->aside;
	}
	return true;
}

bool
store_prune(const Store *s, Arena *a, uint64_t limit, StoreList *out, const char **why)
{
	Job j = {.store = s, .arena = a, .why = why, .list = out, .limit = limit};
	*out = (StoreList){0};
	return with_folder(&j, false, prune) || !*why;
}

/* --- writing --- */

/* A name that nobody else has: another process has another number, another thread another stack. */
static bool
open_aside(Job *j, char name[NAME + 1], uint64_t *nonce)
{
	const Host *h = j->store->host;
	const HostFiles *f = j->files;
	struct {
		int64_t now, process;
		uintptr_t place;
		unsigned attempt;
	} one;
	memset(&one, 0, sizeof one);
	one.process = getpid();
	one.place = (uintptr_t)&one;
	for (; one.attempt < ATTEMPTS && j->fd < 0; one.attempt++) {
		one.now = h->clock.now_ns(h->clock.user);
		store_name(&one, sizeof one, name);
		*nonce = strtoull(name + NAME - 8, NULL, 16);
		memcpy(name, ASIDE, sizeof ASIDE - 1);
		name[NAME / 2] = 0;
		j->fd = f->open_at(f->user, j->folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
		if (j->fd < 0 && errno != EEXIST)
			break;
	}
	return j->fd >= 0 || say_errno(j, "an entry can't be written");
}

/* Closes the file too, which may be where a full disk is told of. */
static bool
write_aside(Job *j, const void *entry, size_t n)
{
	const HostFiles *f = j->files;
	bool ok = write_fully(f, j->fd, entry, n);
	int code = errno, fd = j->fd;
	j->fd = -1;
	if (f->close(f->user, fd) != 0 && ok) {
		ok = false;
		code = errno;
	}
	errno = code;
	return ok;
}

/* A folder is looked through once in so many times, and when much was written. */
static bool
prune_sometimes(Job *j, uint64_t nonce, size_t bytes)
{
	StoreList dropped = {0};
	if (nonce % PRUNE_ONE_IN && bytes < j->store->limit / PRUNE_ONE_IN)
		return true;
	j->limit = j->store->limit;
	j->list = &dropped;
	return prune(j);
}

static bool
put(Job *j)
{
	const HostFiles *f = j->files;
	char aside[NAME + 1], name[NAME + 1];
	uint64_t nonce = 0;
	size_t n;
	const void *entry = entry_make(j->arena, j->key, j->key_bytes, j->tag, j->payload, j->bytes, &n);
	store_name(j->key, j->key_bytes, name);
	if (n > ENTRY_MOST || n > j->store->limit)
		return say(j, "this is too large for it");
	if (!open_aside(j, aside, &nonce))
		return false;
	bool ok = write_aside(j, entry, n) && f->rename_at(f->user, j->folder, aside, name) == 0;
	if (!ok) {
		int code = errno;
		f->unlink_at(f->user, j->folder, aside);
		errno = code;
		return say_errno(j, "an entry can't be written");
	}
	return prune_sometimes(j, nonce, n);
}

bool
store_put(const Store *s, Arena *a, const void *key, size_t n, const char *tag, const void *payload, size_t bytes,
          const char **why)
{
	Job j = {.store = s, .arena = a, .why = why, .key = key, .key_bytes = n, .tag = tag, .payload = payload, .bytes = bytes};
	return with_folder(&j, true, put);
}
