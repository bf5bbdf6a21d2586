#!/usr/bin/env bash
# The tests of shmem4py, OpenSHMEM's binding to Python, compiled with oshcc: a verification that others wrote. Needs PyPI.
#
#   tools/peers/shmem4py.sh [BUILD] [PES...]    BUILD: a folder in which isthmus was built (build); on 1 2 3 4 PEs
#
# shmem4py has a list of what each implementation provides, and takes one that it does not know for one of 1.4; it is told here that this
# one has what Sandia's has. Its tests are of the time before NumPy 1.24. The status is 1 if a test failed.
set -euo pipefail
cd "$(dirname "$0")/../.."

build=$(realpath "${1:-build}")
shift || true
pes=("${@:-1 2 3 4}")
folder=$build/peers/shmem4py
version=1.0.0
[[ -x $build/bin/oshcc ]] || { echo "shmem4py: $build/bin/oshcc is not there: build it, or name the folder of the build"; exit 2; }
mkdir -p "$folder"
[[ -x $folder/environment/bin/pip ]] || python3 -m venv "$folder/environment"
pip=$folder/environment/bin/pip
"$pip" install -q --disable-pip-version-check cffi setuptools wheel 'numpy<1.24'
if [[ ! -d $folder/shmem4py-$version ]]; then
  "$pip" download -q --disable-pip-version-check --no-deps --no-binary :all: --no-build-isolation -d "$folder" "shmem4py==$version"
  tar -xzf "$folder/shmem4py-$version.tar.gz" -C "$folder"
  sed -i '0,/#include "libshmem\/error.h"/s//&\n#include "libshmem\/config\/sandia.h"/' "$folder/shmem4py-$version/src/libshmem.c"
fi
OSHCC=$build/bin/oshcc "$pip" install -q --disable-pip-version-check --no-build-isolation --force-reinstall --no-deps \
  "$folder/shmem4py-$version"
status=0
for number in ${pes[*]}; do
  if timeout 300 "$build/bin/oshrun" -n "$number" "$folder/environment/bin/python" -m unittest discover -q \
    -s "$folder/shmem4py-$version/test" >"$folder/said" 2>&1; then
    echo "shmem4py $version on $number PEs: $(grep -m 1 -oE 'Ran [0-9]+ tests' "$folder/said"), all passed"
  else
    echo "shmem4py $version on $number PEs: failed; $folder/said-$number has what it said"
    cp "$folder/said" "$folder/said-$number"
    status=1
  fi
done
exit $status
