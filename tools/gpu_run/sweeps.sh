# shellcheck shell=bash disable=SC2154
# tools/gpu_run.sh sweeps: latency and bandwidth under each value of a setting, for the settings that a GPU's messages depend on. Sourced by it, for
# its functions.
#
# A sweep takes 10 to 40 s, and none begins when ISTHMUS_CALL_LIMIT (250) seconds of the call are over: what is left out is told. The most
# telling ones come first.
run_sweeps() {
  local one setting from to second
  build_all
  describe_machine
  second=$(second_gpu)
  for one in "slot cuda:0 $second" "flight cuda:0 $second" "eager cuda:0 $second" "naming cuda:0 $second" "slot host $second" \
    "flight cuda:0 host" "eager host $second" "cells cuda:0 $second" "slots cuda:0 $second" "naming host $second"; do
    read -r setting from to <<<"$one"
    if ((SECONDS > ${ISTHMUS_CALL_LIMIT:-250})); then
      note "left out: the sweep of $setting, $from to $to: the call's time is over"
      continue
    fi
    # shellcheck disable=SC2086 # several words
    step "$limit" "bench sweep $setting, $from to $to" "$isthmus" bench sweep "$setting" --from "$from" --to "$to" --quick \
      --sizes 8,4KiB,64KiB,256KiB,1MiB,4MiB --json "$raw/$setting-${from//:/}-${to//:/}-sweep.json" ${ISTHMUS_BENCH_OPTIONS:-}
  done
  python3 -B tools/gpu_run/sweeps_record.py "$out/sweeps.json" "$raw" | tee -a "$log" >>"$summary" || failures=$((failures + 1))
  # One page that holds all pictures; where there is no matplotlib, python -m isthmus.plot sweeps.json makes it elsewhere.
  if python3 -c 'import matplotlib' 2>/dev/null; then
    step 60 "pictures of the sweeps" python3 -B python/isthmus/plot.py "$out/sweeps.json" --out "$raw/plots" &&
      cp "$raw/plots/index.html" "$out/sweeps.html"
  else
    note "pictures: left out, this python3 has no matplotlib; python -m isthmus.plot sweeps.json makes them elsewhere"
  fi
  finish
}
