"""Random inputs of a case, and bf16, which NumPy has not: its bits in uint16."""
import numpy as np

NUMPY = {"f64": np.float64, "f32": np.float32, "bf16": np.uint16, "i64": np.int64, "i32": np.int32}


def empty(shape, dtype):
    """Uninitialised, at a 64-byte boundary."""
    t = np.dtype(NUMPY[dtype])
    n = int(np.prod(shape, dtype=np.int64)) * t.itemsize
    raw = np.empty(n + 64, np.uint8)
    skip = -raw.ctypes.data % 64
    return raw[skip:skip + n].view(t).reshape(shape)


def to_bf16(x):
    """Rounded to nearest, ties to even; x is finite."""
    bits = x.astype(np.float32).view(np.uint32)
    return ((bits + np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1))) >> np.uint32(16)).astype(np.uint16)


def to_f64(x):
    """Any tensor of a case in float64."""
    if x.dtype == np.uint16:
        return (x.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)
    return x.astype(np.float64)


def lattice(rng, shape):
    """Points on a jittered cubic lattice: no two so close that one pair outweighs all others."""
    n, dims = shape
    side = int(np.ceil(n ** (1 / dims)))
    at = np.stack(np.unravel_index(np.arange(n), (side,) * dims), axis=1)
    return 1.2 * at + 0.2 * rng.random((n, dims))


def fill(rng, param, kind, dims):
    if param.dims is None:
        return NUMPY[param.dtype](float(kind))
    out = empty(param.shape(dims), param.dtype)
    if kind.startswith("below "):
        out[...] = rng.integers(0, dims[kind.split()[1]], out.shape)
    elif kind == "unit":
        out[...] = rng.random(out.shape, np.float32)
    elif kind == "lattice":
        out[...] = lattice(rng, out.shape)
    elif param.dtype == "bf16":
        out[...] = to_bf16(rng.standard_normal(out.shape, np.float32))
    else:
        rng.standard_normal(out.shape, np.float32, out)
    return out


def inputs(case, seed=1):
    """{name: array, or NumPy scalar}, in the order of the signature."""
    rng = np.random.default_rng(seed)
    return {p.name: fill(rng, p, case.data.get(p.name, "normal"), case.dims) for p in case.signature.inputs}
