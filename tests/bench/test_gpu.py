"""The GPU suite without a GPU: turns on a clock of our own, the roof's mixes, and rows that are lost with their process."""
import ast
import json
import os
import subprocess
import sys
import unittest
from pathlib import Path
from types import SimpleNamespace

BENCH = Path(__file__).resolve().parents[2] / "bench"
sys.path.insert(0, str(BENCH))
import gpu_cases  # noqa: E402
import gpu_roof  # noqa: E402
import gpu_turns  # noqa: E402
import report  # noqa: E402
import supervise  # noqa: E402


class Drifting:
    """A device whose every block is slower than the one before, by as much; a call says how long it takes."""
    captures, block = False, gpu_turns.BLOCK

    def __init__(self, drift):
        self.at, self.drift, self.order = 0, drift, ""

    def start(self, unit, units):
        took = sum(unit() for _ in range(units)) + self.drift * self.at
        self.at += 1
        self.order += unit.name
        return lambda: took

    def wait(self):
        self.order += "|"


class Call:
    def __init__(self, name, seconds):
        self.name, self.seconds = name, seconds

    def __call__(self):
        return self.seconds


def contender(name, seconds):
    return SimpleNamespace(call=Call(name, seconds), sets=1)


class Turns(unittest.TestCase):
    def runners(self, device):
        return [gpu_turns.Runner(contender(n, t), device, t) for n, t in (("a", 0.010), ("b", 0.020))]

    def test_drift_falls_on_both_alike(self):
        device = Drifting(0.001)
        a, b = self.runners(device)
        ta, tb = gpu_turns.quadruple(device, a, b, 0)
        self.assertEqual(device.order, "abba")
        self.assertAlmostEqual(tb - ta, 0.010)

    def test_ratio_is_the_peers_over_mine(self):
        device = Drifting(0)
        self.assertAlmostEqual(gpu_turns.pair(device, *self.runners(device), 3), 2.0)

    def test_cool_blocks_wait(self):
        device = Drifting(0)
        gpu_turns.pair(device, *self.runners(device), 1, idle=1e-6)
        self.assertEqual(device.order, "|a|b|b|a")

    def test_the_best_peer_is_cooled(self):
        device = Drifting(0)
        made = {"texo": contender("t", 0.010), "eager": contender("e", 0.030), "jax": contender("j", 0.020),
                "roof": contender("r", 0.005)}
        cool, gpu_turns.COOL = gpu_turns.COOL, 1e-6
        timed, hot, cooled, captured = gpu_turns.run(device, made, dict.fromkeys(made, 0.01), "texo", 1.0)
        gpu_turns.COOL = cool
        self.assertEqual({n: round(r, 6) for n, r in hot.items()}, {"eager": 3.0, "jax": 2.0, "roof": 0.5})
        self.assertEqual(list(cooled), ["jax"])
        self.assertEqual(captured, set())
        self.assertAlmostEqual(timed["texo"]["median"], 0.010)

    def test_a_short_call_fills_a_block(self):
        device = Drifting(0)
        r = gpu_turns.Runner(contender("a", gpu_turns.BLOCK / 100), device, 1e-4)
        r.fit()
        self.assertIn(r.units, (99, 100))
        self.assertAlmostEqual(r.per_call(r.block()()), gpu_turns.BLOCK / 100)


class Roof(unittest.TestCase):
    def test_mixes(self):
        for read, written, mix in ((100, 0, (1, 0)), (0, 100, (0, 1)), (5, 5, (1, 1)), (10, 5, (2, 1)), (6, 9, (2, 3)),
                                   (1000, 1, (1, 0)), (28, 24, (5, 4))):
            self.assertEqual(gpu_roof.mix(read, written), mix)

    def test_of_the_table(self):
        mixes = {c.graph: gpu_roof.mix(c.read(), c.written()) for c in gpu_cases.CASES}
        self.assertEqual(mixes["add_f32"], (2, 1))
        self.assertEqual(mixes["full_sum"], (1, 0))
        self.assertEqual(mixes["layer_norm_residual"], (1, 1))
        self.assertEqual(mixes["adam8"], (4, 3))


class Rows(unittest.TestCase):
    """Processes that give so many rows and then die."""

    def run_with(self, lives, wanted):
        class Process:
            def __init__(self, start, total):
                self.items = [{"facts": 1}, *({"row": start + k} for k in range(lives.pop(0)))]
                self.left = len(wanted) - start

            def item(self, limit):
                if self.items:
                    return self.items.pop(0)
                if self.left == 0 or not lives:
                    return "end"
                raise EOFError("the process ended with 139")

            def close(self):
                pass
        real, supervise.Process = supervise.Process, Process
        try:
            return list(supervise.rows(SimpleNamespace(total=None, row_limit=1), wanted))
        finally:
            supervise.Process = real

    def test_the_run_goes_on_behind_a_lost_row(self):
        wanted = [(c, None) for c in gpu_cases.CASES[:5]]
        got = self.run_with([2, 2], wanted)
        self.assertEqual([got[1], got[2], got[4], got[5]], [{"row": 0}, {"row": 1}, {"row": 3}, {"row": 4}])
        self.assertEqual((got[3]["case"], got[3]["absent"]), (wanted[2][0].name, {"all": "the process ended with 139"}))
        self.assertIn(wanted[2][0].name, report.line(report.GPU_COLUMNS, got[3]))


    def test_a_failure_is_told_before_the_process_ends(self):
        read, write = os.pipe()
        text = f"""
import sys
sys.path.insert(0, {str(BENCH)!r})
import supervise
def items():
    yield {{"row": 0}}
    print("not a row")
    raise ValueError("no memory")
supervise.work({write}, items())
"""
        done = subprocess.run([sys.executable, "-c", text], pass_fds=[write], capture_output=True, text=True, timeout=30)
        os.close(write)
        with os.fdopen(read) as lines:
            self.assertEqual([json.loads(x) for x in lines], [{"row": 0}, {"lost": "ValueError: no memory"}])
        self.assertIn("ValueError: no memory", done.stderr)
        self.assertEqual(done.stdout, "")


class Sources(unittest.TestCase):
    def test_every_case_has_every_peer(self):
        for peer in ("torch", "triton", "jax"):
            tree = ast.parse((BENCH / f"peers_{peer}.py").read_text(encoding="utf-8"))
            forms = next(n.value for n in tree.body if isinstance(n, ast.Assign) and n.targets[0].id == "FORMS")
            self.assertEqual({c.graph for c in gpu_cases.CASES} - {k.value for k in forms.keys}, set(), peer)

    def test_what_needs_a_gpu_is_python_all_the_same(self):
        for path in BENCH.glob("*.py"):
            compile(path.read_text(encoding="utf-8"), str(path), "exec")


if __name__ == "__main__":
    unittest.main()
