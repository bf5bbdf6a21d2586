# shellcheck shell=bash disable=SC2154
# tools/gpu_run.sh one-sided: puts, gets, atomics and barriers of heaps by the host, in streams and inside kernels (isthmus bench one-sided), and NVSHMEM's
# calls in kernels where it is found and there are two GPUs, one after the other in one call. Sourced by it, for its functions.
#
# one_sided.json is a list: what isthmus wrote, each with its side and its kind of memory, and what nvshmem_in_kernel.cu printed.

# one_sided_step SIDE KIND: its table goes to the summary, too.
one_sided_step() {
  local side=$1 kind=$2
  step "$limit" "one-sided calls, $side side, $kind memory" env ISTHMUS_BENCH_OPTIONS="${ISTHMUS_BENCH_OPTIONS:-}" bash -o pipefail -c \
    "'$isthmus' bench one-sided --side '$side' --kind '$kind' --json '$raw/one-sided-$side-$kind.json' \$ISTHMUS_BENCH_OPTIONS | tee '$raw/table.txt'"
  cat "$raw/table.txt" >>"$summary"
}

run_one_sided() {
  local nvshmem
  nvshmem=$(find_nvshmem)
  build_all
  describe_machine
  note "NVSHMEM: ${nvshmem:-none with its header}"
  one_sided_step host host
  one_sided_step host cuda
  if (($(gpus) < 2)); then
    note "calls in streams and kernels: left out, they take two GPUs"
  else
    one_sided_step stream cuda
    one_sided_step kernel cuda
    [[ -n $nvshmem ]] && in_kernel_beside_nvshmem "$nvshmem"
  fi
  python3 -B tools/one_sided_record.py "$out/info.json" "$raw" "$out/one_sided.json" 2>&1 | tee -a "$log" >>"$summary" ||
    failures=$((failures + 1))
  finish
}
