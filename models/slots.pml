/* The slots of one pair (src/path/shm/pair_slots.hpp) and the room beside them: one writer, one reader, messages that share a slot, messages
 * that have one to themselves, with a block or two beside it or none, and a count that is reported late. Of a message with two blocks the writer
 * may show the first before it writes the second, and the reader may take it then. Some messages leave a block free before them.
 *
 * What must hold: the reader gets every message once, in order, whole; neither side waits for ever.
 * In the code every step that the other side may see is a load or store of its own here. Spin runs them in program order
 * (sequential consistency); where a guard says that something comes last or first, the code needs the release or acquire
 * that is named beside it. A look by an addition of nothing (front_again()) is such a load, too: nothing comes between its halves. */
#ifndef SLOTS
#define SLOTS 3
#endif
#ifndef SHARES
#define SHARES 2 /* messages that may share a slot */
#endif
#ifndef BLOCKS
#define BLOCKS 3
#endif
#ifndef TOTAL
#define TOTAL 7 /* messages: more than two laps of slots, where they share none, and of blocks where they take some */
#endif
#ifndef NO_GUARD_REPORT_OFTEN
#define REPORT (SLOTS - 1) /* less one, since the reader stays at a shared slot */
#else
#define REPORT SLOTS
#endif
#ifndef NO_GUARD_REPORT_BYTES_OFTEN
#define REPORT_BLOCKS (BLOCKS - 1) /* less one, with the two blocks of a message: all there are */
#else
#define REPORT_BLOCKS BLOCKS
#endif
/* What a turn says beside its position: the blocks of the one message, or SHARED and the number of those that share the slot. */
#define SHARED 4
#define BEGUN 16 /* or that one block of two is there, and the turn has not come yet */
#define TURN(position, what) (((position) + 1) * 32 + (what))
#define IS_TURN(word, position) ((word) / 32 == (position) + 1 && (word) % 32 < BEGUN)
#define IS_BEGUN(word, position) ((word) == TURN(position, BEGUN))
#define HAS_MORE(word) ((word) % 32 < SHARED || (word) % 32 - SHARED > taken)
/* Messages of one block leave the last block free, as short ones leave the rest of a room behind its first part (blocks_skipped()). */
#define SKIPPED(at, blocks) ((blocks) == 1 && (at) % BLOCKS == BLOCKS - 1)
#ifndef NO_GUARD_SKIP_ALIKE
#define READER_SKIPPED(at, blocks) SKIPPED(at, blocks)
#else
#define READER_SKIPPED(at, blocks) 0
#endif
/* One word of the reader's tells both counts. */
#define CONSUMED(slots, blocks) ((slots) * 64 + (blocks))

short turn[SLOTS];
byte envelope[SLOTS * SHARES];
byte room[BLOCKS + 1]; /* the last one is behind the others: the rest of a message that begins in the last but one */
short consumed;

/* The payload. */
#define FILL                                     \
  if                                             \
  :: blocks > 0 -> room[first] = number + 100    \
  :: else                                        \
  fi;                                            \
  if                                             \
  :: blocks > 1 -> room[first + 1] = number + 100 \
  :: else                                        \
  fi

/* Where a message is being written, and the reader looks at it then. */
#define TAKE_PIECE                                       \
  if                                                     \
  :: IS_BEGUN(turn[slot], position) ->                   \
     assert(envelope[slot * SHARES] == number + 100);    \
     assert(room[first] == number + 100)                 \
  :: skip                                                \
  fi

active proctype writer() {
  byte number = 0;
  byte position = 0;
  byte written = 0;
  byte shares = SHARES; /* in the last slot, of those that it may have */
  byte open = 0;        /* that slot */
  byte blocks, what, slot, first, skipped;
  do
  :: number < TOTAL && shares < SHARES ->
     /* One more in the last slot. */
#ifdef NO_GUARD_SHARE_LAST
     turn[open] = turn[open] + 1;
#endif
     envelope[open * SHARES + shares] = number + 100;
#ifndef NO_GUARD_SHARE_LAST
     /* release: as the turn of a slot */
     turn[open] = turn[open] + 1;
#endif
     shares++;
     number++
  :: number < TOTAL ->
     if
     :: blocks = 0; what = 0
     :: blocks = 1; what = 1
     :: blocks = 2; what = 2
     :: blocks = 0; what = SHARED + 1
     fi;
     slot = position % SLOTS;
     skipped = SKIPPED(written, blocks);
     first = (written + skipped) % BLOCKS;
     /* acquire: the reader's last look at slot and blocks comes before our first write */
#ifndef NO_GUARD_ROOM
#ifndef NO_GUARD_ROOM_FOR_BYTES
     position - consumed / 64 < SLOTS && written - consumed % 64 + skipped + blocks <= BLOCKS;
#else
     position - consumed / 64 < SLOTS;
#endif
#else
     written - consumed % 64 + skipped + blocks <= BLOCKS;
#endif
#ifdef NO_GUARD_TURN_LAST
     turn[slot] = TURN(position, what);
#endif
     envelope[slot * SHARES] = number + 100;
     if
     :: blocks > 1 ->
#ifdef NO_GUARD_PIECE_LAST
        turn[slot] = TURN(position, BEGUN);
#endif
        room[first] = number + 100;
#ifndef NO_GUARD_PIECE_LAST
        /* release: as the turn of a slot */
        turn[slot] = TURN(position, BEGUN);
#endif
     :: skip
     fi;
#ifndef NO_GUARD_FENCE
     FILL;
#endif
     written = written + skipped + blocks;
#ifndef NO_GUARD_TURN_LAST
     /* release: envelope and payload come before the word that shows them */
     turn[slot] = TURN(position, what);
#endif
#ifdef NO_GUARD_FENCE
     /* sfence: bytes that went past the caches (memory/host/handing_copy.cpp) may be as late as this without it, whatever the release says */
     FILL;
#endif
     if
     :: what > SHARED -> open = slot; shares = 1
     :: else ->
#ifndef NO_GUARD_LAST_LINE
        shares = SHARES /* whoever has shown the next slot has gone on from this one */
#else
        skip
#endif
     fi;
     position++;
     number++
  :: number == TOTAL -> break
  od
}

active proctype reader() {
  byte number = 0;
  byte position = 0;
  byte taken = 0; /* of a shared slot */
  byte read = 0;
  byte told = 0;        /* of the blocks */
  byte told_slots = 0;
  byte blocks, slot, first, skipped;
  short seen, next;
  do
  :: number < TOTAL ->
     slot = position % SLOTS;
     first = read % BLOCKS;
     TAKE_PIECE;
#ifndef NO_GUARD_TURN
     /* acquire; and the word names the lap, so that last lap's bytes are not taken for this one's */
     IS_TURN(turn[slot], position);
#else
     turn[slot] != 0;
#endif
     seen = turn[slot];
     if
     :: HAS_MORE(seen)
     :: else ->
        /* It looks at both slots again and again. */
        if
        :: HAS_MORE(turn[slot]) -> seen = turn[slot]
        :: atomic { IS_TURN(turn[(position + 1) % SLOTS], position + 1) || IS_BEGUN(turn[(position + 1) % SLOTS], position + 1) ->
              next = turn[(position + 1) % SLOTS] };
#ifndef NO_GUARD_LOOK_BACK
           /* acquire: more may have joined it before the writer went on */
           seen = turn[slot];
#endif
           if
           :: HAS_MORE(seen)
           :: else ->
              taken = 0;
              position++;
              slot = position % SLOTS;
              if
              :: IS_TURN(next, position)
              :: else ->
                 TAKE_PIECE;
                 IS_TURN(turn[slot], position);
                 next = turn[slot]
              fi;
              seen = next
           fi
        fi
     fi;
     if
     :: seen % 32 < SHARED -> blocks = seen % 32
     :: else -> blocks = 0
     fi;
     skipped = READER_SKIPPED(read, blocks);
     first = (read + skipped) % BLOCKS;
     read = read + skipped;
#ifdef NO_GUARD_REPORT_LAST
     if
     :: seen % 32 < SHARED && (position + 1 - told_slots >= REPORT || read + blocks - told >= REPORT_BLOCKS) ->
        consumed = CONSUMED(position + 1, read + blocks)
     :: else
     fi;
#endif
     assert(envelope[slot * SHARES + taken] == number + 100);
     assert(blocks < 1 || room[first] == number + 100);
     assert(blocks < 2 || room[first + 1] == number + 100);
     number++;
     read = read + blocks;
     if
     :: seen % 32 > SHARED && taken + 1 < SHARES -> taken++
     :: else ->
        taken = 0;
        position++
     fi;
     /* also where it stays: it may have gone on to this slot without a message of the one before */
     if
     :: position - told_slots >= REPORT || read - told >= REPORT_BLOCKS ->
        told = read;
        told_slots = position;
#ifndef NO_GUARD_REPORT_LAST
        /* release: our reads come before the count that lets the writer fill slot and blocks again */
        consumed = CONSUMED(position, read)
#endif
     :: else
     fi
  :: else -> break
  od
}
