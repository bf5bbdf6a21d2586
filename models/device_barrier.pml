/* The barrier in kernels (include/isthmus/device/barrier.cuh): blocks of each PE, then the PEs, again and again, with words that only grow.
 *
 * What must hold: after the n-th barrier every block finds in its PE's part what every block of every PE stored there before its n-th, though
 * one that has left may store for the next one already; there are two planes, so that nothing older is overwritten before it was compared. And
 * nobody waits for ever. PEs tell each other directly, or PE 0 gathers and releases: chosen at the start. Every barrier reads its number anew.
 * Spin keeps every step in its order. What keeps them so in a kernel: the meeting of a block's threads, and then the release by the thread
 * that tells, which is cumulative: it also orders what the thread learned of by acquires and meetings. Whoever is told looks with acquire, and
 * meets its block. So what a block stored comes before its `in`, that before what its PE tells the others, that before their `out`. */
#ifndef PES
#define PES 2
#endif
#ifndef BLOCKS
#define BLOCKS 2
#endif
#ifndef BARRIERS
#define BARRIERS 3
#endif

byte number[PES]; /* barriers that all blocks of a PE have come to */
byte in[PES * BLOCKS];
byte out[PES * BLOCKS];
byte arrived[PES * PES]; /* at a PE, by another one */
byte released[PES];
byte plane[2 * PES * PES * BLOCKS]; /* by parity; at a PE, by a block of another one */
bool gathers;

#define OWN(block) (pe * BLOCKS + (block))
#define PLANE(at, from, block) plane[((n % 2 * PES + (at)) * PES + (from)) * BLOCKS + (block)]

#ifndef NO_GUARD_GROWING
#define COME(word) ((word) >= mine)
#else
#define COME(word) ((word) != 0)
#endif

inline store_planes() {
  q = 0;
  do
  :: q < PES -> PLANE(q, pe, block) = n; q++
  :: else -> break
  od
}

inline compare_planes() {
  d_step {
    q = 0;
    do
    :: q < PES * BLOCKS -> assert(PLANE(pe, q / BLOCKS, q % BLOCKS) == n); q++
    :: else -> break
    od;
    q = 0
  }
}

inline tell_others(at_first, at_last) {
  q = at_first;
  do
  :: q <= at_last && q != pe -> arrived[q * PES + pe] = mine; q++
  :: q <= at_last && q == pe -> q++
  :: else -> break
  od
}

inline hear_others() {
  q = 0;
  do
  :: q < PES && q != pe ->
#ifndef NO_GUARD_ARRIVED
     COME(arrived[pe * PES + q]);
#endif
     q++
  :: q < PES && q == pe -> q++
  :: else -> break
  od
}

inline among_devices() {
  if
  :: !gathers -> tell_others(0, PES - 1)
  :: gathers && pe != 0 ->
     tell_others(0, 0);
#ifndef NO_GUARD_RELEASED
     COME(released[pe])
#endif
  :: else
  fi;
#if !defined(NO_GUARD_NUMBER_NOT_BEFORE_ALL) && !defined(NO_GUARD_NUMBER_BEFORE_LEAVING)
  number[pe] = mine;
#endif
  if
  :: !gathers || pe == 0 -> hear_others()
  :: else
  fi;
  if
  :: gathers && pe == 0 ->
     q = 1;
     do
     :: q < PES -> released[q] = mine; q++
     :: else -> break
     od
  :: else
  fi
}

inline lead() {
#ifdef NO_GUARD_NUMBER_NOT_BEFORE_ALL
  number[pe] = mine;
#endif
  q = 1;
  do
  :: q < BLOCKS ->
#ifndef NO_GUARD_IN
     COME(in[OWN(q)]);
#endif
     q++
  :: else -> break
  od;
  among_devices();
  q = 1;
  do
  :: q < BLOCKS -> out[OWN(q)] = mine; q++
  :: else -> break
  od;
#ifdef NO_GUARD_NUMBER_BEFORE_LEAVING
  number[pe] = mine;
#endif
  q = 0
}

proctype block_of(byte pe; byte block) {
  byte n = 0, mine, q;
  do
  :: n < BARRIERS ->
     n++;
#ifndef NO_GUARD_STORES_FIRST
     store_planes();
#endif
     mine = number[pe] + 1;
     if
     :: block == 0 -> lead()
     :: else ->
        in[OWN(block)] = mine;
#ifndef NO_GUARD_OUT
        COME(out[OWN(block)])
#endif
     fi;
#ifdef NO_GUARD_STORES_FIRST
     store_planes();
#endif
     mine = 0;
     compare_planes()
  :: else -> break
  od
}

init {
  byte each = 0;
  atomic {
    if
    :: gathers = false
    :: gathers = true
    fi;
    do
    :: each < PES * BLOCKS -> run block_of(each / BLOCKS, each % BLOCKS); each++
    :: else -> break
    od
  }
}
