"""The command with --device=cuda: no driver, a driver without a device, and the one of tests/runtime, which
has a device that computes nothing; every call of it fails once.

    cuda_test.py TEXO FOLDER    FOLDER has the libcuda.so.1 for tests
"""
import json
import os
import pathlib
import subprocess
import sys

TEXO, FAKE = sys.argv[1], sys.argv[2]
ROOT = pathlib.Path(__file__).resolve().parents[2]
AXPY = str(ROOT / "tests" / "run" / "programs" / "axpy.tex")
SOFTMAX = str(ROOT / "examples" / "softmax.tex")


def texo(*args, fake=True, **env):
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("TEXO_", "FAKE_"))}
    if fake:
        clean["LD_LIBRARY_PATH"] = FAKE
    return subprocess.run([TEXO, *args], capture_output=True, text=True, timeout=120, env={**clean, **env})


def expect(ran, code, err="", out=""):
    assert ran.returncode == code and err in ran.stderr and out in ran.stdout, \
        f"exit {code}, {err!r} and {out!r} expected: exit {ran.returncode}\n{ran.stdout}\n{ran.stderr}"


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
    expect(texo("run", AXPY, "N=8", "--device=cuda", "--target=cuda:sm_90a", FAKE_CUDA_MAJOR="8"), 4, "compute capability 9.0 alone")
    expect(texo("run", AXPY, "N=8", "--device=cuda", "--target=cpu"), 4, "for another kind of device")
    expect(texo("bench", AXPY, "N=8", "--device=cuda"), 2, "on the processor")


def test_doctor():
    expect(texo("doctor"), 0, out="Fake, compute capability 9.0, code for sm_90a")
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


def main():
    failed = 0
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            try:
                test()
            except AssertionError as e:
                failed += 1
                print(f"FAILED {name}: {e}\n")
    print(f"{failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
