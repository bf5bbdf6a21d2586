/* A receive that its sender is shown (src/path/invitation.hpp, src/request/engine_inviting.cpp): one sender, whose messages have one of two
 * tags and come in order; one receiver, who posts receives for one of the tags or any, may give one up, and shows the one that it posted last if
 * no other one is posted.
 *
 * What is taken must be the receive that the message belongs to by the order of both; no receive that was given up may be taken; and no
 * message may be lost. A taken message is flagged, and says which receive it went to; any other one is matched when it comes.
 * Spin keeps every step in its order. What keeps them so on a processor: words before `state` by its release, read behind it by an acquire;
 * taking and closing change one word, and each of them is an acquire and a release, so that the words that were read are older than the
 * taking, and those that are written next come behind the closing. */
#ifndef TOTAL
#define TOTAL 3 /* messages, and as many receives that got one */
#endif
#ifndef RECEIVES
#define RECEIVES 4 /* that are posted */
#endif
#define ANY 2
#define NONE 0
#define OPEN 1
#define TAKEN 2

/* The place in shared memory. */
byte number;
byte state;
byte sequence, tag, receive;

chan messages = [TOTAL] of { byte, byte }; /* tag, and the receive that was taken, or 0; receives are counted from 1 on */
byte given_up;                             /* the last one that was given up */

inline settle() {
  state = NONE
}

proctype sender() {
  byte next, my, seen, seen_sequence, seen_tag, seen_receive;
  bool fits;
  do
  :: next < TOTAL ->
     if
     :: my = 0
     :: my = 1
     fi;
     fits = false;
     /* look() */
     atomic { seen = number; fits = (state == OPEN) }
     if
     :: fits ->
        seen_sequence = sequence;
        seen_tag = tag;
        seen_receive = receive;
        fits = (seen_tag == ANY || seen_tag == my);
#ifndef NO_GUARD_SEQUENCE
        fits = fits && seen_sequence == next;
#endif
     :: else
     fi;
     if
     :: fits ->
        /* take() */
#ifndef NO_GUARD_TAKE_ONCE
        atomic {
#endif
          fits = (state == OPEN
#ifndef NO_GUARD_NUMBER
                  && number == seen
#endif
                 );
          if
          :: fits -> state = TAKEN
          :: else
          fi
#ifndef NO_GUARD_TAKE_ONCE
        }
#endif
     :: else
     fi;
     if
     :: fits -> messages!my, seen_receive
     :: fits -> /* its copy cannot be started: give_back() */
        atomic { if :: state == TAKEN -> state = NONE :: else fi };
        messages!my, 0
     :: else -> messages!my, 0
     fi;
     next++;
     seen_sequence = 0; seen_tag = 0; seen_receive = 0; seen = 0
  :: else -> break
  od
}

/* One receive at a time is posted, which is enough: a second one before it keeps it from being shown. Messages that come before any receive
 * for them are kept, how many of each tag. */
proctype receiver() {
  byte expected, over, mine, which, got, to, kept[2];
  bool shown, left, posted, closed, found;
  do
  :: over < TOTAL && !posted ->
     which++;
     if
     :: mine = 0
     :: mine = 1
     :: mine = ANY
     fi;
     /* kept messages first */
     found = false;
     if
     :: mine != ANY && kept[mine] > 0 -> kept[mine]--; found = true
     :: mine == ANY && kept[0] > 0 -> kept[0]--; found = true
     :: mine == ANY && kept[0] == 0 && kept[1] > 0 -> kept[1]--; found = true
     :: else
     fi;
     if
     :: found -> over++
     :: else ->
        posted = true;
        if
        :: shown = false
        :: true -> /* invite() */
           if
           :: left -> /* retire() */
#ifndef NO_GUARD_CLOSE_FIRST
              atomic { if :: state == OPEN -> state = NONE :: else fi };
              settle();
#endif
              left = false
           :: else
           fi;
           assert(state != OPEN);
#ifdef NO_GUARD_WORDS_FIRST
           atomic { number++; state = OPEN };
#endif
           sequence = expected;
           tag = mine;
           receive = which;
#ifndef NO_GUARD_WORDS_FIRST
           atomic { number++; state = OPEN };
#endif
           shown = true
        fi
     fi
  :: posted && nempty(messages) ->
     messages?got, to;
     expected++;
     if
     :: to != 0 ->
        assert(shown && to == which && to != given_up && (mine == ANY || mine == got));
        settle();
        shown = false; posted = false; over++
     :: to == 0 && (mine == ANY || mine == got) ->
        /* It went another way. What was shown is closed before something else is, and cannot be taken meanwhile (guard SEQUENCE). */
        left = left || shown;
        shown = false;
        posted = false; over++
     :: else -> kept[got]++
     fi
  :: posted && which < RECEIVES -> /* given up */
     closed = true;
     if
     :: shown ->
#ifndef NO_GUARD_CLOSE_ONCE
        atomic {
          closed = (state != TAKEN);
          if
          :: closed -> state = NONE
          :: else
          fi
        }
#else
        closed = (state != TAKEN);
        if
        :: closed -> state = NONE
        :: else
        fi
#endif
     :: else
     fi;
     if
     :: closed -> given_up = which; posted = false; shown = false
     :: else /* its message is on the way */
     fi
  :: !posted && (over == TOTAL || which >= RECEIVES) -> break
  :: posted && which >= RECEIVES && empty(messages) && timeout -> break
  od
}

init {
  atomic { run sender(); run receiver() }
}
