# shellcheck shell=bash disable=SC2154
# tools/gpu_run.sh workloads: Jacobi, Himeno and lattice Boltzmann on one GPU and on all of them (rows 14 to 16), cudaMPI's stencil and particles, each way to exchange in one start
# of the program, three starts of each; and once Himeno's planes over their number, and, on four GPUs, its cuts along two dimensions. Sourced by it, for its functions.
#
# workloads.json is one object: machine, commit and date, and what each start of a program wrote with --json.

# workload NAME RANKS program options...: the program writes its figures to a file of that name.
wanted() { [[ -z ${ISTHMUS_PROGRAMS:-} || " $ISTHMUS_PROGRAMS " == *" $1 "* ]]; }
workload() {
  local name=$1 ranks=$2
  shift 2
  wanted "$1" || return 0
  step 90 "$*, $ranks rank(s)" "$isthmus" run -n "$ranks" "$build/bin/$1" "${@:2}" --json "$raw/$name.workload.json"
}

# Beside what NCCL does with the same sweeps, where it is found.
himeno_by_nccl() {
  local size=$1 round=$2 iterations=$3
  [[ -x $build/himeno_nccl ]] && wanted himeno || return 0
  step 60 "himeno by NCCL in a graph, $size" env NCCL_NVLS_ENABLE=0 bash -c "'$build/himeno_nccl' '$size' '$iterations' '$all' >'$raw/nccl-$size-$round.workload.json'"
}

# Planes of 64^2, 128^2 and 256^2 over how many there are, in one start.
himeno_planes() {
  local sizes='' cells planes
  wanted himeno || return 0
  for cells in 64 128 256; do
    for planes in 16 32 64 128 256; do sizes+=${sizes:+,}${planes}x${cells}x$cells; done
  done
  step 60 "himeno, planes of 64^2 to 256^2, $all ranks" "$isthmus" run -n "$all" "$build/bin/himeno" "$sizes" 200 --device cuda --grid "${all}x1x1" \
    --json "$raw/himeno-planes.workload.json"
}

# Cut along two dimensions, on four GPUs.
himeno_in_two_dimensions() {
  local grid
  ((all == 4)) || return 0
  for grid in 1x2x2 2x2x1; do workload "himeno-L-$grid" 4 himeno L 128 --device cuda --exchange all --grid $grid; done
}

run_workloads() {
  local round size exchange all nccl
  build_all
  describe_machine
  all=$(gpus)
  nccl=$(find_nccl)
  note "NCCL: ${nccl:-none found with its header}"
  if [[ -n $nccl ]] && ((all > 1)); then
    step 120 "compile tools/peers/himeno_nccl.cu" nvcc -std=c++20 -O3 -arch=native -Iinclude -Iexamples -Iexamples/himeno "-I$nccl/include" \
      tools/peers/himeno_nccl.cu examples/himeno/cuda_sweeps.cu -o "$build/himeno_nccl" -Xlinker "$nccl/lib/libnccl.so.2" -Xlinker "-rpath,$nccl/lib"
  fi
  for ((round = 1; round <= ${ISTHMUS_ROUNDS:-3}; ++round)); do
    workload "jacobi-1-$round" 1 jacobi --device cuda --nx 16384 --ny 16384 --iterations 300 --compare 10
    workload "lbm-1-$round" 1 lbm --device cuda --cells 512 --steps 50
    workload "pixels-$round" "$all" pixels --device cuda --steps 50
    workload "particles-$round" "$all" particles --device cuda --count 2000000 --steps 30 --speed 0.01
    ((all > 1)) || continue
    workload "jacobi-$all-$round" "$all" jacobi --device cuda --nx 16384 --ny 16384 --iterations 300 --compare 10
    for exchange in one-sided messages graph; do
      workload "lbm-$all-$exchange-$round" "$all" lbm --device cuda --exchange $exchange --cells 512 --steps 50
    done
    for size in XS S M L XL; do
      workload "himeno-$size-$round" "$all" himeno $size $([[ $size == *L ]] && echo 128 || echo 6400) --device cuda --exchange all --grid "${all}x1x1"
      [[ $size == *L ]] || himeno_by_nccl $size $round 6400
    done
  done
  if ((all > 1)); then
    himeno_planes
    himeno_in_two_dimensions
  fi
  python3 -B tools/workloads_record.py "$out/info.json" "$raw" "$out/workloads.json" 2>&1 | tee -a "$log" >>"$summary" ||
    failures=$((failures + 1))
  finish
}
