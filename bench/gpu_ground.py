"""The GPU suite's ground: its rows, its contenders on torch's tensors, and how they are timed. Without a GPU the
same contenders can be rehearsed on the processor, on small data."""
import functools
import os
import time
import traceback

import gpu_cases
import report
from contender import Absent, NoForm, Rotating, Side

PROBE = 1 << 16          # elements of the first run of a kernel that is not known yet
PROBE_STEP, TOO_LONG = 4, 3.0
REHEARSED = 1 << 13      # elements of a rehearsal's tensors, about


class Ground:
    table, columns, held_to = gpu_cases.CASES, report.GPU_COLUMNS, staticmethod(lambda c: c.bars)

    def __init__(self, args, source):
        self.args, self.source = args, source
        self.rehearsal = args.device == "rehearsal"
        self.supervised = not self.rehearsal
        if self.rehearsal:
            self.columns, self.held_to = report.REHEARSAL_COLUMNS, lambda c: {}

    def rows(self, args):
        return [(rehearsed(c) if self.rehearsal else c, None) for c in gpu_cases.CASES]

    def open(self):
        os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
        if self.rehearsal:
            os.environ.update(TRITON_INTERPRET="1", JAX_PLATFORMS="cpu")
        import torch
        import gpu_data
        import gpu_reference
        import gpu_roof
        import gpu_turns
        self.torch, self.data, self.turns = torch, gpu_data, gpu_turns
        self.device = "cpu" if self.rehearsal else "cuda"
        self.clock = gpu_turns.Host(lambda: None) if self.rehearsal else gpu_turns.Device()
        self.reference = gpu_reference.Reference
        self.roof = gpu_roof.Roof(torch, self.device, self.seconds)
        if not self.rehearsal:
            torch.cuda.init()

    def seconds(self, contender):
        """Of a call, roughly."""
        self.once(contender.call)
        return min(self.once(contender.call) for _ in range(3))

    def once(self, call):
        self.clock.wait()
        start = time.perf_counter()
        call()
        self.clock.wait()
        return time.perf_counter() - start

    def facts(self):
        if self.rehearsal:
            return {"device": "rehearsal on the processor: no figure means anything"}
        p = self.torch.cuda.get_device_properties(0)
        facts = {"device": f"{p.name}, {p.multi_processor_count} processors, {p.total_memory / 2**30:.0f} GiB, "
                           f"CUDA {self.torch.version.cuda}"}
        import gpu_launch
        try:
            facts["launch_us"] = gpu_launch.overheads(self.texo_side)
            facts["lines"] = ["host time of a launch, us: " + ", ".join(f"{k} {v:.2f}" for k, v in facts["launch_us"].items())]
        except Exception as e:  # the rows are worth having without
            facts["lines"] = [f"host time of a launch: {self.survived(e)}"]
        return facts

    # --- contenders ---

    texo_side = None

    def makers(self):
        return {"eager": self.eager, "compile": self.compiled, "autotune": self.autotuned, "triton": self.triton,
                "jax": self.jax, "texo": self.texo}

    def texo(self):
        import texo_side
        build = self.args.build
        source = build if (build / "python" / "texo.py").exists() else self.source
        self.texo_side = texo_side.Texo(build, source)
        target = "cpu" if self.rehearsal else "cuda"
        try:
            self.texo_side.texo.compile(texo_side.SMALLEST, target=target).kernel()
        except self.texo_side.texo.Error as e:
            raise Absent(f"texo has no {target}: {e}") from e

        def make(case, sets, _):
            if not self.rehearsal:
                self.probe(case, target)
            return self.texo_side.on_tensors(case, sets, target, self.args.static)
        return Side(self.texo_side.version(), make)

    def probe(self, case, target):
        """Runs the kernel on ever larger shapes, each so much smaller than the next that the time of that can be told at
        the worst, and refuses a case that would take too long."""
        by = 1
        while self.elements(self.data.shrunk(case, by)) > PROBE:
            by *= PROBE_STEP
        while by > 1:
            small = self.data.shrunk(case, by)
            larger = self.data.shrunk(case, by // PROBE_STEP)
            one = self.data.inputs(small, self.device)[0]
            launch = self.texo_side.once(small, one, target)
            took = min(self.once(launch), self.once(launch))
            worst = took * self.elements(larger) / self.elements(small) * PROBE_STEP
            if worst > TOO_LONG:
                raise Absent(f"left out: {small.name} took {took:.3g} s")
            by //= PROBE_STEP

    @staticmethod
    def elements(case):
        return sum(p.elements(case.dims) for p in case.signature.inputs + case.signature.results)

    def torch_forms(self, forms, wrap=lambda f: f):
        """A Side's make: the form for each set of inputs, which is told apart from what it writes in place."""
        def make(case, sets, _):
            if case.graph not in forms:
                raise NoForm("no form of it here")
            mine = [self.data.own(case, one) for one in sets]
            f = wrap(forms[case.graph])
            c = Rotating([functools.partial(self.written, f, self.data.inouts(case, one), tuple(one.values()))
                          for one in mine])
            try:
                c.compile_s = self.once(c.call)
            except Exception as e:  # any of the compilers'
                raise Absent(f"failed: {type(e).__name__}: {(str(e).splitlines() or [''])[0][:200]}") from e
            for p in case.signature.inouts:
                mine[0][p.name].copy_(sets[0][p.name])
            c.turn = 0
            return c
        return make

    def written(self, f, inouts, arguments):
        with self.torch.inference_mode():
            got = f(*arguments)
        return inouts + (got if isinstance(got, tuple) else (got,))

    def eager(self):
        import peers_torch as t

        def make(case, sets, _):
            c = self.torch_forms({**t.FORMS, **t.EAGER})(case, sets, _)
            c.compile_s = None
            return c
        return Side(t.version(), make)

    def compiling(self, **how):
        import peers_torch as t

        return self.torch_forms(t.FORMS, lambda f: self.torch.compile(f, dynamic=False, **how))

    def compiled(self):
        if self.rehearsal:
            return Side("torch.compile of the same, not compiled", self.compiling(backend="eager"))
        warm = self.torch.compile(lambda x: x * 2 + 1)
        warm(self.torch.ones(64, device=self.device))
        return Side("torch.compile of the same", self.compiling())

    def autotuned(self):
        if self.rehearsal:
            raise Absent("not in a rehearsal")
        return Side("torch.compile, max-autotune-no-cudagraphs", self.compiling(mode="max-autotune-no-cudagraphs"))

    def triton(self):
        import peers_triton as t
        return Side(t.version(), self.torch_forms(t.FORMS))

    def jax(self):
        import peers_jax as j
        return Side(j.version(), lambda case, sets, _: j.Jit(case, sets))

    # --- a row ---

    def inputs(self, case, _):
        self.torch._dynamo.reset()  # else a function compiled for several shapes becomes one for all
        sets = self.data.inputs(case, self.device, self.data.sets(case) if not self.rehearsal else 2)
        return sets, sets[0]

    def time(self, row, case, _, made, first):
        row["roof_gbps"], row["notes"] = 1.0, []
        if not made or self.rehearsal:
            return {}
        for name, c in made.items():
            if hasattr(c, "settle"):
                c.settle(first[name])
        mine = "texo" if "texo" in made else next(iter(made))
        if mine == "texo" and (launched := self.clock.launches(made["texo"])) is not None:
            row["plan_kernels"], row["kernels"] = row["kernels"], launched
        roof = self.roof.make(case)
        first["roof"] = self.once(roof.call)
        timed, hot, cool, captured = self.turns.run(self.clock, {**made, "roof": roof}, first, mine, self.args.budget,
                                                    not self.args.no_cool)
        row["roof_gbps"] = roof.bytes / timed["roof"]["median"] * 1e-9
        row["roof_mix"], row["sets"] = roof.mix, next(iter(made.values())).sets
        if mine == "texo":
            row["of_roof"] = hot["roof"] * case.bytes() / roof.bytes
            row["ratio"], row["cool"] = {n: r for n, r in hot.items() if n != "roof"}, cool
            row["notes"] += self.faults(made["texo"])
        plain = sorted(set(made) - captured - {"jax"}) if self.clock.captures else []
        if plain:
            row["notes"].append(f"launched and not in a CUDA graph: {', '.join(plain)}")
        del timed["roof"]
        return timed

    def survived(self, e):
        """Why a contender is not in the row; or the GPU's context went with it, and the process must."""
        traceback.print_exception(e)
        self.clock.wait()
        if isinstance(e, self.torch.OutOfMemoryError):
            self.torch.cuda.empty_cache()
        return f"{type(e).__name__}: {(str(e).splitlines() or [''])[0][:200]}"

    @staticmethod
    def faults(c):
        """What the kernel's status says after all launches."""
        try:
            c.check()
        except Exception as e:  # texo's Error, of a module that is loaded at run time
            return [f"texo: {e}"]
        return []

    def close_row(self):
        if not self.rehearsal:
            self.torch.cuda.empty_cache()


def rehearsed(case):
    """The case on extents that are no multiples of anything."""
    import dataclasses
    by = 1
    while Ground.elements(dataclasses.replace(case, dims=smaller(case, by))) > REHEARSED:
        by *= 2
    return dataclasses.replace(case, dims=smaller(case, by), limits={})


def smaller(case, by):
    dims = {k: max(3, n // by + k_odd) for k_odd, (k, n) in enumerate(case.dims.items())}
    return {k: 2 * dims[case.multiples[k]] if k in case.multiples else n for k, n in dims.items()}
