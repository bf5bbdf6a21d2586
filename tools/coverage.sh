#!/usr/bin/env bash
# Line coverage of src/ by the tests that ran in a build of the coverage preset; fails below 85 %.
# Usage: coverage.sh BUILD_DIR
set -euo pipefail
cd "$(dirname "$0")/.."

build=${1:?usage: coverage.sh BUILD_DIR}
least=85
if ! command -v gcovr >/dev/null && [ -n "${ISTHMUS_DEPS_DIR:-}" ]; then
  echo "coverage: SKIPPED: gcovr is not installed, and with ISTHMUS_DEPS_DIR nothing is"
  exit 0
fi
if ! command -v gcovr >/dev/null; then
  echo "coverage: no gcovr; run tools/setup.sh test"
  exit 1
fi
# A tool built by another compiler than the objects cannot read their notes.
compiler=$(sed -n 's/^CMAKE_CXX_COMPILER:[A-Z]*=//p' "$build/CMakeCache.txt")
gcov=gcov-$("$compiler" -dumpversion | cut -d. -f1)
command -v "$gcov" >/dev/null || gcov=gcov
# Where a process ends while its threads still run, as some tests do, its counts do not fit each other: branches may come out below 0.
timeout 300 gcovr --root . --filter 'src/' --gcov-ignore-parse-errors --gcov-executable "$gcov" --object-directory "$build" -j "${JOBS:-$(nproc)}" \
      --fail-under-line $least --txt "$build/coverage.txt" --print-summary --exclude-unreachable-branches "$build" |
  sed -n 's/^lines: /coverage of src: lines /p' || status=$?
echo "coverage: the least covered files (all of them in $build/coverage.txt):"
# awk reads to the end: a `head` that stops early would end `sort` by SIGPIPE, now and then, and with it this script.
sed -n 's/^\(src[^ ]*\) \+\([0-9]\+\) \+\([0-9]\+\) \+\([0-9]\+\)%.*/\4 \3 \2 \1/p' "$build/coverage.txt" | sort -n |
  awk 'NR <= 8 {printf "  %3d %%  %4d of %4d lines  %s\n", $1, $2, $3, $4}'
if [ "${status:-0}" != 0 ]; then
  echo "coverage: below $least % of lines"
  exit 1
fi
