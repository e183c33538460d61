"""Cases that must be reported as failures, one a kind of difference."""
import numpy as np
from compare_numpy import Case

x = np.arange(1, 9, dtype=np.float32)
i = np.arange(8, dtype=np.int64)


def axpy(change):
    def reference(a, x, y):
        z = a * x.astype(np.float64) + y
        return {"z": change(z)}
    return reference


def nan_at_3(z):
    z[3] = np.nan
    return z


CASES = [
    Case("programs/axpy.tex", "axpy", {"a": 2, "x": x, "y": x}, axpy(lambda z: z * (1 + 1e-5)), {"z": "f32"}, name="value"),
    Case("programs/axpy.tex", "axpy", {"a": 2, "x": x, "y": x}, axpy(lambda z: z[:-1]), {"z": "f32"}, name="shape"),
    Case("programs/axpy.tex", "axpy", {"a": 2, "x": x, "y": x}, axpy(nan_at_3), {"z": "f32"}, name="nan"),
    Case("programs/axpy.tex", "axpy", {"a": 2, "x": x, "y": x[:-1]}, axpy(lambda z: z), {"z": "f32"}, name="exit code"),
]
