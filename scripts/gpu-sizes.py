#!/usr/bin/env python3
"""One kernel object for all sizes: each graph is compiled once and launched on shapes of 0, of 1, of primes and of more than
2^31 elements, on an NVIDIA GPU. And graphs of known sizes, where rows lie close, as far apart
as offsets of 31 and 32 bits go, and further. Whole numbers, so results are torch's to the bit, but for softmax. Prints a line a graph: the
shapes, what the first launch took to be ready and what the slowest of the others did.

    gpu-sizes.py [TEXO] [--device=cpu] [--seed=N] [--only=REGEX] [--show]

--device=cpu computes there, nothing large. --show prints each shape, and what its launch took. TEXO is where the library lies
beside, as for gpu-library.py. Exit 1 when
something differs, 77 without torch or a GPU."""
import random
import re
import sys
import time

import gpu_torch

ARGS = gpu_torch.options(__doc__, seed=1, show=False)
import texo  # noqa: E402
import torch  # noqa: E402

PRIMES = (2, 3, 5, 7, 13, 31, 61, 127, 251, 509, 1021, 2039, 4093, 8191, 16381, 32749, 65521, 131071)
HUGE = ((65537, 32771), (1, 2**31 + 11), (2**31 + 11, 1), (3, 715827919)) if ARGS.device == "cuda" else ()
SHAPES, MOST = 20, 1 << 24  # so many a graph, the larger ones of so many elements


def shapes():
    """20 and the huge ones, the smallest not first."""
    pick = random.Random(ARGS.seed)
    found = [(251, 509), (1, 1), (0, 37), (37, 0), (0, 0), (1, 131071), (131071, 1)]
    while len(found) < SHAPES:
        n, m = pick.choice(PRIMES + (1, 64, 4096)), pick.choice(PRIMES + (1, 64, 4096))
        if n * m <= MOST:
            found.append((n, m))
    return found + list(HUGE)


def some(n, m):
    return torch.randint(-3, 4, (n, m), dtype=torch.int8, device=ARGS.device)


def pairs(n, m):
    return some(n, m), some(n, m)


def floats(n, m):
    return (some(n, m).half(),)


def gathered(n, m):
    """As many rows as there are, of at most 1000 first ones."""
    return some(n, m), torch.randint(0, max(1, min(n, 1000)), (n,), device=ARGS.device)


def softmax(x):
    return torch.softmax(x, 1, dtype=torch.float32).half() if x.numel() < HUGE_FROM else None


def cumulative(x):
    """By the rows where they are few and long, which torch gives a block each."""
    if x.shape[1] == 1:
        return x.int()
    if x.shape[0] in (1, 2, 3):
        return torch.stack([row.cumsum(0, dtype=torch.int32) for row in x])
    return x.cumsum(1, dtype=torch.int32)


HUGE_FROM = 1 << 31
#  {name: (the graph, its inputs, what torch makes of them)}
GRAPHS = {
    "map": ("(x: i8[N, M], y: i8[N, M]) -> (z: i8[N, M]) { z[i, j] = 2 * x[i, j] - y[i, j] }", pairs,
            lambda x, y: 2 * x - y),
    "transpose": ("(x: i8[N, M], y: i8[N, M]) -> (z: i8[M, N]) { z[j, i] = x[i, j] - y[i, j] }", pairs, lambda x, y: (x - y).t()),
    "rows": ("(x: i8[N, M]) -> (s: i32[N]) { s[i] = sum[j](i32(x[i, j])) }", lambda n, m: (some(n, m),),
             lambda x: x.sum(1, dtype=torch.int32)),
    "columns": ("(x: i8[N, M]) -> (s: i32[M]) { s[j] = sum[i](i32(x[i, j])) }", lambda n, m: (some(n, m),),
                lambda x: x.sum(0, dtype=torch.int32)),
    "all": ("(x: i8[N, M]) -> (s: i32) { s = sum[i, j](i32(x[i, j])) }", lambda n, m: (some(n, m),),
            lambda x: x.sum(dtype=torch.int32)),
    "prefix": ("(x: i8[N, M]) -> (s: i32[N, M]) { s[i, j] = sum[k where k <= j](i32(x[i, k])) }", lambda n, m: (some(n, m),),
               cumulative),
    "gather": ("(x: i8[N, M], at: i64[T]) -> (y: i8[T, M]) { y[t, j] = x[at[t], j] }", gathered, lambda x, at: x[at]),
    "softmax": ("(x: f16[N, M]) -> (y: f16[N, M]) { y[i, j] = softmax[j](x[i, j]) }", floats, softmax),
}


def differs(got, want):
    """The number of elements that do, by pieces: comparing takes memory as well."""
    if got.shape != want.shape:
        return f"{tuple(got.shape)} and not {tuple(want.shape)}"
    got, want, n = got.reshape(-1), want.reshape(-1), 0
    for at in range(0, got.numel(), 1 << 28):
        a, b = got[at:at + (1 << 28)], want[at:at + (1 << 28)]
        n += int((a != b).sum() if not a.is_floating_point() else ((a.float() - b.float()).abs() > 1e-3).sum())
    return f"{n} elements differ" if n else ""


def wait():
    if ARGS.device == "cuda":
        torch.cuda.synchronize()


def show(text, end="\n"):
    if ARGS.show:
        print(text, end=end, flush=True)


def run(name):
    text, inputs, reference = GRAPHS[name]
    start = time.perf_counter()
    kernel = texo.compile(f'use "std"\ngraph g{text}\n', target=ARGS.device, cache=False).kernel()
    wrong, ready, count = [], [], 0
    for n, m in shapes():
        x = inputs(n, m)
        if (want := reference(*x)) is None:
            continue
        wait()
        begin = time.perf_counter() if ready else start
        launch = kernel.bind(*x)
        ready.append(time.perf_counter() - begin)
        show(f"  {name} {n} x {m}: ", "")
        start = time.perf_counter()
        launch()
        wait()
        show(f"{1e3 * (time.perf_counter() - start):.3f} ms")
        what = differs(launch.results[0], want)
        count += 1
        if what:
            wrong.append(f"  {name} {n} x {m}: {what}")
    print(f"{name:10} {count} shapes of one kernel, {len(wrong)} wrong; ready in {1e3 * ready[0]:.1f} ms, then within "
          f"{1e3 * max(ready[1:]):.2f}", *wrong, sep="\n", flush=True)
    return len(wrong)


ROWS, COLUMNS = 5, 512
STRIDES = (COLUMNS, COLUMNS + 1, COLUMNS + 16, *(((1 << bits) - COLUMNS) // (ROWS - 1) + more for bits in (31, 32) for more in (0, 1)),
           1 << 30, (1 << 31) + 16)  # from where on the last element's offset, or a byte's, needs another bit
KNOWN = {
    "known map": ("(x: i8[5, 512]) -> (y: i8[5, 512]) { y[i, j] = 3 * x[i, j] }", lambda x: 3 * x),
    "known around": ("(x: i8[5, 512]) -> (y: i8[3, 508]) { y[i, j] = x[i, j] - x[i + 2, j + 4] }", lambda x: x[:3, :508] - x[2:, 4:]),
    "known transpose": ("(x: i8[5, 512]) -> (y: i8[512, 5]) { y[j, i] = 3 * x[i, j] }", lambda x: (3 * x).t()),
    "known rows": ("(x: i8[5, 512]) -> (s: i32[5]) { s[i] = sum[j](i32(x[i, j])) }", lambda x: x.sum(1, dtype=torch.int32)),
    "known columns": ("(x: i8[5, 512]) -> (s: i32[512]) { s[j] = sum[i](i32(x[i, j])) }", lambda x: x.sum(0, dtype=torch.int32)),
    "known prefix": ("(x: i8[5, 512]) -> (s: i32[5, 512]) { s[i, j] = sum[k where k <= j](i32(x[i, k])) }", cumulative),
}


def run_known(name):
    """Rows so far apart, of a memory of a byte an element."""
    text, reference = KNOWN[name]
    kernel = texo.compile(f"graph g{text}\n", target=ARGS.device, cache=False).kernel()
    wrong, strides = [], STRIDES if ARGS.device == "cuda" else STRIDES[:3]
    for stride in strides:
        memory = torch.empty((ROWS - 1) * stride + COLUMNS, dtype=torch.int8, device=ARGS.device)
        x = memory.as_strided((ROWS, COLUMNS), (stride, 1))
        x.copy_(some(ROWS, COLUMNS))
        launch = kernel.bind(x)
        launch()
        wait()
        what = differs(launch.results[0], reference(x))
        if what:
            wrong.append(f"  {name}, rows {stride} apart: {what}")
        del launch, x, memory
    print(f"{name:16} {len(strides)} strides of one kernel, {len(wrong)} wrong", *wrong, sep="\n", flush=True)
    return len(wrong)


FAILED = [run(name) for name in GRAPHS if re.search(ARGS.only, name)] + [run_known(name) for name in KNOWN if re.search(ARGS.only, name)]
sys.exit(sum(FAILED) != 0)
