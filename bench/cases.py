"""The cases of the CPU suite: graph, shape, work, and the bars each is held to.

A row is decided before the code it times is tuned; a row that turns out unkind stays. Inputs and
results are in the graph's header and not repeated here. Needs nothing but Python, so that a test can
read it. usage: cases.py [--check]

Bars: the least ratio peer time / texo time; `roof` is the least share of the measured triad's rate,
counted on the compulsory bytes. The triad is measured over as many bytes as the case touches, so a
case in cache has a roof in cache. Limits are the most there may be of `kernels`, `jit ms` (compiling
the graph cold) and `warm us` (the same from the memory cache).
"""
import sys
from dataclasses import dataclass, field
from pathlib import Path

import signature

HERE = Path(__file__).resolve().parent
PEERS = ("torch", "compile", "numpy", "openblas", "onednn")
STREAM_BARS = {"roof": 0.85, "torch": 1.5, "compile": 1.0}
SGEMM_BARS = {"openblas": 1.0, "torch": 1.15}
ONE = {"kernels": 1}
SMALL = {"kernels": 1, "jit ms": 12, "warm us": 5}
IN_MEMORY = 64e6  # bytes: below it a row may live in some cache, and is not held to a share of the roof


@dataclass(frozen=True)
class Case:
    group: str
    file: str               # under cpu/
    graph: str
    dims: dict
    flops: str = "0"        # arithmetic, in dims; exp, division and the like count as one
    bars: dict = field(default_factory=dict)
    limits: dict = field(default_factory=dict)   # the most kernels, cold and warm compile time
    threads: tuple = (2,)
    data: dict = field(default_factory=dict)     # input: how it is filled, else `normal`
    touched: dict = field(default_factory=dict)  # input reached through data: elements asked for
    note: str = ""

    @property
    def name(self):
        return f"{self.graph} {'x'.join(str(n) for n in self.dims.values())}"

    def held_to(self):
        """The bars that count for this size."""
        return {k: v for k, v in self.bars.items() if k != "roof" or self.bytes() >= IN_MEMORY}

    @property
    def path(self):
        return HERE / "cpu" / self.file

    @property
    def signature(self):
        return signature.signatures(self.path)[self.graph]

    def flop(self):
        return eval(self.flops, {"__builtins__": {}}, dict(self.dims))

    def bytes(self):
        """Compulsory: each input read once, each result written once, gathered elements as asked for."""
        total = 0
        for p in self.signature.inputs:
            n = p.elements(self.dims)
            if p.name in self.touched:
                n = min(n, eval(self.touched[p.name], {"__builtins__": {}}, dict(self.dims)))
            total += n * signature.BYTES[p.dtype]
        return total + sum(p.bytes(self.dims) for p in self.signature.results)


def rows(group, file, graph, shapes, **more):
    return [Case(group, file, graph, dims, **more) for dims in shapes]


def grid(*pairs, names="NM"):
    return [dict(zip(names, p)) for p in pairs]


CACHE, LLC, MEMORY = (256, 1024), (1024, 2048), (4096, 4096)
LARGE = (8192, 8192)
VOCABULARY = (8192, 32768)
SQUARES = [dict(M=n, N=n, K=n) for n in (512, 1024, 2048, 4096)]
HEADS = [dict(H=16, T=1024, S=1024, D=64)]

CASES = [
    *rows("stream", "triad.tex", "triad", [dict(N=2**18), dict(N=2**26)], flops="2*N",
          bars={"roof": 0.85}, data={"s": "0.5"}),
    *rows("chain", "chain.tex", "chain12", grid(CACHE, LLC, MEMORY), flops="12*N*M", bars=STREAM_BARS, limits=SMALL),
    *rows("chain", "chain.tex", "gelu_residual", grid(CACHE, LLC, MEMORY), flops="7*N*M", bars=STREAM_BARS,
          limits=SMALL),

    *rows("softmax", "softmax.tex", "softmax_rows", grid(CACHE, MEMORY, VOCABULARY), flops="4*N*M", bars=STREAM_BARS,
          limits=ONE),
    *rows("softmax", "softmax.tex", "log_softmax_rows", grid(CACHE, MEMORY, VOCABULARY), flops="4*N*M",
          bars=STREAM_BARS, limits=ONE),
    *rows("softmax", "softmax.tex", "cross_entropy_rows", grid(CACHE, MEMORY, VOCABULARY, names="TV"), flops="3*T*V",
          bars=STREAM_BARS, limits=ONE, data={"y": "below V"}),

    *rows("norm", "norm.tex", "layer_norm_residual", grid(CACHE, MEMORY, LARGE, names="ND"), flops="9*N*D",
          bars=STREAM_BARS, limits=ONE),
    *rows("norm", "norm.tex", "rms_norm_residual", grid(CACHE, MEMORY, LARGE, names="ND"), flops="5*N*D",
          bars=STREAM_BARS, limits=ONE),

    *rows("reduce", "reduce.tex", "row_sum", grid(CACHE, LARGE), flops="N*M"),
    *rows("reduce", "reduce.tex", "column_sum", grid(CACHE, LARGE), flops="N*M"),
    *rows("reduce", "reduce.tex", "full_sum", grid(CACHE, LARGE), flops="N*M"),
    *rows("reduce", "reduce.tex", "row_argmax", grid(CACHE, LARGE), flops="N*M"),
    *rows("reduce", "reduce.tex", "row_cumsum", grid(CACHE, LARGE), flops="N*M"),

    *rows("move", "move.tex", "transpose", grid((512, 512), LARGE)),
    *rows("move", "move.tex", "embedding", [dict(V=65536, D=1024, T=256), dict(V=65536, D=1024, T=16384)],
          data={"ids": "below V"}, touched={"table": "T*D"}),

    *rows("sgemm", "product.tex", "sgemm", SQUARES, flops="2*M*N*K", bars=SGEMM_BARS, threads=(1, 2)),
    *rows("sgemm", "product.tex", "sgemm_gelu", SQUARES, flops="2*M*N*K + 7*M*N", bars=SGEMM_BARS, threads=(1, 2),
          note="openblas: its product, then torch's functions in place"),
    *rows("bf16", "product.tex", "bf16_product", SQUARES, flops="2*M*N*K", bars={"torch": 1.0}),

    *rows("attention", "attention.tex", "attention_f32", HEADS, flops="4*H*T*S*D", bars={"torch": 1.2},
          limits=ONE),
    *rows("attention", "attention.tex", "attention_f32_causal", HEADS, flops="2*H*T*(T+1)*D", bars={"torch": 1.2},
          limits=ONE),
    *rows("attention", "attention.tex", "attention_bf16", HEADS, flops="4*H*T*S*D", bars={"torch": 1.2},
          limits=ONE),
    *rows("attention", "attention.tex", "attention_bf16_causal", HEADS, flops="2*H*T*(T+1)*D", bars={"torch": 1.2},
          limits=ONE),

    *rows("pairs", "pairs.tex", "rbf_vector", [dict(N=16384, M=16384, D=3)], flops="N*M*(3*D + 4)",
          bars={"compile": 3.0}, data={"x": "unit", "z": "unit", "gamma": "2.0"}),
    *rows("pairs", "pairs.tex", "lj_forces", [dict(N=8192, C=3)], flops="N*N*23", bars={"compile": 3.0},
          data={"x": "lattice"}),
]


def faults():
    """What is wrong with the table, one line each."""
    seen, used = set(), set()
    for c in CASES:
        if c.name in seen:
            yield f"{c.name}: twice"
        seen.add(c.name)
        if not c.path.is_file() or c.graph not in signature.signatures(c.path):
            yield f"{c.name}: {c.file} has no graph of that name"
            continue
        used.add((c.file, c.graph))
        s = c.signature
        needed = {d for p in s.inputs + s.results for d in p.dims or ()}
        if needed != set(c.dims):
            yield f"{c.name}: dims {sorted(c.dims)}, the header needs {sorted(needed)}"
            continue
        inputs = {p.name for p in s.inputs}
        for name in [*c.data, *c.touched]:
            if name not in inputs:
                yield f"{c.name}: no input {name}"
        for peer in c.bars:
            if peer not in (*PEERS, "roof"):
                yield f"{c.name}: a bar against {peer}, which is no peer"
        for what in c.limits:
            if what not in ("kernels", "jit ms", "warm us"):
                yield f"{c.name}: a limit of {what}, which is not measured"
        if not s.results or c.bytes() <= 0 or c.flop() < 0 or not c.threads:
            yield f"{c.name}: no work"
    for f in sorted((HERE / "cpu").glob("*.tex")):
        for graph in signature.signatures(f):
            if (f.name, graph) not in used:
                yield f"{f.name}: graph {graph} is in no case"


def main():
    bad = list(faults())
    if "--check" not in sys.argv[1:]:
        for c in CASES:
            print(f"{c.group:10} {c.name:40} {c.bytes() / 1e6:10.2f} MB {c.flop() / 1e9:10.3f} GFLOP  {c.held_to()}")
    print("\n".join(bad))
    print(f"{len(CASES)} cases, {len(bad)} faults")
    return 1 if bad or not CASES else 0


if __name__ == "__main__":
    sys.exit(main())
