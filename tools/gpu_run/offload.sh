# shellcheck shell=bash disable=SC2154
# tools/gpu_run.sh offload: the examples of OpenMP and OpenACC on GPUs, as tools/offload.sh has compiled them elsewhere. Sourced by it, for its
# functions.

# offload_step RANKS PROGRAM: passes if every cell is right, the GPU computed it, and Isthmus found that what it was given is its memory. A program
# that does not come to its device is an error of its run-time library, and no run on the host.
offload_step() {
  local ranks=$1 program=$2
  # shellcheck disable=SC2016 # expanded there
  step 90 "$program on $ranks rank(s)" env LD_LIBRARY_PATH="$offload/lib:$PWD/$build/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" \
    OMP_TARGET_OFFLOAD=MANDATORY ACC_DEVICE_TYPE=nvidia ISTHMUS_LOG="${ISTHMUS_LOG:-warning}" bash -o pipefail -c \
    '"$0" run -n "$1" "$2" 1024 1024 200 | tee "$3" && grep -qE "^verified: .* on a device, sent from device memory of cuda device [0-9]+," "$3"' \
    "$isthmus" "$ranks" "$offload/bin/$program" "$raw/$program-$ranks.txt"
  [[ -s $raw/$program-$ranks.txt ]] && { note "  $(cat "$raw/$program-$ranks.txt")"; cat "$raw/$program-$ranks.txt" >>"$out/offload.txt"; }
}

run_offload() {
  offload=${ISTHMUS_OFFLOAD_DIR:-$PWD/offload}
  if [[ ! -x $offload/bin/heat_openmp || ! -x $offload/bin/heat_openacc ]]; then
    note "FAILED $offload has no programs: make it with tools/offload.sh where Debian's packages can be had, and carry it here"
    failures=1
    finish
  fi
  build_all
  describe_machine
  : >"$out/offload.txt"
  for program in heat_openmp heat_openacc; do
    offload_step 1 "$program"
    offload_step 2 "$program"
  done
  finish
}
