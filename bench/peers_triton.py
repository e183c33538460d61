"""Triton: a kernel written by hand for each case, as somebody would who knows the shapes: rows that fit stay
in registers, longer ones are read twice, column sums are split over the GPU and added up by a second kernel.
A form takes one set of inputs and gives the results; it writes an inout in place."""
import peers_triton_streams as streams
import torch
import triton
import triton.language as tl

FLAT = 2048          # elements of a program where only the number of elements counts
HELD = 65536         # the longest row that one program keeps
LONG = 4096          # elements of a longer one that it has at a time
PARTS = 528          # programs that share a reduction: four for each processor of an H100 or H200
LOWEST = tl.constexpr(-1e30)


def warps(block):
    return 4 if block <= 2048 else 8 if block <= 8192 else 16 if block <= 32768 else 32


def block_of(n):
    return max(16, triton.next_power_of_2(n))


# --- element by element ---

@triton.jit
def add_kernel(x, y, z, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(z + at, tl.load(x + at, at < n) + tl.load(y + at, at < n), at < n)


@triton.jit
def gelu_kernel(x, w, b, r, y, n, M, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok, column = at < n, at % M
    v = tl.load(x + at, ok).to(tl.float32) * tl.load(w + column).to(tl.float32) + tl.load(b + column).to(tl.float32)
    v = 0.5 * v * (1 + tl.erf(v * 0.7071067811865476))
    tl.store(y + at, v + tl.load(r + at, ok).to(tl.float32), ok)


@triton.jit
def swiglu_kernel(g, u, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(g + at, at < n).to(tl.float32)
    tl.store(y + at, v / (1 + tl.exp(-v)) * tl.load(u + at, at < n).to(tl.float32), at < n)


@triton.jit
def dropout_kernel(x, r, y, n, p, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, at < n).to(tl.float32) / (1 - p)
    kept = tl.where(tl.rand(seed, at) < p, 0.0, v)
    tl.store(y + at, kept + tl.load(r + at, at < n).to(tl.float32), at < n)


@triton.jit
def chain_kernel(x, y, u, v, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a, b = tl.load(x + at, at < n).to(tl.float32), tl.load(y + at, at < n).to(tl.float32)
    t = tl.maximum(a * b + a, 0.0)
    s = tl.abs(0.5 * t - b)
    q = a / tl.sqrt(s + 1)
    tl.store(u + at, q, at < n)
    tl.store(v + at, tl.minimum(q, t) * s - b, at < n)


@triton.jit
def adam_kernel(w, m, v, g, n, lr, c1, c2, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = at < n
    d = tl.load(g + at, ok)
    a = 0.9 * tl.load(m + at, ok) + 0.1 * d
    b = 0.999 * tl.load(v + at, ok) + 0.001 * d * d
    tl.store(m + at, a, ok)
    tl.store(v + at, b, ok)
    tl.store(w + at, tl.load(w + at, ok) - lr * (a / c1) / (tl.sqrt(b / c2) + 1e-8), ok)


@triton.jit
def transpose_kernel(x, r, y, N, M, ADD: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    j = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    v = tl.trans(tl.load(x + i[:, None] * M + j[None, :], (i < N)[:, None] & (j < M)[None, :]))
    out, ok = j[:, None] * N + i[None, :], (j < M)[:, None] & (i < N)[None, :]
    if ADD:
        v = v.to(tl.float32) + tl.load(r + out, ok).to(tl.float32)
    tl.store(y + out, v, ok)


# --- along rows ---

@triton.jit
def row_sum_kernel(x, s, M, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    tl.store(s + row, tl.sum(tl.load(x + row * M + at, at < M, other=0.0), 0))


@triton.jit
def argmax_kernel(x, a, M, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    v = tl.load(x + row * M + at, at < M, other=-float("inf")).to(tl.float32)
    tl.store(a + row, tl.argmax(v, 0, tie_break_left=True).to(tl.int64))


@triton.jit
def cumsum_kernel(x, s, M, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    tl.store(s + row * M + at, tl.cumsum(tl.load(x + row * M + at, at < M, other=0.0).to(tl.float32), 0), at < M)


@triton.jit
def then(f, g, next_f, next_g):
    """Steps of a linear recurrence, h to f h + g, and others behind them."""
    return f * next_f, g * next_f + next_g


@triton.jit
def row_recurrence_kernel(a, b, h, M, BLOCK: tl.constexpr):
    at = tl.program_id(0) * M + tl.arange(0, BLOCK)
    ok = tl.arange(0, BLOCK) < M
    steps = tl.associative_scan((tl.load(a + at, ok, other=1.0), tl.load(b + at, ok, other=0.0)), 0, then)
    tl.store(h + at, steps[1], ok)


@triton.jit
def column_recurrence_kernel(a, b, h, N, M, BN: tl.constexpr, BM: tl.constexpr):
    column, row = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, BN)
    before = tl.zeros((BM,), tl.float32)
    for first in range(0, N, BN):
        at = (first + row)[:, None] * M + column[None, :]
        ok = ((first + row) < N)[:, None] & (column < M)[None, :]
        f, g = tl.associative_scan((tl.load(a + at, ok, other=1.0), tl.load(b + at, ok, other=0.0)), 0, then)
        g += f * before[None, :]
        tl.store(h + at, g, ok)
        before = tl.sum(tl.where(row[:, None] == BN - 1, g, 0.0), 0)


@triton.jit
def part_steps_kernel(a, b, f, g, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    steps = tl.associative_scan((tl.load(a + at, at < n, other=1.0), tl.load(b + at, at < n, other=0.0)), 0, then)
    last = tl.arange(0, BLOCK) == BLOCK - 1
    tl.store(f + tl.program_id(0) + tl.zeros_like(at), steps[0], last)
    tl.store(g + tl.program_id(0) + tl.zeros_like(at), steps[1], last)


@triton.jit
def part_recurrence_kernel(a, b, ends, h, n, BLOCK: tl.constexpr):
    part = tl.program_id(0)
    at = part * BLOCK + tl.arange(0, BLOCK)
    f, g = tl.associative_scan((tl.load(a + at, at < n, other=1.0), tl.load(b + at, at < n, other=0.0)), 0, then)
    tl.store(h + at, g + f * tl.load(ends + part - 1, part > 0, other=0.0), at < n)


@triton.jit
def softmax_kernel(x, y, M, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    v = tl.load(x + row * M + at, at < M, other=-float("inf")).to(tl.float32)
    e = tl.exp(v - tl.max(v, 0))
    tl.store(y + row * M + at, e / tl.sum(e, 0), at < M)


@triton.jit
def largest_and_sum(x, M, BLOCK: tl.constexpr):
    """Of one row, in one reading: the largest, and the sum of exponentials of the distances to it."""
    m, s = tl.full([BLOCK], LOWEST, tl.float32), tl.zeros([BLOCK], tl.float32)
    for k in range(0, M, BLOCK):
        at = k + tl.arange(0, BLOCK)
        v = tl.load(x + at, at < M, other=LOWEST).to(tl.float32)
        new = tl.maximum(m, v)
        s = s * tl.exp(m - new) + tl.exp(v - new)
        m = new
    top = tl.max(m, 0)
    return top, tl.sum(s * tl.exp(m - top), 0)


@triton.jit
def softmax_long_kernel(x, y, M, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    top, total = largest_and_sum(x + row * M, M, BLOCK)
    for k in range(0, M, BLOCK):
        at = k + tl.arange(0, BLOCK)
        v = tl.load(x + row * M + at, at < M).to(tl.float32)
        tl.store(y + row * M + at, tl.exp(v - top) / total, at < M)


@triton.jit
def cross_entropy_kernel(z, y, loss, V, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    top, total = largest_and_sum(z + row * V, V, BLOCK)
    tl.store(loss + row, top + tl.log(total) - tl.load(z + row * V + tl.load(y + row)).to(tl.float32))


@triton.jit
def norm_kernel(x, r, g, b, s, y, D, LAYER: tl.constexpr, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    ok = at < D
    v = tl.load(x + row * D + at, ok, other=0.0).to(tl.float32) + tl.load(r + row * D + at, ok, other=0.0).to(tl.float32)
    v = v.to(s.dtype.element_ty)
    tl.store(s + row * D + at, v, ok)
    v = v.to(tl.float32)
    if LAYER:
        v = tl.where(ok, v - tl.sum(v, 0) / D, 0.0)
    v = v * tl.rsqrt(tl.sum(v * v, 0) / D + (1e-5 if LAYER else 1e-6)) * tl.load(g + at, ok, other=0.0).to(tl.float32)
    if LAYER:
        v += tl.load(b + at, ok, other=0.0).to(tl.float32)
    tl.store(y + row * D + at, v, ok)


@triton.jit
def norm_only_kernel(x, g, y, D, BLOCK: tl.constexpr):
    row, at = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCK)
    v = tl.load(x + row * D + at, at < D, other=0.0).to(tl.float32)
    v = v * tl.rsqrt(tl.sum(v * v, 0) / D + 1e-6) * tl.load(g + at, at < D, other=0.0).to(tl.float32)
    tl.store(y + row * D + at, v, at < D)


@triton.jit
def norm_backward_kernel(x, dy, g, mu, rs, dx, dg, db, N, D, STEP, BLOCK: tl.constexpr):
    """Rows pid, pid + STEP, …; their part of dg and db goes to row pid of those."""
    at, pid = tl.arange(0, BLOCK), tl.program_id(0)
    ok = at < D
    scale = tl.load(g + at, ok, other=0.0).to(tl.float32)
    sum_g, sum_b = tl.zeros([BLOCK], tl.float32), tl.zeros([BLOCK], tl.float32)
    for row in range(pid, N, STEP):
        k = tl.load(rs + row)
        d = tl.load(dy + row * D + at, ok, other=0.0).to(tl.float32)
        h = tl.where(ok, (tl.load(x + row * D + at, ok, other=0.0).to(tl.float32) - tl.load(mu + row)) * k, 0.0)
        w = d * scale
        tl.store(dx + row * D + at, k * (w - tl.sum(w, 0) / D - h * (tl.sum(w * h, 0) / D)), ok)
        sum_g += d * h
        sum_b += d
    tl.store(dg + pid * D + at, sum_g, ok)
    tl.store(db + pid * D + at, sum_b, ok)


@triton.jit
def quantise_kernel(x, q, s, K, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    v = tl.load(x + row * K + at, at < K, other=0.0).to(tl.float32)
    scale = tl.maximum(tl.max(tl.abs(v), 0), 1e-12) / 448
    tl.store(s + row, scale)
    tl.store(q + row * K + at, (v / scale).to(q.dtype.element_ty), at < K)


# --- along columns, and of everything ---

@triton.jit
def column_sum_kernel(x, s, N, M, ROWS, BN: tl.constexpr, BM: tl.constexpr):
    """Row program_id(1) of s gets the sums over so many rows of x."""
    j, part = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1)
    total = tl.zeros([BN, BM], tl.float32)
    for k in range(0, ROWS, BN):
        i = k + tl.arange(0, BN)
        ok = ((i < ROWS) & (part * ROWS + i < N))[:, None] & (j < M)[None, :]
        total += tl.load(x + (part * ROWS + i)[:, None] * M + j[None, :], ok, other=0.0).to(tl.float32)
    tl.store(s + part * M + j, tl.sum(total, 0), j < M)


@triton.jit
def full_sum_kernel(x, s, n, STEP, BLOCK: tl.constexpr):
    total = tl.zeros([BLOCK], tl.float32)
    for k in range(tl.program_id(0) * BLOCK, n, STEP):
        at = k + tl.arange(0, BLOCK)
        total += tl.load(x + at, at < n, other=0.0)
    tl.store(s + tl.program_id(0), tl.sum(total, 0))


@triton.jit
def part_cumsum_kernel(x, before, s, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, at < n, other=0.0)
    tl.store(s + at, tl.cumsum(v, 0) + tl.load(before + tl.program_id(0)), at < n)


@triton.jit
def part_sum_kernel(x, s, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(s + tl.program_id(0), tl.sum(tl.load(x + at, at < n, other=0.0), 0))


@triton.jit
def softmax_columns_kernel(x, y, N, M, BN: tl.constexpr, BM: tl.constexpr):
    j = tl.program_id(0) * BM + tl.arange(0, BM)
    m, s = tl.full([BN, BM], LOWEST, tl.float32), tl.zeros([BN, BM], tl.float32)
    for k in range(0, N, BN):
        i = k + tl.arange(0, BN)
        v = tl.load(x + i[:, None] * M + j[None, :], (i < N)[:, None] & (j < M)[None, :], other=LOWEST).to(tl.float32)
        new = tl.maximum(m, v)
        s = s * tl.exp(m - new) + tl.exp(v - new)
        m = new
    top = tl.max(m, 0)
    total = tl.sum(s * tl.exp(m - top[None, :]), 0)
    for k in range(0, N, BN):
        i = k + tl.arange(0, BN)
        ok = (i < N)[:, None] & (j < M)[None, :]
        v = tl.load(x + i[:, None] * M + j[None, :], ok).to(tl.float32)
        tl.store(y + i[:, None] * M + j[None, :], tl.exp(v - top[None, :]) / total[None, :], ok)


@triton.jit
def convolution_kernel(x, w, sc, sh, y, M, H, W, C, P, Q, O, K, STRIDE: tl.constexpr, TAPS: tl.constexpr, FINISH: tl.constexpr,
                       BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """A tile of y a program: rows are pixels, and the sum goes over window and channels as one."""
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    o = tl.program_id(1) * BN + tl.arange(0, BN)
    image, p, q = m // (P * Q), m // Q % P * STRIDE - TAPS // 2, m % Q * STRIDE - TAPS // 2
    sums = tl.zeros([BM, BN], tl.float32)
    for k0 in range(0, K, BK):
        k = k0 + tl.arange(0, BK)
        i, j = p[:, None] + k[None, :] // (C * TAPS), q[:, None] + k[None, :] // C % TAPS
        there = (i >= 0) & (i < H) & (j >= 0) & (j < W) & (k < K)[None, :] & (m < M)[:, None]
        a = tl.load(x + ((image[:, None].to(tl.int64) * H + i) * W + j) * C + k[None, :] % C, there, other=0.0)
        b = tl.load(w + o[None, :] * K + k[:, None], (k < K)[:, None] & (o < O)[None, :], other=0.0)
        sums = tl.dot(a, b, sums)
    if FINISH:
        sums = tl.maximum(sums * tl.load(sc + o, o < O)[None, :] + tl.load(sh + o, o < O)[None, :], 0.0)
    tl.store(y + m[:, None].to(tl.int64) * O + o[None, :], sums, (m < M)[:, None] & (o < O)[None, :])


# --- by number ---

@triton.jit
def embedding_kernel(table, ids, e, D, BLOCK: tl.constexpr):
    row, at = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCK)
    tl.store(e + row * D + at, tl.load(table + tl.load(ids + row) * D + at, at < D), at < D)


@triton.jit
def bag_kernel(table, ids, y, L, D, BL: tl.constexpr, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    total = tl.zeros([BL, BLOCK], tl.float32)
    for k in range(0, L, BL):
        l = k + tl.arange(0, BL)
        i = tl.load(ids + row * L + l, l < L, other=0)
        total += tl.load(table + i[:, None] * D + at[None, :], (l < L)[:, None] & (at < D)[None, :], other=0.0).to(tl.float32)
    tl.store(y + row * D + at, tl.sum(total, 0), at < D)


@triton.jit
def index_add_kernel(g, ids, dy, D, BLOCK: tl.constexpr):
    row, at = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCK)
    tl.atomic_add(g + tl.load(ids + row) * D + at, tl.load(dy + row * D + at, at < D), at < D, sem="relaxed")


@triton.jit
def csr_kernel(row, col, val, x, y, D, BLOCK: tl.constexpr):
    i, at = tl.program_id(0).to(tl.int64), tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    for e in range(tl.load(row + i), tl.load(row + i + 1)):
        total += tl.load(val + e) * tl.load(x + tl.load(col + e) * D + at, at < D, other=0.0)
    tl.store(y + i * D + at, total, at < D)


# --- products ---

@triton.jit
def weights_kernel(x, w, s, y, M, N, K, EACH: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """BN columns of y; EACH weights to a byte: those that are low and those that are high are products of their own."""
    n, m, k = tl.program_id(0) * BN + tl.arange(0, BN), tl.program_id(1) * BM + tl.arange(0, BM), tl.arange(0, BK)
    left, right = x + (m % M)[:, None] * K + k[None, :] * EACH, w + (n % N)[:, None].to(tl.int64) * (K // EACH) + k[None, :]
    sums = tl.zeros([BM, BN], tl.float32)
    for k0 in range(0, K // EACH, BK):
        ok = (k0 + k < K // EACH)[None, :]
        b, a = tl.load(right + k0, ok, other=0), tl.load(left + k0 * EACH, ok, other=0.0)
        if EACH == 2:
            low = (b << 4).to(tl.int8, bitcast=True) >> 4
            sums = tl.dot(a, tl.trans(low.to(a.dtype)), sums)
            a, b = tl.load(left + k0 * EACH + 1, ok, other=0.0), b.to(tl.int8, bitcast=True) >> 4
        sums = tl.dot(a, tl.trans(b.to(a.dtype)), sums)
    sums *= tl.load(s + n, n < N, other=0.0).to(tl.float32)[None, :]
    tl.store(y + m[:, None] * N + n[None, :], sums, (m < M)[:, None] & (n < N)[None, :])


@triton.jit
def product_kernel(x, w, v, b, r, y, M, N, K, xb, xm, xk, wb, wk, wn, GELU: tl.constexpr, GATED: tl.constexpr,
                   STRICT: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """A tile of y a program, eight rows of tiles at a time; matrix program_id(1) of a batch. GATED: v is the second
    right factor."""
    rows, columns = tl.cdiv(M, BM), tl.cdiv(N, BN)
    pid, batch = tl.program_id(0), tl.program_id(1).to(tl.int64)
    first = pid // (8 * columns) * 8
    high = min(rows - first, 8)
    m = (first + pid % (8 * columns) % high) * BM + tl.arange(0, BM)
    n = pid % (8 * columns) // high * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    left = x + batch * xb + (m % M)[:, None].to(tl.int64) * xm + k[None, :] * xk
    at = batch * wb + k[:, None] * wk + (n % N)[None, :].to(tl.int64) * wn
    sums, others = tl.zeros([BM, BN], tl.float32), tl.zeros([BM, BN], tl.float32)
    for k0 in range(0, K, BK):
        a = tl.load(left, (k0 + k < K)[None, :], other=0.0)
        ok = (k0 + k < K)[:, None]
        sums = tl.dot(a, tl.load(w + at, ok, other=0.0), sums, input_precision="ieee" if STRICT else "tf32")
        if GATED:
            others = tl.dot(a, tl.load(v + at, ok, other=0.0), others)
        left += BK * xk
        at += BK * wk
    out, ok = m[:, None].to(tl.int64) * N + n[None, :], (m < M)[:, None] & (n < N)[None, :]
    if GELU:
        sums += tl.load(b + n, n < N, other=0.0).to(tl.float32)[None, :]
        sums = 0.5 * sums * (1 + tl.erf(sums * 0.7071067811865476)) + tl.load(r + out, ok, other=0.0).to(tl.float32)
    if GATED:
        sums = sums / (1 + tl.exp(-sums)) * others
    tl.store(y + batch * M * N + out, sums, ok)


@triton.jit
def gram_kernel(x, z, y, by, N, M, D, RADIAL: tl.constexpr, BN: tl.constexpr, BM: tl.constexpr, BD: tl.constexpr):
    """A tile of y a program. Products are three of tf32, which together are nearly as exact as one of f32."""
    i, j, d = tl.program_id(0) * BN + tl.arange(0, BN), tl.program_id(1) * BM + tl.arange(0, BM), tl.arange(0, BD)
    sums, xx, zz = tl.zeros([BN, BM], tl.float32), tl.zeros([BN], tl.float32), tl.zeros([BM], tl.float32)
    for d0 in range(0, D, BD):
        a = tl.load(x + i[:, None] * D + d0 + d[None, :], (i < N)[:, None] & (d0 + d < D)[None, :], other=0.0)
        b = tl.load(z + j[:, None] * D + d0 + d[None, :], (j < M)[:, None] & (d0 + d < D)[None, :], other=0.0)
        sums = tl.dot(a, b.trans(), sums, input_precision="tf32x3")
        xx += tl.sum(a * a, 1)
        zz += tl.sum(b * b, 1)
    if RADIAL:
        sums = tl.exp(-by * (xx[:, None] + zz[None, :] - 2 * sums))
    else:
        sums += by
        sums = sums * sums * sums
    tl.store(y + i[:, None].to(tl.int64) * M + j[None, :], sums, (i < N)[:, None] & (j < M)[None, :])


def gram(x, z, by, RADIAL):
    y = x.new_empty(x.shape[0], z.shape[0])
    gram_kernel[triton.cdiv(x.shape[0], 128), triton.cdiv(z.shape[0], 128)](
        x, z, y, by, x.shape[0], z.shape[0], x.shape[1], RADIAL=RADIAL, BN=128, BM=128, BD=32, num_warps=8, num_stages=3)
    return y


# --- the roof ---

@triton.jit
def stream_kernel(a0, a1, a2, a3, a4, b0, b1, b2, b3, b4, n, R: tl.constexpr, W: tl.constexpr, BLOCK: tl.constexpr):
    """Reads R arrays and writes W. Where none is written, what has no effect would not be read either: so a number is
    looked for that is hardly there."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    ok = at < n
    v = at
    if R > 0:
        v = tl.load(a0 + at, ok)
    if R > 1:
        v ^= tl.load(a1 + at, ok)
    if R > 2:
        v ^= tl.load(a2 + at, ok)
    if R > 3:
        v ^= tl.load(a3 + at, ok)
    if R > 4:
        v ^= tl.load(a4 + at, ok)
    if W > 0:
        tl.store(b0 + at, v, ok)
    if W > 1:
        tl.store(b1 + at, v, ok)
    if W > 2:
        tl.store(b2 + at, v, ok)
    if W > 3:
        tl.store(b3 + at, v, ok)
    if W > 4:
        tl.store(b4 + at, v, ok)
    if W == 0:
        tl.store(a0 + at, v, ok & (v == -2147483647))


def stream(a, b, n, block, warps):
    """Streams n elements of 4 bytes of each array."""
    arrays = [*(a + 5 * (a + b))[:5], *(b + 5 * (a + b))[:5]]
    stream_kernel[(triton.cdiv(n, block),)](*arrays, n, R=len(a), W=len(b), BLOCK=block, num_warps=warps)


# --- the forms ---

def flat(n):
    return (triton.cdiv(n, FLAT),)


def add(x, y):
    z = torch.empty_like(x)
    add_kernel[flat(x.numel())](x, y, z, x.numel(), BLOCK=FLAT)
    return z


def gelu_residual(x, w, b, r):
    y = torch.empty_like(x)
    gelu_kernel[flat(x.numel())](x, w, b, r, y, x.numel(), x.shape[1], BLOCK=FLAT)
    return y


def swiglu(g, u):
    y = torch.empty_like(g)
    swiglu_kernel[flat(g.numel())](g, u, y, g.numel(), BLOCK=FLAT)
    return y


def dropout_residual(x, r, p, seed):
    y = torch.empty_like(x)
    dropout_kernel[flat(x.numel())](x, r, y, x.numel(), p, seed, BLOCK=FLAT)
    return y


def chain12(x, y):
    u, v = torch.empty_like(x), torch.empty_like(x)
    chain_kernel[flat(x.numel())](x, y, u, v, x.numel(), BLOCK=FLAT)
    return u, v


def adam8(*a):
    lr, t = a[-2:]
    for w, m, v, g in zip(*(a[k:-2:4] for k in range(4))):
        adam_kernel[flat(w.numel())](w, m, v, g, w.numel(), lr, 1 - 0.9 ** t, 1 - 0.999 ** t, BLOCK=FLAT)
    return ()


def transpose(x, r=None):
    n, m = x.shape
    y = x.new_empty(m, n)
    transpose_kernel[triton.cdiv(n, 64), triton.cdiv(m, 64)](x, x if r is None else r, y, n, m, ADD=r is not None, BLOCK=64)
    return y


def by_row(kernel, x, *out):
    block = block_of(x.shape[1])
    kernel[(x.shape[0],)](x, *out, x.shape[1], BLOCK=block, num_warps=warps(block))
    return out if len(out) > 1 else out[0]


def row_recurrence(a, b):
    return by_row(row_recurrence_kernel, a, b, torch.empty_like(b))[1]


def column_recurrence(a, b):
    h, (n, m) = torch.empty_like(b), b.shape
    column_recurrence_kernel[(triton.cdiv(m, 32),)](a, b, h, n, m, BN=128, BM=32, num_warps=8)
    return h


def full_recurrence(a, b):
    """What parts make of 0, what that is at their ends, then each from there on."""
    h, n = torch.empty_like(b), triton.cdiv(b.numel(), LONG)
    f, g = b.new_empty(1, n), b.new_empty(1, n)
    part_steps_kernel[(n,)](a, b, f, g, b.numel(), BLOCK=LONG, num_warps=8)
    part_recurrence_kernel[(n,)](a, b, row_recurrence(f, g), h, b.numel(), BLOCK=LONG, num_warps=8)
    return h


def softmax_rows(x):
    if x.shape[1] <= HELD:
        return by_row(softmax_kernel, x, torch.empty_like(x))
    y = torch.empty_like(x)
    softmax_long_kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=LONG, num_warps=8)
    return y


def cross_entropy_rows(z, y):
    loss = z.new_empty(z.shape[0], dtype=torch.float32)
    cross_entropy_kernel[(z.shape[0],)](z, y, loss, z.shape[1], BLOCK=LONG, num_warps=8)
    return loss


def norm(x, r, g, b=None):
    s, y = torch.empty_like(x), torch.empty_like(x)
    block = block_of(x.shape[1])
    norm_kernel[(x.shape[0],)](x, r, g, g if b is None else b, s, y, x.shape[1], LAYER=b is not None, BLOCK=block,
                               num_warps=warps(block))
    return s, y


def layer_norm_backward(x, dy, g, mu, rs):
    n, d = x.shape
    dx, parts, block = torch.empty_like(x), min(n, PARTS), block_of(d)
    dg, db = (x.new_empty(parts, d, dtype=torch.float32) for _ in range(2))
    norm_backward_kernel[(parts,)](x, dy, g, mu, rs, dx, dg, db, n, d, parts, BLOCK=block, num_warps=warps(block))
    return dx, columns(dg, torch.empty_like(g), parts), columns(db, torch.empty_like(g), parts)


def columns(x, s, rows):
    """Sums of so many rows at a time into the rows of s."""
    n, m = x.shape
    column_sum_kernel[triton.cdiv(m, 128), triton.cdiv(n, rows)](x, s, n, m, rows, BN=16, BM=128)
    return s


def column_sum(x):
    n, m = x.shape
    rows = max(16, triton.cdiv(n * triton.cdiv(m, 128), 2 * PARTS))
    part = x.new_empty(triton.cdiv(n, rows), m)
    return columns(columns(x, part, rows), x.new_empty(m), part.shape[0])


def full_sum(x):
    part, s = x.new_empty(2 * PARTS), x.new_empty(())
    full_sum_kernel[(2 * PARTS,)](x, part, x.numel(), 2 * PARTS * LONG, BLOCK=LONG, num_warps=8)
    full_sum_kernel[(1,)](part, s, part.numel(), LONG, BLOCK=LONG)
    return s


def full_cumsum(x):
    """Sums of parts, their prefix sums, then those of each part from there on."""
    s, n = torch.empty_like(x), triton.cdiv(x.numel(), LONG)
    part = x.new_empty(n)
    part_sum_kernel[(n,)](x, part, x.numel(), BLOCK=LONG)
    before = torch.nn.functional.pad(part.cumsum(0)[:-1], (1, 0))
    part_cumsum_kernel[(n,)](x, before, s, x.numel(), BLOCK=LONG)
    return s


def softmax_columns(x):
    y = torch.empty_like(x)
    softmax_columns_kernel[(triton.cdiv(x.shape[1], 64),)](x, y, *x.shape, BN=64, BM=64, num_warps=8)
    return y


def convolution(x, w, sc=None, sh=None, stride=1):
    (N, H, W, C), (O, R, S, _) = x.shape, w.shape
    y = x.new_empty(N, H // stride, W // stride, O)
    M, BN = y.numel() // O, 128 if O >= 128 else 64
    convolution_kernel[(triton.cdiv(M, 128), triton.cdiv(O, BN))](
        x, w, sc, sh, y, M, H, W, C, y.shape[1], y.shape[2], O, R * S * C, STRIDE=stride, TAPS=R, FINISH=sc is not None,
        BM=128, BN=BN, BK=64, num_warps=8 if BN == 128 else 4, num_stages=3)
    return y


def embedding(table, ids):
    e = table.new_empty(ids.shape[0], table.shape[1])
    embedding_kernel[(ids.shape[0],)](table, ids, e, table.shape[1], BLOCK=block_of(table.shape[1]))
    return e


def embedding_bag(table, ids):
    y = table.new_empty(ids.shape[0], table.shape[1])
    bag_kernel[(ids.shape[0],)](table, ids, y, ids.shape[1], table.shape[1], BL=16, BLOCK=block_of(table.shape[1]))
    return y


def index_add(g, ids, dy):
    index_add_kernel[(ids.shape[0],)](g, ids, dy, g.shape[1], BLOCK=block_of(g.shape[1]), num_warps=8)
    return ()


def csr_matmul(row, col, val, x):
    y = x.new_empty(row.shape[0] - 1, x.shape[1])
    csr_kernel[(y.shape[0],)](row, col, val, x, y, x.shape[1], BLOCK=block_of(x.shape[1]), num_warps=1)
    return y


def product(x, w, v=None, b=None, r=None):
    """Of the last two axes; a factor that lies transposed is a view."""
    x3, w3 = (t if t.dim() == 3 else t[None] for t in (x, w))
    (many, m, k), n, strict = x3.shape, w3.shape[2], x.dtype == torch.float32
    y = x.new_empty(*x.shape[:-1], n)
    bm, bn, bk = (64, 64, 32) if strict else (128, 128, 64) if v is not None or n <= 128 else (128, 256, 64)
    product_kernel[triton.cdiv(m, bm) * triton.cdiv(n, bn), many](
        x, w, w if v is None else v, w if b is None else b, w if r is None else r, y, m, n, k, *x3.stride(), *w3.stride(),
        GELU=b is not None, GATED=v is not None, STRICT=strict, BM=bm, BN=bn, BK=bk, num_warps=4 if strict else 8,
        num_stages=3)
    return y


def weights(x, w, s):
    y = x.new_empty(x.shape[0], w.shape[0])
    weights_kernel[(triton.cdiv(w.shape[0], 64), triton.cdiv(x.shape[0], 16))](
        x, w, s, y, *y.shape, x.shape[1], EACH=x.shape[1] // w.shape[1], BM=16, BN=64, BK=128, num_warps=4, num_stages=4)
    return y


def norm_product(x, g, w):
    h = torch.empty_like(x)
    norm_only_kernel[(x.shape[0],)](x, g, h, x.shape[1], BLOCK=block_of(x.shape[1]), num_warps=warps(x.shape[1]))
    return product(h, w)


FORMS = {
    "add_f32": add,
    "add_f64": add,
    "gelu_residual": gelu_residual,
    "swiglu": swiglu,
    "dropout_residual": dropout_residual,
    "chain12": chain12,
    "transpose": transpose,
    "transpose_add": transpose,
    "row_sum": lambda x: by_row(row_sum_kernel, x, x.new_empty(x.shape[0])),
    "column_sum": column_sum,
    "full_sum": full_sum,
    "full_cumsum": full_cumsum,
    "row_argmax": lambda x: by_row(argmax_kernel, x, x.new_empty(x.shape[0], dtype=torch.int64)),
    "row_cumsum": lambda x: by_row(cumsum_kernel, x, torch.empty_like(x)),
    "row_cumsum_bf16": lambda x: by_row(cumsum_kernel, x, torch.empty_like(x)),
    "row_recurrence": row_recurrence,
    "column_recurrence": column_recurrence,
    "full_recurrence": full_recurrence,
    "softmax_rows": softmax_rows,
    "softmax_columns": softmax_columns,
    "cross_entropy_rows": cross_entropy_rows,
    "layer_norm_residual": norm,
    "rms_norm_residual": norm,
    "layer_norm_backward": layer_norm_backward,
    "quantise_rows": lambda x: by_row(quantise_kernel, x, torch.empty_like(x, dtype=torch.float8_e4m3fn),
                                      x.new_empty(x.shape[0], dtype=torch.float32)),
    "adam8": adam8,
    "embedding": embedding,
    "embedding_bag": embedding_bag,
    "index_add": index_add,
    "index_add_bf16": index_add,
    "csr_matmul": csr_matmul,
    "product": product,
    "product_nt": lambda x, w: product(x, w.t()),
    "weights_i8": weights,
    "weights_i4": weights,
    "product_tn": lambda x, w: product(x.t(), w),
    "product_tt": lambda x, w: product(x.t(), w.t()),
    "batch": product,
    "batch_nt": lambda x, w: product(x, w.transpose(1, 2)),
    "product_f32": product,
    "conv3x3": convolution,
    "conv1x1": lambda x, w: convolution(x, w[:, None, None]),
    "conv7x7s2": lambda x, w: convolution(x, w, stride=2),
    "conv3x3_bn_relu": convolution,
    "product_gelu": lambda x, w, b, r: product(x, w, b=b, r=r),
    "gated": lambda x, wg, wu: product(x, wg, wu),
    "norm_product": norm_product,
    "attention": streams.attention,
    "attention_causal": lambda q, k, v: streams.attention(q, k, v, CAUSAL=True),
    "attention_grouped": streams.attention,
    "attention_window": lambda q, k, v, W: streams.attention(q, k, v, W=W, CAUSAL=True, WINDOW=True),
    "attention_document": lambda q, k, v, doc: streams.attention(q, k, v, doc, CAUSAL=True, DOCUMENT=True),
    "attention_softcap": lambda q, k, v: streams.attention(q, k, v, SOFTCAP=True),
    "attention_alibi": lambda q, k, v, slope: streams.attention(q, k, v, slope, CAUSAL=True, ALIBI=True),
    "attention_bias": lambda q, k, v, bias: streams.attention(q, k, v, bias, BIAS=True),
    "attention_decode": streams.attention_decode,
    "projected_cross_entropy": streams.projected_cross_entropy,
    "linear_attention": streams.linear_attention,
    "rbf_vector": streams.rbf_vector,
    "lj_forces": streams.lj_forces,
    "rbf_gram": lambda x, z, gamma: gram(x, z, gamma, RADIAL=True),
    "polynomial_gram": lambda x, z, c: gram(x, z, c, RADIAL=False),
}


def version():
    return f"Triton {triton.__version__}, by hand"
