#!/usr/bin/env bash
# Builds and runs what `make test` (quick) and `make test-long` (long: quick, asan, tsan and clang, each of which is a set of
# its own too) promise; tsan-threads is of quick and of tsan what threads of ranks do. Every step runs, also after one failed; the last lines say which failed and where the time went, and
# so does build/tests-SET.json, which tools/record_measurements.py files. Environment: JOBS, CUDA, ISTHMUS_COMMIT (where there
# is no repository), ISTHMUS_CUDA_IMAGES (a build of the same sources whose device code is taken), ISTHMUS_DEPS_DIR; with the last, checks whose tool is not on the machine say that they are skipped.
set -u
cd "$(dirname "$0")/.." || exit

set_name=${1:?usage: run_tests.sh quick|asan|tsan|tsan-threads|clang|long}
jobs=${JOBS:-$(nproc)}
options=("-DISTHMUS_CUDA=${CUDA:-AUTO}" -DISTHMUS_TESTS=ON)
if [ -n "${ISTHMUS_COMMIT:-}" ]; then options+=("-DISTHMUS_COMMIT=$ISTHMUS_COMMIT"); fi
if [ -n "${ISTHMUS_DEPS_DIR:-}" ]; then options+=("-DISTHMUS_DEPS_DIR=$(realpath "$ISTHMUS_DEPS_DIR")"); fi
# The Python package is part of one build: its tests need no second one.
python=OFF
if .venv/bin/python -c 'import nanobind, numpy, pytest, scikit_build_core' 2>/dev/null; then python=ON; fi
# Prefix of a test run whose processes must not have their memory placed at random.
unshuffled=(env)
# The build whose device code, the same in every build and minutes to compile, the builds after it take.
images=${ISTHMUS_CUDA_IMAGES:-}
failed=()
unbuilt=()  # folders
times=()
steps=()

step() {  # step NAME COMMAND...
  local name=$1 started=$SECONDS passed=true
  shift
  printf '\n== %s ==\n' "$name"
  "$@" || { failed+=("$name"); passed=false; }
  times+=("$(printf '%5d s  %s' $((SECONDS - started)) "$name")")
  steps+=("$(printf '{"step": "%s", "passed": %s, "seconds": %d}' "$name" $passed $((SECONDS - started)))")
  record "$set_name"  # also of what is stopped later
}

# What ran, where and when, for tools/record_measurements.py.
record() {
  local program
  for program in build/bin/isthmus "build-$1/bin/isthmus"; do [ -x "$program" ] && break; done
  [ -x "$program" ] || return
  mkdir -p build
  "$program" info --json | python3 -c '
import datetime, json, sys
facts = json.load(sys.stdin)
print(json.dumps({"machine": facts["machine"], "commit": facts["commit"],
                  "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
                  "set": sys.argv[1], "steps": json.loads(sys.argv[2])}, indent=1))' \
    "$1" "[$(IFS=,; echo "${steps[*]}")]" >"build/tests-$1.json"
}

build() {  # build PRESET [TARGETS...]
  local preset=$1
  shift
  local with_python=OFF
  if [ "$preset" = release ]; then with_python=$python; fi
  local folder=build-$preset
  if [ "$preset" = release ]; then folder=build; fi
  mkdir -p "$folder"
  # Threads of ranks have host memory.
  local own=()
  if [ "$preset" = tsan-threads ]; then own=(-DISTHMUS_CUDA=OFF); fi
  if ! cmake --preset "$preset" "${options[@]}" "-DISTHMUS_PYTHON=$with_python" "-DISTHMUS_CUDA_IMAGES=$images" "${own[@]}" \
    >"$folder/configured.out"; then
    cat "$folder/configured.out"
    unbuilt+=("$folder")
    return 1
  fi
  grep -E 'CUDA parts|missing' "$folder/configured.out"
  # What CMake writes there is the same in the other builds, among them the wheel's, which tests/python/wheel_test.py makes: ccache takes it
  # for the same, too, and what two of them compile by the same command is compiled once, also with the tests' compiled headers.
  CCACHE_BASEDIR=${CCACHE_BASEDIR:-$PWD/$folder} CCACHE_SLOPPINESS=${CCACHE_SLOPPINESS:-pch_defines,time_macros} \
    cmake --build "$folder" -j "$jobs" ${1:+--target "$@"} 2>&1 | tee "$folder/build.out"
  local status=${PIPESTATUS[0]}
  # Once more by itself: what else was being compiled has gone on meanwhile.
  if [ "$status" != 0 ]; then
    unbuilt+=("$folder")
    printf 'build of %s failed:\n' "$folder"
    grep -aE -A3 '^FAILED|error:|Killed|fatal' "$folder/build.out" | cut -c -600 | head -n 40
  fi
  return "$status"
}

# Tests between ranks use more processes than one each; as many tests at a time as processors keep their clocks honest.
run() {  # run FOLDER [ctest options...]
  local folder=$1
  shift
  if [[ " ${unbuilt[*]} " == *" $folder "* ]]; then echo "left out: $folder was not built"; return 1; fi
  # One that ran out of time does so a second time before it counts as failed; who did is said below, since it is a fault all the same.
  "${unshuffled[@]}" ctest --test-dir "$folder" --output-on-failure --no-tests=error --repeat after-timeout:2 -j "$jobs" --timeout 300 "$@" |
    tee "$folder/tests.out" | grep -vE '^ *Start +[0-9]+:|Passed +[0-9.]+ sec$'
  local status=${PIPESTATUS[0]}
  grep -oE 'Test +#[0-9]+: [^ ]+ .*\*\*\*Timeout' "$folder/tests.out" | sed -E 's/.*: ([^ ]+) .*/ran out of time, and got a second turn: \1/'
  return "$status"
}

coverage() {
  find build-coverage -name '*.gcda' -delete
  run build-coverage -LE 'outside|once'
  local status=$?
  if [[ " ${unbuilt[*]} " == *" build-coverage "* ]]; then return $status; fi
  tools/coverage.sh build-coverage || status=1
  return $status
}

quick() {
  local python_targets=()
  if [ $python = ON ]; then python_targets=(isthmus_python); else echo "Python parts: left out (no nanobind in .venv)"; fi
  local not_optimised='counted|long'
  if [ -n "${ISTHMUS_TEST_LONG:-}" ]; then not_optimised=counted; fi
  step "build, optimised" build release isthmus isthmus_program stencil2d isthmus_optimised_tests isthmus_commit \
    "${python_targets[@]}"
  if [ ${#failed[@]} = 0 ]; then images=$PWD/build; fi
  step "tests, optimised: stress, ranks, Python, and the library from outside" run build -L 'stress|ranks|outside|python' -LE "$not_optimised"
  threads_of_ranks
  step "build, counting lines" build coverage
  step "tests, counting lines" coverage
  step "checks of the sources" tools/check_all.sh build
}

sanitized() {  # sanitized PRESET
  # CUDA maps memory where the address sanitizer has its gap.
  export ASAN_OPTIONS=detect_stack_use_after_return=1:protect_shadow_gap=0 UBSAN_OPTIONS=print_stacktrace=1
  # Without TLS: its walk crashes now and then where threads still run at the end, as those of a driver do.
  export LSAN_OPTIONS=suppressions=$PWD/tools/suppressions/leaks.txt:print_suppressions=0:use_tls=0
  export TSAN_OPTIONS=suppressions=$PWD/tools/suppressions/threads.txt
  # One worker of PoCL (both names of that), because two race with each other where no stack names PoCL.
  export POCL_MAX_PTHREAD_COUNT=1 POCL_CPU_MAX_CU_COUNT=1
  # It expects memory in certain places; where addresses are random, a process fails now and then as it starts.
  if [ "$1" = tsan ] && setarch -R true 2>/dev/null; then unshuffled=(setarch -R); fi
  if [ "$1" != tsan ]; then run "build-$1"; return; fi
  # What two threads of PoCL do in the C++ library as they build kernels names PoCL in no stack: those tests have a PoCL without threads of
  # its own, with which queues that wait would not go on.
  local builds_kernels='/(KindArithmetic|KindPacks|Backends)[.].*opencl' status=0
  run "build-$1" -E "$builds_kernels" || status=1
  POCL_DEVICES=basic run "build-$1" -R "$builds_kernels" || status=1
  return $status
}

# What `make test-long` has besides: the sanitizers and the other compiler, with the longer stress.
with() {  # with asan|tsan|clang
  export ISTHMUS_TEST_LONG=1
  step "build, $1" build "$1"
  if [ "$1" = clang ]; then step "tests, clang" run build-clang; else step "tests, $1" sanitized "$1"; fi
}

# The ranks alone are under the sanitizer: their launcher is the optimised one, or it would be most of what is compiled.
threads_of_ranks() {
  local ranks with=(env "TSAN_OPTIONS=suppressions=$PWD/tools/suppressions/threads.txt")
  if setarch -R true 2>/dev/null; then with+=(setarch -R); fi
  local said program=build-tsan-threads/tests/ranks_threads
  step "build, tsan: threads of ranks" build tsan-threads ranks_threads
  if [[ " ${unbuilt[*]} " == *" build-tsan-threads "* ]]; then return; fi
  # Where a container forbids addresses that are not random, and these are too random for the sanitizer's, it says so as it starts.
  if ! said=$("${with[@]}" "$program" --gtest_list_tests 2>&1) && [[ $said == *"unexpected memory mapping"* ]]; then
    echo "left out: threads of ranks under ThreadSanitizer, which does not start here: $(grep -m 1 FATAL <<<"$said")"
    return
  fi
  for ranks in 2 3; do
    step "tests, tsan: 8 threads in each of $ranks ranks" timeout 900 "${with[@]}" build/bin/isthmus run -n "$ranks" \
      --prefix-output "$program" --gtest_brief=1
  done
}

threads() {
  export ISTHMUS_TEST_LONG=1
  step "build, optimised: the launcher" build release isthmus_program isthmus_commit
  threads_of_ranks
}

long() {
  export ISTHMUS_TEST_LONG=1
  quick
  for compiler in asan tsan clang; do with $compiler; done
}

case $set_name in
  quick | long) $set_name ;;
  asan | tsan | clang) with "$set_name" ;;
  tsan-threads) threads ;;
  *) echo "run_tests: unknown set '$set_name': expected quick, asan, tsan, tsan-threads, clang or long"; exit 2 ;;
esac

printf '\n'
printf '%s\n' "${times[@]}"
if [ ${#failed[@]} -gt 0 ]; then
  printf 'failed: %s\n' "${failed[@]}"
  exit 1
fi
echo "all passed"
