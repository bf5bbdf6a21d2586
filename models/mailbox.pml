/* A mailbox (src/request/mail.cpp, mail_taking.cpp, src/memory/cuda/worker_protocol.hpp): messages from one process to another that their
 * devices' workers carry, while the envelopes go through a queue.
 *
 * What must hold: every message whose envelope was seen comes once, whole, with its own bytes, also if its sender dies right after that,
 * or its sender's worker fails in the middle (if both, the receiver gives up after a while, which is not modelled); and the receiver does not wait for ever. Messages are taken in any order, since some come
 * before their receive. Packets come in any order, and say themselves whose they are; one of them is not written by every message, so that
 * what lies there may be as old as its number takes to come again. Orders and answers are those of worker.pml, and channels here.
 * In the code every step that the other side may see is a load or store of its own here. Spin runs them in program order (sequential
 * consistency); where a guard says that something comes last or first, the code has a release or acquire, or says why it needs none: a
 * load whose value was used is over. */
#define PLACES 2
#ifndef TOTAL
#define TOTAL 7 /* messages: numbers come again */
#endif
#define EPOCH (PLACES + 1)  /* in so many messages each place is cleaned, if it was used */
#define NUMBERS (2 * EPOCH) /* before their numbers come again */
#define NUMBER(n) (1 + (n) % NUMBERS)
#define BYTES(n) ((n) + 100)
#define NONE 255
/* Variants, for fewer messages: the sender's worker fails; the sender dies; the receiver's worker gives up waiting, and is asked again. */
#ifdef NO_GUARD_OWN_ORDER_OVER
#define FAILS
#endif
#ifdef NO_GUARD_ORDER_FIRST
#define DIES
#endif

byte first[PLACES]; /* packets: number and bytes; the second one is written where the message is long */
byte first_bytes[PLACES];
byte second[PLACES];
byte second_bytes[PLACES];

chan posts = [PLACES] of { byte, byte, bool }; /* orders: place, message, is it long? */
byte posted[PLACES];                           /* answers: 1 + the message; 0: none */
bool failed;                                   /* the sender's worker has */
chan envelopes = [PLACES] of { byte, byte, bool };
chan takes = [1] of { byte, byte, bool, bool }; /* place, number, is it long, is it to be cleaned? */
byte taken = NONE;                              /* answer: 0 it was not there, 1 it was */
byte got, got_second;
bool told[PLACES]; /* the receiver's: the place is free */
bool closed;       /* nothing more comes of the sender */
bool given[TOTAL]; /* the order, for an assertion */

inline store(place, n, is_long) {
  if
  :: is_long ->
     atomic { first[place] = NUMBER(n); first_bytes[place] = BYTES(n) };
     atomic { second[place] = NUMBER(n); second_bytes[place] = BYTES(n) }
  :: else -> atomic { first[place] = NUMBER(n); first_bytes[place] = BYTES(n) }
  fi
}

active proctype sending_worker() {
  byte place, n;
  bool is_long;
end:
  do
  :: atomic { !failed && posts?[place, n, is_long] -> posts?place, n, is_long };
     store(place, n, is_long);
     if
     :: atomic { posted[place] = 1 + n; place = 0; n = 0; is_long = false }
#ifdef FAILS
     :: atomic { !closed -> failed = true }; break /* it has stored all that, and nobody hears of it */
#endif
     fi
#ifdef FAILS
  :: atomic { posts?[place, n, is_long] && !closed -> failed = true }; break
#endif
  od
}

/* Guards PLACE_FREE, OWN_ORDER_OVER and IN_TURN */
#ifndef NO_GUARD_PLACE_FREE
#define TOLD(p) told[p]
#else
#define TOLD(p) true
#endif
#ifndef NO_GUARD_OWN_ORDER_OVER
#define OVER(p) (under[p] == 0)
#else
#define OVER(p) true
#endif
#define FREE(p) (TOLD(p) && OVER(p))
#define OTHER (1 - next)
#ifndef NO_GUARD_IN_TURN
#define ANY_FREE (FREE(next) || (!TOLD(next) && FREE(OTHER)))
#else
#define ANY_FREE (FREE(next) || FREE(OTHER))
#endif

active proctype sender() {
  byte n = 0;
  byte next = 0;
  byte place;
  byte under[PLACES]; /* 1 + the message that an order is about; the last two of them where the guard is gone */
  byte before[PLACES];
  bool was_long[PLACES];
  bool before_long[PLACES];
  bool is_long;
  do
  :: n < TOTAL && !failed && ANY_FREE ->
#ifndef NO_GUARD_IN_TURN
     if
     :: FREE(next) -> place = next
     :: else -> place = OTHER
     fi;
#else
     if
     :: FREE(0) -> place = 0
     :: FREE(1) -> place = 1
     fi;
#endif
     next = 1 - place;
     if
     :: is_long = true
     :: is_long = false
     fi;
     told[place] = false;
     posted[place] = 0;
     before[place] = under[place];
     before_long[place] = was_long[place];
     under[place] = 1 + n;
     was_long[place] = is_long;
#ifdef NO_GUARD_ORDER_FIRST
     envelopes!place, n, is_long;
     if
     :: atomic { !failed -> closed = true }; goto gone
     :: skip
     fi;
#endif
     posts!place, n, is_long;
     given[n] = true;
#ifndef NO_GUARD_ORDER_FIRST
     envelopes!place, n, is_long;
#endif
     atomic { n = n + 1; place = 0; is_long = false }
  :: under[0] != 0 && posted[0] == under[0] -> under[0] = 0; before[0] = 0
  :: under[1] != 0 && posted[1] == under[1] -> under[1] = 0; before[1] = 0
  :: failed && (under[0] != 0 || under[1] != 0) ->
     /* by the driver, those of an earlier message perhaps last */
     if
     :: under[0] != 0 -> place = 0
     :: under[1] != 0 -> place = 1
     fi;
     if
     :: posted[place] != under[place] ->
        store(place, under[place] - 1, was_long[place]);
        if
        :: before[place] != 0 -> store(place, before[place] - 1, before_long[place])
        :: else
        fi
     :: else
     fi;
     under[place] = 0;
     before[place] = 0
  :: (n == TOTAL || failed) && under[0] == 0 && under[1] == 0 -> closed = true; break
#ifdef DIES
  :: atomic { !failed && n > 0 -> closed = true }; break /* it dies; its worker goes on with what it has */
#endif
  od;
gone:
  skip
}

#ifndef NO_GUARD_PACKET
#define THERE(packets) (packets[place] == number)
#else
#define THERE(packets) (packets[place] != 0)
#endif

active proctype taking_worker() {
  byte place, number, a, b;
  bool is_long, cleans;
  #ifdef GIVES_UP
  byte patience = 2;
#else
  byte patience = 0;
#endif
end:
  do
  :: takes?place, number, is_long, cleans ->
#ifdef NO_GUARD_DONE_LAST
     taken = 1;
#endif
     if
     :: atomic { THERE(first) -> a = first_bytes[place] };
        if
        :: is_long ->
           if
           :: atomic { THERE(second) -> b = second_bytes[place] }
           :: patience > 0 && !THERE(second) -> patience = patience - 1; goto missing
           fi
        :: else -> b = a
        fi;
        got = a;
        got_second = b;
#ifndef NO_GUARD_CLEAN
        if
        :: cleans -> first[place] = 0; second[place] = 0
        :: else
        fi;
#endif
#ifndef NO_GUARD_DONE_LAST
        atomic { taken = 1; place = 0; number = 0; a = 0; b = 0; is_long = false; cleans = false }
#endif
     :: patience > 0 && !THERE(first) -> patience = patience - 1; goto missing
     fi;
     goto end;
missing:
     taken = 0
  od
}

active proctype receiver() {
  byte came = 0;
  byte place, n;
  bool is_long;
  byte here[PLACES]; /* 1 + the message */
  bool here_long[PLACES];
  byte clean_in[PLACES];
  bool cleans;
  told[0] = true;
  told[1] = true;
  do
  :: envelopes?place, n, is_long ->
     assert(here[place] == 0);
#ifndef NO_GUARD_ORDER_FIRST
     assert(given[n]);
#endif
     atomic { came = came + 1; here[place] = 1 + n; here_long[place] = is_long; place = 0; n = 0; is_long = false }
  :: here[0] != 0 || here[1] != 0 ->
     if
     :: here[0] != 0 -> place = 0
     :: here[1] != 0 -> place = 1
     fi;
     n = here[place] - 1;
     cleans = came / EPOCH != clean_in[place];
     taken = NONE;
     takes!place, NUMBER(n), here_long[place], cleans;
#ifdef NO_GUARD_FREE_LAST
     told[place] = true;
#endif
     if
     :: taken == 1 ->
        assert(got == BYTES(n) && got_second == BYTES(n));
        if
        :: cleans -> clean_in[place] = came / EPOCH
        :: else
        fi;
        atomic { here[place] = 0; here_long[place] = false };
#ifndef NO_GUARD_FREE_LAST
        /* after the answer, which came after the packets were read: acquire and release */
        atomic { told[place] = true; place = 0; n = 0; cleans = false; got = 0; got_second = 0 }
#endif
     :: taken == 0 -> skip /* it is asked for once more */
     fi
  :: closed && empty(envelopes) && here[0] == 0 && here[1] == 0 -> break
  od
}
