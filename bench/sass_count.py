#!/usr/bin/env python3
"""Instructions an element of the loops of a GPU kernel. usage: sass_count.py FILE.cubin [--bytes=B] [--kernel=REGEX]

FILE.cubin is what `texo build --emit=cubin` or ptxas writes. One line a loop that accesses global memory:
its instructions, the bytes that a thread loads and stores in one turn, the instructions a byte and, with
--bytes, those of an element that moves so many bytes. Slow paths that a loop calls lie outside it and are
not counted. At the rate of its memory an H100 issues about 9 instructions of a thread for every byte:
132 SMs of 4 warps a clock at 1.7 GHz against 3.35 TB/s. CUOBJDUMP names the disassembler."""
import argparse
import collections
import os
import re
import subprocess

LINE = re.compile(r"/\*([0-9a-f]{4,})\*/\s+(?:@!?U?P\w+\s+)?([A-Z0-9_.]+)\s*([^;]*);")
WIDTH = {"64": 8, "128": 16, "U8": 1, "S8": 1, "U16": 2, "S16": 2}


def access_bytes(op):
    """What LDG or STG moves, in bytes of one thread; 0 for any other."""
    name, *rest = op.split(".")
    if name not in ("LDG", "STG"):
        return 0
    return next((WIDTH[r] for r in rest if r in WIDTH), 4)


def functions(text):
    """Pairs of a name and its (address, operation, operands)."""
    for part in text.split("Function : ")[1:]:
        name = part.split(None, 1)[0]
        yield name, [(int(m[1], 16), m[2], m[3]) for m in LINE.finditer(part)]


def loops(code):
    """The innermost ranges that end in a jump back to their first address."""
    found = []
    for at, op, rest in code:
        target = re.search(r"0x([0-9a-f]+)", rest)
        if op.startswith("BRA") and target and int(target[1], 16) < at:
            found.append((int(target[1], 16), at))
    return [a for a in found if not any(b != a and a[0] <= b[0] and b[1] <= a[1] for b in found)]


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("cubin")
    p.add_argument("--bytes", type=float)
    p.add_argument("--kernel", default="")
    p.add_argument("--mix", action="store_true", help="how often each operation stands in the loop")
    a = p.parse_args()
    tool = os.environ.get("CUOBJDUMP", "cuobjdump")
    text = subprocess.run([tool, "-sass", a.cubin], stdout=subprocess.PIPE, text=True, check=True).stdout
    for name, code in functions(text):
        if not re.search(a.kernel, name):
            continue
        for lo, hi in loops(code):
            body = [c for c in code if lo <= c[0] <= hi]
            moved = sum(access_bytes(op) for _, op, _ in body)
            if not moved:
                continue
            row = f"{name:32} {lo:#07x} {len(body):5} instructions {moved:4} bytes {len(body) / moved:6.2f} a byte"
            if a.bytes:
                row += f" {len(body) * a.bytes / moved:7.1f} an element"
            print(row)
            if a.mix:
                mix = collections.Counter(op.split(".")[0] for _, op, _ in body)
                print("  " + " ".join(f"{op}:{n}" for op, n in mix.most_common(24)))


if __name__ == "__main__":
    main()
