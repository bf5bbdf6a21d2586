/* Sleeping and waking (src/path/shm/doorbell.hpp, ShmPath::announce_sleep and wake): two ringers, a watcher, one sleeper.
 *
 * The sleeper has no time limit here, so that a lost wake-up is a deadlock that spin reports.
 * This protocol is the one that needs full fences: each side stores, then loads what the other stores. Spin alone would never
 * let a load overtake a store, so that the stores in question go through a store buffer of one entry per process, which
 * drains when it likes, as on x86; a fence waits until it is empty. An exchange and a system call drain it too. */
#define RINGERS 2
#ifndef MESSAGES
#define MESSAGES 2 /* of each ringer */
#endif
#define AWAKE 0
#define ASLEEP 1
#define NOTHING 2

byte published[RINGERS];
bool publish_buffer[RINGERS]; /* a store of published + 1 that others do not see yet */
byte word = AWAKE;
byte word_buffer = NOTHING;
bool queued;                  /* the kernel has the sleeper in the futex's queue */
bool died;                    /* the abort board */
bool woken;                   /* ShmPath::woken_ */

active proctype store_buffers() {
end:
  do
  :: atomic { publish_buffer[0] -> publish_buffer[0] = false; published[0]++ }
  :: atomic { publish_buffer[1] -> publish_buffer[1] = false; published[1]++ }
  :: atomic { word_buffer != NOTHING -> word = word_buffer; word_buffer = NOTHING }
  od
}

/* Doorbell::wake(): only the one who takes the word calls the kernel */
inline wake_sleeper(old) {
  atomic { old = word; word = AWAKE };
  if
  :: old == ASLEEP -> queued = false
  :: else
  fi;
  old = 0
}

inline ring(old) {
  if
  :: word == ASLEEP -> wake_sleeper(old)
  :: else
  fi
}

inline publish(me) {
  atomic { !publish_buffer[me] -> publish_buffer[me] = true };
#ifndef NO_GUARD_RINGER_FENCE
  !publish_buffer[me]; /* full_fence() in Doorbell::ring() */
#endif
}

proctype ringer(byte me) {
  byte i = 0, old = 0;
  do
  :: i < MESSAGES ->
#ifndef NO_GUARD_PUBLISH_FIRST
     publish(me);
     ring(old);
#else
     ring(old);
     publish(me);
#endif
     i++
  :: else -> break
  od
}

/* The watcher marks the board, then calls ShmPath::wake(). It is another thread of the sleeper's process. Its store to woken_
 * is fenced as the ringers' are. */
proctype watcher() {
  byte old = 0;
  died = true;
#ifndef NO_GUARD_STICKY
  woken = true;
#endif
  ring(old)
}

#define NEWS (published[0] > seen[0] || published[1] > seen[1])

inline announce() {
  atomic { word_buffer == NOTHING -> word_buffer = ASLEEP };
#ifndef NO_GUARD_SLEEPER_FENCE
  word_buffer == NOTHING; /* full_fence() in Doorbell::announce() */
#endif
}

inline look(found) {
  /* one load each, in any order the ringers like */
  found = false;
#ifndef NO_GUARD_LOOK_AGAIN
  if
  :: published[0] > seen[0] -> found = true
  :: else
  fi;
  if
  :: published[1] > seen[1] -> found = true
  :: else
  fi;
#endif
  atomic { /* an exchange: woken_ */
    if
    :: woken -> woken = false; found = true
    :: else
    fi
  }
}

proctype sleeper() {
  byte seen[RINGERS];
  bool found;
  bool saw_death;
  do
  :: saw_death && seen[0] == MESSAGES && seen[1] == MESSAGES -> break
  :: else ->
     /* the caller's loop: takes what there is, looks at the abort board */
     seen[0] = published[0];
     seen[1] = published[1];
     saw_death = died;
     if
     :: saw_death && seen[0] == MESSAGES && seen[1] == MESSAGES -> break
     :: else
     fi;
     /* ShmPath::announce_sleep(), then sleep_announced() */
#ifndef NO_GUARD_ANNOUNCE_FIRST
     announce();
     look(found);
#else
     look(found);
     announce();
#endif
     if
     :: !found ->
        word_buffer == NOTHING; /* a system call */
        atomic { /* FUTEX_WAIT: compares and queues in one step */
#ifndef NO_GUARD_COMPARE
          if
          :: word == ASLEEP -> queued = true
          :: else
          fi
#else
          queued = true
#endif
        };
        !queued
     :: else
     fi;
     atomic { word_buffer == NOTHING -> word_buffer = AWAKE } /* retract() */
  od
}

init {
  atomic { run ringer(0); run ringer(1); run watcher(); run sleeper() }
}
