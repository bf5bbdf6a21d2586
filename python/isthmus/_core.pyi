"""Isthmus: messages between ranks, whatever memory they use."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any


ANY_SOURCE: int = -1

ANY_TAG: int = -1

PROC_NULL: int = -2

TAG_MAX: int = 2147483647

class Status:
    """What a completed operation has to say."""

    def __init__(self) -> None: ...

    @property
    def source(self) -> int:
        """Rank of the sender."""

    @property
    def tag(self) -> int: ...

    @property
    def bytes(self) -> int:
        """Bytes delivered."""

    @property
    def count(self) -> int:
        """Whole elements of the receive's buffer delivered."""

    def get_count(self, typestr: str) -> int | None:
        """
        Whole elements of a type such as 'f8' delivered or announced; None if the bytes are no whole number of them.
        """

    @property
    def carrier(self) -> str:
        """
        How the bytes travelled: slot, cell, ring, direct, nccl, device, mailbox or none.
        """

    @property
    def code(self) -> int:
        """0, or the Code of the error."""

    @property
    def cancelled(self) -> bool: ...

    def __repr__(self) -> str: ...

class PendingOperation:
    """What all requests have in common."""

    def test(self) -> bool:
        """
        True when complete; raises if it failed. Moves every operation of the world on.
        """

    def cancel(self) -> None:
        """
        Gives up a receive that no message has matched, a send that no receive has asked for, or this rank's part in a collective call, which the others are told of; wait() then returns, and its status says so.
        """

    def free(self) -> None:
        """
        Lets go of it, as dropping does: what is under way goes on and keeps its buffer, and nobody is told how it ends.
        """

    @property
    def status(self) -> Status | None:
        """None before completion."""

    def __repr__(self) -> str: ...

class Request(PendingOperation):
    """
    A send or receive under way. It keeps its buffer alive until it is complete, also when it is dropped; it goes on only as long as the world is open.
    """

    def wait(self) -> Status:
        """
        Waits without the GIL. Ctrl-C ends the wait, and the operation goes on.
        """

def waitany(requests: Iterable[PendingOperation]) -> tuple[int, Any]:
    """
    Index and result of the first that is complete; raises if it failed. Leave it out of the next call.
    """

def waitall(requests: Iterable[PendingOperation]) -> list:
    """
    Waits for all, also when some fail, and gives what each wait() would; failures raise WaitallError.
    """

def waitsome(requests: Iterable[PendingOperation]) -> list[tuple[int, Any]]:
    """
    Waits for at least one: index and result of each that is complete. Leave them out of the next call.
    """

def testany(requests: Iterable[PendingOperation]) -> tuple[int, Any] | None:
    """As waitany; None if none is complete now."""

def testall(requests: Iterable[PendingOperation]) -> list | None:
    """As waitall; None if not all are complete now."""

def testsome(requests: Iterable[PendingOperation]) -> list[tuple[int, Any]]:
    """As waitsome, of those that are complete now."""

class ObjectRequest(PendingOperation):
    """
    A receive of an object under way. Dropped before a message has matched it, it is cancelled: nobody could have the object.
    """

    def wait(self) -> Any:
        """The object; every call gives the same one."""

class PersistentRequest(PendingOperation):
    """
    A send or receive that is started as often as wanted, one start at a time. It keeps its buffer; where several requests are given to a call, one that is not started is passed over.
    """

    def start(self) -> None:
        """
        Begins it again, with what the buffer then holds. The stream of device memory is the one that is current now.
        """

    def wait(self) -> Status:
        """
        Waits for the last start without the GIL; of one that is not started, what the last one came to.
        """

def startall(requests: Iterable[PersistentRequest]) -> None:
    """Starts all, in their order."""

class Message:
    """
    A message that mprobe or improbe has set aside: only this object receives it.
    """

    def recv(self, buffer: object | None, *, count: int | None = None) -> Status:
        """Receives it into the buffer, once."""

    def irecv(self, buffer: object, *, count: int | None = None) -> Request: ...

    @property
    def status(self) -> Status:
        """Source, tag and bytes of the message."""

    def __repr__(self) -> str: ...

class Buffer:
    """A place named by hand, for memory that no protocol describes."""

    def __init__(self, kind: str, object: int, count: int, typestr: str = 'u1', *, offset: int = 0, queue: int = 0, read_only: bool = False, owner: object | None = None, ready: bool = False) -> None:
        """
        kind: host, cuda, opencl or auto. object: an address, a CUdeviceptr or a cl_mem. offset: bytes from its start. queue: CUstream or cl_command_queue with its pending work. owner: kept alive with the buffer. ready: the promise of isthmus.ready().
        """

    def __repr__(self) -> str: ...

def ready(memory: object) -> Buffer:
    """
    The same memory as a Buffer, with the promise that nothing is pending on it: no stream or queue still holds work that writes it, nor work that reads it where it is being received into. Its stream is then not asked, which saves up to 1.5 us of each message. memory: whatever can be sent; it is kept alive with the buffer.
    """

class Memory:
    """
    Memory of any kind that World.allocate gave; freed when the last reference is dropped.
    """

    @property
    def nbytes(self) -> int: ...

    @property
    def kind(self) -> str: ...

    @property
    def address(self) -> int:
        """Address, CUdeviceptr or cl_mem."""

    @property
    def queue(self) -> int:
        """The CUstream or cl_command_queue that the library uses for it."""

    def __repr__(self) -> str: ...

class Registration:
    """
    Host memory that World.register has page-locked; unlocked by release(), at the end of a with block, or when the last reference is dropped. Keeps the memory alive; nothing may be in flight on it then.
    """

    def release(self) -> None: ...

    def __enter__(self) -> Registration: ...

    def __exit__(self, *args: object) -> None: ...

    def __repr__(self) -> str: ...

class InPlace:
    """The class of IN_PLACE."""

    def __repr__(self) -> str: ...

IN_PLACE: InPlace = ...

class Operation:
    """What a reduction combines with: SUM, MIN and so on, or a function."""

    def __init__(self, function: Callable[[Any, Any], Any], commutative: bool = True) -> None:
        """
        function(lower, higher): two arrays of the buffers' type, those of lower ranks first; gives their combination, or writes it into the second and gives None. Must be associative, and must not call the library. commutative=False: combined in the order of the ranks.
        """

    def __repr__(self) -> str: ...

SUM: Operation = ...

PROD: Operation = ...

MIN: Operation = ...

MAX: Operation = ...

MINLOC: Operation = ...

MAXLOC: Operation = ...

LAND: Operation = ...

LOR: Operation = ...

LXOR: Operation = ...

BAND: Operation = ...

BOR: Operation = ...

BXOR: Operation = ...

class Comm:
    """
    Ranks that exchange messages. A buffer is any object with memory; see the documentation.
    """

    @property
    def rank(self) -> int: ...

    @property
    def size(self) -> int: ...

    @property
    def local_rank(self) -> int:
        """Rank among the ranks of this host."""

    @property
    def local_size(self) -> int: ...

    def send(self, buffer: object | None, dest: int, tag: int = 0, *, count: int | None = None) -> None:
        """
        Returns when the buffer may be used again. count: so many elements of it.
        """

    def recv(self, buffer: object | None, source: int = -1, tag: int = -1, *, count: int | None = None) -> Status:
        """Receives into the buffer; a shorter message is no error."""

    def isend(self, buffer: object, dest: int, tag: int = 0, *, count: int | None = None) -> Request: ...

    def irecv(self, buffer: object, source: int = -1, tag: int = -1, *, count: int | None = None) -> Request: ...

    def sendrecv(self, send_buffer: object | None, dest: int, recv_buffer: object | None, source: int = -1, *, send_tag: int = 0, recv_tag: int = -1, send_count: int | None = None, recv_count: int | None = None) -> Status:
        """Sends one buffer and receives into the other, both at once."""

    def barrier(self) -> None:
        """Returns when every rank has come to it."""

    def send_object(self, object: object | None, dest: int, tag: int = 0) -> None:
        """
        Sends anything that pickle can write; recv_object and irecv_object receive it, and no buffer call does.
        """

    def recv_object(self, source: int = -1, tag: int = -1, *, status: Status | None = None) -> Any:
        """
        Unpickling runs what the sender wrote: only between ranks that trust each other. status: filled in.
        """

    def isend_object(self, object: object, dest: int, tag: int = 0) -> Request: ...

    def ssend_object(self, object: object | None, dest: int, tag: int = 0) -> None:
        """As send_object, and returns when a receive has taken it."""

    def issend_object(self, object: object, dest: int, tag: int = 0) -> Request: ...

    def irecv_object(self, source: int = -1, tag: int = -1) -> ObjectRequest: ...

    def sendrecv_object(self, object: object, dest: int, source: int = -1, *, send_tag: int = 0, recv_tag: int = -1, status: Status | None = None) -> Any: ...

    def __repr__(self) -> str: ...

    def ssend(self, buffer: object | None, dest: int, tag: int = 0, *, count: int | None = None) -> None:
        """As send, and returns only when the matching receive has begun."""

    def issend(self, buffer: object, dest: int, tag: int = 0, *, count: int | None = None) -> Request: ...

    def sendrecv_replace(self, buffer: object | None, dest: int, source: int = -1, *, send_tag: int = 0, recv_tag: int = -1, count: int | None = None) -> Status:
        """Sends the buffer's contents and receives into their place."""

    def prepare(self, buffer: object | None, peer: int, *, count: int | None = None) -> None:
        """
        Opens device memory ahead of the first message; the peer calls it, too, with its own buffer.
        """

    def iprepare(self, buffer: object, peer: int, *, count: int | None = None) -> Request: ...

    def dup(self) -> Comm:
        """
        The same ranks, whose messages never meet those of this one. Collective; freed when it is dropped, as all that follow.
        """

    def split(self, color: int | None = None, key: int = 0) -> Comm | None:
        """
        One communicator per color, ranks in the order of key; None to ranks without a color. Collective.
        """

    def split_local(self, key: int = 0) -> Comm:
        """One communicator per host. Collective."""

    def create_group(self, ranks: Iterable[int], tag: int = 0) -> Comm:
        """
        Of the listed ranks, in that order. Collective over them alone; tags, 0 to 2**30 - 1, keep apart calls of overlapping lists that are under way at once.
        """

    def free(self) -> None:
        """
        Lets go of it now, as dropping does; operations that were started on it go on. Local.
        """

    def world_rank(self, rank: int) -> int:
        """The rank in the world's communicator of a rank of this one."""

    def explain(self, buffer: object | None, dest: int, *, count: int | None = None) -> str:
        """
        How a message of this buffer would be carried now, and why, in lines for people. Nothing is sent.
        """

    @property
    def name(self) -> str:
        """What errors call it."""

    def probe(self, source: int = -1, tag: int = -1) -> Status:
        """
        Waits for a message of buffers that a receive would take, and leaves it there.
        """

    def iprobe(self, source: int = -1, tag: int = -1) -> Status | None:
        """None if there is no such message now."""

    def probe_object(self, source: int = -1, tag: int = -1) -> Status:
        """
        As probe, of what recv_object would take. The status tells source and tag; its bytes are those of what announces the object.
        """

    def iprobe_object(self, source: int = -1, tag: int = -1) -> Status | None:
        """None if there is no such object now."""

    def mprobe(self, source: int = -1, tag: int = -1) -> Message:
        """
        As probe, and sets the message aside: no other receive takes it, in whatever thread.
        """

    def improbe(self, source: int = -1, tag: int = -1) -> Message | None:
        """As mprobe; None if there is no such message now."""

    def send_on(self, stream: object | None, buffer: object | None, dest: int, tag: int = 0, *, count: int | None = None) -> None:
        """
        Sends when the CUDA stream comes to it, and returns at once; keep the buffer until then. recv_on alone receives it.
        """

    def recv_on(self, stream: object | None, buffer: object | None, source: int, tag: int = 0, *, count: int | None = None) -> None:
        """
        Receives when the stream comes to it what send_on sends, and returns at once.
        """

    def sendrecv_on(self, stream: object | None, send_buffer: object | None, dest: int, recv_buffer: object | None, source: int, *, send_tag: int = 0, recv_tag: int = 0, send_count: int | None = None, recv_count: int | None = None) -> None:
        """Both at once."""

    def prepare_on(self, stream: object | None, partner: int, tag: int = 0, *, sends: bool = True, receives: bool = True) -> None:
        """
        Prepares the channels to and from a rank, as the first call of each does by itself: before a capture, or to choose when it is waited for.
        """

    def send_on_queue(self, queue: object, buffer: object, dest: int, tag: int = 0, *, count: int | None = None, wait_for: object | None = None) -> object:
        """
        Sends when the OpenCL queue comes to it, and returns at once; keep the buffer until then. recv_on_queue alone receives it. wait_for: events of pyopencl's. Gives such an event, where the program has imported pyopencl.
        """

    def recv_on_queue(self, queue: object, buffer: object, source: int, tag: int = 0, *, count: int | None = None, wait_for: object | None = None) -> object:
        """
        Receives when the OpenCL queue comes to it what send_on_queue sends, and returns at once, with an event.
        """

    def sendrecv_on_queue(self, queue: object, send_buffer: object, dest: int, recv_buffer: object, source: int, *, send_tag: int = 0, recv_tag: int = 0, send_count: int | None = None, recv_count: int | None = None, wait_for: object | None = None) -> object:
        """Both at once, with one event."""

    def prepare_on_queue(self, queue: object, partner: int, tag: int = 0, *, sends: bool = True, receives: bool = True) -> None:
        """Waits until that rank uses the channels to and from it in queues, too."""

    def send_init(self, buffer: object, dest: int, tag: int = 0, *, count: int | None = None) -> PersistentRequest:
        """Prepares a send; start() begins it."""

    def ssend_init(self, buffer: object, dest: int, tag: int = 0, *, count: int | None = None) -> PersistentRequest:
        """Prepares a synchronous send."""

    def recv_init(self, buffer: object, source: int = -1, tag: int = -1, *, count: int | None = None) -> PersistentRequest:
        """Prepares a receive."""

    def ibarrier(self) -> Request: ...

    def bcast(self, buffer: object, root: int = 0) -> None:
        """The root's buffer to everybody's."""

    def ibcast(self, buffer: object, root: int = 0) -> Request: ...

    def reduce(self, send: object, recv: object, op: Operation = ..., root: int = 0) -> None:
        """
        Combines element by element; the result on the root, elsewhere recv may be None.
        """

    def ireduce(self, send: object, recv: object, op: Operation = ..., root: int = 0) -> Request: ...

    def allreduce(self, send: object, recv: object, op: Operation = ...) -> None:
        """The same result on every rank."""

    def iallreduce(self, send: object, recv: object, op: Operation = ...) -> Request: ...

    def scan(self, send: object, recv: object, op: Operation = ...) -> None:
        """Combines the ranks up to this one."""

    def iscan(self, send: object, recv: object, op: Operation = ...) -> Request: ...

    def exscan(self, send: object, recv: object, op: Operation = ...) -> None:
        """
        Combines the ranks before this one; rank 0's receive buffer stays as it is.
        """

    def iexscan(self, send: object, recv: object, op: Operation = ...) -> Request: ...

    def reduce_scatter(self, send: object, recv: object, op: Operation = ..., *, counts: Iterable[int] | None = None) -> None:
        """
        Part r of the result to rank r: of counts[r] elements, or all of one length.
        """

    def ireduce_scatter(self, send: object, recv: object, op: Operation = ..., *, counts: Iterable[int] | None = None) -> Request: ...

    def gather(self, send: object, recv: object, root: int = 0, *, counts: Iterable[int] | None = None, displs: Iterable[int] | None = None) -> None:
        """
        Everybody's buffer to the root, in the order of ranks; elsewhere recv may be None. counts, displs: elements of each rank, and where they go; where there are counts, every rank gives some.
        """

    def igather(self, send: object, recv: object, root: int = 0, *, counts: Iterable[int] | None = None, displs: Iterable[int] | None = None) -> Request: ...

    def scatter(self, send: object, recv: object, root: int = 0, *, counts: Iterable[int] | None = None, displs: Iterable[int] | None = None) -> None:
        """
        The parts of the root's buffer to the ranks; elsewhere send may be None. counts, displs: as for gather.
        """

    def iscatter(self, send: object, recv: object, root: int = 0, *, counts: Iterable[int] | None = None, displs: Iterable[int] | None = None) -> Request: ...

    def allgather(self, send: object, recv: object, *, counts: Iterable[int] | None = None, displs: Iterable[int] | None = None) -> None:
        """Gathered on every rank."""

    def iallgather(self, send: object, recv: object, *, counts: Iterable[int] | None = None, displs: Iterable[int] | None = None) -> Request: ...

    def alltoall(self, send: object, recv: object, *, send_counts: Iterable[int] | None = None, send_displs: Iterable[int] | None = None, recv_counts: Iterable[int] | None = None, recv_displs: Iterable[int] | None = None) -> None:
        """Part r of the send buffer to rank r."""

    def ialltoall(self, send: object, recv: object, *, send_counts: Iterable[int] | None = None, send_displs: Iterable[int] | None = None, recv_counts: Iterable[int] | None = None, recv_displs: Iterable[int] | None = None) -> Request: ...

    def prepare_collectives_on(self, stream: object | None) -> None:
        """
        Prepares barrier_on, bcast_on, reduce_on and allreduce_on, long ones by NCCL as well, so that all of them return at once; every rank calls it. Otherwise the first of them, and the first long one, wait for all ranks.
        """

    def barrier_on(self, stream: object | None) -> None:
        """
        Later work of the CUDA stream begins when every rank's stream has come here; returns at once.
        """

    def bcast_on(self, stream: object | None, buffer: object | None, root: int = 0) -> None:
        """
        The root's buffer to everybody's, when the streams come to it; returns at once.
        """

    def reduce_on(self, stream: object | None, send: object, recv: object | None, op: Operation = ..., root: int = 0) -> None:
        """
        As reduce, when the streams come to it, with an operation of the library's; returns at once.
        """

    def allreduce_on(self, stream: object | None, send: object, recv: object, op: Operation = ...) -> None:
        """The same result on every rank."""

    def bcast_object(self, object: object, root: int = 0) -> Any:
        """The root's object; what the others give is not looked at."""

    def gather_object(self, object: object, root: int = 0) -> list | None:
        """
        Everybody's objects on the root, in the order of ranks; None elsewhere.
        """

    def allgather_object(self, object: object) -> list:
        """Everybody's objects on every rank."""

    def scatter_object(self, objects: Iterable[Any] | None, root: int = 0) -> Any:
        """
        This rank's of the root's objects; what the others give is not looked at.
        """

    def alltoall_object(self, objects: Iterable[Any]) -> list:
        """
        One object for each rank; those that all ranks had for this one, in the order of ranks.
        """

    def reduce_object(self, object: object, op: Operation | Callable[[Any, Any], Any] = ..., root: int = 0) -> Any:
        """
        Everybody's objects combined on the root, from the left to the right in the order of ranks; None elsewhere. op: one of the library's, which does to objects what Python's operator of that name does, or a function of two objects.
        """

    def allreduce_object(self, object: object, op: Operation | Callable[[Any, Any], Any] = ...) -> Any:
        """The same on every rank, each of which combines for itself."""

    def scan_object(self, object: object, op: Operation | Callable[[Any, Any], Any] = ...) -> Any:
        """Of the ranks up to this one."""

    def exscan_object(self, object: object, op: Operation | Callable[[Any, Any], Any] = ...) -> Any:
        """Of the ranks before this one; None on rank 0."""

    def cart_create(self, dims: Sequence[int], periods: Sequence[bool] | None = None, reorder: bool = False) -> Cart | None:
        """
        A grid over the first ranks, the last dimension running fastest; None to the rest. periods: which dimensions close to a ring. Collective.
        """

    def heap(self, kind: str, nbytes: int, most: int = 0, device: int = -1) -> Heap:
        """
        A symmetric heap of nbytes of host, CUDA or OpenCL memory of each rank, which may grow to `most` (0: 64 GiB). Collective.
        """

    def window(self, memory: object | None) -> Window:
        """
        Registers what an array or tensor has, so that all ranks reach it; None: nothing of this rank's. Of CUDA memory that can be exported, or of host memory that is shared, as world.allocate gives it. The object is kept until close(). Collective.
        """

    def halo_grid(self, dims: Sequence[int], periods: Sequence[bool] | None = None, process_map: Sequence[int] | None = None) -> HaloGrid | None:
        """
        A grid of the first ranks, None to the rest; collective. dims: the grid's own, 0 for what is to be chosen. process_map: the grid's dimension for each of the data's. periods: in the data's order.
        """

    def halo_order(self, dims: Sequence[int], periods: Sequence[bool] | None, buffer: object) -> Comm:
        """
        The same ranks in an order in which those side by side in such a grid have the quickest links, as messages of all of the buffer show, whose contents are lost; collective.
        """

    def halo_lists(self, lists: Mapping[int, tuple[Sequence[int], Sequence[int]]], arrays: Iterable[object], *, packing: str = 'auto', way: str = 'messages') -> Halo:
        """
        An exchange of listed elements, or rows, of arrays: for each neighbour those it gets and those that come from it; collective.
        """

class Cart(Comm):
    """A communicator with a grid over its ranks."""

    @property
    def ndims(self) -> int: ...

    @property
    def dims(self) -> list[int]:
        """Extent of each dimension."""

    @property
    def periods(self) -> list[bool]:
        """Whether each dimension closes to a ring."""

    @property
    def coords(self) -> list[int]:
        """Where this rank is."""

    def cart_coords(self, rank: int) -> list[int]:
        """Where a rank is."""

    def cart_rank(self, coords: Sequence[int]) -> int:
        """Who is there; periodic dimensions are taken modulo their extent."""

    def cart_shift(self, dimension: int, displacement: int) -> tuple[int, int]:
        """Whom this rank receives from and sends to; PROC_NULL past an edge."""

    def cart_sub(self, remain: Sequence[bool]) -> Cart:
        """
        The grid of the ranks with this one's coordinates in the dimensions that do not remain, of which one must. Collective.
        """

    def __repr__(self) -> str: ...

def dims_create(ranks: int, dims: Sequence[int]) -> list[int]:
    """
    Balanced extents of a grid; entries that are not 0 are kept: dims_create(12, [0, 0]) gives [4, 3].
    """

class SymmetricArray:
    """
    Memory of a symmetric heap, of which every PE has a copy; this is the caller's. numpy.asarray() and cupy.asarray() give views of it, which are void once the heap or its world is closed. Of an OpenCL heap it is named whole, and `opencl` is what kernels take.
    """

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def typestr(self) -> str: ...

    @property
    def nbytes(self) -> int: ...

    @property
    def size(self) -> int:
        """Elements."""

    @property
    def address(self) -> int: ...

    @property
    def __array_interface__(self) -> dict[str, object]: ...

    @property
    def __cuda_array_interface__(self) -> dict[str, object]: ...

    @property
    def opencl(self) -> tuple[int, int, int]:
        """
        Of an OpenCL heap: the cl_mem, the offset in it, which kernels take, and a queue of the library's, as numbers.
        """

    def at(self, pe: int) -> SymmetricArray:
        """
        That PE's copy, for loads and stores: by the processor of a host heap, by kernels of a CUDA heap. put() and get() take the caller's own copy instead, and the PE.
        """

    def free(self) -> None:
        """Collective; never done when the last reference is dropped."""

    def __repr__(self) -> str: ...

class Heap:
    """
    A symmetric heap: of every PE, a rank of the communicator that made it, a part of one kind of memory, which all others reach without a call there. Ended by close(), which is collective, or with its world.
    """

    @property
    def pe(self) -> int: ...

    @property
    def pes(self) -> int: ...

    @property
    def kind(self) -> str: ...

    @property
    def closed(self) -> bool: ...

    @property
    def room(self) -> tuple[int, int]:
        """Free bytes, and the largest block."""

    def array(self, shape: int | Sequence[int], typestr: str = 'u1') -> SymmetricArray:
        """
        Zeros, at all PEs. Collective: all PEs give arrays of the same bytes. MemoryError where a PE has no room, at all.
        """

    def grow(self, nbytes: int) -> None:
        """To so many bytes, of which none move. Collective."""

    def view(self) -> bytes:
        """
        The bytes of an ist_team_view (isthmus/team.h), which kernels take by value as their argument.
        """

    def device_view(self, device: int | None = None) -> bytes:
        """
        The bytes of an ist_device_view, for kernels on that CUDA device (this rank's own unless one is given): of a heap in host memory, all of which is page-locked then, they change words by isthmus/device/host_words.cuh.
        """

    def close(self) -> None:
        """Collective; the views of its arrays are void then."""

    def __enter__(self) -> Heap: ...

    def __exit__(self, type: object, *rest: object) -> None: ...

    def __repr__(self) -> str: ...

    def put(self, dest: object, source: object, pe: int) -> None:
        """
        Writes source to that PE's copy of dest, a SymmetricArray or a view of one, as long as source. Either may have gaps, such as array[:, ::2]: then element by element in the order of its indices. Returns when source may be used again; seen there after quiet and a signal or barrier.
        """

    def get(self, dest: object, source: object, pe: int) -> None:
        """
        Brings that PE's copy of source, a SymmetricArray or a view of one, to dest. Either may have gaps.
        """

    def put_nbi(self, dest: object, source: object, pe: int) -> None:
        """
        As put, complete after quiet or barrier; until then source must stay as it is. With gaps it is put().
        """

    def get_nbi(self, dest: object, source: object, pe: int) -> None:
        """As get, complete after quiet or barrier. With gaps it is get()."""

    def put_signal(self, dest: object, source: object, signal: object, value: int, pe: int, add: bool = False) -> None:
        """
        A put, and then the word `signal` of 8 bytes at the same PE is set to value, or value is added: who sees it sees the bytes.
        """

    def put_signal_nbi(self, dest: object, source: object, signal: object, value: int, pe: int, add: bool = False) -> None:
        """
        As put_signal, without waiting: source must stay as it is until quiet or barrier, and the word changes once the bytes are there, at the latest then; several change theirs in any order. With gaps it is put_signal().
        """

    def fence(self) -> None:
        """
        What was put before is there for everybody before what is put afterwards.
        """

    def quiet(self) -> None:
        """What was put and got before is complete, and visible to every PE."""

    def barrier(self) -> None:
        """
        quiet, and then waits for all PEs. Ctrl-C ends the wait. By messages: C's ist_heap_barrier does not meet it.
        """

    def test(self, word: object, compare: str, value: int) -> bool:
        """
        Whether the caller's own word, a view of one integer of 4 or 8 bytes, compares so: ==, !=, >, >=, <, <=.
        """

    def wait_until(self, word: object, compare: str, value: int) -> None:
        """
        Until it does. Messages move on meanwhile, Ctrl-C ends the wait, and a PE that dies raises PeerDeadError.
        """

    def atomic(self, operation: str, word: object, operand: int = 0, *, pe: int) -> int:
        """
        fetch, set, add, inc, swap, and, or, xor on that PE's copy of the word; gives what was there. Of a CUDA heap by a kernel on this rank's device.
        """

    def compare_swap(self, word: object, expected: int, wanted: int, pe: int) -> int:
        """Writes wanted if the word is expected; gives what was there."""

class Window:
    """
    Memory that the ranks of a communicator already have, each its own, which all others reach by offset without a call there. Ended by close(), which is collective, or with its world.
    """

    @property
    def pe(self) -> int: ...

    @property
    def pes(self) -> int: ...

    @property
    def closed(self) -> bool: ...

    @property
    def nbytes(self) -> tuple[int, ...]:
        """That each PE has registered."""

    def peer_ptr(self, offset: int, pe: int) -> int:
        """
        The address in this process of that byte of that PE's: for kernels and copies of CUDA memory.
        """

    def view(self) -> bytes:
        """
        The bytes of an ist_window_view (isthmus/team.h), which kernels take by value as their argument.
        """

    def close(self) -> None:
        """Collective; the memory may be freed afterwards."""

    def __enter__(self) -> Window: ...

    def __exit__(self, type: object, *rest: object) -> None: ...

    def __repr__(self) -> str: ...

    def put(self, offset: int, source: object, pe: int) -> None:
        """
        Writes source to that PE's memory from byte `offset` on. Returns when source may be used again; seen there after quiet and a barrier of the communicator.
        """

    def get(self, dest: object, offset: int, pe: int) -> None:
        """Brings as many bytes as dest has from there."""

    def put_nbi(self, offset: int, source: object, pe: int) -> None:
        """As put, complete after quiet; until then source must stay as it is."""

    def get_nbi(self, dest: object, offset: int, pe: int) -> None:
        """As get, complete after quiet."""

    def put_signal(self, offset: int, source: object, signal: int, value: int, pe: int, add: bool = False) -> None:
        """
        A put, and then the word of 8 bytes at offset `signal` of the same PE is set to value, or value is added: who sees it sees the bytes.
        """

    def quiet(self) -> None:
        """What was put and got before is complete, and visible to every PE."""

    def test(self, offset: int, compare: str, value: int, typestr: str = 'u8') -> bool:
        """
        Whether this rank's own word there, an integer of 4 or 8 bytes, compares so: ==, !=, >, >=, <, <=.
        """

    def wait_until(self, offset: int, compare: str, value: int, typestr: str = 'u8') -> None:
        """
        Until it does. Messages move on meanwhile, Ctrl-C ends the wait, and a PE that dies raises PeerDeadError.
        """

    def atomic(self, operation: str, offset: int, operand: int = 0, *, pe: int, typestr: str = 'u8') -> int:
        """
        fetch, set, add, inc, swap, and, or, xor on that PE's word; gives what was there. Of CUDA memory by a kernel on this rank's device.
        """

    def compare_swap(self, offset: int, expected: int, wanted: int, pe: int, typestr: str = 'u8') -> int:
        """Writes wanted if the word is expected; gives what was there."""

class HaloGrid:
    """
    A grid of ranks that data is cut over, told of in the order of the data's dimensions.
    """

    @property
    def ndims(self) -> int: ...

    @property
    def dims(self) -> list[int]:
        """Ranks in each dimension."""

    @property
    def periods(self) -> list[bool]: ...

    @property
    def coords(self) -> list[int]:
        """Where this rank is."""

    def neighbour(self, direction: Sequence[int]) -> int:
        """
        The rank that is a step of -1, 0 or 1 in each dimension away; PROC_NULL past an edge.
        """

    def halo(self, fields: Iterable[HaloField], *, reach: int = 0, packing: str = 'auto', way: str = 'messages') -> Halo:
        """
        An exchange of these fields, all of which travel together; collective. reach: in how many dimensions at once a neighbour may lie, 0 for all. packing: 'auto', 'calls', 'layouts', 'loops'. way: 'messages', 'one-sided'.
        """

    def sides(self, field: HaloField, *, reach: int = 0) -> bytes:
        """
        What kernels take to exchange the halos of a symmetric field of this shape by themselves, an ist_halo_sides, as bytes: isthmus/device/halo.cuh. reach as of halo().
        """

    def all_sides(self, field: HaloField, *, reach: int = 0) -> bytes:
        """The same of more than 26 neighbours, an ist_halo_all_sides."""

    def __repr__(self) -> str: ...

class HaloField:
    """
    An array with its halos, of any kind of memory. halo: (minus, plus), or (minus, plus, begin, end), of each dimension of the grid; begin and end are the first and last index of its own. A number is the width on both sides of all dimensions of the array. Order in memory is the array's; dimensions behind the grid's belong to the cell. Memory that tells no shape needs one.
    """

    def __init__(self, array: object, halo: int | Sequence[Sequence[int]], *, shape: Sequence[int] | None = None, itemsize: int | None = None, layout_map: Sequence[int] | None = None) -> None: ...

    @property
    def array(self) -> object: ...

    @property
    def ranges(self) -> list[list[int]]:
        """minus, plus, begin, end, total_length of each dimension."""

    @property
    def layout_map(self) -> list[int]:
        """Place of each dimension by decreasing stride."""

class Halo:
    """
    An exchange of fields between neighbours: pack, exchange (or start_exchange and wait), unpack.
    """

    def set_fields(self, fields: Iterable[HaloField]) -> None:
        """
        Other fields from the next pack on, on all ranks alike; two that take turns cost next to nothing.
        """

    def pack(self) -> None:
        """
        Brings together what neighbours get. The stream of device memory is the one that is current now.
        """

    def exchange(self) -> None:
        """Both halves."""

    def start_exchange(self) -> None:
        """The first half; wait() is the second one."""

    def wait(self) -> None:
        """
        Until it is over. A signal (Ctrl-C) ends the wait, the exchange goes on, and wait() is next again.
        """

    def test(self) -> bool:
        """Instead of wait(): True where it is over, and unpack() is next."""

    def unpack(self) -> None:
        """Writes what came into the halos."""

    def update(self) -> None:
        """All three steps."""

    def exchange_on(self, stream: object | None) -> None:
        """
        All three steps when the CUDA stream comes to them; returns at once. Arrays of CUDA memory alone, exchanged by messages; keep them until then. Can be captured into a graph once it is prepared.
        """

    def prepare_on(self, stream: object | None) -> None:
        """
        Prepares exchange_on for the fields that are set, with all neighbours, which call it, too; needed before a capture alone.
        """

    def free(self) -> None:
        """
        Collective where the exchange is one-sided; others are freed when they are dropped, too.
        """

    @property
    def text(self) -> str:
        """Neighbours, bytes, and how it is packed."""

class Traffic:
    """Messages and bytes that World.traffic counted."""

    @property
    def messages_sent(self) -> int: ...

    @property
    def bytes_sent(self) -> int: ...

    @property
    def messages_received(self) -> int: ...

    @property
    def bytes_received(self) -> int: ...

    def __repr__(self) -> str: ...

class World:
    """
    All processes of the job: those of `isthmus run`, or of the variables that name one, or this one alone.
    """

    def __init__(self, **settings: str | float) -> None:
        """
        Settings of this world's own, above those of the environment: World(worker=True, eager_limit="32KiB"). `isthmus info --settings` lists the names.
        """

    @property
    def comm(self) -> Comm:
        """The communicator of all ranks."""

    @property
    def comm_self(self) -> Comm:
        """The communicator of this rank alone."""

    @staticmethod
    def create_with(rank: int, size: int, all_gather: Callable[[bytes], Iterable[bytes]], **settings: str | float) -> World:
        """
        A world of processes that something else has started and connects: all_gather gives the bytes of all ranks, as mpi4py's comm.allgather does. Collective.
        """

    @property
    def rank(self) -> int: ...

    @property
    def size(self) -> int: ...

    @property
    def closed(self) -> bool: ...

    def close(self) -> None:
        """
        Leaves the world. Also done when the last object of it is dropped, and at the interpreter's end.
        """

    def devices(self, kind: str) -> int:
        """Usable devices of a kind: host, cuda, opencl."""

    def allocate(self, kind: str, nbytes: int, device: int = -1) -> Memory:
        """
        Memory of a kind, on this rank's own device of it unless another is named.
        """

    def register(self, memory: object) -> Registration:
        """
        Page-locks host memory, such as a NumPy array, for the devices of this process: messages between it and a device then take one copy, made by the device. Takes time for each page.
        """

    def copy(self, to: object | None, source: object | None) -> None:
        """
        Copies between any two buffers of this process; returns when it is done.
        """

    def traffic(self, peer: int | None = None, carrier: str | None = None) -> Traffic:
        """
        What this rank has sent to and received from a rank of comm, or all, by one carrier, or all: slot, cell, ring, direct, nccl, device, single copy, block, mailbox.
        """

    def __enter__(self) -> World: ...

    def __exit__(self, *args: object) -> None: ...

    def __repr__(self) -> str: ...

def version() -> str:
    """Version of the library."""

def code_name(code: int) -> str:
    """'IST_ERR_TRUNCATE' and so on; 'unknown code' for anything else."""

def close_all() -> None:
    """Leaves every world that is still open."""
