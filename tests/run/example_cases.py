"""NumPy references of every graph in examples/, written from the formulas and not from the .tex."""
import math

import numpy as np
from compare_numpy import Case, Narrow, bf16, decode, packed4

rng = np.random.default_rng(11)
F = np.float64
EPS = 1e-5
CASES = []


def case(file, graph, inputs, reference, results, **more):
    CASES.append(Case(f"../../examples/{file}.tex", graph, inputs, reference, results, **more))


def real(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def half(*shape):
    return bf16(real(*shape))


def ints(lo, hi, *shape, dtype=np.int32):
    return rng.integers(lo, hi, shape).astype(dtype)


def cplx(*shape):
    return (real(*shape) + 1j * real(*shape)).astype(np.complex64)


def wide(f):
    """Calls f with float arrays in float64."""
    def call(**kw):
        return f(**{k: v.astype(F) if isinstance(v, np.ndarray) and v.dtype.kind == "f" else v for k, v in kw.items()})
    return call


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def erf(x):
    return np.vectorize(math.erf)(x)


def gelu(x):
    return x / 2 * (1 + erf(x / math.sqrt(2)))


def softmax(x, axis):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def logsumexp(x, axis):
    return np.log(np.exp(x).sum(axis=axis))


# --- activations ---

def activations(x):
    return {"a": np.where(x > 0, x, 0), "b": sigmoid(x), "c": x * sigmoid(x), "d": gelu(x),
            "e": x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3))), "f": np.log1p(np.exp(x))}


case("activations", "activations", {"x": real(101) * 3}, wide(activations), dict.fromkeys("abcdef", "f32"))


def more_activations(x, alpha):
    return {"m": x * np.tanh(np.log1p(np.exp(x))), "l": np.where(x > 0, x, alpha * x),
            "e": np.where(x > 0, x, alpha * (np.exp(x) - 1)), "h": x * np.clip(x + 3, 0, 6) / 6}


case("activations", "more_activations", {"x": bf16(real(64) * 2), "alpha": 0.25}, more_activations, dict.fromkeys("mleh", "bf16"))


# --- attention ---

def attention(q, k, v, W):
    B, H, T, D = q.shape
    G, S = k.shape[1:3]
    o = np.zeros(q.shape)
    for b in range(B):
        for h in range(H):
            g = h // (H // G)
            for i in range(T):
                p = i + S - T
                see = [j for j in range(S) if j <= p and p - j < W]
                if see:
                    o[b, h, i] = softmax(k[b, g, see] @ q[b, h, i] / math.sqrt(D), 0) @ v[b, g, see]
    return {"o": o}


case("attention", "attention", {"q": half(2, 4, 6, 8), "k": half(2, 2, 9, 8), "v": half(2, 2, 9, 8), "W": 5}, attention,
     {"o": "bf16"})
case("attention", "attention", {"q": half(1, 2, 5, 4), "k": half(1, 2, 3, 4), "v": half(1, 2, 3, 4), "W": 9}, attention,
     {"o": "bf16"}, name="rows without keys")


def paged_attention(q, kpool, vpool, table, len):  # noqa: A002 (the graph's own name)
    B, H, D = q.shape
    P = kpool.shape[1]
    o = np.zeros(q.shape)
    for b in range(B):
        where = [(table[b, j // P], j % P) for j in range(len[b])]
        for h in range(H):
            if where:
                keys = np.array([kpool[n, r, h] for n, r in where])
                o[b, h] = softmax(keys @ q[b, h] / math.sqrt(D), 0) @ np.array([vpool[n, r, h] for n, r in where])
    return {"o": o}


case("paged_attention", "paged_attention",
     {"q": half(3, 2, 8), "kpool": half(9, 4, 2, 8), "vpool": half(9, 4, 2, 8), "table": ints(0, 9, 3, 3),
      "len": np.array([12, 0, 7], np.int32)}, paged_attention, {"o": "bf16"})


def first(q, k, v):
    some = attention(q[None], k[None], v[None], W=len(k[0]) + len(q[0]))
    return {"o": some["o"][0]}


case("first", "attention", {"q": real(4, 5, 6), "k": real(2, 8, 6), "v": real(2, 8, 6)}, wide(first), {"o": "f32"}, rtol=5e-6)


def linear_attention(q, k, v):
    def phi(x):
        return np.where(x > 0, x + 1, np.exp(x))
    return {"o": phi(q) @ (phi(k).T @ v)}


case("linear_attention", "linear_attention", {"q": real(7, 5), "k": real(11, 5), "v": real(11, 6)}, wide(linear_attention),
     {"o": "f32"})

# --- composition ---

case("composition", "dense", {"x": real(4, 5), "w": real(5, 6)}, wide(lambda x, w: {"y": x @ w}), {"y": "f32"})
case("composition", "two_layers", {"x": real(4, 5), "w1": real(5, 6), "w2": real(6, 3)},
     wide(lambda x, w1, w2: {"y": np.maximum(x @ w1, 0) @ w2}), {"y": "f32"})
case("composition", "standardise", {"x": real(4, 30)},
     wide(lambda x: {"y": (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + EPS) / 2}), {"y": "f32"})


def integers(a, b):
    a, b = a.astype(np.int64), b.astype(np.int64)
    safe = np.where(b == 0, 1, b)
    return {"q": np.where(b == 0, -1, a // safe).astype(np.int32), "r": np.where(b == 0, a, a % safe),
            "p": (a * b).astype(np.int32)}


case("composition", "integers", {"a": ints(-2**31, 2**31, 50), "b": ints(-3, 4, 50)}, integers, dict.fromkeys("qrp", "i32"))


# --- convolutions ---

def conv_bn(x, w, sc, sh, U, P, OH, OW):
    N, H, W, E = x.shape
    R, S, _, C = w.shape
    padded = np.zeros((N, H + 2 * P + R, W + 2 * P + S, E))
    padded[:, P:P + H, P:P + W] = x
    y = np.zeros((N, OH, OW, C))
    for p in range(OH):
        for q in range(OW):
            y[:, p, q] = np.tensordot(padded[:, p * U:p * U + R, q * U:q * U + S], w, 3)
    return {"y": np.maximum(y * sc + sh, 0)}


case("convolution", "conv_bn", {"x": real(2, 7, 8, 3), "w": real(3, 3, 3, 4), "sc": real(4), "sh": real(4), "U": 2, "P": 1,
                                "OH": 4, "OW": 4}, wide(conv_bn), {"y": "f32"})
case("convolution", "causal_conv", {"x": real(20, 3), "w": real(4, 3)},
     wide(lambda x, w: {"y": sum(np.vstack([np.zeros((k, 3)), x[:len(x) - k]]) * w[k] for k in range(4))}), {"y": "f32"})


def max_pool(x):
    p = np.pad(x, ((0, 1), (0, 1)), constant_values=-np.inf)
    return {"y": np.maximum.reduce([p[:-1, :-1], p[1:, :-1], p[:-1, 1:], p[1:, 1:]])}


case("convolution", "max_pool", {"x": real(6, 7)}, wide(max_pool), {"y": "f32"}, rtol=0)
case("convolution", "mean_pool", {"x": real(2, 6, 9)},
     wide(lambda x: {"y": x[:, :6, :8].reshape(2, 3, 2, 4, 2).mean(axis=(2, 4))}), {"y": "f32"})


# --- losses ---

def cross_entropy_matmul(x, w, y):
    z = x @ w.T
    return {"loss": np.array((logsumexp(z, 1) - z[np.arange(len(y)), y]).mean())}


case("cross_entropy", "cross_entropy_matmul", {"x": real(9, 6), "w": real(20, 6), "y": ints(0, 20, 9)}, wide(cross_entropy_matmul),
     {"loss": "f32"})
case("cross_entropy", "cross_entropy_logits", {"z": real(9, 12), "y": ints(0, 12, 9, dtype=np.int64)},
     wide(lambda z, y: {"loss": logsumexp(z, 1) - z[np.arange(9), y]}), {"loss": "f32"})


# --- random numbers: Philox-4x32-10 ---

def philox(seed, counter):
    """The four words for each counter (four arrays of 32-bit values)."""
    c = [np.asarray(x, np.uint64) & 0xFFFFFFFF for x in np.broadcast_arrays(*counter)]
    k0, k1 = seed & 0xFFFFFFFF, seed >> 32
    for _ in range(10):
        a, b = c[0] * 0xD2511F53, c[2] * 0xCD9E8D57
        c = [(b >> 32) ^ c[1] ^ k0, b & 0xFFFFFFFF, (a >> 32) ^ c[3] ^ k1, a & 0xFFFFFFFF]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return [(w >> 8).astype(F) * 2.0 ** -24 for w in c]


def rand(seed, *index):
    *others, last = np.broadcast_arrays(*index)
    words = philox(seed, [last // 4, *others, *[0] * (3 - len(others))])
    return np.choose(last % 4, words)


def randn(seed, i):
    w = philox(seed, [i // 4, 0, 0, 0])
    first = i % 4 < 2
    u, v = np.where(first, w[0], w[2]), np.where(first, w[1], w[3])
    radius, angle = np.sqrt(-2 * np.log(1 - u)), 2 * np.pi * v
    return radius * np.where(i % 2 == 0, np.cos(angle), np.sin(angle))


def dropped(shape, p, seed):
    i, j = np.indices(shape)
    return rand(seed, i, j) < np.float32(p)


case("dropout", "dropout_bias", {"x": real(9, 14), "b": real(14), "p": 0.25, "seed": 12345678901234567},
     wide(lambda x, b, p, seed: {"y": np.where(dropped(x.shape, p, seed), 0, (x + b) / (1 - p))}), {"y": "f32"})
case("dropout", "dropout_residual", {"x": half(6, 11), "r": half(6, 11), "p": 0.5, "seed": 3},
     lambda x, r, p, seed: {"y": np.where(dropped(x.shape, p, seed), 0, x / (1 - p)) + r}, {"y": "bf16"})
case("dropout", "noise", {"seed": 2**64 - 3, "N": 70}, lambda seed, N: {"u": rand(seed, np.arange(N)), "g": randn(seed, np.arange(N))},
     {"u": "f32", "g": "f32"})


# --- recurrences ---

def lcs(a, b):
    n = np.zeros((len(a) + 1, len(b) + 1), np.int32)
    for i in range(len(a)):
        for j in range(len(b)):
            n[i + 1, j + 1] = n[i, j] + 1 if a[i] == b[j] else max(n[i, j + 1], n[i + 1, j])
    return {"l": n[1:, 1:]}


case("dynamic_programming", "lcs", {"a": ints(0, 4, 20), "b": ints(0, 4, 25)}, lcs, {"l": "i32"})


def seam(cost):
    best = [cost[:, 0]]
    for j in range(1, cost.shape[1]):
        p = np.pad(best[-1], 1, constant_values=np.inf)
        best.append(cost[:, j] + np.minimum(np.minimum(p[:-2], p[1:-1]), p[2:]))
    return {"best": np.stack(best, 1)}


case("dynamic_programming", "seam", {"cost": real(6, 12)}, wide(seam), {"best": "f32"})


def scan(a, b, h0=0):
    h, rows = h0, []
    for x, y in zip(a, b):
        h = x * h + y
        rows.append(h)
    return {"h": np.array(rows)}


def average(x, k):
    y = x.copy()
    for t in range(1, x.shape[1]):
        y[:, t] = y[:, t - 1] + k * (x[:, t] - y[:, t - 1])
    return {"y": y}


case("selective_scan", "selective_scan", {"a": real(30, 4), "b": real(30, 4)}, wide(scan), {"h": "f32"})
case("selective_scan", "scan_from", {"a": real(30, 4), "b": real(30, 4), "h0": real(4)}, wide(scan), {"h": "f32"})
case("selective_scan", "average", {"x": real(3, 25), "k": 0.125}, wide(average), {"y": "f32"})
case("selective_scan", "returns", {"r": real(25), "gamma": 0.75},
     wide(lambda r, gamma: {"g": np.array([sum(gamma ** k * x for k, x in enumerate(r[t:])) for t in range(len(r))])}), {"g": "f32"})


def lstm(x, w, u, b):
    h, c, hs, cs = np.zeros(u.shape[1]), np.zeros(u.shape[1]), [], []
    for row in x:
        i, f, g, o = (row @ w[n] + h @ u[n] + b[n] for n in range(4))
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        hs.append(h)
        cs.append(c)
    return {"h": np.array(hs), "c": np.array(cs)}


case("recurrent_nets", "lstm", {"x": real(7, 5), "w": real(4, 5, 3), "u": real(4, 3, 3), "b": real(4, 3)}, wide(lstm),
     {"h": "f32", "c": "f32"}, rtol=2e-5)


def elman(x, u):
    h, rows = np.zeros(x.shape[1]), []
    for row in x:
        h = np.tanh(row + h @ u)
        rows.append(h)
    return {"h": np.array(rows)}


case("recurrent_nets", "elman", {"x": real(9, 4), "u": real(4, 4) / 2}, wide(elman), {"h": "f32"}, rtol=1e-5)

# --- embeddings and ragged sums ---

case("embedding", "embedding", {"table": real(30, 6), "ids": ints(0, 30, 13), "pos": real(13, 6)},
     wide(lambda table, ids, pos: {"e": table[ids] + pos}), {"e": "f32"})


def ragged(rows, off):
    return np.array([rows[a:b].sum(axis=0) for a, b in zip(off, off[1:])])


OFF = np.array([0, 5, 5, 11, 17, 20], np.int64)
case("embedding", "embedding_bag", {"table": real(15, 6), "ids": ints(0, 15, 20), "off": OFF},
     wide(lambda table, ids, off: {"y": ragged(table[ids], off)}), {"y": "f32"})
case("sparse", "csr_matvec", {"row": OFF, "col": ints(0, 9, 20), "val": real(20), "x": real(9)},
     wide(lambda row, col, val, x: {"y": ragged(val * x[col], row)}), {"y": "f32"})
case("sparse", "csr_matmul", {"row": OFF, "col": ints(0, 9, 20), "val": real(20), "x": real(9, 4)},
     wide(lambda row, col, val, x: {"y": ragged(val[:, None] * x[col], row)}), {"y": "f32"})


def edge_attention(row, col, q, k, v):
    o = np.zeros((len(q), v.shape[1]))
    for i, (a, b) in enumerate(zip(row, row[1:])):
        if b > a:
            o[i] = softmax(k[col[a:b]] @ q[i], 0) @ v[col[a:b]]
    return {"o": o}


case("sparse", "edge_attention", {"row": OFF, "col": ints(0, 8, 20), "q": real(5, 4), "k": real(8, 4), "v": real(8, 4)},
     wide(edge_attention), {"o": "f32"}, rtol=5e-6)

# --- complex ---

case("fourier", "dft", {"x": cplx(3, 12)}, lambda x: {"X": np.fft.fft(x.astype(complex), axis=1)}, {"X": "c64"})
case("fourier", "power_spectrum", {"x": real(15)}, wide(lambda x: {"p": np.abs(np.fft.fft(x)) ** 2}), {"p": "f32"}, rtol=5e-6)
case("fourier", "convolve", {"x": cplx(9), "y": cplx(9)},
     lambda x, y: {"z": np.array([sum(x[k].astype(complex) * np.conj(y[(i - k) % 9].astype(complex)) for k in range(9))
                                  for i in range(9)])}, {"z": "c64"})

# --- products ---

case("matmul", "matmul", {"x": real(9, 31), "w": real(31, 7)}, wide(lambda x, w: {"y": x @ w}), {"y": "f32"})
case("matmul", "two_layers", {"x": real(9, 31), "w": real(31, 31), "v": real(31, 31)},
     wide(lambda x, w, v: {"y": np.maximum(x @ w, 0) @ v}), {"y": "f32"})
case("matmul", "linear", {"x": real(2, 9, 31), "w": real(7, 31)}, wide(lambda x, w: {"y": x @ w.T}), {"y": "f32"})
case("matmul", "heads", {"x": ints(-9, 9, 2, 5, 20), "w": ints(-9, 9, 3, 2, 5, 33)},
     lambda x, w: {"y": np.einsum("rks,hrkd->shd", x, w)}, {"y": "i32"})
case("matmul", "matmul_gelu", {"x": real(9, 31), "w": real(31, 7), "b": real(7), "r": real(9, 7)},
     wide(lambda x, w, b, r: {"h": gelu(x @ w + b) + r}), {"h": "f32"}, rtol=5e-6)


def gated_mlp(x, wg, wu):
    g = x @ wg
    return {"g": g * sigmoid(g) * (x @ wu)}


case("matmul", "gated_mlp", {"x": half(5, 32), "wg": half(32, 6), "wu": half(32, 6)}, gated_mlp, {"g": "bf16"})


def int4_weights(x, w, zp, sc):
    return {"y": x @ ((w - np.repeat(zp, 32, 1)) * np.repeat(sc, 32, 1)).T}


case("int4_weights", "int4_weights", {"x": half(4, 128), "w": packed4(ints(0, 16, 6, 128), "u4"), "zp": packed4(ints(0, 16, 6, 4), "u4"),
                                      "sc": half(6, 4)}, int4_weights, {"y": "bf16"})


def sqdist(x, z):
    return ((x[:, None] - z[None]) ** 2).sum(-1)


case("kernels", "rbf", {"x": real(9, 4), "z": real(7, 4), "gamma": 0.5}, wide(lambda x, z, gamma: {"K": np.exp(-gamma * sqdist(x, z))}),
     {"K": "f32"}, rtol=5e-6)
case("kernels", "linear", {"x": real(9, 4), "z": real(7, 4)}, wide(lambda x, z: {"K": x @ z.T}), {"K": "f32"})
case("kernels", "polynomial", {"x": real(9, 4), "z": real(7, 4), "c": 1}, wide(lambda x, z, c: {"K": (x @ z.T + c) ** 3}), {"K": "f32"},
     rtol=5e-6)
case("kernels", "laplacian", {"x": real(9, 4), "z": real(7, 4), "gamma": 0.5},
     wide(lambda x, z, gamma: {"K": np.exp(-gamma * np.abs(x[:, None] - z[None]).sum(-1))}), {"K": "f32"}, rtol=5e-6)
case("kernels", "min_plus", {"a": real(9, 5), "b": real(5, 7)}, wide(lambda a, b: {"c": (a[:, :, None] + b[None]).min(1)}), {"c": "f32"})
case("rbf_vector", "rbf_vector", {"x": real(9, 3), "z": real(20, 3), "a": real(20), "gamma": 0.5},
     wide(lambda x, z, a, gamma: {"f": np.exp(-gamma * sqdist(x, z)) @ a}), {"f": "f32"}, rtol=5e-6)


# --- particles ---

def forces(x, near):
    F_ = np.zeros(x.shape)
    for i in range(len(x)):
        for j in range(len(x)):
            r2 = ((x[i] - x[j]) ** 2).sum()
            if i != j and near(r2):
                F_[i] += 24 * (2 / r2 ** 7 - 1 / r2 ** 4) * (x[i] - x[j])
    return {"F": F_}


GRID = (np.stack(np.meshgrid(*[np.arange(3)] * 3), -1).reshape(-1, 3) * 1.1 + rng.uniform(-0.05, 0.05, (27, 3))).astype(np.float32)
case("lennard_jones", "lj_forces", {"x": GRID}, wide(lambda x: forces(x, lambda r2: True)), {"F": "f32"}, rtol=2e-5)
case("lennard_jones", "lj_cutoff", {"x": GRID, "rc": 1.75}, wide(lambda x, rc: forces(x, lambda r2: r2 < rc * rc)), {"F": "f32"}, rtol=2e-5)


# --- norms ---

def standard(x, axis):
    return (x - x.mean(axis=axis, keepdims=True)) / np.sqrt(x.var(axis=axis, keepdims=True) + EPS)


case("norms", "layer_norm", {"x": real(5, 20), "r": real(5, 20), "g": real(20), "b": real(20)},
     wide(lambda x, r, g, b: {"y": standard(x + r, 1) * g + b, "s": x + r}), {"y": "f32", "s": "f32"}, rtol=5e-6)
case("norms", "rms_norm", {"x": half(5, 24), "g": half(24)},
     lambda x, g: {"y": x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-6) * g}, {"y": "bf16"})
case("norms", "group_norm", {"x": real(2, 6, 5), "G": 2},
     wide(lambda x, G: {"y": standard(x.reshape(2, G, -1), 2).reshape(x.shape)}), {"y": "f32"}, rtol=5e-6)
case("norms", "batch_norm", {"x": real(4, 3, 5), "g": real(3), "b": real(3)},
     wide(lambda x, g, b: {"y": standard(x, (0, 2)) * g[:, None] + b[:, None], "mu": x.mean((0, 2)), "var": x.var((0, 2))}),
     dict.fromkeys(("y", "mu", "var"), "f32"), rtol=5e-6)


def rms_backward(x, dy):
    k = 1 / np.sqrt((x * x).mean(1, keepdims=True) + 1e-6)
    return {"dx": k * dy - x * k ** 3 * (dy * x).mean(1, keepdims=True)}


case("norms", "rms_norm_backward", {"x": real(4, 9), "dy": real(4, 9)}, wide(rms_backward), {"dx": "f32"}, rtol=5e-6)


# --- in place ---

def momentum(m, w, g, lr):
    m = np.float32(0.9) * m + g
    return {"m": m, "w": w - np.float32(lr) * m}


case("optimisers", "momentum", {"m": real(40), "w": real(40), "g": real(40), "lr": 0.1}, wide(momentum), {"m": "f32", "w": "f32"})


def adam(w, m, v, g, lr, t):
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    return {"m": m, "v": v, "w": w - lr * (m / (1 - 0.9 ** t)) / (np.sqrt(v / (1 - 0.999 ** t)) + 1e-8)}


case("optimisers", "adam", {"w": real(40), "m": real(40), "v": np.abs(real(40)), "g": real(40), "lr": 0.01, "t": 7}, wide(adam),
     dict.fromkeys("wmv", "f32"), rtol=2e-5)
case("optimisers", "reverse", {"x": ints(-9, 9, 11)}, lambda x: {"x": x[::-1]}, {"x": "i32"})

# --- prefixes, selection, views ---

case("prefix", "cumulative", {"x": real(3, 40)}, wide(lambda x: {"s": x.cumsum(1), "m": np.maximum.accumulate(x, 1)}), {"s": "f32", "m": "f32"})
case("prefix", "exclusive", {"x": ints(-2**31, 2**31, 30)},
     lambda x: {"s": (np.cumsum(x.astype(np.int64)) - x).astype(np.int32), "total": np.array(x.astype(np.int64).sum()).astype(np.int32)},
     {"s": "i32", "total": "i32"})


def nearest(x, c):
    q = sqdist(x, c)
    return {"a": q.argmin(1), "d": q.min(1)}


case("selection", "nearest", {"x": real(20, 3), "c": real(5, 3)}, wide(nearest), {"a": "i64", "d": "f32"})


def accuracy(z, y):
    right = z.argmax(1) == y
    return {"right": np.array(right.sum()), "share": np.array(right.mean())}


case("selection", "accuracy", {"z": real(31, 4), "y": ints(0, 4, 31, dtype=np.int64)}, accuracy, {"right": "i64", "share": "f32"})
case("selection", "rows_with", {"x": ints(-9, 4, 25, 4)},
     lambda x: {"some": (x < 0).any(1), "every": (x < 0).all(1), "n": (x < 0).sum(1)}, {"some": "bool", "every": "bool", "n": "i64"})
case("views", "concat", {"x": real(5), "w": real(8)}, lambda x, w: {"z": np.concatenate([x, w])}, {"z": "f32"}, rtol=0)
case("views", "transpose", {"x": ints(-9, 9, 4, 7)}, lambda x: {"y": x.T}, {"y": "i32"})
case("views", "unshuffle", {"x": ints(-128, 128, 3, 20, dtype=np.int8)}, lambda x: {"y": x.reshape(3, 5, 4)}, {"y": "i8"})
case("views", "band", {"x": real(7, 7), "k": 2}, lambda x, k: {"y": np.triu(np.tril(x, k), -k)}, {"y": "f32"}, rtol=0)
case("views", "diagonal", {"x": real(9, 9)}, wide(lambda x: {"d": np.diag(x), "trace": np.array(np.trace(x))}), {"d": "f32", "trace": "f32"})


# --- quantisation: the reference follows the rounding, so the codes are exact up to ties decided by s ---

def row_scale(x, top):
    return (np.abs(x).max(1) / np.float32(top)).astype(np.float32)


def quantise_rows(x):
    s = row_scale(x, 448)
    codes = np.arange(128, dtype=np.uint8)
    grid = decode(codes, "f8e4m3")[:127]  # 127 is NaN
    v = (x / s[:, None]).astype(F)
    nearest_code = np.abs(np.abs(v)[..., None] - grid).argmin(-1)  # no ties in this data
    return {"q": np.sign(v) * grid[nearest_code], "s": s}


case("quantise", "quantise_rows", {"x": real(6, 30)}, quantise_rows, {"q": "f8e4m3", "s": "f32"}, rtol=1e-6)


def quantise_int8(x):
    s = row_scale(x, 127)
    return {"q": np.rint(x / s[:, None]).astype(np.int8), "s": s}


case("quantise", "quantise_int8", {"x": real(6, 30)}, quantise_int8, {"q": "i8", "s": "f32"})


def quantise_mx(x):
    block = x.reshape(len(x), -1, 32)
    exponent = np.floor(np.log2(np.abs(block).max(-1)))
    grid = decode(np.arange(124, dtype=np.uint8), "f8e5m2")
    v = (block / np.exp2(exponent)[..., None]).astype(F)
    q = np.sign(v) * grid[np.abs(np.abs(v)[..., None] - grid).argmin(-1)]
    return {"q": q.reshape(x.shape), "s": exponent.astype(np.int64) + 127}


case("quantise", "quantise_mx", {"x": real(3, 96) * 5}, quantise_mx, {"q": "f8e5m2", "s": "e8m0"}, rtol=1e-6)


# --- letters of a text ---

def letters(text):
    count = np.bincount(text, minlength=256)
    pairs = np.zeros((256, 256), int)
    np.add.at(pairs, (text[:-1], text[1:]), 1)

    def bits(n):
        p = n[n > 0] / n.sum()
        return -(p * np.log2(p)).sum()
    return {"count": count, "pairs": pairs, "bits": np.array(bits(count)), "next_bits": np.array(bits(pairs) - bits(count)),
            "top": np.array(count.argmax())}


case("letters", "letters", {"text": ints(97, 110, 300, dtype=np.uint8)}, letters,
     {"count": "i32", "pairs": "i32", "bits": "f32", "next_bits": "f32", "top": "i64"}, rtol=1e-5)


# --- rotary, scatter, softmax, stencils ---

def rotary(x, base):
    T, _, two_n = x.shape
    n = two_n // 2
    angle = np.arange(T)[:, None] * np.float64(base) ** (-np.arange(n) / n)
    cos, sin = np.cos(angle)[:, None], np.sin(angle)[:, None]
    a, b = x[..., :n], x[..., n:]
    return {"y": np.concatenate([a * cos - b * sin, a * sin + b * cos], -1)}


case("rotary", "rotary", {"x": real(20, 2, 12), "base": 10000}, wide(rotary), {"y": "f32"}, rtol=1e-5)


def sparse_update(g, ids, dy):
    g = g.copy()
    np.add.at(g, ids, dy)
    return {"g": g}


case("scatter", "sparse_update", {"g": real(9, 3), "ids": ints(0, 9, 40), "dy": real(40, 3)}, wide(sparse_update), {"g": "f32"})
case("scatter", "histogram", {"ids": ints(0, 12, 200), "V": 12}, lambda ids, V: {"count": np.bincount(ids, minlength=V)}, {"count": "i32"})


def segments(x, seg, S, of, empty):
    return {"m": np.array([of(x[seg == s]) if (seg == s).any() else empty for s in range(S)])}


case("scatter", "segment_max", {"x": real(40), "seg": ints(0, 9, 40), "S": 12}, wide(lambda x, seg, S: segments(x, seg, S, np.max, -1)),
     {"m": "f32"}, rtol=0)
case("scatter", "segment_mean", {"x": real(40), "seg": ints(0, 9, 40), "S": 12}, wide(lambda x, seg, S: segments(x, seg, S, np.mean, 0)),
     {"m": "f32"})
case("softmax", "softmax_rows", {"x": real(6, 40) * 9}, wide(lambda x: {"y": softmax(x, 1)}), {"y": "f32"})


def softmax_masked(x, keep):
    e = np.where(keep, np.exp(x), 0)
    s = e.sum(1, keepdims=True)
    with np.errstate(divide="ignore"):
        return {"y": e / np.where(s == 0, 1, s), "l": np.log(s[:, 0])}


KEEP = rng.random((6, 15)) < 0.4
KEEP[2] = False
case("softmax", "softmax_masked", {"x": real(6, 15), "keep": KEEP}, wide(softmax_masked), {"y": "f32", "l": "f32"})
case("softmax", "softmax_2d", {"x": real(3, 5, 7)}, wide(lambda x: {"y": softmax(x.reshape(3, 35), 1).reshape(x.shape)}), {"y": "f32"})
case("softmax", "log_softmax_columns", {"x": real(12, 5)}, wide(lambda x: {"y": x - logsumexp(x, 0)}), {"y": "f32"})


def heat(u, k):
    p = np.pad(u, 1)
    return {"v": u + k * (p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] - 4 * u)}


case("stencils", "heat", {"u": rng.standard_normal((8, 9)), "k": 0.125}, heat, {"v": "f64"})


def life(x):
    n = sum(np.roll(x.astype(int), (a, b), (0, 1)) for a in (-1, 0, 1) for b in (-1, 0, 1) if a or b)
    return {"y": (n == 3) | (x & (n == 2))}


case("stencils", "life", {"x": rng.random((9, 11)) < 0.4}, life, {"y": "bool"})
