"""What a launch costs the host, beside a bare one: a graph of one small kernel by texo's C function and by its Python,
cuLaunchKernel on an empty kernel, and a small operation of torch's. All through Python's ctypes or torch's own calls,
in turns."""
import ctypes
import statistics
import time

import torch

EMPTY = b"""
.version 8.0
.target sm_80
.address_size 64
.visible .entry empty() { ret; }
\0"""
CALLS, ROUNDS = 500, 9
SMALL = "graph small(x: f32[N], y: f32[N]) -> (z: f32[N]) { z[i] = x[i] + y[i] }"


def bare():
    """cuLaunchKernel in torch's context and on its stream."""
    cuda = ctypes.CDLL("libcuda.so.1")
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    if cuda.cuModuleLoadData(ctypes.byref(module), EMPTY) or cuda.cuModuleGetFunction(ctypes.byref(function), module, b"empty"):
        raise RuntimeError("the driver does not take an empty kernel")
    launch = cuda.cuLaunchKernel
    launch.argtypes = [ctypes.c_void_p] + [ctypes.c_uint] * 7 + [ctypes.c_void_p] * 3
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    return lambda: launch(function, 1, 1, 1, 32, 1, 1, 0, stream, None, None)


def calls(side):
    x, y, z = (torch.ones(64, device="cuda") for _ in range(3))
    found = {"bare": bare(), "torch": lambda: torch.add(x, y, out=z)}
    if side is not None:
        bound = side.texo.compile(SMALL, target="cuda").kernel().bind(x, y, out=z)
        stream = torch.cuda.current_stream().cuda_stream
        handle, arguments, n, room = bound._kernel._handle, bound._args, bound._n, bound._workspace
        found["texo in C"] = lambda: bound._call(handle, arguments, n, room, stream)
        found["texo in Python"] = bound
    return found


def overheads(side):
    """{what: microseconds of the host for a launch}, medians."""
    found = calls(side)
    samples = {name: [] for name in found}
    for _ in range(ROUNDS):
        for name, call in found.items():
            torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(CALLS):
                call()
            samples[name].append((time.perf_counter() - start) / CALLS * 1e6)
    torch.cuda.synchronize()
    return {name: statistics.median(s) for name, s in samples.items()}
