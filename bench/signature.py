"""The signature of a graph, read from its header in the .tex file, so that no table repeats it.

Enough of the language for the headers under bench/: parameters `name: dtype` or `name: dtype[dims]`,
each dim a name. It is a reader for files of this folder, not a parser of the language."""
import re
from dataclasses import dataclass

BYTES = {"f64": 8, "f32": 4, "f16": 2, "bf16": 2, "i64": 8, "i32": 4}
HEADER = re.compile(r"^graph\s+(\w+)\s*\(([^)]*)\)\s*->\s*\(([^)]*)\)", re.M)
PARAM = re.compile(r"(\w+)\s*:\s*(\w+)(?:\[([^\]]*)\])?")


@dataclass(frozen=True)
class Param:
    name: str
    dtype: str
    dims: tuple  # of names; None: a scalar input

    def shape(self, dims):
        return tuple(dims[d] for d in self.dims or ())

    def elements(self, dims):
        n = 1
        for d in self.dims or ():
            n *= dims[d]
        return n

    def bytes(self, dims):
        return BYTES[self.dtype] * self.elements(dims)


@dataclass(frozen=True)
class Signature:
    graph: str
    inputs: tuple
    results: tuple


def params(text):
    return tuple(Param(m[1], m[2], None if m[3] is None else tuple(d.strip() for d in m[3].split(",")))
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
