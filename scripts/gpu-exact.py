#!/usr/bin/env python3
"""Functions and casts of f32 on every argument there is: 2^32 numbers, on an NVIDIA GPU, against float64 of torch; and
quotients by every odd significand, of what is next to the middle between two floats and of any bits, against torch's.
Prints a line for each, with the largest error in units of the last place and where it is; in fast mode, whose functions and
quotients are the GPU's own units (passes/tile/approximate.def), also the largest part of what the mode allows that an error is.

    gpu-exact.py [TEXO] [--device=cpu] [--every=N] [--only=REGEX]

--every takes one argument of N, or divisor; --device=cpu computes there. TEXO is where the library lies beside, as for
gpu-library.py. Exit 1 when an error is beyond its bound, 77 without torch or a GPU."""
import itertools
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
# what fast mode allows (ir/eval_math.c): units of the last place, so many more for each unit of |x|, and an absolute error.
# 2^-126 is always allowed: what is smaller may be 0
FAST = {
    "exp(x[i])": (2, 1, 0),
    "exp2(x[i])": (2, 1, 0),
    "expm1(x[i])": (8, 0, 2.0**-21),
    "log(x[i])": (4, 0, 2.0**-21),
    "log2(x[i])": (4, 0, 2.0**-21),
    "log1p(x[i])": (8, 0, 2.0**-21),
    "tanh(x[i])": (8192, 0, 0),
    "erf(x[i])": (8, 0, 0),
    "sin(x[i])": (8, 0, 2.0**-20),
    "cos(x[i])": (8, 0, 2.0**-20),
    "rsqrt(x[i])": (2, 0, 0),
    "sqrt(x[i])": (2, 0, 0),
    "1 / x[i]": (2, 0, 0),
    "x[i] / 3": (2, 0, 0),
    **{f"x[i] ** {n}": (16, 0, 0) for n in (2, 7, 17, -1, -2, -3, -4, -5, -6, -7, -8, -9, -13)},
}
POWER = 16  # units that a power may be wrong by, of which a number is divided
OVER_POWERS = [(1, 2), (1, 4), (2, 7), (1.5, 7), (1, 12)]
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
# in fast mode these are asked for whatever --every says
SPECIAL = torch.tensor([s * v for v in (
    0.0, 1.0, 2.0, 0.5, 3.0, torch.inf, torch.nan, 2.0**-149, 1.5 * 2.0**-148, 2.0**-126, 2.0**-126 - 2.0**-149, 2.0**-127, 2.0**126,
    1.5 * 2.0**126, 2.0**127, 2.0**128 - 2.0**104, 1 + 2.0**-23, 1 - 2.0**-24, 2.0**64, 2.0**-64, 2.0**18, 2.0**-18, 2.0**-63, 3.14159274,
    2.0**17, 2.0**17 + 0.5, 1e10, 88.7, 88.73, 89.5, 104.0, 127.9, 128.0, 126.5, 149.5, 1e-5) for s in (1, -1)], dtype=torch.float32)
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


def unit_of(want):
    """Of f32's last place; that of its largest number beyond."""
    return torch.ldexp(torch.ones_like(want), torch.frexp(want.abs())[1].to(torch.int32).clamp(min=-125, max=128) - 24)


def parts(got, want, allowed):
    """The part of what is allowed that the error is. Infinite where what is exact is not met: NaN, infinities, and the sign of
    a 0 of which nothing is lost. What may be rounded to infinity may be the largest number too, and the other way round."""
    got = got.double()
    top = 2.0**128 * (1 - 2.0**-25)
    may = (want.abs() + allowed >= top) & ~want.isinf() & (got.isinf() | (got.abs() >= top - allowed - 2.0**104)) & (torch.signbit(got) == torch.signbit(want))
    part = torch.where(may, 0.0, (got - want).abs() / allowed)
    exact = want.isinf() | (allowed == 0)
    same = (got == want) & (torch.signbit(got) == torch.signbit(want))
    part = torch.where(exact, torch.where(same, 0.0, torch.inf), part)
    part = torch.where(got.isnan() & want.isnan(), 0.0, part)
    return torch.where(got.isnan() != want.isnan(), torch.inf, part.nan_to_num(torch.inf, torch.inf))


class Worst:
    """The largest part of what is allowed, the largest error in units of the last place where the result is normal, and where."""

    def __init__(self):
        self.part = self.units = self.at = 0.0

    def take(self, x, got, want, allowed):
        part = parts(got, want, allowed)
        most = part.max().item()
        if most > self.part:
            self.part, self.at = most, x.flatten()[part.argmax()].item()
        normal = (want.abs() >= 2.0**-126) & (want.abs() < 2.0**127)
        units = torch.where(normal, (got.double() - want).abs() / unit_of(want), 0.0)
        self.units = max(self.units, units.nan_to_num(torch.inf, torch.inf).max().item())

    def told(self, text):
        good = self.part <= 1
        print(f"{text:20} fast     {self.part:8.3f} of what is allowed, {self.units:.3f} ulp  at {float(self.at).hex():24} {'ok' if good else 'FAILED'}", flush=True)
        return good


def fast(text):
    """The special values are among the arguments with every step of --every, the first ones: 0, and the rest beside them."""
    units, growth, absolute = FAST[text]
    power = re.fullmatch(r"x\[i\] \*\* (-?\d+)", text)
    reference = (lambda x: x ** int(power[1])) if power else FUNCTIONS[text][0]
    k, worst = kernel(text, "fast"), Worst()
    for x in itertools.chain([SPECIAL.to(ARGS.device)], arguments()):
        want = reference(x.double())
        allowed = (units + growth * x.double().abs().clamp(max=2.0**20)) * unit_of(want) + absolute + 2.0**-126
        # of 0 and infinities the values are exact, and of 1 a power
        exact = (x == 0) | x.isinf() | ((x == 1) if power else False)
        worst.take(x, k(x), want, torch.where(exact & ((want == 0) | (x == 1 if power else False)), 0.0, allowed))
    return worst.told(text)


def fast_over_power(c, n):
    """A number by a power, which may be wrong first: 0 where that surely overflows, anything where it may be 0."""
    k, worst = kernel(f"{c} / x[i] ** {n}", "fast"), Worst()
    for x in itertools.chain([SPECIAL.to(ARGS.device)], arguments()):
        power = x.double() ** n
        off = POWER * unit_of(power) + 2.0**-126
        over = (power.abs() - off >= 2.0**128 * (1 - 2.0**-25))
        power = torch.where(over, torch.copysign(torch.full_like(power, torch.inf), power), power)
        want, low = c / power, power.abs() - off
        allowed = want.abs() * off / low + 2 * unit_of(want) + 2.0**-126
        allowed = torch.where(over | (power == 0), 0.0, allowed)
        unknown = (low <= 0) & (x != 0) | (power.abs() + off >= 2.0**128 * (1 - 2.0**-25)) & ~over
        got = k(x)
        worst.take(x, torch.where(unknown, want.float(), got), torch.where(unknown, want.float().double(), want), allowed.clamp(min=0))
    return worst.told(f"{c} / x[i] ** {n}")


def fast_quotient(text):
    """Of any bits, and by powers of two, which are half an ulp off at most."""
    k, worst = texo.compile(QUOTIENTS[text], target="cuda" if ARGS.device == "cuda" else None, fp="fast").kernel(), Worst()
    dice = torch.Generator(device=ARGS.device).manual_seed(2)
    for turn in range(max(2, 128 // ARGS.every)):
        bits = [torch.randint(0, 2**31, (2, n, m), generator=dice, device=ARGS.device) for n, m in ((ROWS, 64), (ROWS, 1))]
        x, b = ((2 * v[0] + v[1] % 2 - 2**31).to(torch.int32).view(torch.float32) for v in bits)
        if turn % 2:
            b = (b.view(torch.int32) & -(2**23)).view(torch.float32)
        want = x.double() / b.double()
        allowed = (0.5 if turn % 2 else 2) * unit_of(want) + 2.0**-126
        got = k(x, b.expand_as(x).contiguous() if "j" in text.partition("/")[2] else b[:, 0].contiguous())
        worst.take(x, got, want, torch.where(b.isinf() | (x == 0), 0.0, allowed))
    return worst.told(text)


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
    for text in FAST:
        if re.search(ARGS.only, text):
            good = fast(text) and good
    for c, n in OVER_POWERS:
        if re.search(ARGS.only, f"{c} / x[i] ** {n}"):
            good = fast_over_power(c, n) and good
    for text in QUOTIENTS:
        if re.search(ARGS.only, text):
            good = fast_quotient(text) and good
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
