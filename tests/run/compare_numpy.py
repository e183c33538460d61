"""Runs graphs through texo on .npy inputs and compares every result with a NumPy reference.

    compare_numpy.py TEXO [--device interp,cpu] [--only SUBSTRING] [--cover FOLDER] CASES.py...

A cases file defines CASES, a list of Case(...). The reference gets the inputs as NumPy arrays (narrow
floats already decoded to float64, integers and float32 as they are) and returns a dict from result
name to array, computed in float64 where the result is a float. The tolerance is the case's, relative
to the largest reference magnitude of the result, since sums cancel; integers and bools are exact.
texo's own bounds are checked beside it: on the cpu every run also passes --compare=interp.
"""
import argparse
import dataclasses
import importlib.util
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np

# Relative tolerance by the result's dtype: a few roundings of the result, and of f32 accumulation.
DEFAULT_RTOL = {"f64": 1e-12, "f32": 2e-6, "f16": 1e-3, "bf16": 8e-3, "f8e4m3": 0.07, "f8e5m2": 0.13, "c64": 2e-6}


@dataclasses.dataclass
class Case:
    file: str                 # relative to the cases file
    graph: str
    inputs: dict              # name -> ndarray, Narrow, or a number (a scalar or dim)
    reference: object         # callable(**inputs) -> {result: ndarray}
    results: dict             # result -> dtype name
    rtol: float = None        # instead of DEFAULT_RTOL
    options: tuple = ()       # further texo options
    name: str = ""            # when a graph has several cases


@dataclasses.dataclass
class Narrow:
    """Elements of a type NumPy does not have: how they travel, and their values."""
    stored: np.ndarray
    values: np.ndarray


def bf16(values):
    """Rounds to bf16, nearest even."""
    bits = np.asarray(values, np.float32).view(np.uint32)
    stored = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return Narrow(stored, decode(stored, "bf16"))


def packed4(values, dtype):
    """i4 or u4, two to a byte along the last axis, low nibble first."""
    v = np.asarray(values, np.int64)
    nibble = (v & 15).astype(np.uint8)
    return Narrow(nibble[..., 0::2] | (nibble[..., 1::2] << 4), v.astype(np.int64))


def decode_minifloat(byte, exponent_bits, mantissa_bits, bias, has_inf):
    sign = np.where(byte >> (exponent_bits + mantissa_bits) & 1, -1.0, 1.0)
    e = (byte >> mantissa_bits) & ((1 << exponent_bits) - 1)
    m = byte & ((1 << mantissa_bits) - 1)
    scale = np.exp2(np.where(e == 0, 1, e).astype(np.float64) - bias - mantissa_bits)
    v = sign * scale * (m + np.where(e == 0, 0, 1 << mantissa_bits))
    top = (1 << exponent_bits) - 1
    if has_inf:
        return np.where(e == top, np.where(m == 0, sign * np.inf, np.nan), v)
    return np.where((e == top) & (m == (1 << mantissa_bits) - 1), np.nan, v)


def decode(stored, dtype):
    """The values of a result as texo saved it."""
    if dtype == "bf16":
        return (stored.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    if dtype == "f8e4m3":
        return decode_minifloat(stored.astype(np.int64), 4, 3, 7, False)
    if dtype == "f8e5m2":
        return decode_minifloat(stored.astype(np.int64), 5, 2, 15, True)
    if dtype in ("i4", "u4"):
        pair = np.stack([stored & 15, stored >> 4], axis=-1).astype(np.int64)
        v = pair.reshape(stored.shape[:-1] + (stored.shape[-1] * 2,))
        return np.where(v > 7, v - 16, v) if dtype == "i4" else v
    return stored


def is_exact(dtype):
    return dtype[0] in "iu" or dtype == "bool"


def difference(got, want, dtype, rtol):
    """None when they agree, else a line that says where they don't."""
    want = np.asarray(want)
    if got.shape != want.shape:
        return f"shape {got.shape}, expected {want.shape}"
    if got.size == 0:
        return None
    if is_exact(dtype):
        wrong = got != want
    else:
        finite = np.isfinite(want)
        scale = np.max(np.abs(want[finite]), initial=0)
        with np.errstate(invalid="ignore"):
            near = np.abs(got - want) <= rtol * scale
        wrong = np.where(finite, ~near, ~((got == want) | (np.isnan(got) & np.isnan(want))))
    if not wrong.any():
        return None
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    return f"{int(wrong.sum())} of {wrong.size} differ, first at {at}: got {got[at]}, expected {want[at]}"


def run_case(texo, base, case, device, folder):
    """Errors as lines of text."""
    args = [texo, "run", str(base / case.file), f"--graph={case.graph}", f"--device={device}", "-q", *case.options]
    if device != "interp":
        args.append("--compare=interp")
    for name, value in case.inputs.items():
        if isinstance(value, (int, float)):
            args.append(f"{name}={value!r}")
            continue
        np.save(folder / f"{name}.npy", value.stored if isinstance(value, Narrow) else value)
        args.append(f"{name}=@{folder / name}.npy")
    for result in case.results:
        args += ["--out", f"{result}={folder / 'out'}-{result}.npy"]
    ran = subprocess.run(args, capture_output=True, text=True, timeout=120)
    if ran.returncode != 0:
        return [f"exit {ran.returncode}\n{ran.stdout}{ran.stderr}"]
    plain = {k: v.values if isinstance(v, Narrow) else v for k, v in case.inputs.items()}
    errors = []
    for result, want in case.reference(**plain).items():
        dtype = case.results[result]
        got = decode(np.load(folder / f"out-{result}.npy"), dtype)
        bad = difference(got, want, dtype, case.rtol if case.rtol is not None else DEFAULT_RTOL.get(dtype, 0))
        if bad:
            errors.append(f"{result}: {bad}")
    return errors


def uncovered(folder, cases_files):
    """Graphs of the .tex files in a folder that no case runs."""
    covered = {(pathlib.Path(c.file).name, c.graph) for path in cases_files for c in load_cases(path)}
    return [f"{file.name}:{graph}" for file in sorted(folder.glob("*.tex"))
            for graph in re.findall(r"^graph (\w+)", file.read_text(), re.M) if (file.name, graph) not in covered]


def load_cases(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module.CASES


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("texo")
    parser.add_argument("cases", nargs="+", type=pathlib.Path)
    parser.add_argument("--device", default="interp,cpu")
    parser.add_argument("--only", default="")
    parser.add_argument("--cover", type=pathlib.Path, help="every graph of this folder's files must have a case")
    options = parser.parse_args()
    failed = ran = 0
    for graph in uncovered(options.cover, options.cases) if options.cover else []:
        failed += 1
        print(f"{graph} has no case")
    for path in options.cases:
        for case in load_cases(path):
            label = f"{case.file}:{case.graph}{' ' + case.name if case.name else ''}"
            if options.only not in label:
                continue
            for device in options.device.split(","):
                ran += 1
                with tempfile.TemporaryDirectory() as folder:
                    errors = run_case(options.texo, path.parent, case, device, pathlib.Path(folder))
                failed += bool(errors)
                for line in errors:
                    print(f"{label} on {device}: {line}")
    print(f"{ran - min(ran, failed)} passed, {failed} failed")
    return 1 if failed or not ran else 0


if __name__ == "__main__":
    sys.modules["compare_numpy"] = sys.modules["__main__"]
    sys.exit(main())
