/* Bytes that a receiver copies from where they lie (src/memory/host/shared_heap.hpp, Engine::end_offer, ShmLink::read_peer): a sender that
 * sends from one buffer again and again, and may give a send up at any time, as when its world ends; a receiver that comes late.
 *
 * A send that is given up before it is answered is counted. Who finds behind the copy that the count is what it was as the send was
 * announced believes what it copied; otherwise the word tells. Answered ones are neither counted nor hidden: nobody looks any more.
 * Sends share words, and the pair's sends the count: another one may take the word at any time, or be given up. What the receiver believes
 * must be the message, all of it; what it does not believe goes another way.
 * Spin keeps every step in its order. What keeps them so on a processor: the envelope is published by a release and taken by an acquire,
 * so that bytes, word and count are there; a fence between the copy and the looks at count and word; and those between hiding and counting,
 * and whatever the program writes next (SharedHeap::hide, ShmLink::withdraw_offer). */
#ifndef TOTAL
#define TOTAL 4 /* sends */
#endif
#define OTHER 100

byte data[2]; /* the buffer */
byte word;
byte withdrawn;
chan envelopes = [TOTAL] of { byte, byte }; /* the send, and how many were withdrawn before */
byte taken;

inline hide(me) {
#ifndef NO_GUARD_HIDE
  atomic { /* an exchange */
    if
    :: word == me -> word = 0
    :: else
    fi
  }
#else
  skip
#endif
}

inline fill(me) {
  data[0] = me;
  data[1] = me
}

inline withdraw() {
#ifndef NO_GUARD_WITHDRAW
  atomic { withdrawn++ } /* by this rank alone: the world's lock */
#else
  skip
#endif
}

proctype sender() {
  byte me = 1;
  bool answered = true; /* the last one */
  do
  :: me <= TOTAL ->
     fill(me);
#ifdef NO_GUARD_HIDE_FIRST
     if /* only when the buffer is used again already */
     :: !answered -> hide(me - 1)
     :: else
     fi;
#endif
#ifdef NO_GUARD_WITHDRAW_FIRST
     if
     :: !answered -> withdraw()
     :: else
     fi;
#endif
     word = me;
     envelopes!me,withdrawn;
     if
     :: taken == me -> answered = true
     :: answered = false /* given up */
     fi;
#ifndef NO_GUARD_HIDE_FIRST
     if
     :: !answered -> hide(me)
     :: else
     fi;
#endif
#ifndef NO_GUARD_WITHDRAW_FIRST
     if
     :: !answered -> withdraw()
     :: else
     fi;
#endif
     me++
  :: else -> break
  od
}

/* Another send, with the same word, that may be given up */
proctype other() {
  if
  :: true -> word = OTHER
  :: true
  fi;
  if
  :: true -> withdraw()
  :: true
  fi
}

proctype receiver() {
  byte me, before, first, second, found, count;
  do
  :: envelopes?me,before ->
#ifdef NO_GUARD_COUNT_LAST
     count = withdrawn;
#endif
#ifdef NO_GUARD_LOOK_LAST
     found = word;
#endif
     first = data[0];
     second = data[1];
#ifndef NO_GUARD_COUNT_LAST
     count = withdrawn;
#endif
#ifndef NO_GUARD_LOOK_LAST
     found = word;
#endif
     if
#ifndef NO_GUARD_COUNT
     :: count == before ->
#else
     :: count >= before ->
#endif
        assert(first == me && second == me);
        taken = me
     :: else ->
        if
#ifdef NO_GUARD_LOOK
        :: true ->
#else
#ifndef NO_GUARD_OWN_NUMBER
        :: found == me ->
#else
        :: found != 0 ->
#endif
#endif
           assert(first == me && second == me);
           taken = me
        :: else
        fi
     fi;
     first = 0; second = 0; found = 0; count = 0; before = 0
  :: timeout -> break
  od
}

init {
  atomic { run sender(); run other(); run receiver() }
}
