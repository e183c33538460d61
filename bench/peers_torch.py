"""torch, eager and compiled. Each case is written the way that suits torch best: its own fused function
where it has one, and for sums over pairs the form that torch.compile turns into one kernel. A form gives
the results; what it writes in place it doesn't give."""
import logging
import re
import time

import numpy as np
import torch
import torch.nn.functional as F
from contender import Absent, Function, NoForm
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch._higher_order_ops.associative_scan import associative_scan
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

logging.getLogger("torch.utils.cpp_extension").setLevel(logging.ERROR)  # that there is no CUDA is known


def chain12(x, y):
    t = torch.relu(x * y + x)
    s = torch.abs(0.5 * t - y)
    u = x / torch.sqrt(s + 1)
    return u, torch.minimum(u, t) * s - y


def layer_norm_residual(x, r, g, b):
    s = x + r
    return s, F.layer_norm(s, s.shape[-1:], g, b, 1e-5)


def rms_norm_residual(x, r, g):
    s = x + r
    return s, F.rms_norm(s, s.shape[-1:], g, 1e-6)


def then(first, second):
    """Steps of a linear recurrence, h to f h + g, and others behind them."""
    return first[0] * second[0], first[1] * second[0] + second[1]


def recurrence(dim):
    return lambda a, b: associative_scan(then, (a, b), dim)[1]


def recurrence_eager(dim):
    """In steps that double."""
    def run(a, b):
        n, steps = b.shape[dim], 1
        while steps < n:
            late = then([x.narrow(dim, 0, n - steps) for x in (a, b)], [x.narrow(dim, steps, n - steps) for x in (a, b)])
            a, b = (torch.cat([x.narrow(dim, 0, steps), y], dim) for x, y in zip((a, b), late))
            steps *= 2
        return b
    return run


def attention(causal):
    def run(q, k, v):
        return F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=causal)[0]
    return run


def fused_attention(**how):
    """torch's own: of the libraries behind it that offer it, cuDNN first."""
    def run(q, k, v, *_):
        with sdpa_kernel([SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION], set_priority=True):
            return F.scaled_dot_product_attention(q, k, v, enable_gqa=q.shape[1] != k.shape[1], **how)
    return run


def window_attention(q, k, v, width):
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    return torch.ops.aten._flash_attention_forward(q, k, v, None, None, q.shape[1], k.shape[1], 0.0, True, False,
                                                   window_size_left=width - 1, window_size_right=0)[0].transpose(1, 2)


def flexible_attention(score=None, mask=None):
    """FlexAttention. score and mask get what the graph has besides q, k, v, and give its functions; a mask's blocks are
    found once, as for all layers of a model."""
    compiled, blocks = {}, {}

    @torch.compiler.disable(recursive=False)
    def run(q, k, v, *more):
        key = (*q.shape, *(id(m) if torch.is_tensor(m) else m for m in more))
        if mask and key not in blocks:
            blocks[key] = create_block_mask(mask(*more), None, None, q.shape[2], k.shape[2], device=q.device.type)
        if not compiled:
            compiled["f"] = torch.compile(flex_attention, dynamic=False)
        return compiled["f"](q, k, v, score_mod=score(*more) if score else None, block_mask=blocks.get(key),
                             enable_gqa=q.shape[1] != k.shape[1])
    return run


def is_before(b, h, i, j):
    return i >= j


def softcap_score():
    return lambda s, b, h, i, j: 30 * torch.tanh(s / 30)


def alibi_score(slope):
    return lambda s, b, h, i, j: s + slope[h] * (j - i)


def bias_score(bias):
    return lambda s, b, h, i, j: s + bias[h, i, j]


def window_mask(width):
    return lambda b, h, i, j: (i >= j) & (i - j < width)


def document_mask(doc):
    return lambda b, h, i, j: (i >= j) & (j >= doc[i])


def attention_decode(q, k, v):
    return fused_attention()(q[:, :, None], k, v)[:, :, 0]


def projected_cross_entropy(x, w, y):
    return F.cross_entropy((x @ w.t()).float(), y, reduction="none")


def linear_attention(q, k, v):
    """In chunks of 64 rows, each on top of the products of those before."""
    rows = q.shape[2]
    q, k, v = (F.pad(x, (0, 0, 0, -rows % 64)).unflatten(2, (-1, 64)) for x in (q, k, v))
    own = (q @ k.transpose(-1, -2)).tril() @ v
    sums = (k.transpose(-1, -2) @ v).float().cumsum(2)
    before = torch.cat([torch.zeros_like(sums[:, :, :1]), sums[:, :, :-1]], 2)
    return (own.float() + q.float() @ before).to(q.dtype).flatten(2, 3)[:, :, :rows]


def squared_distance(x, z):
    """By component, so that no axis of three is left to reduce over."""
    return sum((x[:, None, d] - z[None, :, d]) ** 2 for d in range(x.shape[1]))


def rbf_vector(x, z, a, gamma):
    return (torch.exp(-gamma * squared_distance(x, z)) * a).sum(1)


def rbf_vector_eager(x, z, a, gamma):
    """By a matrix product: an eager torch is best at that."""
    d = torch.addmm((x * x).sum(1)[:, None] + (z * z).sum(1), x, z.T, alpha=-2)
    return d.mul_(-gamma).exp_() @ a


def weights_i8(x, w, s):
    return (x @ w.to(x.dtype).t()) * s


def weights_i4(x, w, s):
    """Two to a byte, the first one low."""
    return weights_i8(x, torch.stack((w << 4, w), -1).view(torch.int8).flatten(1) >> 4, s)


def rbf_gram(x, z, gamma):
    """By a matrix product, which is what torch is best at."""
    return torch.exp(-gamma * ((x * x).sum(1)[:, None] + (z * z).sum(1) - 2 * (x @ z.t())))


def rbf_gram_eager(x, z, gamma):
    d = torch.addmm((x * x).sum(1)[:, None] + (z * z).sum(1), x, z.t(), alpha=-2)
    return d.mul_(-gamma).exp_()


def polynomial_gram_eager(x, z, c):
    y = (x @ z.t()).add_(c)
    return y * y * y


def lj_forces(x):
    i = torch.arange(x.shape[0], device=x.device)
    d = [x[:, None, c] - x[None, :, c] for c in range(x.shape[1])]
    r2 = torch.where(i[:, None] == i, torch.inf, sum(e * e for e in d))
    r4 = (1 / r2) ** 4
    w = 24 * (2 * r4 * (1 / r2) ** 3 - r4)
    return torch.stack([(w * e).sum(1) for e in d], 1)


def swiglu(g, u):
    return F.silu(g) * u


def dropout_residual(x, r, p, seed):
    return F.dropout(x, p) + r


def quantise_rows(x):
    s = x.abs().amax(1).float().clamp(min=1e-12) / 448
    return (x / s[:, None]).to(torch.float8_e4m3fn), s


def layer_norm_backward(x, dy, g, mu, rs):
    rs = rs[:, None]
    h, w = (x - mu[:, None]) * rs, dy.float() * g
    dx = rs * (w - w.mean(1, keepdim=True) - h * (w * h).mean(1, keepdim=True))
    return dx.to(x.dtype), (dy * h).sum(0).to(g.dtype), dy.sum(0)


def layer_norm_backward_eager(x, dy, g, mu, rs):
    return torch.ops.aten.native_layer_norm_backward(dy, x, x.shape[1:], mu[:, None], rs[:, None], g, g, [True] * 3)


def adam_parts(a):
    """Parameters, the two moments and gradients of an argument list w0, m0, v0, g0, w1 …, lr, t."""
    return [list(a[k:-2:4]) for k in range(4)]


def adam8(*a):
    w, m, v, g = adam_parts(a)
    lr, t = a[-2:]
    torch._foreach_lerp_(m, g, 0.1)
    torch._foreach_mul_(v, 0.999)
    torch._foreach_addcmul_(v, g, g, 0.001)
    d = torch._foreach_div(v, 1 - 0.999 ** t)
    torch._foreach_sqrt_(d)
    torch._foreach_add_(d, 1e-8)
    torch._foreach_addcdiv_(w, m, d, -lr / (1 - 0.9 ** t))
    return ()


def adam8_eager(*a):
    w, m, v, g = adam_parts(a)
    torch._fused_adam_(w, g, m, v, [], [torch.full((), a[-1], device=w[0].device)] * len(w), lr=a[-2], beta1=0.9,
                       beta2=0.999, weight_decay=0, eps=1e-8, amsgrad=False, maximize=False)
    return ()


def csr_matmul(row, col, val, x):
    """By a product for every entry, added up by rows: there is no sparse tensor to compile."""
    at = torch.searchsorted(row, torch.arange(col.shape[0], device=row.device), right=True) - 1
    return x.new_zeros(row.shape[0] - 1, x.shape[1]).index_add(0, at, val[:, None] * x[col])


def csr_matmul_eager(row, col, val, x):
    return torch.sparse_csr_tensor(row, col, val, (row.shape[0] - 1, x.shape[0])) @ x


def norm_product(x, g, w):
    return F.rms_norm(x, x.shape[-1:], g, 1e-6) @ w


def convolution(stride=1, groups=1):
    """With channels last in memory, which for torch they are not."""
    def run(x, w):
        x, w = x.permute(0, 3, 1, 2), w.permute(0, 3, 1, 2)
        return F.conv2d(x, w, stride=stride, padding=w.shape[2] // 2, groups=groups).permute(0, 2, 3, 1)
    return run


def in_place(f):
    """For a form that writes an inout and has no other result."""
    def run(*a):
        f(*a)
        return ()
    return run


FORMS = {
    "triad": lambda x, y, s: torch.add(x, y, alpha=s),
    "chain12": chain12,
    "gelu_residual": lambda x, w, b, r: F.gelu(x * w + b) + r,
    "softmax_rows": lambda x: torch.softmax(x, -1),
    "log_softmax_rows": lambda x: torch.log_softmax(x, -1),
    "cross_entropy_rows": lambda z, y: F.cross_entropy(z, y, reduction="none"),
    "layer_norm_residual": layer_norm_residual,
    "rms_norm_residual": rms_norm_residual,
    "row_sum": lambda x: x.sum(1),
    "column_sum": lambda x: x.sum(0),
    "full_sum": lambda x: x.sum(),
    "row_argmax": lambda x: x.argmax(1),
    "row_cumsum": lambda x: x.cumsum(1),
    "transpose": lambda x: x.t().contiguous(),
    "embedding": lambda table, ids: F.embedding(ids, table),
    "sgemm": torch.matmul,
    "sgemm_gelu": lambda x, w, b, r: F.gelu(torch.addmm(b, x, w)) + r,
    "bf16_product": torch.matmul,
    "attention_f32": attention(False),
    "attention_f32_causal": attention(True),
    "attention_bf16": attention(False),
    "attention_bf16_causal": attention(True),
    "rbf_vector": rbf_vector,
    "lj_forces": lj_forces,
    "rbf_gram": rbf_gram,
    "polynomial_gram": lambda x, z, c: (x @ z.t() + c) ** 3,
    "add_f32": torch.add,
    "add_f64": torch.add,
    "swiglu": swiglu,
    "dropout_residual": dropout_residual,
    "transpose_add": lambda x, r: x.t() + r,
    "row_cumsum_bf16": lambda x: x.cumsum(1),
    "full_cumsum": lambda x: x.cumsum(0),
    "row_recurrence": recurrence(1),
    "column_recurrence": recurrence(0),
    "full_recurrence": recurrence(0),
    "softmax_columns": lambda x: torch.softmax(x, 0),
    "layer_norm_backward": layer_norm_backward,
    "quantise_rows": quantise_rows,
    "adam8": adam8,
    "embedding_bag": lambda table, ids: table[ids].sum(1),
    "index_add": in_place(lambda g, ids, dy: g.index_add_(0, ids, dy)),
    "index_add_bf16": in_place(lambda g, ids, dy: g.index_add_(0, ids, dy)),
    "csr_matmul": csr_matmul,
    "product": torch.matmul,
    "product_nt": lambda x, w: x @ w.t(),
    "weights_i8": weights_i8,
    "weights_i4": weights_i4,
    "product_tn": lambda x, w: x.t() @ w,
    "product_tt": lambda x, w: x.t() @ w.t(),
    "batch": torch.bmm,
    "batch_nt": lambda x, w: torch.bmm(x, w.transpose(1, 2)),
    "product_f32": torch.matmul,
    "product_gelu": lambda x, w, b, r: F.gelu(torch.addmm(b, x, w)) + r,
    "gated": lambda x, wg, wu: F.silu(x @ wg) * (x @ wu),
    "norm_product": norm_product,
    "conv3x3": convolution(),
    "conv1x1": lambda x, w: convolution()(x, w[:, None, None]),
    "conv7x7s2": convolution(stride=2),
    "conv3x3_bn_relu": lambda x, w, sc, sh: F.relu(convolution()(x, w) * sc + sh).to(x.dtype),
    "attention": flexible_attention(),
    "attention_causal": flexible_attention(mask=lambda: is_before),
    "attention_grouped": flexible_attention(),
    "attention_window": flexible_attention(mask=window_mask),
    "attention_document": flexible_attention(mask=document_mask),
    "attention_softcap": flexible_attention(score=softcap_score),
    "attention_alibi": flexible_attention(score=alibi_score, mask=lambda slope: is_before),
    "attention_bias": flexible_attention(score=bias_score),
    "attention_decode": attention_decode,
    "projected_cross_entropy": projected_cross_entropy,
    "linear_attention": linear_attention,
}
EAGER = {
    "attention": fused_attention(),
    "attention_causal": fused_attention(is_causal=True),
    "attention_grouped": fused_attention(),
    "attention_window": window_attention,
    "rbf_vector": rbf_vector_eager,
    "rbf_gram": rbf_gram_eager,
    "polynomial_gram": polynomial_gram_eager,
    "row_recurrence": recurrence_eager(1),
    "column_recurrence": recurrence_eager(0),
    "full_recurrence": recurrence_eager(0),
    "layer_norm_backward": layer_norm_backward_eager,
    "adam8": adam8_eager,
    "embedding_bag": lambda table, ids: F.embedding_bag(ids, table, mode="sum"),
    "csr_matmul": csr_matmul_eager,
}


def tensor(x):
    """Of the same memory; a scalar is a number."""
    if np.ndim(x) == 0:
        return float(x)
    t = torch.from_numpy(x)
    return t.view(torch.bfloat16) if x.dtype == np.uint16 else t


def array(t):
    t = t.detach()
    return (t.view(torch.uint16) if t.dtype == torch.bfloat16 else t).numpy()


def version():
    dnn = re.search(r"MKL-DNN v([\d.]+)", torch.__config__.show())
    mkl = re.search(r"Kernel Library Version ([\d.]+)", torch.__config__.show())
    return f"torch {torch.__version__} (oneDNN {dnn and dnn[1]}, MKL {mkl and mkl[1]})"


def threads(n):
    torch.set_num_threads(n)


def form(case, forms):
    if case.graph not in forms:
        raise NoForm("no form of it here")
    return forms[case.graph]


def eager(case, inputs):
    f = form(case, {**FORMS, **EAGER})
    t = [tensor(x) for x in inputs.values()]
    return Function(torch.inference_mode()(lambda: f(*t)), array)


def compiled(case, inputs):
    f = form(case, FORMS)
    t = [tensor(x) for x in inputs.values()]
    torch._dynamo.reset()
    g = torch.compile(f, dynamic=False)
    run = torch.inference_mode()(lambda: g(*t))
    start = time.perf_counter()
    try:
        run()  # compiling is part of the first call
    except Exception as e:
        raise Absent(f"torch.compile failed: {str(e).splitlines()[0][:200]}") from e
    return Function(run, array, time.perf_counter() - start)
