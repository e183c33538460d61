"""Builds every graph of examples/ ahead of time, calls it from a C program made here, and compares the
results with the NumPy references of tests/run/example_cases.py.

    examples_test.py TEXO CC NM [FILE...]

The program calls each graph twice, as a C function and with DLPack tensors, on guarded memory. It is
compiled as strict C99 (for the last file as C++) and linked with libm alone. Files take turns in
what processors they are built for."""
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
RUN = HERE.parent / "run"
sys.path.insert(0, str(RUN))
import numpy as np  # noqa: E402
from compare_numpy import DEFAULT_RTOL, Narrow, decode, difference  # noqa: E402
from example_cases import CASES  # noqa: E402

TEXO, CC, NM = sys.argv[1:4]
STORED = {"f64": "f8", "f32": "f4", "f16": "f2", "bf16": "u2", "f8e4m3": "u1", "f8e5m2": "u1", "f4e2m1": "u1", "e8m0": "u1",
          "i64": "i8", "i32": "i4", "i16": "i2", "i8": "i1", "i4": "u1", "u64": "u8", "u32": "u4", "u16": "u2", "u8": "u1",
          "u4": "u1", "bool": "?", "c64": "c8"}
DLCODE = {"bf16": 4, "c64": 5, "bool": 6, "f8e4m3": 10, "f8e5m2": 12, "e8m0": 14, "f4e2m1": 17}
BITS = {"bf16": 16, "c64": 64, "bool": 8, "f8e4m3": 8, "f8e5m2": 8, "e8m0": 8, "f4e2m1": 4}
MAY_IMPORT = {"aligned_alloc", "free", "fma", "fmaf", "memcmp", "memcpy", "memmove", "memset", "snprintf"}

PRELUDE = r"""
#include "graphs.h"
#include "graphs.h" /* twice is once */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 64 };

static void
stop(const char *what, int status)
{
	printf("%s: %d\n", what, status);
	exit(1);
}

/* n bytes between guards, from a file or poisoned. */
static void *
load(const char *path, size_t n)
{
	unsigned char *p = (unsigned char *)malloc(n + 2 * GUARD);
	FILE *f = path ? fopen(path, "rb") : NULL;
	memset(p, 0xa5, n + 2 * GUARD);
	if (path && (!f || fread(p + GUARD, 1, n, f) != n))
		stop(path, 0);
	if (f)
		fclose(f);
	return p + GUARD;
}

static void
save(const char *path, const void *p, size_t n)
{
	FILE *f = fopen(path, "wb");
	if (!f || fwrite(p, 1, n, f) != n || fclose(f) != 0)
		stop(path, 0);
}

static void
check_guards(const char *what, const void *at, size_t n)
{
	const unsigned char *p = (const unsigned char *)at;
	int k;
	for (k = 0; k < GUARD; k++)
		if (p[k - GUARD] != 0xa5 || p[n + (size_t)k] != 0xa5)
			stop(what, k);
}
"""


def inferred(shape, dims):
    """Adds the dims that a shape of names and numbers gives."""
    for name, extent in shape:
        if isinstance(name, str) and re.fullmatch(r"\w+", name):
            dims.setdefault(name, int(extent))


def extent(text, dims):
    if isinstance(text, int):
        return text
    text = re.sub(r"\bdiv\b", "//", text)
    text = re.sub(r"\bmod\b", "%", text)
    return eval(text, {"min": min, "max": max}, dims)  # a shape of our own examples


def find_dims(signature, arrays, given):
    dims = {k: int(v) for k, v in given.items() if isinstance(v, (int, np.integer))}
    shapes = [list(zip(p["shape"], arrays[p["name"]])) for p in signature["params"] if p["name"] in arrays]
    for s in shapes:
        inferred(s, dims)
    for text, n in [x for s in shapes for x in s]:  # what is left is linear in one name
        missing = [w for w in re.findall(r"[A-Za-z_]\w*", str(text)) if w not in dims and w not in ("div", "mod")]
        for name in missing:
            dims[name] = next(v for v in range(100000) if extent(text, {**dims, name: v}) == n)
    return dims


class Call:
    """One graph of a case, as C text and files in a folder."""

    def __init__(self, case, signature, prototype, folder, number):
        self.case, self.signature, self.folder = case, signature, folder
        self.name, self.tag = case.graph, f"{case.graph}{number}"
        self.call = self.names(prototype[case.graph])
        self.sizes = self.names(prototype[case.graph + "_workspace"])
        self.lines, self.tensors = [], []

    @staticmethod
    def names(arguments):
        return [re.search(r"\w+$", a.strip()).group() for a in arguments.split(",") if a.strip() != "void"]

    def path(self, name):
        return self.folder / f"{self.tag}.{name}"

    def param(self, p):
        value = self.case.inputs[p["name"]]
        kind = STORED[p["dtype"]]
        stored = value.stored if isinstance(value, Narrow) else np.asarray(value).astype(kind, copy=False)
        self.path(p["name"]).write_bytes(np.ascontiguousarray(stored).tobytes())
        return value, stored

    def tensor(self, name, dtype, shape, at):
        code = DLCODE.get(dtype, {"f": 2, "i": 0, "u": 1}[dtype[0]] if dtype not in DLCODE else 0)
        bits = BITS.get(dtype) or int(re.search(r"\d+", dtype).group())
        axes = ", ".join(map(str, shape)) or "0"
        self.lines.append(f"\tstatic int64_t shape_{name}[] = {{{axes}}};")
        self.tensors.append(f"\t\t{{{at}, {{kDLCPU, 0}}, {len(shape)}, {{{code}, {bits}, 1}}, shape_{name}, NULL, 0}},")

    def text(self):
        case, arrays, value = self.case, {}, {}
        bytes_of, again = {}, []
        for p in self.signature["params"]:
            given, stored = self.param(p)
            shape = given.values.shape if isinstance(given, Narrow) and p["dtype"] in ("i4", "u4") else stored.shape
            name, n = p["name"], stored.nbytes
            if p["kind"] == "scalar":
                ctype = self.ctype(p["dtype"])
                self.lines.append(f'\t{ctype} *p_{name} = ({ctype} *)load("{self.path(name)}", {n});')
                value[name] = f"*p_{name}"
            else:
                arrays[name] = shape
                ctype = self.ctype(p["dtype"])
                self.lines.append(f'\t{ctype} *p_{name} = ({ctype} *)load("{self.path(name)}", {n});')
                value[name] = f"p_{name}"
                bytes_of[name] = n
                if p["kind"] == "inout":
                    again.append((name, n))
            self.tensor(name, p["dtype"], shape, f"p_{name}")
        dims = find_dims(self.signature, arrays, case.inputs)
        for r in self.signature["results"]:
            name, shape = r["name"], [max(0, extent(e, dims)) for e in r["shape"]]
            count = int(np.prod(shape, dtype=object)) if shape else 1
            n = (count + 1) // 2 if r["dtype"] in ("i4", "u4") else count * np.dtype(STORED[r["dtype"]]).itemsize
            ctype = self.ctype(r["dtype"])
            self.lines.append(f"\t{ctype} *p_{name} = ({ctype} *)load(NULL, {n});")
            value[name], bytes_of[name] = f"p_{name}", n
            self.tensor(name, r["dtype"], shape, f"p_{name}")
            self.shape = {**getattr(self, "shape", {}), name: shape}
        return self.body(dims, value, bytes_of, again)

    @staticmethod
    def ctype(dtype):
        kind = STORED[dtype]
        named = {"f8": "double", "f4": "float", "f2": "uint16_t", "c8": "texo_c64", "?": "bool"}
        return named.get(kind) or f"{'u' if kind[0] == 'u' else ''}int{8 * int(kind[1])}_t"

    def argument(self, name, dims, value):
        """A parameter with the name of a word of C's has an underscore more."""
        return value.get(name) or str(dims[name if name in dims else name.removesuffix("_")])

    def body(self, dims, value, bytes_of, again):
        sizes = [self.argument(n, dims, value) for n in self.sizes]
        call = ", ".join(["workspace" if n == "workspace" else self.argument(n, dims, value) for n in self.call])
        out = [f"static void\ncall_{self.tag}(void)\n{{", *self.lines,
               f"\tsize_t bytes = {self.name}_workspace({', '.join(sizes)});",
               "\tunsigned char *raw = (unsigned char *)malloc(bytes + 192), *workspace = raw + 64;",
               "\tconst DLTensor *args[64];", "\tint k, status;", "\tDLTensor tensor[] = {", *self.tensors, "\t};",
               "\tworkspace += (64 - (uintptr_t)workspace % 64) % 64;", "\tmemset(raw, 0x5a, bytes + 192);",
               f'\tstatus = {self.name}({call});', f'\tif (status)\n\t\tstop("{self.tag}", status);',
               f'\tif (workspace[-1] != 0x5a || workspace[bytes] != 0x5a)\n\t\tstop("{self.tag} workspace", 0);']
        for name, n in bytes_of.items():
            out.append(f'\tcheck_guards("{self.tag} {name}", p_{name}, {n});')
            out.append(f'\tsave("{self.path(name)}.1", p_{name}, {n});')
        out += [f'\tmemcpy(p_{name}, (unsigned char *)load("{self.path(name)}", {n}), {n});' for name, n in again]
        out += [f"\tfor (k = 0; k < {len(self.tensors)}; k++)\n\t\targs[k] = &tensor[k];",
                f"\tstatus = {self.name}_dl(args, {len(self.tensors)}, NULL);",
                f'\tif (status)\n\t\tstop("{self.tag}_dl", status);']
        out += [f'\tsave("{self.path(name)}.2", p_{name}, {n});' for name, n in bytes_of.items()]
        return "\n".join(out + ["\tfree(raw);", "}\n"])

    def errors(self):
        case = self.case
        plain = {k: v.values if isinstance(v, Narrow) else v for k, v in case.inputs.items()}
        for name, want in case.reference(**plain).items():
            dtype = case.results[name]
            first, second = (self.path(f"{name}.{k}").read_bytes() for k in (1, 2))
            stored = np.frombuffer(first, STORED[dtype])
            got = decode(stored, dtype).reshape(np.asarray(want).shape)
            bad = difference(got, want, dtype, case.rtol if case.rtol is not None else DEFAULT_RTOL.get(dtype, 0))
            if bad:
                yield f"{self.tag} {name}: {bad}"
            if first != second:
                yield f"{self.tag} {name}: the call with tensors gives other bytes"


def prototypes(header):
    text = re.sub(r"/\*.*?\*/", "", header, flags=re.S)
    return {m.group(1): m.group(2) for m in re.finditer(r"^(?:int|size_t) (\w+)\(([^)]*)\);", text, re.M)}


def run(*args, **more):
    done = subprocess.run([str(a) for a in args], capture_output=True, text=True, timeout=300, **more)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, args))}\nexit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def check_file(path, cases, target, folder, as_cpp):
    import json
    out = folder / "graphs"
    run(TEXO, "build", path, "--threads=1", f"--target={target}", "--emit=obj,header,manifest", "-o", out)
    signatures = {g["signature"]["graph"]: g["signature"] for g in json.loads(out.with_suffix(".json").read_text())["graphs"]}
    imports = {line.split()[-1] for line in run(NM, "-u", f"{out}.o").splitlines()}
    assert imports <= MAY_IMPORT, f"{path}: imports {imports - MAY_IMPORT}"
    prototype = prototypes(out.with_suffix(".h").read_text())
    calls = [Call(c, signatures[c.graph], prototype, folder, k) for k, c in enumerate(cases)]
    source = folder / ("calls.cpp" if as_cpp else "calls.c")
    source.write_text(PRELUDE + "\n".join(c.text() for c in calls) + "\nint\nmain(void)\n{\n"
                      + "".join(f"\tcall_{c.tag}();\n" for c in calls) + "\treturn 0;\n}\n")
    flags = ["-x", "c++"] if as_cpp else ["-std=c99", "-pedantic"]
    run(CC, *flags, "-Wall", "-Wextra", "-Werror", "-O0", "-c", source, "-o", folder / "calls.o")
    run(CC, folder / "calls.o", f"{out}.o", "-lm", "-o", folder / "calls")
    run(folder / "calls")
    return [e for c in calls for e in c.errors()]


def main():
    files = {}
    for c in CASES:
        files.setdefault((RUN / c.file).resolve(), []).append(c)
    chosen = sorted(f for f in files if not sys.argv[4:] or f.stem in sys.argv[4:])
    targets, bad = ("cpu:x86-64-v3", "cpu", "cpu:x86-64", "cpu:x86-64-v2,cpu:x86-64-v3"), 0
    for k, f in enumerate(chosen):
        with tempfile.TemporaryDirectory() as folder:
            errors = check_file(f, files[f], targets[k % len(targets)], pathlib.Path(folder), k == len(chosen) - 1)
        print("\n".join(f"{f.name}: {e}" for e in errors), end="\n" if errors else "")
        bad += len(errors)
    print(f"{sum(len(files[f]) for f in chosen)} graphs of {len(chosen)} files, {bad} wrong")
    return 1 if bad or not chosen else 0


sys.exit(main())
