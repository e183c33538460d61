"""How many kernels the rows of the GPU suite become, at their sizes, on a machine without a GPU: of streams, transposes,
reductions, softmax, norms, quantisation, Adam's step, gathers and pairs no more than the table's limit. usage: kernels_of_rows.py TEXO"""
import json
import subprocess
import sys
from pathlib import Path

BENCH = Path(__file__).resolve().parents[2] / "bench"
sys.path.insert(0, str(BENCH))
import gpu_cases  # noqa: E402

GROUPS = {"stream", "transpose", "reduce", "recurrence", "softmax", "norm", "quantise", "adam", "index", "pairs"}


def kernels(texo, case):
    dims = [f"{name}={n}" for name, n in case.dims.items()]
    mode = [f"--fp={case.fp}"] if case.fp else []
    done = subprocess.run([texo, "explain", BENCH / case.file, f"--graph={case.graph}", "--target=cuda:sm_90a", "--json", *mode, *dims],
                          capture_output=True, text=True, timeout=120, check=True)
    return len(json.loads(done.stdout)["kernels"])


def main():
    cases = [c for c in gpu_cases.CASES if c.group in GROUPS and "kernels" in c.limits]
    more = [(c.name, kernels(sys.argv[1], c), c.limits["kernels"]) for c in cases]
    assert {c.group for c in cases} == GROUPS and all(limit in (1, 2) for _, _, limit in more)
    more = [row for row in more if not 1 <= row[1] <= row[2]]
    for name, n, limit in more:
        print(f"{name}: {n} kernels, at most {limit} are meant")
    return len(more) > 0


sys.exit(main())
