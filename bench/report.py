"""The table and the JSON of a run."""
import json

PEER_COLUMNS = ("torch", "compile", "numpy", "openblas", "onednn")


def floor_seconds(row):
    """The larger of compulsory bytes at the triad's rate and arithmetic at the peak rate."""
    return max(row["bytes"] / (row["roof_gbps"] * 1e9), row["flops"] / (row["peak_gflops"] * 1e9) if row["peak_gflops"] else 0)


def finish(row):
    """Adds what follows from the times: floor, rates, ratios, verdicts."""
    row["floor_us"] = floor_seconds(row) * 1e6
    mine = row["us"].get("texo", {}).get("median")
    row["ratio"] = {p: t["median"] / mine for p, t in row["us"].items() if p != "texo"} if mine else {}
    if mine:
        row["gbps"] = row["bytes"] / mine * 1e-3
        row["gflops"] = row["flops"] / mine * 1e-3
        row["of_roof"] = row["gbps"] / row["roof_gbps"]
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


def verdict_text(row):
    parts = []
    for v in row["verdicts"]:
        word = "absent" if v["met"] is None else "ok" if v["met"] else "MISSED"
        parts.append(f"{v['what']} {v['sense']} {v['bar']:g} {word}")
    return ", ".join(parts)


HEAD = (f"{'case':34} {'thr':>3} {'floor us':>10} {'texo us':>11} {'%floor':>6} {'%roof':>6} {'GB/s':>7} {'GFLOP/s':>8}"
        + "".join(f" {p:>9}" for p in PEER_COLUMNS) + f" {'krn':>3} {'jit ms':>7} {'warm us':>7}  bars")


def line(row):
    mine = row["us"].get("texo")
    cells = f"{row['case']:34} {row['threads']:3} {short(row['floor_us']):>10} "
    if mine:
        cells += f"{short(mine['median']):>11} {100 * row['of_floor']:6.0f} {100 * row['of_roof']:6.0f} {short(row['gbps']):>7} {short(row['gflops']):>8}"
    else:
        cells += f"{'-':>11} {'-':>6} {'-':>6} {'-':>7} {'-':>8}"
    for p in PEER_COLUMNS:
        if p in row["ratio"]:
            cells += f" {row['ratio'][p]:8.2f}x"
        elif p in row["us"]:
            cells += f" {short(row['us'][p]['median']):>8}u"
        else:
            cells += f" {'-':>9}"
    jit = row["compile_ms"].get("texo")
    return cells + f" {row.get('kernels', '-'):>3} {short(jit):>7} {short(row.get('again_us')):>7}  {verdict_text(row)}"


def notes(row, rounds):
    """What a reader must know about a row besides its figures."""
    for name, why in row["absent"].items():
        yield f"{row['case']}, {row['threads']} threads: {name}: {why}"
    for name, e in row["wrong"].items():
        yield f"{row['case']}, {row['threads']} threads: {name} is off by {e:.1e} and was not timed"
    for name, t in row["us"].items():
        if t["rounds"] == 0:
            yield f"{row['case']}, {row['threads']} threads: {name} is timed by its checked call alone, {t['median'] / 1e6:.2g} s"
        elif t["rounds"] < rounds:
            yield f"{row['case']}, {row['threads']} threads: {name} had {t['rounds']} rounds only: a call takes {t['median'] / 1e6:.2g} s"


def summary(rows):
    judged = [v["met"] for r in rows for v in r["verdicts"]]
    return f"{judged.count(True)} bars met, {judged.count(False)} missed, {judged.count(None)} not measured, {len(rows)} rows"


LEGEND = """\
peers: their median time over texo's, so above 1 texo is faster; NNNu: microseconds where texo has no time.
floor: the larger of compulsory bytes at the rate of a triad of as many bytes, measured between the
rounds of the row, and arithmetic at the measured peak. %roof: of the triad's rate, on compulsory bytes.
krn: kernels of the graph. jit ms: compiling the graph, cold. warm us: the same from the memory cache."""


def write_json(path, machine, rows):
    path.write_text(json.dumps({"machine": machine, "rows": rows}, indent=1) + "\n", encoding="utf-8")
