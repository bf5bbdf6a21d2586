/* The slots of one pair (src/path/shm/pair_slots.hpp): one writer, one reader, and a count that is reported late.
 *
 * What must hold: the reader gets every message once, in order, whole; neither side waits for ever.
 * In the code every step that the other side may see is a load or store of its own here. Spin runs them in program order
 * (sequential consistency); where a guard says that something comes last or first, the code needs the release or acquire
 * that is named beside it. */
#ifndef SLOTS
#define SLOTS 3
#endif
#ifndef MESSAGES
#define MESSAGES 8 /* more than two laps */
#endif
#ifndef NO_GUARD_REPORT_OFTEN
#define REPORT 2
#else
#define REPORT (SLOTS + 1)
#endif

byte turn[SLOTS];
byte front[SLOTS]; /* first and last byte of what a slot holds */
byte back[SLOTS];
byte consumed;

active proctype writer() {
  byte position = 0;
  do
  :: position < MESSAGES ->
#ifndef NO_GUARD_ROOM
     /* acquire: the reader's last look at the slot comes before our first write */
     position - consumed < SLOTS;
#endif
#ifdef NO_GUARD_TURN_LAST
     turn[position % SLOTS] = position + 1;
#endif
     front[position % SLOTS] = position + 100;
     back[position % SLOTS] = position + 100;
#ifndef NO_GUARD_TURN_LAST
     /* release: envelope and payload come before the word that shows them */
     turn[position % SLOTS] = position + 1;
#endif
     position++
  :: else -> break
  od
}

active proctype reader() {
  byte position = 0;
  do
  :: position < MESSAGES ->
#ifndef NO_GUARD_TURN
     /* acquire; and the word names the lap, so that last lap's bytes are not taken for this one's */
     turn[position % SLOTS] == position + 1;
#else
     turn[position % SLOTS] != 0;
#endif
#ifdef NO_GUARD_REPORT_LAST
     if
     :: (position + 1) % REPORT == 0 -> consumed = position + 1
     :: else
     fi;
#endif
     assert(front[position % SLOTS] == position + 100);
     assert(back[position % SLOTS] == position + 100);
     position++;
#ifndef NO_GUARD_REPORT_LAST
     /* release: our reads come before the count that lets the writer fill the slots again */
     if
     :: position % REPORT == 0 -> consumed = position
     :: else
     fi
#endif
  :: else -> break
  od
}
