"""texo tune: what its file says and who takes it, that it can be stopped, gone on with, and survives plans that fail. How fast
anything is, is not tested.

    tune_test.py TEXO FOLDER [NAME...]    FOLDER has the libcuda.so.1 for tests"""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

FAKE = pathlib.Path(sys.argv.pop(2))

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import each_test
from command_test import AXPY, TEXO, expect, texo, write

PRODUCT = """graph product(a: f32[M, K], b: f32[K, N]) -> (c: f32[M, N]) {
  s[i, j] = sum[k](a[i, k] * b[k, j])
  c[i, j] = max(s[i, j], 0)
}
"""
SIZES = ("M=24", "K=600", "N=40")
BUCKET = {"M": [21, 24], "K": [513, 640], "N": [33, 40]}
PLANS = 6  # of blocks; grains are for several threads


def tune(*args, code=0, words=(), out=()):
    return expect(texo("tune", *args, timeout=600), code, *words, out=out)


def entry(path):
    file = json.loads(path.read_text(encoding="utf-8"))
    assert file["texo-tune"] == 1 and len(file["entries"]) == 1, file
    return file["entries"][0]


def plans(e):
    return [t["plan"] for t in e["tried"]]


def with_choice(folder, e, plan, name="chosen.tune", **other):
    """A file like the one that chose this plan."""
    kernel = next(t["kernel"] for t in e["tried"])
    e = {**e, "choices": [{"kernel": kernel, "plan": plan}], **other}
    return write(folder, name, json.dumps({"texo-tune": 1, "entries": [e]}))


class Tuning:
    """texo tune while it runs; what it says is read line by line."""

    def __init__(self, *args):
        env = {k: v for k, v in os.environ.items() if not k.startswith("TEXO_")}
        self.run = subprocess.Popen([TEXO, "tune", *map(str, args), "-v"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
        self.said = ""

    def until(self, word):
        while word not in self.said:
            line = self.run.stderr.readline()
            assert line, f"it ended without {word!r}: {self.said}"
            self.said += line

    def trial(self):
        """The process of a plan, once there is one."""
        for _ in range(3000):
            children = pathlib.Path(f"/proc/{self.run.pid}/task/{self.run.pid}/children").read_text(encoding="ascii").split()
            if children:
                return int(children[0])
            time.sleep(0.002)
        raise AssertionError("no process")

    def end(self, code):
        out, err = self.run.communicate(timeout=300)
        assert self.run.returncode == code, (self.run.returncode, out, self.said + err)
        return out


def test_file_and_order(folder):
    file = write(folder, "p.tex", PRODUCT)
    ran = tune(file, *SIZES, "-j1", "--device=cpu", "--seed=3", out=[f"{PLANS} of {PLANS} plans tried, 0 failed; checked by the evaluator\n"])
    e = entry(folder / "p.tune")
    assert (e["graph"], e["bucket"], e["measured"]["dims"]) == ("product", BUCKET, {"M": 24, "K": 600, "N": 40}), e
    assert e["target"].startswith("cpu:") and e["machine"] and len(e["build"]) == 64 and e["measured"]["checked"] == "evaluator", e
    assert e["measured"]["default_us"] >= e["measured"]["tuned_us"] > 0 and e["measured"]["threads"] == 1, e
    assert len(set(plans(e))) == PLANS and all(t["us"] > 0 and re.fullmatch("[sc]@[0-9a-f]{16}", t["kernel"]) for t in e["tried"]), e
    assert len(e["choices"]) <= 1 and f"--tune={folder}/p.tune" in ran.out or not e["choices"], ran
    again = json.loads(tune(file, *SIZES, "-j1", "--device=cpu", "--seed=3", "--json", "-q", "-o", folder / "again.tune").out)
    assert again["tried"] == PLANS and again["file"] == f"{folder}/again.tune" and again["failed"] == 0, again
    tune(file, *SIZES, "-j1", "--device=cpu", "--seed=4", "-o", folder / "other.tune")
    assert plans(e) == plans(entry(folder / "again.tune")), "one seed, one order"
    assert plans(e) != plans(entry(folder / "other.tune")) and set(plans(e)) == set(plans(entry(folder / "other.tune")))
    # another size is another entry, and the first one stays
    tune(file, "M=3", "K=5", "N=2", "-j1", "--device=cpu", "--budget=0.001", "-o", folder / "again.tune")
    both = json.loads((folder / "again.tune").read_text(encoding="utf-8"))["entries"]
    assert [b["bucket"] for b in both] == [BUCKET, {"M": [3, 3], "K": [5, 5], "N": [2, 2]}] and not both[1]["tried"], both


def test_choices_are_taken(folder):
    file = write(folder, "p.tex", PRODUCT)
    tune(file, *SIZES, "-j2", "--device=cpu")
    e = entry(folder / "p.tune")
    assert len(plans(e)) == PLANS + 2 and {p.split()[-1] for p in plans(e) if "grain" in p} == {"grain*4", "grain/4"}, e
    want = expect(texo("run", file, *SIZES, "-q"), 0).out
    for plan in plans(e):
        chosen = with_choice(folder, e, plan)
        of = plan.split(" grain")[0]
        shown = expect(texo("run", file, f"--tune={chosen}", "--emit=plan"), 0).out
        assert re.search(rf"^k\d {re.escape(of)} nodes=.* tuned$", shown, re.M), (plan, shown)
        expect(texo("run", file, *SIZES, f"--tune={chosen}", "--compare=interp", "-j2"), 0, out=["0 of 960 elements differ"])
        assert expect(texo("run", file, *SIZES, f"--tune={chosen}", "-q"), 0).out == want
        for sizes, here in ((SIZES, ""), (("M=25", "K=600", "N=40"), ", not these sizes")):
            expect(texo("explain", file, *sizes, f"--tune={chosen}"), 0, out=[f"tuned by {chosen}:\n", f": {plan} for M in 21..24, K in 513..640, N in 33..40{here}\n"])
            expect(texo("run", file, *sizes, f"--tune={chosen}", "--compare=interp"), 0)
        told = json.loads(expect(texo("explain", file, *SIZES, f"--tune={chosen}", "--json"), 0).out)["tuned"]
        assert [(t["plan"], t["at_these_sizes"]) for t in told] == [(plan, True)], told
    for args in (["build", file, "-o", folder / "p"], ["build", file, "-o", folder / "q", "--threads=1"], ["bench", file, *SIZES, "-j1"]):
        expect(texo(*args, f"--tune={with_choice(folder, e, plans(e)[0])}"), 0)
    # it is what the cache goes by, too
    env = {"TEXO_CACHE": str(folder / "kept"), "TEXO_NO_CACHE": ""}
    first, second = (with_choice(folder, e, p, f"{k}.tune") for k, p in enumerate(plans(e)[:2]))
    for tuned, hit in ((first, False), (first, True), (second, False), (None, False), (first, True)):
        ran = expect(texo("run", file, *SIZES, "-v", *([f"--tune={tuned}"] if tuned else []), env=env), 0)
        assert ("from the cache" in ran.err) == hit, (tuned, ran)


def test_stale_and_foreign(folder):
    file = write(folder, "p.tex", PRODUCT)
    tune(file, *SIZES, "-j1", "--device=cpu")
    e = entry(folder / "p.tune")
    plan = plans(e)[0]
    cases = [(dict(build="0" * 64), "tuned with another build of texo; it is used all the same"),
             (dict(choices=[{"kernel": "c@0123456789abcdef", "plan": plan}]), "kernel c@0123456789abcdef: no kernel has definitions that say this"),
             (dict(choices=[{"kernel": e["tried"][0]["kernel"], "plan": "contract lanes=3"}]), "the kernel has no such plan, so the cost model decides"),
             (dict(bucket={"Q": [1, 2]}), "names a dim that the graph does not have"),
             (dict(target="cuda:sm_90a"), f"has nothing for {e['target']}, only for cuda:sm_90a"),
             (dict(target="cpu:pdp11"), f"was tuned for cpu:pdp11; it is used for {e['target']} all the same"),
             (dict(colour=1), "entries[0].colour is not known here, and left out")]
    for change, note in cases:
        chosen = with_choice(folder, e, plan, **change)
        for _ in range(2):  # kept code says it as well
            expect(texo("run", file, *SIZES, f"--tune={chosen}", "--compare=interp", env={"TEXO_CACHE": str(folder / "kept"), "TEXO_NO_CACHE": ""}), 0, note)
        assert expect(texo("explain", file, *SIZES, f"--tune={chosen}", "-q"), 0).err == ""


def test_broken_files(folder):
    file = write(folder, "p.tex", PRODUCT)
    good = {"graph": "g", "target": "t", "bucket": {"M": [1, 2]}, "choices": [{"kernel": "c@0123456789abcdef", "plan": "p"}], "machine": "m", "build": "b",
            "measured": {"dims": {"M": 1}, "default_us": 1, "tuned_us": 1, "threads": 0, "checked": "c"}, "tried": []}

    def of(**change):
        return json.dumps({"texo-tune": 1, "entries": [good, {k: v for k, v in {**good, **change}.items() if v is not None}]})

    measured = good["measured"]
    cases = [("", ":1:0: '[' or '{' expected"), ('{"texo-tune": 1,\n "entries": [}', ":2:14: unexpected token near '}'"),
             ('{"texo-tune": 1, "texo-tune": 1}', "duplicate object key"), ("[]", "the file is no object"), ("{}", "texo-tune is missing"),
             ('{"texo-tune": 2, "entries": []}', "texo-tune is 2, and this texo reads 1"), ('{"texo-tune": 1}', "entries is missing"),
             ('{"texo-tune": 1, "entries": {}}', "entries is no list"), ('{"texo-tune": 1, "entries": [3]}', "entries[0] is no object"),
             (of(graph=None), "entries[1].graph is missing"), (of(target=4), "entries[1].target is no text"), (of(graph="a\0b"), "is not allowed"),
             (of(bucket=[]), "entries[1].bucket is no object"), (of(bucket={"M": [2, 1]}), "entries[1].bucket.M is no pair of whole numbers"),
             (of(bucket={"M": [1, 2, 3]}), "entries[1].bucket.M"), (of(bucket={"M": [0.5, 2]}), "entries[1].bucket.M"),
             (of(choices=None), "entries[1].choices is missing"), (of(choices=[{"kernel": "c@0", "plan": "p"}]), "entries[1].choices[0].kernel is not a name"),
             (of(choices=[{"kernel": "c@0123456789abcdeg", "plan": "p"}]), "16 hexadecimal digits"), (of(choices=[{"kernel": "c"}]), "choices[0].plan is missing"),
             (of(choices=["c"]), "entries[1].choices[0] is no object"), (of(measured=None), "entries[1].measured is missing"),
             (of(measured={**measured, "dims": 3}), "entries[1].measured.dims is no object"), (of(measured={**measured, "dims": {"M": -1}}), "measured.M"),
             (of(measured={**measured, "tuned_us": "1"}), "entries[1].measured.tuned_us is no number"), (of(build=None), "entries[1].build is missing"),
             (of(tried=[{"kernel": "c@0123456789abcdef", "plan": "p"}]), "entries[1].tried[0].us is missing")]
    for text, word in cases:
        path = write(folder, "bad.tune", text)
        for command in (["run", file, *SIZES], ["explain", file], ["build", file, "-o", folder / "o"], ["bench", file, *SIZES]):
            expect(texo(*command, f"--tune={path}"), 1, "bad.tune", word, "help: ")
        expect(texo("tune", file, "-o", path), 1, word)
    assert {f.name for f in folder.iterdir()} == {"p.tex", "bad.tune"}
    expect(texo("run", file, f"--tune={folder}/none.tune"), 3, "none.tune")
    expect(texo("explain", file, f"--tune={write(folder, 'good.tune', of())}"), 0, "has nothing for cpu:")


def test_stop_and_go_on(folder):
    file, kept = write(folder, "p.tex", PRODUCT), folder / "p.tune"
    t = Tuning(file, *SIZES, "-j1", "--device=cpu")
    t.until("[  1/6]")
    t.trial()
    t.run.send_signal(signal.SIGINT)
    assert "; stopped; checked by" in t.end(0)
    some = entry(kept)
    assert 1 <= len(some["tried"]) < PLANS, some
    tune(file, *SIZES, "-j1", "--device=cpu", "--resume", words=[f"{len(some['tried'])} of them were tried before"], out=[f"{PLANS} of {PLANS} plans tried"])
    whole = entry(kept)
    assert whole["tried"][:len(some["tried"])] == some["tried"] and len(set(plans(whole))) == PLANS, (some, whole)
    tune(file, "M=24", "K=601", "N=40", "-j1", "--device=cpu", "--resume", "--budget=0.001", words=["nothing to go on with"])


def test_stopped_twice(folder):
    file = write(folder, "p.tex", PRODUCT)
    t = Tuning(file, "M=256", "K=8000", "N=256", "-j1", "--device=cpu")
    t.until("the result goes to")  # now the evaluator is busy
    t.run.send_signal(signal.SIGINT)
    time.sleep(0.05)
    t.run.send_signal(signal.SIGINT)
    assert t.end(130) == "" and not (folder / "p.tune").exists()


def test_failing_plans(folder):
    """One is ended from outside, one never ends."""
    file = write(folder, "p.tex", PRODUCT)
    t = Tuning(file, *SIZES, "-j1", "--device=cpu")
    t.until("[  0/6]")
    os.kill(t.trial(), signal.SIGKILL)
    t.until("[  1/6]")
    os.kill(t.trial(), signal.SIGSTOP)
    assert "6 of 6 plans tried, 2 failed" in t.end(0)
    e = entry(folder / "p.tune")
    assert [t.get("failed", "")[:13] for t in e["tried"]] == ["the process w", "no end within"] + [""] * 4, e
    assert "signal 9" in e["tried"][0]["failed"] and all(c["plan"] not in plans(e)[:2] for c in e["choices"]), e


def test_large_results_are_sampled(folder):
    file = write(folder, "p.tex", PRODUCT)
    tune(file, "M=300", "K=200", "N=300", "-j1", "--device=cpu", "--budget=0.001", out=["checked by the evaluator, 256 elements of each large result\n"])
    deep = write(folder, "d.tex", "graph d(a: f32[M, M]) -> (c: f32[M, M]) {\n  s[i, j] = sum[k](a[i, k] * a[k, j])\n"
                                  "  c[i, j] = sum[k](s[i, k] * s[k, j])\n}\n")
    tune(deep, "M=400", "--device=cpu", code=1, words=["too much for the evaluator", "smaller sizes"])


def test_refuses(folder):
    file = write(folder, "p.tex", PRODUCT)
    tune(code=2, words=["needs a file"])
    tune(file, "--device=interp", code=2, words=["--device=cpu or --device=cuda"])
    for wrong in ("x", "-1", "0", "5h", "1e9"):
        tune(file, f"--budget={wrong}", code=2, words=["--budget takes seconds"])
    tune(file, "--seed=0", code=2)
    tune(file, "-o", file, code=2, words=["would destroy the program"])
    tune(file, f"--tune={file}", code=2, words=["no option --tune"])
    tune("-", code=2, words=["-o PATH"])
    tune(file, "q=1", "--device=cpu", code=2, words=["no input, scalar or dim 'q'"])
    tune(AXPY, "N=8", "-j1", "--device=cpu", "-o", folder / "a.tune", out=["there is nothing to tune"])
    bad = write(folder, "bad.tex", "graph f(x: f32[N]) -> (y: f32[N]) { y[i] = z[i] }\n")
    tune(bad, code=1, words=["error[E0202]"])
    fails = write(folder, "f.tex", "graph f(a: f32[N, M], b: f32[M, N]) -> (c: f32[N, N]) where N > 9 { c[i, j] = sum[k](a[i, k] * b[k, j]) }\n")
    tune(fails, "N=3", "M=4", "--device=cpu", code=1, words=["N > 9"])
    assert {f.name for f in folder.iterdir()} == {"p.tex", "bad.tex", "f.tex"}


def usual_figures():
    """Of a GPU, as launch expressions ask for them: the first row's."""
    table = (pathlib.Path(__file__).resolve().parents[2] / "ir" / "gpus.def").read_text()
    names = re.findall(r'^FACT\( *\w+, *"(\w+)"', table, re.M)
    row = re.search(r'^GPU\( *"[^"]*", *\d+, *(.*?) *\)$', table, re.M).group(1)
    return {f"gpu.{name}": int(v) for name, v in zip(names, row.split(","), strict=True)}


def tasks_of(text, dims):
    """A printed launch expression at these sizes."""
    stack, dims = [[]], {**usual_figures(), **dims}
    for word in text.replace("(", " ( ").replace(")", " ) ").split():
        if word == "(":
            stack.append([])
        elif word == ")":
            op, *x = stack.pop()
            stack[-1].append(OPS[op](*x))
        else:
            stack[-1].append(dims[word] if word in dims else int(word) if re.fullmatch("-?[0-9]+", word) else word)
    return int(stack[0][0])


OPS = {"+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "div": lambda a, b: a // b if b else -1, "mod": lambda a, b: a % b if b else a,
       "min": min, "max": max, "<=": lambda a, b: a <= b, "<": lambda a, b: a < b, "==": lambda a, b: a == b, "&&": lambda a, b: a and b,
       "select": lambda c, a, b: a if c else b}


def launched(file, dims, *args):
    """The plan of the kernel that a launch on a GPU runs, of one unit, where all is aligned."""
    shown = expect(texo("run", file, "--emit=plan", "--target=cuda:sm_90a", *args), 0).out
    for plan, tasks in re.findall(r"^k\d+ (.*) nodes=.* tasks=(.*?) buffers=", shown, re.M):
        if tasks_of(tasks, dims) > 0:
            return plan
    raise AssertionError(shown)


def test_choices_on_a_gpu(folder):
    """Which kernel a launch runs, from the conditions of all: the chosen one in the bucket, the model's outside."""
    file = write(folder, "p.tex", "graph product(a: bf16[M, K], b: bf16[K, N]) -> (c: f32[M, N]) { c[i, j] = sum[k](f32(a[i, k]) * f32(b[k, j])) }\n")
    ran = texo("tune", file, "M=1536", "K=1536", "N=1536", "--device=cuda", "-v", env={"LD_LIBRARY_PATH": str(FAKE)})
    kernel, model = re.search(r"(\S+@[0-9a-f]{16}): the model takes (.*)", ran.err).groups()
    inside, outside = {"M": 1536, "K": 1400, "N": 1408}, {"M": 1536, "K": 1600, "N": 1408}
    shown = expect(texo("run", file, "--emit=plan", "--target=cuda:sm_90a"), 0).out
    all_plans = re.findall(r"^k\d+ (.*) nodes=", shown, re.M)
    assert model == launched(file, {"M": 1536, "K": 1536, "N": 1536}) and len(set(all_plans)) > 9, (model, all_plans)
    e = {"graph": "product", "target": "cuda:sm_90a", "bucket": {d: [1281, 1536] for d in "MKN"}, "machine": "", "build": "",
         "measured": {"dims": {}, "default_us": 1, "tuned_us": 1, "threads": 0, "checked": ""}, "tried": [{"kernel": kernel, "plan": model, "us": 1}]}
    could, untuned = 0, launched(file, outside)
    for plan in sorted(set(all_plans)):
        chosen = with_choice(folder, e, plan)
        got = launched(file, inside, f"--tune={chosen}")
        assert launched(file, outside, f"--tune={chosen}") == untuned, plan
        assert got == plan or "group=1 " in plan or "lanes=4" in plan or "short" in plan, (plan, got)  # those that can't, there
        could += got == plan
    assert could >= 12, could


def test_gpu(folder):
    file = write(folder, "p.tex", PRODUCT.replace("f32[M, K]", "bf16[M, K]").replace("f32[K, N]", "bf16[K, N]").replace("a[i, k] * b[k, j]", "f32(a[i, k]) * f32(b[k, j])"))
    # a device that computes nothing: its results are wrong, and nothing is kept
    tune_on = lambda *args, env: texo("tune", file, "M=256", "K=256", "N=256", "--device=cuda", *args, env=env)
    expect(tune_on(env={"LD_LIBRARY_PATH": str(FAKE)}), 5, "the model's own plans fail", "differ from the evaluator")
    if "libcuda.so.1, CUDA" not in texo("doctor").out:
        expect(tune_on(env={}), 4, "there is no NVIDIA driver", "--device=cpu")
        expect(tune_on("--skip-if-missing", env={}), 77)
    assert {f.name for f in folder.iterdir()} == {"p.tex"}


if __name__ == "__main__":
    sys.exit(each_test.main(globals(), sys.argv[2:]))
