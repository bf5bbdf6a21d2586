/* Messages in packets between kernels (include/isthmus/device/packets.cuh): packets say themselves whose they are, and lie in a channel's two
 * slots, which are used again and again.
 *
 * What must hold: each message arrives with its own bytes, the second packet of a longer one too, though numbers come again and what lies where
 * a shorter one ended is of an older message; nothing is overwritten before it was read; and nobody waits for ever. Either PE 0 sends and PE 1
 * receives, and only what PE 1 says it has taken holds PE 0 back (credited); or both send, and receive the n-th before they send the next
 * (answered), where what comes back says that the one before was read.
 * Spin keeps every step in its order. What keeps them so in a kernel: a packet is one store and one load of 8 bytes, number and data together.
 * A load has returned before the branch that looks at it, and no store is begun before the branch that allows it, so that what says that
 * packets were read needs no fence; the zeros of a cleaned slot have one behind them. */
#ifndef SLOTS
#define SLOTS 2
#endif
#ifndef TOTAL
#define TOTAL 9 /* messages each way: numbers come again */
#endif
#define CLEANING (2 * SLOTS)
#define NUMBERS (2 * CLEANING)
#define NUMBER(n) (1 + (n) % NUMBERS)
#define WINDOW (SLOTS + 2)

/* By sender: in the receiver's part. */
byte first[2 * SLOTS];
byte first_bytes[2 * SLOTS];
byte second[2 * SLOTS];
byte second_bytes[2 * SLOTS];
byte taken[2]; /* in the sender's part */
bool answered;

/* Has that message a second packet? Both ends know; chosen by whoever asks first, and forgotten when both are through. */
bool longer[2 * WINDOW];
bool known[2 * WINDOW];
byte through[2 * WINDOW];
#define SLOT(from, n) ((from) * SLOTS + (n) % SLOTS)
#define PLACE(from, n) ((from) * WINDOW + (n) % WINDOW)

inline choose(from, n) {
  atomic {
    if
    :: known[PLACE(from, n)] -> assert(through[PLACE(from, n)] < 2)
    :: else ->
       known[PLACE(from, n)] = true;
       if
       :: longer[PLACE(from, n)] = true
       :: longer[PLACE(from, n)] = false
       fi
    fi
  }
}
inline end_message(from, n) {
  atomic {
    through[PLACE(from, n)] = through[PLACE(from, n)] + 1;
    if
    :: through[PLACE(from, n)] == 2 ->
       through[PLACE(from, n)] = 0;
       known[PLACE(from, n)] = false;
       longer[PLACE(from, n)] = false
    :: else
    fi
  }
}

inline store_first(n) { atomic { first[SLOT(me, n)] = NUMBER(n); first_bytes[SLOT(me, n)] = n } }
inline store_second(n) {
  if
  :: longer[PLACE(me, n)] -> atomic { second[SLOT(me, n)] = NUMBER(n); second_bytes[SLOT(me, n)] = n }
  :: else
  fi
}

inline send(n) {
  choose(me, n);
#ifndef NO_GUARD_CREDIT
  answered || taken[me] + SLOTS >= n;
#endif
  if
  :: store_first(n); store_second(n)
  :: store_second(n); store_first(n)
  fi;
  end_message(me, n)
}

inline clean(n) {
  if
  :: n % CLEANING < SLOTS -> first[SLOT(1 - me, n)] = 0; second[SLOT(1 - me, n)] = 0
  :: else
  fi
}

inline receive(n) {
  choose(1 - me, n);
#ifdef NO_GUARD_TAKEN_AFTER_LOADS
  taken[1 - me] = n;
#endif
#ifndef NO_GUARD_FIRST_PACKET
  first[SLOT(1 - me, n)] == NUMBER(n);
#endif
  assert(first_bytes[SLOT(1 - me, n)] == n);
  if
  :: longer[PLACE(1 - me, n)] ->
#ifndef NO_GUARD_EACH_PACKET
     second[SLOT(1 - me, n)] == NUMBER(n);
#endif
     assert(second_bytes[SLOT(1 - me, n)] == n)
  :: else
  fi;
#if !defined(NO_GUARD_CLEAN) && !defined(NO_GUARD_CLEAN_BEFORE_TAKEN)
  clean(n);
#endif
#ifndef NO_GUARD_TAKEN_AFTER_LOADS
  if
  :: answered
  :: else -> taken[1 - me] = n
  fi;
#endif
#ifdef NO_GUARD_CLEAN_BEFORE_TAKEN
  clean(n);
#endif
  end_message(1 - me, n)
}

proctype member(byte me) {
  byte m = 0;
  do
  :: m < TOTAL ->
     m++;
     if
     :: answered ->
#ifndef NO_GUARD_ANSWER
        send(m);
        receive(m)
#else
        send(m);
        if
        :: m > 1 -> receive(m - 1)
        :: else
        fi
#endif
     :: !answered && me == 0 -> send(m)
     :: else -> receive(m)
     fi
  :: else -> break
  od
}

init {
  atomic {
    if
    :: answered = true
    :: answered = false
    fi;
    run member(0);
    run member(1)
  }
}
