"""For kernels of Numba: reach the memory of other PEs of a symmetric heap, tell them, wait for them and meet them.

    from isthmus import numba_cuda as ist

    @cuda.jit
    def shift(team, field, words, step):
        right = (team.pe + 1) % team.pes
        ist.put_signal(team, field[1], field[0], words, step, right)
        if ist.wait_until(team, words, ist.GE, step, 10**9) != ist.OK: ...

    shift[1, 256](ist.team(heap), field, words, 7)     # field = heap.array((2, 512), "f4"), words = heap.array(1, "u8")

It is isthmus/device.cuh behind the names of docs/in-kernel.md, compiled by NVRTC when a kernel that uses it is. Arrays have no gaps; those named
`mine` lie in the heap, and mean the same place of PE `pe`. A word is the first element of an array of integers of 4 or 8 bytes. Calls with a
`crew` are made by all its threads: THREAD (one alone), WARP, or BLOCK, whose threads are numbered in one dimension; put, get and barrier also by a
GRID, of which all blocks must be on the GPU at once. Nothing is raised in a kernel: calls give OK, PEER_DEAD, LATE, or MISUSE (bytes that differ, a place outside of the heap, a PE that there is none, an ADD to
a word that no atomic operation gets to: nothing was done).
"""
import pathlib as _pathlib
import struct as _struct
import typing as _typing

from ._device import flattened as _flattened

try:
    import numpy as _np
    from numba import cuda as _cuda
    _source, _declare = _cuda.CUSource, _cuda.declare_device
    try:
        from numba.cuda.extending import intrinsic as _intrinsic
    except ImportError:
        from numba.core.extending import intrinsic as _intrinsic
    try:
        from numba.cuda.types import Array as _Array, Integer as _Integer, int32 as _int32, int64 as _int64, uint64 as _uint64
    except ImportError:
        from numba.core.types import Array as _Array, Integer as _Integer, int32 as _int32, int64 as _int64, uint64 as _uint64
    from llvmlite import ir as _ir
except (ImportError, AttributeError) as _error:
    raise ImportError("isthmus.numba_cuda needs the package numba-cuda, 0.18 or later, with NVRTC: pip install numba-cuda[cu13] "
                      f"(or cu12, as the driver is); here: {_error}") from _error

THREAD, WARP, BLOCK, GRID = range(4)
OK, PEER_DEAD, LATE, MISUSE = 0, 1, 2, 3
EQ, NE, GT, GE, LT, LE = range(6)
SET, ADD = 0, 1


class Team(_typing.NamedTuple):
    """An ist_team_view, by value, and where the view tells which words change: kernels read pe and pes of it."""
    pe: int
    pes: int
    base: int
    stride: int
    bytes: int
    sync: int
    sync_bytes: int
    abort_word: int
    desk: int


def team(heap):
    """What kernels take of a CUDA heap; void once the heap or its world is closed. Also where no atomic operation gets to some PE's words, which
    changes_words tells: what only stores and waits needs none."""
    if heap.kind != "cuda":
        raise ValueError(f"isthmus.numba_cuda: kernels reach a heap of CUDA memory, and this one is of {heap.kind} memory; "
                         "make one with comm.heap('cuda', nbytes)")
    pe, pes, *rest, _shift, _ring, desk = _struct.unpack("=ii6QqQQ", heap.device_view())
    return Team(_np.int32(pe), _np.int32(pes), *map(_np.uint64, rest), _np.uint64(desk))


# ---- the functions of numba_cuda.cu ----

_CODE = _source(_flattened((_pathlib.Path(__file__).absolute().parent / "numba_cuda.cu").read_text()), name="isthmus.numba_cuda")
_TEAM = "int32, int32, uint64, uint64, uint64, uint64, uint64, uint64, uint64"


def _function(name, result, arguments):
    return _declare(f"ist_numba_{name}", f"{result}({arguments.replace('TEAM', _TEAM)})", link=_CODE)


_put = _function("put", "int32", "TEAM, uint64, uint64, uint64, uint64, int32, int32")
_get = _function("get", "int32", "TEAM, uint64, uint64, uint64, uint64, int32, int32")
_put_signal = _function("put_signal", "int32", "TEAM, uint64, uint64, uint64, uint64, uint64, uint64, int32, int32, int32")
_signal = _function("signal", "int32", "TEAM, uint64, uint64, int32, int32")
_wait_until = _function("wait_until", "int32", "TEAM, uint64, int32, int32, uint64, uint64, int32")
_barrier = _function("barrier", "int32", "TEAM, uint64, int32")
_fetch_add32 = _function("fetch_add32", "uint32", "uint64, uint32")
_fetch_add64 = _function("fetch_add64", "uint64", "uint64, uint64")
_swap32 = _function("swap32", "uint32", "uint64, uint32")
_swap64 = _function("swap64", "uint64", "uint64, uint64")
_compare_swap32 = _function("compare_swap32", "uint32", "uint64, uint32, uint32")
_compare_swap64 = _function("compare_swap64", "uint64", "uint64, uint64, uint64")
_fetch32 = _function("fetch32", "uint32", "uint64")
_fetch64 = _function("fetch64", "uint64", "uint64")
_changes_words = _function("changes_words", "int32", "int32, uint64, int32")
_fence = _function("fence", "int32", "")
_quiet = _function("quiet", "int32", "")


# ---- what Numba says of arrays nowhere else ----

def _row(array):
    if not isinstance(array, _Array) or array.layout not in "CF":
        raise TypeError(f"isthmus.numba_cuda: an array without gaps is wanted, and this is {array}")
    return array


def _word(array):
    if not isinstance(_row(array).dtype, _Integer) or array.dtype.bitwidth not in (32, 64):
        raise TypeError(f"isthmus.numba_cuda: a word is an integer of 4 or 8 bytes, and this is {array}")
    return array


def _held(context, builder, signature, arguments):
    return context.make_array(signature.args[0])(context, builder, value=arguments[0])


def _data(context, builder, signature, arguments):
    return builder.ptrtoint(_held(context, builder, signature, arguments).data, _ir.IntType(64))


@_intrinsic
def _address(typing_context, array):
    return _uint64(_row(array)), _data


@_intrinsic
def _signal_address(typing_context, array):
    if _word(array).dtype.bitwidth != 64:
        raise TypeError(f"isthmus.numba_cuda: the word of a signal has 8 bytes, and this is {array}")
    return _uint64(array), _data


@_intrinsic
def _kind(typing_context, array):
    """Bytes of a word, negative where it is signed."""
    kind = _word(array).dtype.bitwidth // 8 * (-1 if array.dtype.signed else 1)
    return _int32(array), lambda *_: _ir.IntType(32)(kind)


@_intrinsic
def peer(typing_context, team, mine, pe):
    """peer(team, mine, pe): PE pe's copy of an array, with or without gaps: load and store there as you like."""
    if not isinstance(mine, _Array):
        raise TypeError(f"isthmus.numba_cuda: an array is wanted, and this is {mine}")

    def generate(context, builder, signature, arguments):
        fields = [builder.extract_value(arguments[0], Team._fields.index(name)) for name in ("pe", "stride")]
        own, stride = builder.sext(fields[0], _ir.IntType(64)), fields[1]
        far = context.cast(builder, arguments[2], signature.args[2], _int64)
        held = context.make_array(signature.args[1])(context, builder, value=arguments[1])
        here = builder.ptrtoint(held.data, _ir.IntType(64))
        there = builder.add(here, builder.mul(builder.sub(far, own), stride))
        held.data = builder.inttoptr(there, held.data.type)
        return held._getvalue()
    return mine(team, mine, pe), generate


_device = _cuda.jit(device=True)


@_device
def _far(team, mine, pe):
    return _address(mine) + _np.uint64(_np.int64(pe) - _np.int64(team.pe)) * team.stride


# ---- by one thread ----

@_device
def changes_words(team, pe):
    """Whether atomic operations get to that PE's words: not over every link that is no NVLink. Where none do, ADD is a MISUSE, fetch_add,
    swap and compare_swap change nothing and give 0, and all other calls are as ever."""
    return _changes_words(team.pes, team.desk, _np.int32(pe)) != 0


@_device
def signal(team, mine, value, pe, how=SET):
    """Sets that word of 8 bytes there, or adds to it, after everything that this thread stored or learned of at a meeting."""
    return _signal(team.pe, team.pes, team.base, team.stride, team.bytes, team.sync, team.sync_bytes, team.abort_word, team.desk,
                   _signal_address(mine), _np.uint64(value), _np.int32(pe), _np.int32(how))


@_device
def fence():
    """This thread's earlier stores come before its later ones, at every PE."""
    _fence()


@_device
def quiet():
    """They are done before anything that this thread does later."""
    _quiet()


@_device
def fetch(team, mine, pe):
    """That word there."""
    if abs(_kind(mine)) == 4:
        return mine.dtype.type(_fetch32(_far(team, mine, pe)))
    return mine.dtype.type(_fetch64(_far(team, mine, pe)))


@_device
def fetch_add(team, mine, value, pe):
    """Adds to that word there, atomically with every other device's atomics and in no order with anything else; gives what was there."""
    if not changes_words(team, pe):
        return mine.dtype.type(0)
    if abs(_kind(mine)) == 4:
        return mine.dtype.type(_fetch_add32(_far(team, mine, pe), _np.uint32(value)))
    return mine.dtype.type(_fetch_add64(_far(team, mine, pe), _np.uint64(value)))


@_device
def swap(team, mine, value, pe):
    """Sets that word there; gives what was there."""
    if not changes_words(team, pe):
        return mine.dtype.type(0)
    if abs(_kind(mine)) == 4:
        return mine.dtype.type(_swap32(_far(team, mine, pe), _np.uint32(value)))
    return mine.dtype.type(_swap64(_far(team, mine, pe), _np.uint64(value)))


@_device
def compare_swap(team, mine, expected, wanted, pe):
    """Sets that word there to wanted if it is expected; gives what was there."""
    if not changes_words(team, pe):
        return mine.dtype.type(0)
    if abs(_kind(mine)) == 4:
        return mine.dtype.type(_compare_swap32(_far(team, mine, pe), _np.uint32(expected), _np.uint32(wanted)))
    return mine.dtype.type(_compare_swap64(_far(team, mine, pe), _np.uint64(expected), _np.uint64(wanted)))


# ---- by a crew ----

@_device
def put(team, mine, source, pe, crew=BLOCK):
    """Stores source to PE pe's copy of mine, which has as many bytes; posted: a fence, a signal or a barrier comes after it."""
    return _put(team.pe, team.pes, team.base, team.stride, team.bytes, team.sync, team.sync_bytes, team.abort_word, team.desk,
                _address(mine), _np.uint64(mine.nbytes), _address(source), _np.uint64(source.nbytes), _np.int32(pe), _np.int32(crew))


@_device
def get(team, into, mine, pe, crew=BLOCK):
    """Loads PE pe's copy of mine; other threads of the block read it after the next meeting."""
    return _get(team.pe, team.pes, team.base, team.stride, team.bytes, team.sync, team.sync_bytes, team.abort_word, team.desk,
                _address(into), _np.uint64(into.nbytes), _address(mine), _np.uint64(mine.nbytes), _np.int32(pe), _np.int32(crew))


@_device
def put_signal(team, mine, source, word, value, pe, how=SET, crew=BLOCK):
    """A put, and then that word of 8 bytes there is set, or added to: who waits for it finds the bytes."""
    return _put_signal(team.pe, team.pes, team.base, team.stride, team.bytes, team.sync, team.sync_bytes, team.abort_word, team.desk,
                       _address(mine), _np.uint64(mine.nbytes), _address(source), _np.uint64(source.nbytes), _signal_address(word),
                       _np.uint64(value), _np.int32(pe), _np.int32(how), _np.int32(crew))


@_device
def wait_until(team, word, compare, value, deadline=0, crew=BLOCK):
    """Until the own word compares so (EQ, NE, GT, GE, LT, LE) with value, for so many nanoseconds (0: for ever). Looked at by one thread of
    the crew; all threads learn how it ended, and see what the word's writer had stored before it."""
    return _wait_until(team.pe, team.pes, team.base, team.stride, team.bytes, team.sync, team.sync_bytes, team.abort_word, team.desk,
                       _address(word), _kind(word), _np.int32(compare), _np.uint64(value), _np.uint64(deadline), _np.int32(crew))


@_device
def barrier(team, deadline=0, crew=BLOCK):
    """All PEs meet, one crew of each; what was stored before is seen by all afterwards. After an end that is not OK the team meets no more."""
    return _barrier(team.pe, team.pes, team.base, team.stride, team.bytes, team.sync, team.sync_bytes, team.abort_word, team.desk,
                    _np.uint64(deadline), _np.int32(crew))
