/* The world's lock with a favourite (src/request/engine_lock.hpp): threads that take it by an exchange, one of which may come to take it
 * by saying that it is inside, and looking again whether it is the favourite.
 *
 * What must hold: never are two threads inside, and none waits for ever.
 * Here not every step is seen by the others at once: what a favourite says of itself lies in a buffer of its processor's for as long
 * as that likes, while its later looks go ahead. That is what x86-64 does, and all that matters here of what other processors do: they may
 * also let the look go before the store by themselves. The kernel's membarrier() empties all buffers. Exchanges empty their own. All else
 * is a release or an acquire, and kept in this order. */
#ifndef ROUNDS
#define ROUNDS 3
#endif
#ifndef THREADS
#define THREADS 2
#endif
#define NOBODY THREADS

#ifndef NO_GUARD_SEATS
#define SEAT(thread) thread
#else
#define SEAT(thread) 0
#endif

bool taken;
byte favourite = NOBODY;
byte holder = NOBODY; /* of the lock, as the favourite */
bool inside[THREADS]; /* by seat */
byte within;
chan buffer[THREADS] = [4] of { bool };

inline empty_buffer(whose) {
  do
  :: buffer[whose] ? value -> inside[SEAT(whose)] = value
  :: empty(buffer[whose]) -> break
  od
}

/* A processor writes out what it has, when it likes. */
active [THREADS] proctype processor() {
  bool value;
end:
  do
  :: atomic { buffer[_pid] ? value -> inside[SEAT(_pid)] = value }
  od
}

active [THREADS] proctype thread() {
  byte me = _pid - THREADS;
  byte round, was;
  bool value;
  do
  :: round < ROUNDS ->
     if
     :: favourite == me ->
        buffer[me] ! true;
#ifndef NO_GUARD_LOOK_AGAIN
        if
        :: favourite == me -> goto in
        :: else -> buffer[me] ! false
        fi
#else
        goto in
#endif
     :: favourite != me -> skip
     fi;
     atomic { !taken -> taken = true; empty_buffer(me) };
#ifndef NO_GUARD_LOOK_TAKEN
     if
     :: favourite != NOBODY ->
        was = favourite;
        favourite = NOBODY;
#ifndef NO_GUARD_ORDER
        atomic {
          empty_buffer(0);
          empty_buffer(1);
#if THREADS > 2
          empty_buffer(2)
#endif
        };
#endif
#ifndef NO_GUARD_WAIT_OUT
        !inside[SEAT(was)];
#endif
        holder = NOBODY
     :: else
     fi;
#endif
in:
     within++;
     assert(within == 1);
     within--;
     if
     :: holder == me -> buffer[me] ! false
     :: holder != me ->
        if
        :: skip
        :: holder = me; /* so often in a row */
#ifndef NO_GUARD_FAVOUR_FIRST
           favourite = me
#endif
        fi;
        taken = false;
#ifdef NO_GUARD_FAVOUR_FIRST
        if
        :: holder == me -> favourite = me
        :: else
        fi
#endif
     fi;
     round++
  :: else -> break
  od
}
