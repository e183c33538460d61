"""The table and the JSON of a run.

    report.py FILE.json     prints of each of its rows, with tabs between: its case, how it ended, the figure, and the bars"""
import json
import sys
from pathlib import Path


def floor_seconds(row):
    """The larger of compulsory bytes at the streaming rate and arithmetic at the peak rate."""
    streaming = row["bytes"] / (row["roof_gbps"] * 1e9)
    return max(streaming, row["flops"] / (row["peak_gflops"] * 1e9) if row["peak_gflops"] else 0)


def finish(row):
    """Adds what follows from the times: floor, rates, ratios, verdicts. Ratios that were measured in pairs, and the
    share of the roof if that was, are there already."""
    row["floor_us"] = floor_seconds(row) * 1e6
    mine = row["us"].get("texo", {}).get("median")
    row.setdefault("ratio", {p: t["median"] / mine for p, t in row["us"].items() if p != "texo"} if mine else {})
    if mine:
        row["gbps"] = row["bytes"] / mine * 1e-3
        row["gflops"] = row["flops"] / mine * 1e-3
        row.setdefault("of_roof", row["gbps"] / row["roof_gbps"])
        row["of_floor"] = row["floor_us"] / mine
    got = {**row["ratio"], **({"roof": row["of_roof"]} if mine else {})}
    row["verdicts"] = [verdict(p, ">=", bar, got.get(p)) for p, bar in row["bars"].items()]
    most = {"kernels": row.get("kernels"), "jit ms": row["compile_ms"].get("texo"), "warm us": row.get("again_us")}
    row["verdicts"] += [verdict(what, "<=", limit, most[what]) for what, limit in row["limits"].items()]
    return row


def verdict(what, sense, bar, got):
    met = None if got is None else got >= bar if sense == ">=" else got <= bar
    return {"what": what, "sense": sense, "bar": bar, "got": got, "met": met}


def short(x):
    """Three or four figures."""
    if x is None:
        return "-"
    return f"{x:,.0f}" if x >= 1000 else f"{x:.1f}" if x >= 10 else f"{x:.2f}"


def percent(x):
    return "-" if x is None else f"{100 * x:.0f}"


def verdict_text(row):
    parts = []
    for v in row["verdicts"]:
        word = "absent" if v["met"] is None else "ok" if v["met"] else "MISSED"
        parts.append(f"{v['what']} {v['sense']} {v['bar']:g} {word}")
    return ", ".join(parts)


# --- columns: title, width (below 0: to the left), text of a row ---

def mine(row):
    return row["us"].get("texo", {}).get("median")


def against(peer):
    """A peer's ratio, or where texo has no time, its own."""
    def text(row):
        if peer in row["ratio"]:
            return f"{row['ratio'][peer]:.2f}x"
        return f"{short(row['us'][peer]['median'])}u" if peer in row["us"] else "-"
    return text


def peers(*names):
    return tuple((name, 9, against(name)) for name in names)


def jit(name):
    return lambda row: short(row["compile_ms"].get(name))


CASE = ("case", -34, lambda row: row["case"])
KERNELS = ("krn", 3, lambda row: str(row.get("kernels", "-")))
TIME = ("texo us", 11, lambda row: short(mine(row)))
FLOOR = ("floor us", 10, lambda row: short(row["floor_us"]) if row["roof_gbps"] > 1 else "-")
RATE = ("GB/s", 7, lambda row: short(row.get("gbps")))
OF_ROOF = ("%roof", 6, lambda row: percent(row.get("of_roof")))
BARS = ("bars", 0, verdict_text)
CPU_COLUMNS = (
    CASE, ("thr", 3, lambda row: str(row["threads"])), FLOOR, TIME, ("%floor", 6, lambda row: percent(row.get("of_floor"))),
    OF_ROOF, RATE, ("GFLOP/s", 8, lambda row: short(row.get("gflops"))),
    *peers("torch", "compile", "numpy", "openblas", "onednn"), KERNELS, ("jit ms", 7, jit("texo")),
    ("warm us", 7, lambda row: short(row.get("again_us"))), BARS)


def cool(row):
    """The best peer's ratio when the GPU has rested before each block."""
    return ", ".join(f"{name} {ratio:.2f}x" for name, ratio in row.get("cool", {}).items()) or "-"


GPU_COLUMNS = (
    CASE, KERNELS, FLOOR, TIME, OF_ROOF, RATE, *peers("eager", "compile", "autotune", "triton", "jax"),
    ("cool", 14, cool), ("jit ms", 7, jit("texo")), ("compile", 8, jit("compile")), ("autotune", 8, jit("autotune")),
    ("triton", 7, jit("triton")), ("jax", 7, jit("jax")), BARS)


def error(name):
    """How far off a contender is, relative to the norm of what it should give."""
    def text(row):
        if name in row["absent"]:
            return "absent"
        found = row["error"].get(name, row["wrong"].get(name))
        return "-" if found is None else f"{found:.0e}" + (" OFF" if name in row["wrong"] else "")
    return text


REHEARSAL_COLUMNS = (CASE, KERNELS, *((name, 10, error(name)) for name in ("texo", "eager", "compile", "triton", "jax")))


def padded(text, width):
    return f"{text:{'<' if width < 0 else '>'}{abs(width)}}" if width else " " + text


def head(columns):
    return " ".join(padded(title, width) for title, width, _ in columns)


def line(columns, row):
    return " ".join(padded(text(row), width) for _, width, text in columns)


def notes(row, rounds):
    """What a reader must know about a row besides its figures."""
    name_of_row = f"{row['case']}, {row['threads']} threads" if row["threads"] else row["case"]
    for name, why in row["absent"].items():
        yield f"{name_of_row}: {name}: {why}"
    for name, e in row["wrong"].items():
        yield f"{name_of_row}: {name} is off by {e:.1e} and was not timed"
    for name, t in row["us"].items():
        if t["rounds"] == 0:
            yield f"{name_of_row}: {name} is timed by its checked call alone, {t['median'] / 1e6:.2g} s"
        elif t["rounds"] < rounds and row["threads"]:
            yield f"{name_of_row}: {name} had {t['rounds']} rounds only: a call takes {t['median'] / 1e6:.2g} s"
    for text in row.get("notes", ()):
        yield f"{name_of_row}: {text}"


def summary(rows):
    judged = [v["met"] for r in rows for v in r["verdicts"]]
    return f"{judged.count(True)} bars met, {judged.count(False)} missed, {judged.count(None)} not measured, {len(rows)} rows"


LEGEND = {
    CPU_COLUMNS: """\
peers: their median time over texo's, so above 1 texo is faster; NNNu: microseconds where texo has no time.
floor: the larger of compulsory bytes at the rate of a triad of as many bytes, measured between the
rounds of the row, and arithmetic at the measured peak. %roof: of the triad's rate, on compulsory bytes.
krn: kernels of the graph. jit ms: compiling the graph, cold. warm us: the same from the memory cache.""",
    GPU_COLUMNS: """\
peers: their time over texo's in pairs A B B A without gaps, so above 1 texo is faster; NNNu: microseconds
where texo has no time. cool: the same of the best peer, after an idle pause before each block. floor: compulsory bytes
at the rate of a kernel that only streams, with the row's mix of reading and writing; %roof is of that rate.
krn: kernels that a call launches. The last columns are milliseconds of compiling, cold.""",
    REHEARSAL_COLUMNS: """\
how far each contender is off, relative to the norm of what it should give; OFF: too far.""",
}


def write_json(path, machine, rows):
    path.write_text(json.dumps({"machine": machine, "rows": rows}, indent=1) + "\n", encoding="utf-8")


def outcome(row):
    """What a row comes to in four words of a table: FAILED where a result is wrong, MISSED where a bar is, absent where
    there is no time, or a bar could not be measured."""
    met = [v["met"] for v in row["verdicts"]]
    result = "FAILED" if row["wrong"] else "MISSED" if False in met else "absent" if not mine(row) or None in met else "ok"
    figures = [f"{short(mine(row))} us"] if mine(row) else []
    figures += [f"{v['what']} {short(v['got'])}" for v in row["verdicts"]]
    bars = ", ".join(f"{v['what']} {v['sense']} {v['bar']:g}" for v in row["verdicts"])
    name = f"{row['case']}, {row['threads']} threads" if row["threads"] else row["case"]
    return name, result, ", ".join(figures) or "-", bars or "-"


if __name__ == "__main__":
    for found in json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))["rows"]:
        print("\t".join(outcome(found)))
