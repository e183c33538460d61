"""Triton: attention and its relatives by hand (peers_triton.py), as its tutorials have them: a block of rows stays, keys
and values go by, the sums so far are moved to each new maximum."""
import torch
import triton
import triton.language as tl

LOG2E = tl.constexpr(1.4426950408889634)
NOTHING = tl.constexpr(-1e30)


def block_of(n):
    return max(16, triton.next_power_of_2(n))


@triton.jit
def attention_kernel(q, k, v, o, extra, scale, H, G, T, S, D, W, CAUSAL: tl.constexpr, WINDOW: tl.constexpr,
                     DOCUMENT: tl.constexpr, SOFTCAP: tl.constexpr, ALIBI: tl.constexpr, BIAS: tl.constexpr, BM: tl.constexpr,
                     BN: tl.constexpr, BD: tl.constexpr):
    """BM rows of one head a program. extra: the first row of each row's document, the heads' slopes, or a bias."""
    head, batch = tl.program_id(1) % H, tl.program_id(1) // H
    i, d = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, BD)
    own = tl.program_id(1).to(tl.int64) * T * D
    theirs = (batch * G + head // (H // G)).to(tl.int64) * S * D
    ok = (i < T)[:, None] & (d < D)[None, :]
    rows = tl.load(q + own + i[:, None] * D + d[None, :], ok, other=0.0)
    least, most = tl.full([BM], NOTHING, tl.float32), tl.zeros([BM], tl.float32)
    sums = tl.zeros([BM, BD], tl.float32)
    begin, end = 0, S
    if CAUSAL:
        end = min(S, (tl.program_id(0) + 1) * BM)
    if WINDOW:
        begin = max(0, tl.program_id(0) * BM - W + 1) // BN * BN
    if DOCUMENT:
        doc = tl.load(extra + i, i < T, other=0)
        begin = tl.min(tl.where(i < T, doc, S), 0) // BN * BN
    for j0 in range(begin, end, BN):
        j = j0 + tl.arange(0, BN)
        inside = (j < S)[:, None] & (d < D)[None, :]
        keys = tl.load(k + theirs + j[:, None] * D + d[None, :], inside, other=0.0)
        s = tl.dot(rows, keys.trans()) * scale
        shown = (j < S)[None, :]
        if CAUSAL:
            shown = shown & (j[None, :] <= i[:, None])
        if WINDOW:
            shown = shown & (i[:, None] - j[None, :] < W)
        if DOCUMENT:
            shown = shown & (j[None, :] >= doc[:, None])
        if SOFTCAP:
            e = tl.exp(-2.0 * tl.abs(s / 30))
            s = 30 * tl.where(s < 0, -1.0, 1.0) * (1 - e) / (1 + e)
        if ALIBI:
            s += tl.load(extra + head) * (j[None, :] - i[:, None])
        if BIAS:
            at = head.to(tl.int64) * T * S + i[:, None] * S + j[None, :]
            s += tl.load(extra + at, (i < T)[:, None] & (j < S)[None, :], other=0.0).to(tl.float32)
        s = tl.where(shown, s * LOG2E, NOTHING)
        top = tl.maximum(least, tl.max(s, 1))
        p = tl.where(shown, tl.exp2(s - top[:, None]), 0.0)
        moved = tl.exp2(least - top)
        most = most * moved + tl.sum(p, 1)
        values = tl.load(v + theirs + j[:, None] * D + d[None, :], inside, other=0.0)
        sums = tl.dot(p.to(values.dtype), values, sums * moved[:, None])
        least = top
    tl.store(o + own + i[:, None] * D + d[None, :], sums / most[:, None], ok)


def attention(q, k, v, extra=None, W=0, **how):
    (B, H, T, D), (_, G, S, _) = q.shape, k.shape
    o, ways = torch.empty_like(q), ("CAUSAL", "WINDOW", "DOCUMENT", "SOFTCAP", "ALIBI", "BIAS")
    BM, BN = (128, 64) if D <= 128 else (64, 32)
    attention_kernel[(triton.cdiv(T, BM), B * H)](
        q, k, v, o, q if extra is None else extra, D ** -0.5, H, G, T, S, D, W, **{w: bool(how.get(w)) for w in ways}, BM=BM, BN=BN,
        BD=block_of(D), num_warps=8 if D > 64 else 4, num_stages=3 if D <= 128 else 2)
    return o


@triton.jit
def decode_kernel(q, k, v, part, least, most, scale, H, G, S, D, SPLITS, R: tl.constexpr, BR: tl.constexpr, BN: tl.constexpr,
                  BD: tl.constexpr):
    """The R rows that share keys, by one of SPLITS parts of these."""
    group, split = tl.program_id(0), tl.program_id(1)
    r, d = tl.arange(0, BR), tl.arange(0, BD)
    at = group.to(tl.int64) * R * D + r[:, None] * D + d[None, :]
    ok = (r < R)[:, None] & (d < D)[None, :]
    rows = tl.load(q + at, ok, other=0.0)
    theirs, size = group.to(tl.int64) * S * D, tl.cdiv(tl.cdiv(S, SPLITS), BN) * BN
    top, sum_, sums = tl.full([BR], NOTHING, tl.float32), tl.zeros([BR], tl.float32), tl.zeros([BR, BD], tl.float32)
    for j0 in range(split * size, min(S, (split + 1) * size), BN):
        j = j0 + tl.arange(0, BN)
        inside = (j < S)[:, None] & (d < D)[None, :]
        keys = tl.load(k + theirs + j[:, None] * D + d[None, :], inside, other=0.0)
        s = tl.where((j < S)[None, :], tl.dot(rows, keys.trans()) * scale * LOG2E, NOTHING)
        new = tl.maximum(top, tl.max(s, 1))
        p, moved = tl.exp2(s - new[:, None]), tl.exp2(top - new)
        sum_ = sum_ * moved + tl.sum(p, 1)
        values = tl.load(v + theirs + j[:, None] * D + d[None, :], inside, other=0.0)
        sums = tl.dot(p.to(values.dtype), values, sums * moved[:, None])
        top = new
    one = (group * SPLITS + split) * R + r
    tl.store(least + one, top, r < R)
    tl.store(most + one, sum_, r < R)
    tl.store(part + one[:, None].to(tl.int64) * D + d[None, :], sums, ok)


def attention_decode(q, k, v):
    (B, H, D), (_, G, S, _), splits = q.shape, k.shape, 8
    R = H // G
    part = q.new_empty(B * G, splits, R, D, dtype=torch.float32)
    least, most = (q.new_empty(B * G, splits, R, dtype=torch.float32) for _ in range(2))
    decode_kernel[(B * G, splits)](q, k, v, part, least, most, D ** -0.5, H, G, S, D, splits, R=R, BR=block_of(R), BN=64, BD=block_of(D),
                                   num_warps=4, num_stages=3)
    by = torch.exp2(least - least.amax(1, keepdim=True))
    return ((part * by[..., None]).sum(1) / (most * by).sum(1)[..., None]).to(q.dtype).reshape(B, H, D)


@triton.jit
def cross_entropy_kernel(x, w, least, most, T, V, D, PARTS, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """The greatest logit and the sum of the others' weights, of BM rows and one of PARTS parts of the columns."""
    m, part = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1)
    size = tl.cdiv(tl.cdiv(V, PARTS), BN) * BN
    top, sum_ = tl.full([BM], NOTHING, tl.float32), tl.zeros([BM], tl.float32)
    d = tl.arange(0, BK)
    for n0 in range(part * size, min(V, (part + 1) * size), BN):
        n, z = n0 + tl.arange(0, BN), tl.zeros([BM, BN], tl.float32)
        for d0 in range(0, D, BK):
            ok = (d0 + d < D)[None, :]
            a = tl.load(x + m[:, None].to(tl.int64) * D + d0 + d[None, :], ok & (m < T)[:, None], other=0.0)
            b = tl.load(w + n[:, None].to(tl.int64) * D + d0 + d[None, :], ok & (n < V)[:, None], other=0.0)
            z = tl.dot(a, b.trans(), z)
        z = tl.where((n < V)[None, :], z, NOTHING)
        new = tl.maximum(top, tl.max(z, 1))
        sum_ = sum_ * tl.exp(top - new) + tl.sum(tl.where((n < V)[None, :], tl.exp(z - new[:, None]), 0.0), 1)
        top = new
    tl.store(least + m * PARTS + part, top, m < T)
    tl.store(most + m * PARTS + part, sum_, m < T)


def projected_cross_entropy(x, w, y):
    (T, D), V, parts = x.shape, w.shape[0], 8
    least, most = (x.new_empty(T, parts, dtype=torch.float32) for _ in range(2))
    cross_entropy_kernel[(triton.cdiv(T, 128), parts)](x, w, least, most, T, V, D, parts, BM=128, BN=128, BK=64, num_warps=8, num_stages=3)
    return torch.logsumexp(least + most.log(), 1) - (x.float() * w[y].float()).sum(1)


@triton.jit
def linear_kernel(q, k, v, o, S, D, BS: tl.constexpr, BD: tl.constexpr):
    """A head a program: BS rows at a time, on top of the products of all before."""
    r, d = tl.arange(0, BS), tl.arange(0, BD)
    head, before = tl.program_id(0).to(tl.int64) * S * D, tl.zeros([BD, BD], tl.float32)
    for i0 in range(0, S, BS):
        at = head + (i0 + r)[:, None] * D + d[None, :]
        ok = (i0 + r < S)[:, None] & (d < D)[None, :]
        a, b, c = tl.load(q + at, ok, other=0.0), tl.load(k + at, ok, other=0.0), tl.load(v + at, ok, other=0.0)
        s = tl.where(r[:, None] >= r[None, :], tl.dot(a, b.trans()), 0.0)
        tl.store(o + at, tl.dot(s.to(c.dtype), c) + tl.dot(a, before.to(a.dtype)), ok)
        before = tl.dot(b.trans(), c, before)


def linear_attention(q, k, v):
    o = torch.empty_like(q)
    linear_kernel[(q.shape[0] * q.shape[1],)](q, k, v, o, *q.shape[2:], BS=64, BD=block_of(q.shape[3]), num_warps=4)
    return o


@triton.jit
def rbf_kernel(x, z, a, f, gamma, N, M, D: tl.constexpr, BN: tl.constexpr, BM: tl.constexpr):
    i, sums = tl.program_id(0) * BN + tl.arange(0, BN), tl.zeros([BN, BM], tl.float32)
    for j0 in range(0, M, BM):
        j, r2 = j0 + tl.arange(0, BM), tl.zeros([BN, BM], tl.float32)
        for d in tl.static_range(D):
            e = tl.load(x + i * D + d, i < N, other=0.0)[:, None] - tl.load(z + j * D + d, j < M, other=0.0)[None, :]
            r2 += e * e
        sums += tl.exp(-gamma * r2) * tl.load(a + j, j < M, other=0.0)[None, :]
    tl.store(f + i, tl.sum(sums, 1), i < N)


def rbf_vector(x, z, a, gamma):
    f = x.new_empty(x.shape[0])
    rbf_kernel[(triton.cdiv(x.shape[0], 32),)](x, z, a, f, gamma, x.shape[0], z.shape[0], D=x.shape[1], BN=32, BM=256, num_warps=8)
    return f


@triton.jit
def lj_kernel(x, f, N, C: tl.constexpr, BN: tl.constexpr, BM: tl.constexpr):
    """By a component after the other of the result, whose weights are computed with each."""
    i, c = tl.program_id(0) * BN + tl.arange(0, BN), tl.program_id(1)
    own, sums = tl.load(x + i * C + c, i < N, other=0.0), tl.zeros([BN, BM], tl.float32)
    for j0 in range(0, N, BM):
        j, r2 = j0 + tl.arange(0, BM), tl.zeros([BN, BM], tl.float32)
        for d in tl.static_range(C):
            e = tl.load(x + i * C + d, i < N, other=0.0)[:, None] - tl.load(x + j * C + d, j < N, other=0.0)[None, :]
            r2 += e * e
        ok = (j < N)[None, :] & (i[:, None] != j[None, :])
        s = 1 / tl.where(ok, r2, 1.0)
        s2 = s * s
        w = tl.where(ok, 24 * (2 * s2 * s2 * s2 * s - s2 * s2), 0.0)
        sums += w * (own[:, None] - tl.load(x + j * C + c, j < N, other=0.0)[None, :])
    tl.store(f + i * C + c, tl.sum(sums, 1), i < N)


def lj_forces(x):
    f = torch.empty_like(x)
    lj_kernel[(triton.cdiv(x.shape[0], 32), x.shape[1])](x, f, x.shape[0], C=x.shape[1], BN=32, BM=256, num_warps=8)
    return f
