"""The command with --device=cuda: no driver, a driver without a device, and the one of tests/runtime, which
has a device that computes nothing; every call of it fails once.

    cuda_test.py TEXO FOLDER    FOLDER has the libcuda.so.1 for tests
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import each_test

TEXO, FAKE = sys.argv[1], sys.argv[2]
ROOT = pathlib.Path(__file__).resolve().parents[2]
AXPY = str(ROOT / "tests" / "run" / "programs" / "axpy.tex")
SOFTMAX = str(ROOT / "examples" / "softmax.tex")


def texo(*args, fake=True, **env):
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("TEXO_", "FAKE_"))}
    if "TEXO_CACHE" not in env:
        clean["TEXO_NO_CACHE"] = "1"
    if fake:
        clean["LD_LIBRARY_PATH"] = FAKE
    return subprocess.run([TEXO, *args], capture_output=True, text=True, timeout=120, env={**clean, **env})


def expect(ran, code, err="", out=""):
    assert ran.returncode == code and err in ran.stderr and out in ran.stdout, \
        f"exit {code}, {err!r} and {out!r} expected: exit {ran.returncode}\n{ran.stdout}\n{ran.stderr}"
    return ran.stdout


def has_driver():
    return "libcuda.so.1, CUDA" in texo("doctor", fake=False).stdout


def test_missing():
    for command in (["run", AXPY, "N=8"], ["test", AXPY], ["bench", AXPY, "N=8"]):
        expect(texo(*command, "--device=cuda", FAKE_CUDA_DEVICES="0"), 4, "the NVIDIA driver has no device")
        expect(texo(*command, "--device=cuda:1"), 4, "there is no device cuda:1; there are 1")
        expect(texo(*command, "--device=cuda:1", "--skip-if-missing"), 77)
        expect(texo(*command, "--device=cuda", FAKE_CUDA_MAJOR="7"), 4, "too old: compute capability 7.0")
        if not has_driver():
            expect(texo(*command, "--device=cuda", fake=False), 4, "there is no NVIDIA driver")
            expect(texo(*command, "--device=cuda", "--skip-if-missing", fake=False), 77)
    expect(texo("run", AXPY, "--device=cuda:x"), 2, "--device is")


def test_results_come_from_the_device():
    expect(texo("run", AXPY, "N=8", "--device=cuda"), 0, out="z: f32")
    assert json.loads(texo("run", AXPY, "N=8", "--device=cuda", "--json").stdout)["device"] == "cuda"
    expect(texo("run", AXPY, "N=8", "--device=cuda", "--compare=interp"), 5)
    expect(texo("test", SOFTMAX, "--device=cuda"), 5, "failed", "failed")
    expect(texo("run", AXPY, "N=8", "--device=cuda", "--target=cuda:sm_80"), 0)
    expect(texo("run", AXPY, "N=8", "--device=cuda", FAKE_CUDA_MAJOR="8"), 0)
    for columns, blocks in ((20000, 4), (40000, 8), (131072, 8), (131080, 1)): # a launch has whole clusters
        with tempfile.TemporaryDirectory(prefix="texo-cuda-") as folder:
            expect(texo("run", SOFTMAX, "--graph=softmax_rows", "N=3", f"M={columns}", "--device=cuda", FAKE_CUDA_DUMP=folder), 0)
            texts = "".join(p.read_text() for p in pathlib.Path(folder).glob("*.ptx"))
        assert re.findall(r"\.reqnctapercluster (\d+)", texts) == [str(blocks)][: blocks > 1], (columns, texts)
    expect(texo("run", AXPY, "N=8", "--device=cuda", "--target=cuda:sm_90a", FAKE_CUDA_MAJOR="8"), 4, "compute capability 9.0 alone")
    expect(texo("test", AXPY, "--device=cuda", "--target=cuda:sm_90a", FAKE_CUDA_MAJOR="8"), 4, "compute capability 9.0 alone")
    expect(texo("run", AXPY, "N=8", "--device=cuda", "--target=cpu"), 4, "for another kind of device")


def test_a_tile_is_chosen_for_the_device():
    """By its own number of processors, which the same code asks for."""
    product = str(ROOT / "bench" / "gpu" / "product.tex")

    def taken(**env):
        with tempfile.TemporaryDirectory(prefix="texo-cuda-") as folder:
            expect(texo("run", product, "--graph=product", "M=512", "N=512", "K=512", "--device=cuda", FAKE_CUDA_DUMP=folder, **env), 0)
            return sorted(p.name for p in pathlib.Path(folder).glob("*.ptx"))

    usual = taken()
    assert len(usual) == 1 and usual == taken(FAKE_CUDA_PROCESSORS="132", FAKE_CUDA_NAME="NVIDIA H100 80GB HBM3"), usual
    assert len(taken(FAKE_CUDA_PROCESSORS="7")) == 1 and usual != taken(FAKE_CUDA_PROCESSORS="7")


def test_a_device_is_taken_where_there_is_one():
    def device(*args, **env):
        return json.loads(expect(texo("run", AXPY, "N=8", "--json", *args, **env), 0))["device"]

    assert device() == "cuda" and device("--target=cuda:sm_80") == "cuda"
    assert device("--target=cpu") == device("--device=cpu") == device(TEXO_DEVICE="cpu") == "cpu"
    for without in ({"FAKE_CUDA_DEVICES": "0"}, {"FAKE_CUDA_MAJOR": "7"}, {"FAKE_CUDA_FAIL": "1:100"}):
        assert device(**without) == "cpu", without


def test_bench():
    """The device takes a microsecond a call there."""
    ran = json.loads(texo("bench", AXPY, "N=4096", "--device=cuda", "--json").stdout)
    assert (ran["device"], ran["target"], ran["kernels"]) == ("cuda", "cuda:sm_90a", 1) and ran["predicted_us"] > 0, ran
    assert ran["time_us"]["n"] >= 20 and ran["time_us"]["median"] > 0 and ran["roof"]["gbps"] > 0 < ran["roof"]["tflops"]
    expect(texo("bench", AXPY, "N=4096", "--device=cuda"), 0, out="target cuda:sm_90a, N = 4096, Fake")
    for call in (*range(1, 400, 9), *range(48, 72)):
        ran = texo("bench", AXPY, "N=8", "--device=cuda", FAKE_CUDA_FAIL=f"{call}:2")
        assert ran.returncode in (0, 3, 4) and (ran.returncode == 0 or "CUDA" in ran.stderr), f"call {call}: {ran}"


def test_cache():
    """A GPU's code is kept for that GPU."""
    with tempfile.TemporaryDirectory(prefix="texo-cuda-") as folder:
        def hits(*args, **env):
            ran = texo("run", AXPY, "N=8", "--device=cuda", "-v", *args, TEXO_CACHE=folder, **env)
            expect(ran, 0)
            return "from the cache" in ran.stderr
        assert not hits() and hits() and hits("--target=cuda:sm_90a")
        assert not hits("--target=cuda:sm_80") and hits("--target=cuda:sm_80")
        assert not hits(FAKE_CUDA_MAJOR="8") or hits(FAKE_CUDA_MAJOR="8")
        shown = [expect(texo("inspect", os.path.join(folder, entry)), 0) for entry in os.listdir(folder)]
        assert all(("graph: axpy" in text) != ("kernel: axpy_0_" in text) for text in shown), shown


def test_doctor():
    for major, code in (("8", "sm_80"), ("9", "sm_90a"), ("10", "sm_100"), ("11", "sm_100"), ("12", "sm_120"), ("13", "sm_120")):
        expect(texo("doctor", FAKE_CUDA_MAJOR=major), 0, out=f"Fake, compute capability {major}.0, code for {code}")
    expect(texo("doctor", FAKE_CUDA_MAJOR="7"), 0, out="too old")
    expect(texo("doctor", FAKE_CUDA_DEVICES="0"), 0, out="the NVIDIA driver has no device")


def test_every_call_fails():
    codes = set()
    for result in (2, 700, 999):
        for call in range(1, 200):
            ran = texo("run", AXPY, "N=8", "--device=cuda", FAKE_CUDA_FAIL=f"{call}:{result}")
            if ran.returncode:
                assert ran.returncode in (3, 4, 70) and "CUDA" in ran.stderr, f"call {call} gives {result}: {ran}"
                codes.add(ran.returncode)
            elif call > 60:
                break
    assert codes == {3, 4, 70}, codes


if __name__ == "__main__":
    sys.exit(each_test.main(globals()))
