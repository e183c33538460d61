"""NumPy, and OpenBLAS and oneDNN as Debian has them, unpacked under ROOM by run.sh."""
import ctypes
import math
from ctypes import c_char_p, c_float, c_int, c_long, c_void_p

import data
import numpy as np
from contender import Absent, Contender, Function, NoForm

ROW_MAJOR, NO_TRANSPOSE = 101, 111


def chain12(x, y):
    t = np.maximum(x * y + x, 0)
    s = np.abs(np.float32(0.5) * t - y)
    u = x / np.sqrt(s + 1)
    return u, np.minimum(u, t) * s - y


def softmax_rows(x):
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def log_softmax_rows(x):
    y = x - x.max(1, keepdims=True)
    return y - np.log(np.exp(y).sum(1, keepdims=True))


def cross_entropy_rows(z, y):
    m = z.max(1, keepdims=True)
    return np.log(np.exp(z - m).sum(1)) + m[:, 0] - np.take_along_axis(z, y[:, None], 1)[:, 0]


def layer_norm_residual(x, r, g, b):
    s = x + r
    d = s - s.mean(1, keepdims=True)
    return s, d / np.sqrt((d * d).mean(1, keepdims=True) + np.float32(1e-5)) * g + b


def rms_norm_residual(x, r, g):
    s = x + r
    return s, s / np.sqrt((s * s).mean(1, keepdims=True) + np.float32(1e-6)) * g


def attention(q, k, v):
    return softmax_rows((q @ k.swapaxes(1, 2) / np.float32(math.sqrt(q.shape[2]))).reshape(-1, k.shape[1])).reshape(
        q.shape[0], q.shape[1], -1) @ v


def rbf_vector(x, z, a, gamma):
    d = x @ z.T
    d *= 2
    d -= (x * x).sum(1)[:, None]
    d -= (z * z).sum(1)
    d *= gamma
    return np.exp(d, out=d) @ a


NUMPY_FORMS = {
    "triad": lambda x, y, s: x + s * y,
    "chain12": chain12,
    "softmax_rows": softmax_rows,
    "log_softmax_rows": log_softmax_rows,
    "cross_entropy_rows": cross_entropy_rows,
    "layer_norm_residual": layer_norm_residual,
    "rms_norm_residual": rms_norm_residual,
    "row_sum": lambda x: x.sum(1),
    "column_sum": lambda x: x.sum(0),
    "full_sum": lambda x: x.sum(),
    "row_argmax": lambda x: x.argmax(1),
    "row_cumsum": lambda x: x.cumsum(1),
    "transpose": lambda x: np.ascontiguousarray(x.T),
    "embedding": lambda table, ids: table[ids],
    "sgemm": np.matmul,
    "attention_f32": attention,
    "rbf_vector": rbf_vector,
}


def numpy(case, inputs):
    if case.graph not in NUMPY_FORMS:
        raise NoForm("NumPy has not the dtype or the function")
    f, a = NUMPY_FORMS[case.graph], list(inputs.values())
    return Function(lambda: f(*a), np.asarray)


LIBRARIES = "debian/usr/lib/x86_64-linux-gnu"


def load(room, *names):
    """The last of the libraries; those before it are what it needs, found by their names once they are here."""
    for name in names:
        lib = ctypes.CDLL(str(room / name))
    return lib


class OpenBLAS:
    def __init__(self, room):
        try:
            self.lib = load(room, f"{LIBRARIES}/libquadmath.so.0", f"{LIBRARIES}/libgfortran.so.5",
                            f"{LIBRARIES}/openblas-pthread/libopenblas.so.0")
        except OSError as e:
            raise Absent(f"OpenBLAS: {e}") from e
        self.lib.openblas_get_config.restype = c_char_p
        self.lib.cblas_sgemm.argtypes = [c_int] * 6 + [c_float, c_void_p, c_int, c_void_p, c_int, c_float, c_void_p, c_int]
        self.lib.cblas_sgemm.restype = None

    def version(self):
        return self.lib.openblas_get_config().decode().strip()

    def threads(self, n):
        self.lib.openblas_set_num_threads(c_int(n))

    def make(self, case, inputs):
        if case.graph not in ("sgemm", "sgemm_gelu"):
            raise NoForm("no product in f32")
        return Sgemm(self.lib.cblas_sgemm, case.dims, inputs)


def gelu_residual_in_place(y, b, r):
    """What follows the product, by torch's own functions in place: OpenBLAS has none, and NumPy no erf."""
    try:
        import torch
    except ImportError as e:
        raise Absent(f"no torch to apply what follows the product: {e}") from e
    ty, tb, tr = (torch.from_numpy(x) for x in (y, b, r))
    return torch.inference_mode()(lambda: torch.ops.aten.gelu_(ty.add_(tb)).add_(tr))


class Sgemm(Contender):
    """The product, and what follows it where the case has more."""

    def __init__(self, sgemm, dims, inputs):
        m, n, k = dims["M"], dims["N"], dims["K"]
        self.inputs, self.y, self.sgemm = inputs, data.empty((m, n), "f32"), sgemm
        self.args = (ROW_MAJOR, NO_TRANSPOSE, NO_TRANSPOSE, m, n, k, 1.0, inputs["x"].ctypes.data, k,
                     inputs["w"].ctypes.data, n, 0.0, self.y.ctypes.data, n)
        self.then = gelu_residual_in_place(self.y, inputs["b"], inputs["r"]) if "b" in inputs else None

    def call(self):
        self.sgemm(*self.args)
        if self.then:
            self.then()

    def results(self):
        return [self.y]

    def close(self):
        self.inputs = self.y = self.then = None


class OneDNN:
    def __init__(self, room):
        try:
            self.lib = load(room, f"{LIBRARIES}/libOpenCL.so.1", "libonednn_shim.so")
        except OSError as e:
            raise Absent(f"oneDNN: {e}") from e
        for name in ("onednn_product", "onednn_softmax"):
            getattr(self.lib, name).restype = c_void_p
        self.lib.onednn_product.argtypes = [c_long] * 3 + [c_int] + [c_void_p] * 5
        self.lib.onednn_softmax.argtypes = [c_long] * 2 + [c_int] + [c_void_p] * 2
        self.lib.onednn_run.argtypes = self.lib.onednn_free.argtypes = [c_void_p]

    def version(self):
        v = [c_int(), c_int(), c_int()]
        self.lib.onednn_version(*map(ctypes.byref, v))
        return "oneDNN " + ".".join(str(n.value) for n in v)

    def threads(self, n):
        self.lib.onednn_threads(c_int(n))

    def make(self, case, inputs):
        p = {name: x.ctypes.data for name, x in inputs.items() if np.ndim(x)}
        d, y = case.dims, data.empty(case.signature.results[0].shape(case.dims), case.signature.results[0].dtype)
        at = y.ctypes.data
        if case.graph in ("sgemm", "sgemm_gelu", "bf16_product"):
            job = self.lib.onednn_product(d["M"], d["N"], d["K"], case.graph == "bf16_product", p["x"], p["w"],
                                          p.get("b"), p.get("r"), at)
        elif case.graph in ("softmax_rows", "log_softmax_rows"):
            job = self.lib.onednn_softmax(d["N"], d["M"], case.graph == "log_softmax_rows", p["x"], at)
        else:
            raise NoForm("no primitive of it in the shim")
        if not job:
            raise Absent("this oneDNN has no such primitive for this processor")
        return Primitive(self.lib, job, inputs, y)


class Primitive(Contender):
    def __init__(self, lib, job, inputs, y):
        self.lib, self.job, self.inputs, self.y = lib, job, inputs, y

    def call(self):
        if self.lib.onednn_run(self.job):
            raise RuntimeError("oneDNN failed")

    def results(self):
        return [self.y]

    def close(self):
        self.lib.onednn_free(self.job)
        self.job = self.inputs = self.y = None
