"""The bundle needs nothing but libc, and works where it is moved to. usage: bundle.py ROOT BUILD"""
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT, BUILD = Path(sys.argv[1]), Path(sys.argv[2])
LIBC = {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2"}
OURS = {"libtexo.so.0", "libtexo-rt.so.0", "libtexo-llvm.so"}
DEBIAN_12 = (2, 36)
MOST = 20_000_000  # bytes of an archive
LIBRARY = "import sys, texo; module = texo.compile(sys.argv[1]); module.kernel(); print(len(module.emit('asm')) > 100)"
TEXT = "graph g(x: f32[N]) -> (y: f32[N]) { y[i] = 2 * x[i] }"


def run(*command, ok=0, **kw):
    done = subprocess.run([str(c) for c in command], text=True, capture_output=True, timeout=300, **kw)
    assert done.returncode == ok, f"{' '.join(map(str, command))}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def check_needs(file):
    """What the loader looks for beside libc lies in the bundle, and libc is not newer than Debian 12's."""
    dynamic = run("readelf", "-dW", file)
    needed = {re.sub(r"(libtexo-llvm\.so).*", r"\1", n) for n in re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)}
    assert needed and needed <= LIBC | OURS, (file, needed)
    for path in re.findall(r"\(R(?:UN)?PATH\).*\[(.*)\]", dynamic):
        assert all(p.startswith("$ORIGIN") for p in path.split(":")), (file, path)
    versions = re.findall(r"GLIBC_(\d+)\.(\d+)", run("readelf", "-VW", file))
    assert max((int(a), int(b)) for a, b in versions) <= DEBIAN_12, (file, versions)
    assert ".symtab" not in run("readelf", "-SW", file), f"{file} is not stripped"


def check_exports(library):
    """LLVM's names have a version of their own, so that they are nobody else's."""
    lines = run("nm", "-D", "--defined-only", library).splitlines()
    names = [line.split()[-1] for line in lines if line.split()[-2] != "A"]
    assert names and all(re.fullmatch(r"LLVM\w+@@TEXO_LLVM", n) for n in names), names[:3]


def check_size(bundle):
    """Compressed in a hurry: bundle.sh takes its time, and makes three quarters of it."""
    packed = subprocess.run(f"tar -C '{bundle.parent}' -c '{bundle.name}' | xz --x86 --lzma2=preset=1 -T1 | wc -c",
                            shell=True, text=True, capture_output=True, timeout=300, check=True)
    assert 1_000_000 < int(packed.stdout) < MOST, packed


def check_runs(bundle):
    env = {k: v for k, v in os.environ.items() if k not in ("TEXO_LIBRARY", "LD_LIBRARY_PATH", "PYTHONPATH")}
    texo = bundle / "bin/texo"
    assert "0 failed" in run(texo, "test", bundle / "examples/softmax.tex", env=env, cwd="/").splitlines()[-1]
    assert "o: 0 of" in run(texo, "run", bundle / "examples/first.tex", "--compare=interp", env=env, cwd="/")
    assert ".visible .entry" in run(texo, "run", bundle / "examples/softmax.tex", "--emit=ptx", "--target=cuda:sm_90a", env=env)
    assert "40 passed, 0 failed" in run(bundle / "bin/random_test", "--seed", "1", "--count", "40", "--cpu", env=env, cwd="/")
    said = run(bundle / "scripts/gpu-check.sh", env={**env, "TEXO_DEVICE": "cuda:4096"}, ok=77)
    assert "--device=cuda:4096" in said, said
    env["PYTHONPATH"] = str(bundle / "python")
    assert run(sys.executable, "-B", "-c", LIBRARY, TEXT, env=env) == "True\n"


def main():
    with tempfile.TemporaryDirectory(prefix="texo-bundle-") as temporary:
        run(ROOT / "scripts/bundle.sh", BUILD, temporary, "--no-archive")
        made, = Path(temporary).iterdir()
        bundle = Path(temporary, "elsewhere")
        made.rename(bundle)
        files = [f for f in bundle.rglob("*") if f.is_file() and not f.is_symlink() and f.read_bytes()[:4] == b"\x7fELF"]
        assert len(files) == 5, files
        for f in files:
            check_needs(f)
        check_exports(next((bundle / "lib").glob("libtexo-llvm.so.*")))
        check_size(bundle)
        check_runs(bundle)
        print(f"{len(files)} ELF files, {sum(f.stat().st_size for f in files)} bytes; run after a move")


main()
