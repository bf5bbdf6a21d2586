#!/bin/sh
# variables.sh ISTHMUS PROGRAM: what the standard's variables have PE 0 print when a program begins, by their names and by the deprecated ones.
isthmus=$1
program=$2
bad=0
unset SHMEM_VERSION SHMEM_INFO SHMEM_DEBUG SMA_VERSION SMA_INFO SMA_DEBUG

# is VERSIONS INFOS VARIABLE=VALUE...: so many lines of each kind are printed by two PEs.
is() {
  versions=$1
  infos=$2
  shift 2
  text=$(env "$@" timeout 60 "$isthmus" run -n 2 "$program" 2>&1)
  status=$?
  found_versions=$(printf '%s\n' "$text" | grep -c '^OpenSHMEM 1\.[0-9]*, Isthmus [0-9.]*$')
  found_infos=$(printf '%s\n' "$text" | grep -c '^OpenSHMEM 1\.[0-9]*, Isthmus [0-9.]*: 2 PEs\. Variables: SHMEM_SYMMETRIC_SIZE,')
  if test $status -ne 0 || test "$found_versions" -ne "$versions" || test "$found_infos" -ne "$infos"; then
    printf '%s\nended with %s, and said where %s and %s lines were expected:\n%s\n' "$*" $status "$versions" "$infos" "$text"
    bad=1
  fi
}

is 0 0 NOTHING=1
for prefix in SHMEM SMA; do
  is 1 0 ${prefix}_VERSION=1
  is 1 0 ${prefix}_VERSION=yes
  is 0 1 ${prefix}_INFO=1
  is 1 1 ${prefix}_INFO=1 ${prefix}_VERSION=1
  is 0 0 ${prefix}_INFO=0 ${prefix}_VERSION=
  is 0 0 ${prefix}_DEBUG=1
done
# Of both the standard's newer name holds.
is 1 0 SHMEM_VERSION=1 SMA_VERSION=0 SHMEM_INFO=0 SMA_INFO=1
exit $bad
