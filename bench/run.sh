#!/usr/bin/env bash
# Times texo and its peers in one run and prints one table. usage: bench/run.sh [--setup] [options of suite.py]
#
# The first run puts the peers under build/bench: NumPy and torch from PyPI into a Python environment,
# OpenBLAS and oneDNN from Debian's packages, unpacked and not installed, and two small libraries
# compiled here. PyPI's torch brings CUDA's libraries with it, 5.4 GB on disk; TEXO_BENCH_NO_TORCH=1 does
# without it, and the table says so. TEXO_BUILD is the build of texo that is timed; TEXO_BENCH_ROOM is
# another folder for the peers, to share them among trees.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=${TEXO_BUILD:-$here/../build}
mkdir -p "${TEXO_BENCH_ROOM:-$build/bench}"
room=$(cd "${TEXO_BENCH_ROOM:-$build/bench}" && pwd)
python=/usr/bin/python3

say() { echo "bench: $*" >&2; }

setup_python() {
  [ -x "$room/venv/bin/python3" ] || "$python" -m venv "$room/venv"
  local wanted=$here/requirements.txt
  if [ -n "${TEXO_BENCH_NO_TORCH:-}" ]; then
    grep -v '^torch' "$here/requirements.txt" >"$room/requirements.txt"
    wanted=$room/requirements.txt
  fi
  cmp -s "$wanted" "$room/installed.txt" && return
  if grep -q '^torch' "$wanted" && [ "$(df --output=avail -BG "$room" | tail -1 | tr -dc 0-9)" -lt 10 ]; then
    say "less than 10 GB free under $room: not installing torch (TEXO_BENCH_NO_TORCH=1 goes on without)"
    exit 3
  fi
  say "installing $(grep -v '^#' "$wanted" | tr '\n' ' ')"
  nice "$room/venv/bin/python3" -m pip install --quiet --disable-pip-version-check --no-cache-dir -r "$wanted"
  cp "$wanted" "$room/installed.txt"
}

# What the two need beyond the C and C++ libraries comes along: Fortran's, and an OpenCL loader.
setup_debian() {
  [ -e "$room/debian/done" ] && return
  mkdir -p "$room/debs" "$room/debian"
  say "fetching OpenBLAS and oneDNN from Debian"
  local packages=(libdnnl2 libdnnl-dev libopenblas0-pthread ocl-icd-libopencl1 libgfortran5 libquadmath0)
  (cd "$room/debs" && apt-get download "${packages[@]}") >"$room/debs.log" 2>&1 \
    || { say "apt-get download failed, going on without OpenBLAS and oneDNN: $(tail -1 "$room/debs.log")"; return 0; }
  for d in "$room"/debs/*.deb; do dpkg -x "$d" "$room/debian"; done
  touch "$room/debian/done"
}

setup_native() {
  local cflags=(-O2 -g -std=gnu11 -Wall -Wextra -fPIC -shared) lib=$room/debian/usr/lib/x86_64-linux-gnu
  if [ "$here/native/roof.c" -nt "$room/libroof.so" ]; then
    "${CC:-gcc}" "${cflags[@]}" -pthread "$here/native/roof.c" -o "$room/libroof.so"
  fi
  if [ -e "$room/debian/done" ] && [ "$here/native/onednn.c" -nt "$room/libonednn_shim.so" ]; then
    "${CC:-gcc}" "${cflags[@]}" -fopenmp -isystem "$room/debian/usr/include" "$here/native/onednn.c" \
      -o "$room/libonednn_shim.so" -L"$lib" -ldnnl "-Wl,-rpath,$lib" "-Wl,-rpath-link,$lib" \
      || say "the oneDNN shim does not build, going on without"
  fi
}

setup_python
setup_debian
setup_native
if [ "${1:-}" = --setup ]; then
  exit 0
fi

# Fair to everyone. Memory that a peer frees is used again instead of returned, so that its results cost
# no page faults; large tensors get huge pages, as NumPy's and texo's do. Idle workers stop spinning
# before the next contender's turn.
export MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=17179869184 MALLOC_TOP_PAD_=67108864 THP_MEM_ALLOC_ENABLE=1
export GOMP_SPINCOUNT=20000 OPENBLAS_THREAD_TIMEOUT=20 TORCHINDUCTOR_COMPILE_THREADS=1
export TORCHINDUCTOR_CACHE_DIR=$room/inductor PYTHONDONTWRITEBYTECODE=1
exec "$room/venv/bin/python3" "$here/suite.py" --room "$room" --build "$build" "$@"
