# shellcheck shell=bash disable=SC2154
# tools/gpu_run.sh one-sided: puts, gets, atomics and barriers of heaps by the host, in streams and inside kernels (isthmus bench one-sided), and NVSHMEM's
# calls in kernels, by the host and in streams where it is found and there are two GPUs, one after the other in one call. Sourced by it, for its functions.
#
# one_sided.json is a list: what isthmus wrote, each with its side and its kind of memory, and what nvshmem_in_kernel.cu and nvshmem_messages.cu printed.

# one_sided_step SIDE KIND: its table goes to the summary, too.
one_sided_step() {
  local side=$1 kind=$2
  step "$limit" "one-sided calls, $side side, $kind memory" env ISTHMUS_BENCH_OPTIONS="${ISTHMUS_BENCH_OPTIONS:-}" bash -o pipefail -c \
    "'$isthmus' bench one-sided --side '$side' --kind '$kind' --json '$raw/one-sided-$side-$kind.json' \$ISTHMUS_BENCH_OPTIONS | tee '$raw/table.txt'"
  cat "$raw/table.txt" >>"$summary"
}

# nvshmem_outside FOLDER: NVSHMEM's puts and barriers by the host and in streams.
nvshmem_outside() {
  local folder=$1
  step 120 "compile tools/peers/nvshmem_messages.cu" nvcc -std=c++17 -O3 -arch=native -rdc=true "-I$folder/include" \
    tools/peers/nvshmem_messages.cu -o "$build/nvshmem_messages" "$folder/lib/libnvshmem_device.a" -Xlinker \
    "$folder/lib/libnvshmem_host.so.3" -lcuda -Xlinker "-rpath,$folder/lib" &&
    step 60 "NVSHMEM's puts and barriers by the host and in streams" env NVSHMEM_DISABLE_NVLS=1 bash -c "'$build/nvshmem_messages' 4194304 >'$raw/nvshmem_outside.json'"
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
    if [[ -n $nvshmem ]]; then
      in_kernel_beside_nvshmem "$nvshmem"
      nvshmem_outside "$nvshmem"
    fi
  fi
  python3 -B tools/one_sided_record.py "$out/info.json" "$raw" "$out/one_sided.json" 2>&1 | tee -a "$log" >>"$summary" ||
    failures=$((failures + 1))
  finish
}
