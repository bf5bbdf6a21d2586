#!/usr/bin/env bash
# Prepares a folder with the examples of OpenMP and OpenACC compiled for NVIDIA GPUs, for machines with GPUs whose compilers make no such code:
#
#   cmake --build build --target isthmus     the library that they are linked with; the one that is built there is loaded
#   tools/offload.sh [FOLDER [BUILD]]        here, where GCC and Debian's packages are; offload and build unless told. The folder can be carried
#   tools/gpu_run.sh offload                 there
#
# What makes code for GPUs (gcc-N-offload-nvptx, nvptx-tools, of the version of the compiler here) is downloaded and unpacked beside the folder's
# programs only while they are compiled; the folder has the programs, and GCC's run-time library with its plugin for the driver. Nothing
# is installed, and root is not needed. Below 40 MiB, checked at the end.
set -euo pipefail

folder=$(realpath -m "${1:-offload}")
build=$(realpath -m "${2:-build}")
cd "$(dirname "$0")/.."
compiler=${CC:-gcc}
version=$($compiler -dumpversion | cut -d. -f1)
triplet=$($compiler -dumpmachine)
packages=("gcc-$version-offload-nvptx" nvptx-tools libgomp-plugin-nvptx1 libgomp1)

fail() { echo "offload: $*"; exit 1; }
command -v apt-get >/dev/null && command -v dpkg >/dev/null || fail "apt-get and dpkg are needed here; run this on a Debian or Ubuntu machine"
[[ -e $build/lib/libisthmus.so ]] || fail "$build/lib/libisthmus.so is not there; build it first: cmake --build $build --target isthmus"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
(cd "$work" && apt-get -q -o APT::Sandbox::User=root download "${packages[@]}") ||
  fail "a package could not be downloaded; if the lists are old, run apt-get update and try again"
for package in "$work"/*.deb; do dpkg -x "$package" "$work/tree"; done

# The compiler looks for the other one beside its own parts, and that one for its assembler beside itself. Code of sm_80 runs on all later
# devices: the driver compiles it there. The libraries of GCC 12 for devices are of sm_30 (PTX 6.0), which CUDA 13 still takes.
rm -rf "$folder"
mkdir -p "$folder/bin" "$folder/lib"
for name in openmp openacc; do
  directives=-fopenmp
  [[ $name == openacc ]] && directives=-fopenacc
  PATH="$work/tree/usr/bin:$PATH" "$compiler" -std=c11 -O2 -Wall "$directives" -foffload=nvptx-none \
    -foffload-options=nvptx-none=-misa=sm_80 -B"$work/tree/usr/lib/gcc/$triplet/$version/" -no-pie -Iinclude -Iexamples/offload \
    examples/offload/heat.c "examples/offload/heat_$name.c" -o "$folder/bin/heat_$name" -L"$build/lib" -listhmus -lm
  grep -aq '^\.target[[:space:]]*sm_80' "$folder/bin/heat_$name" || fail "heat_$name has no code for devices in it"
done
cp -L "$work/tree/usr/lib/$triplet/libgomp.so.1" "$work/tree/usr/lib/$triplet/libgomp-plugin-nvptx.so.1" "$folder/lib/"
(cd "$work" && ls ./*.deb) | sed 's,^\./,,' >"$folder/PACKAGES"

size=$(du -sm "$folder" | cut -f1)
((size < 40)) || fail "$folder has $size MiB, and 40 are the limit"

# Without a GPU the programs say that they run on the host, with the same run-time library.
for name in openmp openacc; do
  LD_LIBRARY_PATH="$folder/lib:$build/lib" OMP_NUM_THREADS=1 "$folder/bin/heat_$name" 64 64 20 || fail "heat_$name does not run here"
done
echo "offload: $folder has $size MiB; carry it to the machine with GPUs, and run tools/gpu_run.sh offload there"
