#!/usr/bin/env python3
"""Attention on an NVIDIA GPU against float64: lengths, head sizes, masks and dtypes, each error beside that of torch's own
attention on the same data. An element may be off by twice what torch is off by at most, and the errors of nine points in ten
by no more than torch's. Beside them, rows that do not see a value that is infinite, whatever their scores. Prints a line for each
that fails, and how many did not.

    gpu-attention.py [TEXO] [--device=cpu] [--only=REGEX]

--device=cpu computes there, on small lengths. TEXO is where the library lies beside, as for gpu-library.py. Exit 1 when
something fails, 77 without torch or a GPU."""
import itertools
import math
import re
import sys

import gpu_torch

ARGS = gpu_torch.options(__doc__)
import texo  # noqa: E402
import torch  # noqa: E402

DTYPES = {"bf16": torch.bfloat16, "f16": torch.float16}
# the lengths and head sizes of FlashAttention's own tests, and some beside them
LENGTHS = ((1, 239), (3, 799), (127, 512), (127, 513), (113, 203), (128, 217), (113, 211), (108, 256), (256, 512), (1023, 1024),
           (512, 256), (640, 128), (1024, 1024), (2048, 2048), (129, 129), (1, 1), (300, 4099))
HEADS = (8, 32, 40, 59, 64, 80, 96, 111, 128, 160, 192, 224, 256)
MASKS = {  # the domain in the language, and in torch; both align the ends of rows and keys
    "all": ("", lambda i, j, t, s: None),
    "causal": (" where j <= i + S - T", lambda i, j, t, s: j <= i + s - t),
    "one row": ("", lambda i, j, t, s: None),  # of q without an axis of rows
    "window": (" where j <= i + S - T && i + S - T - j < 100", lambda i, j, t, s: (j <= i + s - t) & (i + s - t - j < 100)),
}
GROUPS = {"own": (3, 3), "grouped": (6, 2), "one": (4, 1)}


def program(mask, dtype):
    rows, i = ("", "") if mask == "one row" else (" T,", " i,")
    return (f"use \"std\"\ngraph attention(q: {dtype}[B, H,{rows} D], k: {dtype}[B, G, S, D], v: {dtype}[B, G, S, D]) -> "
            f"(o: {dtype}[B, H,{rows} D])\n  where H mod G == 0 && S >= 1 && D >= 1\n{{\n"
            f"  s[b, h,{i} j] = sum[d](q[b, h,{i} d] * k[b, h div (H div G), j, d]) / sqrt(D){MASKS[mask][0]}\n"
            f"  o[b, h,{i} d] = sum[j](softmax[j](s[b, h,{i} j]) * v[b, h div (H div G), j, d])\n}}\n")


def exact(q, k, v, shown):
    """In float64; rows that see nothing are 0."""
    s = q.double() @ k.double().transpose(-1, -2) / math.sqrt(q.shape[-1])
    s = s if shown is None else s.masked_fill(~shown, -math.inf)
    return torch.nan_to_num(torch.softmax(s, -1)) @ v.double()


def fault(kernel, mask, dtype, heads, lengths, size, scale, seed):
    """(what is wrong, or None; the error over torch's)"""
    generator = torch.Generator(ARGS.device).manual_seed(seed)
    (h, g), (t, s) = heads, lengths
    q, k, v = (torch.empty(2, n, m, size, device=ARGS.device).normal_(generator=generator).mul_(by).to(DTYPES[dtype])
               for n, m, by in ((h, t, scale), (g, s, 1), (g, s, 1)))
    got = (kernel(q[:, :, 0], k, v)[:, :, None] if mask == "one row" else kernel(q, k, v)).double()
    wide = [x.repeat_interleave(h // g, 1) for x in (k, v)]
    i, j = torch.arange(t, device=q.device)[:, None], torch.arange(s, device=q.device)
    shown = MASKS[mask][1](i, j, t, s)
    want = exact(q, *wide, shown)
    theirs = torch.nan_to_num(torch.nn.functional.scaled_dot_product_attention(q, *wide, attn_mask=shown).double())
    off, torchs = (got - want).abs(), (theirs - want).abs()
    unit = 2.0 ** (-8 if dtype == "bf16" else -11)
    if not bool(torch.isfinite(got).all()):
        return f"{int((~torch.isfinite(got)).sum())} are no numbers", math.inf
    worst, least = off.max().item(), max(torchs.max().item(), unit * want.abs().max().item() * 0.5)
    return (f"{worst:.2e} off, torch {torchs.max().item():.2e}" if worst > 2 * least else None), worst / least


def sees_what_is_absent(scaled, lengths, size, power):
    """Whether rows are other than 1 whose values are, where those that the rows do not see are infinite. Scores go to 2^power."""
    generator = torch.Generator(ARGS.device).manual_seed(power)
    (t, s), scale = lengths, {"bare": "", "narrow": " / sqrt(D)", "enlarged": " * sqrt(D)"}[scaled]
    kernel = texo.compile(
        f"use \"std\"\ngraph seen(q: bf16[H, T, D], k: bf16[H, S, D], v: bf16[H, S, E]) -> (o: bf16[H, T, E]) {{\n"
        f"  s[h, i, j] = sum[d](q[h, i, d] * k[h, j, d]){scale} where j <= i\n"
        f"  o[h, i, e] = sum[j](softmax[j](s[h, i, j]) * v[h, j, e])\n}}\n", target=ARGS.device).kernel()
    q, k = (torch.empty(4, n, size, device=ARGS.device).normal_(generator=generator).mul_(2.0 ** (power / 2)).bfloat16() for n in (t, s))
    v = torch.ones(4, s, size, device=ARGS.device).bfloat16()
    v[:, t:] = math.inf
    return bool(((kernel(q, k, v).float() - 1).abs() > 2.0 ** -8).any())


def absent():
    """How many of them are right, and a line for each that is not."""
    right = wrong = 0
    lengths = ((1, 2), (200, 330), (130, 257), (64, 200)) if ARGS.device == "cuda" else ((1, 2), (20, 33))
    for scaled, length, size, power in itertools.product(("bare", "narrow", "enlarged"), lengths, (64, 128, 256), (0, 8, 12, 18)):
        case = f"absent {scaled} D={size} {length[0]}x{length[1]} 2^{power}"
        if not re.search(ARGS.only, case):
            continue
        bad = sees_what_is_absent(scaled, length, size, power)
        right, wrong = right + (not bad), wrong + bad
        if bad:
            print(f"{case}: rows have what they do not see  FAILED", flush=True)
    return right, wrong


def main():
    failed, ratios = 0, []
    lengths = LENGTHS if ARGS.device == "cuda" else [x for x in LENGTHS if x[0] * x[1] < 60000]
    for mask, dtype in itertools.product(MASKS, DTYPES):
        kernel = texo.compile(program(mask, dtype), target=ARGS.device).kernel()
        for (name, heads), size, length, scale in itertools.product(GROUPS.items(), HEADS, lengths, (1, 40)):
            length = (1, length[1]) if mask == "one row" else length
            case = f"{mask} {dtype} {name} D={size} {length[0]}x{length[1]} scale {scale}"
            if not re.search(ARGS.only, case) or (name != "own" and size not in (40, 64, 128)):
                continue
            said, ratio = fault(kernel, mask, dtype, heads, length, size, scale, len(ratios))
            ratios.append(ratio)
            if said:
                failed += 1
                print(f"{case}: {said}  FAILED", flush=True)
    share = sum(r <= 1 for r in ratios) / max(1, len(ratios))
    print(f"{len(ratios) - failed} attentions are right, {failed} wrong; {100 * share:.1f} % no further off than torch's, "
          f"the worst {max(ratios, default=0):.2f} times as far")
    right, wrong = absent()
    print(f"{right} of {right + wrong} leave out what is absent")
    return 1 if failed or wrong or (ratios and share < 0.9) else 0


if __name__ == "__main__":
    sys.exit(main())
