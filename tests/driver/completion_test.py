"""Completion scripts and the manual page say what the help says. usage: completion_test.py TEXO
Bash completes in earnest; zsh, fish and groff read theirs where they are installed."""
import re
import shutil
import subprocess
import sys

TEXO = sys.argv[1]
ASK = """source /dev/stdin; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); compopt() { :; }; _texo
printf '%s\\n' "${COMPREPLY[@]}" """


def texo(*args, ok=0):
    done = subprocess.run([TEXO, *args], capture_output=True, text=True, timeout=60)
    assert done.returncode == ok, done
    return done.stdout if ok == 0 else done.stderr


def options(*command):
    return set(re.findall(r"^ +(?:-., )?--([a-z-]+)", texo(*command, "--help"), re.M))


def commands():
    listed = re.search(r"commands:\n(.*?)\n\n", texo("--help"), re.S).group(1)
    return re.findall(r"^  (\w+)", listed, re.M)


def complete(script, *words):
    done = subprocess.run(["bash", "--norc", "-c", ASK, "bash", "x", *words], input=script, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and not done.stderr, done
    return set(done.stdout.split())


def check_bash():
    script = texo("completion", "bash")
    assert complete(script, "texo", "") == set(commands())
    assert complete(script, "texo", "--") == {f"--{o}=" if o == "color" else f"--{o}" for o in options()}
    for command in commands():
        offered = complete(script, "texo", command, "--")
        assert {o.strip("-=") for o in offered} == options(command), (command, offered)
    for words, want in (("run --fp = st", {"strict"}), ("run --fp st", {"strict"}), ("run --device", {"--device="}), ("build --emit = co", set()),
                        ("check --dev", set()), ("cache pr", {"prune"}), ("completion", {"completion"}), ("cache", {"cache"}),
                        ("-q cache --json in", {"info"}), ("ch", {"check"})):
        assert complete(script, "texo", *words.split()) == want, (words, complete(script, "texo", *words.split()))
    assert complete(script, "texo", "completion", "") == {"bash", "zsh", "fish"}
    assert complete(script, "texo", "run", "--verify", "=") == {"each", "end"}


def check_others():
    for shell, flags in (("zsh", ["-n"]), ("fish", ["--no-execute"])):
        script = texo("completion", shell)
        for command in commands():
            assert f"\n    '{command}:" in script if shell == "zsh" else f" -a {command} " in script, (shell, command)
        for o in options("run"):
            assert f"--{o}" in script or f" -l {o} " in script, (shell, o)
        if shutil.which(shell):
            done = subprocess.run([shell, *flags, "/dev/stdin"], input=script, capture_output=True, text=True, timeout=60)
            assert done.returncode == 0 and not done.stderr, done
    assert "the shells are bash|zsh|fish" in texo("completion", "csh", ok=2)
    assert "needs a shell" in texo("completion", ok=2)


def check_manual():
    page = texo("--man")
    for command in commands():
        assert f"\\fBtexo {command}\\fR" in page, command
        for o in options(command):
            assert "\\fB\\-\\-" + o.replace("-", "\\-") + "\\fR" in page, o
    assert ".SH EXIT STATUS\nExit codes: 0" in page and ".B TEXO_CACHE\n" in page
    if shutil.which("groff"):
        done = subprocess.run(["groff", "-man", "-ww", "-Tascii"], input=page, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0 and not done.stderr, done.stderr
        assert "texo run FILE [name=value...]" in re.sub(".\b", "", done.stdout)


check_bash()
check_others()
check_manual()
print("3 passed, 0 failed")
