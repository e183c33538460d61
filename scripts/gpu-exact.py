#!/usr/bin/env python3
"""Functions and casts of f32 on every argument there is: 2^32 numbers, on an NVIDIA GPU, against float64 of torch; and
quotients by every odd significand, of what is next to the middle between two floats and of any bits, against torch's.
Prints a line for each, with the largest error in units of the last place and where it is.

    gpu-exact.py [TEXO] [--device=cpu] [--every=N] [--only=REGEX]

--every takes one argument of N, or divisor; --device=cpu computes there. TEXO is where the library lies beside, as for
gpu-library.py. Exit 1 when an error is beyond its bound, 77 without torch or a GPU."""
import re
import sys

import gpu_torch

ARGS = gpu_torch.options(__doc__, every=1)
import texo  # noqa: E402
import torch  # noqa: E402

CHUNK = 2**25
PROGRAM = 'use "std"\ngraph f(x: f32[N]) -> (y: {}[N]) {{ y[i] = {} }}\n'

# as written in texo, float64's own, and the bounds in relaxed and strict mode
FUNCTIONS = {
    "exp(x[i])": (torch.exp, 1, 0.6),
    "exp2(x[i])": (torch.exp2, 1, 0.6),
    "expm1(x[i])": (torch.expm1, 1, 1),
    "log(x[i])": (torch.log, 0.6, 0.6),
    "log2(x[i])": (torch.log2, 0.6, 0.6),
    "log1p(x[i])": (torch.log1p, 1, 1),
    "tanh(x[i])": (torch.tanh, 1.5, 1),
    "erf(x[i])": (torch.erf, 1.5, 1),
    "sin(x[i])": (torch.sin, 1, 1),
    "cos(x[i])": (torch.cos, 1, 1),
    "rsqrt(x[i])": (torch.rsqrt, 0.6, 0.6),
    "sqrt(x[i])": (torch.sqrt, 0.5, 0.5),
    "1 / x[i]": (torch.reciprocal, 0.5, 0.5),
    "x[i] / 3": (lambda x: x / 3, 0.5, 0.5),
}
# the short forms, of f32, where results end in these types: within 1/16 ulp before they are rounded
NARROW = {
    "exp(x[i])": torch.exp,
    "exp2(x[i])": torch.exp2,
    "tanh(x[i])": torch.tanh,
}
TYPES = {"bf16": (8, -125, 128), "f16": (11, -13, 16)}  # digits; exponents of frexp of the least and the largest
# these to the bit
CASTS = {
    "f32(f8e4m3(x[i]))": lambda x: x.clamp(-448, 448).to(torch.float8_e4m3fn).float(),
    "f32(f8e5m2(x[i]))": lambda x: x.to(torch.float8_e5m2).float(),
    "f32(bf16(x[i]))": lambda x: x.bfloat16().float(),
    "f32(f16(x[i]))": lambda x: x.half().float(),
}
# these too: a row's by one divisor, and each by its own
ROWS = 2**18
QUOTIENTS = {
    "x[i, j] / b[i]": "graph f(x: f32[M, 64], b: f32[M]) -> (y: f32[M, 64]) { y[i, j] = x[i, j] / b[i] }",
    "x[i, j] / b[i, j]": "graph f(x: f32[M, 64], b: f32[M, 64]) -> (y: f32[M, 64]) { y[i, j] = x[i, j] / b[i, j] }",
}


def arguments():
    """All bit patterns, in chunks."""
    for start in range(0, 2**32, CHUNK * ARGS.every):
        bits = torch.arange(start, min(start + CHUNK * ARGS.every, 2**32), ARGS.every, device=ARGS.device)
        yield torch.where(bits < 2**31, bits, bits - 2**32).to(torch.int32).view(torch.float32)


def errors(got, want):
    """In units of f32's last place at `want`, half of one taken off where the result is subnormal, as it is rounded
    twice there; infinite where one alone is NaN. What rounds to infinity may be the largest number too."""
    exponent = torch.frexp(want.abs())[1].to(torch.int32).clamp(min=-125)
    unit = torch.ldexp(torch.ones_like(want), exponent - 24)
    low = want.abs() < 2.0**-126
    error = (got.double() - want).abs() / unit - 0.5 * low
    over = want.abs().float().isinf() & (got.abs() >= 2.0**128 * (1 - 2.0**-24)) & (torch.signbit(got) == torch.signbit(want))
    error = torch.where(over | (got.isnan() & want.isnan()), 0.0, error)
    return torch.where(got.isnan() != want.isnan(), torch.inf, error.nan_to_num(torch.inf, torch.inf))


def narrow_errors(got, want, of):
    """In units of the last place of the narrow type, where neither is beyond its largest number by more than an error."""
    digits, least, most = TYPES[of]
    exponent = torch.frexp(want.abs())[1].to(torch.int32).clamp(min=least)
    error = (got.double() - want).abs() / torch.ldexp(torch.ones_like(want), exponent - digits)
    top = 2.0**most * (1 - 2.0**(-digits - 1))
    slack = 2.0**(most - digits - 4)
    over = torch.where(got.isinf(), want >= top - slack, want >= top) & ((want <= top + slack) | got.isinf())
    error = torch.where(over | (got.isnan() & want.isnan()), 0.0, error)
    return torch.where(got.isnan() != want.isnan(), torch.inf, error.nan_to_num(torch.inf, torch.inf))


def kernel(text, fp, of="f32"):
    return texo.compile(PROGRAM.format(of, text), target="cuda" if ARGS.device == "cuda" else None, fp=fp).kernel()


def function(text, fp):
    reference, relaxed, strict = FUNCTIONS[text]
    bound, k, worst, at = relaxed if fp == "relaxed" else strict, kernel(text, fp), 0.0, 0.0
    for x in arguments():
        error = errors(k(x), reference(x.double()))
        most = error.max().item()
        if most > worst:
            worst, at = most, x[error.argmax()].item()
    good = worst <= bound + 2.0**-20
    print(f"{text:20} {fp:8} {worst:8.3f} of {bound:3}  at {float(at).hex():24} {'ok' if good else 'FAILED'}", flush=True)
    return good


def narrow(text, of):
    k, worst, at, bound = kernel(text, "relaxed", of), 0.0, 0.0, 0.5 + 1 / 16
    for x in arguments():
        error = narrow_errors(k(x), NARROW[text](x.double()), of)
        most = error.max().item()
        if most > worst:
            worst, at = most, x[error.argmax()].item()
    good = worst <= bound + 2.0**-12
    print(f"{text:20} {of:8} {worst:8.3f} of {bound:3}  at {float(at).hex():24} {'ok' if good else 'FAILED'}", flush=True)
    return good


def cast(text):
    k, wrong, at = kernel(text, "strict"), 0, ""
    for x in arguments():
        got, want = k(x), CASTS[text](x)
        differs = (got.view(torch.int32) != want.view(torch.int32)) & ~(got.isnan() & want.isnan())
        if differs.any():
            first = differs.int().argmax()
            wrong, at = wrong + differs.sum().item(), at or f"{x[first].item().hex()}: {got[first].item()}"
    print(f"{text:20} {wrong:17} differ  {at:27} {'FAILED' if wrong else 'ok'}", flush=True)
    return not wrong


def floats(sign, exponent, significand):
    bits = (sign << 31) + (exponent << 23) + (significand & 0x7fffff)
    return torch.where(bits < 2**31, bits, bits - 2**32).to(torch.int32).view(torch.float32)


def near_middle(b):
    """Of odd significands of 24 bits, a column of them: 32 dividends a row, whose quotients are next to the middle between two
    floats, and b itself where there is none. 2^e A - (2 M + 1) B = distance, e being 25 where A < B, else 24."""
    distance = torch.arange(-15, 17, 2, device=ARGS.device)
    power, found = torch.ones_like(b), []
    for e in range(1, 26):
        power = power * ((b + 1) // 2) % b  # 2^-e modulo B
        if e >= 24:
            a = torch.remainder(power * distance, b)
            a = torch.where((a < 2**23) & (a + b < 2**24), a + b, a)
            found.append(torch.where((a >= 2**23) & ((a < b) == (e == 25)), a, b.expand_as(a)))
    return torch.cat(found, 1)


def quotient(text, fp):
    """The hard ones at places where mostly nothing overflows, and as many of any bits."""
    k = texo.compile(QUOTIENTS[text], target="cuda" if ARGS.device == "cuda" else None, fp=fp).kernel()
    dice, wrong, at = torch.Generator(device=ARGS.device).manual_seed(1), 0, ""

    def die(low, high, *shape):
        return torch.randint(low, high, shape, generator=dice, device=ARGS.device)

    for start in range(2**23 + 1, 2**24, 2 * ROWS * ARGS.every):
        b = torch.arange(start, min(start + 2 * ROWS * ARGS.every, 2**24), 2 * ARGS.every, device=ARGS.device)[:, None]
        n, place = len(b), die(0, 256, len(b), 1)
        by = floats(die(0, 2, n, 1), place, b)
        hard = floats(die(0, 2, n, 32), (place + die(-60, 61, n, 32)).clamp(0, 255), near_middle(b))
        x = torch.cat((hard, floats(die(0, 2, n, 32), die(0, 256, n, 32), die(0, 2**23, n, 32))), 1)
        want = x / by
        got = k(x, by.expand_as(x).contiguous() if "j" in text.partition("/")[2] else by[:, 0].contiguous())
        differs = (got.view(torch.int32) != want.view(torch.int32)) & ~(got.isnan() & want.isnan())
        if differs.any():
            row, column = divmod(differs.flatten().int().argmax().item(), 64)
            wrong += differs.sum().item()
            at = at or f"{x[row, column].item().hex()} / {by[row, 0].item().hex()}: {got[row, column].item().hex()}"
    print(f"{text:20} {fp:8} {wrong:8} differ  {at:27} {'FAILED' if wrong else 'ok'}", flush=True)
    return not wrong


def main():
    good = True
    for text in FUNCTIONS:
        for fp in ("relaxed", "strict"):
            if re.search(ARGS.only, text):
                good = function(text, fp) and good
    for text in QUOTIENTS:
        for fp in ("relaxed", "strict"):
            if re.search(ARGS.only, text):
                good = quotient(text, fp) and good
    for text in NARROW:
        for of in TYPES:
            if re.search(ARGS.only, text):
                good = narrow(text, of) and good
    for text in CASTS:
        if re.search(ARGS.only, text):
            good = cast(text) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
