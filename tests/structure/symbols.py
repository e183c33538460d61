"""What our libraries take from the C library. usage: symbols.py NM LIBRARY...

No library exits, prints, aborts, or touches the state of the whole process; and in the compiler's
libraries only host.c calls malloc and free."""
import re
import subprocess
import sys

NEVER = {"exit", "_exit", "_Exit", "quick_exit", "abort", "atexit", "printf", "vprintf", "puts", "putchar",
         "perror", "signal", "sigaction", "setlocale", "srand", "rand", "srandom", "random", "strtok",
         "system", "setenv", "putenv", "chdir"}
MEMORY = {"malloc", "calloc", "realloc", "free", "aligned_alloc", "posix_memalign", "strdup", "strndup"}
ARENA_ONLY = ("texo_ir", "texo_frontend", "texo_passes")


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


def main():
    nm, bad, n = sys.argv[1], [], 0
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
