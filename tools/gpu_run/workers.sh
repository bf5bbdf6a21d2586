# shellcheck shell=bash disable=SC2154
# tools/gpu_run.sh workers: half a round trip of few bytes with and without workers, with and without the promise that nothing is pending
# on a buffer. Sourced by it, for its functions.
run_workers() {
  build_all
  describe_machine
  local worker ready pair second
  second=$(second_gpu)
  for pair in "cuda:0 $second" "cuda:0 host" "host $second"; do
    for worker in 0 1; do
      for ready in "" --ready; do
        # shellcheck disable=SC2086 # several words
        step "$limit" "latency $pair $ready, ISTHMUS_WORKER=$worker" env ISTHMUS_WORKER=$worker "$isthmus" bench latency \
          --from ${pair% *} --to ${pair#* } $ready --sizes 8,64,512,1024,2048,4096,65536 \
          --json "$raw/workers-$worker-${pair//[: ]/-}$ready.json" ${ISTHMUS_BENCH_OPTIONS:-}
      done
    done
  done
  python3 -B tools/gpu_run/workers_record.py "$out/workers.json" "$raw"/workers-*.json || failures=$((failures + 1))
  finish
}
