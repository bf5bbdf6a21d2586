#!/bin/sh
# errors.sh ISTHMUS PROGRAM: whatever is wrong is named, with the call and the PE, and the job ends within two seconds.
isthmus=$1
program=$2
bad=0
output=$(mktemp)
trap 'rm -f "$output"' EXIT

# expect STATUS WORDS NAME...: a job of three PEs whose last one does that.
expect() {
  status=$1
  words=$2
  shift 2
  begin=$(date +%s%N)
  timeout 20 "$isthmus" run -n 3 "$program" "$@" > "$output" 2>&1
  got=$?
  took=$((($(date +%s%N) - begin) / 1000000))
  if test $got -ne "$status"; then
    echo "$*: status $got where $status was expected"
    bad=1
  fi
  if test $took -gt 2000; then
    echo "$*: took $took ms"
    bad=1
  fi
  if test "$words" && ! grep -q "$words" "$output"; then
    echo "$*: does not say: $words"
    bad=1
  fi
  test $bad -eq 0 || cat "$output"
}

expect 1 "PE 2: shmem_long_put: PE 3 was named; there are PEs 0 to 2" pe
expect 1 "PE 2: shmem_int_atomic_inc: PE -1 was named" negative_pe
expect 1 "PE 2: shmem_getmem: 8 bytes at .* which are not symmetric" stack
expect 1 "shmem_putmem: 1125899906842624 bytes at .* the bytes end behind it" beyond
expect 1 "shmem_long_put: 18446744073709551615 bytes at .* the bytes end behind it" too_many
expect 1 "shmem_long_sum_reduce: 18446744073709551615 bytes at .* the bytes end behind it" too_many_reduced
expect 1 "shmem_long_p: 8 bytes at .* an address in the part of PE 0" others
expect 1 "shmem_long_wait_until: .* not symmetric" wait
expect 1 "shmem_long_test: the comparison is 17" compare
expect 1 "shmem_ctx_long_p: the context is SHMEM_CTX_INVALID" context
expect 1 "shmem_ctx_long_p: the context was destroyed before" destroyed_context
for call in fence quiet pe_quiet session_start session_stop; do
  expect 1 "PE 2: shmem_ctx_$call: the context was destroyed before" gone_in_$call
done
expect 1 "shmem_ctx_long_g: PE 3 was named; the context's team has PEs 0 to 2" team_context
expect 1 "shmem_putmem_signal: the signal's operation is 9" signal
expect 1 "shmem_free: .* not symmetric" free
expect 1 "shmem_realloc: nothing was allocated at the address" realloc
expect 1 "shmem_malloc: .*PE 0 gave 8 for bytes, and PE 1 9" sizes
expect 1 "shmem_free: .*nothing was allocated at the address" freed_twice
expect 1 "shmem_barrier: the active set is 4 PEs from 0 on" active_set
expect 0 "" many_sets
shared="another thread of this PE is inside a call on words that this one shares"
expect 1 "PE 2: shmem_barrier: $shared: pSync arrays at 256 places" shared_set
expect 1 "PE 2: shmem_barrier: $shared: pSync arrays at 256 places" shared_stack
expect 1 "PE 2: shmem_team_sync: $shared: 63 teams" shared_team
expect 1 "shmem_barrier: this PE is not in the active set of 2 PEs" not_a_member
expect 1 "shmem_broadcast64: the root is PE 77" root
expect 1 "shmem_long_sum_reduce: .* not symmetric" reduce
expect 1 "shmem_clear_lock: nobody holds the lock" unlock
expect 1 "shmem_team_destroy: the team is no longer there, or one of the library's own" team
expect 1 "shmemx_malloc_on: the kind is 9" kind
expect 1 "shmem_long_p: OpenSHMEM is not initialised here" uninitialised
for size in 4X 0 -1M M 99999T; do
  export SHMEM_SYMMETRIC_SIZE=$size
  expect 1 "shmem_init_thread: SHMEM_SYMMETRIC_SIZE is \"$size\"; name bytes as 64M or 1.5G" none
done
unset SHMEM_SYMMETRIC_SIZE
export SHMEMX_SYMMETRIC_SIZE_CUDA=1X
expect 1 "shmem_init_thread: SHMEMX_SYMMETRIC_SIZE_CUDA is \"1X\"; name bytes as 64M or 1.5G" none
export SHMEMX_SYMMETRIC_SIZE_CUDA=16M ISTHMUS_KINDS=host
expect 1 "shmem_init_thread: SHMEMX_SYMMETRIC_SIZE_CUDA asks for 16777216 bytes of each PE's device: .*cuda" none
unset SHMEMX_SYMMETRIC_SIZE_CUDA ISTHMUS_KINDS
errors=$program
program=sh
expect 1 "shmem_init_thread: SHMEMX_SYMMETRIC_SIZE_OPENCL asks for 0 bytes at PE 0 and for 16777216 at PE 1; give all PEs the same" \
  -c 'test "$ISTHMUS_RANK" = 1 && export SHMEMX_SYMMETRIC_SIZE_OPENCL=16M; exec "$0" none' "$errors"
program=$errors
expect 0 "" exit_0
expect 7 "" exit_7
expect 137 "a PE of this job died" abort
expect 137 "shmem_test_lock: a PE of this job died" holder
expect 3 "has left" leave
expect 1 "shmem_barrier_all: PE 2 has left without taking part" leave_0
expect 1 "PE 0: shmem_test_lock: all other PEs have left" others_leave_a_lock
expect 1 "PE 0: shmem_long_test: all other PEs have left" others_leave_a_word
expect 0 "" others_leave_a_thread
expect 1 "PE 0: shmem_long_wait_until: all other PEs have left or are in shmem_finalize, and nobody writes" finalize_after_wait
expect 1 "shmem_finalize: PE [12] has called shmem_finalize without taking part: all PEs make the same" finalize_after_barrier
expect 1 "has called shmem_finalize without taking part: all PEs make the same" finalize_after_mixture
expect 0 "handled: shmem_long_put on PE 2: PE 3 was named" handled pe
expect 0 "handled: shmem_getmem on PE 2: 8 bytes at" handled stack
expect 0 "handled: shmem_clear_lock on PE 2: nobody holds the lock" handled unlock
expect 0 "handled: shmem_broadcast64 on PE 2: the root is PE 77" handled calls_again
grep -q "said: shmem_barrier: this thread is inside a call on words that this one shares" "$output" || bad=1
expect 0 "handled: shmem_init_thread on PE 2: no thread for the end that another PE may call for" handled threadless
exit $bad
