"""texo build from outside: its files, their bytes, its errors, and the embedded example.

    build_test.py TEXO CC NM [NAME...]    runs the tests whose names contain a NAME"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import each_test

TEXO, CC, NM = (shutil.which(a) for a in sys.argv[1:4])
ROOT = pathlib.Path(__file__).resolve().parents[2]
CALLS = ROOT / "tests/aot/calls.tex"
STRICT = ["-Wall", "-Wextra", "-Werror", "-pedantic"]
SOFTMAX = "0.090031 0.244728 0.665241 = 1.000000\n0.333333 0.333333 0.333333 = 1.000000\n"


def run(*args, code=0, words=(), **more):
    done = subprocess.run([str(a) for a in args], capture_output=True, text=True, timeout=300, **more)
    shown = f"{' '.join(map(str, args))}\nexit {done.returncode}\n{done.stdout}{done.stderr}"
    assert done.returncode == code, f"exit {code} expected\n{shown}"
    for w in words:
        assert w in done.stderr, f"{w!r} is not in\n{shown}"
    return done.stdout


def program(folder, text):
    (folder / "p.tex").write_text(text)
    return folder / "p.tex"


def contents(folder):
    return {p.name: p.read_bytes() for p in folder.iterdir()}


def test_embedded_example(folder):
    """The commands in its first comment; then with the libraries."""
    source = ROOT / "examples/embed/aot_softmax.c"
    for line in re.findall(r"^ \*     (.*)$", source.read_text(), re.M):
        words = line.replace("examples/", f"{ROOT}/examples/").split()
        printed = run({"texo": TEXO, "cc": CC}.get(words[0], words[0]), *words[1:], cwd=folder)
    assert printed == SOFTMAX, printed
    run(TEXO, "build", ROOT / "examples/softmax.tex", "--threads=1", "--emit=lib,so,header", "-o", folder / "softmax")
    assert {"softmax.a", "softmax.so"} <= set(contents(folder))
    for library, last in (("softmax.a", ["-lm"]), ("softmax.so", [])):
        run(CC, "-I", folder, source, folder / library, *last, "-o", folder / "linked")
        assert run(folder / "linked") == SOFTMAX
    assert "softmax_rows_dl" in run(NM, "-s", folder / "softmax.a")


def dlpack(header):
    """The words of the declarations, without comments."""
    block = re.search(r"#define TEXO_DLPACK(.*?)#endif", re.sub(r"/\*.*?\*/", "", header, flags=re.S), re.S).group(1)
    assert "byte_offset" in block
    return re.findall(r"\w+|[^\s\w]", block)


def test_header(folder):
    run(TEXO, "build", CALLS, "--emit=header", "-o", folder / "calls")
    header = (folder / "calls.h").read_text()
    assert run(TEXO, "build", CALLS, "--emit=header") == header
    assert dlpack(header) == dlpack((ROOT / "include/texo_rt.h").read_text())
    for first, second in (("calls.h", "texo_rt.h"), ("texo_rt.h", "calls.h"), ("calls.h", "calls.h")):
        text = f'#include "{first}"\n#include "{second}"\nint (*f)(const DLTensor *const *, size_t, void *) = scale_dl;\n'
        for flags in (["-std=c99", "-x", "c"], ["-x", "c++"]):
            run(CC, *flags, *STRICT, "-fsyntax-only", "-I", folder, "-I", ROOT / "include", "-", input=text)
    for prototype in ("int scale(const float *x, float a, float *y, int64_t N, int64_t M, void *workspace);",
                      "size_t square_workspace(int64_t n, int64_t N);", "size_t windows_workspace(int32_t w, int64_t N);",
                      "int words(const float *double_, float restrict_, float *new_, int64_t workspace, void *workspace_);",
                      "int embed(const float *table, const int32_t *ids, float *e, int64_t V, int64_t D, int64_t T, void *workspace);"):
        assert prototype in header, prototype


def test_header_after_macros(folder):
    """Names that are fine in the language, and that a program may have as macros when it comes to the header."""
    text = "graph g(stdin: f32[I, EOF], NAN: f32) -> (errno: f32[I]) { errno[i] = sum[j](stdin[i, j]) * NAN }\n"
    run(TEXO, "build", program(folder, text), "--emit=header", "-o", folder / "p")
    assert "int g(const float *stdin_, float NAN_, float *errno_, int64_t I_, int64_t EOF_, void *workspace);" in (folder / "p.h").read_text()
    run(TEXO, "build", program(folder, text.replace("graph g", "graph complex")), "--emit=header", "-o", folder / "function")
    for flags in (["-std=c99", "-x", "c"], ["-x", "c++"]):
        run(CC, *flags, "-Wall", "-Werror", "-fsyntax-only", "-I", folder, "-",
            input="#include <complex.h>\n#include <errno.h>\n#include <math.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include \"p.h\"\n")


def test_order_of_dims(folder):
    text = "graph g(x: f32[2 * K, B], y: f32[B, K], n: i64, z: f32[A]) -> (r: f32[n]) {\n" \
           "  r[i] = x?[i, 0] ?? y?[i, 0] ?? z?[i] ?? 0\n}\n"
    header = run(TEXO, "build", program(folder, text), "--emit=header")
    assert "int64_t n, const float *z, float *r, int64_t K, int64_t B, int64_t A, void *workspace);" in header, header
    assert "size_t g_workspace(int64_t K, int64_t B, int64_t n, int64_t A);" in header, header


def test_static_dims(folder):
    run(TEXO, "build", CALLS, "--graph=scale", "-D", "M=3", "--threads=1", "-o", folder / "s")
    assert "-> (y: f32[N, 3]), M = 3 */\nint scale(const float *x, float a, float *y, int64_t N, void *workspace);" in \
        (folder / "s.h").read_text()
    (folder / "main.c").write_text('#include "s.h"\nint main(void)\n{\n\tfloat x[6] = {1, 2, 3, 4, 5, 6}, y[6];\n'
                                   "\tstatic _Alignas(64) char room[4096];\n"
                                   "\treturn scale_workspace(2) > sizeof room || scale(x, 2, y, 2, room) || y[5] != 12;\n}\n")
    run(CC, *STRICT, folder / "main.c", folder / "s.o", "-lm", "-o", folder / "main")
    run(folder / "main")


def test_imports(folder):
    def undefined(*options):
        run(TEXO, "build", CALLS, "--target=cpu:x86-64", *options, "-o", folder / "o")
        return {line.split()[-1] for line in run(NM, "-u", folder / "o.o").splitlines()}
    assert undefined() - {"fma", "fmaf"} == {f"texo_object_{f}" for f in ("call", "call_dl", "room", "workspace")}
    assert undefined("--threads=1") <= {"aligned_alloc", "free", "fma", "fmaf", "memcmp", "memcpy", "memmove", "memset", "snprintf"}
    defined = {line.split()[-1] for line in run(NM, "-g", "--defined-only", folder / "o.o").splitlines()}
    graphs = re.findall(r"^graph (\w+)", CALLS.read_text(), re.M)
    assert defined == {g + e for g in graphs for e in ("", "_dl", "_workspace", "_signature_json")}, defined


def test_nothing_is_left(folder):
    out = folder / "out"
    out.mkdir()
    (out / "p.o").write_text("old")
    fine = "graph f(x: f32[N]) -> (y: f32[N]) { y[i] = x[i] }\n"
    for text, code, words in ((fine.replace("f(", "class("), 1, "line 1: no C function can be called 'class'"),
                              (fine.replace("f(", "memcpy("), 1, "no C function can be called 'memcpy'"),
                              (fine.replace("f(", "texo_rt_create("), 1, "no C function can be called 'texo_rt_create'"),
                              (fine + fine.replace("f(", "f_dl("), 1, "the graph f_dl has the name of a function of the graph f"),
                              (fine.replace("x[i]", "x[i] +"), 1, "E0"), ("", 1, "has no graph")):
        run(TEXO, "build", program(folder, text), "-o", out / "p", code=code, words=[words])
        assert contents(out) == {"p.o": b"old"}
    (out / "p.h").mkdir()  # the header can't be written
    run(TEXO, "build", program(folder, fine), "-o", out / "p", code=3, words=["p.h"])
    (out / "p.h").rmdir()
    assert contents(out) == {"p.o": b"old"}
    run(TEXO, "build", program(folder, fine), "-o", folder / "none/p", code=3, words=["No such file"])
    run(TEXO, "build", program(folder, fine), "--emit=so", "-o", out / "p", code=4, words=["cc"], env={"PATH": str(out)})
    assert contents(out) == {"p.o": b"old"}
    run(TEXO, "build", program(folder, fine), "-o", out / "p")
    assert set(contents(out)) == {"p.o", "p.h"} and contents(out)["p.o"] != b"old"


def test_deps(folder):
    """A rule of make for what was read: the program and what it uses, but not what texo brings along."""
    (folder / "a b$.tex").write_text("fn twice(x) = 2 * x\n")
    text = 'use "std"\nuse "a b$.tex"\ngraph f(x: f32[N]) -> (y: f32[N]) { y[i] = relu(twice(x[i])) }\n'
    program(folder, text)
    run(TEXO, "build", "p.tex", "--emit=obj,header,deps", "-o", "o#t", cwd=folder)
    assert (folder / "o#t.d").read_text() == "o\\#t.o: \\\n  p.tex \\\n  a\\ b$$.tex\n", (folder / "o#t.d").read_text()
    run(TEXO, "build", "p.tex", "--emit=manifest,deps", "-o", "p", cwd=folder)
    assert (folder / "p.d").read_text().startswith("p.json: ")
    run(TEXO, "build", "p.tex", "--emit=deps", cwd=folder, code=2, words=["needs -o PATH"])


LOAD = """import ctypes, sys
y = (ctypes.c_float * 3)()
assert ctypes.CDLL(sys.argv[1]).f((ctypes.c_float * 3)(1, 2, 3), y, ctypes.c_int64(3), None) == 0
print(*y)
"""


def test_shared(folder):
    """A shared library brings what it needs along, by name, and has the same bytes in every folder."""
    text = "graph f(x: f32[N]) -> (y: f32[N]) { y[i] = exp(x[i]) - exp(x[i]) + 2 * x[i] }\n"
    libraries = {}
    for options, needs in (((), {"libtexo-rt.so.0"}), (("--threads=1",), set())):
        for place in (folder / "a", folder / "another place"):
            place.mkdir(exist_ok=True)
            run(TEXO, "build", program(place, text), *options, "--emit=so", "-o", place / "p")
            libraries[place.name] = (place / "p.so").read_bytes()
        assert libraries["a"] == libraries["another place"] and str(folder).encode() not in libraries["a"]
        found = re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-d", folder / "a/p.so"))
        assert set(found) == {"libm.so.6", "libc.so.6"} | needs, found
        where = {} if not needs else {"LD_LIBRARY_PATH": str(pathlib.Path(TEXO).resolve().parents[1] / "lib")}
        assert run(sys.executable, "-c", LOAD, folder / "a/p.so", env={**os.environ, **where}) == "2.0 4.0 6.0\n"


def test_same_bytes(folder):
    """Two folders, two environments, graphs by the hundred."""
    files = [f for d in ("examples", "tests/run/programs", "tests/lang/rules") for f in sorted((ROOT / d).glob("*.tex"))]
    places = (folder / "a", folder / "another/longer place/b")
    worlds = ({"LC_ALL": "C", "TZ": "UTC", "HOME": "/nowhere"}, {"LC_ALL": "tr_TR.UTF-8", "TZ": "Asia/Tokyo", "COLUMNS": "40"})
    graphs = 0
    for place in places:
        place.mkdir(parents=True)
        for f in files:
            shutil.copy(f, place)
    for k, f in enumerate(files):
        levels = ("cpu:x86-64-v3", "cpu:x86-64,cpu:x86-64-v2")[k % 2] if k else "cpu"
        for place, world in zip(places, worlds):
            where = f.name if place is places[0] else place / f.name
            run(TEXO, "build", where, f"--target={levels}", "--threads=1", "--emit=obj,header,lib,manifest", "-o", place / f.stem, cwd=place,
                env={"PATH": os.environ["PATH"], **world})
        one, two = (contents(p) for p in places)
        assert one == two, f"{f}: {[n for n in one if one[n] != two.get(n)]} differ"
        for n in one:
            assert str(folder).encode() not in one[n], f"{n} names its folder"
        graphs += (1 + levels.count(",")) * len(re.findall(rb"_workspace\(", one[f"{f.stem}.h"]))
        for place in places:
            for ending in (".o", ".h", ".a", ".json"):
                (place / (f.stem + ending)).unlink()
    assert graphs >= 300, graphs
    print(f"{graphs} graphs and levels")


sys.exit(each_test.main(globals(), sys.argv[4:]))
