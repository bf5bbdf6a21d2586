/* The pipelined ring (src/path/slot_ring.cpp): both sides run ahead, copies finish in any order, publication is in order.
 *
 * Writer and reader each have a device whose copies, once started, finish when they like: the bytes of a slot change, or are
 * looked at, at any time between start and finish. What must hold: every slot is read once, in order, with its own header and
 * bytes; nobody waits for ever. */
#ifndef SLOTS
#define SLOTS 3
#endif
#ifndef MESSAGES
#define MESSAGES 7
#endif

byte bytes[SLOTS];
byte header[SLOTS];
byte published;
byte released;

/* private to the writer and its device, and to the reader and its device */
byte started;
byte finished[MESSAGES]; /* 1: the copy into the slot of message i has finished */
byte taken;
byte delivered[MESSAGES];

active proctype writer_device() {
  byte i;
  do
  :: atomic { i < MESSAGES && i < started && finished[i] == 0 -> bytes[i % SLOTS] = 50 + i; finished[i] = 1 }
  /* any other started one, out of order */
  :: atomic { i + 1 < MESSAGES && i + 1 < started && finished[i + 1] == 0 ->
              bytes[(i + 1) % SLOTS] = 50 + i + 1; finished[i + 1] = 1 }
  :: atomic { i < MESSAGES && finished[i] == 1 -> i++ }
  :: i == MESSAGES -> break
  od
}

#ifndef NO_GUARD_ROOM
/* acquire: the reader's last look at the slot comes before our first write */
#define MAY_START (started - released < SLOTS)
#else
#define MAY_START true
#endif
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
  :: started < MESSAGES && MAY_START -> started++
  :: shown < started && MAY_PUBLISH ->
#ifdef NO_GUARD_PUBLISH_LAST
     published = shown + 1;
#endif
     header[shown % SLOTS] = shown;
#ifndef NO_GUARD_PUBLISH_LAST
     /* release: header and bytes come before the count that shows them */
     published = shown + 1;
#endif
     shown++
#ifdef NO_GUARD_IN_ORDER
  :: shown + 1 < started && finished[shown + 1] == 1 ->
     /* the younger copy has finished first and is counted as if it were the oldest */
     header[shown % SLOTS] = shown;
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
     assert(header[taken % SLOTS] == taken);
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
  :: atomic { i < MESSAGES && i < taken && delivered[i] == 0 -> assert(bytes[i % SLOTS] == 50 + i); delivered[i] = 1 }
  :: atomic { i + 1 < MESSAGES && i + 1 < taken && delivered[i + 1] == 0 ->
              assert(bytes[(i + 1) % SLOTS] == 50 + i + 1); delivered[i + 1] = 1 }
  :: atomic { i < MESSAGES && delivered[i] == 1 -> i++ }
  :: i == MESSAGES -> break
  od
}
