/* The queue of cells (src/path/shm/cell_queue.cpp): two senders, one receiver, and the cells' way back.
 *
 * Each sender owns two cells and a queue of those that are free, which is the same queue with the roles swapped: the receiver
 * puts, the sender takes. What must hold: every message arrives once, in its sender's order, whole; every cell comes back;
 * nobody waits for ever. Waiting is written as a statement that blocks, with the very condition of CellQueueReader::ready(),
 * so that a lost cell, or a ready() that is false while something is there, ends in a deadlock that spin reports.
 * With -DKILL a sender may die between its two steps: then the others may be left without, but nobody sees anything wrong. */
#define CELLS 4 /* names 1..4: 1 and 2 belong to sender 0, 3 and 4 to sender 1 */
#ifndef MESSAGES
#define MESSAGES 3 /* of each sender; at most 9, or their contents would be alike */
#endif
#define OWNER(cell) (((cell) - 1) / 2)

#define ARRIVALS 2 /* queues 0 and 1: the free cells of that sender */
byte head[3];
byte tail[3];
byte next[CELLS + 1];
byte content[CELLS + 1];
bool dead;

inline put(queue, cell, before, mortal) {
#ifndef NO_GUARD_CLEAR_NEXT
  next[cell] = 0;
#endif
#ifndef NO_GUARD_SWAP
  /* one exchange, acquire and release */
  atomic { before = tail[queue]; tail[queue] = cell };
#else
  before = tail[queue];
  tail[queue] = cell;
#endif
#ifdef KILL
  if
  :: mortal && !dead -> dead = true; goto died
  :: true
  fi;
#endif
  if
  :: before == 0 -> head[queue] = cell    /* release */
  :: else -> next[before] = cell          /* release */
  fi
}

/* taken is 0 if there is nothing yet */
inline take(queue, first, taken, follows) {
  taken = 0;
  if
  :: first == 0 ->
     first = head[queue]; /* acquire */
     if
     :: first != 0 ->
#ifndef NO_GUARD_EMPTY_HEAD
        /* before the exchange of the tail below, whose release orders it */
        head[queue] = 0
#else
        skip
#endif
     :: else
     fi
  :: else
  fi;
  if
  :: first != 0 ->
     follows = next[first]; /* acquire */
     if
     :: follows == 0 ->
#ifndef NO_GUARD_LAST
        atomic { /* compare-exchange, acquire and release */
          if
          :: tail[queue] == first -> tail[queue] = 0; taken = first; first = 0
          :: else
          fi
        };
#else
        tail[queue] = 0; taken = first; first = 0;
#endif
        if
        :: taken == 0 ->
           follows = next[first];
           if
           :: follows != 0 -> taken = first; first = follows
           :: else
           fi
        :: else
        fi
     :: else -> taken = first; first = follows
     fi
  :: else
  fi;
  follows = 0
}

#define READY(queue, first) \
  ((first == 0 && head[queue] != 0) || (first != 0 && (next[first] != 0 || tail[queue] == first)))

proctype sender(byte me) {
  byte first = 0, cell = 0, scratch = 0, sent = 0;
  do
  :: sent < MESSAGES ->
#ifdef KILL
end_without:
#endif
     READY(me, first);
     take(me, first, cell, scratch);
     if
     :: cell != 0 ->
        assert(OWNER(cell) == me);
        assert(content[cell] == 0); /* nobody has it any more */
#ifndef NO_GUARD_CONTENT_FIRST
        content[cell] = 10 * (me + 1) + sent;
        put(ARRIVALS, cell, scratch, true);
#else
        put(ARRIVALS, cell, scratch, true);
        content[cell] = 10 * (me + 1) + sent;
#endif
        scratch = 0;
        sent++
     :: else
     fi
  :: else -> break
  od;
died: skip
}

proctype receiver() {
  byte first = 0, cell = 0, scratch = 0, received = 0;
  byte wanted[2];
  do
  :: received < 2 * MESSAGES ->
#ifdef KILL
end_gap:
#endif
     READY(ARRIVALS, first);
     take(ARRIVALS, first, cell, scratch);
     if
     :: cell != 0 ->
        assert(content[cell] == 10 * (OWNER(cell) + 1) + wanted[OWNER(cell)]);
        wanted[OWNER(cell)]++;
        received++;
#ifndef NO_GUARD_RELEASE_LAST
        content[cell] = 0; /* the last time the receiver touches it */
        put(OWNER(cell), cell, scratch, false);
#else
        put(OWNER(cell), cell, scratch, false);
        content[cell] = 0;
#endif
        scratch = 0
     :: else
     fi
  :: else -> break
  od;
#ifdef KILL
died: skip
#endif
}

init {
  atomic {
    head[0] = 1; next[1] = 2; tail[0] = 2;
    head[1] = 3; next[3] = 4; tail[1] = 4;
    run sender(0); run sender(1); run receiver()
  }
}
