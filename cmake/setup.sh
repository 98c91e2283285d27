#!/usr/bin/env bash
# Installs all that a build needs, once, outside the checkout; later calls see that and return.
#
#   cmake/setup.sh core    what the presets cpu, asan and tsan need
#   cmake/setup.sh full    that, CUDA's tool chain and LibTorch
#
# The packages go to ${FOREBAY_DEPS:-~/.cache/forebay}/<kind>-<hash of the pins>; the link .deps-<kind> in
# the checkout points there, and cmake/dependencies.cmake looks nowhere else but in the system.
set -euo pipefail
cd "$(dirname "$0")/.."
kind=${1:-full}
case $kind in core|full) ;; *) echo "setup.sh: unknown kind '$kind'; use core or full" >&2; exit 2 ;; esac

packages=(g++ make python3-venv libfmt-dev libyaml-cpp-dev nlohmann-json3-dev libcli11-dev libgtest-dev libbenchmark-dev)
missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
done
if ((${#missing[@]})); then
  if ((EUID != 0)); then
    echo "setup.sh: as root, run: apt-get install ${missing[*]}" >&2
    exit 1
  fi
  export DEBIAN_FRONTEND=noninteractive
  apt-get install -y -q "${missing[@]}" >/dev/null 2>&1 ||
    { apt-get update -q >/dev/null && apt-get install -y -q "${missing[@]}" >/dev/null; }
fi

pins=$(cat cmake/requirements*.txt cmake/setup.sh <(/usr/bin/python3 --version) | sha256sum | cut -c1-12)
home=${FOREBAY_DEPS:-${XDG_CACHE_HOME:-$HOME/.cache}/forebay}
folder=$home/$kind-$pins
ln -sfn "$folder" ".deps-$kind"
[[ -e $folder/complete ]] && exit 0

mkdir -p "$home"
exec 9>"$home/lock"
flock 9  # a second clone waits here and then finds the work done
[[ -e $folder/complete ]] && exit 0
echo "setup.sh: installing pinned packages into $folder"
rm -rf "$folder"
/usr/bin/python3 -m venv "$folder"
pip() { "$folder/bin/python" -m pip --disable-pip-version-check --quiet "$@"; }

requirements=(-r cmake/requirements.txt)
[[ $kind == full ]] && requirements+=(-r cmake/requirements-cuda.txt)
pip install --only-binary :all: "${requirements[@]}" &
wheels=$!
pip install --only-binary :all: --no-deps --target "$folder/single" -r cmake/requirements-nodeps.txt

# ducc0 has no package with a C++ library: build its FFT once, with nothing of it visible to LibTorch.
build_ducc0() {
  local archive source
  pip download --no-deps --no-binary ducc0 -d "$folder/src" ducc0==0.42.0
  archive=$(echo "$folder"/src/ducc0-*.tar.gz)
  tar -xzf "$archive" -C "$folder/src"
  source=${archive%.tar.gz}
  # Built without threads of its own, ducc0 has no lock around its cache of plans; we call it from many threads.
  sed -i -e '0,/#include/s//#include <mutex>\n#include/' -e 's/static Mutex mut;/static std::mutex mut;/' \
    -e 's/LockGuard lock(mut);/std::lock_guard<std::mutex> lock(mut);/' "$source/src/ducc0/fft/fftnd_impl.h"
  grep -q 'static std::mutex mut;' "$source/src/ducc0/fft/fftnd_impl.h"
  mkdir -p "$folder/ducc0/include" "$folder/ducc0/lib" "$folder/src/objects"
  (cd "$source/src" && find ducc0 -name '*.h' -exec cp --parents {} "$folder/ducc0/include" \;)
  for file in fft/fft_inst1 fft/fft_inst2 infra/threading infra/string_utils infra/mav; do
    echo "$file"
  done | xargs -P "$(nproc)" -I{} sh -c \
    'g++ -std=c++17 -O3 -fPIC -fvisibility=hidden -DDUCC0_NO_LOWLEVEL_THREADING -I"$0/src" \
       -c "$0/src/ducc0/{}.cc" -o "$1/$(basename {}).o"' "$source" "$folder/src/objects"
  ar rcs "$folder/ducc0/lib/libducc0.a" "$folder"/src/objects/*.o
  rm -rf "$folder/src"
}
build_ducc0
wait "$wheels"

# The CUDA wheels ship libX.so.N only, under lib; a toolkit has libX.so and lib64 as well.
for toolkit in "$folder"/lib/python3*/site-packages/nvidia/cu13; do
  [[ -d $toolkit ]] || continue
  ln -sfn lib "$toolkit/lib64"
  for library in "$toolkit"/lib/lib*.so.*; do
    ln -sf "$(basename "$library")" "${library%%.so.*}.so"
  done
done
touch "$folder/complete"
