"""docs/five-minutes.md, done as it says, in an empty folder.

    page_test.py TEXO PAGE

A program follows a paragraph that ends with its name, as `main.c`:; each `$ ` line of a console block runs and
prints what is shown, but for the last places of numbers and the figures of errors."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
NUMBER = re.compile(r"\d+\.\d+(?:e[+-]\d+)?")


def alike(a, b):
    a, b = (re.sub(r"worst at .*", "worst", t) for t in (a, b))
    pairs = zip(map(float, NUMBER.findall(a)), map(float, NUMBER.findall(b)))
    return NUMBER.sub("#", a) == NUMBER.sub("#", b) and all(abs(x - y) <= 1e-5 * max(1, abs(x)) for x, y in pairs)


def run_console(block, folder, env):
    parts = re.split(r"^\$ ", block, flags=re.M)[1:]
    for part in parts:
        command, shown = part.split("\n", 1)
        done = subprocess.run(command.split(), cwd=folder, env=env, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=120)
        assert done.returncode == 0 and alike(shown, done.stdout), \
            f"$ {command}\nexit {done.returncode}; the page shows\n{shown}\nand it prints\n{done.stdout}"
    return len(parts)


def main():
    texo, page = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
    text, commands, files = page.read_text(encoding="utf-8"), 0, 0
    with tempfile.TemporaryDirectory() as folder:
        env = {"PATH": f"{folder}/bin:{os.environ['PATH']}"}
        os.mkdir(f"{folder}/bin")
        os.symlink(texo, f"{folder}/bin/texo")
        assert shutil.which("texo", path=env["PATH"])
        for m in FENCE.finditer(text):
            kind, body = m.groups()
            if kind == "console":
                commands += run_console(body, folder, env)
                continue
            name = re.search(r"`([\w.]+)`:\s*$", text[:m.start()]).group(1)
            pathlib.Path(folder, name).write_text(body)
            files += 1
    for link in re.findall(r"\]\(([^)]+)\)", FENCE.sub("", text)):
        assert (page.parent / link).exists(), f"a link to {link}, which is not there"
    assert commands >= 8 and files >= 3, (commands, files)
    print(f"{files} files, {commands} commands")


main()
