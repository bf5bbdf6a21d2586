# shellcheck shell=bash disable=SC2154
# tools/gpu_run.sh sanitize: the library's kernels under compute-sanitizer. Sourced by it, for its functions.
#
# memcheck and synccheck see all kernels; racecheck sees shared memory alone; initcheck sees what this process has written, so that it
# can say nothing of what another rank stores: it looks at the arithmetic. That what ranks exchange through global memory comes in
# order is proved by messages whose every word says which it is (tests/soak/graph_replays.cpp, tests/soak/stream_lane.cpp).

# sanitize TOOL SECONDS RANKS NAME program...: passes if every rank's summary counts nothing. Tests ask the driver for what it must refuse,
# so that calls with an error are no fault.
sanitize() {
  local tool=$1 seconds=$2 ranks=$3 name=$4 started=$SECONDS status clean
  shift 4
  local command=("$sanitizer" --tool "$tool" --error-exitcode 86 --report-api-errors no "$@")
  ((ranks > 1)) && command=("$isthmus" run -n "$ranks" --prefix-output "${command[@]}")
  # shellcheck disable=SC2016 # expanded there
  step "$seconds" "$tool: $name" bash -c '"$@" 2>&1 | tee "$0"; exit "${PIPESTATUS[0]}"' "$raw/$tool.txt" "${command[@]}"
  status=$?
  clean=$(grep -cE 'SUMMARY: 0 (errors|hazards)' "$raw/$tool.txt")
  if ((status == 0 && clean < ranks)); then
    note "FAILED $tool: $name: $clean of $ranks rank(s) told that there is no fault (0 s)"
    failures=$((failures + 1))
    status=1
  fi
  grep -E '^(\[[0-9]+\] )?=========' "$raw/$tool.txt" | grep -vE 'COMPUTE-SANITIZER|SUMMARY: 0' | head -n 12 >>"$summary"
  printf '%s\t%s\t%s\t%s\t%s\n' "$tool" "$name" "$ranks" "$status" $((SECONDS - started)) >>"$raw/sanitized.txt"
}

run_sanitize() {
  build_all
  sanitizer=$(command -v compute-sanitizer || ls "${CUDA_HOME:-/usr/local/cuda}/bin/compute-sanitizer" 2>/dev/null) || {
    note "FAILED sanitize: there is no compute-sanitizer, in PATH or in CUDA_HOME; it comes with the CUDA toolkit (0 s)"
    failures=$((failures + 1))
    finish
  }
  describe_machine
  note "$("$sanitizer" --version 2>&1 | grep -i version | head -n 1)"
  local tests=$build/tests brief=--gtest_brief=1
  local sums="--gtest_filter=*gives_the_bits*cuda_0*:*takes_pieces*cuda_0_sum"
  local streams="--gtest_filter=Streams.BothWays*:Streams.AReceiveOfMore*:Streams.PageLocked*:Streams.RanksThatAllSendFirst*"
  sanitize memcheck 90 1 "arithmetic" "$tests/arithmetic_test" $brief "$sums"
  sanitize memcheck 90 2 "messages in streams" "$tests/ranks_streams" $brief "$streams"
  local calls="--gtest_filter=*.FloatsAre*:*.Nobodys*:*.ARootThatIs*:*.PageLocked*"
  local workers="--gtest_filter=*.*EverySmallSize*:*.MemoryOfEveryClass*:*.SeveralMessages*"
  sanitize memcheck 90 2 "collective calls in streams" "$tests/ranks_meetings" $brief "$calls"
  ISTHMUS_WORKER=1 sanitize memcheck 90 2 "workers" "$tests/ranks_workers" $brief "$workers"
  sanitize memcheck 90 2 "messages in graphs" "$tests/graph_replays" --replays 160
  sanitize initcheck 60 1 "arithmetic" "$tests/arithmetic_test" $brief "$sums"
  sanitize racecheck 60 1 "arithmetic" "$tests/arithmetic_test" $brief "$sums"
  sanitize racecheck 90 2 "messages in streams" "$tests/ranks_streams" $brief "$streams"
  sanitize racecheck 90 2 "collective calls in streams" "$tests/ranks_meetings" $brief "$calls"
  ISTHMUS_WORKER=1 sanitize racecheck 90 2 "workers" "$tests/ranks_workers" $brief "$workers"
  sanitize synccheck 60 2 "messages in streams" "$tests/ranks_streams" $brief "$streams"
  sanitize synccheck 90 2 "collective calls in streams" "$tests/ranks_meetings" $brief "$calls"
  ISTHMUS_WORKER=1 sanitize synccheck 90 2 "workers" "$tests/ranks_workers" $brief "$workers"
  python3 -B tools/gpu_run/sanitize_record.py "$out/info.json" "$raw/sanitized.txt" "$out/sanitize.json" || failures=$((failures + 1))
  finish
}
