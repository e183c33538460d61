/* npy_test.c: .npy files, honest and hostile, through a host that serves them from memory. */
#include "driver/npy.h"
#include "tests/driver/arena_fixture.h"

#include <errno.h>
#include <string.h>

/* One file in memory, handed out in pieces of at most `piece` bytes; its size is told or not. */
typedef struct {
	const char *at;
	size_t n, pos, piece;
	bool tells_size;
} MemoryFile;

static int
memory_open(void *user, const char *path, int flags, unsigned mode)
{
	(void)path;
	(void)flags;
	(void)mode;
	((MemoryFile *)user)->pos = 0;
	return 100;
}

static ptrdiff_t
memory_read(void *user, int fd, void *p, size_t n)
{
	MemoryFile *m = user;
	(void)fd;
	size_t k = m->n - m->pos;
	k = k < n ? k : n;
	k = k < m->piece ? k : m->piece;
	memcpy(p, m->at + m->pos, k);
	m->pos += k;
	return (ptrdiff_t)k;
}

static int
memory_close(void *user, int fd)
{
	(void)user;
	(void)fd;
	return 0;
}

static int
memory_stat(void *user, const char *path, int64_t *size, int *regular)
{
	MemoryFile *m = user;
	(void)path;
	*size = (int64_t)m->n;
	*regular = m->tells_size;
	return 0;
}

static HostFiles
host_of(MemoryFile *m)
{
	return (HostFiles){.open = memory_open, .read = memory_read, .close = memory_close, .stat = memory_stat, .user = m};
}

/* A file of this version with header text and n bytes 0, 1, 2, … of data. */
static MemoryFile
make(unsigned version, const char *header, size_t ndata)
{
	size_t h = strlen(header), at = 0;
	char *bytes = arena_alloc(&arena, 12 + h + ndata);
	memcpy(bytes, "\x93NUMPY", 6);
	bytes[6] = (char)version;
	at = 8;
	for (unsigned k = 0; k < (version == 1 ? 2 : 4); k++)
		bytes[at++] = (char)(h >> (8 * k) & 0xff);
	memcpy(bytes + at, header, h);
	at += h;
	for (size_t i = 0; i < ndata; i++)
		bytes[at++] = (char)i;
	return (MemoryFile){bytes, at, 0, 7, true};
}

static bool
load(MemoryFile *m, Npy *npy)
{
	HostFiles host = host_of(m);
	NpyFile f;
	return npy_open(&host, "x.npy", &f, npy, &arena, &problem_met) && npy_read_data(&f, npy, &arena, &problem_met);
}

static void
honest(void **state)
{
	(void)state;
	for (unsigned version = 1; version <= 3; version++)
		for (int tells = 0; tells < 2; tells++) {
			MemoryFile m = make(version, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }   \n", 24);
			Npy npy;
			m.tells_size = tells;
			assert_true(load(&m, &npy));
			assert_true(npy_holds(&npy, DT_F32) && !npy_holds(&npy, DT_I32));
			assert_true(npy.rank == 2 && npy.shape[0] == 2 && npy.shape[1] == 3);
			for (int i = 0; i < 24; i++)
				assert_int_equal(((const char *)npy.data)[i], i);
		}
}

static void
scalars_and_empty(void **state)
{
	(void)state;
	Npy npy;
	MemoryFile m = make(1, "{\"shape\": (), 'fortran_order': False, 'descr': '|u1'}\n", 1);
	assert_true(load(&m, &npy));
	assert_true(npy.rank == 0 && npy.count == 1 && npy_holds(&npy, DT_F8E4M3) && npy_holds(&npy, DT_I4));
	m = make(1, "{'descr': '=i8', 'fortran_order': False, 'shape': (5, 0)}\n", 0);
	assert_true(load(&m, &npy));
	assert_true(npy.count == 0 && npy_holds(&npy, DT_I64));
}

static void
packed_shape(void **state)
{
	(void)state;
	Npy npy = {.rank = 2, .shape = {3, 4}};
	unsigned rank;
	int64_t shape[NPY_MAX_RANK];
	assert_true(npy_shape(&npy, DT_U4, &rank, shape));
	assert_true(rank == 2 && shape[0] == 3 && shape[1] == 8);
	npy.rank = 0;
	assert_false(npy_shape(&npy, DT_U4, &rank, shape));
}

static void
fortran(void **state)
{
	(void)state;
	MemoryFile m = make(1, "{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3)}\n", 6);
	Npy npy;
	static const char want[] = {0, 2, 4, 1, 3, 5};
	assert_true(load(&m, &npy));
	assert_memory_equal(npy.data, want, 6);
	m = make(1, "{'descr': '<i2', 'fortran_order': True, 'shape': (2, 2, 2)}\n", 16);
	static const char want3[] = {0, 1, 8, 9, 4, 5, 12, 13, 2, 3, 10, 11, 6, 7, 14, 15};
	assert_true(load(&m, &npy));
	assert_memory_equal(npy.data, want3, 16);
}

static void
refused(MemoryFile m, const char *wanted)
{
	for (int tells = 0; tells < 2; tells++) {
		Npy npy;
		m.tells_size = tells;
		if (load(&m, &npy))
			fail_msg("a file was taken that should fail with '%s'", wanted);
		assert_int_equal(problem_met.exit, EXIT_INPUT);
		if (!strstr(problem_met.text, wanted))
			fail_msg("'%s' lacks '%s'", problem_met.text, wanted);
	}
}

static void
hostile_headers(void **state)
{
	(void)state;
	static const struct {
		const char *header, *wanted;
		size_t ndata;
	} rows[] = {
		{"{'descr': '>f4', 'fortran_order': False, 'shape': (2,)}", "big-endian", 8},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}", "12 bytes of data expected", 8},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", "4 bytes of data expected", 8},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4)}", "larger than any memory", 8},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4, 0)}", "larger than any memory", 8},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", "too long", 8},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", "not a tuple", 8},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': 2}", "not a tuple", 8},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (2)", "dictionary", 8},
		{"{'descr': '<f4', 'fortran_order': False}", "lacks", 8},
		{"{'descr': '<f4', 'fortran_order': 0, 'shape': (2,)}", "fortran_order", 8},
		{"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", "twice", 8},
		{"{'descr': '<f4', 'more': 1, 'fortran_order': False, 'shape': (2,)}", "key", 8},
		{"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}", "records", 8},
		{"{'descr': '|O', 'fortran_order': False, 'shape': (2,)}", "no type for", 8},
		{"{'descr': '<M8[ns]', 'fortran_order': False, 'shape': (2,)}", "no type for", 8},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)} x", "follows", 8},
		{"[]", "dictionary", 0},
		{"", "dictionary", 0},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': "
	     "(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)}", "32 axes", 4},
	};
	for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++)
		refused(make(1, rows[i].header, rows[i].ndata), rows[i].wanted);
}

static void
hostile_files(void **state)
{
	(void)state;
	static const char good[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";
	MemoryFile m = make(1, good, 8);
	for (size_t n = 0; n < m.n; n++) { /* every truncation */
		MemoryFile cut = m;
		cut.n = n;
		Npy npy;
		for (int tells = 0; tells < 2; tells++) {
			cut.tells_size = tells;
			assert_false(load(&cut, &npy));
		}
	}
	m = make(4, good, 8);
	refused(m, "format version");
	m = make(2, good, 8);
	memcpy((char *)m.at + 8, "\xff\xff\xff\xff", 4);
	refused(m, "longer than 64 KiB");
	refused((MemoryFile){"\\documentclass{article}", 23, 0, 7, true}, "does not begin as one");
	refused((MemoryFile){"", 0, 0, 7, true}, "does not begin as one");
}

/* Every byte of a file set to every value: an answer each time, and a file taken is what it says. */
static void
every_byte_changed(void **state)
{
	(void)state;
	static const char good[] = "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }";
	MemoryFile m = make(1, good, 24);
	char *bytes = (char *)m.at;
	unsigned taken = 0, refusals = 0;
	m.piece = 4096;
	for (size_t k = 0; k < m.n - 24; k++) {
		char kept = bytes[k];
		for (int v = 0; v < 256; v++) {
			Npy npy;
			bytes[k] = (char)v;
			if (!load(&m, &npy)) {
				refusals++;
				continue;
			}
			taken++;
			assert_int_equal(npy.bytes, 24);
			assert_int_equal(npy.count * npy.width, 24);
		}
		bytes[k] = kept;
	}
	assert_true(taken > m.n && refusals > 10 * taken);
}

static void
headers_written(void **state)
{
	(void)state;
	static const struct {
		DType t;
		unsigned rank;
		int64_t shape[2];
	} rows[] = {{DT_F32, 2, {2, 3}}, {DT_BF16, 1, {5}}, {DT_BOOL, 0, {0}}, {DT_I4, 2, {3, 4}}, {DT_C64, 1, {0}}};
	for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		const char *header;
		size_t n;
		int64_t count = 1, bytes;
		assert_true(npy_header(&arena, rows[i].t, rows[i].rank, rows[i].shape, &header, &n, &problem_met));
		assert_int_equal(n % 64, 0);
		for (unsigned k = 0; k < rows[i].rank; k++)
			count *= rows[i].shape[k];
		assert_true(dtype_bytes(rows[i].t, count, &bytes));
		char *file = arena_alloc(&arena, n + (size_t)bytes);
		memcpy(file, header, n);
		MemoryFile m = {file, n + (size_t)bytes, 0, 4096, true};
		Npy npy;
		unsigned rank = 0;
		int64_t shape[NPY_MAX_RANK];
		assert_true(load(&m, &npy));
		assert_true(npy_holds(&npy, rows[i].t) && npy_shape(&npy, rows[i].t, &rank, shape));
		assert_int_equal(rank, rows[i].rank);
		for (unsigned k = 0; k < rank; k++)
			assert_int_equal(shape[k], rows[i].shape[k]);
	}
	const char *header;
	size_t n;
	int64_t odd[] = {2, 3};
	assert_false(npy_header(&arena, DT_U4, 2, odd, &header, &n, &problem_met));
	assert_false(npy_header(&arena, DT_U4, 0, odd, &header, &n, &problem_met));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		ARENA_TEST(honest),          ARENA_TEST(scalars_and_empty), ARENA_TEST(packed_shape),   ARENA_TEST(fortran),
		ARENA_TEST(hostile_headers), ARENA_TEST(hostile_files),     ARENA_TEST(headers_written),
		ARENA_TEST(every_byte_changed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
