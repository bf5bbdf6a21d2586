/* A channel between two devices (src/memory/cuda/channel_protocol.hpp): one sending kernel after the other, one receiving kernel after
 * the other, messages of packets and messages of chunks.
 *
 * What must hold: the receiver gets every message once, in order, whole; neither side waits for ever. Packets come in any order, and
 * say themselves whose they are; one of them is not written by every message, so that what lies there may be as old as its number
 * takes to come again. Chunks come through a ring, of which one lane is modelled: lanes share nothing.
 * In the code every step that the other side may see is a load or store of its own here. Spin runs them in program order
 * (sequential consistency); where a guard says that something comes last or first, the code has a release or acquire, or says why it
 * needs none: a load whose value was used is over, and a store is not begun before its condition is known. */
#ifndef SLOTS
#define SLOTS 2
#endif
#ifndef TOTAL
#define TOTAL 13 /* messages: numbers come again */
#endif
#define CLEANING (2 * SLOTS)   /* the slots of so many messages are cleaned once */
#define NUMBERS (2 * CLEANING) /* before their numbers come again */
#define NUMBER(n) (1 + (n) % NUMBERS)
#define RING 2
#define LONG 2 /* from here on the size says how many chunks there are */
#define BYTES(n) ((n) + 100)

byte header[SLOTS]; /* number and size */
byte size[SLOTS];
byte first[SLOTS]; /* packets: number and bytes; the second one is written where size is 1 */
byte first_bytes[SLOTS];
byte second[SLOTS];
byte second_bytes[SLOTS];
byte credit;
byte flag[RING];
byte chunk[RING];
byte chunk_credit;

inline store_header() { atomic { header[slot] = NUMBER(n); size[slot] = s } }
inline store_first() { atomic { first[slot] = NUMBER(n); first_bytes[slot] = BYTES(n) } }
inline store_second() {
  if
  :: s == 1 -> atomic { second[slot] = NUMBER(n); second_bytes[slot] = BYTES(n) }
  :: else
  fi
}

active proctype sender() {
  byte n = 0;
  byte at = 0;
  byte s, slot, k;
  do
  :: n < TOTAL ->
     if
     :: s = 0
     :: s = 1
     :: s = LONG + 1
     fi;
     slot = n % SLOTS;
#ifndef NO_GUARD_SLOT_FREE
     n - credit < SLOTS;
#endif
     if
     :: s >= LONG ->
        store_header();
        k = LONG;
        do
        :: k <= s ->
#ifndef NO_GUARD_CHUNK_FREE
           /* acquire: the receiver's loads of what lay there come before our stores */
           at - chunk_credit < RING;
#endif
#ifdef NO_GUARD_FLAG_LAST
           flag[at % RING] = at + 1;
#endif
           chunk[at % RING] = BYTES(n + k);
#ifndef NO_GUARD_FLAG_LAST
           /* release: the chunk's bytes come before its flag */
           flag[at % RING] = at + 1;
#endif
           at = at + 1;
           k = k + 1
        :: else -> break
        od
     :: else ->
        if
        :: store_first(); store_second(); store_header()
        :: store_header(); store_second(); store_first()
        fi
     fi;
     n = n + 1
  :: else -> break
  od
}

active proctype receiver() {
  byte n = 0;
  byte at = 0;
  byte slot, s, k;
  do
  :: n < TOTAL ->
     slot = n % SLOTS;
     atomic { header[slot] == NUMBER(n) -> s = size[slot] }
#ifdef NO_GUARD_REPORT_LAST
     credit = n + 1;
#endif
     if
     :: s >= LONG ->
        k = LONG;
        do
        :: k <= s ->
#ifndef NO_GUARD_FLAG
           flag[at % RING] == at + 1;
#else
           flag[at % RING] != 0;
#endif
#ifdef NO_GUARD_CHUNK_CREDIT_LAST
           chunk_credit = at + 1;
#endif
           assert(chunk[at % RING] == BYTES(n + k));
#ifndef NO_GUARD_CHUNK_CREDIT_LAST
           chunk_credit = at + 1;
#endif
           at = at + 1;
           k = k + 1
        :: else -> break
        od
     :: else ->
#ifndef NO_GUARD_PACKET
        atomic { first[slot] == NUMBER(n) -> assert(first_bytes[slot] == BYTES(n)) };
#else
        assert(first_bytes[slot] == BYTES(n));
#endif
        if
        :: s == 1 -> atomic { second[slot] == NUMBER(n) -> assert(second_bytes[slot] == BYTES(n)) }
        :: else
        fi
     fi;
#ifdef NO_GUARD_CLEAN_FIRST
     credit = n + 1;
#endif
#ifndef NO_GUARD_CLEAN
     if
     :: n % CLEANING < SLOTS ->
        header[slot] = 0;
        first[slot] = 0;
        second[slot] = 0
     :: else
     fi;
#endif
#ifndef NO_GUARD_REPORT_LAST
#ifndef NO_GUARD_CLEAN_FIRST
     /* release, where the slot was cleaned: zeros come before the next packets */
     credit = n + 1;
#endif
#endif
     n = n + 1
  :: else -> break
  od
}
