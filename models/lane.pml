/* What one rank says in collective calls, in slots used in turn, and two readers, one of which may be that rank itself (src/path/shm/lane.hpp,
 * src/path/shm/lane_turns.hpp). The first call of one reader is a nonblocking one: another thread reads for it, at any time later.
 *
 * What must hold: every reader gets what was said in each call, whole; nobody waits for ever.
 * The owner writes in order here, for all readers; calls that are given up or go on in any order, and readers alone: lane_turns.pml.
 * In the code every step that the other side may see is a load or store of its own here. Spin runs them in program order
 * (sequential consistency); where a guard says that something comes last or first, the code needs the release or acquire
 * that is named beside it. What a rank needs no more it also says in its own slots: the same value, read with their stamp. */
#ifndef SLOTS
#define SLOTS 2
#endif
#ifndef CALLS
#define CALLS 6
#endif
#define LATE 0 /* the reader with the nonblocking call, and that call's number */
#define READERS 2
#define ASTRAY(call) ((call) >= 1 && (call) <= SLOTS) /* calls that the other reader makes another way */

byte stamp[SLOTS];
byte front[SLOTS]; /* first and last byte of what lies in a slot */
byte back[SLOTS];
byte past[READERS]; /* `done` in the code: a rank needs nothing of calls before */

/* of the late reader */
bool begun = true;
bool under_way = true;
byte ended;

active proctype owner() {
  byte call, slot, reader;
  do
  :: call < CALLS ->
     slot = call % SLOTS;
#ifndef NO_GUARD_FREE_FIRST
     /* acquire: the readers' last looks at the slot come before our first write */
     if
     :: call >= SLOTS ->
        for (reader : 0 .. READERS - 1) { past[reader] > call - SLOTS }
     :: else
     fi;
#endif
#ifdef NO_GUARD_STAMP_LAST
     stamp[slot] = call + 1;
#endif
     front[slot] = call + 100;
     back[slot] = call + 100;
#ifndef NO_GUARD_STAMP_LAST
     /* release: what is said comes before the stamp that shows it; of what goes past the caches a fence sees to that (slots.pml, FENCE) */
     stamp[slot] = call + 1;
#endif
     call++
  :: else -> break
  od
}

inline read_call(call) {
#ifdef NO_GUARD_STAMP_FIRST
  seen = front[call % SLOTS];
#endif
  /* acquire: nothing of the slot is looked at before */
  stamp[call % SLOTS] == call + 1;
#ifndef NO_GUARD_STAMP_FIRST
  seen = front[call % SLOTS];
#endif
#ifdef NO_GUARD_DONE_LAST
  past[self] = call + 1;
#endif
  assert(seen == call + 100);
  assert(back[call % SLOTS] == call + 100)
}

/* All of its calls wait; but some it makes another way, and takes nothing of what is said in them. */
active proctype reader() {
  byte self = 1;
  byte call, seen;
  byte over = 0; /* calls that are over with a word of this rank's */
  for (call : 0 .. CALLS - 1) {
    if
    :: ASTRAY(call)
    :: else ->
#ifndef NO_GUARD_COME_TO
       if
       :: over != call -> past[self] = call
       :: else
       fi;
#endif
       read_call(call);
       past[self] = call + 1; /* release */
       over = call + 1
    fi
  }
}

/* Call 0 goes on; the others wait. */
active proctype late_reader() {
  byte self = LATE;
  byte call, seen, mine;
  for (call : 1 .. CALLS - 1) {
    read_call(call);
    if
    :: !under_way -> past[self] = call + 1
    :: under_way ->
#ifndef NO_GUARD_ONE_AT_A_TIME
       atomic { /* under the lane's lock */
#endif
         ended = call;
#ifndef NO_GUARD_OLDEST
         mine = (begun -> LATE : ended + 1);
#else
         mine = ended + 1;
#endif
         past[self] = mine
#ifndef NO_GUARD_ONE_AT_A_TIME
       }
#endif
    fi
  }
}

active proctype later() {
  byte self = LATE;
  byte seen;
  read_call(LATE);
  atomic { /* under the lane's lock */
    begun = false;
    past[self] = ended + 1;
    under_way = false
  }
}
