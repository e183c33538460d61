#!/usr/bin/env python3
"""libtexo on an NVIDIA GPU, from Python on torch's tensors: results, streams, CUDA graphs, faults, refusals; and the
functions of an object of `texo build`, where there is a C compiler. Prints a line for each, and what preparing
and launching took.

    gpu-library.py [TEXO]     ../bin/texo without it; TEXO_LIBRARY names libtexo.so where it isn't beside

Exit 1 when something fails, 77 without torch or a GPU."""
import ctypes
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import gpu_torch

HERE = Path(__file__).resolve().parent
TEXO = sys.argv[1] if len(sys.argv) > 1 else str(HERE.parent / "bin" / "texo")

gpu_torch.need("cuda")
import texo  # noqa: E402
import torch  # noqa: E402

SOFTMAX = 'use "std"\ngraph rows(x: f32[N, M]) -> (y: f32[N, M]) { y[i, j] = softmax[j](x[i, j]) }\n'
PICK = "graph pick(x: f32[N], at: i64[K]) -> (y: f32[K]) { y[i] = x[at[i]] }\n"
SCALE = "graph scale(x: f32[N, M], a: f32, inout t: f32[N, M]) -> (y: f32[N, M]) {\n" \
        "  y[i, j] = a * x[i, j]\n  t[i, j] = t[i, j] + x[i, j]\n}\n"
PREFIX = "graph prefix(x: f32[N]) -> (y: f32[N], m: f32[N]) {\n" \
         "  y[i] = sum[k where k <= i](x[k])\n  m[i] = max[k where k <= i](x[k])\n}\n" \
         "graph suffix(x: i64[N, M]) -> (y: i64[N, M]) { y[i, j] = sum[k where j <= k](x[i, k]) }\n"
PRODUCT = "graph product(x: bf16[M, K], w: bf16[K, N]) -> (y: f32[M, N]) { y[i, j] = sum[k](f32(x[i, k]) * f32(w[k, j])) }\n"


def near(a, b, tolerance=1e-5):
    worst = (a - b).abs().max().item() if a.numel() else 0
    assert worst <= tolerance * max(1, b.abs().max().item() if b.numel() else 0), f"they differ by {worst}"


def test_results():
    k = texo.compile(SOFTMAX, target="cuda").kernel()
    for n, m in ((1, 1), (3, 37), (128, 1000), (17, 40000)):
        x = torch.randn(n, m, device="cuda")
        near(k(x), torch.softmax(x, 1))
    assert k(torch.empty(0, 5, device="cuda")).shape == (0, 5)


def test_products():
    x, w = torch.randn(200, 300, device="cuda").bfloat16(), torch.randn(300, 100, device="cuda").bfloat16()
    near(texo.compile(PRODUCT, target="cuda").kernel()(x, w), x.float() @ w.float(), 1e-4)


def test_scalars_and_inouts():
    x, t = torch.randn(5, 9, device="cuda"), torch.randn(5, 9, device="cuda")
    want = t + x
    y = texo.compile(SCALE, target="cuda").kernel()(x, 2.5, t)
    near(y, 2.5 * x)
    near(t, want)


def test_strides():
    k = texo.compile(SOFTMAX, target="cuda").kernel()
    x = torch.randn(64, 96, device="cuda")
    for view in (x.t(), x[::2], x[:, ::3], x[5:20, 7:90]):
        near(k(view), torch.softmax(view, 1))
    out = torch.zeros(96, 64, device="cuda").t()
    k(x, out=out)
    near(out, torch.softmax(x, 1))


def rows_that_must_be_contiguous(image):
    """The artefact as if its kernels took the last axis of every tensor to be in a row (ir/image.h)."""
    data = bytearray(image)
    at, n = struct.unpack_from("<QQ", data, 56 + 16)  # the parameters
    for k in range(n):
        kind, rank = struct.unpack_from("<I4xI", data, at + 56 * k + 4)
        if kind != 2 and rank:
            struct.pack_into("<I", data, at + 56 * k + 48, 1)
    digest, rest = 0xcbf29ce484222325, bytes(data[32:])
    for word in (len(rest), *struct.unpack(f"<{len(rest) // 8 + 1}Q", rest.ljust(len(rest) // 8 * 8 + 8, b"\0"))):
        digest = (digest ^ word) * 0x100000001b3 & 0xffffffffffffffff
        digest ^= digest >> 32
    struct.pack_into("<Q", data, 24, digest)
    return bytes(data)


class _RtOptions(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("threads", ctypes.c_uint32), ("device", ctypes.c_char_p)] + \
               [(f"p{k}", ctypes.c_void_p) for k in range(7)]


def test_rows_are_copied():
    lib, rt, program, handle = texo._lib, ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    image = rows_that_must_be_contiguous(texo.compile(SOFTMAX, target="cuda").emit("image"))
    options = _RtOptions(struct_size=ctypes.sizeof(_RtOptions), device=b"cuda")
    for f in (lib.texo_rt_load, lib.texo_program_get_kernel, lib.texo_rt_create):
        f.restype = ctypes.c_int
    texo._check(lib.texo_rt_create(ctypes.byref(options), ctypes.byref(rt)))
    texo._check(lib.texo_rt_load(rt, image, ctypes.c_size_t(len(image)), ctypes.byref(program)))
    texo._check(lib.texo_program_get_kernel(program, None, ctypes.byref(handle)))
    k = texo.Kernel(None, handle)
    x = torch.randn(300, 500, device="cuda")
    big = torch.randn(40, 30, 20, device="cuda")
    for view in (x, x.t(), x[::2, ::3], big[:, 3, :].t(), big[5]):
        near(k(view), torch.softmax(view, 1))
        out = torch.zeros(view.shape[1], view.shape[0], device="cuda").t()
        k(view, out=out)
        near(out, torch.softmax(view, 1))


def test_streams():
    k = texo.compile(SOFTMAX, target="cuda").kernel()
    x = torch.randn(256, 4096, device="cuda")
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        ys = [k(x + i) for i in range(20)]
    stream.synchronize()
    for i, y in enumerate(ys):
        near(y, torch.softmax(x + i, 1), 1e-4)


def test_capture():
    k = texo.compile(SOFTMAX, target="cuda").kernel()
    x = torch.randn(64, 500, device="cuda")
    launch = k.bind(x)  # prepares
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        launch()
    for _ in range(3):
        x.copy_(torch.randn(64, 500, device="cuda"))
        graph.replay()
        near(launch.results[0], torch.softmax(x, 1))
    launch.check()


def test_prefixes():
    """Of few long rows, whose blocks wait for one another: right, and the same bits each time."""
    k, suffix = (texo.compile(PREFIX, target="cuda").kernel(name) for name in ("prefix", "suffix"))
    for n in (4096, 16384, 100001, (1 << 22) + 5, 1 << 24):
        x = torch.rand(n, device="cuda")
        y, m = k(x)
        near(y.double(), x.double().cumsum(0), 1e-6)
        assert torch.equal(m, x.cummax(0).values)
        for _ in range(20):
            assert torch.equal(k(x)[0], y), "another order of additions"
    for rows, n in ((1, 1 << 21), (3, 300004), (40, 50001), (1000, 20000)):
        x = torch.randint(-1000, 1000, (rows, n), device="cuda")
        assert torch.equal(suffix(x), x.flip(1).cumsum(1).flip(1))
    launch = k.bind(x := torch.rand(1 << 22, device="cuda"))
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        launch()
    for _ in range(5):
        x.copy_(torch.rand_like(x))
        graph.replay()
        near(launch.results[0].double(), x.double().cumsum(0), 1e-6)


def test_faults():
    k = texo.compile(PICK, target="cuda").kernel()
    x, at = torch.randn(10, device="cuda"), torch.tensor([3, 10, 0], device="cuda")
    launch = k.bind(x, at)
    launch()
    try:
        launch.check()
    except texo.Error as e:
        assert e.status == "FAULT" and "x[at[i]]" in str(e), e
    else:
        raise AssertionError("the fault was not told")
    at[1] = 9
    launch()
    launch.check()
    near(launch.results[0], x[at])


def test_refusals():
    k = texo.compile(SOFTMAX, target="cuda").kernel()
    try:
        k(torch.randn(3, 4))
    except texo.Error as e:
        assert e.status == "INVALID" and "argument x: the tensor is not in the device's memory" in str(e), e
    else:
        raise AssertionError("a tensor of the processor was taken")


def test_other_architectures():
    x = torch.randn(33, 70, device="cuda")
    near(texo.compile(SOFTMAX, target="cuda:sm_80").kernel()(x), torch.softmax(x, 1))


def test_command_with_machine_code():
    if not shutil.which("ptxas"):
        return "skipped: no ptxas"
    with tempfile.TemporaryDirectory() as d:
        path = Path(d, "p.tex")
        path.write_text(SOFTMAX)
        subprocess.run([TEXO, "run", path, "N=50", "M=60", "--device=cuda", "--assembler=ptxas", "--compare=interp", "-q"],
                       check=True, capture_output=True, timeout=120)


def test_objects():
    if not shutil.which("cc"):
        return "skipped: no C compiler"
    with tempfile.TemporaryDirectory() as d:
        path = Path(d, "p.tex")
        path.write_text(SOFTMAX + PICK)
        subprocess.run([TEXO, "build", path, "--target=cpu:x86-64-v3,cuda", "--emit=so,header", "-o", Path(d, "p")], check=True,
                       timeout=120)
        runtime = next(p for f in (HERE.parent / "lib", Path(os.environ.get("TEXO_LIBRARY", "/nowhere")).parent)
                       for p in f.glob("libtexo-rt.so*"))
        ctypes.CDLL(str(runtime), mode=ctypes.RTLD_GLOBAL)
        made = ctypes.CDLL(str(Path(d, "p.so")))
        size, pointer = ctypes.c_int64, ctypes.c_void_p
        made.rows_workspace.restype = ctypes.c_size_t
        for n, m in ((40, 900), (3, 5)):
            x = torch.randn(n, m, device="cuda")
            y = torch.empty_like(x)
            room = torch.empty(max(1, made.rows_workspace(size(n), size(m))), dtype=torch.uint8, device="cuda")
            stream = pointer(torch.cuda.current_stream().cuda_stream)
            code = made.rows_cuda(pointer(x.data_ptr()), pointer(y.data_ptr()), size(n), size(m), pointer(room.data_ptr()), stream)
            assert code == 0, code
            near(y, torch.softmax(x, 1))
            assert made.rows_cuda_status() == 0
        x, at, y = torch.randn(4, device="cuda"), torch.tensor([4], device="cuda"), torch.empty(1, device="cuda")
        assert made.pick_cuda(pointer(x.data_ptr()), pointer(at.data_ptr()), pointer(y.data_ptr()), size(4), size(1), None, stream) == 0
        torch.cuda.synchronize()
        assert made.pick_cuda_status() == 4


def until_launched(context, text, x, cache):
    """Milliseconds to compile, to be ready for a launch, and both."""
    torch.cuda.synchronize()
    start = time.perf_counter()
    module = context.compile(text, target="cuda", cache=cache)
    compiled = time.perf_counter()
    launch = module.kernel().bind(x)
    prepared = time.perf_counter()
    launch()
    torch.cuda.synchronize()
    return [1e3 * s for s in (compiled - start, prepared - compiled, prepared - start)]


def test_how_long():
    """Cold, with the compiler and the GPU's context warm; and by another context, of which the folder alone is warm."""
    x, said = torch.randn(8, 32, device="cuda"), []
    for what, text in (("map", "graph twice(x: f32[N, M]) -> (y: f32[N, M]) { y[i, j] = 2 * x[i, j] }\n"), ("softmax", SOFTMAX)):
        with tempfile.TemporaryDirectory() as folder:
            contexts = [texo.Context(cache=folder) for _ in range(4)]
            for c in contexts:
                c.compile(PICK, target="cuda", cache=False).kernel().bind(x[0], torch.zeros(1, dtype=torch.int64, device="cuda"))
            cold = min((until_launched(contexts[0], text, x, False) for _ in range(3)), key=lambda t: t[2])
            until_launched(contexts[0], text, x, True)
            disk = min((until_launched(c, text, x, True) for c in contexts[1:]), key=lambda t: t[2])
        said.append(f"{what}: compiled in {cold[0]:.1f} ms, prepared in {cold[1]:.1f}; from disk {disk[0]:.2f}, {disk[1]:.2f}")
    launch = texo.compile(SOFTMAX, target="cuda").kernel().bind(x)
    start = time.perf_counter()
    for _ in range(1000):
        launch()
    torch.cuda.synchronize()
    return "; ".join(said) + f"; {1e3 * (time.perf_counter() - start):.2f} us a launch"


failed = 0
for name, test in list(globals().items()):
    if name.startswith("test_"):
        try:
            said = test()
            print(f"ok      {name[5:]}{': ' + said if said else ''}", flush=True)
        except Exception as e:  # the next ones run all the same
            failed += 1
            print(f"FAILED  {name[5:]}: {type(e).__name__}: {e}", flush=True)
print(f"{failed} failed")
sys.exit(failed != 0)
