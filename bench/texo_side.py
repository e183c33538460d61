"""texo's side of the suites, in the peers' own process: python/texo.py on libtexo of a build folder.

The only file here that knows how texo is called."""
import ctypes
import functools
import importlib.util
import os
import re
import statistics
import subprocess
import time

import data
import numpy as np
import signature
from contender import Absent, Contender, Rotating

SMALLEST = 'use "std"\ngraph warm(x: f32[N]) -> (y: f32[N]) { y[i] = x[i] + 1 }\n'


COLD, COLD_ON_DEVICE = 5, 3  # compilations of a graph; the median counts
PLAN = re.compile(r"^graph \w+: (\d+) kernels?$", re.M)


def start_ms(build, source):
    """{what is called: the least processor time of 40 calls}"""
    command, least = next((c for c in (build / "driver" / "texo", build / "bin" / "texo") if c.exists()), None), {}
    text = source / "examples" / "first.tex"
    for name, args in {"--help": ["--help"], "check of a graph": ["check", text]}.items():
        for _ in range(40 if command else 0):
            child = subprocess.Popen([command, *args], stdout=subprocess.DEVNULL)
            _, child.returncode, used = os.wait4(child.pid, 0)
            least[name] = min(least.get(name, 1e9), 1e3 * (used.ru_utime + used.ru_stime))
    return least


class Texo:
    def __init__(self, build, source):
        library = build.resolve() / "lib" / "libtexo.so"
        if not library.exists():
            raise Absent(f"there is no {library}")
        os.environ["TEXO_LIBRARY"] = str(library)
        spec = importlib.util.spec_from_file_location("texo", source / "python" / "texo.py")
        self.texo = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(self.texo)
        except (OSError, AttributeError) as e:
            raise Absent(f"libtexo does not load: {e}") from e
        self.contexts = {}

    def version(self):
        return "texo " + self.texo._lib.texo_version().decode()

    def context(self, threads):
        """With LLVM warm in it: `cold` is a kernel that no cache has, not a process that just began."""
        if threads not in self.contexts:
            self.contexts[threads] = self.texo.Context(threads=threads)
            self.contexts[threads].compile(SMALLEST)
        return self.contexts[threads]

    def make(self, case, inputs, threads):
        """On the processor, on NumPy's arrays."""
        made = Compiled(self, case, self.context(threads))
        made.out = [data.empty(p.shape(case.dims), p.dtype) for p in case.signature.results]
        made.call = made.bind(*inputs.values(), out=made.out).__call__
        return made

    def once(self, case, one, target):
        """A launch on one set of torch tensors, and nothing measured."""
        import gpu_data
        text = signature.source(case.path, case.graph)
        kernel = self.context(0).compile(text, target=target, fp=case.fp or None).kernel(case.graph)
        return kernel.bind(*one.values(), out=gpu_data.results(case, one))

    def on_tensors(self, case, sets, target, statics=False):
        """On sets of torch tensors, each with results of its own."""
        import gpu_data
        context = self.context(0)
        context.compile(SMALLEST, target=target).kernel()
        sets = [gpu_data.own(case, one) for one in sets]
        out = [gpu_data.results(case, one) for one in sets]
        made = Compiled(self, case, context, target=target, statics=case.dims if statics else None, prepare=(sets[0], out[0]),
                        cold=COLD_ON_DEVICE)
        launches = [made.bind(*one.values(), out=o) for one, o in zip(sets, out)]
        rotating = Rotating([functools.partial(written, launch, gpu_data.inouts(case, one))
                             for launch, one in zip(launches, sets)], made.compile_s)
        rotating.again_s, rotating.kernels = made.again_s, made.kernels
        rotating.check = launches[0].check if hasattr(launches[0], "check") else lambda: None
        return rotating


def written(launch, inouts):
    launch()
    return inouts + tuple(launch.results)


class Compiled(Contender):
    """A graph's kernel. `compile_s` is the graph alone, cold, up to where it can be launched: with (inputs, results) to
    `prepare` for, the device has its code too. `again_s` is the same text from the memory cache, down to the kernel;
    `kernels` how many it became."""

    def __init__(self, side, case, context, target=None, statics=None, prepare=None, cold=COLD):
        texo, text, name = side.texo, signature.source(case.path, case.graph), str(case.path)
        how = {"target": target, "fp": case.fp or None, "statics": statics or {d: case.dims[d] for d in case.told}}
        try:
            module = context.compile(text, name, cache=False, **how)
            self.kernel = module.kernel(case.graph)
            self.compile_s = statistics.median(self.cold(context, text, name, how, prepare) for _ in range(cold))
            self.kernels = int(PLAN.search(module.emit("plan").decode())[1])
            self.again(texo, context, text, how)
            self.again_s = min(self.again(texo, context, text, how) for _ in range(9))
        except texo.Error as e:
            raise Absent(f"texo: {e}") from e
        self.error = texo.Error

    @staticmethod
    def cold(context, text, name, how, prepare):
        start = time.perf_counter()
        kernel = context.compile(text, name, cache=False, **how).kernel()
        if prepare is not None:
            inputs, out = prepare
            kernel.bind(*inputs.values(), out=out)
        return time.perf_counter() - start

    @staticmethod
    def again(texo, context, text, how):
        """By the C functions themselves, without what Python wraps around them."""
        lib, data, module, kernel = texo._lib, text.encode(), ctypes.c_void_p(), ctypes.c_void_p()
        n, to_module, to_kernel = len(data), ctypes.byref(module), ctypes.byref(kernel)
        options = context._options(how["target"], how["fp"], None, how["statics"], True, False)
        start = time.perf_counter()
        code = lib.texo_compile_string(context._handle, data, n, None, ctypes.byref(options), to_module)
        code = code or lib.texo_module_get_kernel(module, None, to_kernel)
        took = time.perf_counter() - start
        lib.texo_module_destroy(module)
        if code:
            raise texo.Error(code)
        return took

    def bind(self, *inputs, out):
        try:
            return self.kernel.bind(*inputs, out=out)
        except self.error as e:
            raise Absent(f"texo: {e}") from e

    def results(self):
        return [np.asarray(x) for x in self.out]

    def close(self):
        self.kernel = self.out = self.call = None
