#!/usr/bin/env bash
# The one entry point for a machine with GPUs, also one without network: builds from scratch, then checks or measures.
#
#   tools/gpu_run.sh check          every test, the demo, and short benches of CUDA and host memory, bytes compared; where a call
#                                   may not take so long, in several, on one machine: check tests 1/2, check tests 2/2, check rest.
#                                   The last check.json has all of them, and each says what has not been run
#   tools/gpu_run.sh bench          latency and bandwidth between CUDA, host and page-locked memory, those of CUDA also by hand
#                                   through the host and in streams, collective calls on CUDA and host memory, and the stencil
#                                   with both exchanges, compared with a serial run
#   tools/gpu_run.sh collectives    a quick build, the tests of NCCL on a GPU for each rank, and collective calls on those GPUs,
#                                   ours and NCCL's own, one after the other
#   tools/gpu_run.sh peers          messages between CUDA, host and page-locked memory beside Open MPI with UCX, NCCL, staging by
#                                   hand, and what the driver does by itself, each in turn (tools/peers/compare_device.py); each call adds
#                                   its rounds to those of the calls before it, of which the median counts
#   tools/gpu_run.sh workers        few bytes with and without workers (docs/worker.md), and with and without the promise that nothing
#                                   is pending on a buffer
#   tools/gpu_run.sh arithmetic     from which size on a device should compute reductions of its memory: both ways, of all sizes
#   tools/gpu_run.sh overlap        how much of a call is hidden behind computation, of CUDA and of host memory, without and with a progress
#                                   thread (tools/measure_overlap.py); a quick build, and 3 minutes after it
#   tools/gpu_run.sh sweeps         latency and bandwidth between CUDA and host memory under each value of a setting: slot, copies in flight, eager
#                                   limit (the size of a cell), cells, slots, and a kind that is named or asked for; within 5 minutes, and
#                                   pictures in one page where there is matplotlib
#   tools/gpu_run.sh soak [SECONDS [one-gpu|all [CLASSES]]]
#                                   mixed traffic with every byte compared, and nothing may grow: 300 s unless told, on all GPUs, or two
#                                   ranks on one. Each call adds to soak.json what it found
#   tools/gpu_run.sh replays [COUNT [one-gpu|all [SECONDS]]]
#                                   graphs with messages between two ranks, replayed a million times unless told, with other bytes each
#                                   time, by graphs at both ends and at one; adds to soak.json too. After 430 s none begins unless told
#   tools/gpu_run.sh waits          which calls of the driver wait for a kernel that runs, and hold up others (tools/peers/driver_waits.cu);
#                                   needs nvcc alone
#   tools/gpu_run.sh turns          which copies wait for another process's turn on the GPU (tools/peers/device_turns.cpp); needs nvcc alone
#   tools/gpu_run.sh both-ways      who may copy between page-locked memory and a GPU both ways at once, and how, so that neither way halves the
#                                   other (tools/peers/both_ways.cu); needs nvcc alone
#   tools/gpu_run.sh who-copies     between two GPUs, whether the one that is read or the one that is written should copy, and by which call
#                                   (tools/peers/who_copies.cu); needs nvcc alone
#   tools/gpu_run.sh small-copies   by which call few bytes go between host memory and a GPU soonest, and what shows that they are there
#                                   (tools/peers/small_copies.cu); needs nvcc alone
#   tools/gpu_run.sh link-stores    in which order, and by how many threads or copy units, kernels should store to another GPU and load from it
#                                   (tools/peers/link_stores.cu); needs nvcc alone
#   tools/gpu_run.sh barrier-forms  what a barrier of two GPUs in a kernel consists of, and whether other forms are quicker (tools/peers/barrier_forms.cu); needs nvcc alone
#   tools/gpu_run.sh contexts       whether the heap outlives contexts that are destroyed with copies under way (tools/peers/context_ends.cu); needs nvcc alone
#   tools/gpu_run.sh in-kernel      Isthmus's calls in kernels (isthmus/device.cuh), every byte compared, and timed beside bare loops
#                                   (tests/device/in_kernel.cu) and NVSHMEM's; between two GPUs, or two kernels of one; a quick build
#   tools/gpu_run.sh workloads      Jacobi, Himeno, lattice Boltzmann, pixels and particles on one GPU and on all, each way to exchange; beside NCCL; a quick build
#   tools/gpu_run.sh layouts        messages with layouts, packing beside kernels by hand, and MPI's derived types where there is an MPI; a quick build
#   tools/gpu_run.sh packs [CASES]  100000 random layouts packed and unpacked on devices, and halos in all combinations; leaves packs.json
#   tools/gpu_run.sh halo           halo exchanges of boxes and of listed nodes, of CUDA and host memory (isthmus bench halo); a quick build
#   tools/gpu_run.sh rows           messages with layouts in rows by copy engines and by kernels, each forced, and as chosen; a quick build
#   tools/gpu_run.sh offload        the examples of OpenMP and OpenACC on GPUs, from the folder of tools/offload.sh; a quick build
#   tools/gpu_run.sh one-sided      isthmus bench one-sided by the host and in kernels, and NVSHMEM's calls in kernels; a quick build
#   tools/gpu_run.sh sanitize       the library's kernels, and calls in kernels, under compute-sanitizer (ISTHMUS_SANITIZE=heaps: these alone; =library: those)
#
# On one GPU two ranks share it; the record says so: cuda:0 to cuda:0, and 1x in its name.
#
# Environment:
#   OUT                 where the results go (gpu-out): at most 8 files, no folders
#   ISTHMUS_DEPS_DIR    folder with the dependencies (./deps if it is there); tools/fetch_deps.sh prepares it
#   ISTHMUS_PYTHON      the Python whose arrays are checked (python3); it needs NumPy and its headers, the rest is in the folder
#   ISTHMUS_COMMIT      commit to name where the sources come without their repository, or beside an older one
#   ISTHMUS_STEP_LIMIT  seconds that one step may take (120); the build has 400
#   NCCL_HOME           folder of NCCL with include/ and lib/; otherwise that of Python's package is looked for
#   NVSHMEM_HOME        the same of NVSHMEM
#   PEER_UCX            folder of a UCX that knows CUDA, with lib/ and lib/ucx/ (tools/peers/get_ucx.sh makes one); otherwise that of Open MPI is taken
#   ISTHMUS_CALL_LIMIT  seconds that one call of check may take (580): tests that have not begun by then are left out, and told; that all rounds
#                       of a call of peers may (560); after which no sweep begins (250)
#   ISTHMUS_TEST_JOBS   tests at a time (half the processors, 16 at most)
#   ISTHMUS_ROUNDS      how often a call of peers runs everything (2), and one of workloads (3)
#   ISTHMUS_PAIRS       of peers: which memories alone, such as cuda-cuda,pinned-cuda, where a call may not take so long
#   ISTHMUS_OFFLOAD_DIR of offload: the folder of tools/offload.sh (./offload)
#   ISTHMUS_PROGRAMS    of workloads: which alone, such as "jacobi lbm"
#   ISTHMUS_BENCH_OPTIONS  more options for every isthmus bench, such as --quick
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

mode=${1:-}
case $mode in
  check | bench | collectives | peers | workers | arithmetic | overlap | sweeps | soak | replays | waits | turns | both-ways | who-copies | small-copies | link-stores | barrier-forms | contexts | in-kernel | layouts | packs | rows | halo | offload | one-sided | workloads | sanitize) ;;
  *) [[ -n $mode ]] && echo "gpu_run: '$mode' is none of these"; sed -n '2,/^set /{/^#/p}' "$0"; exit 2 ;;
esac
out=${OUT:-gpu-out}
mkdir -p "$out" && out=$(cd "$out" && pwd)
build="build-gpu"
raw=$build/raw
limit=${ISTHMUS_STEP_LIMIT:-120}
# For this script alone: the library warns of names that it does not know, and tests look at what it says.
export -n ISTHMUS_CALL_LIMIT ISTHMUS_STEP_LIMIT ISTHMUS_TEST_JOBS ISTHMUS_BENCH_OPTIONS ISTHMUS_ROUNDS ISTHMUS_PAIRS ISTHMUS_PROGRAMS \
  ISTHMUS_SANITIZE ISTHMUS_PYTHON ISTHMUS_OFFLOAD_DIR
isthmus=$build/bin/isthmus
failures=0
log=$out/log.txt
summary=$out/summary.txt
: >"$log"
: >"$summary"

say() { printf '%s\n' "$*" | tee -a "$log"; }
note() { printf '%s\n' "$*" | tee -a "$log" >>"$summary"; }

# step SECONDS NAME command...: nothing may hang, and a failure does not stop the steps after it.
step() {
  local seconds=$1 name=$2 started=$SECONDS status
  shift 2
  say "== $name"
  timeout --kill-after=10 "$seconds" "$@" >>"$log" 2>&1
  status=$?
  if ((status == 0)); then
    note "ok     $name ($((SECONDS - started)) s)"
  else
    note "FAILED $name: status $status$( ((status == 124 || status == 137)) && echo ", over $seconds s") ($((SECONDS - started)) s)"
    tail -n 25 "$log"
    failures=$((failures + 1))
  fi
  return $status
}

finish() {
  rm -rf "$raw"
  echo
  cat "$summary"
  if ((failures > 0)); then
    echo "gpu_run $mode: $failures step(s) FAILED; the log is $log"
    exit 1
  fi
  echo "gpu_run $mode: all steps passed"
  exit 0
}

# Adds to the options of build_all what builds the Python package, or says why it is left out.
python_options() {
  local python reason
  python=$(command -v "${ISTHMUS_PYTHON:-python3}") || { note "Python package: left out, there is no python3"; return; }
  reason=$(PYTHONPATH=${1:+$(cd "$1" && pwd)/python:}${PYTHONPATH:-} "$python" - 2>&1 <<'PYTHON'
import pathlib, sys, sysconfig
try:
    import nanobind, numpy, pytest
except ImportError as error:
    sys.exit(str(error))
if not (pathlib.Path(sysconfig.get_path("include")) / "Python.h").exists():
    sys.exit("its headers (Python.h) are not there")
PYTHON
  ) || { note "Python package: left out, $python: $reason"; return; }
  options+=(-DISTHMUS_PYTHON=ON "-DPython_EXECUTABLE=$python")
  note "Python package: built with $("$python" --version)"
}

build_all() {
  command -v nvcc >/dev/null || export PATH=$PATH:${CUDA_HOME:-/usr/local/cuda}/bin
  local deps=${ISTHMUS_DEPS_DIR:-}
  [[ -z $deps && -d deps ]] && deps=$PWD/deps
  local options=(-S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DISTHMUS_CUDA=ON)
  [[ -n $deps ]] && options+=("-DISTHMUS_DEPS_DIR=$(cd "$deps" && pwd)")
  [[ -n ${ISTHMUS_COMMIT:-} ]] && options+=("-DISTHMUS_COMMIT=$ISTHMUS_COMMIT")
  [[ $mode =~ ^(bench|peers|workers|arithmetic|overlap|sweeps|in-kernel|layouts|rows|halo|offload|one-sided|workloads)$ ]] && options+=(-DISTHMUS_TESTS=OFF) || options+=(-DISTHMUS_TESTS=ON)
  [[ $mode == check ]] && python_options "$deps"
  step 120 "configure" cmake "${options[@]}" || finish
  local targets=()
  [[ $mode == collectives ]] && targets=(--target isthmus_program ranks_nccl ranks_meetings)
  [[ $mode == workloads ]] && targets=(--target isthmus_program jacobi himeno lbm pixels particles)
  [[ $mode =~ ^(overlap|in-kernel|layouts|rows|halo|offload|one-sided)$ ]] && targets=(--target isthmus_program)
  [[ $mode == soak ]] && targets=(--target isthmus_program traffic_soak)
  [[ $mode == packs ]] && targets=(--target isthmus_program packing_test ranks_halo_fields)
  [[ $mode == replays ]] && targets=(--target isthmus_program graph_replays)
  [[ $mode == sanitize ]] && targets=(--target isthmus_program arithmetic_test cuda_kind_test ranks_streams ranks_meetings ranks_workers graph_replays in_kernel device_heap_view ranks_heap_streams ranks_one_sided packing_test ranks_layouts)
  step 400 "build with $(nproc) processors" cmake --build "$build" "${targets[@]}" || finish
}

# As many as programs see.
gpus() { if [[ -n ${CUDA_VISIBLE_DEVICES+set} ]]; then tr ',' '\n' <<<"$CUDA_VISIBLE_DEVICES" | sed '/^-/,$d'; else nvidia-smi --list-gpus 2>/dev/null; fi | grep -c . || true; }

# The pair of devices that stands for "one GPU to another"; on one GPU, two ranks share it.
second_gpu() { if (($(gpus) > 1)); then echo cuda:1; else echo cuda:0; fi; }

describe_machine() {
  rm -rf "$raw"
  mkdir -p "$raw"
  step 60 "isthmus info" bash -c "'$isthmus' info --json >'$out/info.json' && '$isthmus' info" || finish
  note "gpus: $(gpus); $(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | sort | uniq -c | tr -s ' ' | paste -sd ';')"
}

# bench_step NAME FROM TO options...
bench_step() {
  local name=$1 from=$2 to=$3
  shift 3
  local file=$raw/$name-${from//:/}-${to//:/}
  [[ " $* " == *" --staged "* ]] && file+=-staged
  file+=.json
  # shellcheck disable=SC2086 # several words
  step "$limit" "bench $name $from to $to${*:+ $*}" "$isthmus" bench "$name" --from "$from" --to "$to" --json "$file" "$@" \
    ${ISTHMUS_BENCH_OPTIONS:-}
}

# collective_step CALL KIND options...: two ranks.
collective_step() {
  local call=$1 kind=$2
  shift 2
  # shellcheck disable=SC2086 # several words
  step "$limit" "bench collective $call $kind${*:+ $*}" "$isthmus" bench collective "$call" --kind "$kind" \
    --json "$raw/collective-$call-$kind.json" "$@" ${ISTHMUS_BENCH_OPTIONS:-}
}

# One list of objects, as `isthmus bench --json` and stencil2d wrote them, and the table of what they say. The stencil knows
# the public interface only, so what ran it and when is added here.
bundle() {
  python3 - "$raw" "$out" <<'PYTHON' | tee -a "$log" >>"$summary"
import datetime, json, pathlib, sys
raw, out = map(pathlib.Path, sys.argv[1:])
info = json.loads((out / "info.json").read_text())
def about(file):
    when = datetime.datetime.fromtimestamp(file.stat().st_mtime, datetime.timezone.utc)
    return {"machine": info["machine"], "commit": info["commit"], "date": when.strftime("%Y-%m-%dT%H:%M:%SZ")}
def load(pattern):
    found = []
    for file in sorted(raw.glob(pattern)):
        try:
            found.append({**about(file), **json.loads(file.read_text())})
        except ValueError:
            print(f"left out {file.name}: not complete")
    return found
stencils = load("stencil*.json")
benches = load("latency*.json") + load("bandwidth*.json") + load("stream-*.json") + load("collective*.json")
if stencils:
    (out / "stencil.json").write_text(json.dumps(stencils, indent=1) + "\n")
if benches:
    (out / "bench.json").write_text(json.dumps(benches, indent=1) + "\n")
print(f"\n{'benchmark':16} {'from':8} {'to':8} {'staged':6} {'8 B us':>9} {'64 KiB us':>10} {'4 MiB us':>10} {'best GB/s':>10}  path at 4 MiB")
for one in benches:
    rows = {row["bytes"]: row for row in one["rows"]}
    rows.setdefault(8, rows.get(0))  # a barrier has no bytes
    at = lambda size: f"{rows[size]['median_us']:.2f}" if rows.get(size) else "-"
    best = max((row["gbps"] for row in one["rows"]), default=0)
    path = rows.get(4 << 20, one["rows"][-1] if one["rows"] else {}).get("path", "-")
    print(f"{one['benchmark']:16} {one['from']:8} {one['to']:8} {'yes' if one.get('staged') else 'no':6} "
          f"{at(8):>9} {at(65536):>10} {at(4 << 20):>10} {best:>10.2f}  {path}")
for one in stencils:
    for row in one["rows"]:
        checked = f"error {row['largest_error']:.1e}, tolerance {row['tolerance']:.1e}" if "verified" in row else "NOT COMPARED"
        print(f"stencil2d {'x'.join(map(str, one['field']))} on {one['ranks']} ranks, {row['exchange']}: "
              f"{row['us_per_step']:.1f} us a step, {checked}")
PYTHON
}

run_bench() {
  build_all
  describe_machine
  local second
  second=$(second_gpu)
  for name in latency bandwidth; do
    bench_step $name cuda:0 "$second" --max 64MiB
    bench_step $name cuda:0 "$second" --staged
    bench_step $name cuda:0 host
    bench_step $name cuda:0 host --staged
    bench_step $name host cuda:0
    bench_step $name host cuda:0 --staged
    bench_step $name pinned cuda:0
    bench_step $name cuda:0 pinned
    bench_step $name host host
  done
  bench_step stream-latency cuda:0 "$second" --max 4MiB
  bench_step stream-bandwidth cuda:0 "$second" --max 64MiB
  for call in allreduce bcast allgather alltoall; do
    collective_step $call cuda --quick --min 8
    collective_step $call host --quick --min 8
  done
  # The serial run has one processor; it takes most of the time of this step, and 3 GiB.
  step 120 "stencil2d of 8192x8192 on 2 ranks, checked, all exchanges" "$isthmus" run -n 2 "$build/bin/stencil2d" \
    --device cuda --exchange all --size 8192x8192 --iterations 100 --json "$raw/stencil-2.json"
  step 120 "stencil2d of 2048x2048 on 4 ranks, checked, all exchanges" "$isthmus" run -n 4 "$build/bin/stencil2d" \
    --device cuda --exchange all --size 2048x2048 --iterations 100 --output "$raw" --json "$raw/stencil-4.json"
  bundle
  finish
}

# The folder of an NCCL that has its header, or nothing.
find_nccl() {
  local folder
  for folder in "${NCCL_HOME:-}" \
    "$(python3 -c 'import nvidia.nccl; print(list(nvidia.nccl.__path__)[0])' 2>/dev/null)" /usr; do
    [[ -n $folder && -f $folder/include/nccl.h ]] && echo "$folder" && return
  done
}

# The same of NVSHMEM.
find_nvshmem() {
  local folder
  for folder in "${NVSHMEM_HOME:-}" \
    "$(python3 -c 'import nvidia.nvshmem; print(list(nvidia.nvshmem.__path__)[0])' 2>/dev/null)"; do
    [[ -n $folder && -f $folder/include/nvshmem.h ]] && echo "$folder" && return
  done
}

run_peers() {
  local nccl nvshmem
  nccl=$(find_nccl)
  nvshmem=$(find_nvshmem)
  build_all
  describe_machine
  note "peers: $(mpirun --version 2>/dev/null | head -n 1); UCX: ${PEER_UCX:-the one of that MPI}; NCCL: ${nccl:-none with its header}; NVSHMEM: ${nvshmem:-none with its header}"
  # What it prints is the table; no multicast between GPUs, as above.
  step "${ISTHMUS_CALL_LIMIT:-560}" "beside the peers" env NCCL_NVLS_ENABLE=0 ${nccl:+PEER_NCCL="$nccl"} ${nvshmem:+PEER_NVSHMEM="$nvshmem"} \
    ${ISTHMUS_ROUNDS:+ISTHMUS_ROUNDS="$ISTHMUS_ROUNDS"} ${ISTHMUS_PAIRS:+ISTHMUS_PAIRS="$ISTHMUS_PAIRS"} bash -o pipefail -c \
    "python3 -B tools/peers/compare_device.py '$isthmus' '$out/device.json' '$PWD/$build/peers' | tee '$out/device.txt'"
  [[ -f $out/device.txt ]] && cat "$out/device.txt" >>"$summary"
  finish
}

# driver_program FILE NAME [SECONDS]: one that needs the driver alone, and prints one JSON object.
driver_program() {
  local file=$1 name=$2 program
  program=$(basename "${file%.*}")
  command -v nvcc >/dev/null || export PATH=$PATH:${CUDA_HOME:-/usr/local/cuda}/bin
  mkdir -p "$build"
  step 120 "compile $file" nvcc -std=c++17 -O3 -arch=native -Iinclude "$file" -o "$build/$program" -lcuda || finish
  step "${3:-60}" "$name" bash -c "'$build/$program' >'$out/$program.json'" || finish
  tee -a "$summary" <"$out/$program.json"
  finish
}

for part in check collectives soak sanitize workers arithmetic overlap sweeps in_kernel layouts offload one_sided workloads; do
  # shellcheck source-path=SCRIPTDIR disable=SC1090
  source "tools/gpu_run/$part.sh"
done
case $mode in
  waits) driver_program tools/peers/driver_waits.cu "the driver's calls beside a kernel that waits" ;;
  turns) driver_program tools/peers/device_turns.cpp "the driver's copies beside another process's" ;;
  both-ways) driver_program tools/peers/both_ways.cu "copies both ways at once" ;;
  who-copies) driver_program tools/peers/who_copies.cu "who copies between two GPUs" ;;
  small-copies) driver_program tools/peers/small_copies.cu "few bytes between host memory and a GPU" ;;
  link-stores) driver_program tools/peers/link_stores.cu "how kernels store to another GPU" ;;
  barrier-forms) driver_program tools/peers/barrier_forms.cu "forms of a barrier of two GPUs" ;;
  contexts) driver_program tools/peers/context_ends.cu "contexts that are destroyed with copies under way" ;;
  *) "run_${mode//-/_}" "${@:2}" ;;
esac
