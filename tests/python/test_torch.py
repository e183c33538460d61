"""python/texo.py on torch tensors, in one process with torch's own libraries. Without torch it exits
with 77, which CTest shows as skipped. usage: test_torch.py (TEXO_LIBRARY names libtexo.so)"""
import sys
import unittest
from pathlib import Path

try:
    import torch
except ImportError as e:
    print(f"skipped: {e} (bench/run.sh --setup installs it under build/bench/venv)")
    sys.exit(77)

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))
import texo  # noqa: E402

SOFTMAX = 'use "std"\ngraph softmax_rows(x: f32[N, M]) -> (y: f32[N, M]) { y[i, j] = softmax[j](x[i, j]) }\n'
LINEAR = """graph linear(x: bf16[M, K], w: bf16[K, N]) -> (y: bf16[M, N]) {
  y[m, n] = sum[k](x[m, k] * w[k, n])
}
"""


class Tensors(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(1)

    def test_result_is_a_tensor(self):
        x = torch.randn(5, 37)
        y = texo.compile(SOFTMAX).kernel()(x)
        self.assertIsInstance(y, torch.Tensor)
        torch.testing.assert_close(y, torch.softmax(x, 1))

    def test_strided(self):
        x = torch.randn(8, 40)
        for view in (x.T, x[::2], x[:, 3:17], x.expand(3, 8, 40)[1]):
            torch.testing.assert_close(texo.compile(SOFTMAX).kernel()(view), torch.softmax(view, 1))

    def test_out(self):
        x, out = torch.randn(5, 37), torch.empty(5, 37)
        self.assertIs(texo.compile(SOFTMAX).kernel()(x, out=out), out)
        torch.testing.assert_close(out, torch.softmax(x, 1))

    @staticmethod
    def told(d, elements):
        # torch's versions differ in strides of axes of one element
        axes = [(d.shape[n], d.strides[n] if d.shape[n] > 1 else 1) for n in range(d.ndim)]
        at = (d.data or 0) + d.byte_offset if elements else None
        return at, axes, d.dtype.code, d.dtype.bits, d.dtype.lanes, d.device.device_type, d.device.device_id

    @staticmethod
    def dlpack_knows(tensor):
        try:
            return tensor.__dlpack__() is not None
        except (BufferError, RuntimeError):  # as of bool, before torch 2
            return False

    def test_what_tensors_say_is_what_dlpack_says(self):
        x = torch.randn(4, 6, 5)
        all = [x, x.transpose(0, 2), x[1:, ::2, 3:], x[:, :1], x[:0], x[0, 0, 0], x.expand(2, 4, 6, 5)]
        typed = [x[0].to(getattr(torch, d)) for d in texo._TORCH_CODES]
        known = [t for t in typed if self.dlpack_knows(t)]
        self.assertGreater(len(known), 8)
        for t in all + known:
            self.assertTrue(texo._says_all(torch, t))
            views = texo._TorchView(t, 1), texo._View(t, "t", "", False)
            said, dlpack = (self.told(texo.DLTensor.from_address(v.address), t.numel()) for v in views)
            self.assertEqual(said, dlpack)
            self.assertEqual(list(views[0].shape), list(views[1].shape))
        for t in (x.requires_grad_(), torch.randn(3, dtype=torch.complex64).conj(), torch.randn(3).to(torch.complex64).conj().imag,
                  torch.randn(3, 3).to_sparse(), torch.zeros(3, dtype=torch.complex128), torch.nn.Parameter(torch.zeros(3))):
            self.assertFalse(texo._says_all(torch, t))

    def test_kernels_take_what_tensors_say(self):
        view = texo._view
        texo._view = lambda array, name, dtype, written: texo._says_all(torch, array) and texo._TorchView(array, 1)
        try:
            self.test_result_is_a_tensor()
            self.test_strided()
            self.test_bf16()
        finally:
            texo._view = view

    def test_bf16(self):
        x, w = torch.randn(9, 33).bfloat16(), torch.randn(33, 20).bfloat16()
        y = texo.compile(LINEAR).kernel()(x, w)
        self.assertEqual(y.dtype, torch.bfloat16)
        torch.testing.assert_close(y.float(), x.float() @ w.float(), rtol=1e-2, atol=1e-2)

    def test_scalar_tensor_and_inout(self):
        k = texo.compile("graph step(inout w: f32[N], g: f32[N], lr: f32) -> () { w[i] = w[i] - lr * g[i] }").kernel()
        w, g = torch.randn(11), torch.randn(11)
        want = w - 0.5 * g
        k(w, g, torch.tensor(0.5))
        torch.testing.assert_close(w, want)

    def test_beside_numpy(self):
        k = texo.compile("graph f(x: f32[N], y: f32[N]) -> (z: f32[N]) { z[i] = x[i] + y[i] }").kernel()
        x, y = torch.randn(5), torch.randn(5)
        torch.testing.assert_close(k(x, y.numpy()), x + y)

    def test_gradient_is_not_lost_in_silence(self):
        with self.assertRaisesRegex((BufferError, RuntimeError), "grad"):
            texo.compile(SOFTMAX).kernel()(torch.randn(3, 4, requires_grad=True))

    def test_threads_of_both(self):
        """Theirs and ours, in turns."""
        k, x = texo.compile(SOFTMAX).kernel(), torch.randn(256, 1024)
        for _ in range(20):
            torch.testing.assert_close(k(x), torch.softmax(x, 1))


if __name__ == "__main__":
    unittest.main()
