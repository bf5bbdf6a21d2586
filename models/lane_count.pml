/* How many turns of one slot of a rank's lane are over (count_over() in src/path/shm/lane_turns.hpp): calls that go on beside others add to it under
 * the engine's lock of their own time; whoever makes the calls adds to it, too, at once and without that lock.
 *
 * What must hold: no turn is lost, or its slot would never be free again.
 *
 * Where a call is under way the addition is one step of the processor (guard ADDED). Where none is, it is a load and a store: nobody else adds then,
 * and none begins but by whoever is here (guard ALONE, the look at `under_way`). Spin keeps every step in its order. On a processor `under_way` is stored
 * with release behind what a call adds (guard COUNT_FIRST), and looked at with acquire before the load. */
#ifndef CALLS
#define CALLS 4
#endif

byte over;
byte under_way;

inline add() {
#ifndef NO_GUARD_ADDED
  over++
#else
  before = over;
  over = before + 1
#endif
}

proctype goes_on() {
  byte before = 0;
#ifndef NO_GUARD_COUNT_FIRST
  add();
  under_way--
#else
  under_way--;
  add()
#endif
}

init {
  byte call = 0, before = 0;
  do
  :: call < CALLS ->
     if
     :: true -> /* goes on */
        under_way++;
        run goes_on()
     :: true -> /* at once */
        if
#ifndef NO_GUARD_ALONE
        :: under_way > 0 -> add()
        :: else ->
#else
        :: true ->
#endif
           before = over;
           over = before + 1
        fi
     fi;
     call++
  :: else -> break
  od;
  _nr_pr == 1;
  assert(over == CALLS)
}
