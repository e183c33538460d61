#!/usr/bin/env bash
# usage: run.sh FUZZER TOTAL SEEDS...   Runs a libFuzzer program for at least TOTAL executions, on two
# cores, from a corpus made of the .tex files of the SEEDS folders, and fails on any finding.
set -uo pipefail
fuzzer=$1 total=$2
shift 2
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/seeds"
find "$@" -name '*.tex' -size -8k | sort | while read -r f; do
  cp "$f" "$work/seeds/$(echo "$f" | tr / _)"
done
echo "seeds: $(ls "$work/seeds" | wc -l) files"

# What these find, or the size of what they keep, is not asked for here; the rate doubles without.
export ASAN_OPTIONS=detect_stack_use_after_return=0:quarantine_size_mb=8:malloc_context_size=4

start() { # NUMBER EXECUTIONS BYTES: so many, of texts no longer than that, with an own corpus and random seed
  mkdir "$work/corpus$1"
  "$fuzzer" "$work/corpus$1" "$work/seeds" -seed="$1" -runs="$2" -max_len="$3" \
    -timeout=25 -rss_limit_mb=2048 -dict="$here/tex.dict" -use_value_profile=0 -print_final_stats=1 \
    -artifact_prefix="$work/finding-$1-" >"$work/log$1" 2>&1
}
start 1 $((total / 4)) 2048 & # these take as long as
first=$!
start 2 $((total - total / 4)) 512 & # three times as many short ones
second=$!
status=0
wait "$first" || status=1
wait "$second" || status=1

done_runs=0
for k in 1 2; do
  n=$(sed -n 's/^stat::number_of_executed_units: *//p' "$work/log$k")
  done_runs=$((done_runs + ${n:-0}))
  grep -E '^(Done|stat::average_exec_per_sec)' "$work/log$k"
done
echo "executions: $done_runs"
if [ "$status" != 0 ] || [ "$done_runs" -lt "$total" ]; then
  for k in 1 2; do
    tail -n 40 "$work/log$k"
  done
  for f in "$work"/finding-*; do
    [ -e "$f" ] && { echo "finding: $f"; base64 "$f"; }
  done
  exit 1
fi
