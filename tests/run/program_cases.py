"""NumPy references of tests/run/programs."""
import numpy as np
from compare_numpy import Case, bf16, packed4

rng = np.random.default_rng(7)


def real(*shape):
    return rng.uniform(-1, 1, shape).astype(np.float32)


def cplx(*shape):
    return (real(*shape) + 1j * real(*shape)).astype(np.complex64)


def softmax(x):
    e = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    return {"y": e / e.sum(axis=1, keepdims=True)}


def stats(x):
    x = x.astype(np.float64)
    return {"m": x.mean(axis=1), "v": x.var(axis=1), "a": x.argmax(axis=1)}


def linear(x, w, b):
    return {"y": np.maximum(x.astype(np.float64) @ w.astype(np.float64) + b, 0)}


def bag(table, ids, off):
    table = table.astype(np.float64)
    return {"y": np.stack([table[ids[a:b]].sum(axis=0) for a, b in zip(off, off[1:])])}


def optional(table, ids):
    inside = (ids >= 0) & (ids < len(table))
    return {"e": np.where(inside[:, None], table[np.where(inside, ids, 0)], -1)}


def step(w, m, g, lr):
    w, m, g = (v.astype(np.float64) for v in (w, m, g))
    return {"m": np.float32(0.9) * m + g, "w": w - np.float32(lr) * m}


def scatter(g, ids, dy):
    g = g.astype(np.float64)
    np.add.at(g, ids, dy.astype(np.float64))
    return {"g": g}


def scan(a, b):
    h, rows = np.zeros(a.shape[1]), []
    for t in range(len(a)):
        h = a[t].astype(np.float64) * h + b[t]
        rows.append(h)
    return {"h": np.array(rows)}


def prefix(x):
    return {"s": np.cumsum(x.astype(np.float64)), "last": x[::-1]}


def conv(x, w):
    n, h, wd, e = x.shape
    r, s, _, c = w.shape
    y = np.zeros((n, h, wd, c))
    for i in range(r):
        for j in range(s):
            for p in range(h):
                for q in range(wd):
                    u, v = p + i - 1, q + j - 1
                    if 0 <= u < h and 0 <= v < wd:
                        y[:, p, q] += x[:, u, v].astype(np.float64) @ w[i, j].astype(np.float64)
    return {"y": y}


def ints(a, b, c):
    return {"s": a.astype(np.int32) * b, "d": c // 3 + c % 5, "m": (a > 0) & (b < 100)}


def window(x, W):
    x = x.astype(np.float64)
    return {"y": np.array([x[i:i + W].sum() for i in range(len(x))])}


def grouped(x, y):
    return {"z": x.astype(np.float64) + np.repeat(y.astype(np.float64), len(x) // len(y))}


def halves(x, y):
    return {"a": y * x.astype(np.float64), "b": np.exp(x.astype(np.float64))}


def nibbles(q, u):
    return {"y": q + u, "c": (q + u + 8) % 16 - 8}


F32 = {"y": "f32"}
CASES = [
    Case("programs/axpy.tex", "axpy", {"a": 0.5, "x": real(1000), "y": real(1000)},
         lambda a, x, y: {"z": a * x.astype(np.float64) + y}, {"z": "f32"}),
    Case("programs/axpy.tex", "axpy", {"a": 2, "x": real(0), "y": real(0)}, lambda a, x, y: {"z": real(0)},
         {"z": "f32"}, name="empty"),
    Case("programs/softmax.tex", "rows", {"x": real(5, 33) * 8}, softmax, F32),
    Case("programs/softmax.tex", "stats", {"x": real(7, 19)}, stats, {"m": "f32", "v": "f32", "a": "i64"}),
    Case("programs/matmul.tex", "linear", {"x": real(9, 40), "w": real(40, 17), "b": real(17)}, linear, F32),
    Case("programs/matmul.tex", "linear", {"x": real(3, 0), "w": real(0, 4), "b": real(4)}, linear, F32, name="empty sum"),
    Case("programs/matmul.tex", "linear", {"x": np.asfortranarray(real(9, 8)), "w": np.asfortranarray(real(8, 7)),
                                           "b": real(7)}, linear, F32, name="column-major files"),
    Case("programs/matmul.tex", "linear", {"x": real(4, 8).astype(np.float64), "w": real(8, 3).astype(np.float16),
                                           "b": real(3)}, lambda x, w, b: linear(x.astype(np.float32), w, b), F32,
         options=("--cast",), name="cast"),
    Case("programs/matmul.tex", "narrow", {"x": bf16(real(6, 32)), "w": bf16(real(32, 5))},
         lambda x, w: {"y": x @ w}, {"y": "bf16"}),
    Case("programs/gather.tex", "embed", {"table": real(50, 8), "ids": rng.integers(0, 50, 21).astype(np.int32)},
         lambda table, ids: {"e": table[ids]}, {"e": "f32"}, rtol=0),
    Case("programs/gather.tex", "bag", {"table": real(30, 4), "ids": rng.integers(0, 30, 40),
                                        "off": np.array([0, 0, 7, 20, 40], np.int32)}, bag, F32),
    Case("programs/gather.tex", "optional", {"table": real(5, 3), "ids": np.array([-1, 0, 4, 5, 2**31 - 1, -2**31], np.int32)},
         optional, {"e": "f32"}, rtol=0),
    Case("programs/update.tex", "step", {"w": real(100), "m": real(100), "g": real(100), "lr": 0.125}, step,
         {"w": "f32", "m": "f32"}),
    Case("programs/update.tex", "scatter", {"g": real(9, 4), "ids": rng.integers(0, 9, 30).astype(np.int32), "dy": real(30, 4)},
         scatter, {"g": "f32"}),
    Case("programs/scan.tex", "scan", {"a": real(40, 6), "b": real(40, 6)}, scan, {"h": "f32"}),
    Case("programs/scan.tex", "prefix", {"x": real(70)}, prefix, {"s": "f32", "last": "f32"}),
    Case("programs/conv.tex", "conv", {"x": real(2, 6, 5, 3), "w": real(3, 3, 3, 4)}, conv, F32),
    Case("programs/types.tex", "ints", {"a": rng.integers(-128, 128, 64).astype(np.int8),
                                        "b": rng.integers(0, 256, 64).astype(np.uint8),
                                        "c": rng.integers(-2**40, 2**40, 64)}, ints, {"s": "i32", "d": "i64", "m": "bool"}),
    Case("programs/types.tex", "complex", {"x": cplx(20), "y": cplx(20)},
         lambda x, y: {"z": x.astype(np.complex128) * np.conj(y), "r": x.real.astype(np.float64) + y.imag},
         {"z": "c64", "r": "f32"}),
    Case("programs/types.tex", "packed", {"q": packed4(rng.integers(-8, 8, (6, 10)), "i4"),
                                          "u": packed4(rng.integers(0, 16, (6, 10)), "u4")}, nibbles,
         {"y": "f32", "c": "i4"}, rtol=0),
    Case("programs/types.tex", "halves", {"x": real(50).astype(np.float16), "y": rng.uniform(-1, 1, 50)}, halves,
         {"a": "f64", "b": "f16"}),
    Case("programs/facts.tex", "grouped", {"x": real(24), "y": real(8)}, grouped, {"z": "f32"}),
    Case("programs/facts.tex", "scalars", {"x": real(12), "W": 5}, window, F32),
]
