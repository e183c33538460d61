"""Runs a page of docs/ as its reader would: each block with a file's name above it is written, each line
after `$ ` is run, and what it prints is what the page shows; … stands for any text.
usage: page.py PAGE BUILD CMAKE PYTHON"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PAGE, BUILD, CMAKE, PYTHON = Path(sys.argv[1]), sys.argv[2], shutil.which(sys.argv[3]), shutil.which(sys.argv[4])
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)


def surroundings(prefix):
    """Where an installed texo is found, as if the prefix were /usr/local."""
    for name, program in (("python3", PYTHON), ("cmake", CMAKE)):
        script = prefix / "bin" / name
        script.write_text(f'#!/bin/sh\nexec "{program}" "$@"\n', encoding="utf-8")
        script.chmod(0o755)
    return {**os.environ, "PATH": f"{prefix}/bin:{os.environ['PATH']}", "LD_LIBRARY_PATH": f"{prefix}/lib",
            "LIBRARY_PATH": f"{prefix}/lib", "C_INCLUDE_PATH": f"{prefix}/include", "CMAKE_PREFIX_PATH": str(prefix),
            "PKG_CONFIG_PATH": f"{prefix}/lib/pkgconfig", "PYTHONPATH": f"{prefix}/share/texo"}


def check(command, shown, folder, env):
    done = subprocess.run(["bash", "-c", command], cwd=folder, env=env, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=120)
    wanted = re.escape(shown).replace("…", ".*")
    good = done.returncode == 0 and re.fullmatch(wanted, done.stdout, re.S)
    assert good, f"$ {command}\n--- the page shows\n{shown}--- and it prints, with {done.returncode}\n{done.stdout}"


def main():
    text, commands, files = PAGE.read_text(encoding="utf-8"), 0, 0
    with tempfile.TemporaryDirectory(prefix="texo-page-") as temporary:
        prefix, folder = Path(temporary, "prefix"), Path(temporary, "work")
        folder.mkdir()
        subprocess.run([CMAKE, "--install", BUILD, "--prefix", prefix], check=True, stdout=subprocess.DEVNULL)
        env = surroundings(prefix)
        for m in FENCE.finditer(text):
            name = re.search(r"^`([\w.]+)`:\n\n\Z", text[:m.start()], re.M)
            if m[1] == "console":
                for part in re.split(r"^\$ ", m[2], flags=re.M)[1:]:
                    command, shown = part.split("\n", 1)
                    check(command, shown, folder, env)
                    commands += 1
            else:
                assert name, f"a block of {m[1]} without a file's name: {m[2][:60]}"
                (folder / name[1]).write_text(m[2], encoding="utf-8")
                files += 1
        assert commands and files
    print(f"{files} files, {commands} commands")


main()
