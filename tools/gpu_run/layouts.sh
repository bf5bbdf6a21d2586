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
  python3 -B tools/layout_record.py "$raw" "$out/layouts.json" 2>&1 | tee -a "$log" >>"$summary" || failures=$((failures + 1))
  finish
}
