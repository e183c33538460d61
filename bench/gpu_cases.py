"""The cases of the GPU suite (case.py says what a case is). usage: gpu_cases.py [--check]

The roof is a kernel of the suite's own that only streams, with the case's mix of reading and writing
and with as many bytes. No row fits into a cache: sets of inputs rotate."""
import sys

import case
from case import grid, rows

PEERS = ("eager", "compile", "autotune", "triton", "jax")
ONE = {"kernels": 1}
TWO = {"kernels": 2}  # parts, and what joins them in their order; or a product, and what cuts its factors into thirds
MAP = {"roof": 0.97, "compile": 1.0}       # element-wise
ROWS = {"roof": 0.92, "compile": 1.3}      # along rows: softmax, norms, cross-entropy
SHORT_ROWS = {"roof": 0.85, "compile": 1.0}
PRODUCT = {"eager": 0.85}                  # of torch's library; the geometric mean is meant to be 0.98
COLUMNS = {"roof": 0.92, "compile": 1.0}
BEST = dict.fromkeys(PEERS, 1.5)           # of all peers

GRAM = dict(N=8192, M=8192, D=128)
ADAM = dict(N0=4096 * 4096, N1=4096 * 4096, N2=4096 * 4096, N3=4096 * 4096, N4=4096 * 11008, N5=4096 * 11008,
            N6=11008 * 4096, N7=4096)


def norm_shapes():
    """2^26 elements in rows of 1K to 64K."""
    return [dict(N=2**26 // d, D=d) for d in (1024, 4096, 8192, 16384, 65536)]


def mnk(*shapes):
    return [dict(zip("MNK", s)) for s in shapes]


def bmnk(*shapes):
    return [dict(zip("BMNK", s)) for s in shapes]


def squares(*sizes):
    return mnk(*((n, n, n) for n in sizes))


def images(*shapes):
    """Batches of 64 square images: pixels along a side, channels before and after."""
    return [dict(N=64, H=side, W=side, C=c, O=o) for side, c, o in shapes]


def projections(tokens):
    """Linear layers of language models with 8 and 70 billion parameters."""
    small = [(6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336)]
    large = [(10240, 8192), (8192, 8192), (28672, 8192), (8192, 28672)]
    return mnk(*((tokens, *s) for s in (small if tokens < 1024 else small + large)))


def heads(b, h, s, d, **more):
    return [dict(B=b, H=h, S=s, D=d, **more)]


def scores(columns, lengths, tokens=16384):
    """Heads of so many columns that make 2048 together, in sequences that make so many tokens together."""
    return [dict(B=tokens // s, H=2048 // columns, S=s, D=columns) for s in lengths]


def by_row(shapes):
    """Rows with the bars of their length: below 2K columns a row is too short for the higher ones."""
    for dims in shapes:
        yield dims, SHORT_ROWS if list(dims.values())[1] < 2048 else ROWS


ATTENTION = "4*B*H*S*S*D"

CASES = [
    *rows("stream", "gpu/stream.tex", "add_f32", [dict(N=2**28)], flops="N", bars=MAP, limits=ONE),
    *rows("stream", "gpu/stream.tex", "add_f64", [dict(N=2**28)], flops="N", bars=MAP, limits=ONE),
    *rows("stream", "gpu/stream.tex", "gelu_residual", grid((16384, 4096)), flops="7*N*M", bars=MAP, limits=ONE),
    *rows("stream", "gpu/stream.tex", "swiglu", grid((16384, 11008)), flops="4*N*M", bars=MAP, limits=ONE),
    *rows("stream", "gpu/stream.tex", "dropout_residual", grid((16384, 4096)), flops="3*N*M",
          bars={"roof": 0.9, "compile": 1.2}, limits=ONE, data={"p": "0.1", "seed": "42"},
          note="each contender draws its own random numbers"),
    *rows("stream", "gpu/stream.tex", "chain12", grid((16384, 4096)), flops="12*N*M", bars=MAP, limits=ONE),

    *rows("transpose", "gpu/transpose.tex", "transpose", grid((16384, 16384)), bars={"roof": 0.92, "compile": 1.0},
          limits=ONE),
    *rows("transpose", "gpu/transpose.tex", "transpose_add", grid((16384, 16384)), flops="N*M",
          bars={"roof": 0.92, "compile": 1.0}, limits=ONE),

    *rows("reduce", "gpu/reduce.tex", "row_sum", grid((16384, 8192)), flops="N*M", bars={"roof": 0.96, "compile": 1.0},
          limits=ONE),
    *rows("reduce", "gpu/reduce.tex", "column_sum", grid((16384, 8192)), flops="N*M", bars=COLUMNS, limits=TWO),
    *rows("reduce", "gpu/reduce.tex", "full_sum", [dict(N=2**28)], flops="N", bars={"roof": 0.96, "compile": 1.0},
          limits=TWO, data={"x": "unit"}),
    *rows("reduce", "gpu/reduce.tex", "row_argmax", grid((16384, 8192)), flops="N*M", bars=ROWS, limits=ONE),
    *rows("reduce", "gpu/reduce.tex", "row_cumsum", grid((16384, 8192)), flops="N*M", bars={"roof": 0.95, "compile": 1.0},
          limits=ONE),
    *rows("reduce", "gpu/reduce.tex", "row_cumsum_bf16", grid((16384, 8192)), flops="N*M",
          bars={"roof": 0.95, "compile": 1.0}, limits=ONE),
    *rows("reduce", "gpu/reduce.tex", "full_cumsum", [dict(N=2**28)], flops="N", bars={"roof": 0.95, "eager": 1.0},
          limits=ONE, data={"x": "unit"}),
    *rows("recurrence", "gpu/recurrence.tex", "row_recurrence", grid((16384, 8192)), flops="2*N*M",
          bars={"roof": 0.85, "triton": 1.0}, limits=ONE, data={"a": "unit"}),
    *(r for dims in grid((4096, 32768), (8192, 4096))
      for r in rows("recurrence", "gpu/recurrence.tex", "column_recurrence", [dims], flops="2*N*M",
                    bars={"roof": 0.85, "triton": 1.0}, limits=ONE, data={"a": "unit"})),
    *rows("recurrence", "gpu/recurrence.tex", "full_recurrence", [dict(N=2**26)], flops="2*N",
          bars={"roof": 0.85, "triton": 1.0}, limits=ONE, data={"a": "unit"}),

    *(r for dims, bars in by_row(grid((16384, 1024), (16384, 4096), (4096, 32768), (1024, 131072)))
      for r in rows("softmax", "gpu/softmax.tex", "softmax_rows", [dims], flops="4*N*M", bars=bars, limits=ONE)),
    *rows("softmax", "gpu/softmax.tex", "softmax_columns", grid((4096, 16384)), flops="4*N*M", bars=COLUMNS, limits=ONE),
    *rows("softmax", "gpu/softmax.tex", "cross_entropy_rows", grid((8192, 128256), names="TV"), flops="3*T*V", bars=ROWS,
          limits=ONE, data={"y": "below V"}),

    *(r for dims, bars in by_row(norm_shapes())
      for r in rows("norm", "gpu/norm.tex", "layer_norm_residual", [dims], flops="9*N*D", bars=bars, limits=ONE)),
    *(r for dims, bars in by_row(norm_shapes())
      for r in rows("norm", "gpu/norm.tex", "rms_norm_residual", [dims], flops="5*N*D", bars=bars, limits=ONE)),
    *rows("norm", "gpu/norm.tex", "layer_norm_backward", grid((16384, 4096), names="ND"), flops="14*N*D",
          bars={"roof": 0.85, "compile": 1.0}, limits=TWO, data={"rs": "unit"}),

    *rows("quantise", "gpu/quantise.tex", "quantise_rows", grid((16384, 8192), names="MK"), flops="3*M*K", bars=ROWS,
          limits=ONE),
    *rows("adam", "gpu/adam.tex", "adam8", [ADAM], flops="12*(" + "+".join(ADAM) + ")", bars={"roof": 0.95, "compile": 1.0},
          limits=ONE, size="8 tensors", data={**{f"v{k}": "unit" for k in range(8)}, "lr": "1e-3", "t": "3"}),

    *rows("index", "gpu/index.tex", "embedding", [dict(V=128256, D=4096, T=16384)], bars={"roof": 0.9, "compile": 1.0},
          limits=ONE, data={"ids": "below V"}, touched={"table": "T*D"}),
    *rows("index", "gpu/index.tex", "embedding_bag", [dict(V=2**20, D=128, T=16384, L=64)], flops="T*L*D",
          bars={"roof": 0.9, "compile": 1.0}, limits=ONE, data={"ids": "below V"}, touched={"table": "T*L*D"}),
    *rows("index", "gpu/index.tex", "index_add", [dict(V=128256, D=4096, T=16384)], flops="T*D",
          bars={"roof": 0.85, "compile": 1.0}, limits=ONE, data={"ids": "below V"}, touched={"g": "T*D"}),
    *rows("index", "gpu/index.tex", "index_add_bf16", [dict(V=128256, D=4096, T=16384)], flops="T*D",
          bars={"roof": 0.7, "compile": 2.0}, limits=ONE, data={"ids": "below V"}, touched={"g": "T*D"}),
    *rows("index", "gpu/index.tex", "csr_matmul", [dict(R=131073, E=2**21, N=131072, D=128)], flops="2*E*D",
          bars={"eager": 1.0}, limits=ONE, data={"row": "offsets E", "col": "below N"}),

    # bare products of bf16: 60 shapes
    *(r for n, bar in ((256, 0.85), (512, 0.85), (768, 0.85), (1024, 0.85), (1536, 0.85), (2048, 0.85), (3072, 0.85),
                       (4096, 0.99), (6144, 0.85), (8192, 1.02))
      for r in rows("product", "gpu/product.tex", "product", squares(n), flops="2*M*N*K", bars={"eager": bar}, limits=ONE)),
    *rows("product", "gpu/product.tex", "product", mnk((8192, 28672, 8192)), flops="2*M*N*K", bars={"eager": 1.0}, limits=ONE),
    *rows("product", "gpu/product.tex", "product_nt", squares(1024, 2048, 4096, 6144), flops="2*M*N*K", bars=PRODUCT, limits=ONE),
    *rows("product", "gpu/product.tex", "product_tn", squares(1024, 2048, 4096, 8192), flops="2*M*N*K", bars=PRODUCT, limits=ONE),
    *rows("product", "gpu/product.tex", "product_tt", squares(2048, 4096), flops="2*M*N*K", bars=PRODUCT, limits=ONE),
    *(r for tokens in (512, 2048, 8192)
      for r in rows("product", "gpu/product.tex", "product_nt", projections(tokens)[:8 if tokens == 2048 else 6],
                    flops="2*M*N*K", bars=PRODUCT, limits=ONE)),
    *rows("product", "gpu/product.tex", "product_nt", mnk((2048, 128256, 4096)), flops="2*M*N*K", bars=PRODUCT, limits=ONE),
    *rows("product", "gpu/product.tex", "product",
          mnk((1000, 1000, 1000), (1023, 1025, 1027), (3000, 5000, 2056), (1000, 1544, 328), (4095, 4097, 4096),
              (777, 3333, 4111), (2050, 2050, 2050), (5000, 5000, 5000)), flops="2*M*N*K", bars=PRODUCT, limits=ONE),
    *rows("product", "gpu/product.tex", "product",
          mnk((1024, 1024, 16384), (512, 512, 65536), (256, 4096, 8192), (4096, 256, 8192), (16384, 128, 4096)),
          flops="2*M*N*K", bars=PRODUCT, limits=ONE),
    *(r for graph in ("product", "product_nt")
      for r in rows("decode", "gpu/product.tex", graph,
                    mnk((1, 8192, 8192), (16, 8192, 8192), (16, 28672, 8192), (16, 8192, 28672), (32, 8192, 8192), (64, 8192, 8192)),
                    flops="2*M*N*K", bars={"eager": 1.0}, limits=ONE)),
    *(r for graph in ("weights_i8", "weights_i4")
      for r in rows("decode", "gpu/product.tex", graph, mnk((16, 8192, 8192), (16, 28672, 8192), (64, 8192, 8192)), flops="2*M*N*K",
                    bars=dict.fromkeys(PEERS, 1.0) | {"roof": 0.88}, limits=ONE)),
    *rows("product", "gpu/product.tex", "batch",
          bmnk((64, 1024, 128, 1024), (32, 512, 512, 512), (128, 256, 256, 256), (8, 4096, 1024, 1024)),
          flops="2*B*M*N*K", bars=PRODUCT, limits=ONE),
    *rows("product", "gpu/product.tex", "batch_nt", bmnk((64, 1024, 1024, 128), (16, 2048, 2048, 64)), flops="2*B*M*N*K",
          bars=PRODUCT, limits=ONE),

    *rows("around", "gpu/product.tex", "product_f32", squares(512, 1024, 2048, 4096, 8192), flops="2*M*N*K", bars={"eager": 0.9},
          limits=ONE),
    *rows("around", "gpu/product.tex", "product_gelu", mnk((8192, 16384, 4096), (4096, 4096, 4096)), flops="2*M*N*K",
          bars={"compile": 1.05}, limits=ONE),
    *rows("around", "gpu/product.tex", "gated", mnk((8192, 14336, 4096)), flops="4*M*N*K", bars={"compile": 1.02}, limits=ONE),
    *rows("around", "gpu/product.tex", "norm_product", mnk((8192, 8192, 8192)), flops="2*M*N*K", bars={"compile": 1.02}),

    # of the geometric mean of the plain ones
    *rows("convolution", "gpu/convolution.tex", "conv3x3", images((56, 64, 64), (14, 256, 256), (7, 512, 512)),
          flops="2*9*N*H*W*C*O", bars={"eager": 1.0}, limits=ONE),
    *rows("convolution", "gpu/convolution.tex", "conv1x1", images((56, 64, 256)), flops="2*N*H*W*C*O", bars={"eager": 1.0},
          limits=ONE),
    *rows("convolution", "gpu/convolution.tex", "conv7x7s2", [dict(N=64, P=112, Q=112, C=3, O=64)],
          flops="2*49*N*P*Q*C*O", bars={"eager": 1.0}, limits=ONE),
    *rows("convolution", "gpu/convolution.tex", "conv3x3_bn_relu", images((56, 64, 64), (14, 256, 256)),
          flops="2*9*N*H*W*C*O", bars={"compile": 1.1}, limits=ONE),

    *(r for columns, lengths, bar in ((128, (1024, 2048, 4096, 8192, 16384), 1.03), (64, (1024, 4096, 16384), 1.1),
                                      (256, (1024, 4096, 16384), 0.95))
      for r in rows("attention", "gpu/attention.tex", "attention", scores(columns, lengths), flops=ATTENTION,
                    bars={"eager": bar}, limits=ONE)),
    *(r for columns, lengths, bar in ((128, (1024, 2048), 0.95), (128, (4096, 8192, 16384), 1.0), (64, (1024, 4096, 16384), 1.05))
      for r in rows("attention", "gpu_streams/attention.tex", "attention_causal", scores(columns, lengths), flops=ATTENTION + "//2",
                    bars={"eager": bar}, limits=ONE)),
    *rows("attention", "gpu_streams/attention.tex", "attention_grouped", heads(4, 32, 4096, 128, G=8), flops=ATTENTION,
          bars={"eager": 1.03}, limits=ONE, multiples={"H": "G"}),
    *rows("attention", "gpu_streams/attention.tex", "attention_window", heads(1, 16, 16384, 128), flops="4*B*H*S*D*1024",
          bars={"eager": 0.95}, limits=ONE, data={"W": "1024"}, note="eager is Flash, as cuDNN's window is not offered"),
    *rows("attention", "gpu_streams/attention.tex", "attention_document", heads(1, 16, 16384, 128), flops=ATTENTION + "//16",
          bars={"compile": 1.3}, limits=ONE, data={"doc": "starts of 2048"}),
    *(r for graph in ("attention_softcap", "attention_alibi", "attention_bias")
      for r in rows("attention", "gpu_streams/attention.tex", graph, heads(4, 16, 4096, 128), flops=ATTENTION, bars={"compile": 1.3},
                    limits=ONE, data={"slope": "unit"} if "alibi" in graph else {})),
    *rows("attention", "gpu_streams/attention.tex", "attention_decode", heads(64, 32, 8192, 128, G=8), flops="4*B*H*S*D",
          bars={"roof": 0.85, "eager": 1.0}, limits=ONE, multiples={"H": "G"}),
    *rows("attention", "gpu_streams/attention.tex", "attention_decode",
          heads(1, 32, 8192, 128, G=8) + heads(1, 32, 131072, 128, G=8) + heads(8, 32, 8192, 128, G=8), flops="4*B*H*S*D",
          bars={"eager": 1.0}, multiples={"H": "G"}),
    *rows("attention", "gpu/attention.tex", "linear_attention", heads(4, 32, 4096, 64), flops="4*B*H*S*D*D",
          bars={"compile": 2.0}),
    *rows("stream", "gpu/attention.tex", "projected_cross_entropy", [dict(T=8192, V=128256, D=4096)], flops="2*T*V*D",
          bars={"compile": 1.0}, data={"y": "below V"}),
    # the peers approximate quotients and powers of e, as texo does in fast mode alone
    *(r for fp in ("", "fast")
      for r in rows("pairs", "cpu/pairs.tex", "rbf_vector", [dict(N=65536, M=65536, D=3)], flops="10*N*M",
                    bars={"compile": 1.3, "triton": 1.3}, limits=TWO, data={"gamma": "0.5"}, fp=fp)),
    *(r for fp in ("", "fast")
      for r in rows("pairs", "cpu/pairs.tex", "lj_forces", [dict(N=32768, C=3)], flops="25*N*N", bars={"compile": 1.3, "triton": 1.3},
                    limits=TWO, fp=fp)),
    *rows("pairs", "gpu/gram.tex", "rbf_gram", [GRAM], flops="3*N*M*D", bars=BEST, data={"gamma": "0.0078125"}),
    *rows("pairs", "gpu/gram.tex", "polynomial_gram", [GRAM], flops="2*N*M*D", bars=BEST, limits=TWO, data={"c": "1"}),
]


if __name__ == "__main__":
    sys.exit(case.main(sys.argv, CASES, "gpu", PEERS))
