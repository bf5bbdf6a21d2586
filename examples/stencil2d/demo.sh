#!/bin/sh
# Runs the stencil on a photograph with several ranks, compares it with a serial run and leaves pictures in demo-out/.
# Usage: demo.sh [BUILD_DIR] [more options of stencil2d]
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
build=${1:-$root/build}
[ $# -eq 0 ] || shift
ranks=${DEMO_RANKS:-4}
out=${DEMO_OUTPUT:-$root/demo-out}

for program in isthmus stencil2d; do
  if [ ! -x "$build/bin/$program" ]; then
    echo "demo.sh: $build/bin/$program is not there; build it first (make demo does both)" >&2
    exit 1
  fi
done

# Each rank's OpenCL on the processor would start a thread for every core. With as many ranks as cores they would only get in
# each other's way. Ranks that share a core stay on it, each beside its thread.
bind=
if [ "$ranks" -ge "$(nproc)" ]; then
  export POCL_MAX_PTHREAD_COUNT="${POCL_MAX_PTHREAD_COUNT:-1}"
  bind=--bind
fi

"$build/bin/isthmus" run $bind -n "$ranks" "$build/bin/stencil2d" --input "$root/examples/images/launchpad.png" \
  --iterations 300 --frames 3 --palette heat --output "$out" --json "$out/stencil2d.json" "$@"
