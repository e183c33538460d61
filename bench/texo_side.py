"""texo's side of the suite, in the peers' own process: python/texo.py on libtexo of a build folder.

The only file here that knows how texo is called."""
import ctypes
import importlib.util
import os
import re
import statistics
import time

import data
import numpy as np
import signature
from contender import Absent, Contender

SMALLEST = 'use "std"\ngraph warm(x: f32[N]) -> (y: f32[N]) { y[i] = x[i] + 1 }\n'


COLD = 5  # compilations of a graph; the median counts
PLAN = re.compile(r"^graph \w+: (\d+) kernels?$", re.M)


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
        return Graph(self, case, inputs, self.context(threads))


class Graph(Contender):
    """`compile_s` is the graph alone, cold; `again_s` the same text from the memory cache, down to the kernel;
    `kernels` how many it became."""

    def __init__(self, side, case, inputs, context):
        texo, text, name = side.texo, signature.source(case.path, case.graph), str(case.path)
        try:
            module = context.compile(text, name, cache=False)
            kernel = module.kernel(case.graph)
            self.compile_s = statistics.median(self.cold(context, text, name) for _ in range(COLD))
            self.kernels = int(PLAN.search(module.emit("plan").decode())[1])
            self.again(texo, context, text)
            self.again_s = min(self.again(texo, context, text) for _ in range(9))
            self.out = [data.empty(p.shape(case.dims), p.dtype) for p in case.signature.results]
            self.launch = kernel.bind(*inputs.values(), out=self.out)
        except texo.Error as e:
            raise Absent(f"texo: {e}") from e
        self.call = self.launch.__call__

    @staticmethod
    def cold(context, text, name):
        start = time.perf_counter()
        context.compile(text, name, cache=False).kernel()
        return time.perf_counter() - start

    @staticmethod
    def again(texo, context, text):
        """By the C functions themselves, without what Python wraps around them."""
        lib, data, module, kernel = texo._lib, text.encode(), ctypes.c_void_p(), ctypes.c_void_p()
        n, to_module, to_kernel = len(data), ctypes.byref(module), ctypes.byref(kernel)
        start = time.perf_counter()
        code = lib.texo_compile_string(context._handle, data, n, None, None, to_module)
        code = code or lib.texo_module_get_kernel(module, None, to_kernel)
        took = time.perf_counter() - start
        lib.texo_module_destroy(module)
        if code:
            raise texo.Error(code)
        return took

    def results(self):
        return [np.asarray(x) for x in self.out]

    def close(self):
        self.launch = self.out = self.call = None
