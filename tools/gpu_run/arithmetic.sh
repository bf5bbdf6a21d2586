# shellcheck shell=bash disable=SC2154
# tools/gpu_run.sh arithmetic: from which size on a device computes reductions of its memory itself. Sourced by it, for its functions.
#
# The same calls with all arithmetic on the host and with all of it on the device, which a profile says: where rank 0 has the GPU
# to itself and rank 1 has none, and where both have it. A rank's part of an allreduce is half of the vector.

# arithmetic_profile WHERE BYTES: a profile by which so many are computed on the host.
arithmetic_profile() {
  printf '{"isthmus_profile": 1, "machine": "any", "message": {"device_arithmetic_above": %s, "device_arithmetic_above_shared": %s}, "collective": {}}\n' \
    "$2" "$2" >"$raw/profile-$1.json"
}

# arithmetic_step ROUND CALL WHERE WHOSE
arithmetic_step() {
  local round=$1 call=$2 where=$3 whose=$4 kinds
  kinds=(--from cuda --to host)
  [[ $whose == shared ]] && kinds=(--kind cuda)
  # shellcheck disable=SC2016 # the ranks' own variables
  ISTHMUS_PROFILE=$raw/profile-$where.json step 60 "$call, arithmetic on the $where, GPU $whose, round $round" \
    "$isthmus" run -n 2 sh -c 'test "$ISTHMUS_RANK" = 0 || test "$0" = shared || export ISTHMUS_KINDS=host; exec "$@"' "$whose" \
    "$isthmus" bench collective "$call" "${kinds[@]}" --min 4KiB --max 16MiB --quick --json "$raw/$call-$where-$whose-$round.json"
}

run_arithmetic() {
  local round call where whose
  build_all
  describe_machine
  arithmetic_profile host 1e12
  arithmetic_profile device 0
  for round in 1 2 3; do
    for whose in own shared; do
      for call in allreduce reduce_scatter; do
        for where in host device; do arithmetic_step "$round" "$call" "$where" "$whose"; done
      done
    done
  done
  python3 -B tools/gpu_run/arithmetic_record.py "$out/info.json" "$raw" "$out/arithmetic.json" | tee -a "$log" >>"$summary"
  finish
}
