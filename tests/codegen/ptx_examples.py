"""Every graph of the given files as PTX for every GPU, assembled without a warning.

    ptx_examples.py [--and=SM,...] [--jobs=N] [--registers] [--spills=BYTES] [--spilling=LIST] [--kept=FOLDER] TEXO PTXAS FILE...

The graphs of a file are one text for the assembler. A kernel that is the same as one before but for names is not
assembled again: what was said of that one counts for both. Nothing in it is approximate, left to the
assembler to contract, called, or of those that it gets wrong, and from sm_90 on nothing of memory comes before the wait for other
kernels. Spills are told, and counted in the last line. Exit
status 77, with a word, where there is no PTXAS.

--and names GPUs that texo need not know: where it does not, they get the text of the newest older one
whose text is good for later ones, as they would from the driver. --registers prints how many each kernel
has; --kept names a folder in which what is said of kernels stays for other calls with the same assembler, which do not assemble
their like again; --spills is the most that a kernel may spill; --spilling names a file of lines "COUNT FOLDER/FILE": how many kernels
of those files may spill, for all GPUs together, and none of the others.
"""
import argparse
import collections
import concurrent.futures
import contextlib
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import zlib

HEADER = re.compile(r"^\.(version|target|address_size) .*$", re.M)
ENTRY = re.compile(r"^\.visible \.entry (\w+)\(.*?^\}$", re.M | re.S)
# what is numbered through a text: labels, rings of shared memory, frames
NUMBERED = re.compile(r"(\$L__BB|\bring|\b__local_depot)\d+")
# approximate, contracted by the assembler as it likes, called, or got wrong by it (codegen/nvptx_extremes.c)
# each alternative begins with a letter of few, so that the search need not try every place
WRONG = re.compile(r"\.approx|max\.[su](16|32)\b|min\.[su](16|32)\b|\.ftz|add\.f(32|64)\b|sub\.f(32|64)\b|mul\.f(32|64)\b|\n\s*call\b|\.extern (?!\.shared )|\.func\b")
# what waits for the kernels before, whose results it may read, and what reads or writes them
WAITS = "griddepcontrol.wait;"
ACCESS = re.compile(r"^\s*(?:@!?%\w+ )?(?:(?:ld|st|atom|red)[\w.:]*\.global|cp\.async|prefetch\.global)[\w.:]*", re.M)
# a register where it is used
USED = re.compile(r"%\w+")
# but TIR's ex2 and rcp, whose errors its passes count, and what exact quotients and roots begin with (codegen/nvptx_quotients.c,
# nvptx_exact.c)
STARTS = re.compile(r"(ex2|rcp|rsqrt)\.approx\.ftz\.f32|(rcp|rsqrt)\.approx\.ftz\.f64")
# graphs in fast mode may approximate, by what passes/tile/approximate.c writes
FAST = re.compile(r"^\s*@fp\(fast\)\s*graph\s+(\w+)", re.M)
NEAR = re.compile(r"(ex2|rcp)\.approx\.ftz\.f32|(rcp|rsqrt)\.approx\.ftz\.f64|(lg2|sqrt|rsqrt|tanh|sin|cos)\.approx\.f32|div\.full(\.ftz)?\.f32|mul\.rn\.ftz\.f32")
# a loop that stays one: a whole quotient or root in it is for so many
ROLLED, TURNS = '.pragma "nounroll"', 8
# 1 - 2 r
TANH_END = ", 0fC0000000, 0f3F800000;"


# what the assembler's -v says of a kernel: its name, its spills, its registers
SAID = re.compile(r"Function properties for (\S+)\n.* (\d+) bytes spill stores.*\n.*Used (\d+) registers")


def allowed(file):
    """{folder/file: kernels that may spill}"""
    lines = [line.split("#")[0].split() for line in pathlib.Path(file).read_text().splitlines()]
    return {name: int(n) for n, name in filter(None, lines)}


def arguments():
    p = argparse.ArgumentParser()
    p.add_argument("--and", dest="more", default="", type=lambda s: s.split(","))
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("--registers", action="store_true")
    p.add_argument("--spills", type=int)
    p.add_argument("--spilling", type=allowed)
    p.add_argument("--kept", type=pathlib.Path)
    p.add_argument("--in-turn", nargs="*", default=[], help="files that are assembled for one GPU each, by their names")
    p.add_argument("--for", dest="chosen", nargs="*", default=[], help="GPU=FILE: files that are assembled for that GPU alone")
    p.add_argument("texo")
    p.add_argument("ptxas")
    p.add_argument("files", nargs="+")
    return p.parse_args()


def run(*args):
    done = subprocess.run(args, capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise RuntimeError(f"{' '.join(args)}: exit {done.returncode}\n{done.stderr}")
    return done.stdout, done.stderr


def name_of(file):
    return "/".join(pathlib.Path(file).parts[-2:])


def graphs(file):
    text = pathlib.Path(file).read_text()
    return re.findall(r"^\s*graph\s+(\w+)", text, re.M)


def version(text):
    return [int(n) for n in re.search(r"^\.version (\d+)\.(\d+)", text, re.M).groups()]


def ptx(file, target):
    """One text: the header of the latest version, the entries of all."""
    texts = [run(ARGS.texo, "run", file, f"--graph={g}", f"--target=cuda:{target}", "--emit=ptx", "-q")[0]
             for g in graphs(file)]
    texts.sort(key=version, reverse=True)
    return texts[0] + "".join(HEADER.sub("", t) for t in texts[1:]) if texts else None


def number_of(target):
    return int(re.search(r"\d+", target)[0])


def targets():
    """(GPU, the GPU whose text it gets) of all."""
    known = [t[5:] for t in json.loads(run(ARGS.texo, "targets", "--json")[0])["targets"] if t.startswith("cuda:")]
    number = {t: number_of(t) for t in (*known, *filter(None, ARGS.more))}
    lasting = [t for t in known if t[-1].isdigit()]
    older = {t: [k for k in lasting if number[k] <= number[t]] for t in number}
    return [(t, t if t in known else max(older[t], key=number.get)) for t in number]


def plain(entry, name):
    """The digest of a kernel's text without names."""
    text = NUMBERED.sub(r"\1", re.sub(rf"\b{name}(?=_|\b)", "", re.sub("//.*", "", entry)))
    return hashlib.sha256(text.encode()).digest()


def is_new(kernel):
    """Whether none like it is assembled yet, or about to be."""
    with LOCK:
        new = kernel not in MET
        MET.add(kernel)
    return new


def kept_of(kernel):
    """The file of what was said of a kernel."""
    target, digest = kernel
    return ARGS.kept / f"{target}.{digest.hex()}"


def said_before(kernel):
    """(bytes spilled, registers), or None where no call has kept it."""
    try:
        return tuple(map(int, kept_of(kernel).read_text().split())) if ARGS.kept else None
    except FileNotFoundError:
        return None


def keep(said):
    """As far as nobody clears the folder meanwhile, as another ctest does."""
    if not ARGS.kept:
        return
    with contextlib.suppress(FileNotFoundError):
        ARGS.kept.mkdir(parents=True, exist_ok=True)
        for kernel, numbers in said.items():
            part = kept_of(kernel).with_suffix(f".{os.getpid()}.{threading.get_ident()}")
            part.write_text("{} {}".format(*numbers))
            part.replace(kept_of(kernel))


def short_tanhs(kernel):
    """The approximations that are no start of a quotient's: of 1 - 2 / (power + 1), and nothing else (passes/tile/expand_narrow.c)."""
    if "ex2.approx" not in kernel or "rcp.approx" not in kernel:
        return set()
    powers = set(re.findall(r"\bex2\.approx\.ftz\.f32\s+(%\w+),", kernel))
    sums = {s for s, a in re.findall(r"\badd\.rn\.f32\s+(%\w+), (%\w+), 0f3F800000;", kernel) if a in powers}
    reciprocals = {r for r, a in re.findall(r"\brcp\.approx\.ftz\.f32\s+(%\w+), (%\w+);", kernel) if a in sums}
    taken = re.findall(rf"\bfma\.rn\.f32\s+%\w+, (%\w+){TANH_END}", kernel)
    named = collections.Counter(USED.findall(kernel)) if reciprocals else {}
    return {r for r in taken if r in reciprocals and named[r] == 2}


# an operation, where it goes to, and its operands; the same of several registers at once
DEFINED = re.compile(r"^\s*(?:@!?%\w+\s+)?([a-z][\w.]*)\s+(%\w+), ([^;{}]*);", re.M)
SEVERAL = re.compile(r"^\s*(?:@!?%\w+\s+)?[a-z][\w.]*\s+\{([^}]*)\},", re.M)


class Signs:
    """What the text of a kernel shows of the signs of its numbers: of a register that is defined once, by operations that
    have one of their operands' signs, or by a selection of a number and its negation. NaN is neither above nor below."""

    def __init__(self, kernel):
        self.by = {}
        for op, to, operands in DEFINED.findall(kernel):
            self.by.setdefault(to, []).append((op.split("."), operands.split(", ")))
        for to in (r for group in SEVERAL.findall(kernel) for r in group.split(", ")):
            self.by.setdefault(to, []).append(([""], ()))

    def of(self, a):
        by = self.by.get(a, ())
        return by[0] if len(by) == 1 else ([""], ())

    def is_negation(self, a, b):
        op, operands = self.of(a)
        return op[0] == "neg" and operands[0] == b

    def is_other_way(self, arms, condition):
        """-1 where the selection is the arm that is not above 0, 1 where it is the other, else 0."""
        op, operands = self.of(condition)
        if op[:2] not in (["setp", "lt"], ["setp", "gt"]) or operands[1] != "0f00000000":
            return 0
        below = -1 if op[1] == "lt" else 1
        a, b = arms
        if operands[0] == a and self.is_negation(b, a):
            return below
        return -below if operands[0] == b and self.is_negation(a, b) else 0

    def has(self, a, sign, depth=8):
        """Whether a is known to be at most 0 (sign -1) or at least 0 (1)."""
        if a.startswith("0f"):
            return a in ("0f00000000", "0f80000000") or (int(a[2:], 16) >> 31 == (sign < 0) and int(a[2:], 16) & 0x7FFFFFFF <= 0x7F800000)
        op, x = self.of(a)
        if depth == 0 or "f32" not in op:
            return False
        def has(k, s):
            return self.has(x[k], s, depth - 1)
        if op[0] in ("abs", "ex2"):
            return sign > 0
        if op[0] == "neg":
            return has(0, -sign)
        if op[0] == "mul" and x[0] == x[1]:
            return sign > 0
        if op[0] in ("mul", "fma"):
            product = any(has(0, s) and has(1, s * sign) for s in (-1, 1))
            return product and (op[0] == "mul" or has(2, sign))
        if op[0] in ("min", "max"):
            return (any if (op[0] == "min") == (sign < 0) else all)(has(k, sign) for k in range(2))
        if op[0] == "selp":
            return self.is_other_way(x[:2], x[2]) == sign or (has(0, sign) and has(1, sign))
        return op[0] == "add" and has(0, sign) and has(1, sign)


def middle_ones(kernel):
    """Those that start a quotient by the sum of a number and a power, the square of its root, where the power is known to be
    at most 1: nothing asks for a whole one then (passes/tile/narrow_divide.c)."""
    if "rcp.approx" not in kernel or "ex2.approx" not in kernel:
        return set()
    signs = Signs(kernel)
    roots = {r for r, a in re.findall(r"\bex2\.approx\.ftz\.f32\s+(%\w+), (%\w+);", kernel) if signs.has(a, -1)}
    powers = {p for p, a, b in re.findall(r"\bmul\.rn\.f32\s+(%\w+), (%\w+), (%\w+);", kernel) if a == b and a in roots}
    sums = {s for s, a in re.findall(r"\badd\.rn\.f32\s+(%\w+), (%\w+), 0f[0-9A-F]{8};", kernel) if a in powers}
    return {r for r, a in re.findall(r"\brcp\.approx\.ftz\.f32\s+(%\w+), (%\w+);", kernel) if a in sums}


def exact_ones(text, fast):
    """The text without the kernels of these graphs, of which nothing else must be approximate."""
    def kept(m):
        if m[1].rsplit("_", 2)[0] not in fast:
            return m[0]
        wrong = WRONG.search(NEAR.sub("", m[0]))
        return wrong[0] if wrong else ""
    return ENTRY.sub(kept, text) if fast else text


def early_access(kernel):
    """What a kernel of sm_90 and later has of memory before it waits for those launched before it; None: nothing."""
    before, waits, _ = kernel.partition(WAITS)
    found = ACCESS.search(before)
    return found[0].strip() if found else None if waits else "no wait"


def check(file, origin, text, fast=()):
    for name, kernel in ((m[1], m[0]) for m in ENTRY.finditer(text) if number_of(origin) >= 90):
        if early_access(kernel):
            raise RuntimeError(f"{file}: {name} for {origin} has {early_access(kernel)} before it waits for the kernels before it")
    text = exact_ones(text, fast)
    wrong = WRONG.search(STARTS.sub("", text))
    if wrong:
        raise RuntimeError(f"{file}: the text for {origin} has {wrong.group(0).strip()!r} in it")
    if "rcp.approx" not in text and "rsqrt.approx" not in text:
        return
    kernels = text.split(".entry")[1:]
    short = [short_tanhs(kernel) for kernel in kernels]
    for kernel, own in zip(kernels, short):
        # tanh's quotients of 2 need no whole one: what is left of 2 is in the text
        other = len(own) + len(middle_ones(kernel)) + len(re.findall(r"\bfma\.rn\.f32\s+%\w+, %\w+, %\w+, 0f40000000;", kernel))
        turns = TURNS if ROLLED in kernel else 1
        for start, whole, more in (("rcp.approx.ftz.f32", r"\b(?:(?:div|rcp)\.rn\.f32|rcp\.approx\.ftz\.f64)", other),
                                   ("rsqrt.approx.ftz.f32", r"\b(?:sqrt\.rn\.f32|rsqrt\.approx\.ftz\.f64)", 0)):
            if kernel.count(start) > turns * len(re.findall(whole, kernel)) + more:
                raise RuntimeError(f"{file}: the text for {origin} has more of {start} than of {whole}")
    for kernel, own in zip(kernels, short):
        begun = set(re.findall(r"rcp\.approx\.ftz\.f32\s+(%\w+),", kernel)) - own
        for line in kernel.splitlines() if begun else ():
            name, _, rest = line.strip().partition(" ")
            # halves are products, so what corrects one has no 2 in it
            corrects = name == "fma.rn.f32" and TANH_END not in rest
            if not begun.isdisjoint(USED.findall(rest.partition(",")[2])) and not corrects:
                raise RuntimeError(f"{file}: the text for {origin} takes a reciprocal's approximation for the whole: {line.strip()}")


def assemble(case):
    """(kernels, {kernel's name: GPU and digest}, {GPU and digest: (bytes spilled, registers)} of the new ones)"""
    file, target, origin, folder = case
    text = ptx(file, origin)
    if text is None:
        return 0, {}, {}
    check(file, origin, text, FAST.findall(pathlib.Path(file).read_text()))
    kernels = {m[1]: (target, plain(m[0], m[1])) for m in ENTRY.finditer(text)}
    new = {name for name, kernel in kernels.items() if is_new(kernel)}
    before = {kernels[name]: numbers for name in new if (numbers := said_before(kernels[name]))}
    new = {name for name in new if kernels[name] not in before}
    if not new:
        return text.count(".entry "), kernels, before
    source = pathlib.Path(folder) / f"{pathlib.Path(file).stem}.{target}.ptx"
    source.write_text(ENTRY.sub(lambda m: m[0] if m[1] in new else "", text))
    _, said = run(ARGS.ptxas, f"-arch={target}", "-v", "--warning-as-error", "-o", "/dev/null", str(source))
    now = {kernels[m[1]]: (int(m[2]), int(m[3])) for m in SAID.finditer(said)}
    keep(now)
    return text.count(".entry "), kernels, before | now


def table(all_targets, rows):
    """Registers by kernel and GPU."""
    used = {}
    for target, name, _, registers, _ in rows:
        used.setdefault(name, {})[target] = registers
    print(f"{'registers':32}" + "".join(f" {t:>8}" for t in all_targets))
    # a name ends in the numbers of its graph and kernel
    for name, by in sorted(used.items(), key=lambda kv: (re.sub(r"[\d_]*$", "", kv[0]), [int(n) for n in re.findall(r"\d+", kv[0])])):
        print(f"{name:32}" + "".join(f" {by.get(t, '-'):>8}" for t in all_targets))


def more_than_allowed(spilled):
    """Whether a file has more kernels that spill than are listed for it; one that has fewer is told as well."""
    counts = collections.Counter(r[4] for r in spilled)
    for name in sorted(counts.keys() | ARGS.spilling.keys()):
        if counts[name] != ARGS.spilling.get(name, 0):
            print(f"{name}: {counts[name]} kernels spill, {ARGS.spilling.get(name, 0)} may")
    return any(n > ARGS.spilling.get(name, 0) for name, n in counts.items())


def main():
    if not os.access(ARGS.ptxas, os.X_OK):
        print("skipped: there is no ptxas")
        return 77
    pairs, entries, all_kernels, said = targets(), 0, [], {}
    with tempfile.TemporaryDirectory(prefix="texo-ptx-") as folder, concurrent.futures.ThreadPoolExecutor(ARGS.jobs) as pool:
        cases = [(f, t, origin, folder) for t, origin in pairs for f in ARGS.files]
        cases += [(f, *pairs[zlib.crc32(name_of(f).encode()) % len(pairs)], folder) for f in ARGS.in_turn]
        origin_of = dict(pairs)
        cases += [(f, t, origin_of[t], folder) for t, f in (chosen.split("=", 1) for chosen in ARGS.chosen)]
        for (file, target, *_), (n, kernels, new) in zip(cases, pool.map(assemble, cases)):
            entries += n
            all_kernels += [(target, name, kernel, name_of(file)) for name, kernel in kernels.items()]
            said |= new
    rows = [(target, name, *said[kernel], file) for target, name, kernel, file in all_kernels if kernel in said]
    names = [t for t, _ in pairs]
    if ARGS.registers:
        table(names, rows)
    spilled = [r for r in rows if r[2]]
    for target, name, n, _, _ in spilled:
        print(f"{target} {name}: {n} bytes spilled")
    print(f"{entries} entries for {', '.join(names)} assembled, {entries - len(said)} like others, {len(spilled)} with spills")
    if entries != len(rows):
        print(f"the assembler spoke of {len(rows)} only")
        return 1
    too_much = ARGS.spills is not None and any(r[2] > ARGS.spills for r in spilled)
    too_much |= ARGS.spilling is not None and more_than_allowed(spilled)
    return 1 if not entries or not names or too_much else 0


if __name__ == "__main__":
    ARGS, MET, LOCK = arguments(), set(), threading.Lock()
    sys.exit(main())
