"""The bits of a result do not depend on the number of threads. usage: threads.py TEXO

Folds of parts, scans and rows of random data, run on 1, 2, 3 and 7 threads."""
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAM = """graph g(x: f32[N], y: f32[M, K]) -> (s: f32, m: f32, a: i64, t: f32, c: f32[M, K], d: f32[N]) {
  s = sum[i](x[i])
  m = max[i where x[i] < 0.5](x[i]) else 0
  a = argmin[i](x[i])
  t = sum[i, j](y[i, j] * y[i, j])
  c[i, j] = sum[k in 0..j + 1](y[i, k])
  d[i] = sum[k in 0..i + 1](x[k])
}
"""
INPUTS = ["x=normal:1 f32[150001]", "y=normal:2 f32[301, 517]"]
RESULTS = "smatcd"


def results(texo, folder, threads):
    out = {name: Path(folder) / f"{name}{threads}.npy" for name in RESULTS}
    done = subprocess.run([texo, "run", Path(folder) / "g.tex", *INPUTS, f"--jobs={threads}",
                           *(f"--out={name}={path}" for name, path in out.items())], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return {name: path.read_bytes() for name, path in out.items()}


def main():
    texo = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "g.tex").write_text(PROGRAM)
        first = results(texo, folder, 1)
        for threads in (2, 3, 7):
            again = results(texo, folder, threads)
            differ = [name for name in first if first[name] != again[name]]
            assert not differ, f"{threads} threads give other bits of {differ}"
    print(f"{len(first)} results are the same on 1, 2, 3 and 7 threads")


if __name__ == "__main__":
    main()
