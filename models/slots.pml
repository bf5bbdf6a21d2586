/* The slots of one pair (src/path/shm/pair_slots.hpp) and the room beside them: one writer, one reader, messages that fit their slot, and
 * messages of one block or two, and a count that is reported late.
 *
 * What must hold: the reader gets every message once, in order, whole; neither side waits for ever.
 * In the code every step that the other side may see is a load or store of its own here. Spin runs them in program order
 * (sequential consistency); where a guard says that something comes last or first, the code needs the release or acquire
 * that is named beside it. */
#ifndef SLOTS
#define SLOTS 4
#endif
#ifndef BLOCKS
#define BLOCKS 4
#endif
#ifndef TOTAL
#define TOTAL 10 /* messages: more than two laps of slots, and of blocks where they take some */
#endif
#ifndef NO_GUARD_REPORT_OFTEN
#define REPORT SLOTS
#else
#define REPORT (SLOTS + 1)
#endif
#ifndef NO_GUARD_REPORT_BYTES_OFTEN
#define REPORT_BLOCKS (BLOCKS - 1) /* less one, with the two blocks of a message: all there are */
#else
#define REPORT_BLOCKS BLOCKS
#endif
#define TURN(position, blocks) (((position) + 1) * 4 + (blocks))
/* One word of the reader's tells both counts. */
#define CONSUMED(slots, blocks) ((slots) * 64 + (blocks))

byte turn[SLOTS];
byte envelope[SLOTS];
byte room[BLOCKS + 1]; /* the last one is behind the others: the rest of a message that begins in the last but one */
short consumed;

active proctype writer() {
  byte position = 0;
  byte written = 0;
  byte blocks, slot, first;
  do
  :: position < TOTAL ->
     if
     :: blocks = 0
     :: blocks = 1
     :: blocks = 2
     fi;
     slot = position % SLOTS;
     first = written % BLOCKS;
     /* acquire: the reader's last look at slot and blocks comes before our first write */
#ifndef NO_GUARD_ROOM
#ifndef NO_GUARD_ROOM_FOR_BYTES
     position - consumed / 64 < SLOTS && written - consumed % 64 + blocks <= BLOCKS;
#else
     position - consumed / 64 < SLOTS;
#endif
#else
     written - consumed % 64 + blocks <= BLOCKS;
#endif
#ifdef NO_GUARD_TURN_LAST
     turn[slot] = TURN(position, blocks);
#endif
     envelope[slot] = position + 100;
     if
     :: blocks > 0 -> room[first] = position + 100
     :: else
     fi;
     if
     :: blocks > 1 -> room[first + 1] = position + 100
     :: else
     fi;
     written = written + blocks;
#ifndef NO_GUARD_TURN_LAST
     /* release: envelope and payload come before the word that shows them */
     turn[slot] = TURN(position, blocks);
#endif
     position++
  :: else -> break
  od
}

active proctype reader() {
  byte position = 0;
  byte read = 0;
  byte told = 0; /* of the blocks */
  byte blocks, slot, first;
  do
  :: position < TOTAL ->
     slot = position % SLOTS;
     first = read % BLOCKS;
#ifndef NO_GUARD_TURN
     /* acquire; and the word names the lap, so that last lap's bytes are not taken for this one's */
     turn[slot] / 4 == position + 1;
#else
     turn[slot] != 0;
#endif
     blocks = turn[slot] % 4;
#ifdef NO_GUARD_REPORT_LAST
     if
     :: (position + 1) % REPORT == 0 || read + blocks - told >= REPORT_BLOCKS -> consumed = CONSUMED(position + 1, read + blocks)
     :: else
     fi;
#endif
     assert(envelope[slot] == position + 100);
     assert(blocks < 1 || room[first] == position + 100);
     assert(blocks < 2 || room[first + 1] == position + 100);
     position++;
     read = read + blocks;
     if
     :: position % REPORT == 0 || read - told >= REPORT_BLOCKS ->
        told = read;
#ifndef NO_GUARD_REPORT_LAST
        /* release: our reads come before the count that lets the writer fill slot and blocks again */
        consumed = CONSUMED(position, read)
#endif
     :: else
     fi
  :: else -> break
  od
}
