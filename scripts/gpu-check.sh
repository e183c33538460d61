#!/usr/bin/env bash
# Runs programs on an NVIDIA GPU and compares every result with the evaluator: the test blocks of each
# file, then each graph on default inputs. Prints a table, a line a file, and the failures.
#   gpu-check.sh TEXO [FILE.tex...]     the files of ../examples without any; TEXO_DEVICE=cuda:1 is another GPU
# Needs the command and the GPU's driver, and nothing else. Exit 1 when something differs, 77 without a GPU.
set -u
texo=${1:?usage: gpu-check.sh TEXO [FILE.tex...]}
shift
device=${TEXO_DEVICE:-cuda}
[ $# -gt 0 ] || set -- "$(dirname "$0")"/../examples/*.tex

"$texo" doctor | grep -E '^[a-z]+ +GPU'
log=$(mktemp)
trap 'rm -f "$log"' EXIT
"$texo" run --device="$device" --skip-if-missing -q - >"$log" 2>&1 <<'END'
graph probe(x: f32[4]) -> (y: f32[4]) { y[i] = x[i] + 1 }
END
status=$?
if [ $status -ne 0 ]; then
  cat "$log"
  exit $status
fi
: >"$log"
printf '%-28s %14s %14s %8s\n' file 'test blocks' 'default inputs' seconds
worst=0
for file; do
  start=$(date +%s%N)
  blocks=$(timeout 300 "$texo" test --device="$device" "$file" 2>>"$log" | tail -n 1)
  passed=$(expr "$blocks" : '\([0-9]*\) passed') failed=$(expr "$blocks" : '.* \([0-9]*\) failed')
  if [ -z "$passed" ]; then
    echo "$file: the tests did not end" >>"$log"
    passed=0 failed=1
  fi
  good=0 bad=0
  for graph in $(sed -n 's/^ *graph  *\([A-Za-z_][A-Za-z_0-9]*\).*/\1/p' "$file"); do
    said=$(timeout 300 "$texo" run "$file" --graph="$graph" --device="$device" --compare=interp -q 2>&1)
    if [ $? -eq 0 ]; then
      good=$((good + 1))
    else
      bad=$((bad + 1))
      printf '%s, graph %s:\n%s\n' "$file" "$graph" "$(printf '%s\n' "$said" | grep -v '^  ' | tail -n 4)" >>"$log"
    fi
  done
  [ "$failed" -eq 0 ] && [ $bad -eq 0 ] || worst=1
  took=$((($(date +%s%N) - start) / 10000000))
  printf '%-28s %7d/%-6d %7d/%-6d %5d.%02d\n' "$(basename "$file")" "$passed" $((passed + failed)) $good $((good + bad)) \
    $((took / 100)) $((took % 100))
done
cat "$log"
exit $worst
