#!/usr/bin/env bash
# Makes one folder, and a .tar.xz of it, that runs wherever it is unpacked, on any x86-64 Linux with
# Debian 12's glibc or newer, without a package: the command, both libraries, the Python module, the
# examples, and what checks a GPU (scripts/gpu-check.sh in it).
#   bundle.sh BUILD OUT [--no-archive]     BUILD: where the tree was configured; OUT: a folder for the two
set -euo pipefail
build=${1:?usage: bundle.sh BUILD OUT [--no-archive]} out=${2:?usage: bundle.sh BUILD OUT [--no-archive]}
version=$(sed -n 's/^CMAKE_PROJECT_VERSION:STATIC=//p' "$build/CMakeCache.txt")
name=texo-$version-x86_64-linux
cmake --build "$build" --target bundle
rm -rf "${out:?}/$name"
cmake --install "$build" --component bundle --strip --prefix "$(mkdir -p "$out" && cd "$out" && pwd)/$name" >/dev/null
[ "${3:-}" = --no-archive ] && exit
# the same bytes for the same build
tar -C "$out" --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 --mode=go-w -c "$name" |
  xz --x86 --lzma2=preset=9 -T1 >"$out/$name.tar.xz"
echo "$out/$name.tar.xz: $(stat -c %s "$out/$name.tar.xz") bytes"
