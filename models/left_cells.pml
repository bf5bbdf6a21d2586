/* Cells that lie unread with a rank that has left (CellPool::reclaim in src/path/shm/shm_link.cpp): each owner takes back its own, while
 * others may still post there, since they have not seen that the rank is gone. Nobody reads the queue any more.
 *
 * What must hold: every cell comes back, and nobody writes the link of one that its owner has. Each owner has one cell; a loop that finds
 * nothing to take back yet is written as a statement that blocks. */
#define OWNERS 3
#ifndef POSTS
#define POSTS 3 /* of each owner */
#endif

byte head;
byte tail;
byte next[OWNERS + 1];
bool lies[OWNERS + 1]; /* in the queue, as its owner sees it */

proctype owner(byte cell) {
  byte before = 0, posts = 0;
  do
  :: posts < POSTS ->
     next[cell] = 0;
     lies[cell] = true;
     atomic { before = tail; tail = cell };
     if
     :: before == 0 -> head = cell
     :: else ->
        atomic { assert(lies[before]); next[before] = cell }
     fi;
     before = 0;
     posts++;
#ifndef NO_GUARD_LAST
     if
     :: next[cell] != 0
     :: atomic { tail == cell -> tail = 0 }
     fi;
#endif
     lies[cell] = false
  :: else -> break
  od
}

init {
  byte cell;
  atomic {
    for (cell : 1 .. OWNERS) { run owner(cell) }
  }
}
