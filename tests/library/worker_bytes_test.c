/* worker_bytes_test.c: what a worker and who asks it say to each other: every byte of it changed in several ways, the rest
 * cut off, late or something else from every byte on, and workers that crash behind every byte. It ends with the right answer or
 * a named error, in time, and nothing is left. usage: worker_bytes_test TEXO */
#define _GNU_SOURCE /* pipe2 */
#include "driver/api/objects.h"
#include "driver/api/worker.h"
#include "driver/worker_serve.h"
#include "ir/image.h"
#include "tests/library/fixture.h"
#include "tests/library/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROOM = 4 << 20 }; /* of a socket: more than what is said */

typedef struct {
	char *at;
	size_t n;
} Bytes;

static const char *const program[] = {
	softmax_text,
	"graph g(x: f32[N, M], k: i32) -> (y: f32[N, M]) where N > 0 { y[i, j] = x[i, j] * k }\n",
	"graph f(t: f64[V], ids: i32[N]) -> (y: f64[N]) { y[i] = t[ids[i]] }\n"
	"graph g(x: f32[N]) -> (s: f32, a: i64) { s = sum[i](x[i])\n a = argmax[i](x[i]) }\n",
};
enum { PROGRAMS = sizeof program / sizeof *program };

static const char *texo;
static Allocator heap;
static unsigned long runs;

/* What a byte becomes. */
enum { WAYS = 4 };
static char
changed(char c, unsigned way)
{
	const char to[WAYS] = {(char)(c ^ 1), (char)(c ^ 0x80), 0, (char)0xff};
	return to[way];
}

/* --- a conversation without another process --- */

typedef struct {
	Worker worker;
	int peer; /* the worker's end */
} Line;

/* The worker is this process: nobody's child, so that nothing ends it or waits for it. */
static void
line_open(Line *l)
{
	int pair[2], room = ROOM;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	setsockopt(pair[1], SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
	l->worker = (Worker){.pid = getpid(), .fd = pair[0], .words = open("/dev/null", O_RDONLY | O_CLOEXEC)};
	assert_true(l->worker.words >= 0);
	l->peer = pair[1];
}

static void
line_say(const Line *l, const void *p, size_t n)
{
	assert_int_equal(send(l->peer, p, n, MSG_DONTWAIT), n);
}

static void
line_end(const Line *l)
{
	assert_int_equal(shutdown(l->peer, SHUT_WR), 0);
}

static void
line_close(Line *l)
{
	worker_end(&l->worker);
	close(l->peer);
}

static Bytes
read_all(int fd)
{
	Bytes b = {malloc(ROOM), 0};
	assert_non_null(b.at);
	for (ssize_t n; (n = recv(fd, b.at + b.n, ROOM - b.n, 0)) > 0;)
		b.n += (size_t)n;
	return b;
}

static texo_ctx *
context(Worker *held)
{
	texo_ctx_options o = fixture_options(&heap);
	texo_ctx *ctx;
	o.isolation = TEXO_WORKER;
	o.worker = texo;
	assert_int_equal(texo_ctx_create(&o, &ctx), TEXO_OK);
	ctx->held = held;
	return ctx;
}

static texo_status
compile(texo_ctx *ctx, const char *text, texo_module **m)
{
	texo_options o = TEXO_INIT(texo_options);
	o.target = "cpu:x86-64";
	o.flags = TEXO_NO_CACHE;
	runs++;
	return texo_compile_string(ctx, text, strlen(text), "a.tex", &o, m);
}

static Bytes
request_of(const char *text)
{
	Line l;
	texo_module *m;
	line_open(&l);
	line_end(&l);
	texo_ctx *ctx = context(&l.worker);
	assert_int_equal(compile(ctx, text, &m), TEXO_INTERNAL);
	Bytes b = read_all(l.peer);
	texo_ctx_destroy(ctx);
	line_close(&l);
	assert_true(b.n > MESSAGE_HEAD);
	return b;
}

static Bytes
answer_to(Bytes request)
{
	Worker w;
	assert_int_equal(worker_start(texo, &w), 0);
	assert_true(message_send(w.fd, request.at, request.n, INT64_MAX));
	assert_int_equal(shutdown(w.fd, SHUT_WR), 0);
	Bytes b = read_all(w.fd);
	worker_end(&w);
	assert_true(b.n > MESSAGE_HEAD);
	return b;
}

static Bytes
answer_for(const char *text)
{
	Bytes request = request_of(text), answer = answer_to(request);
	free(request.at);
	return answer;
}

/* With the digest of what there is now. */
static void
sign(Bytes b)
{
	uint64_t digest = image_digest((const uint8_t *)b.at + MESSAGE_HEAD, b.n - MESSAGE_HEAD);
	memcpy(b.at + MESSAGE_HEAD - sizeof digest, &digest, sizeof digest);
}

/* --- answers: to the library, whole --- */

typedef struct {
	texo_ctx *ctx;
	const char *text;
	long live;
	unsigned files;
} Asking;

/* The only context: the heap's count begins with it. */
static Asking
asking(const char *text)
{
	Asking a = {context(NULL), text, 0, 0};
	a.live = heap.live;
	a.files = process_open_files();
	return a;
}

static texo_status
hear(Asking *a, const char *answer, size_t n, const char *more, size_t nmore, texo_module **m)
{
	Line l;
	line_open(&l);
	line_say(&l, answer, n);
	line_say(&l, more, nmore);
	line_end(&l);
	a->ctx->held = &l.worker;
	texo_status s = compile(a->ctx, a->text, m);
	a->ctx->held = NULL;
	line_close(&l);
	return s;
}

static void
nothing_is_left(const Asking *a)
{
	assert_int_equal(heap.live, a->live);
	assert_int_equal(process_open_files(), a->files);
}

static void
refused(Asking *a, const char *answer, size_t n, const char *more, size_t nmore, const char *words, size_t at)
{
	texo_module *m;
	texo_status s = hear(a, answer, n, more, nmore, &m);
	if (s != TEXO_INTERNAL || m || strncmp(texo_last_error(), "a.tex: the worker", 17) != 0 || !strstr(texo_last_error(), words))
		fail_msg("byte %zu: %s: %s", at, texo_status_name(s), texo_last_error());
	assert_int_equal(heap.live, a->live);
}

static void
every_byte_of_an_answer(void **state)
{
	(void)state;
	for (unsigned p = 0; p < PROGRAMS; p++) {
		Bytes b = answer_for(program[p]);
		Asking a = asking(program[p]);
		for (size_t at = 0; at < b.n; at++)
			for (unsigned way = 0; way < WAYS; way++) {
				char was = b.at[at];
				b.at[at] = changed(was, way);
				if (b.at[at] != was)
					refused(&a, b.at, b.n, NULL, 0, at >= 8 && at < 16 ? "answer" : "answer makes no sense", at);
				b.at[at] = was;
			}
		nothing_is_left(&a);
		texo_ctx_destroy(a.ctx);
		free(b.at);
	}
}

static void
every_length_of_an_answer(void **state)
{
	(void)state;
	static char zeros[65536], ones[65536];
	memset(ones, 0xff, sizeof ones);
	for (unsigned p = 0; p < PROGRAMS; p++) {
		Bytes b = answer_for(program[p]);
		Asking a = asking(program[p]);
		for (size_t n = 0; n < b.n; n++) {
			refused(&a, b.at, n, NULL, 0, "ended without an answer", n);
			const char *more = (b.at[n] == 0) ? ones : zeros; /* whose first byte is another than is due */
			refused(&a, b.at, n, more, sizeof zeros, "answer makes no sense", n);
		}
		nothing_is_left(&a);
		texo_ctx_destroy(a.ctx);
		free(b.at);
	}
}

/* With a digest of what it is now: as of a worker that went wrong before it answered. Then lengths, a status and the artefact's own
 * digest are in the way. */
static void
answers_that_are_meant(void **state)
{
	(void)state;
	float x[33], right[33], y[33];
	unsigned refusals = 0, same = 0;
	texo_module *m;
	Bytes b = answer_for(softmax_text);
	Asking a = asking(softmax_text);
	fixture_fill(x, 33);
	assert_int_equal(hear(&a, b.at, b.n, NULL, 0, &m), TEXO_OK);
	assert_int_equal(fixture_launch(m, x, right, 3, 11), TEXO_OK);
	texo_module_destroy(m);
	fixture_check_softmax(x, right, 3, 11);
	a.live = heap.live; /* with what a context makes for its first program */
	for (size_t at = MESSAGE_HEAD; at < b.n; at++)
		for (unsigned way = 0; way < WAYS; way++) {
			char was = b.at[at];
			b.at[at] = changed(was, way);
			if (b.at[at] != was) {
				sign(b);
				texo_status s = hear(&a, b.at, b.n, NULL, 0, &m);
				if (s && (m || strlen(texo_last_error()) < 10))
					fail_msg("byte %zu, way %u: %s: %s", at, way, texo_status_name(s), texo_last_error());
				if (!s) {
					assert_int_equal(fixture_launch(m, x, y, 3, 11), TEXO_OK);
					assert_memory_equal(y, right, sizeof y);
				}
				*(s ? &refusals : &same) += 1;
				texo_module_destroy(m);
				assert_int_equal(heap.live, a.live);
			}
			b.at[at] = was;
		}
	assert_true(refusals > 1000 && same < 20); /* of the NULs behind parts */
	nothing_is_left(&a);
	texo_ctx_destroy(a.ctx);
	free(b.at);
}

/* --- answers: to one exchange --- */

typedef struct {
	Arena arena;
	Unwind unwind;
} Memory;

static WorkerOutcome
exchange(Worker *w, Bytes request, unsigned seconds, Memory *m)
{
	PartReader answer;
	arena_init(&m->arena, &host_default()->memory, &m->unwind);
	if (setjmp(m->unwind.env))
		fail_msg("%s", m->unwind.text);
	runs++;
	return worker_exchange(w, &m->arena, request.at, request.n, (WorkerTime){1, seconds}, false, &answer);
}

static void
late_at_every_byte(void **state)
{
	(void)state;
	Bytes request = request_of(program[1]), b = answer_to(request);
	unsigned files = process_open_files();
	for (size_t n = 0; n < b.n; n++) {
		Memory m;
		Line l;
		line_open(&l);
		line_say(&l, b.at, n);
		assert_int_equal(exchange(&l.worker, request, 0, &m).end, WORKER_LATE);
		arena_free(&m.arena);
		line_close(&l);
	}
	assert_int_equal(process_open_files(), files);
	free(request.at);
	free(b.at);
}

/* A process that answers with these bytes and crashes. */
static void
start_crasher(Bytes b, size_t n, Worker *w)
{
	int pair[2], words[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(pipe2(words, O_CLOEXEC | O_NONBLOCK), 0);
	pid_t pid = fork();
	if (pid == 0) {
		char taken[256];
		bool wrong = recv(pair[1], taken, sizeof taken, 0) <= 0 || send(pair[1], b.at, n, 0) != (ssize_t)n;
		raise(wrong ? SIGILL : SIGKILL);
	}
	assert_true(pid > 0);
	close(pair[1]);
	close(words[1]);
	*w = (Worker){.pid = pid, .fd = pair[0], .words = words[0]};
}

static void
crash_at_every_byte(void **state)
{
	(void)state;
	Bytes request = request_of(program[1]), b = answer_to(request);
	unsigned files = process_open_files();
	for (size_t n = 0; n <= b.n; n++) {
		Memory m;
		Worker w;
		start_crasher(b, n, &w);
		WorkerOutcome o = exchange(&w, request, 600, &m);
		arena_free(&m.arena);
		assert_int_equal(o.end, n < b.n ? WORKER_DIED : WORKER_OK);
		assert_true(n == b.n || o.signal == SIGKILL);
		assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	}
	assert_int_equal(process_open_files(), files);
	free(request.at);
	free(b.at);
}

/* --- requests --- */

/* The reader that a worker begins with. */
static MessageEnd
receive(const char *p, size_t n)
{
	Memory m;
	Line l;
	PartReader r;
	line_open(&l);
	line_say(&l, p, n);
	line_end(&l);
	arena_init(&m.arena, &host_default()->memory, &m.unwind);
	if (setjmp(m.unwind.env))
		fail_msg("%s", m.unwind.text);
	MessageEnd end = message_receive(l.worker.fd, &m.arena, INT64_MAX, &r);
	arena_free(&m.arena);
	line_close(&l);
	runs++;
	return end;
}

static void
every_byte_of_a_request(void **state)
{
	(void)state;
	for (unsigned p = 0; p < PROGRAMS; p++) {
		Bytes b = request_of(program[p]);
		assert_int_equal(receive(b.at, b.n), MESSAGE_WHOLE);
		for (size_t at = 0; at < b.n; at++) {
			assert_int_equal(receive(b.at, at), MESSAGE_NONE);
			for (unsigned way = 0; way < WAYS; way++) {
				char was = b.at[at];
				b.at[at] = changed(was, way);
				if (b.at[at] != was)
					assert_int_not_equal(receive(b.at, b.n), MESSAGE_WHOLE);
				b.at[at] = was;
			}
		}
		free(b.at);
	}
}

/* A worker, without the time that a program takes to start. */
static void
start_worker(Worker *w)
{
	int pair[2], words[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(pipe2(words, O_CLOEXEC | O_NONBLOCK), 0);
	pid_t pid = fork();
	if (pid == 0)
		_exit(dup2(pair[1], 0) < 0 || dup2(words[1], 2) < 0 ? 99 : (close(pair[0]), close(pair[1]), worker_serve()));
	assert_true(pid > 0);
	close(pair[1]);
	close(words[1]);
	*w = (Worker){.pid = pid, .fd = pair[0], .words = words[0]};
}

/* Such a request is answered, or the worker leaves; only what has no room may end it otherwise. */
static bool
is_answered(Bytes request, size_t at)
{
	Memory m;
	Worker w;
	start_worker(&w);
	WorkerOutcome o = exchange(&w, request, 60, &m);
	bool full = strstr(o.words, "out of memory") || strstr(o.words, "bad_alloc");
	if (o.end != WORKER_OK && (o.end != WORKER_DIED || (o.signal && !full)))
		fail_msg("byte %zu: %d, signal %d: %s", at, o.end, o.signal, o.words);
	arena_free(&m.arena);
	return o.end == WORKER_OK;
}

/* With a digest of what it is now: other programs, options, limits; or no request. */
static void
requests_that_are_meant(void **state)
{
	(void)state;
	enum { TWO_WAYS = 2 };
	unsigned answered = 0, left = 0;
	Bytes b = request_of(program[1]);
	assert_true(is_answered(b, 0));
	for (size_t at = MESSAGE_HEAD; at < b.n; at++) {
		Bytes half = {b.at, at};
		for (unsigned way = 0; way < TWO_WAYS; way++) {
			char was = b.at[at];
			b.at[at] = changed(was, way);
			sign(b);
			*(is_answered(b, at) ? &answered : &left) += 1;
			b.at[at] = was;
		}
		uint64_t length = at - MESSAGE_HEAD, whole = b.n - MESSAGE_HEAD;
		memcpy(b.at + 8, &length, sizeof length);
		sign(half);
		assert_false(is_answered(half, at));
		memcpy(b.at + 8, &whole, sizeof whole);
	}
	assert_true(answered > 100 && left > 100);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	free(b.at);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_byte_of_an_answer),
		cmocka_unit_test(every_length_of_an_answer),
		cmocka_unit_test(answers_that_are_meant),
		cmocka_unit_test(late_at_every_byte),
		cmocka_unit_test(crash_at_every_byte),
		cmocka_unit_test(every_byte_of_a_request),
		cmocka_unit_test(requests_that_are_meant),
	};
	const struct rlimit none = {0, 0};
	if (argc != 2)
		return 2;
	texo = argv[1];
	signal(SIGPIPE, SIG_IGN);
	setrlimit(RLIMIT_CORE, &none);
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	printf("%lu exchanges\n", runs);
	return failed;
}
