"""Errors that only a run shows, and those of the command around a file: their codes, places and exit
codes. usage: launch_codes.py TEXO"""
import json
import subprocess
import sys
import tempfile
from pathlib import Path

TEXO = sys.argv[1]
PROGRAM = """graph facts(x: f32[N]) -> (y: f32[N]) where N mod 4 == 0 {
  y[i] = x[i]
}
graph largest(x: f32[N, M]) -> (y: f32[N]) {
  y[i] = max[j](x[i, j])
}
graph swapped(x: f32[N, M]) -> (y: f32[N, M]) {
  y[i, j] = x[j, i]
}
graph both(x: f32[N], z: f32[M]) -> (y: f32) {
  y = sum[i](x[i] * z[i])
}
graph shorter(x: f32[N]) -> (y: f32[N - 3], z: f32) {
  y[i] = x[i + 3]
  z = N >= 2 ? x[N - 2] : x[N - 3]
}
graph stated(x: f32[N]) -> (y: f32[N - 1], z: f32) where N >= 1 {
  y[i] = x[i]
  z = x[N - 1]
}
graph called(x: f32[N]) -> (y: f32) {
  (a, b) = shorter(x)
  y = sum[i](a[i]) + b + x[N - 3]
}
graph halves(x: f32[2*N + 2]) -> (y: f32[N]) {
  y[i] = x[2*i]
}
graph uneven(x: f32[K]) -> (y: f32) {
  (a) = halves(x)
  y = sum[i](a[i])
}
graph told(n: i64, x: f32[n], z: f32[K - 3], w: f32[K]) -> (y: f32[n], u: f32) {
  y[i] = x[i]
  u = sum[i](z[i] + w[i + 3])
}
"""
RUNS = [  # graph, dims, code and place or None
    ("facts", ["N=6"], ("E0702", 1, 45)), ("facts", ["N=8"], None),
    ("largest", ["N=2", "M=0"], ("E0703", 5, 10)), ("largest", ["N=2", "M=1"], None),
    ("swapped", ["N=2", "M=3"], ("E0704", 8, 15)), ("swapped", ["N=3", "M=3"], None),
    ("both", ["N=2", "M=3"], ("E0705", 11, 23)), ("both", ["N=3", "M=3"], None),
    ("shorter", ["N=2"], ("E0707", 13, 37)), ("shorter", ["N=3"], None),
    ("stated", ["N=0"], ("E0702", 17, 58)), ("stated", ["N=1"], None),
    ("called", ["N=2"], ("E0707", 13, 37)), ("called", ["N=4"], None),
    ("uneven", ["K=5"], ("E0705", 25, 14)), ("uneven", ["K=1"], ("E0705", 25, 21)), ("uneven", ["K=2"], None),
    ("facts", ["-D", "Q=3"], ("E0706", 1, 4)),
    ("halves", ["x=[1, 2, 3]"], ("E0708", 25, 14)), ("halves", ["x=[1, 2, 3, 4]"], None),
    ("halves", ["x=[[1, 2]]"], ("E0708", 25, 14)), ("both", ["x=[[1]]"], ("E0708", 10, 12)),
    ("told", ["n=-1", "K=4"], ("E0708", 32, 12)), ("told", ["n=2", "x=[1, 2, 3]", "K=4"], ("E0708", 32, 20)),
    ("told", ["n=2", "K=2"], ("E0708", 32, 31)), ("told", ["n=2", "K=3"], None),
]


def texo(*args):
    done = subprocess.run([TEXO, *map(str, args)], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


def check_shown_once(path):
    """By every command that binds inputs; as one object with --json."""
    for command in ("run", "bench", "explain", "tune"):
        code, out, err = texo(command, path, "--graph=halves", "x=[1, 2, 3]")
        assert code == 1 and err.count("error[E0708]: axis 0 of x can't have length 3") == 1, (command, code, out, err)
        assert "texo: axis" not in err, (command, err)
        code, out, err = texo(command, path, "--graph=halves", "--json", "x=[1, 2, 3]")
        found = [(d["code"], d["line"], d["column"]) for d in json.loads(out)["diagnostics"] if d["severity"] == "error"]
        assert code == 1 and found == [("E0708", 25, 14)], (command, code, out, err)


def check_runs(path):
    for device in ("interp", "cpu"):
        for graph, dims, want in RUNS:
            code, out, err = texo("run", path, f"--graph={graph}", f"--device={device}", *dims)
            words = (f"error[{want[0]}]", f":{want[1]}:{want[2]}\n") if want else ()
            right = code == (1 if want else 0) and all(w in err for w in words) and (want or "error" not in err)
            assert right, (graph, device, dims, code, out, err)


def check_limits(folder):
    """Functions that double what they are given meet a limit, and soon."""
    path = folder / "doubling.tex"
    lines = ["fn f(x) = " + " + ".join(f"exp(x * {k}.5)" for k in range(900))]
    for g in range(8):
        terms = " + ".join(f"f(x[i] + {k}.25)" for k in range(200))
        lines += [f"graph g{g}(x: f32[N]) -> (y: f32[N]) {{", "  y[i] = " + terms, "}"]
    path.write_text("\n".join(lines))
    code, out, err = texo("check", "--json", path)
    found = [d["code"] for d in json.loads(out)["diagnostics"]]
    assert code == 1 and found == ["E0990"] and f"error[E0990]: {path}: the memory limit of 256 MiB" in err, (code, out, err)

    lines = ["fn g0(x) = x * x + 1"]
    lines += [f"fn g{k}(x) = g{k - 1}(g{k - 1}(x)) + g{k - 1}(x - {k})" for k in range(1, 26)]
    lines += ["graph g(x: f32[N]) -> (y: f32[N]) {", "  y[i] = g25(x[i])", "}"]
    path.write_text("\n".join(lines))
    code, out, err = texo("check", "--json", path)
    found = [(d["code"], d["line"], d["column"]) for d in json.loads(out)["diagnostics"]]
    assert code == 1 and found == [("E0921", 28, 10)], (code, out, err)

    lines = ["fn g0(x) = x * x"] + [f"fn g{k}(x) = g{k - 1}(x) + g{k - 1}(x)" for k in range(1, 26)]
    lines += ["graph g(x: f32[N]) -> (y: f32[N]) {", "  a[i] = g3(x[i])", "  y[i] = a[i] + g25(x[i])", "}"]
    path.write_text("\n".join(lines))
    for command in ("check", "run"):
        code, out, err = texo(command, path)
        assert code == 1 and err.count("error[") == 1 and ":29:17\n" in err, (code, out, err)
        assert "error[E0921]: functions expand to more than 3000000 expressions" in err, (code, out, err)

    # Deep, in a graph that would be in error beyond the limit as well; the graph after it is looked at.
    lines = ["fn g0(x) = " + "-(" * 90 + "x" + ")" * 90]
    lines += [f"fn g{k}(x) = " + "-(" * 90 + f"g{k - 1}(x)" + ")" * 90 for k in range(1, 46)]
    lines += ["graph g(x: f32[N]) -> (y: f32[N]) {", "  y[i] = g45(x[i]) + sum[q](x[i]) + z", "}"]
    lines += ["graph h(x: f32[N]) -> (y: f32[N]) {", "  y[i] = g2(x[i]) + z", "}"]
    path.write_text("\n".join(lines))
    code, out, err = texo("check", "--json", path)
    found = [(d["code"], d["line"], d["column"]) for d in json.loads(out)["diagnostics"]]
    assert code == 1 and found == [("E0921", 48, 10), ("E0202", 51, 21)], (code, out, err)


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "launch.tex"
        path.write_text(PROGRAM)
        check_runs(path)
        check_shown_once(path)
        check_limits(Path(folder))
    print(f"{2 * len(RUNS) + 1} runs")


main()
