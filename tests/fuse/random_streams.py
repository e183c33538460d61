"""Random cascades over random scores, against the evaluator: sizes, layouts, heads, masks, what finishes a
score, what is folded of it, under names that mean nothing. usage: random_streams.py TEXO SEED COUNT, or
random_streams.py --blocks STREAM_BLOCKS_TEST SEED COUNT: of sizes that a GPU's warps multiply as matrices, by the
tile interpreter.

All are one kernel: what the template can't take is not made here."""
import random
import subprocess
import sys
import tempfile
from pathlib import Path

SIZES = (0, 1, 2, 3, 5, 13, 16, 17, 26, 31, 32, 33, 64, 78, 90, 131, 155, 156, 157, 260, 330)
WORK = 150_000  # products, of which the evaluator makes each
BLOCKS = {"D": (24, 32, 40, 64, 72, 104, 128, 160, 256), "E": (8, 16, 40, 64, 80, 128, 136, 256), "most": 1_500_000}


def size(r, least=1):
    return r.choice([n for n in SIZES if n >= least])


class Program:
    def __init__(self, r, number, blocks=False):
        self.r, self.number, self.blocks = r, number, blocks
        names = [a + b for a in "bcfgpwxz" for b in "aeiou"]
        r.shuffle(names)
        self.name = dict(zip(("q", "k", "v", "s", "m", "l", "u", "o", "extra"), names))
        self.params, self.data, self.facts = [], [], ["S >= 1", "D >= 1"]
        self.dtypes = r.choice((("bf16",), ("f16",)) if blocks else (("f32",), ("f32",), ("bf16",), ("f16",), ("bf16", "f16", "f32")))
        self.sizes()

    def sizes(self):
        r = self.r
        while True:
            d = {"T": size(r, 0), "S": size(r), "D": r.choice((1, 2, 3, 7, 8, 16, 17, 33)), "E": r.choice((1, 2, 5, 13, 14, 16, 29))}
            if self.blocks:
                d.update({"T": r.choice((d["T"], 40, 72, 136, 200)), "S": r.choice((d["S"], 40, 72, 136, 200)), "D": r.choice(BLOCKS["D"]), "E": r.choice(BLOCKS["E"])})
            d["H"] = r.choice((1, 1, 2, 3))
            if d["H"] * d["T"] * d["S"] * (d["D"] + d["E"]) <= (BLOCKS["most"] if self.blocks else WORK):
                break
        self.dim = d
        self.heads = d["H"] > 1 or r.random() < 0.3
        self.shared = self.heads and r.random() < 0.4  # one set of keys for all heads

    def tensor(self, key, axes, data="normal"):
        """A parameter with these (index, dim) axes in any order, of some type; how it is read."""
        dtype = self.r.choice(self.dtypes)
        axes = list(axes)
        if not self.blocks or self.r.random() < 0.1:
            self.r.shuffle(axes)
        elif self.r.random() < 0.3:  # heads are not the last axis
            axes[-2:] = axes[:-3:-1]
        name = self.name[key]
        self.params.append(f"{name}: {dtype}[{', '.join(n for _, n in axes)}]")
        shape = ", ".join(str(self.dim[n]) for _, n in axes)
        self.data.append(f"{name} = {data}:{self.r.randrange(1, 999)} {dtype}[{shape}]")
        return f"{name}[{', '.join(i for i, _ in axes)}]"

    def score(self):
        r, head = self.r, [("h", "H")] if self.heads else []
        keys = [] if self.shared else head
        q, k = self.tensor("q", [*head, ("i", "T"), ("d", "D")]), self.tensor("k", [*keys, ("j", "S"), ("d", "D")])
        dot = f"sum[d]({q} * {k})" if r.random() < 0.7 else f"sum[d]({k} * {q})"
        forms = [dot, f"{dot} / sqrt(D)", f"0.3 * {dot}", f"2 * tanh({dot} / 2)"]
        if r.random() < 0.25:
            forms = [f"{dot} + {self.tensor('extra', [*head, ('i', 'T'), ('j', 'S')])}"]
        elif r.random() < 0.2:
            forms = [f"{dot} - 0.1 * f32(abs(i - j))"]
            if self.blocks:
                forms += [f"{dot} + 0.1 * f32(j - i)", f"{dot} * exp(0.05 * f32(i - j))", f"{dot} * (-0.9) ** (i - j)"]
        return r.choice(forms)

    def mask(self):
        r = self.r
        if r.random() < 0.5:
            return ""
        if r.random() < 0.3:
            at = self.mask_tensor()
            return f" where {at}" if r.random() < 0.5 else f" where j <= i && {at}"
        return " where " + r.choice(("j <= i", "i <= j", "j <= i + S - T", "j <= i && i - j < 9", "j < i", "2 <= j", "i + j < 70", "j != i"))

    def mask_tensor(self):
        name = "mask"
        self.params.append(f"{name}: bool[T, S]")
        self.data.append(f"{name} = random:{self.r.randrange(1, 999)} bool[{self.dim['T']}, {self.dim['S']}]")
        return f"{name}[i, j]"

    def folds(self, masked):
        """Lines, and results as (name, axes)."""
        r, n, h = self.r, self.name, "h, " if self.heads else ""
        head = [("h", "H")] if self.heads else []
        keys = [] if self.shared or r.random() < 0.2 else head
        s, o, m, l, u = (n[x] for x in ("s", "o", "m", "l", "u"))
        at = f"{s}[{h}i, j]"
        columns = "D" if self.blocks and r.random() < 0.5 else "E"  # as many as terms have tiles of their own
        v = self.tensor("v", [*keys, ("j", "S"), ("e", columns)])
        row, wide = [*head, ("i", "T")], [*head, ("i", "T"), ("e", columns)]
        soft = ([f"{o}[{h}i, e] = sum[j](softmax[j]({at}) * {v})"], [(o, wide)])
        if masked:  # below a diagonal, say, a GPU folds them as they are as well
            plain = ([f"{o}[{h}i, e] = sum[j]({at} * {v})"], [(o, wide)])
            return r.choice((soft, plain)) if self.blocks else soft
        first = [f"{m}[{h}i] = max[j]({at})", f"{l}[{h}i] = sum[j](exp({at} - {m}[{h}i]))"]
        low = [f"{m}[{h}i] = min[j]({at})", f"{l}[{h}i] = sum[j](exp({m}[{h}i] - {at}))"]
        mean = [f"{m}[{h}i] = sum[j]({at}) / S", f"{l}[{h}i] = sum[j](sq({at} - {m}[{h}i])) / S"]
        weights = f"{o}[{h}i, e] = sum[j](exp({at} - {m}[{h}i]) * {v})"
        weighted = [*first, f"{u}[{h}i, e] = sum[j](exp({at} - {m}[{h}i]) * {v})", f"{o}[{h}i, e] = {u}[{h}i, e] / {l}[{h}i]"]
        return r.choice((soft, soft, (first, [(m, row), (l, row)]), (low, [(l, row)]), (mean, [(m, row), (l, row)]),
                         ([*first, weights], [(o, wide), (l, row)]), (weighted, [(o, wide)]), (weighted, [(o, wide), (m, row)])))

    def text(self):
        r, n, h = self.r, self.name, "h, " if self.heads else ""
        score, mask = self.score(), self.mask()
        lines, results = self.folds(mask != "")
        if self.blocks:  # extremes of quotients are made of reciprocals, which is a rounding more where sums happen to be exact
            results = [x for x in results if x[0] != n["m"]]
        # What others read is f32: a narrow one would be rounded before they see it.
        dtype = {x: "f32" if x == n["m"] else r.choice(self.dtypes) for x, _ in results}
        heads = ", ".join(f"{x}: {dtype[x]}[{', '.join(d for _, d in axes)}]" for x, axes in results)
        r.shuffle(self.params)
        graph = f"random{self.number}"
        test = [f"# test: {graph}", f"#   graph {graph}", *(f"#   {d}" for d in self.data), "#   kernels == 1"]
        return "\n".join([*test, f"graph {graph}({', '.join(self.params)}) -> ({heads})", f"  where {' && '.join(self.facts)}", "{",
                          f"  {n['s']}[{h}i, j] = {score}{mask}", *(f"  {x}" for x in lines), "}", ""])


def run_blocks(test, seed, count):
    programs = [Program(random.Random(seed * 100003 + k), k, True) for k in range(count)]
    with tempfile.TemporaryDirectory() as folder:
        path, sizes = Path(folder) / "streams.tex", Path(folder) / "sizes"
        path.write_text('use "std"\n\n' + "\n".join(p.text() for p in programs))
        sizes.write_text("".join(f"random{k} {' '.join(f'{n}={v}' for n, v in p.dim.items())}\n" for k, p in enumerate(programs)))
        done = subprocess.run([test, "--random", str(path), str(sizes)], capture_output=True, text=True)
        if done.returncode != 0:
            print(path.read_text(), sizes.read_text(), done.stdout, done.stderr)
            sys.exit(f"seed {seed}: exit {done.returncode}")
    print(f"{count} passed")


def main():
    if sys.argv[1] == "--blocks":
        return run_blocks(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    texo, seed, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    programs = [Program(random.Random(seed * 100003 + k), k).text() for k in range(count)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "streams.tex"
        path.write_text('use "std"\n\n' + "\n".join(programs))
        done = subprocess.run([texo, "test", str(path), "--device=cpu"], capture_output=True, text=True)
        if done.returncode != 0:
            print(path.read_text(), done.stdout, done.stderr)
            sys.exit(f"seed {seed}: exit {done.returncode}")
    print(done.stdout.strip().splitlines()[-1])


if __name__ == "__main__":
    main()
