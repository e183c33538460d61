"""The cases of the CPU suite (case.py says what a case is). usage: cases.py [--check]

The triad is measured over as many bytes as the case touches, so a case in cache has a roof in cache;
but a row below IN_MEMORY is not held to a share of it."""
import sys

import case
from case import grid, rows

PEERS = ("torch", "compile", "numpy", "openblas", "onednn")
IN_MEMORY = 64e6  # bytes: below it a row may live in some cache
STREAM_BARS = {"roof": 0.85, "torch": 1.5, "compile": 1.0}
SGEMM_BARS = {"openblas": 1.0, "torch": 1.15}
ONE = {"kernels": 1}
SMALL = {"kernels": 1, "jit ms": 12, "warm us": 5}

CACHE, LLC, MEMORY = (256, 1024), (1024, 2048), (4096, 4096)
LARGE = (8192, 8192)
VOCABULARY = (8192, 32768)
SQUARES = [dict(M=n, N=n, K=n) for n in (512, 1024, 2048, 4096)]
HEADS = [dict(H=16, T=1024, S=1024, D=64)]

CASES = [
    *rows("stream", "cpu/triad.tex", "triad", [dict(N=2**18), dict(N=2**26)], flops="2*N",
          bars={"roof": 0.85}, data={"s": "0.5"}),
    *rows("chain", "cpu/chain.tex", "chain12", grid(CACHE, LLC, MEMORY), flops="12*N*M", bars=STREAM_BARS, limits=SMALL),
    *rows("chain", "cpu/chain.tex", "gelu_residual", grid(CACHE, LLC, MEMORY), flops="7*N*M", bars=STREAM_BARS,
          limits=SMALL),

    *rows("softmax", "cpu/softmax.tex", "softmax_rows", grid(CACHE, MEMORY, VOCABULARY), flops="4*N*M", bars=STREAM_BARS,
          limits=ONE),
    *rows("softmax", "cpu/softmax.tex", "log_softmax_rows", grid(CACHE, MEMORY, VOCABULARY), flops="4*N*M",
          bars=STREAM_BARS, limits=ONE),
    *rows("softmax", "cpu/softmax.tex", "cross_entropy_rows", grid(CACHE, MEMORY, VOCABULARY, names="TV"), flops="3*T*V",
          bars=STREAM_BARS, limits=ONE, data={"y": "below V"}),

    *rows("norm", "cpu/norm.tex", "layer_norm_residual", grid(CACHE, MEMORY, LARGE, names="ND"), flops="9*N*D",
          bars=STREAM_BARS, limits=ONE),
    *rows("norm", "cpu/norm.tex", "rms_norm_residual", grid(CACHE, MEMORY, LARGE, names="ND"), flops="5*N*D",
          bars=STREAM_BARS, limits=ONE),

    *rows("reduce", "cpu/reduce.tex", "row_sum", grid(CACHE, LARGE), flops="N*M"),
    *rows("reduce", "cpu/reduce.tex", "column_sum", grid(CACHE, LARGE), flops="N*M"),
    *rows("reduce", "cpu/reduce.tex", "full_sum", grid(CACHE, LARGE), flops="N*M"),
    *rows("reduce", "cpu/reduce.tex", "row_argmax", grid(CACHE, LARGE), flops="N*M"),
    *rows("reduce", "cpu/reduce.tex", "row_cumsum", grid(CACHE, LARGE), flops="N*M"),

    *rows("move", "cpu/move.tex", "transpose", grid((512, 512), LARGE)),
    *rows("move", "cpu/move.tex", "embedding", [dict(V=65536, D=1024, T=256), dict(V=65536, D=1024, T=16384)],
          data={"ids": "below V"}, touched={"table": "T*D"}),

    *rows("sgemm", "cpu/product.tex", "sgemm", SQUARES, flops="2*M*N*K", bars=SGEMM_BARS, threads=(1, 2)),
    *rows("sgemm", "cpu/product.tex", "sgemm_gelu", SQUARES, flops="2*M*N*K + 7*M*N", bars=SGEMM_BARS, threads=(1, 2),
          note="openblas: its product, then torch's functions in place"),
    *rows("bf16", "cpu/product.tex", "bf16_product", SQUARES, flops="2*M*N*K", bars={"torch": 1.0}),

    *rows("attention", "cpu/attention.tex", "attention_f32", HEADS, flops="4*H*T*S*D", bars={"torch": 1.2},
          limits=ONE),
    *rows("attention", "cpu/attention.tex", "attention_f32_causal", HEADS, flops="2*H*T*(T+1)*D", bars={"torch": 1.2},
          limits=ONE),
    *rows("attention", "cpu/attention.tex", "attention_bf16", HEADS, flops="4*H*T*S*D", bars={"torch": 1.2},
          limits=ONE),
    *rows("attention", "cpu/attention.tex", "attention_bf16_causal", HEADS, flops="2*H*T*(T+1)*D", bars={"torch": 1.2},
          limits=ONE),

    *rows("pairs", "cpu/pairs.tex", "rbf_vector", [dict(N=16384, M=16384, D=3)], flops="N*M*(3*D + 4)",
          bars={"compile": 3.0}, data={"x": "unit", "z": "unit", "gamma": "2.0"}, told=("D",)),
    *rows("pairs", "cpu/pairs.tex", "lj_forces", [dict(N=8192, C=3)], flops="N*N*23", bars={"compile": 3.0},
          data={"x": "lattice"}, told=("C",)),
]


def held_to(c):
    """The bars that count for this size."""
    return {k: v for k, v in c.bars.items() if k != "roof" or c.bytes() >= IN_MEMORY}


if __name__ == "__main__":
    sys.exit(case.main(sys.argv, CASES, "cpu", PEERS))
