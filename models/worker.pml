/* A process and the worker of its device (src/memory/cuda/worker_protocol.hpp, worker_orders.cpp, cuda_workers.cpp): orders into the
 * device and out of it through a few places, a worker that leaves whenever it likes, and launches that take turns, as in a stream.
 *
 * What must hold: every order is done once, in order, with its own bytes, and the process does not wait for ever. Numbers come again,
 * and not every order writes packets, so that what lies in a place may be as old as its number takes to come again.
 * In the code every step that the other side may see is a load or store of its own here. Spin runs them in program order (sequential
 * consistency); where a guard says that something comes last or first, the code has a release or acquire, or says why it needs none:
 * a packet tells by its number whether it is there, and a load whose value was used is over. */
#ifndef SLOTS
#define SLOTS 2
#endif
#ifndef TOTAL
#define TOTAL 11 /* orders: numbers come again */
#endif
#define CLEANING (2 * SLOTS)   /* the places of so many orders are cleaned once */
#define NUMBERS (2 * CLEANING) /* before their numbers come again */
#define NUMBER(n) (1 + (n) % NUMBERS)
#define BYTES(n) ((n) + 100)

byte head[SLOTS]; /* orders: number, and what is to be done */
bool into[SLOTS];
byte packet[SLOTS]; /* number and bytes */
byte bytes[SLOTS];
byte done[SLOTS]; /* answers */
byte answer[SLOTS]; /* number and bytes */
byte answer_bytes[SLOTS];
byte parted; /* launch */
byte next; /* and where the one after it begins */

byte device;
byte executed; /* orders, for the assertions */
chan stream = [2] of { byte, byte }; /* launches, which take turns: each with its number, and the order to begin with */

inline leave() {
#ifdef NO_GUARD_NEXT_FIRST
  parted = launch;
  next = n;
#else
  next = n;
  parted = launch
#endif
}

active proctype worker() {
  byte launch, n, slot, number, found;
  bool leaves;
end:
  stream?launch, n;
  leaves = false;
  do
  :: !leaves ->
     slot = n % SLOTS;
     /* the packet is looked at together with the order, and may have been looked at before it */
     atomic { number = packet[slot]; found = bytes[slot] }
     if
     :: atomic { head[slot] == NUMBER(n) -> skip }
        assert(n == executed);
        if
        :: into[slot] ->
#ifndef NO_GUARD_PACKET
           if
           :: number != NUMBER(n) -> atomic { packet[slot] == NUMBER(n) -> found = bytes[slot] }
           :: else
           fi;
#endif
#ifdef NO_GUARD_DONE_LAST
           done[slot] = NUMBER(n);
#endif
           assert(found == BYTES(n));
           device = found;
           executed = n + 1;
#ifndef NO_GUARD_DONE_LAST
           /* release: the device's bytes come before it */
           done[slot] = NUMBER(n);
#endif
        :: else ->
           executed = n + 1;
           atomic { answer[slot] = NUMBER(n); answer_bytes[slot] = device }
        fi;
        n = n + 1
     :: else
     fi
#ifdef NO_GUARD_LOOKS_NO_MORE
  :: !leaves -> leave(); leaves = true;
     slot = n % SLOTS;
     if
     :: head[slot] == NUMBER(n) && !into[slot] ->
        assert(n == executed);
        executed = n + 1;
        atomic { answer[slot] = NUMBER(n); answer_bytes[slot] = device }
     :: else
     fi
  :: leaves -> break
#else
  :: !leaves -> leave(); break
#endif
  od;
  goto end
}

#ifndef NO_GUARD_SLOT_FREE
#define FREE (given - over < SLOTS)
#else
#define FREE true
#endif
#ifndef NO_GUARD_ANSWER
#define ANSWERED (answer[over % SLOTS] == NUMBER(over))
#else
#define ANSWERED (answer[over % SLOTS] != 0)
#endif

active proctype process() {
  byte given = 0;
  byte over = 0;
  byte launch = 0;
  bool running = false;
  byte slot, last;
  bool way[SLOTS];
  byte wanted[SLOTS];
  do
  :: given < TOTAL && FREE ->
     slot = given % SLOTS;
#ifndef NO_GUARD_CLEAN
     if
     :: given % CLEANING < SLOTS ->
        head[slot] = 0; packet[slot] = 0; done[slot] = 0; answer[slot] = 0
     :: else
     fi;
#endif
     if
     :: way[slot] = true
     :: way[slot] = false
     fi;
     if
     :: way[slot] ->
        atomic { packet[slot] = NUMBER(given); bytes[slot] = BYTES(given) };
        last = BYTES(given)
     :: else
     fi;
     wanted[slot] = last;
     atomic { head[slot] = NUMBER(given); into[slot] = way[slot] };
     given = given + 1
  :: over < given && way[over % SLOTS] && done[over % SLOTS] == NUMBER(over) ->
     /* acquire: what the worker stored before */
     assert(executed > over);
     assert(given > over + 1 || device == BYTES(over));
     over = over + 1
  :: over < given && !way[over % SLOTS] && ANSWERED ->
     assert(executed > over && answer_bytes[over % SLOTS] == wanted[over % SLOTS]);
     over = over + 1
  :: over < given && !running ->
#ifndef NO_GUARD_ONCE
     running = true;
#endif
     launch = 1 + launch % 2;
     stream!launch, next
#ifndef NO_GUARD_AGAIN
  :: running && parted == launch ->
     running = false
#endif
  :: over == TOTAL -> break
  od
}
