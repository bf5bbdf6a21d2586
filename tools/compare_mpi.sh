#!/usr/bin/env bash
# Isthmus beside an MPI on this machine: two ranks, host memory, the same loops, one after the other.
#
#   tools/compare_mpi.sh [BUILD]    BUILD: a folder in which isthmus was built (build)
#
# Writes mpi.json, which tools/record_measurements.py files, and prints the same as a table. Needs mpicc and mpirun; without them
# it says so and ends with status 77.
#
# Environment:
#   OUT               where mpi.json goes (BUILD/mpi)
#   PEER_MPI_OPTIONS  more options for mpirun, such as --mca pml ob1
#   ISTHMUS_ROUNDS    how often both are run (3); the best median of each counts, so that what else runs here counts least
set -euo pipefail
cd "$(dirname "$0")/.."

build=${1:-build}
isthmus=$build/bin/isthmus
out=${OUT:-$build/mpi}
rounds=${ISTHMUS_ROUNDS:-3}
for tool in mpicc mpirun; do
  command -v $tool >/dev/null || { echo "compare_mpi: $tool is not on this machine; nothing was measured"; exit 77; }
done
[[ -x $isthmus ]] || { echo "compare_mpi: $isthmus is not there: build it, or name the folder of the build"; exit 2; }
mkdir -p "$out"
raw=$(mktemp -d)
trap 'rm -rf "$raw"' EXIT

mpicc -O2 -o "$raw/mpi_bench" tools/peers/mpi_bench.c
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
bind=()
# Open MPI binds as Isthmus does; other launchers have words of their own for it.
if mpirun --version | grep -q "Open MPI\|OpenRTE"; then bind=(--bind-to core --oversubscribe); fi

for ((round = 0; round < rounds; ++round)); do
  # shellcheck disable=SC2086 # several words
  timeout 120 mpirun -n 2 ${bind[@]+"${bind[@]}"} ${PEER_MPI_OPTIONS:-} "$raw/mpi_bench" >"$raw/peer-$round.json"
  timeout 60 "$isthmus" bench latency --min 8 --max 1MiB --json "$raw/ours-latency-$round.json" >/dev/null 2>&1
  timeout 60 "$isthmus" bench rate --json "$raw/ours-rate-$round.json" >/dev/null 2>&1
  for call in allreduce bcast allgather alltoall; do
    timeout 60 "$isthmus" bench collective $call --min 8 --json "$raw/ours-$call-$round.json" >/dev/null 2>&1
  done
done

python3 - "$raw" "$out/mpi.json" <<'PYTHON'
import json, pathlib, sys
raw, out = map(pathlib.Path, sys.argv[1:])
ours, about = {}, {}
for file in raw.glob("ours-*.json"):
    bench = json.loads(file.read_text())
    about = {name: bench[name] for name in ("machine", "commit", "date", "ranks")}
    for row in bench["rows"]:
        ours.setdefault((bench["benchmark"], row["bytes"]), []).append(row["median_us"])
peers, peer_name = {}, ""
for file in raw.glob("peer-*.json"):
    found = json.loads(file.read_text())
    peer_name = found["peer_name"]
    for row in found["rows"]:
        peers.setdefault((row["benchmark"], row["bytes"]), []).append(row["median_us"])
entries = []
print(f"{'call':10} {'bytes':>8} {'ours us':>10} {'peer us':>10} {'peer/ours':>10}   {peer_name}")
for call, size in sorted(peers):
    mine, theirs = min(ours[call, size]), min(peers[call, size])
    entries.append({"measure": call, "bytes": size, "unit": "us", "ours": mine, "ours_all": ours[call, size], "peer": theirs,
                    "peer_all": peers[call, size], "peer_name": peer_name, **about})
    print(f"{call:10} {size:8} {mine:10.3f} {theirs:10.3f} {theirs / mine:10.2f}")
out.write_text(json.dumps(entries, indent=1) + "\n")
print(f"wrote {out}")
PYTHON
