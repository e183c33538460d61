"""The rules of CONTRIBUTING.md that a program can check. usage: house_rules.py ROOT"""
import re
import sys
from pathlib import Path

FOLDERS = ("include", "ir", "frontend", "passes", "codegen", "runtime", "driver")
MAX_FILE, MAX_FUNCTION = 800, 80
EMPTY_NAMES = re.compile(r"(^|_)(util|utils|helper|helpers|misc|common)(_|$)")


def functions(lines):
    """(name, length) of each definition: a name at the start of a line, braces at the margin."""
    name, start = None, 0
    for k, line in enumerate(lines):
        m = re.match(r"^(\w+)\(", line)
        if m:
            name = m.group(1)
        if line == "{":
            start = k
        if line == "}" and name:
            yield name, k - start - 1
            name = None


def check(path):
    lines = path.read_text(encoding="utf-8").split("\n")
    if path.suffix in (".c", ".h") and len(lines) > MAX_FILE:
        yield f"{len(lines)} lines"
    if EMPTY_NAMES.search(path.stem):
        yield "a file name that says nothing"
    if path.suffix in (".c", ".h") and not lines[0].startswith("/*"):
        yield "does not open with what it is"
    for k, line in enumerate(lines):
        if re.search(r"\b(TODO|FIXME|XXX|HACK)\b", line):
            yield f"line {k + 1}: unfinished work"
        if path.suffix in (".c", ".h") and line.rstrip() != line:
            yield f"line {k + 1}: blanks at its end"
    if path.suffix == ".c":
        for name, n in functions(lines):
            if n > MAX_FUNCTION:
                yield f"{name}: {n} lines"
            if EMPTY_NAMES.search(name) and not name.startswith("common_"):  # common_type says enough
                yield f"{name}: a name that says nothing"


def main():
    root = Path(sys.argv[1])
    files = [f for d in FOLDERS for f in sorted((root / d).rglob("*")) if f.suffix in (".c", ".h", ".y", ".l")]
    bad = [f"{f.relative_to(root)}: {why}" for f in files for why in check(f)]
    print("\n".join(bad))
    print(f"{len(files)} files, {len(bad)} breaches")
    return 1 if bad or not files else 0


sys.exit(main())
