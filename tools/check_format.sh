#!/usr/bin/env bash
# Says which sources are not in the project's format; with --fix, rewrites them. One pinned formatter, from .venv.
set -euo pipefail
cd "$(dirname "$0")/.."

formatter=.venv/bin/clang-format
if [ ! -x "$formatter" ] && [ -n "${ISTHMUS_DEPS_DIR:-}" ] && [ "${1:-}" != --fix ]; then
  echo "check_format: SKIPPED: no $formatter, and with ISTHMUS_DEPS_DIR nothing is fetched"
  exit 0
fi
[ -x "$formatter" ] || { echo "check_format: no $formatter; run tools/setup.sh test"; exit 1; }

mapfile -t sources < <(git ls-files --cached --others --exclude-standard -- '*.c' '*.h' '*.cpp' '*.hpp' '*.cu' '*.cuh' |
                         while read -r name; do [ -f "$name" ] && echo "$name"; done)
if [ "${1:-}" = --fix ]; then
  exec "$formatter" -i "${sources[@]}"
fi
faults=$("$formatter" --dry-run "${sources[@]}" 2>&1 | sed -n 's/^\([^:]*\):\([0-9]*\):.*Wclang-format-violations.*/\1/p' |
           sort | uniq -c)
if [ -n "$faults" ]; then
  echo "check_format: places that differ, by file (make format mends them):"
  echo "$faults"
  exit 1
fi
echo "check_format: ${#sources[@]} files in the project's format"
