"""The command and its cache: what hits and what does not, for every option; that a hit says and gives what a
compilation does; folders and entries that can't be used; texo cache. usage: command_test.py TEXO"""
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

TEXO, ROOT = sys.argv[1], Path(__file__).resolve().parents[2]
TEXT = """# two texts, a dim, a check and an access that can fail
graph g(x: f32[N], at: i32[M]) -> (y: f32[M]) where N > 2 { y[i] = exp(x[at[i]]) + 1 }
"""
HIT = "from the cache"

# What each option of `texo run` does about the cache: the words with it, after a run without.
#   same    it is none of the code's business: a hit
#   other   it decides about the code: a miss, then a hit with the same words, and another entry
#   afresh  it asks for the compilation itself: never a hit
#   unlike  it runs no code of ours, or is tried elsewhere here
OPTIONS = {
    "graph": ("same", "--graph=g"), "device": ("unlike",), "target": ("other", "--target=cpu:x86-64-v2"), "fp": ("other", "--fp=strict"),
    "fuse": ("other", "--fuse=off"), "define": ("other", "-DM=8"), "tune": ("same", "--tune=none.tune"), "output": ("same", "-o", "nothing"), "emit": ("unlike",),
    "out": ("same", "--out", "y=out.npy"), "expect": ("same", "--expect", "y=@out.npy"), "rtol": ("same", "--rtol=1"),
    "atol": ("same", "--atol=1"), "compare": ("same", "--compare=interp"), "cast": ("same", "--cast"),
    "skip-if-missing": ("same", "--skip-if-missing"), "jobs": ("same", "-j2"), "dump": ("afresh", "--dump=dce"), "stop": ("afresh", "--stop=dce"),
    "skip": ("afresh", "--skip=cse"), "fuel": ("afresh", "--fuel=cse:0"), "remarks": ("afresh", "--remarks"), "time": ("afresh", "--time"),
    "assembler": ("same", "--assembler=driver"), "verify": ("afresh", "--verify=each"), "no-cache": ("afresh", "--no-cache"), "cache-dir": ("unlike",), "cache-limit": ("same", "--cache-limit=7"),
    "in-process": ("same", "--in-process"), "worker-seconds": ("same", "--worker-seconds=20"), "worker-memory": ("same", "--worker-memory=2048"),
    "werror": ("same", "--werror"), "json": ("same", "--json"), "color": ("same", "--color=never"), "quiet": ("same", "-q"),
    "verbose": ("same", "-v"), "help": ("unlike",), "man": ("unlike",), "version": ("unlike",),
}


def texo(*args, env=None, ok=0, cwd=None):
    clean = {k: v for k, v in os.environ.items() if not k.startswith("TEXO_") and k != "XDG_CACHE_HOME"}
    clean.update(env or {})
    done = subprocess.run([TEXO, *map(str, args)], capture_output=True, text=True, env=clean, timeout=60, cwd=cwd)
    assert done.returncode == ok, f"{args}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done


class Place:
    def __init__(self, folder):
        self.folder, self.cache, self.file = folder, folder / "kept", folder / "g.tex"
        self.file.write_text(TEXT, encoding="utf-8")
        (folder / "none.tune").write_text('{"texo-tune": 1, "entries": []}', encoding="utf-8")  # a choice is another key: tests/driver/tune_test.py

    def run(self, *args, ok=0, **kw):
        inputs = () if any(a.startswith("at=") for a in args) else ("N=5", "M=8")
        return texo("run", self.file, *inputs, "-v", *args, ok=ok, cwd=self.folder, env={"TEXO_CACHE": str(self.cache), **kw})

    def hits(self, *args, **kw):
        return HIT in self.run(*args, **kw).stderr

    def entries(self):
        return sorted(self.cache.iterdir()) if self.cache.exists() else []


def test_every_option(place):
    for name in re.findall(r"^ +(?:-., )?--([a-z-]+)", texo("run", "--help").stdout, re.M):
        assert name in OPTIONS, f"--{name}: does it decide about the code? Say so here, and in disk_cache.c"
        kind, *words = OPTIONS[name]
        if kind == "unlike":
            continue
        texo("cache", "clear", env={"TEXO_CACHE": str(place.cache)})
        assert not place.hits() and place.hits(), name
        first = place.entries()
        hit = place.hits(*words)
        assert hit == (kind == "same"), (name, hit)
        assert (len(place.entries()) == 2) == (kind == "other"), name
        assert place.hits(*words) == (kind != "afresh"), name
        assert place.hits() and len(first) == 1, name


def test_a_hit_says_the_same(place):
    for args, code in (((), 0), (("--compare=interp",), 0), (("at=[0, 1, 9]", "x=[1, 2, 3]"), 1), (("at=[0]", "x=[1, 2]"), 1)):
        afresh, hit = (place.run("--no-cache", *args, ok=code), (place.run(*args, ok=code), place.run(*args, ok=code))[1])
        said = [re.sub(r"ran in .*|.* bytes of code and tables.*", "", r.stderr) for r in (afresh, hit)]
        assert HIT in hit.stderr and afresh.stdout == hit.stdout and said[0] == said[1], (afresh, hit)


def test_examples_give_the_same(place):
    """Bit for bit, as far as a result is printed: afresh, when it is kept, from there."""
    graphs = [(f, g) for f in sorted((ROOT / "examples").glob("*.tex"))
              for g in re.findall(r"^graph +(\w+)", f.read_text(encoding="utf-8"), re.M)]
    for f, g in graphs[::5]:
        afresh, kept, hit = (texo("run", f, f"--graph={g}", "-v", *more, env={"TEXO_CACHE": str(place.cache)}) for more in (("--no-cache",), (), ()))
        assert HIT in hit.stderr and HIT not in kept.stderr and afresh.stdout == kept.stdout == hit.stdout, (f, g)


def test_texts_count(place):
    assert not place.hits() and place.hits()
    place.file.write_text("# a line more\n" + TEXT, encoding="utf-8")  # places of what may fail are other ones
    assert not place.hits() and place.hits()
    used = place.folder / "used.tex"
    used.write_text("fn f(a) = a * 2\n", encoding="utf-8")
    place.file.write_text('use "used.tex"\ngraph g(x: f32[N], at: i32[M]) -> (y: f32[M]) { y[i] = f(x[at[i]]) }\n', encoding="utf-8")
    assert not place.hits() and place.hits()
    used.write_text("fn f(a) = a * 3\n", encoding="utf-8")
    assert not place.hits() and place.hits()


def test_damage_is_mended(place):
    want = place.run().stdout
    entry, = place.entries()
    whole = entry.read_bytes()
    for at in (0, 9, 40, len(whole) // 2, len(whole) - 1):
        entry.write_bytes(whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1:])
        assert "is damaged" in texo("inspect", entry, ok=1).stderr or at == 0
        ran = place.run()
        assert "damaged" in ran.stderr and HIT not in ran.stderr and ran.stdout == want
        assert entry.read_bytes() == whole and place.hits()


def test_where_it_is(place):
    home = place.folder / "home"
    home.mkdir()
    path = texo("cache", "path", env={"HOME": str(home)}).stdout
    assert path == f"{home}/.cache/texo\n"
    assert texo("cache", "path", env={"HOME": "/h", "XDG_CACHE_HOME": "/x"}).stdout == "/x/texo\n"
    assert texo("cache", "path", env={"HOME": "/h", "XDG_CACHE_HOME": "x"}).stdout == "/h/.cache/texo\n"  # XDG's rule
    assert texo("cache", "path", "--cache-dir=/d", env={"TEXO_CACHE": "/t"}).stdout == "/d\n"
    assert "no place" in texo("cache", "path", env={"HOME": ""}, ok=3).stderr
    texo("run", place.file, "N=5", "M=8", "-q", env={"HOME": ""})
    texo("run", place.file, "N=5", "M=8", "-q", env={"HOME": str(home)})
    assert (home / ".cache/texo").stat().st_mode & 0o777 == 0o700
    assert "1 entries" in texo("doctor", env={"HOME": str(home)}).stdout


def test_folders_that_cannot_be_used(place):
    want = place.run("--no-cache").stdout
    place.cache.write_text("a file", encoding="utf-8")
    other = place.folder / "open"
    other.mkdir()
    other.chmod(0o777)
    for path in (place.cache, other, "/proc/nowhere/texo", place.cache / "below"):
        ran = place.run(TEXO_CACHE=str(path))
        assert ran.stdout == want and "the cache " in ran.stderr and HIT not in ran.stderr, ran
    assert "others may write" in place.run(TEXO_CACHE=str(other)).stderr
    assert "others may write" in texo("cache", "info", env={"TEXO_CACHE": str(other)}, ok=3).stderr


def test_the_command(place):
    def cache(*args, ok=0):
        return texo("cache", *args, ok=ok, env={"TEXO_CACHE": str(place.cache)})
    assert json.loads(cache("info", "--json").stdout)["entries"] == 0
    assert json.loads(cache("path", "--json").stdout) == {"path": str(place.cache)}
    place.run()
    place.run("--fuse=off")
    info = json.loads(cache("info", "--json").stdout)
    size = sum(e.stat().st_size for e in place.entries())
    assert (info["entries"], info["bytes"], info["limit"], info["unfinished"]) == (2, size, 1 << 30, 0), info
    assert "2 entries" in cache("info").stdout
    assert json.loads(cache("prune", "--json").stdout) == {"dropped": 0, "bytes": 0}
    inspected = json.loads(texo("inspect", "--json", place.entries()[0]).stdout)
    key = {f["name"]: f["value"] for f in inspected["key"]}
    assert inspected["kind"] == "cache entry" and key["graph"] == "g" and key["file"] == f"{len(TEXT)} bytes" and "LLVM" in key["target"]
    assert [p["name"] for p in inspected["graphs"][0]["params"]] == ["x", "at", "y"]
    assert "target: LLVM" in texo("inspect", place.entries()[0]).stdout
    assert json.loads(cache("clear", "--json").stdout) == {"dropped": 2, "bytes": size}
    assert place.entries() == []
    assert "no action 'prun'" in cache("prun", ok=2).stderr
    assert "needs" in cache(ok=2).stderr


def main():
    tests = [f for name, f in globals().items() if name.startswith("test_")]
    for test in tests:
        with tempfile.TemporaryDirectory(prefix="texo-cache-") as folder:
            test(Place(Path(folder)))
    print(f"{len(tests)} passed, 0 failed")


main()
