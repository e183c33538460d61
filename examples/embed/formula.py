"""formula.py: formula.c's program in Python. Compiles a formula that the user types, while the program
runs, and applies it to a NumPy array, or, where torch is installed, to a tensor with --torch.

  formula.py [--torch] 'y[i] = exp(x[i]) / sum[k](exp(x[k]))' 1 2 3

texo.py must be on Python's path."""
import sys

import texo


def main():
    words = sys.argv[1:]
    wants_torch = words[:1] == ["--torch"]
    formula, *numbers = words[wants_torch:]
    if wants_torch:
        import torch
        x = torch.tensor([float(n) for n in numbers])
    else:
        import numpy
        x = numpy.array(numbers, "float32")
    try:
        program = texo.compile(f'use "std"\ngraph formula(x: f32[N]) -> (y: f32[N]) {{\n{formula}\n}}\n', "formula")
    except texo.CompileError as e:
        print(e, file=sys.stderr)
        return 1
    print(*(f"{v:g}" for v in program.kernel()(x)))
    return 0


sys.exit(main())
