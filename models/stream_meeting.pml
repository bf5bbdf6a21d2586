/* Collective calls in streams (src/memory/cuda/meeting_protocol.hpp): the kernels of two ranks, each of which meets the other's, one after the
 * other, through slots in each other's mailboxes. With more ranks each pair does the same: nothing is shared by two pairs.
 *
 * What must hold: each rank hears of each call what the other told in that very call, whole and in order, though a rank that is not waited
 * for may be several calls ahead; and nobody waits for ever. Each call is an allreduce, a broadcast or a barrier, the same for both.
 * Packets come in any order, and say themselves whose they are; one of them is not told by every call, so that what lies there may be as
 * old as its number takes to come again.
 * Every step that the other rank may see is a load or store of its own. Spin runs them in program order (sequential consistency); where a
 * guard says that something comes last or first, the code has the end of a kernel between, or says why it needs nothing. */
#ifndef SLOTS
#define SLOTS 2 /* 4 in the code */
#endif
#ifndef TOTAL
#define TOTAL 9 /* meetings: numbers come again */
#endif
#define CLEANING (2 * SLOTS)   /* the slots of so many meetings are cleaned once */
#define NUMBERS (2 * CLEANING) /* before their numbers come again */
#define NUMBER(n) (1 + (n) % NUMBERS)
#define BYTES(n) ((n) + 1)
#define BARRIER 3

/* What a meeting is: 0 an allreduce, 1 + root a broadcast, or a barrier; and whether it tells a second packet. Chosen by whoever comes first,
 * and forgotten when both are through: no rank is so far ahead of the other that it chooses in that place again before. */
#define WINDOW (SLOTS + 1)
byte kind[WINDOW];
bool longer[WINDOW];
bool known[WINDOW];
byte through[WINDOW];
#define KIND kind[n % WINDOW]
#define LONGER longer[n % WINDOW]

byte begun[2]; /* by who has begun; in the other one's mailbox */
/* By who told, and slot; in the other one's mailbox. */
byte first[2 * SLOTS];
byte first_bytes[2 * SLOTS];
byte second[2 * SLOTS];
byte second_bytes[2 * SLOTS];
#define MINE (me * SLOTS + n % SLOTS)
#define THEIRS ((1 - me) * SLOTS + n % SLOTS)

inline choose_call() {
  atomic {
    if
    :: known[n % WINDOW] -> assert(through[n % WINDOW] < 2)
    :: else ->
       known[n % WINDOW] = true;
       if
       :: KIND = 0
       :: KIND = 1
       :: KIND = BARRIER
       fi;
       if
       :: LONGER = false
       :: LONGER = true
       fi
    fi
  }
}

inline end_call() {
  atomic {
    through[n % WINDOW] = through[n % WINDOW] + 1;
    if
    :: through[n % WINDOW] == 2 ->
       through[n % WINDOW] = 0;
       known[n % WINDOW] = false;
       KIND = 0;
       LONGER = false
    :: else
    fi
  }
}

inline store_first() { atomic { first[MINE] = NUMBER(n); first_bytes[MINE] = BYTES(n) } }
inline store_second() {
  if
  :: LONGER -> atomic { second[MINE] = NUMBER(n); second_bytes[MINE] = BYTES(n) }
  :: else
  fi
}

/* Once there is room. */
inline tell() {
#ifndef NO_GUARD_ROOM
  begun[1 - me] + SLOTS >= n + 2;
#endif
  if
  :: store_first(); store_second()
  :: store_second(); store_first()
  fi
}

inline hear() {
#ifndef NO_GUARD_FIRST_PACKET
  first[THEIRS] == NUMBER(n);
#endif
  assert(first_bytes[THEIRS] == BYTES(n));
  if
  :: LONGER ->
#ifndef NO_GUARD_EACH_PACKET
     second[THEIRS] == NUMBER(n);
#endif
     assert(second_bytes[THEIRS] == BYTES(n))
  :: else
  fi
}

proctype member(byte me) {
  byte n = 0;
  do
  :: n < TOTAL ->
     choose_call();
#ifndef NO_GUARD_BEGIN
     begun[me] = n + 1;
#endif
     if
     :: KIND == BARRIER ->
#ifndef NO_GUARD_BARRIER
        begun[1 - me] >= n + 1;
#endif
        assert(begun[1 - me] >= n + 1)
     :: KIND == 0 -> tell(); hear()
     :: KIND == 1 + me -> tell()
     :: else -> hear()
     fi;
#ifdef NO_GUARD_CLEAN_BEFORE_NEXT
     begun[me] = n + 2;
#endif
#ifndef NO_GUARD_CLEAN
     /* the kernel ends after this, and the next one says that it begins after that */
     if
     :: n % CLEANING < SLOTS -> first[THEIRS] = 0; second[THEIRS] = 0
     :: else
     fi;
#endif
     end_call();
     n = n + 1
  :: else -> break
  od
}

init { atomic { run member(0); run member(1) } }
