"""Times texo and its peers on the cases of a table, in turns, and prints one table.

Run it through run.sh, which puts the peers in place, or where they are in place, on a machine with a GPU.
usage: suite.py [--device=cuda] --build DIR [options]"""
import argparse
import datetime
import os
import re
import sys
import time
from pathlib import Path

import report
import supervise
from contender import Absent, NoForm

SOURCE = Path(__file__).resolve().parent.parent


def arguments():
    p = argparse.ArgumentParser(prog="bench/run.sh", description="texo and its peers, one table")
    p.add_argument("--device", choices=("cpu", "cuda", "rehearsal"), default="cpu",
                   help="the CPU suite (default), the GPU suite, or the GPU suite's contenders on small data on the "
                   "processor, to see that they are right")
    p.add_argument("--room", type=Path, default=Path("."), help=argparse.SUPPRESS)
    p.add_argument("--build", type=Path, default=SOURCE if (SOURCE / "lib").is_dir() else SOURCE / "build",
                   help="a build of texo, or a bundle (default: what this lies in)")
    p.add_argument("--only", default="", metavar="REGEX", help="rows whose group or case matches")
    p.add_argument("--skip", default="", metavar="PEER,…", help="leave contenders out")
    p.add_argument("--budget", type=float, metavar="S", help="seconds a row may take (default 30; on a GPU 3, without "
                   "compiling)")
    p.add_argument("--json", type=Path, metavar="PATH", help="write every figure (default ROOM/suite.json)")
    p.add_argument("--list", action="store_true", help="print the rows and stop")
    c = p.add_argument_group("on the processor")
    c.add_argument("--threads", type=int, choices=(1, 2), help="rows of so many threads only")
    c.add_argument("--rounds", type=int, default=20, help="turns of each contender in a row (default 20)")
    c.add_argument("--processor-time", action="store_true",
                   help="time spent on processors, all threads together, instead of time that passed: for rows of one "
                   "thread on a machine that others use")
    g = p.add_argument_group("on a GPU")
    g.add_argument("--no-cool", action="store_true", help="without the pairs that wait for the GPU to cool")
    g.add_argument("--static", action="store_true", help="texo is told the extents when it compiles")
    g.add_argument("--total", type=float, metavar="S", help="start no row after so many seconds")
    g.add_argument("--row-limit", type=float, default=120, metavar="S",
                   help="a row that takes longer is given up, and the run goes on in a new process (default 120)")
    g.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    g.add_argument("--start", type=int, default=0, help=argparse.SUPPRESS)
    args = p.parse_args()
    args.budget = args.budget or (30 if args.device == "cpu" else 3)
    return args


def ground_of(args):
    """What is under the suite: a processor or a GPU. Its peers need not be there to list its rows."""
    if args.device == "cpu":
        import cpu_ground as ground
    else:
        import gpu_ground as ground
    return ground.Ground(args, SOURCE)


def sides(ground, skip):
    """({name: Side} of what is here, {name: why} of what is not)."""
    here, absent = {}, {}
    for name, make in ground.makers().items():
        if name in skip.split(","):
            absent[name] = "left out by --skip"
            continue
        try:
            here[name] = make()
        except (Absent, ImportError, OSError) as e:
            absent[name] = str(e)
    return here, absent


class Pace:
    """Seconds a contender took for a unit of a graph's work, so that a size is left out that would take
    for ever. The table goes from small to large."""

    def __init__(self, most):
        self.most, self.seen = most, {}

    @staticmethod
    def work(case):
        return max(case.bytes(), case.flop())

    def saw(self, name, case, variant, seconds):
        self.seen[name, case.graph, variant] = seconds / self.work(case)

    def check(self, name, case, variant):
        predicted = self.seen.get((name, case.graph, variant), 0) * self.work(case)
        if predicted > self.most:
            raise Absent(f"left out: a call would take about {predicted:.0f} s, by the size before")


def ready(case, variant, ground, here, row, pace):
    """The contenders that are here and right, and the seconds that the checked call of each took."""
    inputs, known = ground.inputs(case, variant)
    check, made, first = ground.reference(case, known), {}, {}
    for name, side in here.items():
        side.threads(variant)
        try:
            pace.check(name, case, variant)
            c = side.make(case, inputs, variant)
            first[name] = ground.once(c.call)
            error, fine = check.error(name, c.results())
        except NoForm:
            continue
        except Absent as e:
            row["absent"][name] = str(e)
            continue
        except Exception as e:
            row["absent"][name] = ground.survived(e)
            continue
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


def time_row(case, variant, ground, here, pace):
    row = {"case": case.name, "group": case.group, "threads": variant, "dims": case.dims, "bytes": case.bytes(),
           "flops": case.flop(), "bars": ground.held_to(case), "limits": case.limits, "note": case.note,
           "us": {}, "error": {}, "compile_ms": {}, "absent": {}, "wrong": {}, "peak_gflops": 0}
    start = time.monotonic()
    made, first = ready(case, variant, ground, here, row, pace)
    row["ready_s"] = time.monotonic() - start
    timed = ground.time(row, case, variant, made, first)
    for name, t in timed.items():
        pace.saw(name, case, variant, t["median"])
    row["us"] = {n: {k: v if k in ("n", "rounds") else v * 1e6 for k, v in t.items()} for n, t in timed.items()}
    for c in made.values():
        c.close()
    ground.close_row()
    row["row_s"] = time.monotonic() - start
    return report.finish(row)


def timed(args, ground, wanted):
    """The facts of the run, then its rows, one after the other."""
    start = time.monotonic()
    ground.open()
    here, absent = sides(ground, args.skip)
    yield {"when": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"), "load": os.getloadavg()[0],
           "versions": {n: s.version for n, s in here.items()}, "absent": absent, **ground.facts()}
    pace = Pace(4 * args.budget)
    for case, variant in wanted:
        if args.total and time.monotonic() - start > args.total:
            return
        yield time_row(case, variant, ground, here, pace)


def show_facts(facts):
    print(f"{facts['when']}, {facts['device']}, load {facts['load']:.1f}")
    for name, version in facts["versions"].items():
        print(f"  {name}: {version}")
    for name, why in facts["absent"].items():
        print(f"  {name}: skipped: {why}")
    if "peak_gflops" in facts:
        print("  peak GFLOP/s: " + ", ".join(f"{k} threads {v:.0f}" for k, v in facts["peak_gflops"].items()))
    for line in facts.get("lines", ()):
        print(f"  {line}")


def main():
    args = arguments()
    ground = ground_of(args)
    wanted = [(c, v) for c, v in ground.rows(args) if re.search(args.only, f"{c.group} {c.name}")]
    if args.list:
        print("\n".join(f"{c.group:10} {c.name:36}" + (f" {v} threads" if v else "") for c, v in wanted))
        return 0
    if args.worker is not None:
        return supervise.work(args.worker, timed(args, ground, wanted[args.start:]))
    start = time.monotonic()
    run = supervise.rows(args, wanted) if ground.supervised else timed(args, ground, wanted)
    facts, rows = next(run), []
    show_facts(facts)
    print(report.head(ground.columns), flush=True)
    for row in run:
        rows.append(row)
        print(report.line(ground.columns, row), flush=True)
    facts["seconds"] = time.monotonic() - start
    facts["load_after"] = os.getloadavg()[0]
    print("".join(f"\n{n}" for r in rows for n in report.notes(r, args.rounds)))
    print(report.LEGEND[ground.columns])
    if len(rows) < len(wanted):
        print(f"{len(wanted) - len(rows)} rows were not begun: the time was up")
    print(report.summary(rows))
    report.write_json(args.json or args.room / "suite.json", facts, rows)
    return 1 if not rows or any(r["wrong"] for r in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
