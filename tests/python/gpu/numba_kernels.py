"""A kernel of Numba that makes every call of isthmus.numba_cuda, one block of each PE, and checks what comes."""
from isthmus import numba_cuda as ist
from numba import cuda

DEADLINE = 4 * 10**9  # ns
COUNT = 1000


@cuda.jit(device=True)
def value_of(pe, n, i):
    return (pe * 37 + n * 11 + i * 7) % 1000003


@cuda.jit(device=True)
def check(row, pe, n, wrong, place):
    for i in range(cuda.threadIdx.x, COUNT, cuda.blockDim.x):
        if row[i] != value_of(pe, n, i):
            cuda.atomic.add(wrong, place, 1)


@cuda.jit(device=True)
def atomics(team, words, small, n, wins, wrong):
    """By one thread: sums at PE 0, a word that one PE alone may change, and a negative one for the right neighbour."""
    right = (team.pe + 1) % team.pes
    ist.fetch_add(team, small, -3, 0)
    ist.fetch_add(team, words[3:], 5, 0)
    if ist.compare_swap(team, words[1:], n - 1, n, 0) == n - 1:
        wins[0] += 1
    if ist.compare_swap(team, small[2:], 1 - n, -n, 0) == 1 - n:
        wins[1] += 1
    if ist.swap(team, small[1:], -n, right) != 1 - n or ist.swap(team, words[4:], n, right) != n - 1:
        cuda.atomic.add(wrong, 5, 1)
    ist.fence()
    ist.signal(team, words[2:], 2, right, ist.ADD)
    ist.quiet()


@cuda.jit(device=True)
def epoch(team, data, words, small, n, wins, wrong):
    t = cuda.threadIdx.x
    right, left = (team.pe + 1) % team.pes, (team.pe + team.pes - 1) % team.pes
    for i in range(t, COUNT, cuda.blockDim.x):
        data[0, i] = value_of(team.pe, n, i)
    cuda.syncthreads()
    status = ist.put_signal(team, data[1], data[0], words, n, right)
    if status == ist.OK:
        status = ist.wait_until(team, words, ist.GE, n, DEADLINE)
    check(data[1], left, n, wrong, 1)
    there = ist.peer(team, data, right)
    for i in range(t, COUNT, cuda.blockDim.x):
        there[2, i] = data[0, i]
    if t < 32:
        ist.put(team, data[4], data[0], right, ist.WARP)
    if t == 0:
        ist.put(team, data[5], data[0], right, ist.THREAD)
        atomics(team, words, small, n, wins, wrong)
    if status == ist.OK:
        status = ist.wait_until(team, small[1:], ist.LE, -n, DEADLINE)
    if status == ist.OK:
        status = ist.barrier(team, DEADLINE)
    check(data[2], left, n, wrong, 2)
    check(data[4], left, n, wrong, 3)
    check(data[5], left, n, wrong, 3)
    if status == ist.OK:
        status = ist.get(team, data[3], data[0], left)
        cuda.syncthreads()
        check(data[3], left, n, wrong, 4)
        if t == 0 and (ist.fetch(team, small[1:], right) != -n or ist.fetch(team, words[2:], right) != 2 * n):
            cuda.atomic.add(wrong, 5, 1)
        status = ist.barrier(team, DEADLINE)
    return status


@cuda.jit
def ring(team, data, words, small, epochs, wins, wrong):
    """`data`: six rows of the heap; `words`: five of its words of 8 bytes, `small`: three signed ones of 4; zero. `wrong`, by the way of
    coming: 0 statuses, 1 signals, 2 stores, 3 smaller crews, 4 gets, 5 words; `wins`: how often this PE was the one."""
    for n in range(1, epochs + 1):
        status = epoch(team, data, words, small, n, wins, wrong)
        if status != ist.OK:
            if cuda.threadIdx.x == 0:
                wrong[0] = 100 * n + status
            return


@cuda.jit
def grids(team, data, rounds, wrong):
    """By several blocks, of which each thread has one number of a row: what all of them wrote goes to the right."""
    at, right, left = cuda.grid(1), (team.pe + 1) % team.pes, (team.pe + team.pes - 1) % team.pes
    for n in range(1, rounds + 1):
        data[0, at] = value_of(team.pe, n, at)
        status = ist.barrier(team, DEADLINE, ist.GRID)
        if status == ist.OK:
            status = ist.put(team, data[1], data[0], right, ist.GRID)
        if status == ist.OK:
            status = ist.barrier(team, DEADLINE, ist.GRID)
        if status != ist.OK:
            wrong[0] = 100 * n + status
            return
        if data[1, at] != value_of(left, n, at):
            cuda.atomic.add(wrong, 1, 1)


@cuda.jit
def mistakes(team, data, words, found):
    """Each gives another status than OK, and changes nothing."""
    status = ist.put(team, data[0], data[1, 1:], team.pe)
    status = status * 10 + ist.put(team, data[0], data[1], team.pes)
    status = status * 10 + ist.put_signal(team, found, data[1, :6], words, 1, team.pe)
    status = status * 10 + ist.wait_until(team, words, 9, 0, DEADLINE)
    status = status * 10 + ist.wait_until(team, words, ist.NE, 0, DEADLINE, ist.GRID)
    status = status * 10 + ist.barrier(team, DEADLINE, 7)
    status = status * 10 + ist.wait_until(team, words, ist.NE, 0, 2 * 10**6)
    if cuda.threadIdx.x == 0:
        found[0] = status


@cuda.jit
def without_atomics(team, data, words, small, found):
    """Of a team of which no atomic operation gets to any word: what stores goes on, what would change a word says so and does not."""
    t, own = cuda.threadIdx.x, team.pe
    added = ist.put_signal(team, data[1], data[0], words, 5, own, ist.ADD)
    stored = ist.put_signal(team, data[1], data[0], words, 7, own)
    seen = ist.wait_until(team, words, ist.EQ, 7, DEADLINE)
    cuda.syncthreads()
    if t == 0:
        found[0], found[1], found[2] = added, stored, seen
        found[3] = ist.signal(team, words, 5, own, ist.ADD)
        found[4] = ist.changes_words(team, own)
        found[5] = ist.fetch_add(team, words, 3, own)
        found[6] = ist.swap(team, small, 3, own)
        found[7] = ist.compare_swap(team, words, 7, 3, own)
        found[8] = ist.fetch(team, words, own)
        found[9] = ist.fetch(team, small, own)
