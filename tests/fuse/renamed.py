"""No name decides what becomes of a function: every function of the standard library, renamed, gives the
same kernels, byte for byte. usage: renamed.py TEXO STD_TEX

Each function is called once by a graph, first as it stands, then through a copy of the library with all
of its names changed; both are compiled to assembly."""
import re
import subprocess
import sys
import tempfile
from pathlib import Path

# What the parameters of a function are called that are not simply numbers of the row.
INTEGERS = {"p": "i", "i": "j", "n": "M", "j": "j", "seed": "7"}


def functions(text):
    """(name, binders, parameters) of each function; its text may go over several lines."""
    for m in re.finditer(r"^fn (\w+)(?:\[([^\]]*)\])?\(([^)]*)\)", text, re.M):
        yield m.group(1), m.group(2), [p.strip() for p in m.group(3).split(",")]


def argument(k, parameter, counted):
    """Positions, seeds and extents are integers; everything else is a multiple of an element."""
    return INTEGERS[parameter] if counted and parameter in INTEGERS else f"x[i, j] * {k + 1}"


def graph(name, binders, parameters):
    """A graph that applies the function to rows, or to elements."""
    index = "j" if binders else ""
    if name == "cross_entropy":
        return f"graph g(z: f32[N, M], c: i64[N]) -> (r: f32[N]) {{ r[i] = {name}[j](z[i, j], c[i]) }}"
    counted = "i" in parameters  # a function that knows where its element is
    args = ", ".join(argument(k, p, counted and (p != "p" or "seed" not in parameters)) for k, p in enumerate(parameters))
    call = f"{name}[{index}]({args})" if index else f"{name}({args})"
    folds = name == "logsumexp" or name == "variance"
    head = "(y: f32[N]) { y[i]" if folds else "(y: f32[N, M]) { y[i, j]"
    return f"graph g(x: f32[N, M]) -> {head} = {call} }}"


def assembly(texo, folder, text):
    path = Path(folder) / "g.tex"
    path.write_text(text)
    done = subprocess.run([texo, "build", str(path), "--emit=asm", "-o", "-"], capture_output=True, text=True)
    assert done.returncode == 0, f"{text}\n{done.stderr}"
    return done.stdout


def main():
    texo, std = sys.argv[1], Path(sys.argv[2]).read_text()
    library = re.sub(r"#.*", "", std)
    names = [n for n, _, _ in functions(library)]
    renamed = library
    for k, n in enumerate(names):
        renamed = re.sub(rf"\b{n}\b", f"zz{k}", renamed)
    compared = 0
    with tempfile.TemporaryDirectory() as folder:
        for k, (name, binders, parameters) in enumerate(functions(library)):
            text = graph(name, binders, parameters)
            other = re.sub(rf"\b{name}\b", f"zz{k}", text)
            first = assembly(texo, folder, library + text + "\n")
            assert ".globl" in first or ".type" in first, first
            assert first == assembly(texo, folder, renamed + other + "\n"), f"{name}: other code when it has another name"
            compared += 1
    print(f"{compared} of {len(names)} functions compared")
    assert compared == len(names) >= 20


if __name__ == "__main__":
    main()
