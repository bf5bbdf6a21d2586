#!/usr/bin/env bash
# Every check of the sources, and all of them even if one fails. Usage: check_all.sh BUILD_DIR (configured by CMake)
set -u
cd "$(dirname "$0")/.." || exit

build=${1:?usage: check_all.sh BUILD_DIR}
failed=()
for check in "python3 -B tools/check_rooms.py" "python3 -B tools/check_map.py" "python3 -B tools/record_measurements.py --check" tools/check_format.sh \
             "python3 -B tools/check_tidy.py $build"; do
  $check || failed+=("${check##*/}")
done
if [ ${#failed[@]} -gt 0 ]; then
  printf 'check: failed: %s\n' "${failed[*]}"
  exit 1
fi
