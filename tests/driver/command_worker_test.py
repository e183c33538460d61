"""The command and its worker from outside: the same bytes with and without one, limits, ends, surroundings that have none.

    command_worker_test.py TEXO
"""
import ctypes
import os
import pathlib
import resource
import signal
import struct
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import each_test

TEXO = sys.argv[1]
PROGRAMS = pathlib.Path(__file__).resolve().parents[1] / "run" / "programs"
AXPY = str(PROGRAMS / "axpy.tex")
SANITIZED = "TEXO_TEST_SANITIZED" in os.environ
SYS_CLONE, SYS_FORK, SYS_VFORK, SYS_PRCTL, SYS_CLONE3 = 56, 57, 58, 157, 435
PR_SET_SECCOMP, EPERM, EINVAL = 22, 1, 22


def start(*args, **more):
    clean = {k: v for k, v in os.environ.items() if not k.startswith("TEXO_")}
    clean["TEXO_NO_CACHE"] = "1"
    clean.update(more.pop("env", {}))
    return subprocess.Popen([TEXO, *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=clean, **more)


def texo(*args, **more):
    child = start(*args, **more)
    out, err = child.communicate(timeout=300)
    return child.returncode, out, err.decode()


def expect(ran, code, *words):
    assert ran[0] == code and all(w in ran[2] for w in words), f"exit {code} and {words} expected: {ran}"
    return ran[1]


def heavy(folder, terms):
    """A program that LLVM takes seconds for."""
    path = folder / "heavy.tex"
    path.write_text("graph g(x: f32[N]) -> (y: f32[N]) { y[i] = " + " + ".join(f"sin(x[i] * {k}.5)" for k in range(terms)) + " }\n")
    return path


def made(folder):
    return {p.name: p.read_bytes() for p in folder.iterdir() if p.name.startswith("made")}


def children(pid):
    return [int(c) for c in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def wait_for_worker(run):
    """Its process id, once it computes."""
    for _ in range(1200):
        for child in children(run.pid):
            ticks = pathlib.Path(f"/proc/{child}/stat").read_text().rsplit(")", 1)[1].split()
            if int(ticks[11]) > 10:
                return child
        time.sleep(0.05)
    raise AssertionError("there is no worker")


def is_gone(pid):
    for _ in range(200):
        try:
            if pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z":
                return True  # whoever collects orphans here takes its time
        except OSError:
            return True
        time.sleep(0.05)
    return False


def test_the_same_bytes(folder):
    for file in ("axpy.tex", "gather.tex", "facts.tex"):
        for args in (["--emit=obj,header,lib,manifest"], ["--threads=1"], ["--emit=llvm,asm"],
                     ["--emit=llvm,ptx", "--target=cuda:sm_90a"], ["--target=cpu,cuda", "--emit=obj,ptx", "--assembler=driver"]):
            both = []
            for where in ([], ["--in-process"]):
                expect(texo("build", PROGRAMS / file, *args, *where, "-o", folder / "made"), 0)
                both.append(made(folder))
                for name in both[-1]:
                    (folder / name).unlink()
            assert both[0] and both[0] == both[1], (file, args)


def test_an_option_or_a_variable(folder):
    broken = dict(preexec_fn=without_processes)
    expect(texo("build", AXPY, "-o", folder / "made", "--in-process", **broken), 0)
    expect(texo("build", AXPY, "-o", folder / "made", env={"TEXO_IN_PROCESS": "1"}, **broken), 0)


# --- limits ---

def test_time(folder):
    file = heavy(folder, 300)
    expect(texo("build", file, "--target=cpu:x86-64-v3", "--worker-seconds=1", "-o", folder / "made"), 1, "heavy.tex: ",
           "was given 1 second and needs more", "--worker-seconds")
    expect(texo("build", file, "--target=cpu:x86-64-v3,cpu:x86-64", "--worker-seconds=1", "-o", folder / "made"), 1,
           "was given 2 seconds and needs more")
    for form, seconds in (("obj", "kernel g_0_0: the worker was given 1 second "), ("ptx", "was given 3 seconds ")):  # the three in a text
        expect(texo("build", file, "--target=cuda:sm_80", "--assembler=driver", f"--emit={form}", "--worker-seconds=1", "-o", folder / "made"), 1,
               "heavy.tex: ", seconds + "and needs more")
    assert not made(folder)


def test_memory(folder):
    if SANITIZED:
        return  # address space is no measure of it
    file = heavy(folder, 300)
    for mib in (60, 85, 100, 110):
        expect(texo("build", file, "--target=cpu:x86-64-v3", f"--worker-memory={mib}", "-o", folder / "made"), 1, "heavy.tex: ",
               f"was given {mib} MiB and needs more", "--worker-memory")
        assert not made(folder)


def test_a_limit_is_no_end(folder):
    """Of a file's tests: what follows has the whole of a limit again."""
    file = heavy(folder, 300)
    text = "graph g2(x: f32[N]) -> (y: f32[N]) { y[i] = 2 * x[i] }\n"
    blocks = "".join(f"# test: {n}\n#   graph {g}\n#   x = [1]\n\n" for n, g in (("slow", "g"), ("quick", "g2"), ("slow again", "g")))
    file.write_text(blocks + file.read_text() + text)
    code, out, err = texo("test", file, "--device=cpu", "--worker-seconds=1")
    assert code == 5 and out.decode().endswith("1 passed, 2 failed\n"), (code, out, err)
    assert err.count("was given 1 second and needs more") == 2, err


def test_each_request_has_its_time(folder):
    """A worker that has worked for longer than that goes on."""
    block = "".join(f"# test: n{n}\n#   x = [1]\n\n" for n in range(12))
    file = heavy(folder, 60)
    file.write_text(block + file.read_text())
    seconds = 20 if SANITIZED else 3
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    code, out, err = texo("test", file, "--device=cpu", f"--worker-seconds={seconds}")
    used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    assert code == 0 and used > seconds, (code, out, err, used)


# --- ends ---

def test_a_worker_that_is_killed(folder):
    for sig, word in ((signal.SIGKILL, "signal 9"), (signal.SIGSEGV, "signal 11")):
        run = start("build", heavy(folder, 300), "--target=cpu:x86-64-v3", "-o", folder / "made")
        os.kill(wait_for_worker(run), sig)
        err = run.communicate(timeout=60)[1].decode()
        assert run.returncode == 70 and "the worker ended without an answer" in err, err
        assert SANITIZED or word in err, err
        assert not made(folder)


def test_interrupt(folder):
    """As a terminal does it, to all processes; and to the command alone."""
    for to_all in (True, False):
        run = start("build", heavy(folder, 300), "--target=cpu:x86-64-v3", "-o", folder / "made", start_new_session=True)
        worker = wait_for_worker(run)
        (os.killpg if to_all else os.kill)(run.pid, signal.SIGINT)
        err = run.communicate(timeout=10)[1]
        assert run.returncode == 130 and not err, (run.returncode, err)
        assert is_gone(worker) and not made(folder)


def test_the_command_is_killed(folder):
    run = start("build", heavy(folder, 300), "--target=cpu:x86-64-v3", "-o", folder / "made")
    worker = wait_for_worker(run)
    run.kill()
    run.communicate(timeout=10)
    assert is_gone(worker) and not made(folder)


# --- surroundings ---

def deny(rules):
    """System calls (number, first argument or None) that fail with an errno, for this process and what it becomes."""
    code = [(0x20, 0, 0, 0)]  # the number
    for number, first, errno in rules:
        if first is None:
            code += [(0x15, 0, 1, number), (0x06, 0, 0, 0x50000 | errno)]
        else:
            code += [(0x15, 0, 4, number), (0x20, 0, 0, 16), (0x15, 0, 1, first), (0x06, 0, 0, 0x50000 | errno), (0x20, 0, 0, 0)]
    code.append((0x06, 0, 0, 0x7FFF0000))
    raw = b"".join(struct.pack("HBBI", *line) for line in code)
    lines = ctypes.create_string_buffer(raw, len(raw))
    program = struct.pack("HxxxxxxQ", len(code), ctypes.addressof(lines))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(PR_SET_SECCOMP, 2, program, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")


def without_processes():
    deny([(number, None, EPERM) for number in (SYS_CLONE, SYS_FORK, SYS_VFORK, SYS_CLONE3)])


def without_walls():
    deny([(SYS_PRCTL, PR_SET_SECCOMP, EINVAL)])


def test_no_process(folder):
    expect(texo("build", AXPY, "-o", folder / "made", preexec_fn=without_processes), 4, "can't start", "Operation not permitted",
           "help: --in-process")
    assert not made(folder)
    for command in ("run", "test", "bench"):
        for skip, code in (((), 4), (("--skip-if-missing",), 77)):
            expect(texo(command, AXPY, "--device=cpu", *skip, preexec_fn=without_processes), code, "can't start", "--in-process")


def test_no_walls(folder):
    if SANITIZED:
        return  # there are none
    expect(texo("build", AXPY, "-o", folder / "made", preexec_fn=without_walls), 4, "can't confine", "help: --in-process")
    assert not made(folder)
    expect(texo("build", AXPY, "-o", folder / "made", "--in-process", preexec_fn=without_walls), 0)
    out = expect(texo("doctor", preexec_fn=without_walls), 0).decode()
    assert "lacking worker" in out and "can't confine" in out and "ok      worker" in expect(texo("doctor"), 0).decode(), out


if __name__ == "__main__":
    sys.exit(each_test.main(globals()))
