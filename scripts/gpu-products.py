#!/usr/bin/env python3
"""Matrix products on an NVIDIA GPU, against float64 of torch: shapes, layouts, dtypes and modes, each within the bound that
reductions have (n 2^-24 times the sum of the magnitudes, and the rounding of the result); of small whole numbers to
the bit. Prints a line for each that fails, and how many did not.

    gpu-products.py [TEXO] [--device=cpu] [--target=cuda:NAME] [--only=REGEX] [--rates]

--device=cpu computes there. --target compiles for another GPU than the one that is there, whose code runs on it: an H100 has
the products of cuda:sm_80 by mma.sync. --rates times some large products of bf16 and torch's instead, in turn. TEXO is where the library lies beside, as for gpu-library.py. Exit 1 when something fails,
77 without torch or a GPU."""
import itertools
import re
import sys

import gpu_torch

ARGS = gpu_torch.options(__doc__, target=None, rates=False)
import texo  # noqa: E402
import torch  # noqa: E402

DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}
HALF_UNIT = {"f32": 2.0**-24, "bf16": 2.0**-8, "f16": 2.0**-11}
TF32 = 2.0**-10  # of a product, both of whose factors are rounded to 11 bits
TINY = {"f32": 2.0**-126, "bf16": 2.0**-126, "f16": 2.0**-24}
LAYOUTS = ("mk kn", "mk nk", "km kn", "km nk", "bmk bkn", "bmk bnk", "mk bkn", "bmk nk", "mjk jkn")
SHAPES = ((1, 1, 1), (0, 7, 5), (5, 7, 0), (3, 5, 7), (64, 64, 64), (64, 64, 63), (127, 129, 65), (128, 256, 64), (130, 258, 72),
          (256, 512, 1024), (333, 777, 1000), (1000, 1544, 328), (1024, 1024, 4096), (61, 67, 16384), (640, 1024, 16384),
          (2048, 100, 520),
          (1501, 1703, 67), (1536, 1540, 68),
          (1, 64, 128), (5, 72, 520), (16, 1000, 4096), (13, 4104, 1032), (9, 4100, 2056),
          (17, 40, 32), (24, 4104, 1032), (32, 4104, 4096), (48, 72, 4096), (2056, 2048, 520),
          (64, 64, 65536), (500, 260, 40000),
          (1000, 1000, 1000), (1536, 1536, 328), (2056, 2056, 1032), (3000, 2504, 520), (4096, 4096, 512))
GATED = ((3, 64, 64), (64, 64, 64), (127, 132, 65), (130, 258, 72), (257, 67, 1000), (333, 776, 1000), (1000, 1544, 328), (1024, 1024, 4096),
         (2056, 2048, 520), (4100, 4104, 4096))
BATCH, PARTS = 3, 2
TIMES, TURNS = 20, 7
RATES = ((1024, 1024, 1024), (2048, 2048, 2048), (4096, 4096, 4096), (8192, 8192, 8192), (4096, 4096, 512), (512, 4096, 4096),
         (32, 4096, 4096), (4096, 4096, 4000), (4096, 4100, 4096))


def program(layout, dtype, out):
    a, b = layout.split()
    free = "".join(c for c in "bmn" if c in a + b)
    terms = [c for c in "jk" if c in a]
    index, dims = ", ".join, lambda of: ", ".join(of.upper())
    return (f"graph product(x: {dtype}[{dims(a)}], w: {dtype}[{dims(b)}]) -> (y: {out}[{dims(free)}]) {{\n"
            f"  y[{index(free)}] = sum[{index(terms)}](f32(x[{index(a)}]) * f32(w[{index(b)}]))\n}}\n")


def gated_program(layout, dtype, out, left):
    """Two products that share a factor, the left one or the right one: the first's positive part less the second."""
    a, b = layout.split()
    index, dims = ", ".join, lambda of: ", ".join(of.upper())
    common, own = (a, b) if left else (b, a)
    sums = [f"sum[k](f32(x[{index(common)}]) * f32({w}[{index(own)}]))" for w in "vw"]
    free = "".join(c for c in "bmn" if c in a + b)
    return (f"graph gated(x: {dtype}[{dims(common)}], v: {dtype}[{dims(own)}], w: {dtype}[{dims(own)}]) -> (y: {out}[{dims(free)}]) {{\n"
            f"  y[{index(free)}] = max({sums[0]}, 0) - {sums[1]}\n}}\n")


def tensor(letters, sizes, dtype, fill, seed):
    shape = [sizes[c] for c in letters]
    generator = torch.Generator(ARGS.device).manual_seed(seed)
    x = torch.empty(shape, device=ARGS.device, dtype=torch.float32)
    if fill == "whole":
        x.random_(-3, 4, generator=generator)
    elif fill == "positive":  # what is cut off adds up
        x.uniform_(0.5, 1, generator=generator)
    else:
        x.normal_(generator=generator)
    return x.to(DTYPES[dtype])


def compiled(text, **options):
    return texo.compile(text, target=ARGS.target or ARGS.device, **options)


def product(layout, x, w):
    a, b = layout.split()
    free = "".join(c for c in "bmn" if c in a + b)
    return torch.einsum(f"{a},{b}->{free}", x, w)


def fault(k, layout, sizes, dtype, out, fp, fill):
    """What is wrong with a product, or None."""
    a, b = layout.split()
    x, w = (tensor(letters, sizes, dtype, fill, seed) for seed, letters in ((1, a), (2, b)))
    n = sizes["k"] * (sizes["j"] if "j" in a else 1)
    want = product(layout, x.double(), w.double())
    factors = TF32 if fp == "fast" and dtype == "f32" else 0
    return wrong(k(x, w).double(), want, n, product(layout, x.double().abs(), w.double().abs()), out, fill, factors)


def gated_fault(k, layout, sizes, dtype, out, left, fill):
    """The same of two products that share a factor: the errors of both add up."""
    a, b = layout.split()
    x, v, w = (tensor(letters, sizes, dtype, fill, seed) for seed, letters in ((1, a if left else b), *((s, b if left else a) for s in (2, 3))))
    both = (lambda y, z: product(layout, y, z)) if left else (lambda y, z: product(layout, z, y))
    want = both(x.double(), v.double()).clamp(min=0) - both(x.double(), w.double())
    magnitudes = both(x.double().abs(), v.double().abs()) + both(x.double().abs(), w.double().abs())
    return wrong(k(x, v, w).double(), want, sizes["k"] + 1, magnitudes, out, fill)


def wrong(got, want, n, magnitudes, out, fill, factors=0):
    """What is wrong with n additions of terms of such magnitudes, each of which may be wrong by that part of it, rounded to a result."""
    if fill == "whole":
        differ = (got != want.to(DTYPES[out]).double()).sum().item()
        return f"{differ} differ" if differ else None
    beyond = want.to(DTYPES[out]).isinf()  # of f16: so is the result
    got, want = got.masked_fill(beyond & (got == want.to(DTYPES[out]).double()), 0), want.masked_fill(beyond, 0)
    bound = (n * 2.0**-24 / (1 - n * 2.0**-24) + factors) * magnitudes
    bound = bound + HALF_UNIT[out] * (want.abs() + bound) + TINY[out] if out != "f32" else bound + TINY[out]
    over = torch.nan_to_num((got - want).abs() / bound, nan=torch.inf)
    worst = over.max().item() if over.numel() else 0
    return f"{worst:.3f} of the bound" if worst > 1 else None


def guard_bits():
    """How many bits below a significand the hardware keeps of what it aligns, as contract/roles.c takes it: 2. Terms of
    2^-25 beside a 1 are lost with one bit, and with two add up to 2^-23."""
    k = compiled(program("mk nk", "bf16", "f32")).kernel()
    x, w = torch.zeros(128, 64, device=ARGS.device), torch.ones(64, 64, device=ARGS.device)
    x[:, 0], x[:, 1:16] = 1, 2.0**-25
    got = ((k(x.bfloat16(), w.bfloat16()) - 1) * 2.0**23).unique().tolist()
    right = all(g >= 3 for g in got)
    print(f"1 and 15 times 2^-25: {got} above 1, in units of the last place  {'ok' if right else 'FAILED'}")
    return right


def seconds(run):
    """Of one of many runs, by the GPU's own clock."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    run()
    begin.record()
    for _ in range(TIMES):
        run()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / 1e3 / TIMES


def rates():
    """The median of some turns, texo's beside torch's."""
    for layout in LAYOUTS[:4]:
        k = compiled(program(layout, "bf16", "bf16")).kernel()
        a, b = layout.split()
        for m, n, terms in RATES:
            x, w = (tensor(of, {"m": m, "n": n, "k": terms}, "bf16", "normal", seed) for seed, of in ((1, a), (2, b)))
            y = torch.empty(m, n, device=ARGS.device, dtype=torch.bfloat16)
            u, v = x if a == "mk" else x.T, w if b == "kn" else w.T
            launch = k.bind(x, w, out=y)
            turns = [(seconds(launch), seconds(lambda: torch.matmul(u, v, out=y))) for _ in range(TURNS)]
            own, peer = (2e-12 * m * n * terms / sorted(t[side] for t in turns)[TURNS // 2] for side in range(2))
            print(f"{layout} {m}x{n}x{terms}: {own:.0f} TFLOP/s, torch {peer:.0f}: {own / peer:.2f}", flush=True)
    return 0


def all_gated():
    """How many are right, and wrong."""
    failed, done = 0, 0
    for layout, dtype, left in itertools.product(LAYOUTS[:6], ("bf16", "f16"), (True, False)):
        for out in ("f32", dtype):
            name = f"gated {layout} {dtype} {out} {'left' if left else 'right'}"
            if not re.search(ARGS.only, name):
                continue
            k = compiled(gated_program(layout, dtype, out, left)).kernel()
            for (m, n, terms), fill in itertools.product(GATED, ("normal", "positive", "whole")):
                said = gated_fault(k, layout, {"b": BATCH, "m": m, "n": n, "k": terms}, dtype, out, left, fill)
                done, failed = done + 1, failed + (said is not None)
                if said:
                    print(f"{name} {m}x{n}x{terms} {fill}: {said}  FAILED", flush=True)
    return done - failed, failed


def main():
    if ARGS.rates:
        return rates()
    failed, done = 0, 0
    for layout, dtype, fp in itertools.product(LAYOUTS, ("bf16", "f16", "f32"), ("relaxed", "strict", "fast")):
        if fp != "relaxed" and (layout not in LAYOUTS[:2] or dtype == "f16"):
            continue
        for out in {"f32", dtype}:
            name = f"{layout} {dtype} {out} {fp}"
            if not re.search(ARGS.only, name):
                continue
            k = compiled(program(layout, dtype, out), fp=fp).kernel()
            for m, n, terms in SHAPES:
                for fill in ("normal", "positive", "whole"):
                    sizes = {"b": BATCH, "m": m, "n": n, "j": PARTS, "k": terms}
                    said = fault(k, layout, sizes, dtype, out, fp, fill)
                    done, failed = done + 1, failed + (said is not None)
                    if said:
                        print(f"{name} {m}x{n}x{terms} {fill}: {said}  FAILED", flush=True)
    print(f"{done - failed} products are right, {failed} wrong")
    right, gated_failed = all_gated()
    print(f"{right} pairs of products that share a factor are right, {gated_failed} wrong")
    failed += gated_failed
    good = guard_bits() if ARGS.device == "cuda" and torch.cuda.get_device_capability()[0] == 9 else True
    return 0 if good and not failed else 1


if __name__ == "__main__":
    sys.exit(main())
