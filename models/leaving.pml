/* A rank's last message before it leaves, in a queue that another rank puts into, too (Engine::look_at_board() in
 * src/request/engine.cpp, CellQueueReader in src/path/shm/cell_queue.cpp).
 *
 * Rank 0 puts its message there, or into slots where nobody else puts any, and leaves. Rank 1 puts one of its own in two steps, may die
 * between them, and leaves else. The receiver wants one message of each: it looks who has left, takes what the queue gives, and then gives up what it wants of those who had left before.
 * What must hold: it gives up nothing that was sent, unless somebody died, and it ends. Waiting is written as a statement that blocks. */
byte head;
byte tail;
byte next[3];
bool slot;
bool left[3]; /* by cell: 1 is rank 0's */
bool died;

proctype sender(byte cell) {
  byte before = 0;
#ifdef NO_GUARD_LEAVE_LAST
  left[cell] = true;
#endif
  if
  :: cell == 1 -> slot = true; goto published
  :: true
  fi;
  atomic { before = tail; tail = cell };
  if
  :: cell == 2 -> died = true; goto ended
  :: true
  fi;
  if
  :: before == 0 -> head = cell
  :: else -> next[before] = cell
  fi;
published:
  left[cell] = true;
ended: skip
}

#define READY ((first == 0 && head != 0) || (first != 0 && (next[first] != 0 || tail == first)))

/* as in cell_queue.pml */
inline take() {
  taken = 0;
  if
  :: first == 0 ->
     first = head;
     if
     :: first != 0 -> head = 0
     :: else
     fi
  :: else
  fi;
  if
  :: first != 0 ->
     follows = next[first];
     if
     :: follows == 0 ->
        atomic {
          if
          :: tail == first -> tail = 0; taken = first; first = 0
          :: else
          fi
        };
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

#define NEWS (READY || (slot && !over[1]) || died || (left[1] && !over[1]) || (left[2] && !over[2]))

proctype receiver() {
  byte first = 0, taken = 0, follows = 0, cell = 0, last = 0;
  bool over[3], gone[3];
  bool behind = false;
  do
  :: died || (over[1] && over[2]) -> break
  :: else ->
     NEWS;
#ifndef NO_GUARD_MARK_FIRST
     gone[1] = left[1];
     gone[2] = left[2];
#endif
     last = tail; /* CellQueueReader::mark(): what was put before lies no further behind */
     if
     :: slot -> over[1] = true
     :: else
     fi;
     do
     :: take();
        if
        :: taken != 0 ->
           over[taken] = true;
           if
           :: taken == last -> last = 0
           :: else
           fi
        :: else -> break
        fi
     od;
#ifdef NO_GUARD_MARK_FIRST
     gone[1] = left[1];
     gone[2] = left[2];
#endif
#ifndef NO_GUARD_GAP
     behind = last != 0;
#endif
     if
     :: behind ->
#ifndef NO_GUARD_DEATH
        (READY || died) /* whoever stands in the gap goes on, or dies */
#else
        READY
#endif
     :: else ->
        for (cell : 1 .. 2) {
          assert(!gone[cell] || over[cell] || died) /* else it is given up, though it was sent */
        }
     fi
  od
}

init {
  atomic { run sender(1); run sender(2); run receiver() }
}
