"""Every row of ir/bugs.def is noticed by the project's own tests. usage: every_bug_is_caught.py ROOT BUILD [ROW...]

BUILD is a build of the project with TEXO_BUGS. Each row is switched on alone, and the ladder below is
climbed until a rung fails. Without any bug every rung that failed must pass, or the table would mean
nothing: of programs that take the name of a test the test in which it ended; one that has passed with some other bug need not
show it again. The tests of a bug's own area are
tried first, those of the longest name before those of its folder: most take a tenth of the time of the
programs, which come next, before the tests of other areas. A program of tests ends at its first failure.
Further arguments name the rows to try."""
import os
import re
import resource
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

RUNG_S = 900  # more than thirty times what any rung takes where nothing else runs
SOUND = "no bug"


def rows(root):
    text = re.sub(r"/\*.*?\*/", "", (root / "ir/bugs.def").read_text(encoding="utf-8"), flags=re.S)
    return re.findall(r'^INJECTION\((\w+),\s*"([^"]+)",\s*"([^"]+)"\)', text, re.M)


# The programs that find what the tests of an area leave to them: tried with those.
PROGRAMS = {
    "rules of domains": ("frontend/sema_dom.c", "frontend/sema_frame.c", "frontend/sema_def.c", "runtime/workspace.c"),
    "rules of numbers": ("frontend/sema_type.c",),
    "rules of bounded_ranges": ("passes/schedule/rows/phase",),
    "kernels of hole": ("passes/schedule/rows/phase",),
    "kernels of kernels": ("passes/schedule/rows/turn.c", "passes/fuse/factor_parts.c"),
    "kernels of trail": ("passes/schedule/rows/trail.c",),
    "kernels of stream_refused": ("passes/fuse/stream_group.c",),
    "kernels of twice_scaled": ("passes/schedule/stream/scale.c",),
    "random programs": ("runtime/aside.c",),
}
# The tests beside each folder's or file's code, tried first for its bugs. What takes seconds and is not
# sure to find a bug stands at a longer name.
UNITS = {
    "frontend": (),
    "ir": (("ir/prove_test",), ("ir/index_test",), ("ir/prove_fuzz", 500)),
    "ir/layout": (("layout/layout_form_test",), ("layout/layout_grow_test",)),
    "ir/convert": (("layout/fragment_test",), ("layout/convert_test",)),
    "passes/schedule": (("passes/state_test",), ("fuse/phases_test",), ("passes/random_graph_test", 300, 1)),
    "passes/schedule/bundle": (("passes/bundle_test",),),
    "passes/schedule/contract": (("passes/contraction_test", "test_axes"), ("passes/contraction_test", "test_more_*"),
                                 ("passes/contraction_test",)),
    "passes/schedule/contract/tile.c": (("passes/contraction_test", "test_more_blocks"),),
    "passes/schedule/contract/roles": (("passes/contract_roles_test",),),
    "passes/schedule/contract/roles_expanded": (("passes/contract_expanded_test",),),
    "passes/schedule/contract/roles_thirds": (("passes/contract_roles_test", "thirds_*"),),
    "passes/schedule/contract/roles_join": (("passes/contract_roles_test", "pieces_*"),),
    "passes/schedule/contract/roles_pieces": (("passes/contract_roles_test", "pieces_*"),),
    "passes/schedule/contract/members": (("passes/contract_siblings_test",),),
    "passes/schedule/contract/absent": (("passes/contract_threads_test", "zeros_*"), ("passes/contract_threads_test", "absent_*"), ("passes/contract_threads_test", "products_*")),
    "passes/schedule/contract/strips": (("passes/contract_strips_test",),),
    "passes/schedule/contract/strips_scale": (("passes/contract_strips_test", "many_*"),),
    "passes/schedule/contract/window": (("passes/contract_window_test", "absent_*"), ("passes/contract_window_test",)),
    "passes/schedule/contract/threads": (("passes/contract_pairs_test", "kernels_*"), ("passes/contract_threads_test",)),
    "passes/schedule/contract/threads_panel": (("passes/contract_threads_test", "many_*"),),
    "passes/schedule/contract/threads_finish": (("passes/contract_threads_test", "many_*"),),
    "passes/schedule/contract/halo": (("passes/contract_halo_test", "windows_*"), ("passes/contract_halo_test",)),
    "passes/schedule/contract/warps": (("passes/contract_warps_test",),),
    "passes/schedule/point/dot": (("passes/contraction_test", "test_subnormal_pairs"),),
    "passes/schedule/index": (("random/random_test", "--seed", 200000, "--count", 60, "--blocks", "--first"),),
    "passes/schedule/point/point.c": (("passes/scalar_test",),),
    "passes/schedule/reduction": (("passes/nest_test",),),
    "passes/schedule/reduction/reduction": (("passes/nest_test", "test_arg"), ("passes/nest_test", "test_ranges")),
    "passes/schedule/reduction/block": (("passes/scan_test", "test_blocks"),),
    "passes/schedule/reduction/linear": (("passes/recurrence_test", "test_range"),),
    "passes/schedule/reduction/rank": (("passes/extremes_test",),),
    "passes/schedule/reduction/search": (("tile/arg_search_test",),),
    "passes/schedule/rows/across": (("passes/across_test",),),
    "passes/schedule/rows/keep": (("passes/tile_test",),),
    "passes/schedule/rows/phase": (("passes/columns_test",), ("fuse/phases_test",), ("passes/state_test",),
                                   ("random/random_test", "--seed", 200000, "--count", 60, "--blocks", "--first")),
    "passes/schedule/rows/lists": (("passes/columns_test",),),
    "passes/schedule/rows/once": (("passes/once_test",),),
    "passes/schedule/rows/post": (("passes/scan_test", "test_posts"),),
    "passes/schedule/rows/rows.c": (("passes/state_test",), ("passes/held_rows_test",)),
    "passes/schedule/rows/scan": (("passes/scan_test",),),
    "passes/schedule/rows/tile": (("passes/tile_test",),),
    "passes/schedule/index/scatter": (("passes/scatter_lists_test",),),
    "passes/schedule/stream": (("fuse/stream_pairs_test",),),
    "passes/schedule/stream/quads": (("fuse/stream_blocks_test", Path("tests/fuse/stream.tex"), Path("tests/fuse/scores.tex"), "pooled"),),
    "passes/schedule/stream/warps": (("fuse/stream_blocks_test", Path("tests/fuse/stream.tex"), Path("tests/fuse/scores.tex"), "pooled"),),
    "passes/schedule/stream/roles": (("fuse/stream_blocks_test", Path("tests/fuse/stream.tex"), Path("tests/fuse/scores.tex"), "pooled"),),
    "passes/schedule/stream/roles_apart": (("fuse/stream_blocks_test", Path("tests/fuse/stream.tex"), Path("tests/fuse/scores.tex"), "decaying"),),
    "passes/schedule/stream/roles_beside": (("fuse/stream_blocks_test", Path("tests/fuse/stream.tex"), Path("tests/fuse/scores.tex"), "biased"),),
    "passes/schedule/stream/powers": (("fuse/stream_blocks_test", Path("tests/fuse/stream.tex"), Path("tests/fuse/scores.tex"), "pooled"),),
    "passes/schedule/stream/exact": (("fuse/stream_blocks_test", Path("tests/fuse/stream.tex"), Path("tests/fuse/scores.tex"), "narrow"),),
    "passes/schedule/stream/tasks": (("fuse/stream_blocks_test", Path("tests/fuse/stream.tex"), Path("tests/fuse/scores.tex"), "thirds"),),
    "passes/schedule/pairwise": (("fuse/stream_blocks_test", "--pairwise", Path("tests/fuse/pairwise.tex")),),
    "passes/fuse": (("fuse/phases_test",),),
    "passes/fuse/cancel": (("fuse/cascade_test",),),
    "passes/fuse/derive_extreme": (("fuse/cascade_test",),),
    "passes/fuse/split": (("passes/pass_graphs",),),
    "passes/fuse/split_cascade": (("passes/cascade_parts_test",),),
    "passes": (("passes/manager_test",), ("passes/pass_bodies",), ("passes/pass_graphs",)),
    "passes/tile": (("tile/contract_test",),),
    "passes/tile/cleanup": (("tile/cleanup_test",),),
    "passes/tile/exp.c": (("math/special_test",),),
    "passes/tile/expand_narrow": (("math/narrow_test",),),
    "passes/tile/approximate": (("math/approximate_test",),),
    "passes/tile/narrow_divide": (("tile/narrow_divide_test",),),
    "passes/tile/legalize_casts": (("math/cast_test",),),
    "passes/tile/spread": (("tile/spread_test",),),
    "passes/tile/spread_next": (("passes/across_test",),),
    "passes/tile/whole_power": (("math/constant_pow_test",),),
    "codegen": (("codegen/control_test",), ("codegen/ops_test", "host")),
    "codegen/nvptx_steps": (("codegen/steps_test",),),
    "codegen/nvptx_exact": (("codegen/quotients_test",),),
    "codegen/lower_roles": (("codegen/take_ptx_test",),),
    "codegen/lower_memory": (("codegen/memory_test", "host"),),
    "codegen/lower_stream": (("codegen/memory_test", "host"),),
    "runtime": (("runtime/launch_test",), ("runtime/threads_test",)),
    "runtime/map_rows": (("runtime/map_rows_test",),),
    "driver/cache": (("cache/entry_test",), ("cache/store_test", 10)),
}


def ladder(root, build):
    """(areas, name, programs, command): from what says most in the least time to what takes longest."""
    texo, t = build / "driver/texo", build / "tests"
    rungs = [((), "programs that must fail", len(list((root / "tests/lang/must_fail").glob("*.tex"))),
              (t / "lang/must_fail", root / "tests/lang/must_fail"))]
    for f in sorted((root / "tests/lang/rules").glob("*.tex")):
        rungs.append(((), f"rules of {f.stem}", 1, (texo, "test", "--device=cpu", f)))
    for f in sorted((root / "tests/fuse").glob("*.tex")):
        rungs.append(((), f"kernels of {f.stem}", 1, (texo, "test", "--device=cpu", f)))
    rungs.append(((), "random programs", 40, (t / "random/random_test", "--seed", 1000, "--count", 40, "--cpu", "--first")))
    for unit in dict.fromkeys(unit for units in UNITS.values() for unit in units):
        areas = tuple(area for area, units in UNITS.items() if unit in units)
        rungs.append((areas, " ".join(map(str, unit)), 0, (t / unit[0], *(root / a if isinstance(a, Path) else a for a in unit[1:]))))
    for f in sorted((root / "examples").glob("*.tex")):
        rungs.append(((), f"example {f.stem}", 1, (texo, "test", "--device=cpu", f)))
    rungs.append(((), "more random programs", 300,
                  (t / "random/random_test", "--seed", 7000, "--count", 300, "--cpu", "--first")))
    return [(areas + PROGRAMS.get(name, ()), name, n, [str(c) for c in command]) for areas, name, n, command in rungs]


def takes_names(root):
    """The programs of tests whose argument may be the name of one."""
    return {f"{f.parent.name}/{f.stem}" for f in (root / "tests").glob("*/*_test.c") if "case_choose(argc, argv)" in f.read_text(encoding="utf-8")}


def holds(command, bug):
    """(None when the command passes with this bug, else how it ended; what it said)."""
    env = {k: v for k, v in os.environ.items() if k != "TEXO_BUG"}
    if bug != SOUND:
        env |= {"TEXO_BUG": bug, "CMOCKA_TEST_ABORT": "1"}
    try:
        run = subprocess.run(command, env=env, capture_output=True, timeout=RUNG_S)
    except subprocess.TimeoutExpired:
        return "does not end", ""
    how = "fails" if run.returncode > 0 else f"signal {-run.returncode}" if run.returncode else None
    return how, run.stdout.decode(errors="replace")


def begun_last(said):
    """The test of a program that ended in it."""
    names = re.findall(r"^\[ RUN      \] (\w+)$", said, re.M)
    return names[-1] if names else None


def holds_alone(command, test):
    """The same without a bug, of this test of the program alone; of all of it where that is None."""
    end, said = holds([command[0], test] if test else command, SOUND)
    return end if end or not test or f"[       OK ] {test}\n" in said else "has no such test"


def nearness(rung, where):
    """How much of the bug's place the rung's area names; 0 for what belongs to others."""
    return max((len(a) for a in rung[0] if where.startswith(a)), default=0)


def climb(rungs, bug, where, passed):
    """(rung, how it ended, in which test, programs that passed before, seconds) for the first rung that fails; `passed` takes the
    names of those before it."""
    programs, start = 0, time.monotonic()
    for rung in sorted(rungs, key=lambda r: -nearness(r, where)):
        end, said = holds(rung[3], bug)
        if end:
            return rung, end, begun_last(said) if end.startswith("signal") else None, programs, time.monotonic() - start
        passed.add(rung[1])
        programs += rung[2]
    return None, "", None, programs, time.monotonic() - start


def main():
    root, build = Path(sys.argv[1]), Path(sys.argv[2])
    rungs, passed, needed, bad, by_name = ladder(root, build), set(), {}, [], takes_names(root)
    bugs = [b for b in rows(root) if len(sys.argv) == 3 or b[0] in sys.argv[3:]]
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # many a bug ends in a signal
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        caught = pool.map(lambda b: climb(rungs, b[0], b[1], passed), bugs)
        row = "{:26} {:33} {:" + str(max(len(r[1]) for r in rungs)) + "} {:13} {:>15} {:>8}"
        print(row.format("bug", "where", "caught by", "how", "programs before", "seconds"))
        for (bug, where, what), (rung, end, test, programs, seconds) in zip(bugs, caught):
            name = rung[1] if rung else "NOTHING"
            print(row.format(bug, where, name, end, programs, f"{seconds:.1f}"), flush=True)
            if not rung:
                bad.append(f"{bug}: {what}: nothing notices")
            else:
                needed[rung[1], test if rung[1].split()[0] in by_name else None] = rung[3]
        doubted = [n for n in needed if n[0] not in passed]
        sound = list(pool.map(lambda n: holds_alone(needed[n], n[1]), doubted))
    print(f"{len(bugs) - len(bad)} of {len(bugs)} bugs caught; of {len(needed)} rungs, or tests of them, {len(needed) - len(doubted)} pass "
          f"with another bug, {sound.count(None)} without any")
    bad += [f"without a bug: {name} {test or ''} {end}" for (name, test), end in zip(doubted, sound) if end]
    print("\n".join(bad))
    return 1 if bad or (len(sys.argv) == 3 and len(bugs) < 30) else 0


if __name__ == "__main__":
    sys.exit(main())
