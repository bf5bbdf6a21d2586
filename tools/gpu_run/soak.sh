# shellcheck shell=bash disable=SC2154
# tools/gpu_run.sh soak: mixed traffic for a while (tests/soak), and graphs that are replayed many times. Sourced by it, for its functions.
#
# A call runs as long as it is told, which may be less than is wanted altogether: what each call found stays in the build folder, and
# soak.json is the list of all of them. Where a machine is not kept between the calls, `soak_record.py merge TO FROM...` makes one list.
kept_soaks=$build/soak

# soak_step NAME FILE SECONDS WHERE command...: with one GPU for all ranks, or with as many as there are.
soak_step() {
  local name=$1 file=$2 seconds=$3 where=$4 status
  shift 4
  # Kernels wait for other ranks' here: what else is launched must find its code on the device, and a queue of its own.
  local environment=(env CUDA_MODULE_LOADING=EAGER CUDA_DEVICE_MAX_CONNECTIONS=32)
  [[ $where == one-gpu ]] && environment+=(CUDA_VISIBLE_DEVICES=0)
  rm -f "$file"
  # A round that has begun is finished, and memory is released at the end.
  step $((seconds + 45)) "$name" "${environment[@]}" "$@"
  status=$?
  # Where the driver tells the kernel's log which access was illegal.
  ((status == 0)) || dmesg 2>/dev/null | grep -i 'nvrm: xid' | tail -n 5 | tee -a "$log" >>"$summary"
  mkdir -p "$kept_soaks"
  python3 -B tools/gpu_run/soak_record.py add "$out/info.json" "$file" "$kept_soaks/$(date +%s).json" "$where" "$status" "$name" 2>&1 |
    tee -a "$log" >>"$summary"
  python3 -B tools/gpu_run/soak_record.py merge "$out/soak.json" "$kept_soaks"/*.json 2>&1 | tee -a "$log" >>"$summary"
}

run_soak() {
  local seconds=${1:-300} where=${2:-all} classes=${3:-} ranks
  if ! [[ $seconds =~ ^[1-9][0-9]*$ && $where =~ ^(all|one-gpu)$ && $# -le 3 ]]; then
    echo "gpu_run: soak takes seconds, then 'one-gpu' or 'all', then classes of memory as cuda,pool; it was given '$*'"
    exit 2
  fi
  build_all
  describe_machine
  ranks=$(gpus)
  [[ $where == one-gpu || $ranks -lt 2 ]] && ranks=2
  soak_step "soak of $seconds s, $ranks ranks, $where" "$raw/soak.json" "$seconds" "$where" "$isthmus" run -n "$ranks" --prefix-output \
    "$build/tests/traffic_soak" --seconds "$seconds" --seed "$(date +%s)" --json "$raw/soak.json" ${classes:+--classes "$classes"}
  finish
}

run_replays() {
  local replays=${1:-1000000} where=${2:-all} seconds=${3:-430}
  if ! [[ $replays =~ ^[1-9][0-9]*$ && $where =~ ^(all|one-gpu)$ && $seconds =~ ^[1-9][0-9]*$ && $# -le 3 ]]; then
    echo "gpu_run: replays takes how many, then 'one-gpu' or 'all', and the seconds after which none begins; it was given '$*'"
    exit 2
  fi
  build_all
  describe_machine
  soak_step "$replays replays of graphs in $seconds s, 2 ranks, $where" "$raw/replays.json" "$seconds" "$where" "$isthmus" run -n 2 \
    "$build/tests/graph_replays" --replays "$replays" --seconds "$seconds" --seed "$(date +%s)" --json "$raw/replays.json"
  finish
}
