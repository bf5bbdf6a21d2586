/* The pipelined ring (src/path/slot_ring.cpp): both sides run ahead, copies finish in any order, publication is in order.
 *
 * Writer and reader each have a device whose copies, once started, finish when they like: the bytes of a slot change, or are
 * looked at, at any time between start and finish. What must hold: every slot is read once, in order, with its own header and
 * bytes; nobody waits for ever. A slot has places for several short pieces. Each piece begins its slot, or takes its turn in it, as the writer likes; and if
 * it takes its turn, it may be as many numbers ahead of what is released as there are places, behind pieces that take turns alone. The writer may like to be
 * ahead, or not; or to go round the first slots alone, once nothing is outstanding, and back in the same way. */
#ifndef SLOTS
#define SLOTS 3
#endif
#ifndef MESSAGES
#define MESSAGES 7
#endif

#ifndef PLACES
#define PLACES 2
#endif
#define HEADERS (SLOTS * PLACES)
#ifndef FEW
#define FEW 2 /* of the slots */
#endif

byte bytes[HEADERS]; /* of each place of each slot */
byte header[HEADERS];
byte place[HEADERS]; /* beside the header */
byte published;
byte released;

/* private to the writer and its device, and to the reader and its device */
byte started;
byte since;        /* the first number since which all take turns */
bit few;           /* does the last one lie in one of few slots? */
byte at[MESSAGES]; /* where message i is filled */
byte finished[MESSAGES]; /* 1: the copy into the slot of message i has finished */
byte taken;
byte delivered[MESSAGES];
byte from[MESSAGES]; /* where message i is read */

active proctype writer_device() {
  byte i;
  do
  :: atomic { i < MESSAGES && i < started && finished[i] == 0 -> bytes[at[i]] = 50 + i; finished[i] = 1 }
  /* any other started one, out of order */
  :: atomic { i + 1 < MESSAGES && i + 1 < started && finished[i + 1] == 0 ->
              bytes[at[i + 1]] = 50 + i + 1; finished[i + 1] = 1 }
  :: atomic { i < MESSAGES && finished[i] == 1 -> i++ }
  :: i == MESSAGES -> break
  od
}

#ifndef NO_GUARD_ROOM
/* acquire: the reader's last look at the slot comes before our first write */
#define MAY_START (started - released < SLOTS)
#define MAY_START_AHEAD (started - released < HEADERS)
#define MAY_START_FEW (started - released < FEW)
#else
#define MAY_START true
#define MAY_START_AHEAD true
#define MAY_START_FEW true
#endif
#ifndef NO_GUARD_FEW
/* acquire: the same, of all that lie in any of the slots */
#define NO_OTHERS_BEFORE_FEW (few || released == started)
#else
#define NO_OTHERS_BEFORE_FEW true
#endif
#ifndef NO_GUARD_MANY
/* acquire: the same, of all that lie in few slots */
#define NO_FEW_BEFORE_OTHERS (!few || released == started)
#else
#define NO_FEW_BEFORE_OTHERS true
#endif
#ifndef NO_GUARD_ALIKE
/* acquire: the same, of all that begin their slots */
#define ALIKE (released >= since)
#else
#define ALIKE true
#endif
#define FEW_PLACE (started % FEW * PLACES)
#define FIRST_PLACE (started % SLOTS * PLACES)
#define TURN (started % SLOTS * PLACES + started / SLOTS % PLACES)
#ifndef NO_GUARD_FINISHED
/* the caller publishes what its copy's ticket has reported finished */
#define MAY_PUBLISH (finished[shown] == 1)
#else
#define MAY_PUBLISH true
#endif
#ifndef NO_GUARD_FULL
/* acquire: header and bytes are read after the count */
#define MAY_TAKE (taken < published)
#else
#define MAY_TAKE true
#endif
#ifndef NO_GUARD_RELEASE_LAST
/* release: only what our device has finished reading goes back */
#define MAY_RELEASE (delivered[back] == 1)
#else
#define MAY_RELEASE true
#endif

active proctype writer() {
  byte shown = 0; /* published_ */
  do
  :: atomic { started < MESSAGES && MAY_START && NO_FEW_BEFORE_OTHERS -> few = 0; at[started] = FIRST_PLACE; started++; since = started }
  :: atomic { started < MESSAGES && (MAY_START || (ALIKE && MAY_START_AHEAD)) && NO_FEW_BEFORE_OTHERS -> few = 0; at[started] = TURN; started++ }
  :: atomic { started < MESSAGES && MAY_START_FEW && NO_OTHERS_BEFORE_FEW -> few = 1; at[started] = FEW_PLACE; started++; since = started }
  :: shown < started && MAY_PUBLISH ->
#ifdef NO_GUARD_PUBLISH_LAST
     published = shown + 1;
#endif
     header[shown % HEADERS] = shown;
     place[shown % HEADERS] = at[shown];
#ifndef NO_GUARD_PUBLISH_LAST
     /* release: header and bytes come before the count that shows them */
     published = shown + 1;
#endif
     shown++
#ifdef NO_GUARD_IN_ORDER
  :: shown + 1 < started && finished[shown + 1] == 1 ->
     /* the younger copy has finished first and is counted as if it were the oldest */
     header[shown % HEADERS] = shown;
     place[shown % HEADERS] = at[shown];
     published = shown + 1;
     shown++
#endif
  :: shown == MESSAGES -> break
  od
}

active proctype reader() {
  byte back = 0; /* released_ */
  do
  :: taken < MESSAGES && MAY_TAKE ->
     assert(header[taken % HEADERS] == taken);
     from[taken] = place[taken % HEADERS];
     taken++
  :: back < taken && MAY_RELEASE -> back++; released = back
#ifdef NO_GUARD_RELEASE_IN_ORDER
  :: back + 1 < taken && delivered[back + 1] == 1 -> back++; released = back
#endif
  :: back == MESSAGES -> break
  od
}

active proctype reader_device() {
  byte i;
  do
  :: atomic { i < MESSAGES && i < taken && delivered[i] == 0 -> assert(bytes[from[i]] == 50 + i); delivered[i] = 1 }
  :: atomic { i + 1 < MESSAGES && i + 1 < taken && delivered[i + 1] == 0 ->
              assert(bytes[from[i + 1]] == 50 + i + 1); delivered[i + 1] = 1 }
  :: atomic { i < MESSAGES && delivered[i] == 1 -> i++ }
  :: i == MESSAGES -> break
  od
}
