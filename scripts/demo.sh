#!/usr/bin/env bash
# usage: demo.sh TEXO   Compiles examples/letters.tex for this machine's CPU and runs it on a real text,
# the licence of this project; shows the plan, the times, and the comparison with the evaluator.
set -euo pipefail
texo=$(realpath "$1")
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
.venv/bin/python3 - "$work/text.npy" <<'PYTHON'
import sys
import numpy as np
np.save(sys.argv[1], np.fromfile("LICENSE", np.uint8))
PYTHON

echo "== the program"
sed '/^# test/,$d' examples/letters.tex
echo "== the plan"
"$texo" explain examples/letters.tex N="$(stat -c %s LICENSE)"
echo
echo "== compiled and run on the CPU, every result compared with the evaluator"
"$texo" run examples/letters.tex text=@"$work/text.npy" --compare=interp --time -v \
  --out "count=$work/count.npy" --out "bits=$work/bits.npy" --out "next_bits=$work/next_bits.npy"
echo
echo "== what it found"
.venv/bin/python3 - "$work" <<'PYTHON'
import sys
import numpy as np
count, bits, more = (np.load(f"{sys.argv[1]}/{n}.npy") for n in ("count", "bits", "next_bits"))
text = np.fromfile("LICENSE", np.uint8)
assert np.array_equal(count, np.bincount(text, minlength=256)), "the counts are wrong"
top = sorted(range(256), key=lambda c: -count[c])[:8]
print("most frequent:", "  ".join(f"{chr(c)!r} {count[c]}" for c in top))
print(f"{bits:.3f} bits a byte, {more:.3f} given the byte before (NumPy counts the same)")
PYTHON
