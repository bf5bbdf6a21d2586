# tools/gpu_run.sh check: every test, and what else is looked at on a machine with GPUs. Sourced by it, for its functions.
#
# A call may be one part of the whole: `tests K/N`, which is a share of the tests (tools/gpu_run/shares.py), or `rest`. Each part leaves
# its record in the build folder, and check.json is what all parts of this build together say (tools/gpu_run/check_record.py). Where a
# machine is not kept between the calls, their check.json files are put together with `check_record.py merge TO FROM...`.
# shellcheck shell=bash disable=SC2154
kept=$build/check
part_from=0  # lines of the summary that parts before this one have taken

usage_of_check() {
  echo "gpu_run: check takes no word, 'tests K/N' with K from 1 to N, or 'rest'; it was given '$*'"
  exit 2
}

# check_tests K/N SECONDS: those that have not begun SECONDS after the start of the call are not run.
check_tests() {
  local share=$1 until=$2 jobs numbers
  jobs=${ISTHMUS_TEST_JOBS:-$(($(nproc) / 2))}
  ((jobs > 16)) && jobs=16
  ((jobs < 1)) && jobs=1
  numbers=$(python3 -B tools/gpu_run/shares.py "$build" "$share" "$raw/names.txt" 2>>"$log") || {
    note "FAILED tests $share: they could not be listed (0 s)"
    failures=$((failures + 1))
    return
  }
  # Past that time ctest ends those that run, and still writes down what it has; the step's own limit comes after that.
  local left=$((until - SECONDS))
  ((left < 5)) && left=5
  step $((left + 30)) "tests $share, $jobs at a time" ctest --test-dir "$build" --output-on-failure --timeout 90 -I "$numbers" -j "$jobs" \
    --stop-time "$(date -d "+$left seconds" +%H:%M:%S)" --output-junit "$PWD/$raw/tests.xml"
}

check_rest() {
  if grep -q 'ISTHMUS_PYTHON:BOOL=ON' "$build/CMakeCache.txt"; then
    echo python.on_a_gpu >"$raw/names.txt"
    step 200 "arrays of CuPy, PyTorch and Numba" ctest --test-dir "$build" --verbose --no-tests=error -R 'python\.on_a_gpu' \
      --output-junit "$PWD/$raw/tests.xml"
    grep -E '^[0-9]+: \[[0-9]+\] ([0-9]+ (passed|skipped|failed)|SKIPPED)' "$log" | sed 's/^[0-9]*: //' | sort -u >>"$summary"
  fi
  # Among the tests these are on the driver that needs no GPU; here on the real one.
  step 120 "the CUDA kind on this driver" "$build/tests/cuda_kind_test" --gtest_brief=1 "--gtest_filter=-CudaWorker*"
  # By themselves: a worker is refused where CUDA was started before it asked for eager loading.
  step 60 "the worker on this driver" "$build/tests/cuda_kind_test" --gtest_brief=1 "--gtest_filter=CudaWorker.*"
  step 60 "a worker of the only rank with a device" env ISTHMUS_WORKER=1 "$isthmus" run -n 2 --prefix-output \
    sh tests/launcher/mixed_devices.sh blind "$build/tests/ranks_workers" --gtest_brief=1
  step 60 "first launches beside a worker of the only rank with a device" env ISTHMUS_WORKER=1 CUDA_MODULE_LOADING=EAGER \
    CUDA_DEVICE_MAX_CONNECTIONS=32 "$isthmus" run -n 2 --prefix-output sh tests/launcher/mixed_devices.sh blind \
    "$build/tests/ranks_first_launch" --gtest_brief=1
  step 60 "first launches beside workers and waiting receives" env ISTHMUS_WORKER=1 CUDA_MODULE_LOADING=EAGER \
    CUDA_DEVICE_MAX_CONNECTIONS=32 "$isthmus" run -n 2 --prefix-output "$build/tests/ranks_first_launch" --gtest_brief=1
  if (($(gpus) > 1)); then
    step 60 "workers of two ranks" env ISTHMUS_WORKER=1 "$isthmus" run -n 2 --prefix-output "$build/tests/ranks_workers" --gtest_brief=1
    step 90 "mailboxes of two workers" env ISTHMUS_WORKER=1 "$isthmus" run -n 2 --prefix-output "$build/tests/ranks_mailbox" --gtest_brief=1
    step 60 "links between the devices" "$isthmus" info --links
    step 120 "device memory lent between ranks that see one GPU each" "$isthmus" run -n 2 --prefix-output \
      sh tests/launcher/mixed_devices.sh own "$build/tests/ranks_lending" --gtest_brief=1
  fi
  if python3 -c "import torch" 2>/dev/null; then
    step 60 "ranks that torchrun starts" env OMP_NUM_THREADS=1 python3 -m torch.distributed.run --standalone --nproc-per-node 2 --no-python -- \
      "$isthmus" bench latency --quick --max 4KiB
  fi
  step 150 "demo" env DEMO_OUTPUT="$raw/demo" examples/stencil2d/demo.sh "$build"
  local second
  second=$(second_gpu)
  for pair in "cuda:0 $second" "cuda:0 host" "host cuda:0" "host host"; do
    # shellcheck disable=SC2086
    bench_step latency $pair --quick --max 4MiB
    # shellcheck disable=SC2086
    bench_step bandwidth $pair --quick --max 4MiB
    [[ $pair == *cuda* ]] || continue
    # shellcheck disable=SC2086
    bench_step bandwidth $pair --quick --staged
  done
  for kind in cuda host; do
    collective_step allreduce $kind --quick
    collective_step alltoall $kind --quick
  done
  bundle
}

# part NAME command...: what the command leaves in the raw folder and the summary becomes the record of a part.
part() {
  local name=$1
  shift
  rm -f "$raw/tests.xml" "$raw/names.txt"
  "$@"
  tail -n "+$((part_from + 1))" "$summary" >"$raw/steps.txt"
  part_from=$(wc -l <"$summary")
  mkdir -p "$kept"
  python3 -B tools/gpu_run/check_record.py part "$name" "$raw" "$out" "$kept" 2>&1 | tee -a "$log" >>"$summary"
  ((PIPESTATUS[0] == 0)) || failures=$((failures + 1))
}

run_check() {
  local what=${1:-all} share=${2:-1/1} call=${ISTHMUS_CALL_LIMIT:-580}
  case "$#:$what" in
    0:all | 1:rest) ;;
    2:tests)
      [[ $share =~ ^([1-9][0-9]*)/([1-9][0-9]*)$ ]] || usage_of_check "$@"
      ((BASH_REMATCH[1] <= BASH_REMATCH[2])) || usage_of_check "$@"
      ;;
    *) usage_of_check "$@" ;;
  esac
  [[ $what == all ]] && rm -rf "$kept"
  build_all
  describe_machine
  # The rest is given 150 s of a call that has it all.
  [[ $what == rest ]] || part "tests $share" check_tests "$share" $((call - ($# == 0 ? 150 : 15)))
  [[ $what == tests ]] || part rest check_rest
  # That parts of an earlier build are left out is told there, and no failure of this one.
  python3 -B tools/gpu_run/check_record.py merge "$out/check.json" "$kept"/*.json 2>&1 | tee -a "$log" >>"$summary"
  [[ -s $out/check.json ]] || failures=$((failures + 1))
  finish
}
