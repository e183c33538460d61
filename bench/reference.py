"""What each graph should give, in float64, at picked places: loose checks before anything is timed.

A reference gets the inputs and up to PICKED indices along the results' first axis (the second of a
transpose), and gives one array a result, in the order of the signature. erf is libm's."""
import math

import numpy as np
from data import to_f64

PICKED = 16
TOLERANCE = {"f32": 2e-4, "bf16": 3e-2, "i64": 0}
erf = np.vectorize(math.erf, otypes=[np.float64])


def gelu(x):
    return 0.5 * x * (1 + erf(x / math.sqrt(2)))


def triad(a, at):
    return [to_f64(a["x"][at]) + float(a["s"]) * to_f64(a["y"][at])]


def chain12(a, at):
    x, y = to_f64(a["x"][at]), to_f64(a["y"][at])
    t = np.maximum(x * y + x, 0)
    s = np.abs(0.5 * t - y)
    u = x / np.sqrt(s + 1)
    return [u, np.minimum(u, t) * s - y]


def gelu_residual(a, at):
    return [gelu(to_f64(a["x"][at]) * to_f64(a["w"]) + to_f64(a["b"])) + to_f64(a["r"][at])]


def log_softmax(x):
    x = x - x.max(-1, keepdims=True)
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def softmax_rows(a, at):
    return [np.exp(log_softmax(to_f64(a["x"][at])))]


def log_softmax_rows(a, at):
    return [log_softmax(to_f64(a["x"][at]))]


def cross_entropy_rows(a, at):
    return [-log_softmax(to_f64(a["z"][at]))[np.arange(len(at)), a["y"][at]]]


def layer_norm_residual(a, at):
    s = to_f64(a["x"][at]) + to_f64(a["r"][at])
    d = s - s.mean(-1, keepdims=True)
    y = d / np.sqrt((d * d).mean(-1, keepdims=True) + 1e-5)
    return [s, y * to_f64(a["g"]) + to_f64(a["b"])]


def rms_norm_residual(a, at):
    s = to_f64(a["x"][at]) + to_f64(a["r"][at])
    return [s, s / np.sqrt((s * s).mean(-1, keepdims=True) + 1e-6) * to_f64(a["g"])]


def row_sum(a, at):
    return [to_f64(a["x"][at]).sum(-1)]


def column_sum(a, at):
    return [to_f64(a["x"][:, at]).sum(0)]


def full_sum(a, at):
    return [np.array(a["x"].sum(dtype=np.float64))]


def row_argmax(a, at):
    return [to_f64(a["x"][at]).argmax(-1)]


def row_cumsum(a, at):
    return [to_f64(a["x"][at]).cumsum(-1)]


def transpose(a, at):
    return [to_f64(a["x"][:, at]).T]


def embedding(a, at):
    return [to_f64(a["table"][a["ids"][at]])]


def sgemm(a, at):
    return [to_f64(a["x"][at]) @ to_f64(a["w"])]


def sgemm_gelu(a, at):
    return [gelu(sgemm(a, at)[0] + to_f64(a["b"])) + to_f64(a["r"][at])]


def attention(a, at, causal):
    q, k, v = (to_f64(a[n]) for n in "qkv")
    s = q[at] @ k[at].swapaxes(1, 2) / math.sqrt(q.shape[2])
    if causal:
        s = np.where(np.tri(*s.shape[1:], dtype=bool), s, -np.inf)
    return [np.exp(log_softmax(s)) @ v[at]]


def rbf_vector(a, at):
    x, z = to_f64(a["x"][at]), to_f64(a["z"])
    return [np.exp(-float(a["gamma"]) * ((x[:, None] - z) ** 2).sum(-1)) @ to_f64(a["a"])]


def lj_forces(a, at):
    x = to_f64(a["x"])
    d = x[at][:, None] - x
    r2 = (d * d).sum(-1)
    r2[np.arange(len(at)), at] = np.inf
    return [((24 * (2 / r2**7 - 1 / r2**4))[..., None] * d).sum(1)]


SPECIAL = {
    "bf16_product": sgemm,
    "attention_f32": lambda a, at: attention(a, at, False),
    "attention_bf16": lambda a, at: attention(a, at, False),
    "attention_f32_causal": lambda a, at: attention(a, at, True),
    "attention_bf16_causal": lambda a, at: attention(a, at, True),
}


def difference(got, want, dtype):
    """Relative norm of the difference; of whole numbers, the share that differs."""
    if dtype == "i64":
        return float((got != want).mean())
    norm = float(np.linalg.norm(want))
    d = float(np.linalg.norm(to_f64(got) - want))
    return d / norm if norm else d


class Reference:
    def __init__(self, case, inputs):
        self.results = [(p.dtype, p.shape(case.dims)) for p in case.signature.results]
        f = SPECIAL.get(case.graph) or globals()[case.graph]
        shape = self.results[0][1]
        extent = shape[0] if shape else 1
        rng = np.random.default_rng(7)
        self.at = np.sort(rng.choice(extent, min(PICKED, extent), replace=False))
        self.want = f(inputs, self.at)

    def error(self, name, got):
        """(worst difference of the results, whether all are within tolerance)"""
        worst, fine = 0.0, len(got) == len(self.results)
        for (dtype, shape), g, w in zip(self.results, got, self.want):
            if tuple(g.shape) != shape:
                return math.inf, False
            d = difference(np.asarray(g[self.at] if shape else g), w, dtype)
            worst, fine = max(worst, d), fine and d <= TOLERANCE[dtype]
        return worst, fine
