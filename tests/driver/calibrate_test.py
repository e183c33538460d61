"""texo calibrate with the driver of tests/runtime, on which everything takes a microsecond: what it says and keeps, who goes by
that, and what happens to those who find it damaged.

    calibrate_test.py TEXO FOLDER    FOLDER has the libcuda.so.1 for tests
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import each_test

TEXO, FAKE = sys.argv[1], sys.argv[2]
ROOT = pathlib.Path(__file__).resolve().parents[2]
PRODUCT = str(ROOT / "bench" / "gpu" / "product.tex")
TAKEN = "plans are chosen by what was measured of the GPU"
FIGURES = ["processors", "products", "arithmetic", "cache", "memory", "launch"]


def texo(*args, fake=True, **env):
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("TEXO_", "FAKE_", "XDG_"))}
    if fake:
        clean["LD_LIBRARY_PATH"] = FAKE
    return subprocess.run([TEXO, *map(str, args)], capture_output=True, text=True, timeout=120, env={**clean, **env})


def expect(ran, code, err="", out=""):
    assert ran.returncode == code and err in ran.stderr and out in ran.stdout, \
        f"exit {code}, {err!r} and {out!r} expected: exit {ran.returncode}\n{ran.stdout}\n{ran.stderr}"
    return ran


def calibrate(cache, *args, **env):
    return json.loads(expect(texo("calibrate", "--json", f"--cache-dir={cache}", *args, **env), 0).stdout)


def folder():
    return tempfile.TemporaryDirectory(prefix="texo-calibrate-")


def chosen(cache, *args, **env):
    """The kernel that ran, and what was said."""
    with folder() as dump:
        ran = expect(texo("run", PRODUCT, "--graph=product", "M=2048", "N=2560", "K=256", "--device=cuda", "-v", f"--cache-dir={cache}",
                          *args, FAKE_CUDA_DUMP=dump, **env), 0)
        (ptx,) = pathlib.Path(dump).glob("*.ptx")
        return ptx.name, ran.stderr


def test_what_it_says():
    with folder() as cache:
        said = calibrate(cache, FAKE_CUDA_NAME="NVIDIA H200", FAKE_CUDA_PROCESSORS="100")
        assert (said["device"], said["name"], said["row"], said["cache"]) == ("cuda", "NVIDIA H200", "H200", cache), said
        assert list(said["measured"]) == list(said["built_in"]) == FIGURES, said
        assert said["measured"]["processors"] == said["built_in"]["processors"] == 100, said
        assert all(v > 0 for v in (*said["measured"].values(), *said["built_in"].values())), said
        assert len(os.listdir(cache)) == 1
        text = expect(texo("calibrate", "--device=cuda:0", TEXO_CACHE=cache), 0, f"kept in {cache}", "cuda:0, Fake; built in: H100").stdout
        assert all(f"\n{f} " in text for f in FIGURES), text
        assert len(os.listdir(cache)) == 2 # another device
        expect(texo("calibrate", "-q", TEXO_CACHE=cache), 0)
        assert len(os.listdir(cache)) == 2


def test_who_goes_by_it():
    with folder() as cache:
        usual, said = chosen(cache)
        assert TAKEN not in said, said
        calibrate(cache)
        own, said = chosen(cache)
        assert TAKEN in said and own != usual, (own, usual, said) # of products and a cache that are no limit
        assert chosen(cache, "--no-cache")[0] == usual
        for other in ({"FAKE_CUDA_NAME": "NVIDIA H100"}, {"FAKE_CUDA_PROCESSORS": "131"}):
            assert TAKEN not in chosen(cache, **other)[1], other
        for command in (["test", ROOT / "examples" / "softmax.tex"], ["bench", PRODUCT, "--graph=product", "M=64", "N=64", "K=64"]):
            ran = texo(*command, "--device=cuda", "-v", TEXO_CACHE=cache)
            assert TAKEN in ran.stderr, ran
        expect(texo("cache", "clear", TEXO_CACHE=cache), 0)
        assert TAKEN not in chosen(cache)[1]


def test_damage():
    """Built-in figures, and a word about it; measured anew all is well."""
    with folder() as cache, folder() as apart:
        usual = chosen(apart)[0]
        calibrate(cache)
        (name,) = os.listdir(cache)
        path = pathlib.Path(cache, name)
        whole = path.read_bytes()
        own = chosen(cache)[0]
        for k in range(0, len(whole), 19):
            damaged = bytearray(whole)
            damaged[k] ^= 1 << k % 8
            path.write_bytes(damaged)
            ran = texo("bench", PRODUCT, "--graph=product", "M=64", "N=64", "K=64", "--device=cuda", "-v", TEXO_CACHE=cache)
            assert TAKEN not in ran.stderr, (k, ran)
        for n in (0, 64, len(whole) - 1):
            path.write_bytes(whole[:n])
            kernel, said = chosen(cache)
            assert kernel == usual and TAKEN not in said, (n, said)
            assert "built-in figures are taken" in said, (n, said)
        calibrate(cache)
        assert path.read_bytes() == whole
        assert chosen(cache)[0] == own


def test_missing():
    with folder() as cache:
        expect(texo("calibrate", "--device=cuda:1", TEXO_CACHE=cache), 4, "there is no device cuda:1; there are 1")
        expect(texo("calibrate", "--device=cuda", TEXO_CACHE=cache, FAKE_CUDA_DEVICES="0"), 4, "the NVIDIA driver has no device")
        expect(texo("calibrate", TEXO_CACHE=cache, FAKE_CUDA_DEVICES="0"), 4, "there is no GPU to measure: the NVIDIA driver has no device")
        expect(texo("calibrate", "--skip-if-missing", TEXO_CACHE=cache, FAKE_CUDA_DEVICES="0"), 77)
        expect(texo("calibrate", "--device=cpu", TEXO_CACHE=cache), 2, "'texo calibrate' measures GPUs")
        expect(texo("calibrate", "F.tex", TEXO_CACHE=cache), 2)
        assert os.listdir(cache) == []
        os.chmod(cache, 0o777)
        expect(texo("calibrate", TEXO_CACHE=cache), 3, "what was measured can't be kept")
    expect(texo("calibrate", HOME=""), 2, "there is no place for what is measured")


def test_every_call_fails():
    with folder() as cache:
        for result in (2, 700):
            failed = 0
            for call in [*range(1, 45, 4), 60, 1500, 2100]:
                ran = texo("calibrate", TEXO_CACHE=cache, FAKE_CUDA_FAIL=f"{call}:{result}")
                failed += ran.returncode != 0
                assert ran.returncode in (0, 4) and (ran.returncode == 0 or "CUDA" in ran.stderr or "out of memory" in ran.stderr), (call, ran)
            assert failed > 12, failed


if __name__ == "__main__":
    sys.exit(each_test.main(globals()))
