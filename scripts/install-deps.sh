#!/usr/bin/env bash
# Installs what building and testing texo needs on Debian 12, and only what is missing: packages from
# Debian (as root, or with sudo), and a Python environment in .venv for the tests, with NumPy and,
# where there is no CUDA toolkit, ptxas. With everything there it does nothing and needs no network.
# usage: install-deps.sh [tests]    with torch, which only tests want
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(
  cmake ninja-build gcc g++ make flex bison ccache
  llvm-22-dev llvm-22-tools clang-22 libclang-rt-22-dev
  zlib1g-dev libzstd-dev libstdc++-12-dev libjansson-dev
  libcmocka-dev doxygen lld pkgconf python3 python3-venv
)
# Debian's torch is for processors alone; PyPI's comes with 5 GB of CUDA.
[ "${1-}" != tests ] || packages+=(python3-torch)

missing=()
for p in "${packages[@]}"; do
  dpkg-query -W -f '${db:Status-Status}\n' "$p" 2>/dev/null | grep -qx installed || missing+=("$p")
done

if [ ${#missing[@]} -gt 0 ]; then
  echo "installing: ${missing[*]}"
  as_root=()
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || { echo "run as root, or install sudo, to get: ${missing[*]}" >&2; exit 1; }
    as_root=(sudo)
  fi
  "${as_root[@]}" apt-get update -qq
  for p in "${missing[@]}"; do
    if [ -z "$(apt-cache policy "$p" | sed -n 's/^ *Candidate: //p' | grep -v '(none)')" ]; then
      echo "no package $p is to be had here." >&2
      case $p in *22*)
        echo "LLVM 22 comes with Debian 12's updates: enable the suites bookworm-updates and bookworm-security" >&2
        echo "in apt's sources and run this again." >&2;;
      esac
      exit 1
    fi
  done
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"
fi

python=/usr/bin/python3
[ -x .venv/bin/python3 ] || "$python" -m venv .venv
wanted=()
.venv/bin/python3 -c 'import numpy' 2>/dev/null || wanted+=('numpy>=1.26,<3')
has_ptxas() {
  command -v ptxas >/dev/null || [ -x "${CUDA_HOME:-/usr/local/cuda}/bin/ptxas" ] \
    || ls .venv/lib/python3*/site-packages/nvidia/*/bin/ptxas >/dev/null 2>&1
}
has_ptxas || wanted+=('nvidia-cuda-nvcc==13.*')
if [ ${#wanted[@]} -gt 0 ]; then
  echo "installing into .venv: ${wanted[*]}"
  .venv/bin/python3 -m pip install --quiet --disable-pip-version-check "${wanted[@]}"
fi
