#!/usr/bin/env bash
# Looks for what the build needs and installs what is missing: Debian packages where that is allowed, wheels into .venv.
#
#   tools/setup.sh demo|test|long     what `make demo`, `make test` and `make test-long` need
#
# Allowed means root or a sudo that asks nothing; otherwise the exact command is printed and the status is 1. A second call
# finds everything in place and contacts nothing. With ISTHMUS_DEPS_DIR set, libraries come from that folder and only the
# tools are looked for.
set -euo pipefail
cd "$(dirname "$0")/.."

level=${1:-demo}
mkdir -p .setup
tools=(g++ cmake ninja-build python3)
libraries=(libhwloc-dev libspdlog-dev libfmt-dev libcli11-dev nlohmann-json3-dev libpng-dev zlib1g-dev
           opencl-c-headers ocl-icd-libopencl1 pocl-opencl-icd python3-venv)
test_packages=(git pkg-config libgtest-dev libgmock-dev spin tcc gcovr valgrind ccache python3-dev iproute2
               openmpi-bin libopenmpi-dev mpich libmpich-dev munge slurmctld slurmd slurm-client)
long_packages=(clang)
# One version of the formatter and the linter everywhere, or their answers would differ from machine to machine.
checkers=(clang-format==14.0.6 clang-tidy==22.1.8)
# What builds the Python package, and what its tests use. JAX, for the processor alone, brings SciPy: 125 MB for both.
python_parts=(nanobind==3.1.0 scikit-build-core==1.1.2 numpy==2.4.6 pytest==9.2.0 pyopencl==2026.1.4
              matplotlib==3.11.2 jax==0.10.2 jaxlib==0.10.2 ml_dtypes==0.6.0)
# Compiler, its back end, its headers, the runtime to link, and the C++ library for device code: nothing less compiles.
cuda_compiler=(nvidia-cuda-nvcc==13.0.88 nvidia-nvvm==13.0.88 nvidia-cuda-crt==13.0.88 nvidia-cuda-runtime==13.0.96
               nvidia-cuda-cccl==13.0.85)

say() { printf 'setup: %s\n' "$*"; }

case $level in
  demo) wanted=("${tools[@]}" "${libraries[@]}") ;;
  test) wanted=("${tools[@]}" "${libraries[@]}" "${test_packages[@]}") ;;
  long) wanted=("${tools[@]}" "${libraries[@]}" "${test_packages[@]}" "${long_packages[@]}") ;;
  *) say "unknown set '$level': expected demo, test or long"; exit 2 ;;
esac

# Is the command there, whatever package it came from?
have_tool() {
  case $1 in
    ninja-build) command -v ninja ;;
    g++ | cmake | python3 | git | spin | tcc | gcovr | valgrind | ccache | clang | pkg-config) command -v "$1" ;;
    iproute2) command -v ip ;;
    slurm-client) command -v srun ;;
    munge | slurmctld | slurmd) PATH=$PATH:/usr/sbin command -v "${1/%munge/munged}" ;;
    python3-venv) python3 -c 'import venv, ensurepip' ;;
    python3-dev) python3 -c 'import pathlib, sys, sysconfig; sys.exit(not (pathlib.Path(sysconfig.get_path("include")) / "Python.h").exists())' ;;
    *) return 1 ;;
  esac >/dev/null 2>&1
}

have_package() {
  have_tool "$1" && return 0
  [[ $(dpkg-query -W -f='${db:Status-Abbrev}' "$1" 2>/dev/null) == ii* ]]
}

missing=()
for name in "${wanted[@]}"; do
  case " ${tools[*]} " in
    *" $name "*) ;;
    *) [ -z "${ISTHMUS_DEPS_DIR:-}" ] || continue ;;
  esac
  have_package "$name" || missing+=("$name")
done

install_packages() {
  local root=()
  if [ "$(id -u)" != 0 ]; then root=(sudo -n); fi
  local get=("${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -y -q)
  local options=(--no-install-recommends -o Dpkg::Use-Pty=0)
  # A machine without package lists, or with old ones, gets them once.
  if ! compgen -G '/var/lib/apt/lists/*_Packages*' >/dev/null || ! "${get[@]}" "${options[@]}" install "${missing[@]}"; then
    "${get[@]}" update
    "${get[@]}" "${options[@]}" install "${missing[@]}"
  fi
}

if [ ${#missing[@]} -gt 0 ]; then
  if ! command -v apt-get >/dev/null; then
    say "not found: ${missing[*]} (names of Debian packages); install them with this system's package manager"
    exit 1
  elif [ "$(id -u)" = 0 ] || sudo -n true 2>/dev/null; then
    say "installing ${missing[*]} (log: .setup/packages.log)"
    install_packages >.setup/packages.log 2>&1 || {
      tail -n 20 .setup/packages.log
      say "apt-get could not install ${missing[*]}; its reason is above"
      exit 1
    }
  else
    say "not found: ${missing[*]}"
    say "this user may not install packages; run this, then try again:"
    printf '  sudo apt-get update && sudo apt-get install --no-install-recommends -y %s\n' "${missing[*]}"
    exit 1
  fi
fi

# ---- wheels, in the project's own environment ----

have_wheels() {
  [ -x .venv/bin/python ] || return 1
  .venv/bin/python - "$@" <<'PY' 2>/dev/null
import sys, importlib.metadata as metadata
for wheel in sys.argv[1:]:
    name, version = wheel.split("==")
    if metadata.version(name) != version:
        sys.exit(1)
PY
}

install_wheels() {
  [ -x .venv/bin/python ] || python3 -m venv .venv || return 1
  .venv/bin/python -m pip install --quiet --disable-pip-version-check --retries 1 "$@"
}

have_nvcc() {
  command -v nvcc >/dev/null || [ -x "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" ] || [ -x "${CUDA_PATH:-/usr/local/cuda}/bin/nvcc" ]
}

cuda=${CUDA:-AUTO}
refused=.setup/cuda-wheels-refused
if [ "$cuda" != OFF ] && ! have_nvcc && ! have_wheels "${cuda_compiler[@]}"; then
  if [ "$cuda" != ON ] && [ -n "$(find "$refused" -mtime -1 2>/dev/null)" ]; then
    say "CUDA parts are left out: the compiler's wheels could not be fetched today (remove $refused to try again)"
  elif [ "$(uname -m)" != x86_64 ] && [ "$cuda" != ON ]; then
    say "CUDA parts are left out: no nvcc on this machine"
  elif say "fetching the CUDA compiler into .venv" && install_wheels "${cuda_compiler[@]}"; then
    rm -f "$refused"
  elif [ "$cuda" = ON ]; then
    say "CUDA=ON, but there is no nvcc and its wheels could not be fetched"
    exit 1
  else
    touch "$refused"
    say "CUDA parts are left out: there is no nvcc and its wheels could not be fetched"
  fi
fi

if [ "$level" != demo ] && [ -z "${ISTHMUS_DEPS_DIR:-}" ] && ! have_wheels "${checkers[@]}"; then
  say "fetching formatter and linter into .venv"
  install_wheels "${checkers[@]}" || { say "could not fetch ${checkers[*]}; make check needs them"; exit 1; }
fi

if [ "$level" != demo ] && [ -z "${ISTHMUS_DEPS_DIR:-}" ] && ! have_wheels "${python_parts[@]}"; then
  say "fetching what the Python package is built and tested with into .venv"
  install_wheels "${python_parts[@]}" || { say "could not fetch ${python_parts[*]}; make test needs them"; exit 1; }
fi
