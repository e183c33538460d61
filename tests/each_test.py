"""Runs the functions of a test program whose names begin with test_, those that take one with a fresh folder, and says how
many failed.

    sys.exit(each_test.main(globals()))              every one
    sys.exit(each_test.main(globals(), sys.argv[3:]))    those whose names have one of these words, if there are any
"""
import inspect
import pathlib
import subprocess
import tempfile

# what a test that does not hold ends with; others are the test's own faults, and end the program
FAILURES = (AssertionError, OSError, KeyError, ValueError, subprocess.SubprocessError)


def main(names, words=()):
    """The program's exit status: 0 if there are tests and all pass."""
    tests = [(n, f) for n, f in names.items() if n.startswith("test_") and (not words or any(w in n for w in words))]
    failed = 0
    for name, test in tests:
        with tempfile.TemporaryDirectory(prefix="texo-test-") as folder:
            try:
                test(*[pathlib.Path(folder)][:len(inspect.signature(test).parameters)])
            except FAILURES as e:
                failed += 1
                print(f"FAILED {name}: {type(e).__name__}: {e}\n")
    print(f"{len(tests) - failed} passed, {failed} failed")
    return 1 if failed or not tests else 0
