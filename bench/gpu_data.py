"""Random inputs of a case as torch tensors, in as many sets as it takes that a round of calls touches
ROUND bytes: far more than any cache of a GPU."""
import dataclasses
import math

import torch

DTYPES = {"f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16,
          "f8e4m3": torch.float8_e4m3fn, "i64": torch.int64, "i32": torch.int32, "i8": torch.int8,
          "i4": torch.uint8}  # two in each, the first one low
ROUND, ROOM, MOST_SETS = 1e9, 6e9, 64


def sets(case):
    """How many: less where tensors are large of which a call touches little."""
    held = sum(p.bytes(case.dims) for p in case.signature.inputs + case.signature.results)
    return max(1, min(MOST_SETS, math.ceil(ROUND / case.bytes()), int(ROOM / held)))


def offsets(n, total, device, generator):
    """n cuts of 0..total, the first 0 and the last total."""
    cuts = torch.randint(0, total + 1, (n,), device=device, generator=generator).sort().values
    cuts[0], cuts[-1] = 0, total
    return cuts


def starts(n, every, device):
    """For each of n places, where the run that it is in begins: runs are as long as `every` on the mean, each another length."""
    run, at = torch.zeros(n, dtype=torch.int64, device=device), 0
    for k in range(n):
        length = every // 2 + (k * 7919) % (every + 1)
        run[at:at + length] = at
        at += length
        if at >= n:
            return run
    return run


def fill(param, kind, dims, device, generator):
    if param.dims is None:
        return float(kind) if param.dtype[0] in "fb" else int(kind)
    shape, dtype = param.shape(dims), DTYPES[param.dtype]
    if param.dtype == "i4":
        shape = *shape[:-1], shape[-1] // 2
    if kind.startswith("below "):
        return torch.randint(0, dims[kind.split()[1]], shape, dtype=dtype, device=device, generator=generator)
    if kind.startswith("offsets "):
        return offsets(shape[0], dims[kind.split()[1]], device, generator)
    if kind.startswith("starts of "):
        return starts(shape[0], int(kind.split()[2]), device)
    if not dtype.is_floating_point:
        limits = torch.iinfo(dtype)
        return torch.randint(limits.min, limits.max + 1, shape, dtype=dtype, device=device, generator=generator)
    out = torch.empty(shape, dtype=dtype, device=device)
    return out.uniform_(generator=generator) if kind == "unit" else out.normal_(generator=generator)


def inputs(case, device, many=1, seed=1):
    """A list of {name: tensor, or number}, in the order of the signature."""
    generator = torch.Generator(device).manual_seed(seed)
    return [{p.name: fill(p, case.data.get(p.name, "normal"), case.dims, device, generator)
             for p in case.signature.inputs} for _ in range(many)]


def own(case, one):
    """A set for one contender: what is written in place is a copy."""
    return {p.name: one[p.name].clone() if p.inout else one[p.name] for p in case.signature.inputs}


def inouts(case, one):
    return tuple(one[p.name] for p in case.signature.inouts)


def results(case, one):
    """Uninitialised, beside the inputs of a set."""
    device = next(x.device for x in one.values() if torch.is_tensor(x))
    return [torch.empty(p.shape(case.dims), dtype=DTYPES[p.dtype], device=device) for p in case.signature.results]


def shrunk(case, by=64):
    """The same case with every extent divided."""
    return dataclasses.replace(case, dims={k: max(2, n // by) for k, n in case.dims.items()})
