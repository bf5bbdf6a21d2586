#!/usr/bin/env bash
# A UCX that knows CUDA, to be carried to a machine without network, whose MPI's own may know no GPU:
#
#   tools/peers/get_ucx.sh peer-ucx                                 here
#   PEER_UCX=$PWD/peer-ucx tools/gpu_run.sh peers                   there
#
# The libraries of PyPI's libucx-cu13, without what debuggers read, some 10 MiB.
set -euo pipefail
wheel=libucx-cu13==1.22.0
folder=$(realpath -m "${1:?usage: get_ucx.sh FOLDER}")
cd "$(dirname "$0")/../.."
python=.venv/bin/python
[[ -x $python ]] || python=python3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$python" -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: --dest "$work" "$wheel" || {
  echo "get_ucx: $wheel could not be fetched from PyPI"
  exit 1
}
"$python" -m zipfile -e "$work"/*.whl "$work/tree"
rm -rf "$folder"
mkdir -p "$folder/lib/ucx"
# take FOLDER files...: one file of each, by the name that others ask for it by; a wheel has three copies.
take() {
  local to=$1 file name
  shift
  for file in "$@"; do
    name=$(readelf -d "$file" | sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p')
    [[ -f $to/${name:=$(basename "$file")} ]] || { cp "$file" "$to/$name" && strip --strip-unneeded "$to/$name"; }
  done
}
take "$folder/lib" "$work"/tree/libucx/lib/libuc*.so "$work"/tree/libucx/lib/libuct.so "$work"/tree/libucx_cu13.libs/*
take "$folder/lib/ucx" "$work"/tree/libucx/lib/ucx/libuc[mt]_*.so
# UCX asks for its modules by their plain names.
for file in "$folder"/lib/ucx/*.so.0; do cp "$file" "${file%.0}"; done
echo "get_ucx: $folder is ready, $(du -sm "$folder" | cut -f1) MiB; PEER_UCX=$folder"
