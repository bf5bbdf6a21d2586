# tools/gpu_run.sh collectives: ours beside NCCL's own on the same GPUs. Sourced by it, for its functions.
# shellcheck shell=bash disable=SC2154

# One list of objects: ours, and NCCL's own with the library's name.
bundle_collectives() {
  python3 - "$raw" "$out" <<'PYTHON' | tee -a "$log" >>"$summary"
import datetime, json, pathlib, sys
raw, out = map(pathlib.Path, sys.argv[1:])
info = json.loads((out / "info.json").read_text())
library = next((one["detail"].split(",")[0] for one in info.get("collective", []) if one["name"] == "nccl"), "version unknown")
about = {"machine": info["machine"], "commit": info["commit"]}
found = []
for file in sorted(raw.glob("collective*.json")) + sorted(raw.glob("nccl.json")):
    when = datetime.datetime.fromtimestamp(file.stat().st_mtime, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    try:
        read = json.loads(file.read_text())
    except ValueError:
        print(f"left out {file.name}: not complete")
        continue
    theirs = isinstance(read, list)
    for one in read if theirs else [read]:
        found.append({**about, "date": when, "by": f"NCCL, {library}" if theirs else "isthmus", **one})
if found:
    (out / "collectives.json").write_text(json.dumps(found, indent=1) + "\n")
print(f"\n{'call':15} {'by':8} {'8 B us':>9} {'64 KiB us':>10} {'1 MiB us':>10} {'16 MiB us':>10} {'64 MiB us':>10}  path at 1 MiB")
for one in sorted(found, key=lambda one: one["benchmark"]):
    rows = {row["bytes"]: row for row in one["rows"]}
    rows.setdefault(8, rows.get(0))  # a barrier has no bytes
    at = lambda size: f"{rows[size]['median_us']:.2f}" if rows.get(size) else "-"
    print(f"{one['benchmark']:15} {one['by'].split(',')[0]:8} {at(8):>9} {at(65536):>10} {at(1 << 20):>10} {at(1 << 24):>10} "
          f"{at(1 << 26):>10}  {rows.get(1 << 20, {}).get('path', '-')}")
PYTHON
}

run_collectives() {
  local nccl ranks
  nccl=$(find_nccl)
  build_all
  # No multicast between GPUs: not every machine that is lent allows it.
  export NCCL_NVLS_ENABLE=0 ISTHMUS_NCCL=${nccl:+$nccl/lib/libnccl.so.2}
  [[ -n $nccl ]] || unset ISTHMUS_NCCL
  describe_machine
  ranks=$(gpus)
  ((ranks > 8)) && ranks=8
  note "NCCL: ${nccl:-none found with its header}; $ranks rank(s)"
  if ((ranks > 1)); then
    step 60 "collective calls by NCCL, checked" env ISTHMUS_TEST_NCCL=nccl ISTHMUS_PROFILE=tests/ranks/profiles/nccl.json "$isthmus" run -n "$ranks" --prefix-output \
      "$build/tests/ranks_nccl" --gtest_brief=1
    step 60 "the same calls by messages" env ISTHMUS_NCCL=never ISTHMUS_TEST_NCCL=messages "$isthmus" run -n "$ranks" \
      --prefix-output "$build/tests/ranks_nccl" --gtest_brief=1
  fi
  ((ranks > 1)) || ranks=2  # which share the GPU
  step 60 "collective calls in streams, checked" "$isthmus" run -n "$ranks" --prefix-output "$build/tests/ranks_meetings" \
    --gtest_brief=1
  # Timed until the stream is idle, as NCCL's own below.
  for call in allreduce_on bcast_on reduce_on; do
    limit=40 collective_step $call cuda --min 8 --max 64MiB --ranks "$ranks"
  done
  limit=40 collective_step barrier_on cuda --ranks "$ranks"
  for call in allreduce bcast reduce_scatter; do
    limit=40 collective_step $call cuda --min 8 --max 64MiB --ranks "$ranks"
  done
  # Of these a rank has a part for each other one.
  for call in allgather alltoall; do
    limit=40 collective_step $call cuda --min 8 --max $((128 / ranks))MiB --ranks "$ranks"
  done
  if [[ -n $nccl ]] && step 60 "compile tools/peers/nccl_collectives.cu" nvcc -std=c++17 -O3 "-I$nccl/include" \
    tools/peers/nccl_collectives.cu -o "$build/nccl_collectives" "-L$nccl/lib" -Xlinker -l:libnccl.so.2 -Xlinker \
    "-rpath,$nccl/lib"; then
    step 90 "NCCL's own collective calls, checked and timed" bash -c "'$build/nccl_collectives' $(gpus) >'$raw/nccl.json'"
    (($(gpus) < 2)) || { step 60 "compile tools/peers/nccl_ways.cu" nvcc -std=c++17 -O3 "-I$nccl/include" tools/peers/nccl_ways.cu -o \
      "$build/nccl_ways" "-L$nccl/lib" -Xlinker -l:libnccl.so.2 -Xlinker "-rpath,$nccl/lib" &&
      step 40 "ways to call NCCL" bash -c "'$build/nccl_ways' >'$raw/ways.txt'" && cat "$raw/ways.txt" >>"$summary"; }
  fi
  bundle_collectives
  finish
}
