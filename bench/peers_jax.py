"""JAX: jit of each case, on the same memory as torch's tensors. Its queue is its own, so it is timed by the
host's clock; where a call is short, as many as there are sets of inputs go into one jit."""
import functools
import time

import gpu_turns
import jax
import jax.numpy as jnp
import torch
from contender import Absent, NoForm, Rotating
from jax import lax

jax.config.update("jax_enable_x64", True)
MOST_TOGETHER = 8
SHORT = 150e-6  # seconds of a call below which dispatch would show
f32 = jnp.float32


def softmax(x, axis):
    return jax.nn.softmax(x.astype(f32), axis).astype(x.dtype)


def layer_norm_residual(x, r, g, b):
    s = x + r
    d = s.astype(f32)
    d = d - d.mean(1, keepdims=True)
    y = d * lax.rsqrt((d * d).mean(1, keepdims=True) + 1e-5)
    return s, (y * g + b).astype(x.dtype)


def rms_norm_residual(x, r, g):
    s = x + r
    d = s.astype(f32)
    return s, (d * lax.rsqrt((d * d).mean(1, keepdims=True) + 1e-6) * g).astype(x.dtype)


def layer_norm_backward(x, dy, g, mu, rs):
    h, d = (x.astype(f32) - mu[:, None]) * rs[:, None], dy.astype(f32)
    w = d * g
    dx = rs[:, None] * (w - w.mean(1, keepdims=True) - h * (w * h).mean(1, keepdims=True))
    return dx.astype(x.dtype), (d * h).sum(0).astype(g.dtype), d.sum(0).astype(g.dtype)


def chain12(x, y):
    a, b = x.astype(f32), y.astype(f32)
    t = jnp.maximum(a * b + a, 0)
    s = jnp.abs(0.5 * t - b)
    u = a / jnp.sqrt(s + 1)
    return u.astype(x.dtype), (jnp.minimum(u, t) * s - b).astype(x.dtype)


def dropout_residual(x, r, p, seed):
    kept = jax.random.uniform(jax.random.key(seed), x.shape, f32) >= p
    return (jnp.where(kept, x.astype(f32) / (1 - p), 0) + r.astype(f32)).astype(x.dtype)


def quantise_rows(x):
    v = x.astype(f32)
    s = jnp.maximum(jnp.abs(v).max(1), 1e-12) / 448
    return (v / s[:, None]).astype(jnp.float8_e4m3fn), s


def cross_entropy_rows(z, y):
    v = z.astype(f32)
    return jax.nn.logsumexp(v, 1) - jnp.take_along_axis(v, y[:, None], 1)[:, 0]


def adam8(*a):
    lr, t = a[-2:]
    out = []
    for w, m, v, g in zip(*(a[k:-2:4] for k in range(4))):
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        out += [w - lr * (m / (1 - 0.9 ** t)) / (jnp.sqrt(v / (1 - 0.999 ** t)) + 1e-8), m, v]
    return tuple(x.astype(f32) for x in out)


def csr_matmul(row, col, val, x):
    at = jnp.searchsorted(row, jnp.arange(col.shape[0]), side="right") - 1
    return jax.ops.segment_sum(val[:, None] * x[col], at, row.shape[0] - 1, indices_are_sorted=True)


def index_add(g, ids, dy):
    return g.at[ids].add(dy)


def gelu_residual(x, w, b, r):
    v = x.astype(f32) * w + b
    return (jax.nn.gelu(v, approximate=False) + r).astype(x.dtype)


def norm_product(x, g, w):
    v = x.astype(f32)
    v = v * jax.lax.rsqrt(jnp.mean(v * v, 1, keepdims=True) + 1e-6) * g
    return v.astype(x.dtype) @ w


def product_gelu(x, w, b, r):
    v = jnp.dot(x, w, preferred_element_type=f32) + b
    return (jax.nn.gelu(v, approximate=False) + r).astype(x.dtype)


def gated(x, wg, wu):
    g, u = (jnp.dot(x, w, preferred_element_type=f32) for w in (wg, wu))
    return (jax.nn.silu(g) * u).astype(x.dtype)


def convolution(stride=1):
    def run(x, w):
        pad = (w.shape[1] // 2, w.shape[1] // 2)
        return lax.conv_general_dilated(x, w, (stride, stride), (pad, pad), dimension_numbers=("NHWC", "OHWI", "NHWC"),
                                        feature_group_count=x.shape[3] // w.shape[3])
    return run


def fused_attention(**how):
    """By cuDNN where there is a GPU. Heads are the third axis for it."""
    def run(q, k, v):
        q, k, v = (x.swapaxes(1, 2) for x in (q, k, v))
        library = "cudnn" if jax.default_backend() == "gpu" else "xla"
        return jax.nn.dot_product_attention(q, k, v, implementation=library, **how).swapaxes(1, 2)
    return run


def scored_attention(q, k, v, score=lambda s, i, j: s, shown=None):
    """With what is done to scores, by XLA; i and j are the numbers of rows, and of keys."""
    i, j = jnp.arange(q.shape[2])[:, None], jnp.arange(k.shape[2])
    s = score(jnp.einsum("bhid,bhjd->bhij", q, k, preferred_element_type=f32) / q.shape[3] ** 0.5, i, j)
    s = s if shown is None else jnp.where(shown(i, j), s, -jnp.inf)
    return jnp.einsum("bhij,bhjd->bhid", jax.nn.softmax(s, 3).astype(v.dtype), v)


def window_attention(q, k, v, width):
    return scored_attention(q, k, v, shown=lambda i, j: (j <= i) & (i - j < width))


def document_attention(q, k, v, doc):
    return scored_attention(q, k, v, shown=lambda i, j: (j <= i) & (j >= doc[:, None]))


def softcap_attention(q, k, v):
    return scored_attention(q, k, v, lambda s, i, j: 30 * jnp.tanh(s / 30))


def alibi_attention(q, k, v, slope):
    return scored_attention(q, k, v, lambda s, i, j: s + slope[:, None, None] * (j - i), lambda i, j: j <= i)


def bias_attention(q, k, v, bias):
    return scored_attention(q, k, v, lambda s, i, j: s + bias)


def projected_cross_entropy(x, w, y):
    return cross_entropy_rows(jnp.matmul(x, w.T, preferred_element_type=f32), y)


def linear_attention(q, k, v):
    """In chunks of 64 rows, each on top of the products of those before."""
    rows = q.shape[2]
    q, k, v = (jnp.pad(x, ((0, 0), (0, 0), (0, -rows % 64), (0, 0))) for x in (q, k, v))
    q, k, v = (x.reshape(*x.shape[:2], -1, 64, x.shape[3]) for x in (q, k, v))
    own = jnp.tril(jnp.matmul(q, k.swapaxes(3, 4), preferred_element_type=f32)) @ v.astype(f32)
    sums = jnp.matmul(k.swapaxes(3, 4), v, preferred_element_type=f32).cumsum(2)
    before = jnp.pad(sums, ((0, 0), (0, 0), (1, 0), (0, 0), (0, 0)))[:, :, :-1]
    o = (own + q.astype(f32) @ before).astype(q.dtype)
    return o.reshape(*o.shape[:2], -1, o.shape[4])[:, :, :rows]


def rbf_vector(x, z, a, gamma):
    d = sum((x[:, None, c] - z[None, :, c]) ** 2 for c in range(x.shape[1]))
    return (jnp.exp(-gamma * d) * a).sum(1)


def weights_i8(x, w, s):
    return (x @ w.T.astype(x.dtype)) * s


def weights_i4(x, w, s):
    return weights_i8(x, lax.bitcast_convert_type(jnp.stack((w << 4, w), -1).reshape(w.shape[0], -1), jnp.int8) >> 4, s)


def rbf_gram(x, z, gamma):
    d = (x * x).sum(1)[:, None] + (z * z).sum(1) - 2 * jnp.matmul(x, z.T, precision="highest")
    return jnp.exp(-gamma * d)


def lj_forces(x):
    i = jnp.arange(x.shape[0])
    d = [x[:, None, c] - x[None, :, c] for c in range(x.shape[1])]
    r = 1 / jnp.where(i[:, None] == i, jnp.inf, sum(e * e for e in d))
    w = 24 * (2 * r ** 7 - r ** 4)
    return jnp.stack([(w * e).sum(1) for e in d], 1)


def recurrence(axis):
    """Steps of h to f h + g, each with those behind it."""
    def then(first, second):
        return first[0] * second[0], first[1] * second[0] + second[1]
    return lambda a, b: lax.associative_scan(then, (a, b), axis=axis)[1]


FORMS = {
    "add_f32": jnp.add,
    "add_f64": jnp.add,
    "gelu_residual": gelu_residual,
    "swiglu": lambda g, u: (jax.nn.silu(g.astype(f32)) * u).astype(g.dtype),
    "dropout_residual": dropout_residual,
    "chain12": chain12,
    "transpose": lambda x: x.T,
    "transpose_add": lambda x, r: x.T + r,
    "row_sum": lambda x: x.sum(1),
    "column_sum": lambda x: x.sum(0),
    "full_sum": lambda x: x.sum(),
    "row_argmax": lambda x: x.argmax(1),
    "row_cumsum": lambda x: x.cumsum(1),
    "full_cumsum": lambda x: x.cumsum(),
    "row_recurrence": recurrence(1),
    "column_recurrence": recurrence(0),
    "full_recurrence": recurrence(0),
    "row_cumsum_bf16": lambda x: x.astype(f32).cumsum(1).astype(x.dtype),
    "softmax_rows": lambda x: softmax(x, 1),
    "softmax_columns": lambda x: softmax(x, 0),
    "cross_entropy_rows": cross_entropy_rows,
    "layer_norm_residual": layer_norm_residual,
    "rms_norm_residual": rms_norm_residual,
    "layer_norm_backward": layer_norm_backward,
    "quantise_rows": quantise_rows,
    "adam8": adam8,
    "embedding": lambda table, ids: table[ids],
    "embedding_bag": lambda table, ids: table[ids].astype(f32).sum(1).astype(table.dtype),
    "index_add": index_add,
    "index_add_bf16": index_add,
    "csr_matmul": csr_matmul,
    "product": jnp.matmul,
    "product_nt": lambda x, w: x @ w.T,
    "weights_i8": weights_i8,
    "weights_i4": weights_i4,
    "product_tn": lambda x, w: x.T @ w,
    "product_tt": lambda x, w: x.T @ w.T,
    "batch": jnp.matmul,
    "batch_nt": lambda x, w: x @ w.swapaxes(1, 2),
    "conv3x3": convolution(),
    "conv1x1": lambda x, w: convolution()(x, w[:, None, None]),
    "conv7x7s2": convolution(stride=2),
    "conv3x3_bn_relu": lambda x, w, sc, sh: jax.nn.relu(convolution()(x, w) * sc + sh).astype(x.dtype),
    "product_f32": lambda x, w: jnp.matmul(x, w, precision="highest"),
    "product_gelu": product_gelu,
    "gated": gated,
    "norm_product": norm_product,
    "attention": fused_attention(),
    "attention_causal": fused_attention(is_causal=True),
    "attention_grouped": fused_attention(),
    "attention_window": window_attention,
    "attention_document": document_attention,
    "attention_softcap": softcap_attention,
    "attention_alibi": alibi_attention,
    "attention_bias": bias_attention,
    "attention_decode": lambda q, k, v: fused_attention()(q[:, :, None], k, v)[:, :, 0],
    "projected_cross_entropy": projected_cross_entropy,
    "linear_attention": linear_attention,
    "rbf_vector": rbf_vector,
    "lj_forces": lj_forces,
    "rbf_gram": rbf_gram,
    "polynomial_gram": lambda x, z, c: (jnp.matmul(x, z.T, precision="highest") + c) ** 3,
}


def version():
    return f"JAX {jax.__version__} on {jax.default_backend()}"


def array(x):
    return jax.dlpack.from_dlpack(x) if torch.is_tensor(x) else x


def tensor(x):
    """Torch's view of a result."""
    if x.dtype == jnp.float8_e4m3fn:
        return torch.from_dlpack(lax.bitcast_convert_type(x, jnp.uint8)).view(torch.float8_e4m3fn)
    return torch.from_dlpack(x)


class Jit(Rotating):
    """What is written in place elsewhere is given and taken here: the old one is donated, the new one kept for the
    next turn."""
    calls = 1

    def __init__(self, case, sets):
        if case.graph not in FORMS:
            raise NoForm("no form of it here")
        self.form = FORMS[case.graph]
        self.inouts = [k for k, p in enumerate(case.signature.inputs) if p.inout]
        self.run = jax.jit(self.form, donate_argnums=self.inouts)
        self.arguments = [[jnp.array(array(v), copy=True) if k in self.inouts else array(v)
                           for k, v in enumerate(one.values())] for one in sets]
        super().__init__([functools.partial(self.step, a) for a in self.arguments])
        self.clock = gpu_turns.Host(self.all_done)
        start = time.perf_counter()
        try:
            self.call()
            self.wait()
        except Exception as e:  # any of the compiler's
            raise Absent(f"jax.jit failed: {str(e).splitlines()[0][:200]}") from e
        self.compile_s = time.perf_counter() - start
        self.turn = 0
        for k in self.inouts:
            self.arguments[0][k] = jnp.array(array(list(sets[0].values())[k]), copy=True)

    def step(self, arguments):
        got = self.run(*arguments)
        got = got if isinstance(got, tuple) else (got,)
        for k, new in zip(self.inouts, got):
            arguments[k] = new
        return got

    def wait(self):
        jax.block_until_ready(self.kept)

    def all_done(self):
        """The others' work too, on their queue."""
        self.wait()
        if torch.cuda.is_available():
            torch.cuda.synchronize()

    def results(self):
        self.wait()
        return [tensor(x) for x in super().results()]

    def settle(self, seconds):
        """Told what a call takes: short ones are put together, for dispatching each would show."""
        if seconds < SHORT and not self.inouts:
            together = jax.jit(lambda sets: [self.form(*one) for one in sets])
            sets = self.arguments[:MOST_TOGETHER]
            self.functions, self.kept, self.turn, self.calls = [lambda: together(sets)], [()], 0, len(sets)
            self.call()
            self.wait()

    def close(self):
        super().close()
        self.arguments = self.run = self.clock = None
