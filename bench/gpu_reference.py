"""Whether a contender on the GPU is right, before it is timed: against float64 at picked places, as on the
processor (reference.py), and against another contender everywhere."""
import math

import gpu_data
import numpy as np
import reference
import torch
from reference import PICKED, TOLERANCE, difference

TOLERANCE = {**TOLERANCE, "f64": 1e-12, "f8e4m3": 6e-2}
STRAY = {"f64": 1e-9, "f32": 1e-3, "bf16": 0.25, "f8e4m3": 0.25}  # of an element's size and the usual one
NAMES = {t: n for n, t in gpu_data.DTYPES.items()}
CHUNK = 1 << 26


class Picks:
    """A tensor that is read at a few places, from where they come to the processor as reference.py has them."""

    def __init__(self, tensor):
        self.tensor, self.shape = tensor, tuple(tensor.shape)

    def __getitem__(self, at):
        parts = at if isinstance(at, tuple) else (at,)
        parts = tuple(torch.as_tensor(p, device=self.tensor.device) if isinstance(p, np.ndarray) else p for p in parts)
        got = self.tensor[parts]
        if got.dtype == torch.float8_e4m3fn:
            got = got.float()
        got = got.cpu()
        return (got.view(torch.uint16) if got.dtype == torch.bfloat16 else got).numpy()

    def sum(self, dtype):
        return self.tensor.sum(dtype=torch.float64).cpu().numpy()


def picked(x):
    """A number as it is, a vector of parameters whole."""
    if not torch.is_tensor(x):
        return x
    return Picks(x)[()] if x.dim() == 1 and x.numel() <= 1 << 17 else Picks(x)


# --- references of what reference.py has not; of tensors, at some indices of the results' first axes ---

def rows(x, at):
    return x[torch.as_tensor(at, device=x.device)].double().cpu().numpy()


def add(a, at):
    return [rows(a["x"], at) + rows(a["y"], at)]


def full_cumsum(a, at):
    return [rows(a["x"].double().cumsum(0), at)]


def recurrence(a, at, dim):
    """In steps that double: h is what so many steps of the recurrence make of 0, f what they multiply by."""
    taken = slice(None) if dim == 0 else torch.as_tensor(at, device=a["a"].device)
    f, h = a["a"][taken].double(), a["b"][taken].double()
    n, steps = h.shape[dim], 1
    while steps < n:
        late, early = (lambda x: x.narrow(dim, steps, n - steps)), (lambda x: x.narrow(dim, 0, n - steps))
        h = torch.cat([h.narrow(dim, 0, steps), torch.addcmul(late(h), late(f), early(h))], dim)
        f = torch.cat([f.narrow(dim, 0, steps), late(f) * early(f)], dim)
        steps *= 2
    return [rows(h, at) if dim == 0 else h.cpu().numpy()]


def row_recurrence(a, at):
    return recurrence(a, at, 1)


def column_recurrence(a, at):
    return recurrence(a, at, 0)


full_recurrence = column_recurrence


def swiglu(a, at):
    g = rows(a["g"], at)
    return [g / (1 + np.exp(-g)) * rows(a["u"], at)]


def chain12(a, at):
    x, y = rows(a["x"], at), rows(a["y"], at)
    t = np.maximum(x * y + x, 0)
    s = np.abs(0.5 * t - y)
    u = x / np.sqrt(s + 1)
    return [u, np.minimum(u, t) * s - y]


def transpose_add(a, at):
    return [a["x"][:, torch.as_tensor(at, device=a["x"].device)].double().cpu().numpy().T + rows(a["r"], at)]


def softmax_columns(a, at):
    x = a["x"]
    stripes = [torch.softmax(c.double(), 0)[torch.as_tensor(at, device=x.device)] for c in x.split(1024, 1)]
    return [torch.cat(stripes, 1).cpu().numpy()]


def residual(a, at):
    """The sum as it is stored."""
    stored = torch.as_tensor(rows(a["x"], at) + rows(a["r"], at)).to(a["x"].dtype)
    return stored.double().numpy()


def layer_norm_residual(a, at):
    s = residual(a, at)
    d = s - s.mean(-1, keepdims=True)
    y = d / np.sqrt((d * d).mean(-1, keepdims=True) + 1e-5)
    return [s, y * a["g"].double().cpu().numpy() + a["b"].double().cpu().numpy()]


def rms_norm_residual(a, at):
    s = residual(a, at)
    return [s, s / np.sqrt((s * s).mean(-1, keepdims=True) + 1e-6) * a["g"].double().cpu().numpy()]


def layer_norm_backward(a, at):
    x, dy, g = rows(a["x"], at), rows(a["dy"], at), a["g"].double().cpu().numpy()
    mu, rs = rows(a["mu"], at)[:, None], rows(a["rs"], at)[:, None]
    h, w = (x - mu) * rs, dy * g
    dx = rs * (w - w.mean(1, keepdims=True) - h * (w * h).mean(1, keepdims=True))
    x, dy = (a[n][:, torch.as_tensor(at, device=a[n].device)].double() for n in ("x", "dy"))
    h = (x - a["mu"].double()[:, None]) * a["rs"].double()[:, None]
    return [dx, (dy * h).sum(0).cpu().numpy(), dy.sum(0).cpu().numpy()]


def quantise_rows(a, at):
    x = rows(a["x"], at)
    s = np.maximum(np.abs(x).max(1), 1e-12) / 448
    return [x / s[:, None], s]


def adam8(a, at):
    out = []
    for k in range(8):
        w, m, v, g = (rows(a[f"{n}{k}"], at) for n in "wmvg")
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        out += [w - a["lr"] * (m / (1 - 0.9 ** a["t"])) / (np.sqrt(v / (1 - 0.999 ** a["t"])) + 1e-8), m, v]
    return out


def embedding_bag(a, at):
    ids = a["ids"][torch.as_tensor(at, device=a["ids"].device)]
    return [a["table"][ids].double().sum(1).cpu().numpy()]


def index_add(a, at):
    got = rows(a["g"], at)
    for k, row in enumerate(at):
        got[k] += a["dy"][a["ids"] == int(row)].double().sum(0).cpu().numpy()
    return [got]


def csr_matmul(a, at):
    got = []
    for row in at:
        lo, hi = int(a["row"][row]), int(a["row"][row + 1])
        got.append((a["val"][lo:hi, None].double() * a["x"][a["col"][lo:hi]].double()).sum(0).cpu().numpy())
    return [np.array(got)]


def times(x, w, at):
    """Rows `at` of x times w, in float64."""
    x = x[torch.as_tensor(at, device=x.device)].double()
    return torch.cat([x @ c.double() for c in w.split(4096, 1)], 1).cpu().numpy()


def product(a, at):
    return [times(a["x"], a["w"], at)]


def product_nt(a, at):
    return [times(a["x"], a["w"].t(), at)]


def weights_i8(a, at):
    return [times(a["x"], a["w"].t(), at) * a["s"].double().cpu().numpy()]


def weights_i4(a, at):
    low, high = ((a["w"].int() >> shift & 15 ^ 8) - 8 for shift in (0, 4))
    return weights_i8({**a, "w": torch.stack((low, high), -1).flatten(1).to(torch.int8)}, at)


def product_tn(a, at):
    return [times(a["x"].t(), a["w"], at)]


def product_tt(a, at):
    return [times(a["x"].t(), a["w"].t(), at)]


def batch(a, at):
    at = torch.as_tensor(at, device=a["x"].device)
    return [(a["x"][at].double() @ a["w"][at].double()).cpu().numpy()]


def batch_nt(a, at):
    return batch({"x": a["x"], "w": a["w"].transpose(1, 2)}, at)


def product_gelu(a, at):
    return [reference.gelu(times(a["x"], a["w"], at) + a["b"].double().cpu().numpy()) + rows(a["r"], at)]


def gated(a, at):
    g = times(a["x"], a["wg"], at)
    return [g / (1 + np.exp(-g)) * times(a["x"], a["wu"], at)]


def norm_product(a, at):
    x = a["x"][torch.as_tensor(at, device=a["x"].device)].double()
    h = x * ((x * x).mean(1, keepdim=True) + 1e-6).rsqrt() * a["g"].double()
    return [times(h, a["w"], np.arange(len(at)))]


def convolution(a, at, stride=1):
    """Images `at`, in float64."""
    x = a["x"][torch.as_tensor(at, device=a["x"].device)].double().permute(0, 3, 1, 2)
    w = a["w"].double().permute(0, 3, 1, 2)
    y = torch.cat([torch.nn.functional.conv2d(i, w, stride=stride, padding=w.shape[2] // 2) for i in x.split(1)])
    return [y.permute(0, 2, 3, 1).cpu().numpy()]


def conv1x1(a, at):
    return convolution({"x": a["x"], "w": a["w"][:, None, None]}, at)


def conv7x7s2(a, at):
    return convolution(a, at, stride=2)


def conv3x3_bn_relu(a, at):
    sc, sh = (a[n].double().cpu().numpy() for n in ("sc", "sh"))
    return [np.maximum(convolution(a, at)[0] * sc + sh, 0)]


def attend(a, at, score=lambda s, h, i, j, a: s, mask=lambda i, j, a: None):
    """Attention of batches `at`, in float64, a head and a stripe of rows at a time. score and mask get the indices of
    head, rows (a column) and keys (a row)."""
    out, heads, length = [], a["q"].shape[1], a["k"].shape[2]
    j = torch.arange(length, device=a["q"].device)[None]
    for b in at:
        for h in range(heads):
            g = h * a["k"].shape[1] // heads
            k, v = a["k"][b, g].double(), a["v"][b, g].double()
            for i in torch.arange(a["q"].shape[2], device=j.device)[:, None].split(2048):
                s = score(a["q"][b, h, i[:, 0]].double() @ k.t() / math.sqrt(k.shape[1]), h, i, j, a)
                shown = mask(i, j, a)
                s = s if shown is None else s.masked_fill(~shown, -math.inf)
                out.append((torch.softmax(s, 1) @ v).cpu())
    return [torch.cat(out).reshape(len(at), *a["q"].shape[1:]).numpy()]


attention = attention_grouped = attend


def causal(i, j, a):
    return j <= i


def attention_causal(a, at):
    return attend(a, at, mask=causal)


def attention_window(a, at):
    return attend(a, at, mask=lambda i, j, a: (j <= i) & (i - j < a["W"]))


def attention_document(a, at):
    return attend(a, at, mask=lambda i, j, a: (j <= i) & (j >= a["doc"][i]))


def attention_softcap(a, at):
    return attend(a, at, score=lambda s, h, i, j, a: 30 * torch.tanh(s / 30))


def attention_alibi(a, at):
    return attend(a, at, score=lambda s, h, i, j, a: s + a["slope"][h].double() * (j - i), mask=causal)


def attention_bias(a, at):
    return attend(a, at, score=lambda s, h, i, j, a: s + a["bias"][h, i[:, 0]].double())


def attention_decode(a, at):
    return [attend({**a, "q": a["q"][:, :, None]}, at)[0][:, :, 0]]


def projected_cross_entropy(a, at):
    z = times(a["x"], a["w"].t(), at)
    y = a["y"][torch.as_tensor(at, device=a["y"].device)].cpu().numpy()
    return [np.logaddexp.reduce(z, 1) - z[np.arange(len(at)), y]]


def linear_attention(a, at):
    """By stripes of rows, each on top of what all rows before it left."""
    out = []
    for q, k, v in zip(*(a[n][torch.as_tensor(at, device=a[n].device)] for n in "qkv")):
        sofar, rows_ = 0, []
        for q, k, v in zip(*(x.double().split(512, 1) for x in (q, k, v))):
            rows_.append((q @ k.transpose(1, 2)).tril() @ v + q @ (sofar if torch.is_tensor(sofar) else torch.zeros_like(q.transpose(1, 2) @ v)))
            sofar = sofar + k.transpose(1, 2) @ v
        out.append(torch.cat(rows_, 1).cpu())
    return [torch.stack(out).numpy()]


def rbf_vector(a, at):
    x = a["x"][torch.as_tensor(at, device=a["x"].device)].double()
    d = (x[:, None] - a["z"].double()).square().sum(2)
    return [(torch.exp(-a["gamma"] * d) @ a["a"].double()).cpu().numpy()]


def rbf_gram(a, at):
    x, z = a["x"][torch.as_tensor(at, device=a["x"].device)].double(), a["z"].double()
    return [torch.stack([torch.exp(-a["gamma"] * (row - z).square().sum(1)) for row in x]).cpu().numpy()]


def polynomial_gram(a, at):
    return [(times(a["x"], a["z"].t(), at) + a["c"]) ** 3]


def lj_forces(a, at):
    x, rows_ = a["x"].double(), torch.as_tensor(at, device=a["x"].device)
    d = x[rows_][:, None] - x
    r2 = d.square().sum(2)
    r2[torch.arange(len(at), device=r2.device), rows_] = math.inf
    w = 24 * (2 / r2 ** 7 - 1 / r2 ** 4)
    return [(w[..., None] * d).sum(1).cpu().numpy()]


def uniform(seed, at, columns):
    """The language's rand(seed, i, j) for rows `at`: Philox-4x32-10 with the key seed and the counter
    (j div 4, i, 0, 0), and of its words number j mod 4, of which 24 bits."""
    low = np.uint64(0xFFFFFFFF)
    block = np.arange(-(-columns // 4), dtype=np.uint64)
    c = [np.broadcast_to(b, (len(at), len(block))) for b in
         (block, np.asarray(at, np.uint64)[:, None], np.uint64(0), np.uint64(0))]
    key = [np.uint64(seed & 0xFFFFFFFF), np.uint64(seed >> 32)]
    for _ in range(10):
        p, q = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [(q >> np.uint64(32)) ^ c[1] ^ key[0], q & low, (p >> np.uint64(32)) ^ c[3] ^ key[1], p & low]
        key = [(key[0] + np.uint64(0x9E3779B9)) & low, (key[1] + np.uint64(0xBB67AE85)) & low]
    words = np.stack(c, -1).reshape(len(at), -1)[:, :columns]
    return (words >> np.uint64(8)).astype(np.float64) * 2.0 ** -24


def dropout_residual(a, at):
    x, r = rows(a["x"], at), rows(a["r"], at)
    kept = uniform(a["seed"], at, x.shape[1]) >= np.float32(a["p"])
    return [np.where(kept, x / (1 - a["p"]), 0) + r]


SPECIAL = {"add_f32": add, "add_f64": add, "index_add_bf16": index_add, "product_f32": product, "conv3x3": convolution}
SHARED = {"gelu_residual", "transpose", "row_sum", "column_sum", "full_sum", "row_argmax", "row_cumsum", "softmax_rows",
          "cross_entropy_rows", "embedding"}
SHARED_BY = {"row_cumsum_bf16": "row_cumsum"}
RANDOM = {"dropout_residual"}  # nobody else draws texo's random numbers


def places(case, inputs, extent, rng):
    """Rows to look at: of an update, some that it changes."""
    if case.graph.startswith("index_add"):
        return np.unique(inputs["ids"][:PICKED].cpu().numpy())
    return np.sort(rng.choice(extent, min(PICKED, extent), replace=False))


def narrowest(*dtypes):
    return max(dtypes, key=lambda d: TOLERANCE[d])


class Reference:
    """Of one case and set of inputs. `error` is asked about contender after contender; the first that is right
    everywhere it is looked at, and in the dtypes asked for, is what the others are held against, as a whole."""

    def __init__(self, case, inputs):
        self.case, self.inputs, self.whole = case, inputs, None
        self.results = [(p.dtype, p.shape(case.dims)) for p in case.signature.written]
        extent = min((shape[0] if shape else 1) for _, shape in self.results)
        self.at = places(case, inputs, extent, np.random.default_rng(7))
        name = SHARED_BY.get(case.graph, case.graph)
        if name in SHARED:
            self.want = getattr(reference, name)({k: picked(v) for k, v in inputs.items()}, self.at)
        else:
            self.want = (SPECIAL.get(name) or globals()[name])(inputs, self.at)

    def tolerance(self, dtype, got):
        """A peer that gives a narrower dtype is held to that one."""
        return TOLERANCE[narrowest(dtype, NAMES.get(got.dtype, dtype))]

    def error(self, name, got):
        """(worst difference of the results, whether all are within tolerance)"""
        if len(got) != len(self.results) or any(tuple(g.shape) != shape for g, (_, shape) in zip(got, self.results)):
            return math.inf, False
        if self.case.graph in RANDOM and name != "texo":
            return self.random_error(got[0])
        worst, fine = 0.0, True
        for k, ((dtype, shape), g, w) in enumerate(zip(self.results, got, self.want)):
            d = difference(Picks(g)[self.at if shape else ()], w, dtype)
            if self.whole is not None:
                d = max(d, apart(g, self.whole[k], narrowest(dtype, NAMES.get(g.dtype, dtype))))
            worst, fine = max(worst, d), fine and d <= self.tolerance(dtype, g)
        narrower = any(NAMES.get(g.dtype) != dtype for g, (dtype, _) in zip(got, self.results))
        if fine and self.whole is None and not narrower and self.case.graph not in RANDOM:
            self.whole = [g.clone() for g in got]
        return worst, fine

    def random_error(self, y):
        """Each element is one of two, and as many are dropped as p says, within five standard deviations."""
        x, r, p = (self.inputs[n] for n in ("x", "r", "p"))
        kept, dropped = x.float() / (1 - p) + r.float(), r.float()
        off_kept, off_dropped = (y.float() - kept).abs(), (y.float() - dropped).abs()
        d = float(torch.minimum(off_kept, off_dropped).norm() / kept.norm())
        clear = x.float().abs() > 0.1
        share = float((off_dropped < off_kept)[clear].double().mean())
        likely = abs(share - p) <= 5 * math.sqrt(p * (1 - p) / max(1, int(clear.sum()))) + 1e-3
        return d if likely else math.inf, likely and d <= TOLERANCE["bf16"]


def apart(g, w, dtype):
    """Relative norm of the difference of two whole tensors; of whole numbers, the share that differs. Infinite where a
    single element is so far off that rounding does not explain it: a block that was not written would not show in
    the norm."""
    g, w = g.reshape(-1), w.reshape(-1)
    if dtype == "i64":
        return float((g != w).double().mean())
    wide = torch.float64 if dtype == "f64" else torch.float32
    chunks = lambda: ((a.to(wide), b.to(wide)) for a, b in zip(g.split(CHUNK), w.split(CHUNK)))
    of = math.sqrt(sum(float(b.norm()) ** 2 for _, b in chunks()))
    usual, off = of / math.sqrt(len(w)), 0.0
    for a, b in chunks():
        d = (a - b).abs()
        if not bool((d <= STRAY[dtype] * (b.abs() + usual)).all()):
            return math.inf
        off += float(d.norm()) ** 2
    return math.sqrt(off) / of if of else math.sqrt(off)
