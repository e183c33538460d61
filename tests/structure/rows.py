"""Every row of every .def table is used and documented. usage: rows.py ROOT

A row is used when its enumerator stands somewhere in C outside the table, or the file it promises is
there. It is documented by its own text columns, or in a page that names it between
backticks. A .def that this file does not know is an error."""
import re
import sys
from pathlib import Path

FOLDERS = ("include", "ir", "frontend", "passes", "codegen", "runtime", "driver")

# table: (macro, what a use looks like, page that documents it or None: the row does, column named there)
TABLES = {
    "ir/ops.def": ("OP", r"\bOP_{id}\b", "ir/README.md", 1),
    "ir/monoids.def": ("MONOID", r"\bMON_{id}\b", "ir/README.md", 1),
    "ir/dtype.def": ("DTYPE", r"\bDT_{id}\b", "ir/README.md", 1),
    "ir/bugs.def": ("INJECTION", r"\bBUG\({id}\)", None, 0),
    "ir/codes.def": ("CODE", r"\bDIAG_{id}\b", None, 0),
    "ir/templates.def": ("TEMPLATE", r"\bTMPL_{id}\b", None, 0),
    "frontend/ast.def": ("AST", r"\bAST_{id}\b", None, 0),
    "passes/passes.def": ("PASS", r"\bPASS_{id}\b", None, 0),
    "passes/remarks.def": ("REMARK", r"\bREMARK_{id}\b", None, 0),
    "driver/api/forms.def": ("FORM", r"\bFORM_{id}\b", None, 2),
}
# Tables whose rows one function walks as a whole; the table says why they are all used.
WALKED = {
    "frontend/calls.def": "sema looks every name up in it",
    "driver/options.def": "the command looks every option up in it",
    "ir/image_ops.def": "the writer and the reader of launch expressions expand every row",
    "ir/image_imports.def": "codegen allows and the loader resolves every row",
    "ir/cpu_features.def": "detection and target selection expand every row",
    "ir/gpus.def": "the figures and the rows are arrays over it; a device's name is looked up in it",
    "ir/tir_lanes.def": "the verifier expands every row",
    "codegen/c_words.def": "names are looked up in it",
    "codegen/link_imports.def": "imports are looked up in it",
    "ir/layout_axes.def": "layouts are arrays over every row",
    "ir/fragments.def": "fragments are looked up in it by name; tests/layout holds a definition against each",
    "codegen/cpus.def": "target names are looked up in it",
    "runtime/cuda_driver.def": "the table of functions expands every row, and the loader looks each up",
    "runtime/cuda_errors.def": "results are looked up in it",
    "codegen/sms.def": "target names are looked up in it",
    "passes/cost/machines.def": "the cost model looks every target's width up in it",
    "codegen/units.def": "the lowering of units is an array over it",
    "passes/tile/approximate.def": "the pass is an array over it",
    "codegen/legal.def": "the legality check expands every row",
}


def rows(path, macro):
    """The argument texts of each row, as written; strings keep their quotes."""
    text = re.sub(r"/\*.*?\*/", "", path.read_text(encoding="utf-8"), flags=re.S)
    for m in re.finditer(rf"^\s*{macro}\(", text, re.M):
        depth, i, start, args, quoted = 1, m.end(), m.end(), [], False
        while depth:
            c = text[i]
            if quoted:
                i += c == "\\"
                quoted = c != '"'
            elif c == '"':
                quoted = True
            elif c in "([{":
                depth += 1
            elif c in ")]}":
                depth -= 1
            if not quoted and ((c == "," and depth == 1) or depth == 0):
                args.append(text[start:i].strip())
                start = i + 1
            i += 1
        yield args


def documented(page, word):
    return any(word in re.split(r"[\s,]+", span) for span in re.findall(r"`+([^`]+)`+", page))


def check_table(root, name, sources):
    macro, use, page, column = TABLES[name]
    bad, n = [], 0
    text = (root / page).read_text(encoding="utf-8").replace("\\|", "|") if page else ""
    for args in rows(root / name, macro):
        n += 1
        pattern = use.format(id=re.escape(args[0]), lower=re.escape(args[0].lower()))
        if not any(re.search(pattern, s) for s in sources):
            bad.append(f"{name}: {args[0]} is used nowhere")
        if page and not documented(text, args[column].strip('"')):
            bad.append(f"{name}: {args[0]} is not documented in {page}")
        if not page and len(args) > 1 and not any(a.startswith('"') and len(a) > 2 for a in args[1:]):
            bad.append(f"{name}: {args[0]} says nothing about itself")
    if n == 0:
        bad.append(f"{name}: no row found")
    return bad, n


def main():
    root = Path(sys.argv[1])
    sources = [f.read_text(encoding="utf-8") for d in FOLDERS for f in (root / d).rglob("*")
               if f.suffix in (".c", ".h", ".y", ".l")]
    sources += [str(f.relative_to(root)) for f in (root / "passes").rglob("*.c")]
    bad, n = [], 0
    for f in sorted(f for d in FOLDERS for f in (root / d).rglob("*.def")):
        name = str(f.relative_to(root))
        if name in WALKED:
            continue
        if name not in TABLES:
            bad.append(f"{name}: a table that tests/structure/rows.py does not know")
            continue
        more, k = check_table(root, name, sources)
        bad += more
        n += k
    print("\n".join(bad))
    print(f"{n} rows, {len(bad)} unused or undocumented")
    return 1 if bad or n == 0 else 0


sys.exit(main())
