#!/usr/bin/env bash
# Runs programs on an NVIDIA GPU and compares every result with the evaluator: the test blocks of each
# file, then each graph on default inputs; rows of each length that has a form of its own; then, where random_test lies
# beside the command, random programs, and some of them under compute-sanitizer; the time of a graph; and, where
# there is torch, gpu-library.py, gpu-sizes.py, gpu-products.py, gpu-convolutions.py, gpu-attention.py, gpu-order.py and gpu-exact.py.
# Each says what it finds as it goes on. The last thing is one table, a row a check and a row a benchmark: its name, how it
# ended, the figure, and the bar that it is held to where it has one.
#   gpu-check.sh [TEXO [FILE.tex...]]   ../bin/texo and the files of ../examples without any; TEXO_DEVICE=cuda:1 is another
#                                       GPU, TEXO_RANDOM=1000 another number of random programs, TEXO_EVERY=64 what
#                                       gpu-exact.py takes of all arguments, TEXO_LENGTHS='1023 4099' other lengths of rows
# Needs the command and the GPU's driver, and nothing else: as a bundle (bundle.sh) has it. Where Python has torch, the
# GPU benchmarks follow; TEXO_BENCH has options for them (bench/suite.py --help), and `off` is without.
# Exit 1 when something differs, 77 without a GPU.
set -u
here=$(dirname "$0")
texo=${1:-$here/../bin/texo}
[ $# -eq 0 ] || shift
device=${TEXO_DEVICE:-cuda}
[ $# -gt 0 ] || set -- "$here"/../examples/*.tex

"$texo" doctor | grep -E '^[a-z]+ +GPU'
log=$(mktemp)
table=$(mktemp)
trap 'rm -f "$log" "$table"' EXIT
worst=0
# NAME RESULT FIGURE [BAR]
row() {
  case $2 in ok | skipped | MISSED | absent) ;; *) worst=1 ;; esac
  printf '%s\t%s\t%s\t%s\n' "$1" "$2" "${3:--}" "${4:--}" >>"$table"
}
# NAME COMMAND...: a check whose last line is its figure, and whose exit code 77 says that something is missing
check() {
  local name=$1 code result=FAILED
  shift
  "$@" 2>&1 | tee "$log"
  code=${PIPESTATUS[0]}
  case $code in 0) result=ok ;; 77) result=skipped ;; 124) echo "$name: ended after its time was up" | tee -a "$log" ;; esac
  row "$name" $result "$(grep . "$log" | tail -n 1)"
}
show_table() {
  awk -F '\t' '
    BEGIN { split("check\tresult\tfigure\tbar", title); for (c = 1; c <= 4; c++) width[c] = length(title[c]) }
    { for (c = 1; c <= 4; c++) { cell[NR, c] = $c; if (length($c) > width[c]) width[c] = length($c) } }
    function line(r, c) {
      for (c = 1; c <= 3; c++) printf "%-" width[c] "s  ", r ? cell[r, c] : title[c]
      print r ? cell[r, 4] : title[4]
    }
    END { print ""; for (r = 0; r <= NR; r++) line(r) }' "$table"
}
"$texo" run --device="$device" --skip-if-missing -q - >"$log" 2>&1 <<'END'
graph probe(x: f32[4]) -> (y: f32[4]) { y[i] = x[i] + 1 }
END
status=$?
if [ $status -ne 0 ]; then
  cat "$log"
  exit $status
fi
: >"$log"
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
  took=$((($(date +%s%N) - start) / 10000000)) result=ok
  [ "$failed" -eq 0 ] && [ $bad -eq 0 ] || result=FAILED
  said=$(printf '%d/%d test blocks, %d/%d graphs on default inputs, %d.%02d s' "$passed" $((passed + failed)) \
    $good $((good + bad)) $((took / 100)) $((took % 100)))
  echo "$(basename "$file"): $said"
  row "$(basename "$file")" $result "$said"
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
  lengths=${TEXO_LENGTHS-1023 4099 16384 20000 32768 65535 100003 131072 200001}
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
    result=ok
    [ ! -s "$log.$n" ] || result=FAILED
    row "rows of $n" $result "$((8 - $(grep -c ' [A-Z]=.*:$' "$log.$n")))/8 graphs"
    cat "$log.$n"
    rm -f "$log.$n"
  done
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
  result=ok passed=0 failed=0
  for pid in $pids; do wait "$pid" || result=FAILED; done
  for k in $(seq "$workers"); do
    grep -E '^seeds|FAILED|mismatch' "$log.$k"
    tail -n 2 "$log.$k"
    said=$(tail -n 1 "$log.$k")
    passed=$((passed + $(expr "$said" : '\([0-9]*\) passed' || true) + 0))
    failed=$((failed + $(expr "$said" : '.* \([0-9]*\) failed' || true) + 0))
    rm -f "$log.$k"
  done
  row 'random programs' $result "$passed passed, $failed failed"
  if command -v compute-sanitizer >/dev/null; then
    for tool in memcheck racecheck; do
      result=ok
      timeout 300 compute-sanitizer --tool $tool --error-exitcode 9 "$random" --cuda --seed 100 --count 30 >"$log" 2>&1 ||
        { result=FAILED && grep -m 20 -E '^=========|FAILED' "$log"; }
      echo "$tool: $(grep -E 'programs compiled|ERROR SUMMARY|RACECHECK SUMMARY|Device not supported' "$log" | tr '\n' ' ')"
      row $tool $result "$(sed -n 's/^=* *\(.*SUMMARY.*\|.*Device not supported.*\)/\1/p' "$log" | tail -n 1)"
    done
  else
    row 'memcheck, racecheck' skipped 'there is no compute-sanitizer'
  fi
else
  row 'random programs' skipped 'there is no random_test, or it is not for this device'
fi
timings=$here/../examples/softmax.tex
if [ -f "$timings" ]; then
  result=ok
  timeout 120 "$texo" bench "$timings" --graph=softmax_rows N=8192 M=4096 --device="$device" >"$log" 2>&1 || result=FAILED
  cat "$log"
  row 'softmax_rows, 8192 x 4096' $result \
    "$(sed -n 's/^\(median [^(]*us\).*/\1/p; s/^\([0-9.]*% of roof\)$/\1/p' "$log" | paste -sd, | sed 's/,/, /')"
fi
if [ "$device" = cuda ] && command -v python3 >/dev/null; then
  for name in library sizes products convolutions attention order; do
    check gpu-$name timeout 600 python3 "$here"/gpu-$name.py "$texo"
  done
  check gpu-exact timeout 600 python3 "$here"/gpu-exact.py "$texo" --every="${TEXO_EVERY:-1}"
else
  row 'gpu-*.py' skipped 'there is no python3, or it is another device'
fi
suite=$here/../bench/suite.py figures=${TEXO_BENCH_JSON:-bench.json}
if [ "${TEXO_BENCH:-}" = off ] || [ "$device" != cuda ] || [ ! -f "$suite" ]; then
  row benchmarks skipped 'left out, or another device'
elif ! python3 -c 'import torch' 2>/dev/null; then
  row benchmarks skipped 'there is no torch'
else
  rm -f "$figures"
  # shellcheck disable=SC2086
  python3 "$suite" --device=cuda --json="$figures" ${TEXO_BENCH:---skip=autotune --total=400} || worst=1
  python3 "$here/../bench/report.py" "$figures" >"$log" || row benchmarks FAILED 'the suite did not end'
  while IFS=$'\t' read -r name result figure bar; do row "$name" "$result" "$figure" "$bar"; done <"$log"
fi
show_table
exit $worst
