#!/usr/bin/env python3
"""Where the time until a first launch goes, row by row of the GPU suite, on a machine without a GPU. usage: cold.py --build DIR
--driver FOLDER [--only REGEX] [--target sm_90a] [--times N] [--dump FOLDER] [--json PATH]

FOLDER has a libcuda.so.1 that does nothing, which tests/runtime builds as fake_cuda: a prepare at the row's sizes makes the code
of the kernels that such a launch takes, and no other, and hands it to the driver, whose texts are what is counted here. Columns,
milliseconds, the least of N:
  texo       from the text of the graph to its kernels' tile IR
  code       from there to PTX, LLVM's part and the passes that come late
  assembler  ptxas, less what it takes for a kernel that does nothing, some 15
  KB, lines  of PTX: its bytes and its instructions; labels: where basic blocks begin
A driver assembles in its own process, one kernel at a time, and takes about as long as ptxas."""
import argparse
import ctypes
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import gpu_cases
import signature

SOURCE = Path(__file__).resolve().parent.parent
CODES = {"f64": (2, 64), "f32": (2, 32), "f16": (2, 16), "bf16": (4, 16), "f8e4m3": (10, 8), "i64": (0, 64), "u64": (1, 64), "i32": (0, 32),
         "i8": (0, 8), "i4": (0, 4)}
SCALARS = {"f64": ctypes.c_double, "f32": ctypes.c_float, "i64": ctypes.c_int64, "u64": ctypes.c_uint64, "i32": ctypes.c_int32}
NOTHING = ".version 8.7\n.target {}\n.address_size 64\n.visible .entry nothing()\n{{\nret;\n}}\n"
INSTRUCTION, LABEL = re.compile(r"^\s+(?:@!?%\w+\s+)?[a-z][\w.:]+(?:\s[^;]*)?;", re.M), re.compile(r"^\$?\w+:", re.M)
CUDA = 2
PAGE = 2 << 20


def arguments():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--build", type=Path, default=SOURCE / "build")
    p.add_argument("--driver", type=Path, default=SOURCE / "build/tests/runtime/fake_cuda")
    p.add_argument("--only", default="", metavar="REGEX", help="rows whose group or case matches")
    p.add_argument("--target", default="sm_90a")
    p.add_argument("--times", type=int, default=3)
    p.add_argument("--dump", type=Path, help="where the texts stay, in a folder a row")
    p.add_argument("--json", type=Path)
    return p.parse_args()


class Row:
    """A case's arguments, which lie nowhere: a prepare looks at addresses and shapes alone."""

    def __init__(self, texo, case):
        self.keep, at = [], 1 << 40
        inputs, results = case.signature.inputs, case.signature.results
        self.n = len(inputs + results)
        self.args = (texo._Arg * self.n)()
        for arg, p in zip(self.args, inputs + results):
            if p.dims is None and p in inputs:
                kind = case.data.get(p.name, "1")
                value = SCALARS[p.dtype](float(kind) if p.dtype[0] in "fb" else int(kind)) if kind != "normal" else SCALARS[p.dtype]()
                self.keep.append(value)
                arg.scalar = ctypes.addressof(value)
                continue
            shape = p.shape(case.dims)
            extents = (ctypes.c_int64 * max(1, len(shape)))(*shape)
            code, bits = CODES[p.dtype]
            tensor = texo.DLTensor(at, texo.DLDevice(CUDA, 0), len(shape), texo.DLDataType(code, bits, 1), extents, None, 0)
            at += -(-p.bytes(case.dims) // PAGE) * PAGE
            self.keep += [extents, tensor]
            arg.tensor = ctypes.addressof(tensor)


def cold(texo, context, case, target, folder):
    """(seconds to tile IR, seconds of the prepare, {kernel: PTX})"""
    for old in folder.iterdir():
        old.unlink()
    text, row = signature.source(case.path, case.graph), Row(texo, case)
    start = time.perf_counter()
    kernel = context.compile(text, str(case.path), target=f"cuda:{target}", fp=case.fp or None, cache=False).kernel(case.graph)
    middle = time.perf_counter()
    texo._check(texo._lib.texo_kernel_prepare(kernel._handle, row.args, row.n))
    end = time.perf_counter()
    return middle - start, end - middle, {f.stem: f.read_text() for f in sorted(folder.iterdir())}


def assembler_ms(target, text, times):
    """The least of so many runs, and what it says of registers and spills."""
    least, said = 1e9, ""
    with tempfile.NamedTemporaryFile("w", suffix=".ptx") as f:
        f.write(text)
        f.flush()
        for _ in range(times):
            start = time.perf_counter()
            said = subprocess.run(["ptxas", f"-arch={target}", "-v", f.name, "-o", "/dev/null"], capture_output=True, text=True, check=True).stderr
            least = min(least, 1e3 * (time.perf_counter() - start))
    spills = sum(map(int, re.findall(r"(\d+) bytes spill stores", said)))
    return least, int((re.findall(r"Used (\d+) registers", said) or [0])[-1]), spills


def main():
    args = arguments()
    os.environ["TEXO_LIBRARY"] = str(args.build.resolve() / "lib" / "libtexo.so")
    if os.environ.get("FAKE_CUDA_DUMP") is None:  # the library is found, and the folder read, by what the process began with
        with tempfile.TemporaryDirectory() as folder:
            major = re.match(r"sm_(\d+)\d", args.target)[1]
            env = dict(os.environ, LD_LIBRARY_PATH=str(args.driver.resolve()), FAKE_CUDA_DUMP=folder, FAKE_CUDA_NAME="NVIDIA H200", FAKE_CUDA_MAJOR=major)
            return subprocess.run([sys.executable, *sys.argv], env=env).returncode
    sys.path.insert(0, str(SOURCE / "python"))
    import texo
    folder, context = Path(os.environ["FAKE_CUDA_DUMP"]), texo.Context(threads=1)
    os.environ.pop("LD_LIBRARY_PATH")
    none = assembler_ms(args.target, NOTHING.format(args.target), 10)[0]
    table = []
    print(f"{'row':44} {'kernel':28} {'texo':>6} {'code':>6} {'assembler':>9} {'KB':>5} {'lines':>6} {'labels':>6} {'registers':>9}")
    for case in gpu_cases.CASES:
        if not re.search(args.only, f"{case.group} {case.name}"):
            continue
        runs = [cold(texo, context, case, args.target, folder) for _ in range(1 + args.times)]
        front, code, texts = min(r[0] for r in runs), min(r[1] for r in runs), runs[-1][2]
        kernels = []
        for name, text in texts.items():
            ms, registers, spills = assembler_ms(args.target, text, args.times)
            kernels.append({"kernel": name, "assembler ms": ms - none, "bytes": len(text), "lines": len(INSTRUCTION.findall(text)),
                            "labels": len(LABEL.findall(text)), "registers": registers, "spills": spills})
            if args.dump:
                to = args.dump / case.name.replace(" ", "_")
                to.mkdir(parents=True, exist_ok=True)
                (to / f"{name}.ptx").write_text(text)
        table.append({"group": case.group, "row": case.name, "texo ms": 1e3 * front, "code ms": 1e3 * code, "kernels": kernels})
        for n, k in enumerate(kernels):
            head = (case.name, f"{1e3 * front:6.1f} {1e3 * code:6.1f}") if n == 0 else ("", " " * 13)
            print(f"{head[0]:44} {k['kernel']:28} {head[1]} {k['assembler ms']:9.1f} {k['bytes'] / 1024:5.0f} {k['lines']:6} {k['labels']:6} "
                  f"{k['registers']:9}{' spills' if k['spills'] else ''}", flush=True)
    if args.json:
        args.json.write_text(json.dumps(table, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
