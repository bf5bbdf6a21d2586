# shellcheck shell=bash disable=SC2154
# tools/gpu_run.sh sanitize: the library's kernels under compute-sanitizer. Sourced by it, for its functions.
#
# memcheck and synccheck see all kernels; racecheck sees shared memory alone; initcheck sees what this process has written, so that it
# can say nothing of what another rank stores: it looks at the arithmetic. That what ranks exchange through global memory comes in
# order is proved by messages whose every word says which it is (tests/soak/graph_replays.cpp, tests/soak/stream_lane.cpp).

# Two ranks on one GPU take turns on it: their messages in streams are put and taken, their calls go through rank 0, and neither has a
# worker. So there each of those kernels is also run by itself, in one process (tests/contract/cuda_lone_kernels_test.cpp), the worker by
# its tests in one process, and by a rank beside one that sees no device; and what the steps of two ranks leave out is said in the record.

# Of the step before: tests that passed, on all ranks, and were skipped. Of other programs nothing.
count_of() { grep -oE "\[ +$1 +\] [0-9]+ test" "$2" | grep -oE '[0-9]+ test' | awk '{all += $1; some = 1} END {if (some) print all}'; }

# sanitize TOOL SECONDS RANKS NAME program...: passes if every rank's summary counts nothing. RANKS may be "blind": two, of which the first
# one has no device, and no sanitizer either. Tests ask the driver for what it must refuse, so that calls with an error are no fault. `remark`: what
# the step does not see.
sanitize() {
  local tool=$1 seconds=$2 ranks=$3 name=$4 started=$SECONDS status clean passed skipped checked=1
  shift 4
  local check=("$sanitizer" --tool "$tool" --error-exitcode 86 --report-api-errors no) command
  # Both accesses with file and line, and every kind of hazard, not the first few.
  [[ $tool == racecheck ]] && check+=(--racecheck-report analysis --print-limit 1000)
  if [[ $ranks == blind ]]; then
    ranks=2
    # shellcheck disable=SC2016 # expanded there
    command=("$isthmus" run -n 2 --prefix-output sh -c
      'words=$0; if [ "$ISTHMUS_RANK" = 0 ]; then export CUDA_VISIBLE_DEVICES=; shift "$words"; fi; exec "$@"' ${#check[@]} "${check[@]}" "$@")
  elif ((ranks > 1)); then
    checked=$ranks
    command=("$isthmus" run -n "$ranks" --prefix-output "${check[@]}" "$@")
  else
    command=("${check[@]}" "$@")
  fi
  # shellcheck disable=SC2016 # expanded there
  step "$seconds" "$tool: $name" bash -c '"$@" 2>&1 | tee "$0"; exit "${PIPESTATUS[0]}"' "$raw/$tool.txt" "${command[@]}"
  status=$?
  clean=$(grep -cE 'SUMMARY: 0 (errors|hazards)' "$raw/$tool.txt")
  if ((status == 0 && clean < checked)); then
    note "FAILED $tool: $name: $clean of $checked rank(s) told that there is no fault (0 s)"
    failures=$((failures + 1))
    status=1
  fi
  grep -E '^(\[[0-9]+\] )?========= .*SUMMARY: [1-9]' "$raw/$tool.txt" >>"$summary"
  python3 -B tools/gpu_run/sanitize_record.py findings "$raw/$tool.txt" | tee -a "$log" | head -n 40 >>"$summary"
  passed=$(count_of PASSED "$raw/$tool.txt")
  skipped=$(count_of SKIPPED "$raw/$tool.txt")
  [[ -n $passed ]] && note "       $passed test(s) passed, ${skipped:-0} skipped${remark:+; $remark}"
  if [[ $passed == 0 ]]; then
    note "FAILED $tool: $name: no test ran, so that nothing was looked at (0 s)"
    failures=$((failures + 1))
    status=1
  fi
  printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$tool" "$name" "$ranks" "$status" $((SECONDS - started)) "$passed" \
    "${passed:+${skipped:-0}}" "${remark:-}" "$(python3 -B tools/gpu_run/sanitize_record.py findings --json "$raw/$tool.txt")" >>"$raw/sanitized.txt"
}

# Calls in kernels, and what hosts and streams do with memory that kernels reach. Two kernels that wait for each other are slow under a sanitizer:
# few epochs (ISTHMUS_TEST_SHORTER, tests/device/shorter.hpp), and nothing that looks at the clock or kills a rank. Each step ends within 40 s.
sanitize_heaps() {
  local tool=$1 who=2
  (($(gpus) < 2)) && who=1
  ISTHMUS_TEST_SHORTER=5 sanitize "$tool" 40 1 "calls in kernels" "$tests/in_kernel" quick no-bulk
  # All that uses shared memory, in which one thread and its copy unit take turns.
  ISTHMUS_TEST_SHORTER=5 sanitize "$tool" 40 1 "bulk copies in kernels" "$tests/in_kernel" quick bulk
  ISTHMUS_TEST_SHORTER=40 sanitize "$tool" 40 1 "heaps in kernels" "$tests/device_heap_view" $brief "--gtest_filter=HeapView.*-*AMillion*:*WasKilled*:*OtherWork*"
  ISTHMUS_TEST_SHORTER=40 sanitize "$tool" 40 1 "host heaps in kernels" "$tests/device_heap_view" $brief "--gtest_filter=HostHeap.*-*WasKilled*"
  ISTHMUS_TEST_SHORTER=40 sanitize "$tool" 40 1 "windows in kernels" "$tests/device_heap_view" $brief "--gtest_filter=WindowView.*-*WasKilled*"
  sanitize "$tool" 40 $who "heaps in streams" "$tests/ranks_heap_streams" $brief
  sanitize "$tool" 40 $who "heaps from hosts" "$tests/ranks_one_sided" $brief "--gtest_filter=OneSided.Put*:OneSided.Get*:OneSided.ASignal*:OneSided.Atomics*:OneSidedSignals.*:OneSidedLayouts.LongOnes*"
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
  local tests=$build/tests brief=--gtest_brief=1 tool parts="" through="" who=2
  local sums="--gtest_filter=*gives_the_bits*cuda_0*:*takes_pieces*cuda_0_sum"
  local streams="--gtest_filter=Streams.BothWays*:Streams.AReceiveOfMore*:Streams.PageLocked*:Streams.RanksThatAllSendFirst*"
  local calls="--gtest_filter=*.FloatsAre*:*.Nobodys*:*.ARootThatIs*:*.PageLocked*"
  local workers="--gtest_filter=*.*EverySmallSize*:*.MemoryOfEveryClass*:*.SeveralMessages*"
  local lone="--gtest_filter=CudaLone*"
  # Of the layouts few, on CUDA memory: each form in a kernel, and messages of them that are packed, unpacked and moved from gaps to gaps.
  local packs="--gtest_filter=*parts_of_random*cuda_0*:*lists_that_come_again*cuda_0*:*one_layout_after*cuda_0*"
  local layouts="--gtest_filter=Layouts.that_wait*:Layouts.many_at_once*:Layouts.too_long*"
  # But for those that look at the clock.
  local worker="--gtest_filter=CudaWorker.*-*.comes_behind*:*.does_not_come*:*.whoever_waits*"
  if (($(gpus) < 2)); then
    parts="two ranks on one GPU: the kernels that put and take, and none that waits"
    through="two ranks on one GPU: what combines parts in rank 0's memory, and channels, but no meeting"
    who=blind
    workers="--gtest_filter=*OnlyRankWithADevice*"
  fi
  if [[ ${ISTHMUS_SANITIZE:-all} != library ]]; then
    for tool in memcheck racecheck synccheck; do sanitize_heaps "$tool"; done
  fi
  [[ ${ISTHMUS_SANITIZE:-all} == heaps ]] && {
    python3 -B tools/gpu_run/sanitize_record.py "$out/info.json" "$raw/sanitized.txt" "$out/sanitize.json" || failures=$((failures + 1))
    finish
  }
  for tool in memcheck racecheck synccheck initcheck; do
    [[ $tool == synccheck ]] || sanitize "$tool" 60 1 "arithmetic" "$tests/arithmetic_test" $brief "$sums"
    sanitize "$tool" 90 1 "channels and meetings, each kernel alone" "$tests/cuda_kind_test" $brief "$lone"
    [[ $tool == initcheck ]] && continue
    ISTHMUS_TEST_PACKS=20 sanitize "$tool" 90 1 "packing" "$tests/packing_test" $brief "$packs"
    ISTHMUS_KINDS=host,cuda sanitize "$tool" 90 2 "messages of layouts" "$tests/ranks_layouts" $brief "$layouts"
    remark=$parts sanitize "$tool" 90 2 "messages in streams" "$tests/ranks_streams" $brief "$streams"
    remark=$through sanitize "$tool" 90 2 "collective calls in streams" "$tests/ranks_meetings" $brief "$calls"
  done
  remark=$parts sanitize memcheck 90 2 "messages in graphs" "$tests/graph_replays" --replays 160
  # Last, since a kernel that stays while others are launched is what a sanitizer may not bear.
  for tool in memcheck racecheck synccheck; do
    [[ $tool == synccheck ]] || sanitize "$tool" 90 1 "the worker in one process" "$tests/cuda_kind_test" $brief "$worker"
    ISTHMUS_WORKER=1 sanitize "$tool" 60 $who "workers" "$tests/ranks_workers" $brief "$workers"
  done
  python3 -B tools/gpu_run/sanitize_record.py "$out/info.json" "$raw/sanitized.txt" "$out/sanitize.json" || failures=$((failures + 1))
  finish
}
