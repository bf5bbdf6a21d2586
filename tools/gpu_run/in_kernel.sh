# shellcheck shell=bash disable=SC2154
# tools/gpu_run.sh in-kernel: Isthmus's calls in kernels beside bare loops, and beside NVSHMEM's calls where it is found and there are two GPUs,
# one after the other in one call. Sourced by it, for its functions.
#
# in_kernel.json is one object: machine, commit and date, what in_kernel.cu printed, and as "peer" what nvshmem_in_kernel.cu did; of more than two GPUs, as "team", what
# in_kernel_team.cu printed of barriers among all, with NVSHMEM's.

# in_kernel_beside_nvshmem FOLDER: no multicast between GPUs, which not every machine that is lent allows. The program has an alarm of its own.
in_kernel_beside_nvshmem() {
  local folder=$1
  step 120 "compile tools/peers/nvshmem_in_kernel.cu" nvcc -std=c++17 -O3 -arch=native -rdc=true "-I$folder/include" \
    tools/peers/nvshmem_in_kernel.cu -o "$build/nvshmem_in_kernel" "$folder/lib/libnvshmem_device.a" -Xlinker \
    "$folder/lib/libnvshmem_host.so.3" -lcuda -Xlinker "-rpath,$folder/lib" &&
    step 120 "NVSHMEM's calls in kernels" env NVSHMEM_DISABLE_NVLS=1 bash -c "'$build/nvshmem_in_kernel' >'$raw/nvshmem.json'"
}

# Barriers among all GPUs, a million of them checked first.
in_kernel_team() {
  step 120 "compile tests/device/in_kernel_team.cu" nvcc -std=c++17 -O3 -arch=native -Iinclude tests/device/in_kernel_team.cu -o "$build/in_kernel_team" &&
    step 120 "barriers in kernels of $(gpus) GPUs" bash -c "'$build/in_kernel_team' >'$raw/in_kernel_team.json'"
  [[ -x $build/nvshmem_in_kernel ]] && step 120 "NVSHMEM's barriers in kernels of $(gpus) GPUs" env NVSHMEM_DISABLE_NVLS=1 \
    bash -c "'$build/nvshmem_in_kernel' all >'$raw/nvshmem_team.json'"
}

run_in_kernel() {
  local nvshmem
  nvshmem=$(find_nvshmem)
  build_all
  describe_machine
  note "NVSHMEM: ${nvshmem:-none with its header}"
  step 120 "compile tests/device/in_kernel.cu" nvcc -std=c++17 -O3 -arch=native -Iinclude tests/device/in_kernel.cu -o "$build/in_kernel" \
    -lcuda || finish
  # Where it fails, it has printed which check went wrong: that is kept, too.
  step 300 "calls in kernels" bash -c "'$build/in_kernel' >'$raw/in_kernel.json'"
  if (($(gpus) < 2)); then
    note "NVSHMEM: left out, its program takes two GPUs"
  elif [[ -n $nvshmem ]]; then
    in_kernel_beside_nvshmem "$nvshmem"
  fi
  (($(gpus) < 3)) || in_kernel_team
  python3 -B tools/in_kernel_record.py "$out/info.json" "$raw" "$out/in_kernel.json" 2>&1 | tee -a "$log" >>"$summary" ||
    failures=$((failures + 1))
  finish
}
