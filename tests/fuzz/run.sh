#!/usr/bin/env bash
# usage: run.sh FUZZER RUNS BYTES SEED SEEDS...   Runs a libFuzzer program for at least RUNS executions, with this random
# seed, of texts no longer than BYTES, from a corpus made of the .tex files of the SEEDS folders, and fails on any finding.
set -uo pipefail
fuzzer=$1 total=$2 bytes=$3 seed=$4
shift 4
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

mkdir "$work/corpus"
status=0
"$fuzzer" "$work/corpus" "$work/seeds" -seed="$seed" -runs="$total" -max_len="$bytes" \
  -timeout=25 -rss_limit_mb=2048 -dict="$here/tex.dict" -use_value_profile=0 -print_final_stats=1 \
  -artifact_prefix="$work/finding-" >"$work/log" 2>&1 || status=1

done_runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$work/log")
grep -E '^(Done|stat::average_exec_per_sec)' "$work/log"
echo "executions: ${done_runs:-0}"
if [ "$status" != 0 ] || [ "${done_runs:-0}" -lt "$total" ]; then
  tail -n 40 "$work/log"
  for f in "$work"/finding-*; do
    [ -e "$f" ] && { echo "finding: $f"; base64 "$f"; }
  done
  exit 1
fi
