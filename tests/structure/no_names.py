"""No operator's name is an identifier of the compiler: what it knows of softmax it reads in the program. The names
are those of the standard library's functions and of what else a library of operators has; a word of an identifier
counts (as in softmax_rows, isSoftmax), words of comments and of texts for people do not. usage: no_names.py ROOT"""
import re
import sys
from pathlib import Path

OTHERS = {"attention", "flash", "matmul", "gemm", "conv", "convolution", "embedding", "layernorm", "rmsnorm", "sdpa",
          "dropout", "rotary", "adam", "crossentropy"}
FOLDERS = ("ir", "passes", "codegen")


def without_texts(text):
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    return re.sub(r'"(?:\\.|[^"\\\n])*"', '""', text)


def speaks_of(identifier, names):
    if identifier.startswith("LLVM"):  # its names are not ours
        return False
    words = {w.lower() for part in identifier.split("_") for w in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", part)}
    return words & names or any(f"_{n}_" in f"_{identifier.lower()}_" for n in names)


def main():
    root = Path(sys.argv[1])
    library = re.sub(r"#.*", "", (root / "frontend/std.tex").read_text(encoding="utf-8"))
    names = set(re.findall(r"^fn (\w+)", library, re.M))
    assert len(names) >= 20, names
    names |= OTHERS
    bad, files = set(), 0
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in (".c", ".h", ".def"):
                continue
            files += 1
            for identifier in set(re.findall(r"[A-Za-z_]\w*", without_texts(path.read_text(encoding="utf-8")))):
                if speaks_of(identifier, names):
                    bad.add(f"{path.relative_to(root)}: {identifier}")
    print("\n".join(sorted(bad)))
    print(f"{len(names)} names, {files} files, {len(bad)} breaches")
    return 1 if bad or files < 100 else 0


sys.exit(main())
