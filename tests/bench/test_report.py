"""The suite's arithmetic: floors, ratios, verdicts, compulsory bytes, and turns on a clock of our own."""
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
import cases  # noqa: E402
import gpu_cases  # noqa: E402
import interleave  # noqa: E402
import report  # noqa: E402
import signature  # noqa: E402


def row(**more):
    base = {"case": "c", "threads": 2, "bytes": 10**6, "flops": 10**6, "roof_gbps": 10.0, "peak_gflops": 100.0,
            "bars": {"torch": 1.5, "compile": 1.0, "roof": 0.85}, "limits": {"kernels": 1}, "kernels": 2,
            "us": {"texo": {"median": 125.0, "n": 20, "rounds": 20}, "torch": {"median": 250.0, "n": 20, "rounds": 20}},
            "compile_ms": {}, "absent": {}, "wrong": {}}
    return report.finish({**base, **more})


class Report(unittest.TestCase):
    def test_memory_bound(self):
        r = row()
        self.assertAlmostEqual(r["floor_us"], 100.0)
        self.assertAlmostEqual(r["of_floor"], 0.8)
        self.assertAlmostEqual(r["of_roof"], 0.8)
        self.assertAlmostEqual(r["gbps"], 8.0)
        self.assertAlmostEqual(r["ratio"]["torch"], 2.0)

    def test_bound_by_arithmetic(self):
        self.assertAlmostEqual(row(flops=2 * 10**7)["floor_us"], 200.0)

    def test_verdicts(self):
        met = {v["what"]: v["met"] for v in row()["verdicts"]}
        self.assertEqual(met, {"torch": True, "compile": None, "roof": False, "kernels": False})
        self.assertEqual(report.summary([row()]), "1 bars met, 2 missed, 1 not measured, 1 rows")

    def test_outcome(self):
        self.assertEqual(report.outcome(row()), (
            "c, 2 threads", "MISSED", "125.0 us, torch 2.00, compile -, roof 0.80, kernels 2.00",
            "torch >= 1.5, compile >= 1, roof >= 0.85, kernels <= 1"))
        fair = {"bars": {"torch": 1.5}, "limits": {}, "threads": 0}
        self.assertEqual(report.outcome(row(**fair)), ("c", "ok", "125.0 us, torch 2.00", "torch >= 1.5"))
        self.assertEqual(report.outcome(row(**fair, us={}))[1:3], ("absent", "torch -"))
        self.assertEqual(report.outcome(row(**{**fair, "bars": {"compile": 1.0}}))[1], "absent")
        self.assertEqual(report.outcome(row(**fair, wrong={"texo": 0.5}))[1], "FAILED")

    def test_without_texo(self):
        r = row(us={"torch": {"median": 250.0, "n": 1, "rounds": 0}})
        self.assertEqual({v["what"] for v in r["verdicts"] if v["met"] is not None}, {"kernels"})
        self.assertIn("250.0u", report.line(report.CPU_COLUMNS, r))
        self.assertEqual(len(list(report.notes(r, 20))), 1)


class Bytes(unittest.TestCase):
    def test_from_the_header(self):
        c = next(c for c in cases.CASES if c.graph == "layer_norm_residual")
        n, d = c.dims["N"], c.dims["D"]
        self.assertEqual(c.bytes(), 4 * (4 * n * d + 2 * d))

    def test_gathered_elements_as_asked_for(self):
        c = next(c for c in cases.CASES if c.graph == "embedding")
        t, d = c.dims["T"], c.dims["D"]
        self.assertEqual(c.bytes(), 4 * t * d * 2 + 8 * t)
        self.assertLess(c.bytes(), 4 * c.dims["V"] * d)

    def test_an_inout_is_read_and_written(self):
        c = next(c for c in gpu_cases.CASES if c.graph == "index_add")
        t, d = c.dims["T"], c.dims["D"]
        self.assertEqual((c.read(), c.written()), (4 * 2 * t * d + 8 * t, 4 * t * d))

    def test_an_extent_may_be_computed(self):
        c = next(c for c in gpu_cases.CASES if c.graph == "csr_matmul")
        y, = c.signature.results
        self.assertEqual(y.shape(c.dims), (c.dims["R"] - 1, c.dims["D"]))

    def test_source_of_one_graph(self):
        c = next(c for c in cases.CASES if c.graph == "rms_norm_residual")
        text = signature.source(c.path, c.graph)
        self.assertEqual(text.count("graph "), 1)
        self.assertTrue(text.startswith('use "std"\n') and text.endswith("}\n"), text)


class Turns(unittest.TestCase):
    class Counted:
        def __init__(self, log, name):
            self.log, self.name = log, name

        def call(self):
            self.log.append(self.name)

        def rest(self):
            pass

    class Roof:
        STORES, bytes = (0, 1), 10**6

        def seconds(self, store, repeats):
            return [1e-3 if store else 2e-3] * repeats

    def test_in_turns(self):
        log = []
        made = {n: self.Counted(log, n) for n in "ab"}
        timed, gbps = interleave.run(made, {"a": 1e-5, "b": 1e-5}, self.Roof(), 3, 1.0)
        turns = [n for k, n in enumerate(log) if k == 0 or log[k - 1] != n]
        self.assertEqual("".join(turns)[-6:], "ababab")
        self.assertAlmostEqual(gbps, 1.0)
        self.assertEqual([timed[n]["rounds"] for n in "ab"], [3, 3])
        self.assertTrue(all(t["min"] <= t["median"] <= t["max"] for t in timed.values()))

    def test_too_slow_to_call_again(self):
        log = []
        timed, _ = interleave.run({"a": self.Counted(log, "a")}, {"a": 99.0}, self.Roof(), 3, 1.0)
        self.assertEqual((log, timed["a"]["median"], timed["a"]["rounds"]), ([], 99.0, 0))


if __name__ == "__main__":
    unittest.main()
