"""Installs to a folder of its own and uses what is there as somebody else's program would.
usage: use.py ROOT BUILD CMAKE CC TORCH_PYTHON    (the last has torch, if any does)"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT, BUILD, CMAKE, CC = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], sys.argv[4]
TORCH_PYTHON = sys.argv[5]
FORMULA = ["y[i] = exp(x[i]) / sum[k](exp(x[k]))", "1", "2", "3"]
RESULT = "0.0900306 0.244728 0.665241\n"
SOFTMAX = "0.090031 0.244728 0.665241 = 1.000000\n0.333333 0.333333 0.333333 = 1.000000\n"
# Names that the compiler has inside; a program that is linked with the archive may have them too.
CLASH = """#include <texo.h>
int arena_alloc(void); int graph_print(void); int rt_fail(void); int unit_check(void);
int arena_alloc(void) { return 1; }
int graph_print(void) { return 2; }
int rt_fail(void) { return 3; }
int unit_check(void) { return 4; }
"""


# A program whose text uses another file.
AGAIN = {
    "CMakeLists.txt": """cmake_minimum_required(VERSION 3.16)
project(again LANGUAGES C)
find_package(texo REQUIRED)
add_executable(again main.c)
texo_add_kernels(again SOURCES kernel.tex OPTIONS --threads=1)
""",
    "kernel.tex": """use "scale.tex"
graph g(x: f32[N]) -> (y: f32[N]) { y[i] = scaled(x[i]) }
""",
    "main.c": """#include <stdio.h>
#include "kernel.h"
int main(void) { float x = 3, y; int s = g(&x, &y, 1, NULL); printf("%g\\n", y); return s; }
""",
}
# The worker is found beside the library.
WORKER = """#include <stdio.h>
#include <string.h>
#include <texo.h>
int main(void) {
	const char *text = "graph g(x: f32[N]) -> (y: f32[N]) { y[i] = 2 * x[i] }";
	texo_ctx_options o = TEXO_INIT(texo_ctx_options);
	texo_ctx *ctx; texo_module *m;
	o.isolation = TEXO_WORKER;
	texo_status s = texo_ctx_create(&o, &ctx);
	if (!s) s = texo_compile_string(ctx, text, strlen(text), 0, 0, &m);
	if (s) return puts(texo_last_error()), 1;
	texo_module_destroy(m); texo_ctx_destroy(ctx);
	return 0;
}
"""


def run(*command, **kw):
    done = subprocess.run([str(c) for c in command], text=True, capture_output=True, timeout=300, **kw)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}"
    return done.stdout


def exports(library):
    lines = run("nm", "-D", "--defined-only", library).splitlines()
    return {line.split()[-1].split("@")[0] for line in lines if line.split()[-2] != "A"}


def needed(library):
    return re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-d", library))


def run_path(library):
    return re.findall(r"\((?:RPATH|RUNPATH)\).*\[(.*)\]", run("readelf", "-d", library))


def declared(header):
    text = re.sub(r"/\*.*?\*/", "", header.read_text(encoding="utf-8"), flags=re.S)
    return set(re.findall(r"^TEXO_API[^;]*?\b(texo_\w+)\(", text, re.M))


def check_libraries(prefix):
    rt, texo = prefix / "lib/libtexo-rt.so.0", prefix / "lib/libtexo.so.0"
    functions = declared(prefix / "include/texo_rt.h")
    private = {f"texo_private_{name}" for name in ("device", "fail", "load", "take_figures", "take_struct")}
    assert exports(rt) == functions | private, exports(rt) ^ (functions | private)
    functions = declared(prefix / "include/texo.h")
    assert exports(texo) == functions and len(functions) > 8, exports(texo) ^ functions
    system = {"libm.so.6", "libc.so.6", "ld-linux-x86-64.so.2"}
    assert set(needed(rt)) <= system, needed(rt)
    assert set(needed(texo)) <= system | {"libtexo-rt.so.0"}, needed(texo)
    for library, name in ((rt, "libtexo-rt.so.0"), (texo, "libtexo.so.0")):
        assert f"[{name}]" in run("readelf", "-d", library)
    # a path to search would be one for the GPU's driver too; libtexo's own part lies beside it
    assert run_path(rt) == [] and run_path(texo) == ["$ORIGIN"], (run_path(rt), run_path(texo))
    assert rt.stat().st_size < 300_000, rt.stat().st_size # as it is installed
    return rt.stat().st_size


def check_texts(prefix):
    """The manual page and the completions are what the command says."""
    for path, *words in (("man/man1/texo.1", "--man"), ("bash-completion/completions/texo", "completion", "bash"),
                         ("zsh/site-functions/_texo", "completion", "zsh"), ("fish/vendor_completions.d/texo.fish", "completion", "fish")):
        assert (prefix / "share" / path).read_text(encoding="utf-8") == run(prefix / "bin/texo", *words), path


def check_headers(prefix, folder):
    for header in ("texo.h", "texo_rt.h"):
        for compiler, language, name in ((CC, "-std=c99", "a.c"), ("c++", "-std=c++11", "a.cc")):
            source = folder / name
            source.write_text(f"#include <{header}>\nint main(void) {{ texo_rt_options o = TEXO_INIT(texo_rt_options); "
                              "return o.struct_size != sizeof o; }\n", encoding="utf-8")
            run(compiler, language, "-pedantic", "-Wall", "-Wextra", "-Werror", f"-I{prefix}/include", "-fsyntax-only", source)


def check_program(program, env=None):
    assert run(program, *FORMULA, env=env) == RESULT
    wrong = subprocess.run([program, "y[i] = x[i] + z[i]", "1"], capture_output=True, text=True, env=env)
    assert wrong.returncode == 1 and "error[E0202]: `z` is not defined here\n  --> formula:3:" in wrong.stderr, wrong.stderr


def pkg_config(prefix, *words):
    env = {**os.environ, "PKG_CONFIG_PATH": str(prefix / "lib/pkgconfig")}
    return run("pkg-config", *words, env=env).split()


def with_pkg_config(prefix, folder):
    program = folder / "formula"
    flags = pkg_config(prefix, "--cflags", "--libs", "texo")
    run(CC, "-Wall", "-Wextra", "-Werror", folder / "formula.c", *flags, "-o", program)
    env = {**os.environ, "LD_LIBRARY_PATH": str(prefix / "lib")}
    check_program(program, env)
    (folder / "worker.c").write_text(WORKER, encoding="utf-8")
    run(CC, folder / "worker.c", *flags, "-o", program)
    run(program, env=env)
    program.unlink()


def with_object(prefix, folder):
    """For every processor that may come, so that one without fused multiply-adds asks libm for them."""
    run(prefix / "bin/texo", "build", folder.parent / "softmax.tex", "-o", folder / "softmax")
    program, env = folder / "object", {**os.environ, "LD_LIBRARY_PATH": str(prefix / "lib")}
    flags = pkg_config(prefix, "--cflags", "--libs", "texo-rt")
    run(CC, folder / "aot_softmax.c", "-I", folder, folder / "softmax.o", *flags, "-o", program)
    assert run(program, env=env) == SOFTMAX
    assert "libtexo-rt.so.0" in needed(program) and "libtexo.so.0" not in needed(program)
    program.unlink()


def with_archives(prefix, folder):
    (folder / "clash.c").write_text(CLASH, encoding="utf-8")
    flags = pkg_config(prefix, "--cflags", "texo")
    system = [f for f in pkg_config(prefix, "--static", "--libs", "texo") if f not in ("-ltexo", "-ltexo-rt")]
    program = folder / "formula"
    run(CC, folder / "formula.c", folder / "clash.c", *flags, prefix / "lib/libtexo.a", prefix / "lib/libtexo-rt.a",
        *system, "-o", program)
    assert not [n for n in needed(program) if "texo" in n]
    check_program(program)
    program.unlink()


def with_cmake(prefix, folder):
    run(CMAKE, "-G", "Ninja", "-S", folder, "-B", folder / "build", f"-DCMAKE_PREFIX_PATH={prefix}", f"-DCMAKE_C_COMPILER={CC}")
    run(CMAKE, "--build", folder / "build")
    check_program(folder / "build/formula")
    assert run(folder / "build/aot_softmax") == SOFTMAX
    assert not [n for n in needed(folder / "build/aot_softmax") if n == "libtexo.so.0"]


def with_cmake_again(prefix, folder):
    """Kernels are made again when a file that their text uses changes."""
    project = folder / "again"
    project.mkdir()
    for name, text in AGAIN.items():
        (project / name).write_text(text, encoding="utf-8")
    for generator in ("Ninja", "Unix Makefiles"):
        (project / "scale.tex").write_text("fn scaled(x) = 2 * x\n", encoding="utf-8")
        build = project / generator.split()[-1]
        run(CMAKE, "-G", generator, "-S", project, "-B", build, f"-DCMAKE_PREFIX_PATH={prefix}", f"-DCMAKE_C_COMPILER={CC}")
        run(CMAKE, "--build", build)
        assert run(build / "again") == "6\n"
        time.sleep(0.1)  # what is newer is told by the file's time
        (project / "scale.tex").write_text("fn scaled(x) = 5 * x\n", encoding="utf-8")
        run(CMAKE, "--build", build)
        assert run(build / "again") == "15\n", generator


def with_cmake_archives(prefix, folder):
    """texo::texo_static and texo::texo_rt_static need no library of ours."""
    project = folder / "static"
    project.mkdir()
    (project / "CMakeLists.txt").write_text(f"""cmake_minimum_required(VERSION 3.16)
project(alone LANGUAGES C)
find_package(texo REQUIRED)
add_executable(formula {folder}/formula.c)
target_link_libraries(formula PRIVATE texo::texo_static)
add_executable(version version.c)
target_link_libraries(version PRIVATE texo::texo_rt_static)
""", encoding="utf-8")
    (project / "version.c").write_text("#include <texo_rt.h>\nint main(void) { texo_rt *rt; texo_rt_options o = TEXO_INIT(texo_rt_options); "
                                       "int s = texo_rt_create(&o, &rt); texo_rt_destroy(rt); return s; }\n", encoding="utf-8")
    run(CMAKE, "-G", "Ninja", "-S", project, "-B", project / "build", f"-DCMAKE_PREFIX_PATH={prefix}", f"-DCMAKE_C_COMPILER={CC}")
    run(CMAKE, "--build", project / "build")
    check_program(project / "build/formula")
    run(project / "build/version")
    for program in ("formula", "version"):
        assert not [n for n in needed(project / "build" / program) if "texo" in n]


def with_cmake_stems(prefix, folder):
    """Two files of one stem are an error that names them, in one call or in two."""
    project = folder / "stems"
    for name in ("a", "b"):
        (project / name).mkdir(parents=True)
        (project / name / "rows.tex").write_text(f"graph {name}(x: f32[N]) -> (y: f32[N]) {{ y[i] = x[i] }}\n", encoding="utf-8")
    (project / "main.c").write_text("int main(void) { return 0; }\n", encoding="utf-8")
    for calls in ("texo_add_kernels(main SOURCES a/rows.tex b/rows.tex)", "texo_add_kernels(main SOURCES a/rows.tex)\ntexo_add_kernels(main SOURCES b/rows.tex)"):
        (project / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.16)\nproject(stems LANGUAGES C)\nfind_package(texo REQUIRED)\n"
                                                f"add_executable(main main.c)\n{calls}\n", encoding="utf-8")
        done = subprocess.run([CMAKE, "-G", "Ninja", "-S", project, "-B", project / "build", f"-DCMAKE_PREFIX_PATH={prefix}",
                               f"-DCMAKE_C_COMPILER={CC}"], capture_output=True, text=True, timeout=300)
        said = " ".join(done.stderr.split())
        assert done.returncode and "a/rows.tex and" in said and "b/rows.tex would both become rows.h" in said, done


def with_python(prefix, folder):
    env = {**os.environ, "PYTHONPATH": str(prefix / "share/texo"), "PYTHONDONTWRITEBYTECODE": "1"}
    env.pop("TEXO_LIBRARY", None)
    program = folder / "formula.py"
    assert run(sys.executable, program, *FORMULA, env=env, cwd=folder) == RESULT
    with_torch = subprocess.run([TORCH_PYTHON, "-c", "import torch"], capture_output=True).returncode == 0
    if with_torch:
        assert run(TORCH_PYTHON, program, "--torch", *FORMULA, env=env, cwd=folder) == RESULT
    wrong = subprocess.run([sys.executable, program, "y[i] = x[i] + z[i]", "1"], capture_output=True, text=True, env=env)
    assert wrong.returncode == 1 and "error[E0202]: `z` is not defined here\n  --> formula:3:" in wrong.stderr, wrong.stderr
    return with_torch


def main():
    with tempfile.TemporaryDirectory(prefix="texo-install-") as temporary:
        first, prefix, folder = Path(temporary, "first"), Path(temporary, "moved"), Path(temporary, "user/embed")
        run(CMAKE, "--install", BUILD, "--prefix", first)
        first.rename(prefix)  # nothing of it knows where it was
        shutil.copytree(ROOT / "examples", folder.parent, dirs_exist_ok=True)
        size = check_libraries(prefix)
        check_texts(prefix)
        check_headers(prefix, folder)
        with_pkg_config(prefix, folder)
        with_object(prefix, folder)
        with_archives(prefix, folder)
        with_cmake(prefix, folder)
        with_cmake_again(prefix, folder)
        with_cmake_archives(prefix, folder)
        with_cmake_stems(prefix, folder)
        with_torch = with_python(prefix, folder)
    print(f"libtexo-rt.so: {size} bytes; built with pkg-config, with the archives, with CMake; run from Python"
          f"{', with torch too' if with_torch else '; torch is not there'}")


main()
