"""What a case is: a graph of a file, a shape, its work, and the bars it is held to.

Inputs and results are in the graph's header and not repeated here. A row is decided before the code
it times is tuned; a row that turns out unkind stays. Needs nothing but Python, so that a test can
read the tables.

Bars: the least ratio peer time / texo time; `roof` is the least share of the rate of a kernel that only
streams, counted on the compulsory bytes. Limits are the most there may be of `kernels`, `jit ms`
(compiling the graph cold) and `warm us` (the same from the memory cache)."""
from dataclasses import dataclass, field
from pathlib import Path

import signature

HERE = Path(__file__).resolve().parent
LIMITS = ("kernels", "jit ms", "warm us")


@dataclass(frozen=True)
class Case:
    group: str
    file: str               # under this folder
    graph: str
    dims: dict
    flops: str = "0"        # arithmetic, in dims; exp, division and the like count as one
    bars: dict = field(default_factory=dict)
    limits: dict = field(default_factory=dict)   # the most kernels, cold and warm compile time
    threads: tuple = (2,)   # on a processor
    data: dict = field(default_factory=dict)     # input: how it is filled, else `normal`
    touched: dict = field(default_factory=dict)  # input reached through data: elements asked for
    told: tuple = ()        # dims whose extent texo is told when it compiles, as torch.compile is told all
    multiples: dict = field(default_factory=dict)  # dim: the one that has to divide it
    fp: str = ""            # the mode that texo is asked for; "": its own, relaxed, but where the graph says another
    note: str = ""
    size: str = ""          # in words, where the dims are too many to be a name

    @property
    def name(self):
        return f"{self.graph} {self.size or 'x'.join(str(n) for n in self.dims.values())}" + (f" {self.fp}" if self.fp else "")

    @property
    def path(self):
        return HERE / self.file

    @property
    def signature(self):
        return signature.signatures(self.path)[self.graph]

    def flop(self):
        return signature.evaluate(self.flops, self.dims)

    def moved(self, param):
        """Compulsory bytes of one reading or writing of a tensor; gathered elements as asked for."""
        n = param.elements(self.dims)
        if param.name in self.touched:
            n = min(n, signature.evaluate(self.touched[param.name], self.dims))
        return int(n * signature.BYTES[param.dtype])

    def read(self):
        """Compulsory: each input read once."""
        return sum(self.moved(p) for p in self.signature.inputs)

    def written(self):
        """Compulsory: each result and each inout written once."""
        return sum(self.moved(p) for p in self.signature.written)

    def bytes(self):
        return self.read() + self.written()


def rows(group, file, graph, shapes, **more):
    return [Case(group, file, graph, dims, **more) for dims in shapes]


def grid(*pairs, names="NM"):
    return [dict(zip(names, p)) for p in pairs]


def faults_of_row(c, peers):
    s = c.signature
    needed = set().union(*(p.names() for p in s.inputs + s.results))
    if needed != set(c.dims):
        yield f"{c.name}: dims {sorted(c.dims)}, the header needs {sorted(needed)}"
        return
    inputs = {p.name for p in s.inputs}
    for name in [*c.data, *c.touched]:
        if name not in inputs:
            yield f"{c.name}: no input {name}"
    for p in s.inputs:
        if p.dims is None and p.name not in c.data:
            yield f"{c.name}: nothing says what {p.name} is"
    for dim in c.told:
        if dim not in c.dims:
            yield f"{c.name}: no dim {dim}"
    for peer in c.bars:
        if peer not in (*peers, "roof"):
            yield f"{c.name}: a bar against {peer}, which is no peer"
    for what in c.limits:
        if what not in LIMITS:
            yield f"{c.name}: a limit of {what}, which is not measured"
    if not s.written or c.bytes() <= 0 or c.flop() < 0 or not c.threads:
        yield f"{c.name}: no work"


def faults(table, folder, peers):
    """What is wrong with a table of the graphs in a folder, one line each."""
    seen, used = set(), set()
    for c in table:
        if c.name in seen:
            yield f"{c.name}: twice"
        seen.add(c.name)
        if not c.path.is_file() or c.graph not in signature.signatures(c.path):
            yield f"{c.name}: {c.file} has no graph of that name"
            continue
        used.add((c.file, c.graph))
        yield from faults_of_row(c, peers)
    for f in sorted((HERE / folder).glob("*.tex")):
        for graph in signature.signatures(f):
            if (f"{folder}/{f.name}", graph) not in used:
                yield f"{f.name}: graph {graph} is in no case"


def show(c):
    return f"{c.group:10} {c.name:40} {c.bytes() / 1e6:10.2f} MB {c.flop() / 1e9:10.3f} GFLOP  {c.bars}"


def main(argv, table, folder, peers):
    """The command line of a table: prints it, or with --check what is wrong with it alone."""
    bad = list(faults(table, folder, peers))
    if "--check" not in argv[1:]:
        print("\n".join(map(show, table)))
    print("\n".join(bad))
    print(f"{len(table)} cases, {len(bad)} faults")
    return 1 if bad or not table else 0
