"""Every graph of a folder's files with no input given: sizes are chosen that satisfy its facts, random
integers stay inside what they subscript, and compiled code agrees with the evaluator.

    default_inputs.py TEXO FOLDER...
"""
import pathlib
import re
import subprocess
import sys


def problem(texo, file, graph, seed):
    """What went wrong, or None."""
    inputs = re.findall(r"^graph " + graph + r"\((.*?)\)\s*->", file.read_text(), re.M | re.S)
    names = re.findall(r"(\w+): \w+\[", inputs[0])
    args = [texo, "run", str(file), f"--graph={graph}", "--compare=interp", *(f"{n}=random:{seed}" for n in names)]
    ran = subprocess.run(args, capture_output=True, text=True, timeout=120)
    if ran.returncode != 0 or "W0791" in ran.stderr:
        return f"exit {ran.returncode}\n{ran.stdout[:500]}{ran.stderr}"
    return None


def main():
    texo, folders = sys.argv[1], sys.argv[2:]
    failed = ran = 0
    for folder in folders:
        for file in sorted(pathlib.Path(folder).glob("*.tex")):
            for graph in re.findall(r"^graph (\w+)\(", file.read_text(), re.M):
                for seed in range(3):
                    ran += 1
                    wrong = problem(texo, file, graph, seed)
                    if wrong:
                        failed += 1
                        print(f"{file.name}:{graph} with seed {seed}: {wrong}")
    print(f"{ran - failed} passed, {failed} failed")
    return 1 if failed or not ran else 0


if __name__ == "__main__":
    sys.exit(main())
