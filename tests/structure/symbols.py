"""What our libraries take from the C library. usage: symbols.py NM LIBRARY...

No library exits, prints, aborts, or touches the state of the whole process; in the compiler's
libraries only host.c calls malloc and free, and no name is defined twice."""
import re
import subprocess
import sys

NEVER = {"exit", "_exit", "_Exit", "quick_exit", "abort", "atexit", "printf", "vprintf", "puts", "putchar",
         "perror", "signal", "sigaction", "setlocale", "srand", "rand", "srandom", "random", "strtok",
         "system", "setenv", "putenv", "chdir"}
MEMORY = {"malloc", "calloc", "realloc", "free", "aligned_alloc", "posix_memalign", "strdup", "strndup"}
ARENA_ONLY = ("texo_ir", "texo_frontend", "texo_passes", "texo_api")


def imports(nm, library):
    """(object, symbol) for every undefined symbol."""
    out = subprocess.run([nm, "-u", library], check=True, capture_output=True, text=True).stdout
    obj = "?"
    for line in out.splitlines():
        m = re.match(r"^(\S+\.o):$", line)
        if m:
            obj = m.group(1)
        elif line.split():
            yield obj, line.split()[-1].split("@")[0]


def twice(nm, libraries):
    """Names that two objects define: linked together they fail, linked apart one of them is not itself."""
    first, bad = {}, []
    for library in libraries:
        out = subprocess.run([nm, "-A", "-g", "--defined-only", library], check=True, capture_output=True, text=True).stdout
        for line in out.splitlines():
            place, symbol = line.rsplit(":", 1)[0], line.split()[-1]
            if first.setdefault(symbol, place) != place:
                bad.append(f"{place} and {first[symbol]} both define {symbol}")
    return bad


def main():
    nm, bad, n = sys.argv[1], twice(sys.argv[1], sys.argv[2:]), 0
    for library in sys.argv[2:]:
        for obj, symbol in imports(nm, library):
            n += 1
            if symbol in NEVER:
                bad.append(f"{library}: {obj} imports {symbol}")
            if symbol in MEMORY and any(a in library for a in ARENA_ONLY) and obj != "host.c.o":
                bad.append(f"{library}: {obj} imports {symbol}")
    print("\n".join(bad))
    print(f"{n} imports of {len(sys.argv) - 2} libraries, {len(bad)} that must not be")
    return 1 if bad or n == 0 else 0


sys.exit(main())
