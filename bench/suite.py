"""Times texo and its peers on the cases of cases.py, in turns, and prints one table.

Run it through run.sh, which puts the peers in place. usage: suite.py --room DIR --build DIR [options]"""
import argparse
import datetime
import os
import platform
import re
import sys
import time
from pathlib import Path

import cases
import data
import interleave
import peers_blas
import reference
import report
import roof
import texo_side
from contender import Absent, NoForm

SOURCE = Path(__file__).resolve().parent.parent


def arguments():
    p = argparse.ArgumentParser(prog="bench/run.sh", description="texo and its peers on the CPU suite, one table")
    p.add_argument("--room", type=Path, required=True, help=argparse.SUPPRESS)
    p.add_argument("--build", type=Path, required=True, help=argparse.SUPPRESS)
    p.add_argument("--only", default="", metavar="REGEX", help="rows whose group or case matches")
    p.add_argument("--skip", default="", metavar="PEER,…", help=f"leave contenders out, of texo,{','.join(cases.PEERS)}")
    p.add_argument("--threads", type=int, choices=(1, 2), help="rows of so many threads only")
    p.add_argument("--rounds", type=int, default=20, help="turns of each contender in a row (default 20)")
    p.add_argument("--budget", type=float, default=30, metavar="S", help="seconds a row may take (default 30)")
    p.add_argument("--processor-time", action="store_true",
                   help="time spent on processors, all threads together, instead of time that passed: for rows of one "
                   "thread on a machine that others use")
    p.add_argument("--json", type=Path, metavar="PATH", help="write every figure (default ROOM/suite.json)")
    p.add_argument("--list", action="store_true", help="print the rows and stop")
    return p.parse_args()


class Side:
    """A contender's library: how to make a case ready, how to set threads, what version it is."""

    def __init__(self, version, make, threads=lambda n: None):
        self.version, self.make, self.threads = version, make, threads


def torch_side(room):
    try:
        import peers_torch as t
    except ImportError as e:
        raise Absent(f"torch is not installed: {e}") from e
    return t


def numpy_side(room):
    import numpy
    from threadpoolctl import threadpool_limits
    return Side(f"NumPy {numpy.__version__}", lambda c, i, n: peers_blas.numpy(c, i),
                lambda n: threadpool_limits(n, user_api="blas"))


def openblas_side(room):
    b = peers_blas.OpenBLAS(room)
    return Side(b.version(), lambda c, i, n: b.make(c, i), b.threads)


def onednn_side(room):
    b = peers_blas.OneDNN(room)
    return Side(b.version(), lambda c, i, n: b.make(c, i), b.threads)


def sides(args):
    """({name: Side} of what is here, {name: why} of what is not)."""
    def texo(room):
        t = texo_side.Texo(args.build, SOURCE)
        return Side(t.version(), t.make)

    def eager(room):
        t = torch_side(room)
        return Side(t.version(), lambda c, i, n: t.eager(c, i), t.threads)

    def compiled(room):
        t = torch_side(room)
        return Side("torch.compile of the same", lambda c, i, n: t.compiled(c, i), t.threads)

    makers = {"texo": texo, "torch": eager, "compile": compiled, "numpy": numpy_side, "openblas": openblas_side,
              "onednn": onednn_side}
    here, absent = {}, {}
    for name, make in makers.items():
        if name in args.skip.split(","):
            absent[name] = "left out by --skip"
            continue
        try:
            here[name] = make(args.room)
        except (Absent, ImportError) as e:
            absent[name] = str(e)
    return here, absent


def machine_facts(here, machine):
    cpu = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
    return {"when": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "cpu": cpu[1] if cpu else platform.processor(), "cores": sorted(os.sched_getaffinity(0)),
            "load": os.getloadavg()[0], "versions": {n: s.version for n, s in here.items()},
            "peak_gflops": {f"{d} {n}": machine.peak(d, n) for d in ("f32", "bf16") for n in (1, 2)}}


class Pace:
    """Seconds a contender took for a unit of a graph's work, so that a size is left out that would take
    for ever. The table goes from small to large."""

    def __init__(self, most):
        self.most, self.seen = most, {}

    @staticmethod
    def work(case):
        return max(case.bytes(), case.flop())

    def saw(self, name, case, threads, seconds):
        self.seen[name, case.graph, threads] = seconds / self.work(case)

    def check(self, name, case, threads):
        predicted = self.seen.get((name, case.graph, threads), 0) * self.work(case)
        if predicted > self.most:
            raise Absent(f"left out: a call would take about {predicted:.0f} s, by the size before")


def ready(case, inputs, threads, here, row, pace):
    """The contenders that are here and right, and the seconds that the checked call of each took."""
    check, made, first = reference.Reference(case, inputs), {}, {}
    for name, side in here.items():
        side.threads(threads)
        try:
            pace.check(name, case, threads)
            c = side.make(case, inputs, threads)
            first[name] = interleave.once(c.call)
        except NoForm:
            continue
        except Absent as e:
            row["absent"][name] = str(e)
            continue
        error, fine = check.error(c.results())
        c.rest()
        if not fine:
            row["wrong"][name] = error
            c.close()
            continue
        made[name], row["error"][name] = c, error
        if c.compile_s is not None:
            row["compile_ms"][name] = c.compile_s * 1e3
        if hasattr(c, "again_s"):
            row["again_us"], row["kernels"] = c.again_s * 1e6, c.kernels
    return made, first


def time_row(case, threads, here, machine, pace, args):
    row = {"case": case.name, "group": case.group, "threads": threads, "dims": case.dims, "bytes": case.bytes(),
           "flops": case.flop(), "bars": case.held_to(), "limits": case.limits, "note": case.note,
           "us": {}, "error": {}, "compile_ms": {},
           "absent": {}, "wrong": {}}
    inputs = data.inputs(case)
    made, first = ready(case, inputs, threads, here, row, pace)
    triad = machine.triad(case.bytes(), threads)
    narrow = any(p.dtype == "bf16" for p in case.signature.inputs)
    timed, row["roof_gbps"] = interleave.run(made, first, triad, args.rounds, args.budget) if made else ({}, 1.0)
    for name, t in timed.items():
        pace.saw(name, case, threads, t["median"])
    row["peak_gflops"] = machine.peak("bf16" if narrow else "f32", threads)
    row["us"] = {n: {k: v if k in ("n", "rounds") else v * 1e6 for k, v in t.items()} for n, t in timed.items()}
    triad.close()
    for c in made.values():
        c.close()
    return report.finish(row)


def main():
    args = arguments()
    wanted = [(c, n) for c in cases.CASES for n in c.threads
              if re.search(args.only, f"{c.group} {c.name}") and args.threads in (None, n)]
    if args.list:
        print("\n".join(f"{c.group:10} {c.name:36} {n} threads" for c, n in wanted))
        return 0
    cores = sorted(os.sched_getaffinity(0))[:2]
    os.sched_setaffinity(0, cores)
    here, absent = sides(args)
    machine = roof.Machine(args.room)
    if args.processor_time:
        interleave.count_processor_time()
        machine.lib.roof_count_processor_time()
    facts = machine_facts(here, machine)
    print(f"{facts['when']}, {facts['cpu']}, cores {facts['cores']}, load {facts['load']:.1f}")
    for name, version in facts["versions"].items():
        print(f"  {name}: {version}")
    for name, why in absent.items():
        print(f"  {name}: skipped: {why}")
    print("  peak GFLOP/s: " + ", ".join(f"{k} threads {v:.0f}" for k, v in facts["peak_gflops"].items()))
    print(report.HEAD, flush=True)
    rows, start, pace = [], time.monotonic(), Pace(4 * args.budget)
    for case, threads in wanted:
        rows.append(time_row(case, threads, here, machine, pace, args))
        print(report.line(rows[-1]), flush=True)
    facts["clock"] = "processor" if args.processor_time else "wall"
    facts["seconds"] = time.monotonic() - start
    facts["load_after"] = os.getloadavg()[0]
    print("".join(f"\n{n}" for r in rows for n in report.notes(r, args.rounds)))
    print(report.LEGEND)
    print(report.summary(rows))
    report.write_json(args.json or args.room / "suite.json", facts, rows)
    return 1 if not rows or any(r["wrong"] for r in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
