"""Every block of README.md is what it says: programs are the files they name, commands print what is
shown. usage: readme.py ROOT TEXO

In a console block each `$ ` line runs, from the root of the tree; digits after a point may differ in
the last places, since a processor with other vectors adds in another order."""
import re
import subprocess
import sys
from pathlib import Path

ROOT, TEXO = Path(sys.argv[1]), sys.argv[2]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
NUMBER = re.compile(r"\d+\.\d+(?:e[+-]\d+)?")
ERROR_FIGURES = re.compile(r"worst at .*")


def alike(a, b):
    a, b = ERROR_FIGURES.sub("worst", a), ERROR_FIGURES.sub("worst", b)
    if NUMBER.sub("#", a) != NUMBER.sub("#", b):
        return False
    pairs = zip(map(float, NUMBER.findall(a)), map(float, NUMBER.findall(b)))
    return all(abs(x - y) <= 1e-5 * max(1, abs(x)) for x, y in pairs)


def check_console(text):
    for part in re.split(r"^\$ ", text, flags=re.M)[1:]:
        command, shown = part.split("\n", 1)
        words = command.split()
        assert words[0] == "build/driver/texo", command
        done = subprocess.run([TEXO, *words[1:]], cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
        got = done.stdout if done.stdout.endswith("\n") else done.stdout + "\n"
        assert alike(shown, got), f"$ {command}\nREADME shows\n{shown}\nand it prints\n{got}"


def main():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    kinds = []
    for m in FENCE.finditer(text):
        kind, body = m.groups()
        kinds.append(kind)
        if kind == "console":
            check_console(body)
        elif kind == "tex":
            name = re.findall(r"`([^`]+\.tex)`:\s*$", text[:m.start()])[-1]
            assert body == (ROOT / name).read_text(encoding="utf-8"), f"{name} is not what README.md shows"
        else:
            for line in body.splitlines():
                target = line.split("#")[0].split()
                assert target[0] == "make" and f"\n{target[1]}:" in (ROOT / "Makefile").read_text(), line
    for link in re.findall(r"\]\((\w[^)]*)\)", FENCE.sub("", text)):
        assert (ROOT / link).exists(), f"README.md links {link}, which is not there"
    assert kinds.count("console") >= 3 and "tex" in kinds, kinds
    print(f"{len(kinds)} blocks")


main()
