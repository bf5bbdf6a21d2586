/* Bytes that a receiver copies from where they lie (src/memory/host/shared_heap.hpp, Engine::end_offer, ShmLink::read_peer): a sender that
 * sends from one buffer again and again, and may give a send up at any time, as when its world ends; a receiver that comes late.
 *
 * Sends share words: another one may take this one's at any time. What the receiver believes must be the message, all of it; what it does
 * not believe goes another way.
 * Spin keeps every step in its order. What keeps them so on a processor: the envelope is published by a release and taken by an acquire,
 * so that bytes and word are there; a fence between the copy and the look at the word; and one between hiding and whatever the program
 * writes next (SharedHeap::hide). */
#ifndef TOTAL
#define TOTAL 4 /* sends */
#endif
#define OTHER 100

byte data[2]; /* the buffer */
byte word;
chan envelopes = [TOTAL] of { byte };
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

proctype sender() {
  byte me = 1;
  do
  :: me <= TOTAL ->
#ifndef NO_GUARD_HIDE_FIRST
     fill(me);
     word = me;
     envelopes!me;
     if
     :: taken == me
     :: true /* given up */
     fi;
     hide(me);
#else
     fill(me);
     if
     :: me > 1 -> hide(me - 1) /* only when the buffer is used again already */
     :: else
     fi;
     word = me;
     envelopes!me;
     if
     :: taken == me
     :: true
     fi;
#endif
     me++
  :: else -> break
  od
}

/* Another send, with the same word */
proctype other() {
  if
  :: true -> word = OTHER
  :: true
  fi
}

proctype receiver() {
  byte me, first, second, found;
  do
  :: envelopes?me ->
#ifndef NO_GUARD_LOOK_LAST
     first = data[0];
     second = data[1];
     found = word;
#else
     found = word;
     first = data[0];
     second = data[1];
#endif
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
     fi;
     first = 0; second = 0; found = 0
  :: timeout -> break
  od
}

init {
  atomic { run sender(); run other(); run receiver() }
}
