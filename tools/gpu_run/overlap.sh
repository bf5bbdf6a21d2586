# shellcheck shell=bash disable=SC2154
# tools/gpu_run.sh overlap: how much of an exchange and of an allreduce is hidden behind computation, of CUDA and of host memory, without and
# with a progress thread, by ranks with a processor to spare and by ranks bound to their shares. Sourced by it, for its functions.
run_overlap() {
  build_all
  describe_machine
  rm -rf "$build/overlap"
  # Rounds end in time by themselves; what one of them may take longer than the one before is the rest.
  step 175 "overlap with computation" env ISTHMUS_OVERLAP_KINDS="${ISTHMUS_OVERLAP_KINDS:-cuda host}" \
    ISTHMUS_OVERLAP_BINDINGS="${ISTHMUS_OVERLAP_BINDINGS:-spare bound}" ISTHMUS_OVERLAP_SECONDS="${ISTHMUS_OVERLAP_SECONDS:-150}" \
    ISTHMUS_BENCH_OPTIONS="${ISTHMUS_BENCH_OPTIONS:-}" bash -o pipefail -c "python3 -B tools/measure_overlap.py '$build' | tee '$raw/overlap.txt'"
  cat "$raw/overlap.txt" >>"$summary"
  [[ -f $build/overlap/overlap.json ]] && cp "$build/overlap/overlap.json" "$out/overlap.json"
  finish
}
