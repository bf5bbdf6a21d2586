/* The barrier of a symmetric heap's PEs (src/heap/flag_barrier.hpp): each writes the number of the barrier into a word of its own at
 * every PE, its own last, and waits for the words at itself. Every epoch each PE puts its number at all, barrier, looks at what all have put at it, barrier.
 *
 * What must hold: between the two barriers a PE finds the epoch's data of everybody, no more and no less, and all come to the end.
 * Waiting is written as a statement that blocks. Spin keeps every step in its order. What keeps them so on a processor: the store of a
 * word releases what was put before, and the look at it acquires; nobody reads data of a PE whose word it has not seen. */
#ifndef PES
#define PES 3
#endif
#ifndef EPOCHS
#define EPOCHS 2
#endif

typedef row { byte by[PES] };
row data[PES]; /* at whom, of whom */
row word[PES];

#ifndef NO_GUARD_AT_LEAST
#define ARRIVED(q) (word[me].by[q] >= number)
#else
#define ARRIVED(q) (word[me].by[q] == number)
#endif

inline check_in() {
#ifndef NO_GUARD_GROWS
  number++;
#else
  number = 1;
#endif
  i = 1;
  do
  :: i <= PES -> word[(me + i) % PES].by[me] = number; i++
  :: else -> break
  od
}

inline wait_for_all() {
  i = 0;
  do
#ifndef NO_GUARD_EVERYBODY
  :: i < PES -> ARRIVED(i); i++
#else
  :: i < 1 -> ARRIVED((me + 1) % PES); i++ /* the next one alone */
#endif
  :: else -> break
  od
}

inline put() {
  i = 0;
  do
  :: i < PES -> data[i].by[me] = epoch; i++
  :: else -> break
  od
}

proctype pe(byte me) {
  byte epoch = 1;
  byte number = 0;
  byte i = 0;
  do
  :: epoch <= EPOCHS ->
#ifndef NO_GUARD_PUSH_LAST
     put();
     check_in();
#else
     check_in();
     put();
#endif
     wait_for_all();
     i = 0;
     do
     :: i < PES -> assert(data[me].by[i] == epoch); i++
     :: else -> break
     od;
     check_in();
     wait_for_all();
     epoch++
  :: else -> break
  od
}

init {
  byte p = 0;
  atomic {
    do
    :: p < PES -> run pe(p); p++
    :: else -> break
    od
  }
}
