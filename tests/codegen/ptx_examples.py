"""Every graph of the given files as PTX for every GPU, assembled without a warning.

    ptx_examples.py TEXO PTXAS FILE...

The graphs of a file are one text for the assembler. Nothing in it is approximate, left to the
assembler to contract, called, or of those that it gets wrong. Spills are told, and counted in the last line. Exit
status 77, with a word, where there is no PTXAS.
"""
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

TEXO, PTXAS, FILES = sys.argv[1], sys.argv[2], sys.argv[3:]
HEADER = re.compile(r"^\.(version|target|address_size) .*$", re.M)
# approximate, contracted by the assembler as it likes, called, or got wrong by it (codegen/nvptx_extremes.c)
WRONG = re.compile(r"\.approx|\b(max|min)\.[su](16|32)\b|\.ftz|\b(add|sub|mul)\.f(32|64)\b|^\s*call\b|\.extern|\.func\b", re.M)


def run(*args):
    done = subprocess.run(args, capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise RuntimeError(f"{' '.join(args)}: exit {done.returncode}\n{done.stderr}")
    return done.stdout, done.stderr


def graphs(file):
    text = pathlib.Path(file).read_text()
    return re.findall(r"^\s*graph\s+(\w+)", text, re.M)


def ptx(file, target):
    """One text: the header of the first graph, the entries of all."""
    texts = [run(TEXO, "run", file, f"--graph={g}", f"--target=cuda:{target}", "--emit=ptx", "-q")[0] for g in graphs(file)]
    return texts[0] + "".join(HEADER.sub("", t) for t in texts[1:]) if texts else None


def assemble(case):
    file, target, folder = case
    text = ptx(file, target)
    if text is None:
        return 0, 0, []
    wrong = WRONG.search(text)
    if wrong:
        raise RuntimeError(f"{file}: the text for {target} has {wrong.group(0).strip()!r} in it")
    source = pathlib.Path(folder) / f"{pathlib.Path(file).stem}.{target}.ptx"
    source.write_text(text)
    _, said = run(PTXAS, f"-arch={target}", "-v", "--warning-as-error", "-o", "/dev/null", str(source))
    spilled = re.findall(r"Function properties for (\S+)\n.* ([1-9]\d*) bytes spill stores", said)
    return text.count(".entry "), len(spilled), [f"{target} {name}: {n} bytes spilled" for name, n in spilled]


def main():
    if not os.access(PTXAS, os.X_OK):
        print("skipped: there is no ptxas")
        return 77
    targets = [t[5:] for t in json.loads(run(TEXO, "targets", "--json")[0])["targets"] if t.startswith("cuda:")]
    entries = spills = 0
    with tempfile.TemporaryDirectory(prefix="texo-ptx-") as folder, concurrent.futures.ThreadPoolExecutor(2) as pool:
        for n, s, said in pool.map(assemble, [(f, t, folder) for t in targets for f in FILES]):
            entries, spills = entries + n, spills + s
            for line in said:
                print(line)
    print(f"{entries} entries for {', '.join(targets)} assembled, {spills} with spills")
    return 0 if entries and targets else 1


if __name__ == "__main__":
    sys.exit(main())
