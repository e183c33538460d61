"""Machine code for GPUs: --emit=cubin, --assembler, and what texo inspect finds in it; then assemblers that
fail. What needs NVIDIA's ptxas is left out where there is none.

    assembler_test.py TEXO FAKE CUDA_TEST [PTXAS]    FAKE has the libcuda.so.1 for tests
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import each_test

TEXO, FAKE, CUDA_TEST, PTXAS = sys.argv[1], sys.argv[2], sys.argv[3], (sys.argv[4:] or [""])[0]
ROOT = pathlib.Path(__file__).resolve().parents[2]
AXPY = str(ROOT / "tests" / "run" / "programs" / "axpy.tex")


def texo(*args, path=None, **env):
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("TEXO_", "FAKE_"))}
    if "TEXO_CACHE" not in env:
        clean["TEXO_NO_CACHE"] = "1"
    clean["PATH"] = path or f"{os.path.dirname(PTXAS)}:{clean['PATH']}"
    return subprocess.run([TEXO, *args], capture_output=True, timeout=120, env={**clean, **env})


def expect(ran, code, err=""):
    assert ran.returncode == code and err in ran.stderr.decode(), f"exit {code}, {err!r} expected: {ran}"
    return ran.stdout


def test_cubin():
    if not PTXAS:
        return
    for sm in ("sm_90a", "sm_80"):
        first, again = (expect(texo("build", AXPY, f"--target=cuda:{sm}", "--emit=cubin"), 0) for _ in range(2))
        assert first[:4] == b"\x7fELF" and first == again
        with tempfile.TemporaryDirectory() as d:
            path = os.path.join(d, "axpy.cubin")
            expect(texo("build", AXPY, f"--target=cuda:{sm}", "--emit=cubin", "-o", path), 0)
            assert pathlib.Path(path).read_bytes() == first
            found = json.loads(expect(texo("inspect", "--json", path), 0))
            shown = expect(texo("inspect", path), 0).decode()
        assert found["kind"] == "cubin" and "axpy_0_0" in {kernel["symbol"] for kernel in found["kernels"]}
        for kernel in found["kernels"]:
            assert kernel["bytes"] > 0 and 8 <= kernel["registers"] <= 255 and kernel["spill_bytes"] == 0, kernel
            assert f"{kernel['registers']} registers, no spills" in shown


def test_files():
    """Of several GPUs, beside an object or alone; the same bytes twice."""
    if not PTXAS:
        return
    made = []
    for _ in range(2):
        with tempfile.TemporaryDirectory() as d:
            place = os.path.join(d, "p")
            expect(texo("build", AXPY, "--target=cpu:x86-64,cuda", "--emit=obj,header,lib,manifest,ptx,cubin", "-o", place), 0)
            made.append({p.name: p.read_bytes() for p in pathlib.Path(d).iterdir()})
            found = json.loads(expect(texo("inspect", "--json", place + ".o"), 0))
            expect(texo("build", AXPY, "--target=cuda:sm_90a,cuda:sm_80", "--emit=ptx", "-o", place), 0)
            expect(texo("build", AXPY, "--target=cuda:sm_80", "--emit=ptx,obj", "-o", place + "1"), 0)
            assert b".target sm_80" in pathlib.Path(place + "1.ptx").read_bytes()
    assert made[0] == made[1]
    gpus = ["sm_90a", "sm_120", "sm_100", "sm_80"]
    assert set(made[0]) == {"p.o", "p.h", "p.a", "p.json"} | {f"p.{sm}.{form}" for sm in gpus for form in ("ptx", "cubin")}
    levels = found["graphs"][0]["levels"]
    assert [level["cpu"] for level in levels] == ["x86-64", *gpus]
    assert all(k["registers"] > 0 and k["spill_bytes"] == 0 for level in levels[1:] for k in level["kernels"])
    listed = json.loads(made[0]["p.json"])["graphs"][0]["levels"]
    assert [(level.get("gpu"), level.get("code")) for level in listed[1:]] == [(sm, ["cubin", "ptx"]) for sm in gpus]
    header = made[0]["p.h"].decode()
    assert "int axpy(" in header and "int axpy_cuda(" in header and "void *workspace, void *stream);" in header


def test_objects_without_a_processor():
    with tempfile.TemporaryDirectory() as d:
        place = os.path.join(d, "p")
        expect(texo("build", AXPY, "--target=cuda:sm_80", "--assembler=driver", "-o", place), 0)
        header = pathlib.Path(place + ".h").read_text()
        assert "int axpy_cuda(" in header and "int axpy(" not in header


def test_machine_code_is_loaded_where_it_is_asked_for():
    run = ["run", AXPY, "N=8", "--device=cuda"]
    if PTXAS:
        expect(texo(*run, "--assembler=ptxas", LD_LIBRARY_PATH=FAKE, FAKE_CUDA_CUBINS="1"), 0)
        expect(texo(*run, "--assembler=ptxas", LD_LIBRARY_PATH=FAKE), 0)  # a driver that takes the text alone
        expect(texo(*run, TEXO_ASSEMBLER="ptxas", LD_LIBRARY_PATH=FAKE, FAKE_CUDA_CUBINS="only"), 0)
    expect(texo(*run, LD_LIBRARY_PATH=FAKE, FAKE_CUDA_CUBINS="only"), 70, "BAD_ARTEFACT")


def test_kept_code_is_of_this_assembler():
    if not PTXAS:
        return
    with tempfile.TemporaryDirectory() as d:
        own = pathlib.Path(d, "bin")
        own.mkdir()
        (own / "ptxas").write_text(f'#!/bin/sh\nexec {PTXAS} "$@"\n')
        (own / "ptxas").chmod(0o755)

        def hits(*args, words=b" code of kernel axpy_0_"):
            ran = texo("run", AXPY, "N=8", "--device=cuda", "-v", *args, path=f"{own}:/bin:/usr/bin", LD_LIBRARY_PATH=FAKE, FAKE_CUDA_CUBINS="1",
                       TEXO_CACHE=os.path.join(d, "kept"))
            expect(ran, 0)
            return words in ran.stderr and b"was in the cache" in ran.stderr

        def assembled():
            return hits("--assembler=ptxas", words=b"the machine code of kernel axpy_0_")
        assert not hits() and hits() and not assembled() and assembled()
        os.utime(own / "ptxas", (1e9, 1e9))  # another one
        assert not assembled() and assembled() and hits("--assembler=driver")


def test_the_runtimes_own_text():
    if not PTXAS:
        return
    with tempfile.TemporaryDirectory() as d:
        env = dict(LD_LIBRARY_PATH=FAKE, FAKE_CUDA_DUMP=d)
        expect(texo("bench", AXPY, "N=8", "--device=cuda", **env), 0)
        subprocess.run([CUDA_TEST, "strided"], check=True, capture_output=True, timeout=120, env={**os.environ, **env})
        product = pathlib.Path(d, "product.tex")
        product.write_text("@fp(fast) graph product(x: bf16[M, K], w: bf16[K, N]) -> (y: bf16[M, N]) { y[m, n] = sum[k](x[m, k] * w[k, n]) }\n")
        expect(texo("run", str(product), "M=255", "N=255", "K=255", "--device=cuda", **env), 0)
        texts = {p.stem for p in pathlib.Path(d).glob("*.ptx")}
        assert {"texo_rows_1", "texo_boxes", "texo_multiply_add", "first_0_0"} <= texts and any(t.startswith("axpy_0_") for t in texts), texts
        for sm in ("sm_80", "sm_90a", "sm_100", "sm_120"):
            for own in ("texo_rows_1", "texo_boxes", "texo_multiply_add"):
                subprocess.run([PTXAS, f"-arch={sm}", "-o", os.devnull, os.path.join(d, own + ".ptx")], check=True, timeout=120)


def test_refusals():
    expect(texo("build", AXPY, "--emit=cubin"), 2, "--emit=cubin needs --target=cuda")
    expect(texo("run", AXPY, "--assembler=as"), 2, "--assembler")
    expect(texo("build", AXPY, "--target=cuda", "--threads=1", "-o", "x"), 2, "--threads=1 is for processors")
    expect(texo("build", AXPY, "--emit=obj,ptx", "-o", "x"), 2, "--emit=ptx needs --target=cuda")
    expect(texo("build", AXPY, "--target=cuda", "--emit=obj,tg", "-o", "x"), 2, "not both")
    expect(texo("build", AXPY, "--target=cuda", "--emit=cubin,obj", "-o", "x", path="/nowhere"), 4, "there is no assembler")
    expect(texo("build", AXPY, "--emit=cubin", "--target=cuda", path="/nowhere"), 4, "there is no assembler for GPUs")


def test_assemblers_that_fail():
    with tempfile.TemporaryDirectory() as d:
        file = pathlib.Path(d, "ptxas")
        for text, said in (("#!/bin/sh\necho line 7: what is this\nexit 1\n", "line 7: what is this"),
                           ("#!/bin/sh\nexit 0\n", "made no code"),
                           ("#!/nowhere/sh\n", "cannot run")):
            file.write_text(text)
            file.chmod(0o755)
            for forms, target in (("cubin", "cuda"), ("obj,header", "cuda"), ("obj,cubin", "cpu,cuda:sm_80")):
                expect(texo("build", AXPY, f"--emit={forms}", f"--target={target}", "-o", os.path.join(d, "made"),
                            path=f"{d}:/bin:/usr/bin"), 4, said)
                assert not list(pathlib.Path(d).glob("made*"))
            for command in ("run", "bench", "test"):
                operands = [AXPY] if command == "test" else [AXPY, "N=8"]
                ran = texo(command, *operands, "--device=cuda", "--assembler=ptxas", path=f"{d}:/bin:/usr/bin", LD_LIBRARY_PATH=FAKE)
                assert ran.returncode == 4 and said in (ran.stderr + ran.stdout).decode(), ran
    expect(texo("run", AXPY, "N=8", "--device=cuda", "--assembler=ptxas", path="/nowhere", LD_LIBRARY_PATH=FAKE), 4, "there is no assembler for GPUs")


def test_assemblers_that_do_not_end():
    """Neither one that computes for ever nor one that waits; and one that wants what it can't have."""
    with tempfile.TemporaryDirectory() as d:
        file = pathlib.Path(d, "ptxas")
        made = os.path.join(d, "made")
        build = ["build", AXPY, "--emit=obj,header", "--target=cuda:sm_80", "-o", made]
        for text in ("#!/bin/sh\nwhile :; do :; done\n", "#!/bin/sh\nexec sleep 1000\n"):
            file.write_text(text)
            file.chmod(0o755)
            expect(texo(*build, "--worker-seconds=1", path=f"{d}:/bin:/usr/bin"), 4, "ptxas was given 1 second and needs more; --worker-seconds")
            assert not list(pathlib.Path(d).glob("made*"))
        file.write_text(f"#!{sys.executable}\nimport socket, sys\nsocket.socket()\n")
        expect(texo(*build, path=f"{d}:/bin:/usr/bin"), 4, "PermissionError")
        file.write_text(f"#!{sys.executable}\nb = bytearray(500 << 20)\n")
        expect(texo(*build, "--worker-memory=300", path=f"{d}:/bin:/usr/bin"), 4, "MemoryError")
        expect(texo(*build, "--worker-memory=300", "--in-process", path=f"{d}:/bin:/usr/bin"), 4, "made no code")


if __name__ == "__main__":
    sys.exit(each_test.main(globals()))
