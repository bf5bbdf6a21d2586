#!/usr/bin/env bash
# Prepares a folder with every library the build needs, for machines that reach no network:
#
#   tools/fetch_deps.sh deps            here, where Debian packages can be had; the folder can be carried anywhere
#   make demo ISTHMUS_DEPS_DIR=deps     there, where only compilers, CMake, Ninja and Python are
#
# Packages are unpacked, not installed, so that nothing on this machine changes. Below 40 MiB, checked at the end. What the
# Python package is built and tested with (tools/setup.sh names the versions) is unpacked into FOLDER/python: wheels without
# compiled parts, which serve every Python from 3.11 on; where they cannot be fetched, the folder is without them.
set -euo pipefail

folder=$(realpath -m "${1:?usage: fetch_deps.sh FOLDER}")
cd "$(dirname "$0")/.."
packages=(libhwloc-dev libhwloc15 libudev1 libspdlog-dev libfmt-dev libcli11-dev nlohmann-json3-dev libpng-dev zlib1g-dev
          libgtest-dev libgmock-dev opencl-c-headers)  # no loader of OpenCL: in place of the machine's own it may find fewer drivers

if ! command -v apt-get >/dev/null || ! command -v dpkg >/dev/null; then
  echo "fetch_deps: apt-get and dpkg are needed here; run this on a Debian or Ubuntu machine"
  exit 1
fi
mkdir -p "$folder"
list=$folder/PACKAGES
mapfile -t wheels < <(sed -n '/^python_parts=(/,/)/p' tools/setup.sh | tr '()' '  ' | tr -s ' ' '\n' |
                        grep -E '^(nanobind|scikit-build-core|pytest)==')
[ ${#wheels[@]} -eq 3 ] || { echo "fetch_deps: tools/setup.sh does not name the three Python packages that are needed here"; exit 1; }
wanted=$(apt-cache policy "${packages[@]}" | awk '/^[a-z]/ {name = $1} /Candidate:/ {print name $2}'; printf '%s\n' "${wheels[@]}")
if [ -f "$list" ] && [ "$wanted" = "$(cat "$list")" ]; then
  echo "fetch_deps: $folder holds these versions already"
  exit 0
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
(cd "$work" && apt-get -q -o APT::Sandbox::User=root download "${packages[@]}") || {
  echo "fetch_deps: a package could not be downloaded; if the lists are old, run apt-get update and try again"
  exit 1
}
python=.venv/bin/python
[ -x "$python" ] || python=python3
if "$python" -m pip download --quiet --disable-pip-version-check --retries 1 --only-binary=:all: --platform any \
  --implementation py --python-version 3.10 --dest "$work/wheels" "${wheels[@]}"; then
  rm -rf "${folder:?}/python"
  mkdir -p "$folder/python"
  for wheel in "$work"/wheels/*.whl; do
    "$python" -m zipfile -e "$wheel" "$folder/python"
  done
else
  echo "fetch_deps: ${wheels[*]} could not be fetched; $folder has no Python parts"
  wanted=${wanted//==/==not-fetched-}  # so that another run tries again
fi
rm -rf "${folder:?}/usr" "$list"
for package in "$work"/*.deb; do
  dpkg -x "$package" "$work/tree"
done

# Only what a build reads: headers and libraries. An absolute link would lead out of the folder.
mkdir -p "$folder/usr/lib"
cp -a "$work/tree/usr/include" "$folder/usr/"
triplet=$(basename "$(find "$work/tree/usr/lib" -maxdepth 1 -name '*-linux-gnu*' -print -quit)")
cp -a "$work/tree/usr/lib/$triplet" "$folder/usr/lib/"
# Headers that differ between processors stand one folder deeper, where only the system's own compiler looks.
if [ -d "$folder/usr/include/$triplet" ]; then
  cp -a "$folder/usr/include/$triplet/." "$folder/usr/include/"
  rm -rf "${folder:?}/usr/include/$triplet"
fi
if [ -d "$work/tree/lib" ]; then cp -a "$work/tree/lib/." "$folder/usr/lib/"; fi
rm -rf "$folder/usr/lib/$triplet/"{cmake,pkgconfig,libpng-config}
find "$folder" -name '*.a' \( -name 'libhwloc*' -o -name 'libfmt*' -o -name 'libspdlog*' \) -delete
find "$folder" -name '*.la' -delete
find "$folder" -type l -lname '/*' | while read -r link; do
  target=$(readlink "$link")
  inside=$folder/usr/lib/$triplet/$(basename "$target")
  if [ -e "$inside" ]; then ln -sfn "$(basename "$target")" "$link"; else rm "$link"; fi
done
# Not every way of carrying a folder keeps links: what is left becomes a file.
find "$folder" -type l | while read -r link; do
  if [ -f "$link" ]; then cp --remove-destination "$(readlink -f "$link")" "$link"; else rm "$link"; fi
done
printf '%s\n' "$wanted" >"$list"

size=$(du -sm "$folder" | cut -f1)
echo "fetch_deps: $folder is ready, $size MiB; configure with -DISTHMUS_DEPS_DIR=$folder"
[ "$size" -lt 40 ] || { echo "fetch_deps: larger than 40 MiB, which was not meant"; exit 1; }
