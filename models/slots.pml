/* The slots of one pair (src/path/shm/pair_slots.hpp): one writer, one reader, messages of one slot or two, and a count that is
 * reported late.
 *
 * What must hold: the reader gets every message once, in order, whole; neither side waits for ever. The bytes of a message of
 * two slots cover the second one's turn word, and are the worst that they can be: the very word for which the reader will look
 * there one lap later.
 * In the code every step that the other side may see is a load or store of its own here. Spin runs them in program order
 * (sequential consistency); where a guard says that something comes last or first, the code needs the release or acquire
 * that is named beside it. */
#ifndef SLOTS
#define SLOTS 4
#endif
#ifndef TOTAL
#define TOTAL 11 /* slots that the messages take: more than two laps */
#endif
#ifndef NO_GUARD_REPORT_OFTEN
#define REPORT 3 /* less one, with the two slots of a message: all there are */
#else
#define REPORT (SLOTS + 1)
#endif
#define TURN(position, slots) (((position) + 1) * 2 + (slots) - 1)

byte turn[SLOTS + 1]; /* the last one is behind the others: the rest of a message that begins in the last but one */
byte front[SLOTS + 1]; /* first and last byte of what lies in a slot */
byte back[SLOTS + 1];
byte consumed;

active proctype writer() {
  byte position = 0;
  byte slots, first, next;
  bool covered[SLOTS];
  do
  :: position < TOTAL ->
     if
     :: slots = 1
     :: slots = 2
     fi;
     first = position % SLOTS;
     next = (position + slots) % SLOTS;
#ifndef NO_GUARD_ROOM
     /* acquire: the reader's last look at the slots comes before our first write */
     position + slots - consumed <= SLOTS;
#endif
#ifdef NO_GUARD_TURN_LAST
     turn[first] = TURN(position, slots);
#endif
     front[first] = position + 100;
     if
     :: slots == 2 ->
        turn[first + 1] = TURN(position + 1 + SLOTS, 1);
        if
        :: first + 1 < SLOTS -> covered[first + 1] = true
        :: else
        fi
     :: else
     fi;
     back[first + slots - 1] = position + 100;
#ifndef NO_GUARD_CLEAR_FIRST
#ifndef NO_GUARD_CLEAR_NEXT
     /* before the release below: the reader comes to the next slot only when it has seen this message. The slot is free: a
        full ring's next one is the first of a message, whose word was cleared or never covered */
     if
     :: covered[next] -> turn[next] = 0; covered[next] = false
     :: else
     fi;
#endif
#endif
#ifndef NO_GUARD_TURN_LAST
     /* release: envelope, payload and the cleared word come before the word that shows them */
     turn[first] = TURN(position, slots);
#endif
#ifdef NO_GUARD_CLEAR_FIRST
     if
     :: covered[next] -> turn[next] = 0; covered[next] = false
     :: else
     fi;
#endif
     position = position + slots
  :: else -> break
  od
}

active proctype reader() {
  byte position = 0;
  byte slots, first;
  do
  :: position < TOTAL ->
     first = position % SLOTS;
#ifndef NO_GUARD_TURN
     /* acquire; and the word names the lap, so that last lap's bytes are not taken for this one's */
     turn[first] / 2 == position + 1;
#else
     turn[first] != 0;
#endif
     slots = turn[first] % 2 + 1;
#ifdef NO_GUARD_REPORT_LAST
     if
     :: (position + slots) / REPORT != position / REPORT -> consumed = position + slots
     :: else
     fi;
#endif
     assert(front[first] == position + 100);
     assert(back[first + slots - 1] == position + 100);
     position = position + slots;
#ifndef NO_GUARD_REPORT_LAST
     /* release: our reads come before the count that lets the writer fill the slots again */
     if
     :: position / REPORT != (position - slots) / REPORT -> consumed = position
     :: else
     fi
#endif
  :: else -> break
  od
}
