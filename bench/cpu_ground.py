"""The CPU suite's ground: its rows, its contenders, and how they are timed there."""
import os
import platform
import re
from pathlib import Path

import cases
import data
import interleave
import peers_blas
import reference
import report
import roof
import texo_side
from contender import Absent, Side


def torch_peers():
    try:
        import peers_torch as t
    except ImportError as e:
        raise Absent(f"torch is not installed: {e}") from e
    return t


class Ground:
    table, columns, supervised = cases.CASES, report.CPU_COLUMNS, False
    held_to = staticmethod(cases.held_to)
    once = staticmethod(interleave.once)

    def __init__(self, args, source):
        self.args, self.source = args, source

    @staticmethod
    def rows(args):
        """(case, threads)"""
        return [(c, n) for c in cases.CASES for n in c.threads if args.threads in (None, n)]

    def makers(self):
        """{contender: what gives its Side}"""
        return {"texo": self.texo, "torch": self.eager, "compile": self.compiled, "numpy": self.numpy,
                "openblas": self.openblas, "onednn": self.onednn}

    def texo(self):
        t = texo_side.Texo(self.args.build, self.source)
        return Side(t.version(), t.make)

    def eager(self):
        t = torch_peers()
        return Side(t.version(), lambda c, i, n: t.eager(c, i), t.threads)

    def compiled(self):
        t = torch_peers()
        return Side("torch.compile of the same", lambda c, i, n: t.compiled(c, i), t.threads)

    def numpy(self):
        import numpy
        from threadpoolctl import threadpool_limits
        return Side(f"NumPy {numpy.__version__}", lambda c, i, n: peers_blas.numpy(c, i),
                    lambda n: threadpool_limits(n, user_api="blas"))

    def openblas(self):
        b = peers_blas.OpenBLAS(self.args.room)
        return Side(b.version(), lambda c, i, n: b.make(c, i), b.threads)

    def onednn(self):
        b = peers_blas.OneDNN(self.args.room)
        return Side(b.version(), lambda c, i, n: b.make(c, i), b.threads)

    def open(self):
        """Before the contenders: two cores, and the machine's own rates."""
        self.cores = sorted(os.sched_getaffinity(0))[:2]
        os.sched_setaffinity(0, self.cores)
        self.machine = roof.Machine(self.args.room)
        if self.args.processor_time:
            interleave.count_processor_time()
            self.machine.lib.roof_count_processor_time()

    def facts(self):
        cpu = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
        starts = texo_side.start_ms(self.args.build, self.source)
        return {"device": cpu[1] if cpu else platform.processor(), "cores": self.cores,
                "clock": "processor" if self.args.processor_time else "wall", "start_ms": starts,
                "lines": ["processor time of a start, ms: " + ", ".join(f"{k} {v:.1f}" for k, v in starts.items())],
                "peak_gflops": {f"{d} {n}": self.machine.peak(d, n) for d in ("f32", "bf16") for n in (1, 2)}}

    def inputs(self, case, threads):
        """(what contenders are made of, what the reference is made of)"""
        inputs = data.inputs(case)
        return inputs, inputs

    reference = staticmethod(reference.Reference)

    def time(self, row, case, threads, made, first):
        triad = self.machine.triad(case.bytes(), threads)
        narrow = any(p.dtype == "bf16" for p in case.signature.inputs)
        timed, row["roof_gbps"] = (interleave.run(made, first, triad, self.args.rounds, self.args.budget) if made
                                   else ({}, 1.0))
        row["peak_gflops"] = self.machine.peak("bf16" if narrow else "f32", threads)
        triad.close()
        return timed

    def survived(self, e):
        """What a contender's failure costs: the run, for nothing here fails that has no word of its own."""
        raise e

    def close_row(self):
        pass
