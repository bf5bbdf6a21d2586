/* Where the blocks of a grid meet and agree without other PEs (Gathering in include/isthmus/device/crew.cuh): block 0, of two threads that
 * each hear of some of the others, and those others, of one thread each. They make calls, one after the other, of one meeting or two, each
 * with an object of its own that reads `gatherings` anew. Each meeting has a mark, which says where in the program a block is; its number
 * is what the code counts.
 *
 * What must hold: who leaves a meeting with ok finds what all had stored before they came to it; `last` is done once, when all have come,
 * and before any leaves; all who hear how it ended hear the same, that it was ok too where block 0 has given up the next one meanwhile, and
 * it is not ok where one brought something else. A meeting that block 0 gave up, because of a deadline or a death, is the last one that
 * anybody waits for blocks in: it and all later ones end alike. Until then the numbers go up, and a call has the same for all blocks.
 * A block that gave up waiting for block 0 is lost: that meeting may have been ok for the others, and it alone learns that it was not. It
 * makes its later calls, but meets nobody in them: none is ok for it, whatever it reads as a number. No later meeting is ok for the others,
 * either; they still meet, end alike and count where none gives up more, since a lost block's word is that of one that has come to all.
 * Nobody waits for ever, whether nothing is given up, or only block 0, only the others, or both give up.
 * What is asked of the rest: a call's second meeting is only for those whose first one was ok (guard SECOND_IF_OK).
 *
 * That a block hears how block 0 ends it when a PE has died (guard LAST_WORDS) is a matter of time: here it takes as long as it must, but
 * where all may be late.
 *
 * Spin keeps every step in its order. What keeps them so in a kernel:
 * - What the threads of a block stored, and their looks at `gatherings`, come before their block's meeting in follow(), and that before its
 *   store_release_here of `come`, which is cumulative. In lead() a thread looks at it by load_acquire_here and then comes to the meeting
 *   of block 0, so that all this is before whatever the first thread does behind it: `last`, the store of `gatherings`, and `gone`.
 * - `last` and the relaxed store of `gatherings` come before the store_release_here of `gone`; its load_acquire_here, and then the meeting
 *   of the block that looked, before anything that block's threads do behind it: their relaxed looks at `gatherings`, too.
 * - lead()'s relaxed look at `gone`: the first thread stored it itself, the others have met it since. follow()'s at `come`: the same thread
 *   stored it. From kernel to kernel the end of one comes before the next.
 * A meeting of block 0's threads is a message to its first one, and one back. */
#ifndef BLOCKS
#define BLOCKS 3
#endif
#ifndef CALLS
#define CALLS 2
#endif
#define MARKS (2 * CALLS + 1) /* a call has one meeting or two: an odd mark, and the even one behind it */
#define SECOND BLOCKS         /* where the second thread of block 0 stores */

#define OK 0
#define DEAD 1
#define LATE 2
#define MISUSE 3
#define WORSE(a, b) (((a) == DEAD || (b) == DEAD) -> DEAD : (((a) == MISUSE || (b) == OK) -> (a) : (b)))
#define SAID(number, status) ((number) * 4 + (status))
#define SAID_AFTER(before, number, status) ((before) * 64 + SAID(number, status))
#define NUMBER(said) ((said) / 4 % 16)
#define STATUS(said) ((said) % 4)
#define BEFORE(said) ((said) / 64)
#define LOST 15 /* a number above all others */

#ifndef NO_GUARD_AT_LEAST
#define IS_OVER(said) (NUMBER(said) >= number)
#else
#define IS_OVER(said) (NUMBER(said) == number)
#endif

byte come[BLOCKS]; /* which meeting, and how */
byte gone;         /* the same, and how the one before ended */
byte gatherings;
bool dead;

/* What may happen */
bool first_is_late, all_are_late, dies; /* block 0 may give up; the others may; a PE may die */
byte twice;                             /* the call that has two meetings, not the last one alone; 0: all */

/* What is to be found */
byte data[BLOCKS + 1]; /* the last mark that this one has stored for */
byte begun[CALLS + 1]; /* the number of a call's first meeting */
byte ended[MARKS];     /* 1 + how */
byte last_done;        /* the last mark that `last` was done of */
byte given_up;         /* the first mark that block 0 gave up */
byte misused;          /* the mark that one brought MISUSE to, or `last` made it so */
byte lost;             /* the first mark that a block gave up waiting for block 0 in */

chan heard = [0] of { byte, bool }; /* the two threads of block 0 meet */
chan told = [0] of { byte };        /* and meet again */

inline begin() {
  number = gatherings + 1;
  assert(begun[call] == 0 || begun[call] == number);
  assert(call == 1 || given_up != 0 || number > begun[call - 1]);
  begun[call] = number;
  mark = 2 * call - 1
}

/* What a thread has met before: of those that block 0's first thread hears of by the second one, one may have met something */
inline bring(may) {
  if
  :: true
  :: may && misused == 0 && mine == OK -> mine = MISUSE; misused = mark
  fi
}

inline leave() {
  d_step {
    assert(ended[mark] == 0 || ended[mark] == 1 + status);
    ended[mark] = 1 + status;
    if
    :: status == OK ->
       assert(given_up == 0 || mark < given_up);
       assert(lost == 0 || mark <= lost);
       assert(last_done >= mark);
       for (q : 0 .. BLOCKS) { assert(data[q] >= mark) }
#ifdef NO_GUARD_SECOND_IF_OK
    :: status != OK && mark % 2 == 0 && misused == mark - 1 /* brought to the second one, too */
#endif
    :: else -> assert(misused == mark || (given_up != 0 && given_up <= mark) || (lost != 0 && lost <= mark))
    fi;
    q = 0
  }
}

/* To the call's second meeting, or to the next call */
inline go_on() {
  if
#ifndef NO_GUARD_SECOND_IF_OK
  :: mark % 2 == 1 && (twice == call || twice == 0) && status == OK -> mark++; number++
#else
  :: mark % 2 == 1 && (twice == call || twice == 0) -> mark++; number++; mine = status
#endif
  :: else -> call++; mark = 0; number = 0
  fi;
  status = 0
}

inline look_back(looks) {
  status = mine;
  whole = true;
  if
#ifndef NO_GUARD_LOOK_BACK
  :: looks && NUMBER(gone) >= number ->
     whole = false;
#ifndef NO_GUARD_SAME_END
     status = STATUS(gone)
#else
     status = WORSE(status, STATUS(gone))
#endif
#endif
  :: else
  fi;
  mine = OK
}

inline hear_blocks(from) {
  q = from;
  do
  :: q < BLOCKS && whole ->
     assert(given_up == 0); /* nobody is waited for any more */
     if
     :: d_step { NUMBER(come[q]) >= number -> status = WORSE(status, STATUS(come[q])); q = q + 2 }
     :: d_step { first_is_late -> status = WORSE(status, LATE); whole = false }
     :: d_step { dead -> status = DEAD; whole = false }
     fi
  :: else -> break
  od;
  q = 0
}

inline last() {
  if
  :: status == OK ->
     d_step {
       assert(last_done < mark && ended[mark] == 0);
       last_done = mark;
       for (q : 0 .. BLOCKS) { assert(data[q] >= mark) }
       q = 0
     };
     if
     :: true
     :: misused == 0 -> status = MISUSE; misused = mark
     fi
  :: else
  fi
}

inline count() {
  if
#ifndef NO_GUARD_WHOLE
  :: all -> gatherings = number
#else
  :: true -> gatherings = number
#endif
  :: else
  fi
}

proctype first() {
  byte call = 1, mark, number, mine, status, theirs, q;
  bool whole, theirs_whole, all;
  do
  :: call <= CALLS ->
     atomic {
       if
       :: mark == 0 -> begin()
       :: else
       fi;
       data[0] = mark;
       look_back(true)
     };
     hear_blocks(1);
     atomic {
#ifndef NO_GUARD_AGREEMENT
       heard ? theirs, theirs_whole;
       status = WORSE(status, theirs);
       theirs = 0;
#else
       theirs_whole = true;
#endif
       d_step {
#ifdef NO_GUARD_MISSED_ALONE
         all = status == OK;
#else
#ifdef NO_GUARD_ANY
         all = whole;
#else
         all = whole && theirs_whole;
#endif
#endif
         whole = whole && theirs_whole;
         theirs_whole = false
       }
     };
#ifdef NO_GUARD_END_TOGETHER
     told ! status;
#endif
     atomic {
#ifndef NO_GUARD_LAST_FIRST
       last();
#endif
#ifndef NO_GUARD_NUMBER_FIRST
       count()
#endif
     };
     d_step {
       if
#ifndef NO_GUARD_SAID_ONCE
       :: NUMBER(gone) >= number /* given up before */
#endif
       :: else -> gone = SAID_AFTER(STATUS(gone), number, status)
       fi;
       if
       :: !whole && given_up == 0 -> given_up = mark
       :: else
       fi;
       whole = false
     };
#ifdef NO_GUARD_LAST_FIRST
     atomic { last() };
#endif
#ifdef NO_GUARD_NUMBER_FIRST
     count();
#endif
     atomic {
#ifndef NO_GUARD_END_TOGETHER
       told ! status;
#endif
       all = false;
       leave();
       go_on()
     }
  :: else -> break
  od
}

proctype second() {
  byte call = 1, mark, number, mine, status, q;
  bool whole;
  do
  :: call <= CALLS ->
     atomic {
       if
       :: mark == 0 -> begin()
       :: else
       fi;
       bring(true);
       data[SECOND] = mark;
#ifndef NO_GUARD_ALL_LOOK_BACK
       look_back(true)
#else
       look_back(false)
#endif
     };
     hear_blocks(2);
#ifndef NO_GUARD_AGREEMENT
     atomic { heard ! status, whole; whole = false; status = 0 };
#endif
     atomic { told ? status; leave(); go_on() }
  :: else -> break
  od
}

inline gives_up(how) {
  d_step {
    status = how;
#ifndef NO_GUARD_LOST
    come[me] = SAID(LOST, status);
#endif
    if
    :: lost == 0 || mark < lost -> lost = mark
    :: else
    fi
  };
  go_on()
}

proctype follower(byte me) {
  byte call = 1, mark, number, mine, status, q;
  do
#ifndef NO_GUARD_FOR_GOOD
  /* It returns what it said, in all later calls: one step, since nobody sees any of it */
  :: d_step { call <= CALLS && NUMBER(come[me]) == LOST -> assert(mark == 0 && STATUS(come[me]) != OK); call = CALLS + 1 }
  :: call <= CALLS && NUMBER(come[me]) != LOST ->
#else
  :: call <= CALLS ->
#endif
     atomic {
       if
       :: mark == 0 -> begin()
       :: else
       fi;
       bring(me == BLOCKS - 1);
#ifndef NO_GUARD_COME_LAST
       data[me] = mark
#else
       come[me] = SAID(number, mine)
#endif
     };
     d_step {
#ifndef NO_GUARD_COME_LAST
       come[me] = SAID(number, mine);
#else
       data[me] = mark;
#endif
       mine = OK
     };
     if
     :: atomic {
          IS_OVER(gone) ->
#ifndef NO_GUARD_BEFORE
          status = (NUMBER(gone) > number -> BEFORE(gone) : STATUS(gone));
#else
          status = STATUS(gone);
#endif
          leave();
          go_on()
        }
     :: atomic { all_are_late -> gives_up(LATE) }
     :: atomic { all_are_late && dead -> gives_up(DEAD) }
#ifdef NO_GUARD_LAST_WORDS
     :: atomic { dead && !all_are_late -> status = DEAD; leave(); gives_up(DEAD) }
#endif
     fi
  :: call > CALLS -> break
  od
}

init {
  byte block = 1;
  atomic {
    if
    :: true
    :: first_is_late = true
    :: dies = true
    :: all_are_late = true
#ifndef APART /* a third of the states */
    :: first_is_late = true; all_are_late = true
#endif
#ifdef TOGETHER /* a death beside deadlines */
    :: first_is_late = true; all_are_late = true; dies = true
#endif
    fi;
    do
    :: twice < CALLS - 1 -> twice++
    :: break
    od;
    run first();
    run second();
    do
    :: block < BLOCKS -> run follower(block); block++
    :: else -> break
    od
  };
  if
  :: dies -> dead = true
  :: else
  fi
}
