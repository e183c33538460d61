"""The command from outside: exit codes, messages, files left behind, JSON.

    command_test.py TEXO [NAME...]    runs the tests whose names contain a NAME
"""
import json
import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
import time

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import each_test

TEXO = sys.argv[1]
HERE = pathlib.Path(__file__).resolve().parent
PROGRAMS = HERE.parent / "run" / "programs"
AXPY, GATHER, FACTS = (str(PROGRAMS / f) for f in ("axpy.tex", "gather.tex", "facts.tex"))


SANITIZED = "TEXO_TEST_SANITIZED" in os.environ  # a sanitized process reserves terabytes of addresses


def memory(mib):
    return {} if SANITIZED else {resource.RLIMIT_AS: mib << 20}


class Ran:
    def __init__(self, done):
        self.code, self.out, self.raw = done.returncode, done.stdout.decode(errors="replace"), done.stdout
        self.err = done.stderr.decode(errors="replace")

    def __repr__(self):
        return f"exit {self.code}\n--- stdout\n{self.out}\n--- stderr\n{self.err}"


def texo(*args, cwd=None, env=None, limits=None, stdout=subprocess.PIPE, stdin=None, timeout=60):
    clean = {k: v for k, v in os.environ.items() if not k.startswith("TEXO_")}
    clean["TEXO_NO_CACHE"] = "1"  # tests/cache is about it
    clean.update(env or {})

    def before():
        for what, value in (limits or {}).items():
            resource.setrlimit(what, (value, value))
    done = subprocess.run([TEXO, *map(str, args)], stdout=stdout, stderr=subprocess.PIPE, cwd=cwd, env=clean,
                          preexec_fn=before, input=stdin, timeout=timeout)
    done.stdout = done.stdout or b""
    return Ran(done)


def expect(ran, code, *words, out=()):
    assert ran.code == code, f"exit code {code} expected\n{ran}"
    for w in words:
        assert w in ran.err, f"stderr lacks {w!r}\n{ran}"
    for w in out:
        assert w in ran.out, f"stdout lacks {w!r}\n{ran}"
    return ran


def write(folder, name, text):
    path = folder / name
    path.write_text(text)
    return str(path)


def save(folder, name, array):
    np.save(folder / name, array)
    return f"@{folder / name}"


# --- usage ---

def test_help_and_version(folder):
    for args in (["--help"], ["-h"], ["help", "--help"][1:]):
        expect(texo(*args), 0, out=["usage: texo", "check", "doctor", "Exit codes"])
    for command in ("check", "run", "test", "explain", "build", "targets", "doctor"):
        expect(texo(command, "--help"), 0, out=[f"usage: texo {command}"])
    expect(texo("--version"), 0, out=["texo "])


def test_usage_errors(folder):
    expect(texo(), 2, "a command is missing")
    expect(texo("chekc", AXPY), 2, "did you mean 'check'")
    expect(texo("check"), 2, "needs a file")
    expect(texo("run", "--devise=cpu", AXPY), 2, "did you mean '--device'")
    expect(texo("run", "--device=gpu", AXPY), 2, "--device is")
    expect(texo("run", "--graph=axpi", AXPY), 2, "did you mean 'axpy'")
    expect(texo("run", AXPY, "alpha"), 2, "no name=value")
    expect(texo("run", AXPY, "b=2"), 2, "no input, scalar or dim 'b'")
    expect(texo("run", AXPY, "x=ones", "x=zeros"), 2, "given twice")
    expect(texo("run", AXPY, "--out", "q=-"), 2, "no result 'q'")
    expect(texo("run", AXPY, "--out", "z"), 2, "--out takes")
    expect(texo("run", AXPY, "--dump=scedule"), 2, "did you mean 'schedule'")
    expect(texo("run", AXPY, "--fuel=schedule"), 2, "--fuel takes")
    expect(texo("build", AXPY, "--target=cpu,cpu:x68-64", "-o", "x"), 2, "no such processor")
    expect(texo("build", AXPY), 2, "needs -o PATH")
    expect(texo("build", AXPY, "--emit=obj,header", "-o", "-"), 2, "needs -o PATH")
    expect(texo("build", AXPY, "--emit=obj,tg", "-o", "x"), 2, "not both")
    for path in ("x/", ".", "..", "x/..", "/"):
        expect(texo("build", AXPY, "-o", path), 2, f"-o {path} is a folder")
    expect(texo("run", AXPY, "--emit=obj"), 2, "is for texo build")
    expect(texo("build", AXPY, "--threads=2", "-o", "x"), 2, "--threads is one of 1")
    expect(texo("build", AXPY, "--emit=asm", "--target=cpu:pdp11"), 2, "no such processor", "x86-64-v3")


def test_errors_have_their_mend(folder):
    np.savez(folder / "x.npz", x=np.ones(3, np.float32))
    whole = save(folder, "i.npy", np.ones(3, np.int32))
    cases = [(["run", AXPY, "--graph=q"], 2, "its graphs are axpy"), (["run", AXPY, "--out", "q=-"], 2, "its results are z"),
             (["run", AXPY, "b=2"], 2, "its inputs and dims are a, x, y, N"), (["run", AXPY, "x"], 2, "x=@x.npy"),
             (["run", AXPY, "x=f32[4]"], 1, "x=random f32[4]"), (["run", AXPY, "a=[1]"], 1, "the value of a has 1 axis, but a has 0"),
             (["run", AXPY, "x=[[1]]"], 1, "the value of x has 2 axes, but x has 1"),
             (["run", AXPY, "x=1"], 1, "the value of x has 0 axes, but x has 1"),
             (["run", AXPY, "x=data/x.npy"], 1, "x=@data/x.npy reads the file"),
             (["run", AXPY, f"x={whole}"], 1, "x.astype('<f4')"), (["run", AXPY, f"x=@{folder}/x.npz"], 1, ".npz archive"),
             (["inspect", whole[1:]], 1, "neither a program's text nor code")]
    if "amx" not in pathlib.Path("/proc/cpuinfo").read_text():
        cases.append((["run", AXPY, "--target=cpu:sapphirerapids"], 4, "without --target"))
    for args, code, mend in cases:
        expect(texo(*args), code, mend)


def test_not_built(folder):
    expect(texo("report", AXPY), 1, "not built yet")
    expect(texo("report", AXPY, "-o", folder / "r.html"), 1, "'texo report' is not built yet")


def test_program_is_spared(folder):
    """What -o or --out names is the program, by its name, another one, or with an ending."""
    path = write(folder, "p.tex", "graph p(x: f32[N]) -> (y: f32[N]) { y[i] = x[i] }\n")
    text = (folder / "p.tex").read_text()
    (folder / "link.tex").symlink_to("p.tex")
    os.link(path, folder / "p.h")
    for args in (["build", path, "--emit=tg", "-o", path], ["build", path, "--emit=asm", "-o", folder / "link.tex"],
                 ["build", path, "-o", folder / "p"], ["run", path, "--emit=plan", "-o", path],
                 ["run", path, "N=4", "--out", f"y={path}"], ["run", folder / "link.tex", "N=4", "--out", f"y={path}"]):
        expect(texo(*args), 2, "would destroy the program")
        assert (folder / "p.tex").read_text() == (folder / "p.h").read_text() == text
    expect(texo("build", path, "-o", folder / "q"), 0)
    assert {f.name for f in folder.iterdir()} == {"p.tex", "p.h", "link.tex", "q.o", "q.h"}


def test_counts(folder):
    expect(texo("run", AXPY, "N=4", "-j", "1024"), 0)
    for wrong in ("0", "-1", "1025", "2x", "99999999999999999999"):
        expect(texo("run", AXPY, "N=4", "-j", wrong), 2, f"-j needs a whole number from 1 to 1024, not '{wrong}'")
    expect(texo("run", AXPY, "-D", "N=4", "-D", "N=4"), 0)
    expect(texo("run", AXPY, "-D", "N=4", "-D", "N=5"), 2, "-D N=4 and -D N=5: a dim has one length")


def test_ptx(folder):
    for command in ("build", "run"):
        for target, sm in (("cuda", "sm_90a"), ("cuda:sm_90a", "sm_90a"), ("cuda:sm_80", "sm_80"), ("cuda:sm_100", "sm_100"), ("cuda:sm_120", "sm_120")):
            expect(texo(command, AXPY, "--emit=ptx", f"--target={target}"), 0,
                   out=[f".target {sm}", ".entry axpy_0_0(", "fma.rn.f32"])
    expect(texo("build", AXPY, "--emit=plan,llvm", "--target=cuda"), 0, out=["map", "nvptx64-nvidia-cuda"])
    expect(texo("build", AXPY, "--emit=ptx"), 2, "--emit=ptx needs --target=cuda")
    expect(texo("build", AXPY, "--emit=ptx", "--target=cuda:sm_79"), 2, "no such GPU", "sm_90a, sm_120, sm_100, sm_80")
    expect(texo("build", AXPY, "--emit=ptx", "--target=cuda-9"), 2, "--target is")
    expect(texo("run", AXPY, "--target=cuda", "N=8"), 4, "for another kind of device")
    expect(texo("explain", AXPY, "--target=cuda"), 0, out=["map"])


def test_texts_end_their_last_line(folder):
    bad = write(folder, "bad.tex", "graph g(x: f32[N]) -> (y: f32[N]) { y[i] = x[i\n}\n")
    for args in (["explain", AXPY], ["explain", "--json", AXPY], ["explain", "E0207"], ["explain", "--json", "E0207"],
                 ["test", AXPY], ["test", "--json", AXPY], ["test", bad], ["check", bad], ["check", "--json", bad],
                 ["run", AXPY], ["targets"], ["doctor"], ["--help"], ["explain", "--help"], ["--version"], ["chekc"]):
        ran = texo(*args)
        for text in (ran.out, ran.err):
            assert not text or (text.endswith("\n") and not text.endswith("\n\n")), f"{args}: {ran}"


def test_environment(folder):
    assert json.loads(texo("run", AXPY, "--json", env={"TEXO_DEVICE": "interp"}).out)["device"] == "interp"
    assert json.loads(texo("run", AXPY, "--json", "--device=cpu", env={"TEXO_DEVICE": "interp"}).out)["device"] == "cpu"
    expect(texo("run", AXPY, env={"TEXO_FP": "loose"}), 2, "TEXO_FP is one of")


# --- check ---

def test_check(folder):
    good, bad = AXPY, write(folder, "bad.tex", "graph g(x: f32[N]) -> (y: f32[N])\n{\n  y[i] = q[i]\n}\n")
    expect(texo("check", good), 0)
    ran = expect(texo("check", good, bad), 1, "bad.tex:3:10", "^")
    assert ran.out == ""
    expect(texo("check", folder / "none.tex"), 3, "none.tex", "No such file")
    expect(texo("check", folder), 3, "is a directory")
    expect(texo("check", bad, folder / "none.tex"), 3, "bad.tex:3:10", "none.tex")
    big = write(folder, "big.tex", "#" * (3 << 20))
    expect(texo("check", big), 1, "E0901", "more than the 1 MiB (1048576 bytes)")
    latex = write(folder, "latex.tex", "\\documentclass{article}\n\\begin{document}\n\\end{document}\n")
    expect(texo("check", latex), 1, "E0110")
    expect(texo("check", "-", stdin=b"graph g(x: f32[N]) -> (y: f32[N]) { y[i] = 2 * x[i] }\n"), 0)


def test_what_is_quoted_is_one_line(folder):
    program = write(folder, "lines.tex", """graph g(x: f32[N], ids: i32[M]) -> (y: f32[M], z: f32)
  where N >= 2 &&   # at least \u00e9
        N <= 8
{
  y[i] = x[ids[i]   # where it is
             div 2]
  z = x[ids[0] + ids[0] + ids[0] + ids[0] + ids[0] + ids[0] + ids[0] + ids[0] + ids[0] + ids[0] + ids[0] + ids[0] +
        ids[0] + ids[0]]
}
""")
    expect(texo("run", program, "x=[1, 2]", "ids=[0, 4]"), 1, "`x[ids[i] div 2]` is outside")
    expect(texo("run", program, "x=[1, 2]", "ids=[1, 1]"), 1, "`x[ids[0] + ids[0]", " ...` is outside")
    expect(texo("run", program, "x=[1]", "ids=[0, 1]"), 1, "E0702", "N >= 2 && N <= 8")


def test_options_reach_the_frontend(folder):
    smaller = PROGRAMS.parents[1] / "lang/must_fail/sema_warn_smaller.tex"
    expect(texo("check", smaller), 0, "W0201")
    expect(texo("check", "--werror", smaller), 1, "W0201")
    for program in [GATHER, *sorted((HERE.parents[1] / "examples").glob("*.tex"))]: # x[i + 1] - x[i] leaves nothing
        expect(texo("check", "--werror", program), 0)
    expect(texo("run", AXPY, "-DN=4", "-q"), 0, out=["z: f32[4]"])
    expect(texo("run", AXPY, "-DQ=4"), 1, "E0706", "<command line>:1:4", "-D Q=4")
    expect(texo("run", AXPY, "-DNN=4"), 1, "E0706", "did you mean `N`?")
    expect(texo("run", AXPY, "-DN=4", "N=5"), 1, "the dim N is 4")
    given = write(folder, "given.tex", """graph rows(x: f32[N]) -> (y: f32[N, V], z: f32[2*V]) where V >= 2, V mod 2 == 0 {
  y[i, j] = sum[v in 0..V](x[i] * v) + j
  z[i] = extent(i) + 0.5
}
graph table(ids: i32[N]) -> (y: f32[N]) {
  a[ids[t] in 0..V] += 1.0
  y[i] = a[ids[i]]
}
""")
    expect(texo("check", given), 1, "E0229", "given.tex:1:37", "or give it: -D V=4096")
    expect(texo("check", given, "-DV=4"), 0)
    expect(texo("run", given, "-DV=4", "--graph=rows", "x=[1, 2]", "--device=cpu"), 0,
           out=["y: f32[2, 4]", "[[6, 7, 8, 9]", "[12, 13, 14, 15]]", "z: f32[8]"])
    expect(texo("run", given, "-DV=4", "--graph=table", "ids=[1, 3, 1]", "--device=cpu"), 0, out=["[2, 1, 2]"])
    expect(texo("run", given, "-DV=2", "--graph=table", "ids=[1, 3, 1]", "--device=cpu"), 1, "E0790")
    odd = texo("check", given, "-DV=3")
    expect(odd, 1, "E0701", "given.tex:1:68")
    assert odd.err.count("error[E0701]") == 1, odd  # what is after it is not said to be wrong
    expect(texo("check", given, "-DV=4", "-DW=4"), 1, "E0706", "-D W=4")
    for bad in ("N=abc", "N", "N=", "=4", "N=-1", "N=99999999999999999999"):
        expect(texo("check", AXPY, "-D", bad), 2, "-D takes DIM=N")


def test_check_unreadable(folder):
    path = write(folder, "secret.tex", "")
    os.chmod(path, 0)
    if os.access(path, os.R_OK):
        return  # root reads everything
    expect(texo("check", path), 3, "Permission denied")


def test_check_json(folder):
    bad = write(folder, "bad.tex", "graph g(x: f32[N]) -> (y: f32[N])\n{\n  y[i] = q[i]\n}\n")
    ran = expect(texo("check", "--json", AXPY, bad, folder / "none.tex"), 3)
    found = json.loads(ran.out)["diagnostics"]
    assert len(found) == 2, ran
    for d in found:
        assert set(d) >= {"code", "severity", "file", "line", "column", "end_column", "message", "help"}, d
    assert found[0]["file"] == bad and (found[0]["line"], found[0]["column"]) == (3, 10), found
    assert found[1]["code"] == "E0890"
    assert json.loads(texo("check", "--json", AXPY).out) == {"diagnostics": []}


def test_limits_end_quickly(folder):
    bombs = {
        "open.tex": "graph g(x: f32[N]) -> (y: f32[N]) { y[i] = " + "(" * 100000 + "}\n",
        "long.tex": "#" + "x" * (64 << 20),
        "name.tex": "graph " + "g" * (1 << 20) + "(x: f32[N]) -> (y: f32[N]) { y[i] = x[i] }\n",
        "number.tex": "graph g(x: f32[N]) -> (y: f32[N]) { y[i] = x[i] * 1e999999999 }\n",
        "double.tex": "graph g(x: f32[N]) -> (y: f32[N]) {\n  a0[i] = x[i]\n"
                      + "".join(f"  a{k}[i] = a{k - 1}[i] + a{k - 1}[i]\n" for k in range(1, 61)) + "  y[i] = a60[i]\n}\n",
    }
    for name, text in bombs.items():
        start = time.monotonic()
        ran = texo("check", write(folder, name, text), limits=memory(512))
        assert ran.code == (0 if name == "double.tex" else 1), f"{name}: {ran}"
        assert time.monotonic() - start < 2, name


# --- run: inputs ---

def test_run_prints(folder):
    for device in ("interp", "cpu"):
        ran = expect(texo("run", AXPY, f"--device={device}", "a=2", "x=[1, 2, 3]", "y=[0.5, 0, -1]"), 0)
        assert ran.out == "z: f32[3]\n  [2.5, 4, 5]\n" and ran.err == "", ran
    ran = expect(texo("run", AXPY, "N=20", "a=1", "x=iota", "y=zeros"), 0)
    assert ran.out == "z: f32[20]\n  [0, 1, 2, 3, 4, 5, 6, 7, ...]\n", ran
    ran = expect(texo("run", AXPY, "N=0"), 0)
    assert ran.out == "z: f32[0]\n  []\n", ran
    found = json.loads(texo("run", AXPY, "a=1", "x=[1, inf]", "y=ones", "--json").out)
    assert found["results"][0]["values"] == [2, "inf"] and found["graph"] == "axpy", found


def test_random_is_seeded(folder):
    first = texo("run", AXPY, "x=random:1").out
    assert first == texo("run", AXPY, "x=random:1").out
    assert first != texo("run", AXPY, "x=random:2").out
    assert first != texo("run", AXPY, "x=normal:1").out
    assert texo("run", AXPY).out == texo("run", AXPY, "x=random", "y=random:0").out


def test_sizes_are_chosen(folder):
    expect(texo("run", FACTS, "--graph=grouped"), 0, "N = 8, G = 4 (chosen")
    expect(texo("run", FACTS, "--graph=grouped", "-q", "N=24"), 0)
    assert texo("run", FACTS, "--graph=grouped", "-q").err == ""
    odd = write(folder, "odd.tex", "graph g(x: f32[N]) -> (y: f32[N])\n  where N mod 7 == 3, N > 50 { y[i] = x[i] }\n")
    expect(texo("run", odd, "-v"), 0, "N = ")
    never = write(folder, "never.tex", "graph g(x: f32[N]) -> (y: f32[N])\n  where N > 1048576 { y[i] = x[i] }\n")
    expect(texo("run", never), 1, "no small sizes", "N=...")


def test_integer_inputs_fit(folder):
    for seed in range(20):
        for graph in ("embed", "bag"):
            expect(texo("run", GATHER, f"--graph={graph}", f"ids=random:{seed}", "--device=interp", "-q"), 0)
    offsets = write(folder, "o.tex", "graph g(off: i32[B + 1], x: f32[L]) -> (n: i32[B + 1], y: f32[B])\n{\n"
                    "  n[b] = off[b]\n  y[b] = sum[l in off[b]..off[b+1]](x[l])\n}\n")
    expect(texo("run", offsets, "L=30", "B=9", "-q", "--out", f"n={folder}/n.npy", "--out", f"y={folder}/y.npy"), 0)
    n = np.load(folder / "n.npy")
    assert n[0] == 0 and n[-1] == 30 and (np.diff(n) >= 0).all() and len(set(n)) > 3, n
    compound = write(folder, "c.tex", "graph g(t: f32[4*N], k: i32[M]) -> (y: f32[M])\n{\n"
                     "  y[m] = t[k[m] * 4 + 3]\n}\n")
    for seed in range(10):
        expect(texo("run", compound, f"k=random:{seed}", "N=3", "-q"), 0)


def test_files(folder):
    x = np.arange(6, dtype=np.float32)
    expect(texo("run", AXPY, "a=2", "x=" + save(folder, "x.npy", x), "y=ones", "--out", f"z={folder}/z.npy", "-q"), 0)
    assert (np.load(folder / "z.npy") == 2 * x + 1).all()
    ran = expect(texo("run", AXPY, "a=2", f"x=@{folder}/x.npy", "y=zeros", "--out", "z=-"), 0)
    (folder / "from_stdout.npy").write_bytes(ran.raw)
    assert (np.load(folder / "from_stdout.npy") == 2 * x).all()
    ran = expect(texo("run", AXPY, "a=2", "x=@-", "y=zeros", "-q", stdin=(folder / "x.npy").read_bytes()), 0)
    assert "[0, 2, 4, 6, 8, 10]" in ran.out, ran


def test_file_errors(folder):
    f64, i64 = save(folder, "f64.npy", np.ones(4)), save(folder, "i64.npy", np.arange(4))
    expect(texo("run", AXPY, f"x={f64}"), 1, "'<f8'", "f32", "'<f4'", "--cast")
    expect(texo("run", AXPY, f"x={f64}", "--cast"), 0)
    expect(texo("run", AXPY, f"x={i64}", "--cast"), 1, "'<i8'")
    expect(texo("run", AXPY, "x=" + save(folder, "m.npy", np.ones((2, 2), np.float32))), 1, "2 axes")
    expect(texo("run", AXPY, "x=" + save(folder, "a.npy", np.ones(3, np.float32)),
                "y=" + save(folder, "b.npy", np.ones(4, np.float32))), 1, "axis 0 of y has length 4", "N = 3")
    expect(texo("run", AXPY, f"x=@{folder}/a.npy", "N=5"), 1, "axis 0 of x has length 3")
    expect(texo("run", AXPY, f"x=@{folder}/none.npy"), 3, "No such file")
    expect(texo("run", AXPY, f"x=@{folder}"), 3, "directory")
    expect(texo("run", AXPY, "x=" + save(folder, "big.npy", np.ones(3, ">f4"))), 1, "big-endian")
    expect(texo("run", AXPY, "a=@x.npy"), 1, "is a scalar")
    expect(texo("run", GATHER, "--graph=embed", "--cast", "ids=" + save(folder, "far.npy", np.array([2**40]))), 1,
           "1099511627776", "i32")
    good = (folder / "a.npy").read_bytes()
    for name, data in {"short.npy": good[:-1], "head.npy": good[:40], "long.npy": good + b"x", "empty.npy": b"",
                       "lying.npy": good.replace(b"(3,)", b"(9,)"), "text.npy": b"\\documentclass{article}",
                       "bomb.npy": b"\x93NUMPY\x02\x00\xff\xff\xff\x7f" + b" " * 100,
                       "wide.npy": good.replace(b"(3,), }        ", b"(9999999999,), }")}.items():
        (folder / name).write_bytes(data)
        expect(texo("run", AXPY, f"x=@{folder}/{name}", "--out", f"z={folder}/z.npy"), 1, name)
        assert not (folder / "z.npy").exists()


def test_literals_are_checked(folder):
    expect(texo("run", AXPY, "x=[1, [2]]"), 1, "nested")
    expect(texo("run", AXPY, "x=[[1]]"), 1, "2 axes, but x has 1")
    expect(texo("run", AXPY, "a=[1]"), 1, "has 1 axis, but a has 0")
    expect(texo("run", AXPY, "x=rnadom"), 1, "did you mean 'random'")
    expect(texo("run", GATHER, "--graph=embed", "ids=[0.5]"), 1, "no value of an integer")
    expect(texo("run", GATHER, "--graph=embed", "ids=[3000000000]"), 1, "i32")
    expect(texo("run", AXPY, "N=-1"), 1, "whole number")


# --- run: launch failures ---

def test_fact_fails(folder):
    for device in ("interp", "cpu"):
        expect(texo("run", FACTS, "--graph=grouped", f"--device={device}", "N=9", "G=4"), 1, "facts.tex:2:9", "N mod G == 0")


def test_dims_that_fail(folder):
    path = write(folder, "dims.tex", "graph g(x: f32[T*B], b: f32[B], m: i64) -> (y: f32[T], z: f32[m]) {\n"
                 "  y[t] = sum[i](x[t*B + i] * b[i])\n  z[i] = 1\n}\n")
    expect(texo("run", path, "x=[1, 2, 3, 4]", "b=[1, 10]", "m=0"), 0, out=["[21, 43]"])
    for device in ("interp", "cpu"):
        expect(texo("run", path, "x=[1, 2, 3]", "b=[1, 10]", "m=0", "--device=" + device), 1, "axis 0 of x")
        expect(texo("run", path, "x=[1, 2]", "b=[1, 10]", "m=-3", "--device=" + device), 1, "the dim m is -3")


def test_gather_fails(folder):
    for device in ("interp", "cpu"):
        out = folder / "e.npy"
        ran = texo("run", GATHER, "--graph=embed", f"--device={device}", "V=4", "ids=[0, 4]", "--out", f"e={out}")
        expect(ran, 1, "E0790", "gather.tex:3:13", "table[ids[t], d]")
        assert not out.exists() and ran.out == ""
        expect(texo("run", GATHER, "--graph=optional", f"--device={device}", "V=4", "D=1", "table=ones", "ids=[0, 4]", "-q"), 0,
               out=["[[1],\n   [-1]]"])


def test_cut_is_said(folder):
    for device in ("interp", "cpu"):
        ran = texo("run", GATHER, "--graph=bag", f"--device={device}", "V=2", "D=1", "L=2", "table=ones", "ids=[0, 1]",
                   "off=[0, 9]")
        expect(ran, 0, "W0791", out=["[[2]]"])


# --- run: outputs ---

def test_full_disk(folder):
    out = folder / "z.npy"
    ran = texo("run", AXPY, "N=100000", "--out", f"z={out}", "-q", limits={resource.RLIMIT_FSIZE: 1000})
    expect(ran, 3, "z.npy", "File too large")
    assert list(folder.iterdir()) == [], list(folder.iterdir())
    expect(texo("run", AXPY, "--out", "z=/dev/full", "-q"), 3, "No space left")
    with open("/dev/full", "w") as full:
        expect(texo("run", AXPY, "-q", stdout=full), 3, "standard output", "No space left")
        expect(texo("--help", stdout=full), 3, "standard output")


def test_output_paths(folder):
    expect(texo("run", AXPY, "--out", f"z={folder}/no/z.npy", "-q"), 3, "no/z.npy", "No such file")
    expect(texo("run", AXPY, "--out", f"z={folder}", "-q"), 3, "directory")
    (folder / "z.npy").write_text("old")
    expect(texo("run", AXPY, f"x=@{folder}/none", "--out", f"z={folder}/z.npy"), 3)
    assert (folder / "z.npy").read_text() == "old"
    expect(texo("run", AXPY, "N=3", "--out", f"z={folder}/z.npy", "-q"), 0)
    assert np.load(folder / "z.npy").shape == (3,)


def test_two_outputs_or_none(folder):
    program = write(folder, "two.tex", "graph g(x: f32[N]) -> (a: f32[N], b: f32[N]) {\n  a[i] = x[i]\n  b[i] = x[i]\n}\n")
    expect(texo("run", program, "--out", f"a={folder}/a.npy", "--out", f"b={folder}/no/b.npy", "-q"), 3)
    assert sorted(p.name for p in folder.iterdir()) == ["two.tex"]
    expect(texo("run", program, "--out", f"a={folder}/a.npy", "--out", f"b={folder}/a.npy", "-q"), 2, "two results")
    assert sorted(p.name for p in folder.iterdir()) == ["two.tex"]
    expect(texo("run", program, "--out", f"a={folder}/a.npy", "--out", f"b={folder}/b.npy", "-q"), 0)


def test_closed_descriptors(folder):
    done = subprocess.run(["sh", "-c", f"exec {TEXO} run {AXPY} N=4 -q --out z={folder}/z.npy <&- >&- 2>&-"])
    assert done.returncode == 0 and np.load(folder / "z.npy").shape == (4,)


# --- JSON ---

def test_json_of_failures(folder):
    bad = write(folder, "bad.tex", "graph f(x: f32[N]) -> (y: f32[N]) {\n  y[i] = x[i] + z[i]\n}\n")
    gather = write(folder, "gather.tex", "graph f(x: f32[N], k: i32[M]) -> (y: f32[M]) { y[i] = x[k[i]] }\n")
    none = str(folder / "none.tex")
    known = {"code", "severity", "file", "line", "column", "end_column", "message", "help"}
    for args, code, what in (
            (["run", bad], 1, "E0202"), (["build", bad, "-o", folder / "bad"], 1, "E0202"), (["bench", bad], 1, "E0202"),
            (["explain", bad], 1, "E0202"), (["tune", bad], 1, "E0202"), (["inspect", bad], 1, "E0202"),
            (["run", gather, "x=[1]", "k=[3]", "--device=cpu"], 1, "E0790"), (["run", none], 3, "none.tex"),
            (["build", none, "-o", folder / "none"], 3, "none.tex"), (["bench", AXPY, "x=zeros"], 1, "all zeros"),
            (["explain", "E9999"], 2, "E9999"), (["run", AXPY, "--target=cpu:none"], 2, "no such processor"),
            (["cache", "none"], 2, "no action"), (["report", AXPY], 1, "not built yet"),
            (["run", AXPY, "--out", "z=-"], 2, "standard output")):
        ran = expect(texo(*args, "--json"), code)
        said = json.loads(ran.out)["diagnostics"]
        assert said and all(known <= d.keys() for d in said), ran
        assert any(what in (d["code"], ) or what in d["message"] for d in said), ran
        assert ran.err, ran  # people read it as well
    said = json.loads(expect(texo("build", AXPY, "--json", "-o", folder / "axpy"), 0).out)
    assert said == {"files": [str(folder / "axpy.o"), str(folder / "axpy.h")]}, said


# --- run: comparing ---

def test_expect(folder):
    want = np.array([2.5, 4, 5], np.float32)
    given = ["a=2", "x=[1, 2, 3]", "y=[0.5, 0, -1]"]
    expect(texo("run", AXPY, *given, "--expect", "z=" + save(folder, "w.npy", want)), 0, out=["all 3 elements agree"])
    expect(texo("run", AXPY, *given, "--expect", "z=" + save(folder, "d.npy", want.astype(np.float64))), 0)
    near = save(folder, "n.npy", want + np.float32(0.001))
    expect(texo("run", AXPY, *given, "--expect", f"z={near}"), 5, out=["3 of 3 elements differ", "worst at ["])
    expect(texo("run", AXPY, *given, "--expect", f"z={near}", "--rtol=0.001"), 0)
    expect(texo("run", AXPY, *given, "--expect", f"z={near}", "--atol", "0.002"), 0)
    expect(texo("run", AXPY, *given, "--expect", "z=" + save(folder, "s.npy", want[:2])), 1, "shape [2]", "can't be compared")
    nan = save(folder, "nan.npy", np.array([2.5, np.nan, 5], np.float32))
    expect(texo("run", AXPY, *given, "--expect", f"z={nan}", "--rtol=1"), 5, out=["want nan"])
    expect(texo("run", AXPY, "a=2", "x=[1, nan, 3]", "y=[0.5, 0, -1]", "--expect", f"z={nan}"), 0)


def test_expect_of_large_integers(folder):
    """Integers that are one number as doubles are still two, also in a test block."""
    large = write(folder, "large.tex", "graph f(k: i64[N], u: u64[N]) -> (a: i64[N], b: u64[N]) {\n"
                                       "  a[i] = k[i]\n  b[i] = u[i]\n}\n"
                                       "# test: off by one\n#   k = [1152921504606846977]\n#   u = [0]\n"
                                       "#   expect a = [1152921504606846976]\n")
    a = save(folder, "a.npy", np.array([2**60], np.int64))
    b = save(folder, "b.npy", np.array([2**64 - 1], np.uint64))
    given = ["run", large, "--expect", f"a={a}", "--expect", f"b={b}"]
    expect(texo(*given, f"k=[{2**60}]", f"u=[{2**64 - 1}]"), 0)
    expect(texo(*given, f"k=[{2**60 + 1}]", f"u=[{2**64 - 1}]"), 5, out=["a: 1 of 1 elements differ", "b: all 1"])
    expect(texo(*given, f"k=[{2**60}]", f"u=[{2**64 - 2}]"), 5, out=["a: all 1", "b: 1 of 1 elements differ", "got 1.84467441e+19"])
    expect(texo("test", large), 5, "off by one")


def test_compare(folder):
    ran = expect(texo("run", AXPY, "N=1000", "--compare=interp"), 0, out=["0 of 1000 elements differ", "bound", "ulp"])
    assert "got" in ran.out
    expect(texo("run", PROGRAMS / "update.tex", "--graph=step", "--compare=interp", "-q"), 0, out=["w: 0 of", "m: 0 of"])


# --- test ---

def test_blocks_pass(folder):
    for device in ("interp", "cpu"):
        ran = expect(texo("test", f"--device={device}", *sorted(PROGRAMS.glob("*.tex"))), 0)
        assert ran.out.splitlines()[-1] == "1 passed, 0 failed", ran


BLOCKS = """graph g(x: f32[N], k: i32[N]) -> (y: f32[N], n: i64[N])
  where N >= 2
{
  y[i] = x[k[i]] / 3
  n[i] = k[i] * 2
}
# test: good
#   x = [1, 2, 3]
#   k = [2, 1, 0]
#   expect y = [1, 0.667, 0.33333333]
#   expect n = [4, 2, 0]
#   kernels <= 2
# test: rounded literal is too far off
#   x = [1, 2, 3]
#   k = [2, 1, 0]
#   expect y = [1, 0.668, 0.333]
# test: integers are exact
#   k = [1, 0]
#   expect n = [2, 1]
# test: kernels
#   kernels > 99
# test: the fact
#   x = [1]
#   k = [0]
#   error E0790
# test: the gather
#   x = [1, 2]
#   k = [0, 2]
#   error E0790 at 4:10
# test: no error is no error
#   error E0790
# test: misspelt
#   expcet y = [1]
# test: unknown result
#   expect z = [1]
# test: shape
#   k = [1, 0]
#   expect n = [[2, 0]]
"""


def test_blocks_fail(folder):
    path = write(folder, "blocks.tex", BLOCKS)
    for device in ("interp", "cpu"):
        ran = expect(texo("test", "--json", f"--device={device}", path), 5)
        found = json.loads(ran.out)
        passed = {t["name"]: t["passed"] for t in found["tests"]}
        assert passed == {"good": True, "rounded literal is too far off": False, "integers are exact": False,
                          "kernels": False, "the fact": False, "the gather": True, "no error is no error": False,
                          "misspelt": False, "unknown result": False, "shape": False}, ran
        assert (found["passed"], found["failed"]) == (2, 8)
    ran = expect(texo("test", path), 5, "did you mean 'expect'", "blocks.tex:")
    assert ran.out == "2 passed, 8 failed\n", ran


def test_blocks_from_stdin(folder):
    text = pathlib.Path(AXPY).read_bytes()
    expect(texo("test", "-", stdin=text), 0, out=["1 passed, 0 failed"])
    expect(texo("test", "-", stdin=text.replace(b"2.5, 4, 5", b"2.5, 4, 6")), 5, "<stdin>:", out=["0 passed, 1 failed"])


def test_error_blocks(folder):
    path = write(folder, "e.tex", "graph g(x: f32[N]) -> (y: f32[N])\n{\n  y[i] = q[i]\n}\n"
                 "# test: a\n#   error E0202 at 3:10\n# test: b\n#   error E0202 at 3:11\n# test: c\n#   x = [1]\n")
    ran = texo("check", "--json", path)
    code = json.loads(ran.out)["diagnostics"][0]["code"]
    path = write(folder, "e.tex", pathlib.Path(path).read_text().replace("E0202", code))
    ran = expect(texo("test", path), 5, "was expected and not reported", "does not compile")
    assert ran.out == "1 passed, 2 failed\n", ran
    expect(texo("test", write(folder, "n.tex", "graph g(")), 5, out=["0 passed, 1 failed"])
    expect(texo("test", folder / "none.tex", AXPY), 3, out=["1 passed, 0 failed"])


# --- explain, emit, targets, doctor ---

# --- fmt ---

def test_fmt(folder):
    rough, smooth = "graph g(x:f32[N])->(y:f32[N]){y[i]=2*x[i] # twice\n}", \
        "graph g(x: f32[N]) -> (y: f32[N]) {\n  y[i] = 2 * x[i]  # twice\n}\n"
    path, good = write(folder, "rough.tex", rough), write(folder, "smooth.tex", smooth)
    os.chmod(path, 0o640)
    link = folder / "link.tex"
    link.symlink_to(path)
    ran = expect(texo("fmt", "--check", path, good), 1)
    assert ran.out == path + "\n" and pathlib.Path(path).read_text() == rough
    expect(texo("fmt", "--check", good), 0)
    stamp = os.stat(good).st_mtime_ns
    assert expect(texo("fmt", link, good), 0).out == ""
    assert pathlib.Path(path).read_text() == smooth and link.is_symlink() and os.stat(path).st_mode & 0o777 == 0o640
    assert os.stat(good).st_mtime_ns == stamp, "a file that is laid out is not written"
    assert texo("fmt", "-", stdin=rough.encode()).out == smooth
    assert expect(texo("fmt", "--check", "-", stdin=rough.encode()), 1).out == "<stdin>\n"
    assert sorted(f.name for f in folder.iterdir()) == ["link.tex", "rough.tex", "smooth.tex"]


def test_fmt_leaves_errors_alone(folder):
    bad, rough = write(folder, "bad.tex", "const A  =\n"), write(folder, "rough.tex", "const A  = 1")
    expect(texo("fmt", bad, rough), 1, "bad.tex:1:", "E0100")
    assert pathlib.Path(bad).read_text() == "const A  =\n" and pathlib.Path(rough).read_text() == "const A = 1\n"
    expect(texo("fmt"), 2, "needs a file")
    expect(texo("fmt", folder / "none.tex"), 3, "No such file")
    expect(texo("fmt", folder), 3, "is a directory")
    # an error of meaning is none of the layout's business
    expect(texo("fmt", "-", stdin=b"fn f(x) = nothing(x)"), 0, out=["fn f(x) = nothing(x)\n"])
    if os.getuid() != 0:
        os.chmod(folder, 0o500)
        expect(texo("fmt", write(folder, "rough.tex", "const A  = 1")), 3, "cannot write")


def test_fmt_json(folder):
    bad, rough = write(folder, "bad.tex", "const A  =\n"), write(folder, "rough.tex", "const A  = 1")
    said = json.loads(expect(texo("fmt", "--check", "--json", bad, rough), 1).out)
    assert said["files"] == [{"file": rough, "differs": True}]
    assert [(d["code"], d["file"], d["line"]) for d in said["diagnostics"]] == [("E0100", bad, 1)]
    said = json.loads(texo("fmt", "--json", "-", stdin=b"const A  = 1").out)
    assert said == {"files": [{"file": "<stdin>", "differs": True, "text": "const A = 1\n"}], "diagnostics": []}


# --- inspect ---

def test_inspect_text(folder):
    path = write(folder, "g.tex", "graph g(x: f32[2*N + 1, M], k: i32, inout w: f32[N]) -> (y: f32[N, M])\n"
                 "  where N mod 4 == 0, M ~ 64\n{\n  y[i, j] = x[2*i, j] + k\n  w[i] = w[i] + 1\n}\n")
    ran = expect(texo("inspect", path), 0)
    for line in ("1 graph", "graph g(x: f32[(N * 2) + 1, M], k: i32, inout w: f32[N]) -> (y: f32[N, M])", "dim N: axis 0 of w",
                 "dim M: axis 1 of x, about 64", "must hold: N mod 4 == 0 (line 2)"):
        assert line in ran.out, f"{line}\n{ran}"
    said = json.loads(expect(texo("inspect", "--json", path), 0).out)
    assert said["kind"] == "program text" and said["bytes"] == os.path.getsize(path)
    (g,) = said["graphs"]
    assert [(p["name"], p["kind"], p["dtype"], p["shape"]) for p in g["params"]] == [
        ("x", "input", "f32", "[(N * 2) + 1, M]"), ("k", "scalar", "i32", ""), ("w", "inout", "f32", "[N]"),
        ("y", "result", "f32", "[N, M]")]
    assert g["levels"] == [] and g["checks"][0]["text"] == "N mod 4 == 0" and g["dims"][0]["hint"] == 64
    solved = write(folder, "s.tex", "graph g(x: f32[2*N + 1]) -> (y: f32[N]) { y[i] = x[2*i] }\n")
    expect(texo("inspect", solved), 0, out=["dim N: (axis 0 of x - 1) / 2"])
    expect(texo("inspect", "-DN=3", solved), 0, out=["dim N: 3, fixed"])
    expect(texo("inspect", write(folder, "bad.tex", "const A =\n")), 1, "E0100")
    expect(texo("inspect", folder / "none"), 3, "No such file")
    expect(texo("inspect", folder), 3, "is a directory")
    expect(texo("inspect"), 2, "needs a file")
    expect(texo("inspect", "a.tex", "b.tex"), 2, "takes one operand, not 'b.tex'")
    expect(texo("build", AXPY, "N=4"), 2, "takes one operand, not 'N=4'", "-D N=4 makes a dim static")
    expect(texo("doctor", "a.tex"), 2, "takes no operand")


def test_inspect_code(folder):
    path, code = write(folder, "g.tex", "graph g(x: f32[2*N + 1], s: f32) -> (y: f32[N])\n  where N <= 1000\n{\n"
                       "  y[i] = s * x[2*i]\n}\ngraph h(x: i8[N]) -> (y: i64) { y = sum[i](x[i]) }\n"), folder / "g"
    expect(texo("build", path, "-o", code, "--target=cpu:x86-64-v3,cpu:x86-64", "--emit=obj,lib,so"), 0)
    for ending, kind in ((".o", "object"), (".a", "library"), (".so", "shared library")):
        said = json.loads(expect(texo("inspect", "--json", f"{code}{ending}"), 0).out)
        assert said["kind"] == kind and [g["name"] for g in said["graphs"]] == ["g", "h"]
        g = said["graphs"][0]
        assert [(p["name"], p["kind"], p["dtype"], p["shape"]) for p in g["params"]] == [
            ("x", "input", "f32", "[(N * 2) + 1]"), ("s", "scalar", "f32", ""),
            ("y", "result", "f32", "[N]")]
        assert g["dims"] == [{"name": "N", "param": "x", "axis": 0, "scale": 2, "offset": 1}]
        assert [c["text"] for c in g["checks"]] == ["N <= 1000"]
        assert [v["cpu"] for v in g["levels"]] == ["x86-64-v3", "x86-64"]
        assert "avx2" in g["levels"][0]["features"] and g["levels"][1]["features"] == []
        for level in g["levels"]:
            assert level["tables_bytes"] > 0 and all(k["bytes"] > 0 for k in level["kernels"]) and level["kernels"]
    expect(texo("inspect", f"{code}.o"), 0, out=["object", "graph h(x: i8[N]) -> (y: i64)", "x86-64-v3: 1 kernel,"])
    subprocess.run(["strip", f"{code}.so"], check=True)
    stripped = json.loads(expect(texo("inspect", "--json", f"{code}.so"), 0).out)["graphs"]
    assert len(stripped) == 2 and stripped[0]["levels"][0]["kernels"][0]["bytes"] is None


def test_inspect_damaged(folder):
    path = write(folder, "g.tex", "graph g(x: f32[N]) -> (y: f32[N]) { y[i] = 2 * x[i] }\n")
    expect(texo("build", path, "-o", folder / "g", "--target=cpu:x86-64"), 0)
    whole = (folder / "g.o").read_bytes()
    at = whole.index(b"TEXOIMG1")
    bad = folder / "bad.o"
    for k in range(0, 400, 7):
        bad.write_bytes(whole[:at + k] + bytes([whole[at + k] ^ 0x41]) + whole[at + k + 1:])
        expect(texo("inspect", bad), 1, "holds no graph that texo compiled")
    for n in (16, 63, 64, 200, at + 8, at + 100, len(whole) // 2):
        bad.write_bytes(whole[:n])
        expect(texo("inspect", bad), 1)
    bad.write_bytes(whole[at:])
    expect(texo("inspect", bad), 0, out=["artefact", "graph g(x: f32[N]) -> (y: f32[N])"])
    bad.write_bytes(whole[at:at + 16] + bytes(200))
    expect(texo("inspect", bad), 1, "bad.o: ")
    expect(texo("inspect", TEXO), 1, "holds no graph")


def test_explain(folder):
    found = json.loads(expect(texo("explain", "--json", AXPY, "N=1000"), 0).out)
    assert set(found) >= {"graph", "target", "kernels", "bytes_unfused", "bytes_fused", "refused"}
    (kernel,) = found["kernels"]
    assert set(kernel) >= {"name", "template", "defs", "bytes", "flops", "predicted_us"}
    assert found["predicted_us"] == kernel["predicted_us"] > 0 and found["predicted_us_unfused"] > 0, found
    gpu = json.loads(texo("explain", "--json", AXPY, "N=1000", "--target=cuda").out)
    assert gpu["predicted_us"] == gpu["kernels"][0]["predicted_us"] > 0, gpu
    assert kernel["defs"] == ["z"] and kernel["bytes"] == 12004 and kernel["flops"] == 2000, kernel
    soft = json.loads(texo("explain", "--json", PROGRAMS / "softmax.tex", "--graph=rows", "--fuse=off").out)
    assert len(soft["kernels"]) > 1 and soft["refused"] and all(set(r) >= {"from", "to", "code", "reason", "line"} for r in soft["refused"])
    expect(texo("explain", AXPY), 0, out=["graph axpy", "kernel"])
    gather = json.loads(texo("explain", "--json", GATHER, "--graph=embed", "V=1000", "D=8", "T=5").out)
    assert gather["bytes_fused"] == 5 * 8 * 4 + 5 * 4 + 5 * 8 * 4, gather
    bag = json.loads(texo("explain", "--json", GATHER, "--graph=bag", "V=1000", "D=8", "L=6", "B=3").out)
    assert bag["bytes_fused"] == 6 * 8 * 4 + 6 * 8 + 4 * 4 + 3 * 8 * 4, bag


def check_titles(file, graph, found):
    """A name of the program, or a description that no other tensor has, of a definition and a line that there are."""
    program = file.read_text()
    defs = [d for k in found["kernels"] for d in k["defs"]]
    unnamed = [d for d in defs if "(line " in d]
    assert len(set(unnamed)) == len(unnamed), (file, graph, unnamed)
    for title in {*defs, *(e[end] for e in found["refused"] for end in ("from", "to"))}:
        name, line = re.fullmatch(r"(?:.* (?:of|for) )?(\w+)(?: \(line (\d+)\))?", title).groups()
        assert re.search(rf"\b{name.removesuffix('_parts')}\b", program), (file, graph, title)
        assert not line or 0 < int(line) <= program.count("\n"), (file, graph, title)


def test_titles(folder):
    """Of what has no name: in the text, and of two of one description."""
    path = write(folder, "t.tex", """use "std"
graph two(x: f32[N, M], w: f32[M]) -> (y: f32[N]) {
  y[i] = sum[j](x[i, j] * w[j]) + sum[j](x[i, j]) / max[j](x[i, j])
}
graph far(x: f32[N, M]) -> (y: f32[N, M]) {
  h[i] = mean[k](x[i, k])
  y[i, j] = softmax[j](x[i, j] * h[i])
}
graph rows(x: f32[N, D], z: f32[M, D], a: f32[M]) -> (y: f32[N]) {
  y[i] = sum[j](exp(-sum[d](sq(x[i, d] - z[j, d]))) * a[j])
}
graph whole(x: f32[N]) -> (y: f32[N]) {
  y[i] = softmax[i](x[i])
}
""")
    expect(texo("explain", path, "--graph=two", "--fuse=off"), 0,
           out=["rowred sum[j] of y (line 3):", "rowred sum[j] 2 of y (line 3):", "rowred max[j] of y (line 3):",
                "sum[j] 2 of y (line 3) -> y (line 3): "])
    expect(texo("explain", path, "--graph=far", "--fuse=off"), 0,
           out=["sum[k] of h (line 6):", "max[j] of y (line 7):", "sum[j] of y (line 7)", "h -> max[j] of y (line 7): "])
    expect(texo("explain", path, "--graph=rows"), 0, out=["copy of z for y (line 10)", "sum[d] of y (line 10)"])
    expect(texo("explain", path, "--graph=whole", "N=100000"), 0,
           out=["max[j] in parts of y (line 13) -> max[j] of y (line 13): the parts", "y waits for max[j] of y (line 13): "])


def test_every_edge_has_a_reason(folder):
    """Of the examples: what the schedule says of each tensor that goes between kernels; else it is a copy of its own."""
    edges = copies = 0
    for file in sorted((HERE.parents[1] / "examples").glob("*.tex")):
        for graph in re.findall(r"^graph (\w+)\(", file.read_text(), re.M):
            for fuse in ("all", "elementwise", "off"):
                found = json.loads(expect(texo("explain", file, f"--graph={graph}", f"--fuse={fuse}", "--json"), 0).out)
                check_titles(file, graph, found)
                for edge in found["refused"]:
                    edges += 1
                    assert edge["from"] and edge["to"] and edge["code"] and len(edge["reason"]) > 10 and edge["line"] > 0, (file, edge)
                    copies += edge["code"] == "result_copied"
                    assert edge["code"] != "result_copied" or edge["from"] == edge["to"], (file, graph, fuse, edge)
    assert edges > 150 and 0 < copies < 10, (edges, copies)


def test_explain_codes(folder):
    expect(texo("explain", "e0110"), 0, out=["E0110", "LaTeX"])
    assert json.loads(texo("explain", "E0110", "--json").out)["severity"] == "error"
    expect(texo("explain", "E0111x"), 3)
    expect(texo("explain", "E9999"), 2, "there is no code 'E9999'")
    expect(texo("explain", "E0119"), 2, "did you mean")


def check_emit_json(folder, broken):
    """One object, whose texts are those without --json, byte for byte."""
    def same(*args):
        said = json.loads(expect(texo(*args, "--json"), 0).out)
        assert list(said) == ["forms"], (args, said)
        assert "".join(f["text"] for f in said["forms"]) == texo(*args).out, args
        return [f["form"] for f in said["forms"]]
    for command in ("run", "build"):
        for form in ("tokens", "ast", "tg", "dot", "plan", "tir", "llvm", "asm"):
            assert same(command, AXPY, f"--emit={form}") == [form]
        assert same(command, AXPY, "--emit=tir,tg", "-o", "-") == ["tg", "tir"]
        assert same(command, AXPY, "--emit=ptx", "--target=cuda") == ["ptx"]
        expect(texo(command, AXPY, "--emit=cubin", "--target=cuda", "--json"), 2, "a cubin is no text", "-o PATH writes it")
    for form in ("header", "manifest"):
        assert same("build", AXPY, f"--emit={form}", "-o", "-") == [form]
    assert same("run", broken, "--emit=tokens") == ["tokens"]
    path = f"{folder}/plan.txt"
    assert json.loads(expect(texo("build", AXPY, "--emit=plan", "-o", path, "--json"), 0).out) == {"files": [path]}
    assert pathlib.Path(path).read_text() == texo("build", AXPY, "--emit=plan").out
    for form in ("ast", "tg"):
        said = json.loads(expect(texo("run", broken, f"--emit={form}", "--json"), 1).out)["diagnostics"]
        assert said[0]["code"] == "E0102", said


def test_emit(folder):
    marks = {"tokens": "graph", "ast": "axpy", "tg": "graph axpy", "dot": "digraph", "plan": "kernel", "tir": "kernel",
             "llvm": "define", "asm": ".text"}
    for form, mark in marks.items():
        for command in ("run", "build"):
            expect(texo(command, AXPY, f"--emit={form}"), 0, out=[mark])
    expect(texo("build", AXPY, "--emit=tg,tir", "-o", f"{folder}/out.txt"), 0)
    assert "kernel" in (folder / "out.txt").read_text()
    expect(texo("build", AXPY, "--emit=tg,tir", "-o", "-"), 0, out=["graph axpy", "kernel"])
    broken = write(folder, "b.tex", "graph g(x: f32[N]) -> (y: f32[N]) { y[i] = ) }\n")
    expect(texo("run", broken, "--emit=tokens"), 0, out=["graph"])
    expect(texo("run", broken, "--emit=ast"), 1, "b.tex:1:")
    expect(texo("run", broken, "--emit=tg"), 1, "b.tex:1:")
    expect(texo("run", AXPY, "--dump=schedule", "-q"), 0, "# after schedule", out=["z: f32"])
    check_emit_json(folder, broken)
    expect(texo("build", AXPY, "--emit=plan", "--stop=schedule"), 2, "--stop")


def test_targets_and_doctor(folder):
    expect(texo("targets"), 0, out=["cpu:x86-64-v3", "cuda"])
    assert "cpu:x86-64-v4" in json.loads(texo("targets", "--json").out)["targets"]
    expect(texo("doctor"), 0, out=["LLVM 22", "GPU driver"])
    for f in json.loads(texo("doctor", "--json").out)["findings"]:
        assert f["present"] or f["mend"], f
    ran = expect(texo("doctor", env={"PATH": "/nowhere", "CUDA_HOME": ""}), 0, out=["no ptxas on PATH"])
    assert "nvcc" in ran.out


def test_explain_read_again(folder):
    """A vector's softmax reads it twice, since all of it must have been seen; rows' reads a row once."""
    text = ('use "std"\ngraph vector(x: f32[N]) -> (y: f32[N]) { y[i] = softmax[i](x[i]) }\n'
            'graph rows(x: f32[N, M]) -> (y: f32[N, M]) { y[i, j] = softmax[j](x[i, j]) }\n'
            "graph apart(x: f32[N]) -> (y: f32[N], s: f32) { y[i] = 2 * x[N - 1 - i]\n  s = sum[i](x[i]) }\n")
    file = write(folder, "again.tex", text)
    for target in ("cpu", "cuda:sm_90a"):
        ran = expect(texo("explain", file, "--graph=vector", f"--target={target}", "N=100000"), 0, out=["read again:\n  x by k0, k"])
        assert ": y waits for max[j] of y (line 2): it needs more than one row of what it reads\n" in ran.out, ran
        assert "read again" not in expect(texo("explain", file, "--graph=rows", f"--target={target}"), 0).out
    (again,) = json.loads(texo("explain", file, "--graph=vector", "--json").out)["read_again"]
    assert again["input"] == "x" and again["times"] == 2 and again["reason"], again
    assert json.loads(texo("explain", file, "--graph=rows", "--json").out)["read_again"] == []
    apart = json.loads(texo("explain", file, "--graph=apart", "--json").out)["read_again"]
    assert not apart or apart[0]["reason"] == "nothing goes from one to the other", apart


def test_near_functions(folder):
    """Of the file, of a file that it uses, and the language's own, with an index or without."""
    text = "use \"std\"\nfn thrice(x) = 3*x\ngraph g(x: f32[N]) -> (y: f32[N]) {{ y[i] = {} }}\n"
    for wrong, right in (("thrise(x[i])", "thrice"), ("rleu(x[i])", "relu"), ("expp(x[i])", "exp"), ("Exp(x[i])", "exp"),
                         ("summ[j](x[j])", "sum"), ("softmaxx[i](x[i])", "softmax"), ("argmaks[j](x[j])", "argmax")):
        expect(texo("check", write(folder, "near.tex", text.format(wrong))), 1, "E0207", f"did you mean `{right}`?")
    hidden = 'use "std"\ngraph gelu(x: f32[N]) -> (y: f32[N]) { y[i] = gelu(x[i]) }\n'
    expect(texo("check", write(folder, "near.tex", hidden)), 1, "E0207", "hides the standard library's: give it another name")
    ran = expect(texo("check", write(folder, "near.tex", text.format("q(x[i])"))), 1, "E0207")
    assert "did you mean" not in ran.err, ran


# --- ends ---

def test_interrupt(folder):
    slow = write(folder, "slow.tex", "graph g(x: f32[N, N]) -> (y: f32[N, N]) { y[i, j] = sum[k](x[i, k] * x[k, j]) }\n")
    for device in ("interp", "cpu"):
        run = subprocess.Popen([TEXO, "run", slow, "N=3000", f"--device={device}", "-q", "--out", f"y={folder}/y.npy"])
        time.sleep(0.5)
        run.send_signal(signal.SIGINT)
        assert run.wait(timeout=10) == 130
    assert sorted(p.name for p in folder.iterdir()) == ["slow.tex"]


def test_crash(folder):
    if SANITIZED:
        return  # its own handlers
    slow = write(folder, "slow.tex", "graph g(x: f32[N, N]) -> (y: f32[N, N]) { y[i, j] = sum[k](x[i, k] * x[k, j]) }\n")
    for sig in (signal.SIGSEGV, signal.SIGABRT):
        run = subprocess.Popen([TEXO, "run", slow, "N=3000", "--device=interp", "-q", "--out", f"y={folder}/y.npy"],
                               stderr=subprocess.PIPE, text=True)
        time.sleep(0.5)
        run.send_signal(sig)
        assert "Please report it" in run.communicate(timeout=10)[1]
        assert run.returncode == 70
    assert sorted(p.name for p in folder.iterdir()) == ["slow.tex"]


def test_no_memory(folder):
    expect(texo("run", AXPY, "N=4611686018427387904"), 1, "x of shape [4611686018427387904] is larger than any memory")
    rows = write(folder, "rows.tex", "graph g(x: f32[N], z: f32[N, M]) -> (y: f32[N, M]) { y[i, j] = x[i] + z[i, j] }\n")
    for n in (4611686018427387904, 5000000):  # it is not that facts fail
        expect(texo("run", rows, f"N={n}"), 1, f"z has too many elements with N = {n}, whatever small size M has", "help: give a smaller size", "M=...")
    if SANITIZED:
        return
    ran = texo("run", AXPY, "N=400000000", "-q", limits=memory(600))
    expect(ran, 3, "x of shape [400000000]: out of memory for 16", "help: smaller sizes")


def test_start_up(folder):
    """In pages, which a start is spent on and which no other work on the machine adds to; bench/ has the time."""
    if SANITIZED:
        return
    for args in (["--help"], ["check", AXPY]):
        pages = pages_touched(args)
        assert pages < 700, f"{args}: {pages} pages"


def pages_touched(args):
    child = subprocess.Popen([TEXO, *args], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == 0
    return used.ru_minflt + used.ru_majflt


if __name__ == "__main__":
    sys.exit(each_test.main(globals(), sys.argv[2:]))
