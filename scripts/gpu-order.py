#!/usr/bin/env python3
"""Kernels of texo and of torch on one stream, each of which reads what the one before it wrote, launched one after another: a
kernel begins where the one before it ends (programmatic dependent launch), and must not read earlier. Chains of many launches
of new data, in CUDA graphs and without, against the same launches with a wait behind each: equal to the bit.

    gpu-order.py [TEXO] [--rounds=N]

TEXO is where the library lies beside, as for gpu-library.py. Exit 1 when a chain's results differ, 77 without torch or a GPU."""
import sys

import gpu_torch

ARGS = gpu_torch.options(__doc__, rounds=200)
import texo  # noqa: E402
import torch  # noqa: E402

# each from bf16 [N, N] to bf16 [N, N]: a kernel that is as long as the one before it would read what is not there yet
PROGRAM = """use "std"
graph points(x: bf16[N, M]) -> (y: bf16[N, M]) { y[i, j] = bf16(x[i, j] * 0.5 + 0.25) }
graph rows(x: bf16[N, M]) -> (y: bf16[N, M]) { y[i, j] = bf16(softmax[j](3 * x[i, j]) * 40) }
graph columns(x: bf16[N, M]) -> (y: bf16[N, M]) { s[j] = sum[i](f32(x[i, j])); y[i, j] = bf16(x[i, j] - s[j] / N) }
graph turned(x: bf16[N, N]) -> (y: bf16[N, N]) { y[i, j] = x[j, i] }
graph sums(x: bf16[N, M]) -> (y: bf16[N, M]) { y[i, j] = bf16(sum[k in 0..j + 1](f32(x[i, k])) * 0.01) }
graph product(x: bf16[N, N]) -> (y: bf16[N, N]) { y[i, j] = bf16(sum[k](x[i, k] * x[k, j]) * 0.05) }
"""
ORDERS = (("points", "rows", "columns", "turned"), ("product", "points", "product", "columns"), ("sums", "rows", "turned", "product"),
          ("columns", "columns", "rows", "rows"), ("points",) * 4, ("product",) * 4)


def chain(kernels, names, x, buffers, waits):
    """What is left of x behind these, each into a buffer of its own that it has in every round."""
    for kernel, to in zip((kernels[n] for n in names), buffers):
        kernel(x, out=to)
        if waits:
            torch.cuda.synchronize()
        x = to
    return x


def main():
    module = texo.compile(PROGRAM, target="cuda")
    kernels = {n: module.kernel(n) for order in ORDERS for n in order}
    wrong = launches = 0
    for n in (96, 512, 1536):
        for order in ORDERS:
            buffers = [torch.empty(n, n, dtype=torch.bfloat16, device="cuda") for _ in order]
            data = torch.randn(8, n, n, device="cuda").to(torch.bfloat16)
            wanted = [chain(kernels, order, x, buffers, True).clone() for x in data]
            got, start = [torch.empty_like(data[0]) for _ in data], torch.empty_like(data[0])
            graph = torch.cuda.CUDAGraph()
            torch.cuda.synchronize()
            with torch.cuda.graph(graph):
                for x, to in zip(data, got):
                    start.copy_(x)  # a kernel of torch's between ours
                    to.copy_(chain(kernels, order, start, buffers, False))
            for round in range(ARGS.rounds // 8):
                for b in buffers:
                    b.fill_(float("nan"))
                if round % 2:
                    graph.replay()
                else:
                    for x, to in zip(data, got):
                        to.copy_(chain(kernels, order, x, buffers, False))
                launches += 8 * len(order)
                torch.cuda.synchronize()
                differ = sum(not torch.equal(a, b) for a, b in zip(got, wanted))
                if differ:
                    wrong += differ
                    print(f"{' '.join(order)} of {n}: {differ} of {len(data)} differ in round {round}")
    print(f"{launches} launches behind each other, {wrong} chains wrong")
    return 1 if wrong else 0


sys.exit(main())
