"""python/texo.py on NumPy arrays. usage: test_numpy.py (TEXO_LIBRARY names libtexo.so)"""
import gc
import sys
import threading
import unittest
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
import texo  # noqa: E402

SOFTMAX = 'use "std"\ngraph softmax_rows(x: f32[N, M]) -> (y: f32[N, M]) { y[i, j] = softmax[j](x[i, j]) }\n'
BOTH = """graph both(x: f32[N, M], s: f32) -> (y: f32[N, M], t: f32[N], total: f32) {
  y[i, j] = s * x[i, j]
  t[i] = sum[j](x[i, j])
  total = sum[i, j](x[i, j])
}
"""
rng = np.random.default_rng(3)


def random(*shape):
    return rng.standard_normal(shape, np.float32)


def softmax(x):
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


class Calls(unittest.TestCase):
    def test_result_is_made(self):
        x = random(5, 37)
        y = texo.compile(SOFTMAX).kernel()(x)
        self.assertEqual((y.dtype, y.shape), (np.float32, (5, 37)))
        np.testing.assert_allclose(y, softmax(x), rtol=1e-5)

    def test_out_is_written_and_returned(self):
        x, out = random(5, 37), np.full((5, 37), -1, np.float32)
        self.assertIs(texo.compile(SOFTMAX).kernel()(x, out=out), out)
        np.testing.assert_allclose(out, softmax(x), rtol=1e-5)

    def test_scalar_and_several_results(self):
        x = random(4, 9)
        y, t, total = texo.compile(BOTH).kernel()(x, 2.5)
        np.testing.assert_allclose(y, np.float32(2.5) * x, rtol=1e-6)
        np.testing.assert_allclose(t, x.sum(1), rtol=1e-5, atol=1e-5)
        self.assertEqual(total.shape, ())
        self.assertAlmostEqual(float(total), float(x.sum()), places=4)

    def test_strided_input(self):
        x = random(37, 10)
        for view in (x.T, x[::2], x[:, 3:8], x[::-1]):
            np.testing.assert_allclose(texo.compile(SOFTMAX).kernel()(view), softmax(view), rtol=1e-5)

    def test_read_only_input(self):
        x = random(3, 4)
        x.flags.writeable = False
        np.testing.assert_allclose(texo.compile(SOFTMAX).kernel()(x), softmax(x), rtol=1e-5)

    def test_inout(self):
        k = texo.compile("graph step(inout w: f32[N], g: f32[N], lr: f32) -> () { w[i] = w[i] - lr * g[i] }").kernel()
        w, g = random(11), random(11)
        want = w - np.float32(0.5) * g
        self.assertIsNone(k(w, g, 0.5))
        np.testing.assert_allclose(w, want, rtol=1e-6)

    def test_extents_computed_from_dims(self):
        k = texo.compile("graph f(x: i32[N], P: i64) -> (y: i32[N + 2*P - 1]) "
                         "{ y[i] = i < N ? x[i] : i32(i) }").kernel()
        np.testing.assert_array_equal(k(np.array([7, 8, 9], np.int32), 2), [7, 8, 9, 3, 4, 5])

    def test_extents_solved_from_axes(self):
        k = texo.compile("graph f(x: f32[3*N - 1], y: f32[N + M], z: f32[M - 2*N + 4]) -> (a: f32[N], b: f32[M, N], c: f32[M + N div 2]) "
                         "{ a[i] = x[i]\n b[i, j] = y[i] + z[0] + j\n c[i] = i + 0.5 }").kernel()
        a, b, c = k(np.arange(5, dtype=np.float32), np.arange(7, dtype=np.float32), np.ones(5, np.float32))
        np.testing.assert_array_equal(a, [0, 1])
        np.testing.assert_array_equal(b, [[1 + i + j for j in range(2)] for i in range(5)])
        self.assertEqual(c.shape, (6,))
        with self.assertRaisesRegex(ValueError, r"x: an axis of \(N \* 3\) - 1 elements can't have 6"):
            k(np.zeros(6, np.float32), np.zeros(7, np.float32), np.ones(5, np.float32))
        k = texo.compile("graph g(x: f32[N]) -> (y: f32[N + (0 - N) div 2]) { y[i] = x[i] }").kernel()
        np.testing.assert_array_equal(k(np.arange(5, dtype=np.float32)), [0, 1])

    def test_a_scalar_of_bf16_is_rounded_once(self):
        k = texo.compile("graph f(x: f32[N], a: bf16) -> (y: f32[N]) { y[i] = x[i] * a }").kernel()
        for a, want in ((1 + 2**-8, 1), (1 + 2**-8 + 2**-40, 1 + 2**-7), (-1 - 2**-8 - 2**-40, -1 - 2**-7),
                        (1 + 3 * 2**-8 - 2**-40, 1 + 2**-7), (1 + 3 * 2**-8, 1 + 2**-6)):
            self.assertEqual(k(np.ones(1, np.float32), a)[0], want)

    def test_bf16_as_bits(self):
        k = texo.compile("graph f(x: bf16[N]) -> (y: bf16[N]) { y[i] = x[i] * 2 }").kernel()
        one_and_half = np.array([0x3FC0], np.uint16)
        np.testing.assert_array_equal(k(one_and_half), np.array([0x4040], np.uint16))

    def test_elements_of_4_bits_as_bytes(self):
        k = texo.compile("graph f(q: i4[N, K], u: u4[K]) -> (y: i32[N]) { y[n] = sum[k](i32(q[n, k]) * i32(u[k])) }").kernel()
        bytes_of = np.array([[0x21, 0xF8], [0x70, 0x0F], [0x99, 0x12]], np.uint8)
        of_row = np.array([0xF1, 0x3A], np.uint8)
        low, high = (((bytes_of >> s & 15).astype(np.int32) ^ 8) - 8 for s in (0, 4))
        want = np.stack([low, high], -1).reshape(3, 4) @ np.array([1, 15, 10, 3])
        np.testing.assert_array_equal(k(bytes_of, of_row), want)
        np.testing.assert_array_equal(k(bytes_of[:1], of_row), want[:1])
        with self.assertRaisesRegex(ValueError, "q: two elements share a byte, so the bytes of a row lie one after another"):
            k(np.zeros((3, 4), np.uint8)[:, ::2], of_row)
        with self.assertRaisesRegex(texo.Error, "argument q: two elements share a byte, so it must be contiguous"):
            k(np.zeros((3, 4), np.uint8)[:, :2], of_row)
        with self.assertRaisesRegex(texo.Error, "argument q: the dtype is i8, i4 is expected"):
            k(bytes_of.astype(np.int8), of_row)

    def test_results_of_4_bits_as_bytes(self):
        k = texo.compile("graph f(x: i32[N]) -> (y: u4[N]) { y[i] = x[i] }").kernel()
        y = np.zeros(3, np.uint8)
        k(np.arange(10, 16, dtype=np.int32), out=y)
        np.testing.assert_array_equal(y, [0xBA, 0xDC, 0xFE])

    def test_floats_of_8_bits_as_bits(self):
        k = texo.compile("graph f(x: f8e4m3[N]) -> (y: f32[N]) { y[i] = x[i] }").kernel()
        np.testing.assert_array_equal(k(np.array([0x38, 0xC0, 0x7E], np.uint8)), np.array([1, -2, 448], np.float32))

    def test_other_dtypes(self):
        for dtype, numpy_type in (("f64", np.float64), ("f16", np.float16), ("i64", np.int64), ("u8", np.uint8),
                                  ("bool", np.bool_), ("c64", np.complex64)):
            k = texo.compile(f"graph f(x: {dtype}[N]) -> (y: {dtype}[N]) {{ y[i] = x[N - 1 - i] }}").kernel()
            x = np.array([1, 0, 1, 1]).astype(numpy_type)
            y = k(x)
            self.assertEqual(y.dtype, numpy_type)
            np.testing.assert_array_equal(y, x[::-1])

    def test_bound_launch_sees_new_values(self):
        x = random(5, 37)
        launch = texo.compile(SOFTMAX).kernel().bind(x)
        launch()
        x[...] = random(5, 37)
        launch()
        np.testing.assert_allclose(launch.results[0], softmax(x), rtol=1e-5)

    def test_workspace(self):
        k = texo.compile("graph f(x: f32[N, M]) -> (y: f32[N, M]) "
                         "{ s[i] = max[j](x[i, j])\n y[i, j] = x[i, j] - s[(i + 1) mod N] }", fuse="off").kernel()
        x = random(6, 50)
        np.testing.assert_array_equal(k(x), x - np.roll(x.max(1), -1)[:, None])

    def test_statics_and_threads(self):
        x = random(64, 128)
        c = texo.Context(threads=2)
        k = c.compile(SOFTMAX, statics={"M": 128}).kernel()
        np.testing.assert_allclose(k(x), softmax(x), rtol=1e-5)
        with self.assertRaisesRegex(texo.Error, "M|128"):
            k(random(64, 127))


class Lifetimes(unittest.TestCase):
    def test_kernel_outlives_its_makers(self):
        k = texo.Context().compile(SOFTMAX).kernel()
        gc.collect()
        x = random(3, 5)
        np.testing.assert_allclose(k(x), softmax(x), rtol=1e-5)

    def test_launch_keeps_its_arrays(self):
        launch = texo.compile(SOFTMAX).kernel().bind(np.ones((3, 4), np.float32))
        gc.collect()
        launch()
        np.testing.assert_allclose(launch.results[0], 0.25)

    def test_threads_of_python(self):
        k, x = texo.compile(SOFTMAX).kernel(), random(16, 64)
        got = [None] * 8

        def work(n):
            for _ in range(50):
                got[n] = k(x)

        many = [threading.Thread(target=work, args=(n,)) for n in range(8)]
        for t in many:
            t.start()
        for t in many:
            t.join()
        for y in got:
            np.testing.assert_allclose(y, softmax(x), rtol=1e-5)


class Refusals(unittest.TestCase):
    def test_wrong_program(self):
        with self.assertRaises(texo.CompileError) as e:
            texo.compile("graph f(x: f32[N]) -> (y: f32[N]) {\n  y[i] = bais[i]\n}\n", "mine.tex")
        d = e.exception.diagnostics[0]
        self.assertEqual((d.code, d.severity, d.line, d.file), ("E0202", "error", 2, "mine.tex"))
        self.assertIn("bais", str(e.exception))

    def test_arguments(self):
        k = texo.compile(BOTH).kernel()
        x = random(2, 3)
        with self.assertRaisesRegex(TypeError, "takes 2 inputs"):
            k(x)
        with self.assertRaisesRegex(TypeError, "x: list does not speak DLPack"):
            k([[1.0]], 2.0)
        with self.assertRaisesRegex(texo.Error, "x"):
            k(x.astype(np.float64), 2.0)
        with self.assertRaisesRegex(TypeError, "x has rank 2"):
            k(x[0], 2.0)
        with self.assertRaisesRegex(TypeError, "3 results"):
            k(x, 2.0, out=x)
        with self.assertRaises(texo.Error):
            k(x, 2.0, out=(np.empty((2, 4), np.float32), np.empty(2, np.float32), np.empty((), np.float32)))

    def test_scalars(self):
        k = texo.compile("graph f(x: f32[N], a: f32, n: i32) -> (y: f32[N]) { y[i] = x[i] * a + n }").kernel()
        x = random(3)
        np.testing.assert_allclose(k(x, np.array([2.0]), np.int64(3)), 2 * x + 3)
        for a, n, words in ((2, 3.5, "n: 3.5 is no i32"), (2, 2**40, "n: 1099511627776 is no i32"), ("2", 3, "a: '2' is no f32"),
                            (None, 3, "a: None is no f32"), (1e300, 3, "a: 1e\\+300 is no f32"), (x, 3, "a: array.* is no f32")):
            with self.assertRaisesRegex(TypeError, words):
                k(x, a, n)

    def test_arrays_without_words_in_dlpack(self):
        k = texo.compile(SOFTMAX).kernel()

        class Other:
            def __dlpack_device__(self):
                return 1, 0

            def __dlpack__(self, **more):
                return 3
        for array, error, words in ((np.zeros((2, 2), ">f4"), BufferError, "x: "), (np.array([[None]]), BufferError, "x: "),
                                    (Other(), TypeError, "x: what Other gives is no DLPack tensor"), ("x", TypeError, "x: str does not")):
            with self.assertRaisesRegex(error, words):
                k(array)
        for source in (None, SOFTMAX.encode()):
            with self.assertRaisesRegex(TypeError, "source: a str is expected"):
                texo.compile(source)

    def test_read_only_result(self):
        x, out = random(2, 3), np.empty((2, 3), np.float32)
        out.flags.writeable = False
        with self.assertRaisesRegex((ValueError, BufferError), "read-?only"):
            texo.compile(SOFTMAX).kernel()(x, out=out)

    def test_result_over_input(self):
        x = random(2, 3)
        with self.assertRaisesRegex(texo.Error, "y"):
            texo.compile(SOFTMAX).kernel()(x, out=x)

    def test_gather_outside(self):
        k = texo.compile("graph f(t: f32[V], ids: i64[N]) -> (y: f32[N]) { y[i] = t[ids[i]] }").kernel()
        t = random(4)
        np.testing.assert_array_equal(k(t, np.array([3, 0])), t[[3, 0]])
        with self.assertRaises(texo.Error) as e:
            k(t, np.array([4, 0]))
        self.assertEqual(e.exception.status, "FAULT")

    def test_unknown_graph_and_option(self):
        with self.assertRaises(texo.Error) as e:
            texo.compile(SOFTMAX).kernel("nothing")
        self.assertEqual(e.exception.status, "NOT_FOUND")
        with self.assertRaises(texo.Error) as e:
            texo.compile(SOFTMAX, fp="sloppy")
        self.assertEqual(e.exception.status, "INVALID")

    def test_forms(self):
        self.assertIn(b"softmax_rows", texo.compile(SOFTMAX).emit("tg"))


if __name__ == "__main__":
    unittest.main()
