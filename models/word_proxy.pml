/* Words of host memory that kernels have a processor change (include/isthmus/device/proxy.cuh, src/heap/word_proxy.cpp): threads of a device
 * ask, in packets that lie in places used again and again; one thread of a processor makes the changes, in the order of their tickets.
 *
 * What must hold: each change is made once, as it was asked for; whoever waits for an answer gets that of its own request; what a thread
 * asked for before its quiet is done after it; and nobody waits for ever, also where a thread gives up waiting for its answer. The word is a counter: requests add 1, and some ask what was there.
 * Numbers are of two, though a place holds no older request than the one before.
 * Spin keeps every step in its order. What keeps them so outside: packets are one store and one load of 8 bytes each, number and data
 * together, and come in any order, so that asking takes no fence. `done` and an answer are the processor's releases, behind its change. A
 * device has loaded before the branch that looks at the value, and begins no store before the branch that allows it: so what says that a
 * place is free (`through`, `done`, `known`) needs no fence. quiet has one behind its look at `done`, for what is loaded later. */
#ifndef PLACES
#define PLACES 2
#endif
#ifndef THREADS
#define THREADS 2
#endif
#ifndef TIMES
#define TIMES 3 /* requests of each thread */
#endif
#define TICKETS (THREADS * TIMES)
#define NUMBER(ticket) (1 + ((ticket) / PLACES) % 2)

byte first[PLACES];  /* packets: the number, and whose request it is: ticket + 1 */
byte first_of[PLACES];
byte second[PLACES];
byte second_of[PLACES];
byte answer[PLACES]; /* the number, and what was there before */
byte answer_of[PLACES];
bool asks[TICKETS];  /* does that ticket wait for an answer? */
byte done;           /* by the proxy */

byte claimed;        /* on the device */
byte known;
byte through[PLACES];

byte word;             /* the counter */
byte made[TICKETS];    /* how often each change was made */
byte was[TICKETS];     /* what was there then */

inline wait_for_done(tickets) {
  if
  :: known >= tickets
  :: done >= tickets -> seen = done; known = seen; seen = 0 /* perhaps less than another has stored meanwhile */
  fi
}

inline end_use(t) { through[t % PLACES] = t / PLACES + 1 }

inline ask(waits) {
#ifndef NO_GUARD_TICKET
  atomic { ticket = claimed; claimed = claimed + 1 };
#else
  ticket = claimed;
  claimed = ticket + 1;
#endif
  asks[ticket] = waits;
  if
  :: ticket >= PLACES ->
#ifndef NO_GUARD_ANSWER_READ
     through[ticket % PLACES] == ticket / PLACES;
#endif
#ifndef NO_GUARD_PLACE_SERVED
     wait_for_done(ticket - PLACES + 1)
#endif
  :: else
  fi;
  if
  :: atomic { first[ticket % PLACES] = NUMBER(ticket); first_of[ticket % PLACES] = ticket + 1 };
     atomic { second[ticket % PLACES] = NUMBER(ticket); second_of[ticket % PLACES] = ticket + 1 }
  :: atomic { second[ticket % PLACES] = NUMBER(ticket); second_of[ticket % PLACES] = ticket + 1 };
     atomic { first[ticket % PLACES] = NUMBER(ticket); first_of[ticket % PLACES] = ticket + 1 }
  fi
}

proctype thread() {
  byte n = 0;
  byte ticket;
  byte seen;
  byte goal;
  byte mine[TIMES];
  do
  :: n < TIMES ->
     if
     :: ask(false);
        end_use(ticket)
     :: ask(true);
#ifdef NO_GUARD_THROUGH_LAST
        end_use(ticket);
#endif
        if
#ifndef NO_GUARD_ANSWER_NUMBER
        :: answer[ticket % PLACES] == NUMBER(ticket) ->
#else
        :: answer[ticket % PLACES] != 0 ->
#endif
           assert(made[ticket] == 1 && answer_of[ticket % PLACES] == was[ticket])
        :: skip /* it gives up waiting for it */
        fi;
#ifndef NO_GUARD_THROUGH_LAST
        end_use(ticket)
#endif
     fi;
     mine[n] = ticket;
     n = n + 1;
     ticket = 0;
     if
     :: skip
     :: /* quiet */
        goal = claimed;
#ifndef NO_GUARD_QUIET
        wait_for_done(goal);
#endif
        goal = 0;
        do
        :: goal < n -> assert(made[mine[goal]] == 1); goal = goal + 1
        :: else -> goal = 0; break
        od
     fi
  :: else -> break
  od
}

#ifndef NO_GUARD_NUMBER
#define IS_OF(packet) (packet[next % PLACES] == NUMBER(next))
#else
#define IS_OF(packet) (packet[next % PLACES] != 0)
#endif

proctype proxy() {
  byte next = 0;
  byte one, two;
  do
  :: next < TICKETS ->
     IS_OF(first);
#ifndef NO_GUARD_EACH_PACKET
     IS_OF(second);
#endif
#ifdef NO_GUARD_DONE_AFTER_LOADS
     done = next + 1;
#endif
     one = first_of[next % PLACES];
     two = second_of[next % PLACES];
     assert(one == next + 1 && two == next + 1);
#ifdef NO_GUARD_DONE_LAST
     done = next + 1;
#endif
     atomic { was[next] = word; word = word + 1; made[next] = made[next] + 1 };
#ifdef NO_GUARD_ANSWER_ALWAYS
     if
     :: asks[next] -> atomic { answer[next % PLACES] = NUMBER(next); answer_of[next % PLACES] = was[next] }
     :: else
     fi;
#else
     atomic { answer[next % PLACES] = NUMBER(next); answer_of[next % PLACES] = was[next] };
#endif
     next = next + 1;
#if !defined(NO_GUARD_DONE_LAST) && !defined(NO_GUARD_DONE_AFTER_LOADS)
     done = next;
#endif
     one = 0;
     two = 0
  :: else -> break
  od;
  assert(word == TICKETS)
}

init {
  byte i = 0;
  atomic {
    do
    :: i < THREADS -> run thread(); i = i + 1
    :: else -> break
    od;
    run proxy()
  }
}
