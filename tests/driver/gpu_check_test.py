"""scripts/gpu-check.sh on the driver of tests/runtime, whose device computes nothing: the one table at its end.

    gpu_check_test.py TEXO FOLDER    FOLDER has the libcuda.so.1 for tests
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import each_test

TEXO, FAKE = (pathlib.Path(p).resolve() for p in sys.argv[1:3])
ROOT = pathlib.Path(__file__).resolve().parents[2]
RIGHT = """graph right(x: i32[N]) -> (y: i32[N]) { y[i] = x[i] * 0 - 1515870811 }
# test: right
#   x = [0, 0, 0]
#   expect y = [-1515870811, -1515870811, -1515870811]
"""  # what the device's memory holds before anything is written there: 0xa5 in each byte
ONES = "graph ones(x: f32[N]) -> (y: f32[N]) { y[i] = x[i] * 0 + 1 }\n"
RANDOM = """#!/bin/sh
echo "seeds $3.."
echo "$5 programs compiled"
echo "$(($5 - ${LESS:-0})) passed, ${LESS:-0} failed, 0 skipped"
[ "${LESS:-0}" = 0 ]
"""
SANITIZER = """#!/bin/sh
echo '========= ERROR SUMMARY: 0 errors'
"""


def write(path, text, mode=0o644):
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


def bundle(folder, sanitizer):
    """As scripts/bundle.sh lays it out: what stands in for random programs and the sanitizer says what it was told to."""
    shutil.copytree(ROOT / "scripts", folder / "scripts")
    (folder / "bin").mkdir()
    (folder / "bin/texo").symlink_to(TEXO)
    write(folder / "bin/random_test", RANDOM, 0o755)
    if sanitizer:
        write(folder / "bin/compute-sanitizer", SANITIZER, 0o755)
    write(folder / "bin/python3", "#!/bin/sh\necho 'skipped: no torch here'\nexit 77\n", 0o755)


def check(folder, files, **env):
    """(exit code, what came before the table, {name: (result, figure, bar)})"""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("TEXO_", "FAKE_"))}
    clean |= {"LD_LIBRARY_PATH": str(FAKE), "TEXO_NO_CACHE": "1", "TEXO_RANDOM": "60", "TEXO_LENGTHS": "",
              "PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}
    ran = subprocess.run([folder / "scripts/gpu-check.sh", folder / "bin/texo", *files], capture_output=True, text=True,
                         timeout=300, cwd=folder, env={**clean, **env})
    before, _, table = ran.stdout.rpartition("\n\n")
    lines = table.splitlines()
    assert re.fullmatch(r"check +result +figure +bar", lines[0]), ran
    starts = [lines[0].index(word) for word in ("check", "result", "figure", "bar")]
    cells = [[line[a:b].strip() for a, b in zip(starts, [*starts[1:], None])] for line in lines[1:]]
    assert all(all(c) for c in cells) and len({c[0] for c in cells}) == len(cells), table
    return ran.returncode, before, {c[0]: tuple(c[1:]) for c in cells}


def test_table(folder):
    bundle(folder, sanitizer=True)
    shutil.copytree(ROOT / "bench", folder / "bench")
    good, bad = write(folder / "good.tex", RIGHT), write(folder / "bad.tex", ONES)
    shutil.copytree(ROOT / "examples", folder / "examples")
    code, before, rows = check(folder, [good])
    assert code == 0, (before, rows)
    assert rows["good.tex"][0] == "ok" and rows["good.tex"][1].startswith("1/1 test blocks, 1/1 graphs"), rows
    assert rows["random programs"][0] == "ok" and re.fullmatch(r"\d+ passed, 0 failed", rows["random programs"][1]), rows
    assert int(rows["random programs"][1].split()[0]) >= 60, rows
    assert rows["memcheck"] == rows["racecheck"] == ("ok", "ERROR SUMMARY: 0 errors", "-"), rows
    assert rows["softmax_rows, 8192 x 4096"][0] == "ok" and "median" in rows["softmax_rows, 8192 x 4096"][1], rows
    for name in ("library", "sizes", "products", "convolutions", "attention", "order", "exact"):
        assert rows[f"gpu-{name}"] == ("skipped", "skipped: no torch here", "-"), rows
    assert rows["benchmarks"] == ("skipped", "there is no torch", "-"), rows
    assert "check  " not in before, before
    shutil.rmtree(folder / "examples")
    code, before, rows = check(folder, [good, bad], LESS="2")
    assert code == 1 and rows["good.tex"][0] == "ok" and rows["bad.tex"][0] == "FAILED", rows
    assert "0/1 graphs" in rows["bad.tex"][1] and "bad.tex, graph ones:" in before, (before, rows)
    assert rows["random programs"][0] == "FAILED" and not rows["random programs"][1].endswith(" 0 failed"), rows


def test_a_check_that_fails(folder):
    bundle(folder, sanitizer=False)
    good = write(folder / "good.tex", RIGHT)
    write(folder / "bin/python3", "#!/bin/sh\necho detail\necho '1 of 3 is wrong'\ncase $1 in *sizes*) exit 1 ;; esac\n", 0o755)
    code, before, rows = check(folder, [good])
    assert code == 1 and "detail\n1 of 3 is wrong" in before, (before, rows)
    assert rows["gpu-sizes"] == ("FAILED", "1 of 3 is wrong", "-") and rows["gpu-exact"][0] == "ok", rows
    assert rows["memcheck, racecheck"][0] == "skipped", rows


def test_a_bar(folder):
    """Of the suite a row a case, with its bars; one that is missed is no failure."""
    bundle(folder, sanitizer=False)
    good = write(folder / "good.tex", RIGHT)
    shutil.copytree(ROOT / "bench", folder / "bench")
    case = {"threads": 0, "us": {"texo": {"median": 12.5}}, "wrong": {}}
    met = {"what": "eager", "sense": ">=", "bar": 0.85, "got": 1.02, "met": True}
    rows = [{"case": "product 256", **case, "verdicts": [met]},
            {"case": "product 512", **case, "verdicts": [met | {"got": 0.5, "met": False}]},
            {"case": "plain", **case, "verdicts": []},
            {"case": "off", **case, "us": {}, "wrong": {"texo": 1.0}, "verdicts": [met | {"got": None, "met": None}]}]
    suite = f"""import json, pathlib, sys
[path] = [a.removeprefix("--json=") for a in sys.argv if a.startswith("--json=")]
pathlib.Path(path).write_text(json.dumps({{"rows": json.loads({json.dumps(json.dumps(rows))})}}))
print("the suite's own table")
"""
    write(folder / "bench/suite.py", suite)
    real = sys.executable
    write(folder / "bin/python3", f'#!/bin/sh\ncase $1 in *bench*) exec {real} "$@" ;; -c) exit 0 ;; esac\nexit 77\n', 0o755)
    code, before, found = check(folder, [good])
    assert "the suite's own table" in before, before
    assert found["product 256"] == ("ok", "12.5 us, eager 1.02", "eager >= 0.85"), found
    assert found["product 512"] == ("MISSED", "12.5 us, eager 0.50", "eager >= 0.85"), found
    assert found["plain"] == ("ok", "12.5 us", "-"), found
    assert found["off"] == ("FAILED", "eager -", "eager >= 0.85") and code == 1, found


if __name__ == "__main__":
    sys.exit(each_test.main(globals()))
