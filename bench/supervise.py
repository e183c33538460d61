"""The rows of a suite in a process of its own: one that a contender ends, or that hangs, is given up with the row it
was at, and another goes on behind it."""
import json
import os
import selectors
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

import report


def work(fd, items):
    """In that process: each item a line. What libraries print goes to standard error."""
    out = os.fdopen(fd, "w", encoding="utf-8")
    os.dup2(2, 1)

    def say(item):
        out.write(json.dumps(item) + "\n")
        out.flush()
    try:
        for item in items:
            say(item)
        say("end")
    except Exception as e:  # whatever it is, the row is lost and the process with it
        traceback.print_exception(e)
        say({"lost": f"{type(e).__name__}: {(str(e).splitlines() or [''])[0][:200]}"})
    os._exit(0)  # without what libraries do at an exit


class Process:
    def __init__(self, start, total):
        read, write = os.pipe()
        more = ["--total", str(total)] if total is not None else []
        here = str(Path(__file__).resolve().with_name("suite.py"))
        # no compiled kernel from before, and none left
        self.caches = tempfile.TemporaryDirectory(prefix="texo-bench-", ignore_cleanup_errors=True)
        fresh = {name: f"{self.caches.name}/{name.lower()}" for name in ("TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")}
        self.child = subprocess.Popen([sys.executable, here, *sys.argv[1:], *more, "--worker", str(write), "--start", str(start)],
                                      env={**os.environ, **fresh, "CUDA_CACHE_DISABLE": "1"}, pass_fds=[write],
                                      stdin=subprocess.DEVNULL, stdout=2)
        os.close(write)
        self.read, self.rest = read, b""
        self.ready = selectors.DefaultSelector()
        self.ready.register(read, selectors.EVENT_READ)

    def item(self, limit):
        """The next one; or TimeoutError, or EOFError."""
        until = time.monotonic() + limit
        while b"\n" not in self.rest:
            if not self.ready.select(max(0, until - time.monotonic())):
                raise TimeoutError(f"it took more than {limit:.0f} s")
            got = os.read(self.read, 1 << 16)
            if not got:
                raise EOFError(f"the process ended with {self.child.wait()}")
            self.rest += got
        line, self.rest = self.rest.split(b"\n", 1)
        item = json.loads(line)
        if "lost" in item:
            raise EOFError(item["lost"])
        return item

    def close(self):
        self.child.kill()
        self.child.wait()
        os.close(self.read)
        self.caches.cleanup()


def lost(case, variant, why):
    """The row of which nothing is known but that it was lost."""
    return report.finish({"case": case.name, "group": case.group, "threads": variant, "dims": case.dims,
                          "bytes": case.bytes(), "flops": case.flop(), "bars": case.bars, "limits": case.limits,
                          "note": case.note, "us": {}, "error": {}, "compile_ms": {}, "wrong": {}, "peak_gflops": 0,
                          "roof_gbps": 1.0, "absent": {"all": str(why)}})


def rows(args, wanted):
    """The facts, then a row for each of `wanted`."""
    at, told, begin = 0, False, time.monotonic()
    while at < len(wanted) or not told:
        left = None if args.total is None else args.total - (time.monotonic() - begin)
        if told and left is not None and left <= 0:
            return
        process = Process(at, left)
        try:
            facts = process.item(args.row_limit)
            if not told:
                yield facts
                told = True
            while (row := process.item(args.row_limit)) != "end":
                at += 1
                yield row
            return
        except (TimeoutError, EOFError) as e:
            if not told:
                raise
            yield lost(*wanted[at], e)
            at += 1
        finally:
            process.close()
