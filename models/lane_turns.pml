/* One slot of a rank's lane and its turns (src/path/shm/lane_turns.hpp). All are planned at once, each of a call that is under way and goes
 * on at any time; any may be skipped, also before an older one has been written. What is said is for everybody or for one reader alone.
 *
 * What must hold: a reader that waits for what a call says gets it, if it was said, and it stays while it is read; nobody waits for ever.
 * A reader may give up any call and needs nothing of it then; one that is gone has given up all. What lies in the slot is one step here:
 * stamps, `done` of readers with calls under way, and slots in turn are lane.pml's.
 *
 * `over` may have counted a later turn, one that was skipped, in the place of an older one that waits. Then `skipped` is set, and the turn
 * between them waits for everybody, its own rank among them, whose `done` is held by the older call.
 *
 * Spin keeps every step in its order. What keeps them so on a processor:
 * - `over`: each addition is a release and the look an acquire, so that what the turns counted wrote into the slot comes before what is
 *   written there next; additions carry on those before them, whoever made them. How one adds while
 *   none is under way is lane_count.pml's.
 * - `skipped`: relaxed, set before its turn is counted: whoever finds that turn in `over` finds the flag (guard FLAG_FIRST).
 * - `done`: a release after a reader's last look at the slot, an acquire before the owner's first write there. */
#ifndef TURNS
#define TURNS 3
#endif
#define READERS 2
#define EVERYBODY READERS
#define OWN READERS /* the owner's own `done` */

byte readers[TURNS]; /* one of the two, or EVERYBODY; of the last turn it matters not */
byte slot; /* what lies there, stamp and all */
byte over;
bool skipped;
byte done[READERS + 1];   /* a rank needs nothing of calls before */
bool ended[TURNS];        /* of the owner's calls */
bool said_nothing[TURNS]; /* a reader finds that it waits in vain */

inline count() {
#ifndef NO_GUARD_ADDED
  over++
#else
  before = over;
  over = before + 1
#endif
}

inline wait_until_free() {
#ifndef NO_GUARD_COUNTED
  over >= turn;
#endif
#ifndef NO_GUARD_READERS_BEFORE
  before = readers[turn - 1];
#else
  before = readers[turn];
#endif
  if
#ifndef NO_GUARD_SKIPPED
  :: before != EVERYBODY && !skipped ->
#else
  :: before != EVERYBODY ->
#endif
     done[before] >= turn
  :: else ->
     done[0] >= turn;
     done[1] >= turn;
#ifndef NO_GUARD_OWN
     done[OWN] >= turn
#endif
  fi
}

inline write() {
#ifdef NO_GUARD_COUNT_LAST
  count();
#endif
  slot = turn + 1;
#ifdef NO_GUARD_STICKY
  skipped = false;
#endif
#ifndef NO_GUARD_COUNT_LAST
  count()
#endif
}

inline leave_out() {
#ifndef NO_GUARD_FLAG_FIRST
  skipped = true;
  count();
#else
  count();
  skipped = true;
#endif
  said_nothing[turn] = true
}

proctype call(byte turn) {
  byte before;
  if
  :: true ->
     if
     :: turn > 0 -> wait_until_free()
     :: else
     fi;
     write()
  :: true -> leave_out()
  fi;
  atomic { /* under the lane's lock */
    before = 0;
    ended[turn] = true;
    do
    :: done[OWN] < TURNS && ended[done[OWN]] -> done[OWN]++
    :: else -> break
    od
  }
}

proctype reader(byte self) {
  byte turn;
  do
  :: turn < TURNS && (readers[turn] == EVERYBODY || readers[turn] == self) ->
     if
     :: slot == turn + 1 -> assert(slot == turn + 1) /* still, when it has been read */
     :: said_nothing[turn]
     fi;
     atomic { turn++; done[self] = turn }
  :: atomic { turn < TURNS -> turn++; done[self] = turn } /* given up, or none of its business */
  :: turn == TURNS -> break
  od
}

init {
  byte turn, whom;
  atomic {
    for (turn : 0 .. TURNS - 1) {
      if
      :: turn < TURNS - 1 -> whom = 0
      :: 0 < turn && turn < TURNS - 1 -> whom = 1 /* of the first turn it would be the same as 0 */
      :: whom = EVERYBODY
      fi;
      readers[turn] = whom
    }
    for (turn : 0 .. TURNS - 1) { run call(turn) }
    run reader(0);
    run reader(1)
  }
}
