"""The signature of a graph, read from its header in the .tex file, so that no table repeats it.

Enough of the language for the headers under bench/: parameters `name: dtype` or `name: dtype[dims]`,
perhaps `inout`, each dim an expression of names. It is a reader for files of this folder, not a parser
of the language."""
import math
import re
from dataclasses import dataclass

BYTES = {"f64": 8, "f32": 4, "f16": 2, "bf16": 2, "f8e4m3": 1, "i64": 8, "u64": 8, "i32": 4, "i8": 1, "i4": 0.5}
HEADER = re.compile(r"^graph\s+(\w+)\s*\(([^)]*)\)\s*->\s*\(([^)]*)\)", re.M)
PARAM = re.compile(r"(inout\s+)?(\w+)\s*:\s*(\w+)(?:\[([^\]]*)\])?")


def evaluate(text, dims):
    """A whole number from an expression of dims, in Python's spelling."""
    return int(eval(text, {"__builtins__": {}}, dict(dims)))



@dataclass(frozen=True)
class Param:
    name: str
    dtype: str
    dims: tuple  # of expressions; None: a scalar input
    inout: bool = False

    def names(self):
        return {n for d in self.dims or () for n in re.findall(r"[A-Za-z]\w*", d)}

    def shape(self, dims):
        return tuple(evaluate(d, dims) for d in self.dims or ())

    def elements(self, dims):
        return math.prod(self.shape(dims))

    def bytes(self, dims):
        return int(BYTES[self.dtype] * self.elements(dims))


@dataclass(frozen=True)
class Signature:
    graph: str
    inputs: tuple
    results: tuple

    @property
    def inouts(self):
        return tuple(p for p in self.inputs if p.inout)

    @property
    def written(self):
        """What a call leaves: the inouts and the results."""
        return self.inouts + self.results


def params(text):
    return tuple(Param(m[2], m[3], None if m[4] is None else tuple(d.strip() for d in m[4].split(",")), bool(m[1]))
                 for m in PARAM.finditer(text))


def source(path, graph):
    """The text of one graph and of what it may use, without the file's other graphs."""
    text = path.read_text(encoding="utf-8")
    used = "".join(line + "\n" for line in text.splitlines() if re.match(r"(use|fn|const)\b", line))
    return used + re.search(rf"^graph {graph}\b.*?^}}$", text, re.M | re.S)[0] + "\n"


def signatures(path):
    """{graph name: Signature} of every graph in a file."""
    return {name: Signature(name, params(ins), params(outs))
            for name, ins, outs in HEADER.findall(path.read_text(encoding="utf-8"))}
