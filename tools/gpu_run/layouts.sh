# shellcheck shell=bash disable=SC2154
# tools/gpu_run.sh layouts: messages with layouts between GPUs, beside the same bytes in one piece (isthmus bench layout), and packing beside kernels
# that were written by hand (tools/peers/pack_kernels.cu), also by other ways of sharing units out (tools/peers/pack_ways.cu, pack_ways.txt). Sourced by it, for its functions.

run_layouts() {
  build_all
  describe_machine
  step $((2 * limit)) "messages with layouts" env ISTHMUS_BENCH_OPTIONS="${ISTHMUS_BENCH_OPTIONS:-}" bash -o pipefail -c \
    "'$isthmus' bench layout vector --kind cuda --sizes 1MiB,16MiB,64MiB --blocks 16,64,256,4KiB --json '$raw/layout-cuda.json' \$ISTHMUS_BENCH_OPTIONS | tee '$raw/table.txt'"
  step 120 "compile tools/peers/pack_kernels.cu" nvcc -std=c++17 -O3 -arch=native -Iinclude tools/peers/pack_kernels.cu -o "$build/pack_kernels" \
    "-L$build/lib" -listhmus -Xlinker "-rpath,$build/lib" &&
    step "$limit" "packing by hand" bash -c "'$build/pack_kernels' --json >'$raw/pack_kernels.json'"
  step 120 "compile tools/peers/pack_ways.cu" nvcc -std=c++20 -O3 -arch=native -fmad=false -Isrc -Iinclude tools/peers/pack_ways.cu -o "$build/pack_ways" &&
    step "$limit" "ways to share units out" bash -o pipefail -c "'$build/pack_ways' | tee '$out/pack_ways.txt'"
  # An MPI that does not know device memory crashes; what it was asked is in the record.
  if command -v mpicc >/dev/null && command -v mpirun >/dev/null; then
    step 200 "MPI's derived types" env ISTHMUS_BENCH_OPTIONS=--quick ISTHMUS_ROUNDS=1 python3 -B tools/peers/compare_layouts.py "$isthmus" "$raw" cuda "$build/peers"
  else
    note "MPI's derived types: left out, there is no mpicc and mpirun"
  fi
  python3 -B tools/layout_record.py "$raw" "$out/layouts.json" 2>&1 | tee -a "$log" >>"$summary" || failures=$((failures + 1))
  finish
}

# tools/gpu_run.sh packs [CASES]: random nests of layouts, packed and unpacked on every device and compared byte by byte with an interpreter of their
# definitions; rows by copy engines; and halos of devices in all combinations. packs.json says what was asked and found.
run_packs() {
  local cases=${1:-100000}
  [[ $cases =~ ^[1-9][0-9]*$ ]] || { echo "gpu_run: packs takes a number of cases, and was given '$cases'"; exit 2; }
  build_all
  describe_machine
  step 420 "$cases random layouts" env ISTHMUS_TEST_PACKS="$cases" "$build/tests/packing_test" --gtest_brief=1 "--gtest_output=json:$raw/packing_test.json"
  local ranks filter
  ranks=$(gpus)
  ((ranks > 1)) || ranks=2
  for filter in 'HaloFields.of_devices*' 'HaloLists.*'; do
    step "$limit" "halos, $filter" env ISTHMUS_TEST_HALOS=all "$isthmus" run -n "$ranks" --prefix-output "$build/tests/ranks_halo_fields" \
      --gtest_brief=1 "--gtest_filter=$filter"
  done
  python3 - "$raw/packing_test.json" "$out" "$cases" "$ranks" <<'PYTHON' 2>&1 | tee -a "$log" >>"$summary" || failures=$((failures + 1))
import datetime, json, pathlib, sys
out, info = pathlib.Path(sys.argv[2]), json.loads((pathlib.Path(sys.argv[2]) / "info.json").read_text())
found = json.loads(pathlib.Path(sys.argv[1]).read_text())
tests = [{"name": f"{suite['name']}.{test['name']}", "seconds": float(test["time"].rstrip("s")), "passed": test["result"] == "COMPLETED" and not test.get("failures")}
         for suite in found["testsuites"] for test in suite["testsuite"] if test["status"] == "RUN"]
steps = [line for line in (out / "summary.txt").read_text().splitlines() if line.startswith(("ok", "FAILED"))]
(out / "packs.json").write_text(json.dumps({"machine": info["machine"], "commit": info["commit"], "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
                                            "benchmark": "packs", "cases": int(sys.argv[3]), "ranks": int(sys.argv[4]), "tests": tests, "steps": steps}, indent=1) + "\n")
print(f"packs.json: {sum(test['passed'] for test in tests)} of {len(tests)} tests of packing passed, {sys.argv[3]} random layouts each")
PYTHON
  finish
}

# tools/gpu_run.sh rows: is it right when layouts in rows go by copy engines? Each forced for every layout, by profiles of a machine, and as the numbers
# that `isthmus model fit` measures here choose; on one device and to host memory and back (bench pack), and between two (bench layout).
run_rows() {
  build_all
  describe_machine
  step "$limit" "isthmus model fit" "$isthmus" model fit --output "$raw/fitted.json"
  local how profile
  for how in always never fitted; do
    profile=$PWD/tools/gpu_run/rows_$how.json
    [[ $how == fitted ]] && profile=$PWD/$raw/fitted.json
    # shellcheck disable=SC2086 # several words
    step "$limit" "packing, rows $how" env ISTHMUS_PROFILE="$profile" bash -o pipefail -c \
      "'$isthmus' bench pack vector --kind cuda --sizes 1MiB,16MiB --blocks 4,64,1KiB,16KiB,256KiB --json '$raw/pack-$how.json' \"\$@\" | tee -a '$out/rows.txt'" rows ${ISTHMUS_BENCH_OPTIONS:-}
    (($(gpus) > 1)) || continue
    # shellcheck disable=SC2086 # several words
    step $((2 * limit)) "messages with layouts, rows $how" env ISTHMUS_PROFILE="$profile" bash -o pipefail -c \
      "'$isthmus' bench layout vector --kind cuda --sizes 1MiB,16MiB --blocks 64,1KiB,16KiB,256KiB --json '$raw/layout-$how.json' \"\$@\" | tee -a '$out/rows.txt'" rows ${ISTHMUS_BENCH_OPTIONS:-}
  done
  python3 - "$raw" "$out/rows.json" <<'PYTHON' 2>&1 | tee -a "$log" >>"$summary" || failures=$((failures + 1))
import json, pathlib, sys
raw = pathlib.Path(sys.argv[1])
found = {file.stem: json.loads(file.read_text()) for file in sorted(raw.glob("*.json"))}
pathlib.Path(sys.argv[2]).write_text(json.dumps(found, indent=1) + "\n")
def rows(name): return {(row["block"], row["bytes"], row.get("source"), row.get("into")): row for row in found.get(name, {}).get("rows", [])}
# As it is chosen with the numbers of this machine, beside the quicker of both: 1 is right.
for bench, times in (("pack", ("pack_us", "to_host_us", "from_host_us")), ("layout", ("median_us",))):
    always, never, fitted = (rows(f"{bench}-{how}") for how in ("always", "never", "fitted"))
    for key in sorted(always.keys() & never.keys() & fitted.keys(), key=str):
        for time in times:
            a, n, f = (side[key][time] for side in (always, never, fitted))
            ways = " ".join(filter(None, key[2:]))
            print(f"{bench} {time:12} block {key[0]:7} of {key[1]:9} {ways}: rows {a:9.2f}, kernels {n:9.2f}, chosen {f:9.2f} us, {f / min(a, n):.2f} of the quicker")
PYTHON
  finish
}

# tools/gpu_run.sh halo: halo.json is a list of what each bench wrote.
run_halo() {
  build_all
  describe_machine
  local kind of
  for kind in cuda host; do
    for of in boxes lists; do
      # shellcheck disable=SC2086,SC2046 # several words, or none
      step "$limit" "halos of $of, $kind" bash -o pipefail -c "'$isthmus' bench halo \"\$@\" --json '$raw/halo-$kind-$of.json' | tee -a '$out/halo.txt'" halo \
        $([[ $of == lists ]] && echo lists) --kind $kind ${ISTHMUS_BENCH_OPTIONS:-}
    done
  done
  python3 -c 'import json, pathlib, sys; print(json.dumps([json.loads(file.read_text()) for file in sorted(pathlib.Path(sys.argv[1]).glob("halo-*.json"))], indent=1))' \
    "$raw" >"$out/halo.json" || failures=$((failures + 1))
  finish
}
