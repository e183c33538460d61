#!/usr/bin/env python3
"""Convolutions on an NVIDIA GPU, against float64 of torch: of whole numbers to the bit, with strides, dilations, padding and
groups, in one to three dimensions of bf16, f16 and f32, channels last and first; where weights that are no numbers meet
what padding leaves out; and of images whose lines lie in memory from the last to the first.
Prints a line for each that fails, and how many did not.

    gpu-convolutions.py [TEXO] [--device=cpu] [--only=REGEX]

--device=cpu computes there. TEXO is where the library lies beside, as for gpu-library.py. Exit 1 when something fails,
77 without torch or a GPU."""
import re
import sys

import gpu_torch

ARGS = gpu_torch.options(__doc__)
import texo  # noqa: E402
import torch  # noqa: E402

DTYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}
LAST, COLUMNS, FIRST, BACKWARDS = "", "weights by column", "channels first", "backwards"  # how tensors lie
#        images, sides, channels, results, taps along each side, stride, dilation, padding before, groups
SHAPES = (
    (64, (56, 56), 64, 64, (3, 3), 1, 1, 1, 1), (64, (14, 14), 256, 256, (3, 3), 1, 1, 1, 1),
    (64, (7, 7), 512, 512, (3, 3), 1, 1, 1, 1), (64, (56, 56), 64, 256, (1, 1), 1, 1, 0, 1),
    (16, (56, 56), 128, 128, (3, 3), 2, 1, 1, 1), (3, (29, 31), 72, 68, (3, 3), 2, 1, 1, 1),
    (1, (224, 224), 16, 64, (7, 7), 2, 1, 3, 1), (5, (30, 17), 40, 130, (3, 2), 1, 2, 2, 1),
    (2, (33, 33), 64, 96, (5, 5), 3, 1, 2, 1), (7, (13, 11), 64, 64, (3, 3), 1, 1, 0, 1),
    (9, (300,), 64, 128, (5,), 1, 1, 2, 1), (2, (1000,), 96, 64, (9,), 4, 2, 3, 1),
    (2, (6, 9, 12), 32, 64, (3, 3, 3), 1, 1, 1, 1), (130, (8, 8), 64, 64, (3, 3), 1, 1, 1, 1),
    (4, (20, 20), 32, 64, (3, 3), 1, 1, 1, 4), (33, (12,), 64, 64, (3,), 1, 1, 1, 2),
    (64, (112, 112), 3, 64, (7, 7), 2, 1, 3, 1), (3, (224, 224), 3, 64, (7, 7), 2, 1, 3, 1), (3, (40, 41), 3, 48, (5, 5), 1, 1, 2, 1),
    (5, (33, 47), 17, 72, (3, 3), 1, 1, 1, 1), (2, (9, 20, 21), 3, 32, (5, 5, 5), 2, 1, 2, 1), (2, (5000,), 1, 64, (80,), 40, 1, 20, 1),
    (2, (3000,), 1, 20, (65,), 1, 1, 32, 1), (7, (28, 28), 1, 32, (9, 9), 1, 1, 4, 1), (4, (20, 20), 27, 33, (3, 3), 2, 2, 1, 3),
    (2, (5, 5), 64, 64, (3, 3), 1, 1, 1, 1), (1, (9, 9), 17, 33, (3, 3), 1, 1, 1, 1),
)


def program(dtype, out, made, stride, dilation, before, groups, way):
    n = len(made)
    p, r = [f"p{k}" for k in range(n)], [f"r{k}" for k in range(n)]
    at = [f"{stride}*{a} + {dilation}*{b} - {before}" for a, b in zip(p, r)]
    group, g = ("G, ", "g, ") if groups > 1 else ("", "")
    weights = f"{g}{', '.join(r)}, c, o" if way == COLUMNS else f"{g}o, {', '.join(r)}, c"
    dims = ", ".join
    taps, sides = [f"R{k}" for k in range(n)], [f"H{k}" for k in range(n)]
    shape = f"{group}{dims(taps)}, C, O" if way == COLUMNS else f"{group}O, {dims(taps)}, C"
    if way == FIRST:
        return (f"graph convolution(x: {dtype}[N, {group}C, {dims(sides)}], w: {dtype}[{group}O, C, {dims(taps)}])"
                f" -> (y: {out}[N, {group}O, {dims(map(str, made))}]) {{\n"
                f"  y[n, {g}o, {dims(p)}] = sum[c, {dims(r)}](f32(x?[n, {g}c, {dims(at)}]) * f32(w[{g}o, c, {dims(r)}]))\n}}\n")
    return (f"graph convolution(x: {dtype}[N, {dims(sides)}, {group}C], w: {dtype}[{shape}])"
            f" -> (y: {out}[N, {dims(map(str, made))}, {group}O]) {{\n"
            f"  y[n, {dims(p)}, {g}o] = sum[{dims(r)}, c](f32(x?[n, {dims(at)}, {g}c]) * f32(w[{weights}]))\n}}\n")


def whole(shape, dtype, seed):
    generator = torch.Generator(ARGS.device).manual_seed(seed)
    return torch.empty(shape, device=ARGS.device).random_(-3, 4, generator=generator).to(dtype)


def reference(x, w, stride, dilation, before, sides):
    """x by channels first; padding behind is what the result's sides ask for."""
    n = len(sides)
    need = [(q - 1) * stride + (t - 1) * dilation + 1 - before for q, t in zip(sides, w.shape[2:])]
    x = x[(..., *(slice(0, max(0, b)) for b in need))]
    pad = [v for b, side in reversed(list(zip(need, x.shape[2:]))) for v in (before, max(0, b - side))]
    f = (torch.nn.functional.conv1d, torch.nn.functional.conv2d, torch.nn.functional.conv3d)[n - 1]
    return lambda x, w, groups: f(torch.nn.functional.pad(x, pad), w, stride=stride, dilation=dilation, groups=groups), x


def compute(x, w, sides, stride, dilation, before, groups, dtype, out, way):
    """x: (N, sides, C), w: (O, taps, C / groups); groups beside each other in C and O."""
    n = len(sides)
    kernel = texo.compile(program(dtype, out, sides, stride, dilation, before, groups, way), target=ARGS.device).kernel()
    c = x.shape[-1] // groups
    xs = x.reshape(*x.shape[:-1], groups, c) if groups > 1 else x
    ws = w.reshape(groups, w.shape[0] // groups, *w.shape[1:]) if groups > 1 else w
    several = groups > 1
    if way == COLUMNS:
        ws = ws.movedim(1 if several else 0, -1)
    if way == FIRST:
        axes = [n + 1, n + 2][:1 + several]
        xs, ws = xs.movedim(axes, [1, 2][:1 + several]), ws.movedim(-1, 2 if several else 1)
    y = kernel(gpu_torch.Backwards(xs, 1) if way == BACKWARDS else xs.contiguous(), ws.contiguous())
    if way == FIRST:
        y = y.movedim([1, 2][:1 + several], axes)
    return y.reshape(*y.shape[:n + 1], -1)


def channels_first(x):
    return x.movedim(-1, 1)


def sides_of(shape):
    _, sides, _, _, taps, stride, dilation, before, _ = shape
    return [(h + 2 * before - dilation * (t - 1) - 1) // stride + 1 for h, t in zip(sides, taps)]


def check(shape, dtype, way, odd):
    images, sides, channels, results, taps, stride, dilation, before, groups = shape
    x = whole((images, *sides, channels), DTYPES[dtype], 1)
    w = whole((results, *taps, channels // groups), DTYPES[dtype], 2)
    if odd:  # some weights are infinite or no numbers
        flat = w.view(-1)
        flat[::1009] = float("inf")
        flat[500::2003] = float("nan")
    got = compute(x, w, sides_of(shape), stride, dilation, before, groups, dtype, "f32", way)
    f, cut = reference(channels_first(x).double(), channels_first(w), stride, dilation, before, sides_of(shape))
    wide = channels_first(w).double()
    want = f(cut, torch.nan_to_num(wide, 0, 0, 0) if odd else wide, groups).movedim(1, -1)
    if not odd:
        return bool(torch.equal(got.double(), want))
    # who meets such a weight at an element that there is has no number, or infinity; nobody else
    bad = f(torch.ones_like(cut), (~torch.isfinite(wide)).double(), groups).movedim(1, -1) > 0
    return bool(torch.equal(~torch.isfinite(got), bad) and torch.equal(got.double()[~bad], want[~bad]))


def main():
    done = failed = 0
    for shape in SHAPES:
        for dtype, way, odd in (("bf16", LAST, False), ("f16", COLUMNS, False), ("bf16", COLUMNS, True), ("bf16", FIRST, False),
                                ("f16", FIRST, True), ("f32", FIRST, False), ("f32", LAST, True), ("bf16", BACKWARDS, False)):
            name = f"{shape} {dtype} {way}{' odd' if odd else ''}"
            if not re.search(ARGS.only, name):
                continue
            if odd and shape[0] * shape[2] > 4096:
                continue
            done += 1
            try:
                fine, why = check(shape, dtype, way, odd), "differs"
            except Exception as e:
                fine, why = False, str(e).splitlines()[0][:160]
            if not fine:
                failed += 1
                print(f"FAILED {name}: {why}")
    print(f"{done - failed} of {done} convolutions are right")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
