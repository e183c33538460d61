"""Every row of ir/bugs.def is noticed by the project's own tests. usage: every_bug_is_caught.py ROOT BUILD [ROW...]

BUILD is a build of the project with TEXO_BUGS. Each row is switched on alone, and the ladder below is
climbed until a rung fails; without any, every rung must pass, or the table would mean nothing. A
bug's own area is tried before the others'. Further arguments name the rows to try."""
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

RUNG_S = 120  # more than ten times what any rung takes
SOUND = "no bug"


def rows(root):
    text = re.sub(r"/\*.*?\*/", "", (root / "ir/bugs.def").read_text(encoding="utf-8"), flags=re.S)
    return re.findall(r'^INJECTION\((\w+),\s*"([^"]+)",\s*"([^"]+)"\)', text, re.M)


UNITS = {  # the tests beside each folder's code, tried first for its bugs
    "frontend": (),
    "ir": (("ir/prove_test",), ("ir/index_test",), ("ir/prove_fuzz", 500),
           ("layout/layout_form_test",), ("layout/layout_derive_test",), ("layout/fragment_test",),
           ("layout/convert_test",)),
    "passes/schedule": (("passes/state_test",), ("passes/nest_test",), ("passes/contraction_test",), ("passes/scan_test",),
                        ("passes/random_graph_test", 300, 1), ("passes/scalar_test",), ("fuse/phases_test",)),
    "passes/fuse": (("fuse/phases_test",),),
    "passes": (("passes/manager_test",), ("passes/pass_bodies",), ("passes/pass_graphs",),
               ("tile/contract_test",), ("math/special_test",), ("math/cast_test",)),
    "codegen": (("codegen/ops_test", "host"), ("codegen/memory_test", "host"), ("codegen/control_test",)),
    "runtime": (("runtime/launch_test",), ("runtime/threads_test",)),
}


def ladder(root, build):
    """(area, name, programs, command): from what says most in the least time to what takes longest."""
    texo, t = build / "driver/texo", build / "tests"
    rungs = [("", "programs that must fail", len(list((root / "tests/lang/must_fail").glob("*.tex"))),
              (t / "lang/must_fail", root / "tests/lang/must_fail"))]
    for f in sorted((root / "tests/lang/rules").glob("*.tex")):
        rungs.append(("", f"rules of {f.stem}", 1, (texo, "test", "--device=cpu", f)))
    for f in sorted((root / "tests/fuse").glob("*.tex")):
        rungs.append(("", f"kernels of {f.stem}", 1, (texo, "test", "--device=cpu", f)))
    rungs.append(("", "random programs", 40, (t / "random/random_test", "--seed", 1000, "--count", 40, "--cpu")))
    for area, units in UNITS.items():
        rungs += [(area, name, 0, (t / name, *args)) for name, *args in units]
    for f in sorted((root / "examples").glob("*.tex")):
        rungs.append(("", f"example {f.stem}", 1, (texo, "test", "--device=cpu", f)))
    rungs.append(("", "more random programs", 300,
                  (t / "random/random_test", "--seed", 7000, "--count", 300, "--cpu")))
    return [(area, name, n, [str(c) for c in command]) for area, name, n, command in rungs]


def holds(command, bug):
    """None when the command passes with this bug, else how it ended."""
    env = {k: v for k, v in os.environ.items() if k != "TEXO_BUG"}
    if bug != SOUND:
        env = {"TEXO_BUG": bug}  # a small environment: it is looked up often
    try:
        run = subprocess.run(command, env=env, capture_output=True, timeout=RUNG_S)
    except subprocess.TimeoutExpired:
        return "does not end"
    if run.returncode == 0:
        return None
    return "fails" if run.returncode > 0 else f"signal {-run.returncode}"


def climb(rungs, bug, where):
    """(rung, how it ended, programs that passed before, seconds) for the first rung that fails."""
    programs, start = 0, time.monotonic()
    area = max((a for a in UNITS if where.startswith(a)), key=len)
    first = [r for r in rungs if r[0] == area]
    middle = next(i for i, r in enumerate(rungs) if r[0])
    order = rungs[:middle] + first + [r for r in rungs[middle:] if r[0] != area]
    for _, name, n, command in order:
        end = holds(command, bug)
        if end:
            return name, end, programs, time.monotonic() - start
        programs += n
    return None, "", programs, time.monotonic() - start


def main():
    root, build = Path(sys.argv[1]), Path(sys.argv[2])
    rungs, bad = ladder(root, build), []
    bugs = [b for b in rows(root) if len(sys.argv) == 3 or b[0] in sys.argv[3:]]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        caught = pool.map(lambda b: climb(rungs, b[0], b[1]), bugs)
        print(f"{'bug':26} {'where':31} {'caught by':34} {'how':13} programs before  seconds")
        for (bug, where, what), (name, end, programs, seconds) in zip(bugs, caught):
            print(f"{bug:26} {where:31} {name or 'NOTHING':34} {end:13} {programs:15} {seconds:8.1f}", flush=True)
            if not name:
                bad.append(f"{bug}: {what}: nothing notices")
        sound = list(pool.map(lambda r: holds(r[3], SOUND), rungs))
    print(f"{len(bugs) - len(bad)} of {len(bugs)} bugs caught; "
          f"without a bug {sound.count(None)} of {len(rungs)} rungs pass")
    bad += [f"without a bug: {r[1]} {end}" for r, end in zip(rungs, sound) if end]
    print("\n".join(bad))
    return 1 if bad or (len(sys.argv) == 3 and len(bugs) < 30) else 0


if __name__ == "__main__":
    sys.exit(main())
