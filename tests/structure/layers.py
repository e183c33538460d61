"""Which folder may include which. usage: layers.py ROOT

The dependency arrows point left only: include, ir, frontend, passes, codegen, runtime, driver;
frontend, passes and codegen do not know one another. An #include, and a link in a CMakeLists.txt,
that breaks the table is an error. `--self-test` shows that breaches are found."""
import re
import sys
from pathlib import Path

FOLDERS = ("include", "ir", "frontend", "passes", "codegen", "runtime", "driver")
MAY_INCLUDE = {
    "include": {"include"},
    "ir": {"ir"},
    "frontend": {"ir", "frontend"},
    "passes": {"ir", "passes"},
    "codegen": {"include", "ir", "codegen", "llvm-c"},
    # tables of plain data beside the artefact's layout: one list of types and of CPU features
    "runtime": {"include", "runtime", "ir/image.h", "ir/dtype.def", "ir/cpu_features.def", "ir/cpu_state.h",
                "ir/image_imports.def", "ir/image_ops.def", "ir/gpus.def", "ir/gpu_rows.h", "ir/bugs.h"},
    "driver": {"include", "ir", "frontend", "passes", "codegen", "runtime", "driver"},
}
PUBLIC = {"texo.h", "texo_rt.h"}
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.M)
LINK = re.compile(r"target_link_libraries\(texo_(\w+)([^)]*)\)")


def breach(folder, path):
    """Why a file in folder may not include path, or None."""
    if path in PUBLIC:
        part = "include"
    elif "/" in path:
        part = path.split("/")[0]
    else:
        return None  # the C library, or a generated file beside it
    if part not in FOLDERS and part not in ("llvm-c", "llvm"):
        return None
    if part in MAY_INCLUDE[folder] or path in MAY_INCLUDE[folder]:
        return None
    return f"{folder} may not include {path}"


def check(root):
    bad, seen = [], 0
    for folder in FOLDERS:
        for f in sorted((root / folder).rglob("*")):
            if f.suffix not in (".c", ".h", ".def", ".y", ".l"):
                continue
            for path in INCLUDE.findall(f.read_text(encoding="utf-8")):
                seen += 1
                why = breach(folder, path)
                if why:
                    bad.append(f"{f.relative_to(root)}: {why}")
        for f in (root / folder).rglob("CMakeLists.txt"):
            for name, libs in LINK.findall(f.read_text(encoding="utf-8")):
                for lib in re.findall(r"texo_(\w+)", libs):
                    if lib in FOLDERS and lib not in MAY_INCLUDE[folder]:
                        bad.append(f"{f.relative_to(root)}: {folder} may not link {lib}")
    return bad, seen


def self_test():
    assert breach("ir", "frontend/ast.h") and breach("ir", "texo_rt.h")
    assert breach("frontend", "passes/pass.h") and breach("passes", "codegen/codegen.h")
    assert breach("frontend", "llvm-c/Core.h") and breach("driver", "llvm-c/Core.h")
    assert breach("runtime", "ir/arena.h") and breach("codegen", "frontend/ast.h")
    assert not breach("runtime", "ir/image.h") and not breach("codegen", "llvm-c/Core.h")
    assert not breach("driver", "frontend/frontend.h") and not breach("ir", "string.h")
    assert not breach("ir", "sys/stat.h")


def main():
    self_test()
    bad, seen = check(Path(sys.argv[1]))
    print("\n".join(bad))
    print(f"{seen} includes, {len(bad)} breaches")
    return 1 if bad or seen == 0 else 0


sys.exit(main())
