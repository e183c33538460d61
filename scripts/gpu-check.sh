#!/usr/bin/env bash
# Runs programs on an NVIDIA GPU and compares every result with the evaluator: the test blocks of each
# file, then each graph on default inputs. Prints a table, a line a file, and the failures; a line for rows
# of each length that has a form of its own; then, where random_test lies beside the command, what it says
# about random programs, and about some of them under compute-sanitizer; the times of some graphs; and, where
# there is torch, what gpu-library.py, gpu-sizes.py, gpu-products.py, gpu-convolutions.py, gpu-attention.py and gpu-exact.py say.
#   gpu-check.sh [TEXO [FILE.tex...]]   ../bin/texo and the files of ../examples without any; TEXO_DEVICE=cuda:1 is another
#                                       GPU, TEXO_RANDOM=1000 another number of random programs, TEXO_EVERY=64 what
#                                       gpu-exact.py takes of all arguments
# Needs the command and the GPU's driver, and nothing else: as a bundle (bundle.sh) has it. Where Python has torch, the
# GPU benchmarks follow, another table; TEXO_BENCH has options for them (bench/suite.py --help), and `off` is without.
# Exit 1 when something differs, 77 without a GPU.
set -u
here=$(dirname "$0")
texo=${1:-$here/../bin/texo}
[ $# -eq 0 ] || shift
device=${TEXO_DEVICE:-cuda}
[ $# -gt 0 ] || set -- "$here"/../examples/*.tex

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
# GRAPH FILE DIM=N...: on default inputs, against the evaluator
graph_is_right() {
  local graph=$1 file=$2 said
  shift 2
  said=$(timeout 300 "$texo" run "$here/../examples/$file.tex" --graph="$graph" --device="$device" --compare=interp -q "$@" 2>&1) && return
  printf '%s %s:\n%s\n' "$graph" "$*" "$(printf '%s\n' "$said" | tail -n 4)"
}
if [ -f "$here/../examples/softmax.tex" ]; then
  lengths='1023 4099 16384 20000 32768 65535 100003 131072 200001'
  for n in $lengths; do
    {
      graph_is_right softmax_rows softmax N=3 M="$n"
      graph_is_right cross_entropy_logits cross_entropy T=3 V="$n"
      graph_is_right layer_norm norms N=3 D="$n"
      graph_is_right rms_norm norms N=3 D="$n"
      graph_is_right quantise_rows quantise M=3 K="$n"
      graph_is_right nearest selection N=2 K="$n" D=2
      graph_is_right log_softmax_columns softmax N="$n" M=3
      graph_is_right sparse_update scatter V=50 T="$n" D=5
    } >"$log.$n" 2>&1 &
  done
  wait
  for n in $lengths; do
    [ ! -s "$log.$n" ] || worst=1
    cat "$log.$n"
    rm -f "$log.$n"
  done
  echo "rows, columns and scatters of $lengths: compared"
fi

random=$(dirname "$texo")/random_test
if [ -x "$random" ] && [ "$device" = cuda ]; then
  workers=$(nproc)
  [ "$workers" -le 12 ] || workers=12
  each=$(((${TEXO_RANDOM:-5000} + workers - 1) / workers)) pids=
  for k in $(seq "$workers"); do
    timeout 900 "$random" --cuda --seed $((1 + (k - 1) * each)) --count "$each" >"$log.$k" 2>&1 &
    pids="$pids $!"
  done
  for pid in $pids; do wait "$pid" || worst=1; done
  for k in $(seq "$workers"); do
    grep -E '^seeds|FAILED|mismatch' "$log.$k"
    tail -n 2 "$log.$k"
    rm -f "$log.$k"
  done
  if command -v compute-sanitizer >/dev/null; then
    for tool in memcheck racecheck; do
      timeout 300 compute-sanitizer --tool $tool --error-exitcode 9 "$random" --cuda --seed 100 --count 30 >"$log" 2>&1 ||
        { worst=1 && grep -m 20 -E '^=========|FAILED' "$log"; }
      echo "$tool: $(grep -E 'programs compiled|ERROR SUMMARY|RACECHECK SUMMARY|Device not supported' "$log" | tr '\n' ' ')"
    done
  else
    echo 'skipped: there is no compute-sanitizer'
  fi
fi
timings=$here/../examples/softmax.tex
if [ -f "$timings" ]; then
  timeout 120 "$texo" bench "$timings" --graph=softmax_rows N=8192 M=4096 --device="$device" || worst=1
fi
if [ "$device" = cuda ] && command -v python3 >/dev/null; then
  timeout 600 python3 "$here"/gpu-library.py "$texo"
  case $? in 0 | 77) ;; *) worst=1 ;; esac
  timeout 600 python3 "$here"/gpu-sizes.py "$texo"
  case $? in 0 | 77) ;; *) worst=1 ;; esac
  timeout 600 python3 "$here"/gpu-products.py "$texo"
  case $? in 0 | 77) ;; *) worst=1 ;; esac
  timeout 600 python3 "$here"/gpu-convolutions.py "$texo"
  case $? in 0 | 77) ;; *) worst=1 ;; esac
  timeout 600 python3 "$here"/gpu-attention.py "$texo"
  case $? in 0 | 77) ;; *) worst=1 ;; esac
  timeout 600 python3 "$here"/gpu-exact.py "$texo" --every="${TEXO_EVERY:-1}"
  case $? in 0 | 77) ;; *) worst=1 ;; esac
fi
suite=$here/../bench/suite.py
if [ "${TEXO_BENCH:-}" != off ] && [ "$device" = cuda ] && [ -f "$suite" ] && python3 -c 'import torch' 2>/dev/null; then
  # shellcheck disable=SC2086
  python3 "$suite" --device=cuda --json="${TEXO_BENCH_JSON:-bench.json}" ${TEXO_BENCH:---skip=autotune --total=400} || worst=1
fi
exit $worst
