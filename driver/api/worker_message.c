/* worker_message.c: messages, written and read. */
#include "driver/api/worker.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "ir/image.h"

static const char magic[8] = "TEXOWRK";
enum { A_WHILE = 60000 }; /* ms; poll takes no more than an int */

void
message_begin(Text *t, Arena *a)
{
	static const char head[MESSAGE_HEAD];
	text_init(t, a);
	text_add(t, head, sizeof head);
}

void
message_end(Text *t)
{
	uint64_t length = t->n - MESSAGE_HEAD, digest = image_digest((const uint8_t *)t->at + MESSAGE_HEAD, length);
	memcpy(t->at, magic, sizeof magic);
	memcpy(t->at + sizeof magic, &length, sizeof length);
	memcpy(t->at + sizeof magic + sizeof length, &digest, sizeof digest);
}

/* Whether fd became ready for `events` before the deadline. */
static bool
await(int fd, short events, int64_t deadline)
{
	for (;;) {
		struct timespec t;
		clock_gettime(CLOCK_MONOTONIC, &t);
		int64_t left = (deadline - ((int64_t)t.tv_sec * 1000000000 + t.tv_nsec)) / 1000000;
		struct pollfd p = {fd, events, 0};
		if (left < 0)
			return false;
		int n = poll(&p, 1, (int)(left < A_WHILE ? left : A_WHILE) + 1);
		if (n > 0)
			return true;
		if (n < 0 && errno != EINTR)
			return false;
	}
}

bool
message_send(int fd, const void *p, size_t n, int64_t deadline)
{
	for (size_t done = 0; done < n;) {
		ssize_t k = send(fd, (const char *)p + done, n - done, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (k > 0)
			done += (size_t)k;
		else if (k < 0 && errno != EINTR && errno != EAGAIN)
			return false;
		else if (k < 0 && errno == EAGAIN && !await(fd, POLLOUT, deadline))
			return false;
	}
	return true;
}

static bool
receive_bytes(int fd, void *p, size_t n, int64_t deadline)
{
	for (size_t done = 0; done < n;) {
		if (!await(fd, POLLIN, deadline))
			return false;
		ssize_t k = recv(fd, (char *)p + done, n - done, MSG_DONTWAIT);
		if (k > 0)
			done += (size_t)k;
		else if (k == 0 || (errno != EINTR && errno != EAGAIN))
			return false;
	}
	return true;
}

MessageEnd
message_receive(int fd, Arena *a, int64_t deadline, PartReader *out)
{
	char head[MESSAGE_HEAD];
	uint64_t length, digest;
	if (!receive_bytes(fd, head, sizeof head, deadline))
		return MESSAGE_NONE;
	memcpy(&length, head + sizeof magic, sizeof length);
	memcpy(&digest, head + sizeof magic + sizeof length, sizeof digest);
	if (memcmp(head, magic, sizeof magic) != 0 || length > WORKER_MOST)
		return MESSAGE_GARBAGE;
	char *body = arena_alloc(a, length + 1);
	if (!receive_bytes(fd, body, length, deadline))
		return MESSAGE_NONE;
	*out = (PartReader){body, length, false};
	return image_digest((const uint8_t *)body, length) == digest ? MESSAGE_WHOLE : MESSAGE_GARBAGE;
}
