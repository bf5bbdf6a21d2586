"""CuPy, PyTorch and Numba on a real GPU: streams of their own with work still pending, persistent requests, collective calls.

`late(array, data)` enqueues a kernel of 0.1 s and then the new contents: whoever reads or writes too early gets other bytes.
"""
import time

import numpy as np
import pytest

import isthmus
from frames import FRAMES, Missing

SIZES = [1, 4096, 70001, (1 << 20) + 1, 8 << 20]
MADE = {}


def started(frame):
    """One that has copied once: compiling its kernel takes longer than busy() does."""
    with frame.current():
        frame.assign(frame.new(np.zeros(3, "u1")), frame.new(np.ones(3, "u1")))
        frame.finish()
    return frame


@pytest.fixture(params=FRAMES)
def frame(request, world, comm):
    if world.devices("cuda") == 0:
        pytest.skip("not covered here: this machine has no CUDA device")
    if request.param not in MADE:
        try:
            MADE[request.param] = started(FRAMES[request.param](comm.local_rank))
        except Missing as missing:
            MADE[request.param] = missing
    found = MADE[request.param]
    usable = all(comm.allgather_object(not isinstance(found, Missing)))
    if not usable:
        pytest.skip(f"not covered here: {found if isinstance(found, Missing) else 'another rank lacks it'}")
    found.use()  # the frame before it may have made another device the current one
    with found.current():
        yield found


def late(frame, array, data):
    source = frame.new(data)
    # A kernel of its own for arrays of one element, whose loading waits until the device has nothing else to do.
    frame.assign(frame.new(data), source)
    frame.finish()
    began = time.monotonic()
    frame.busy()
    launched = time.monotonic()
    assert frame.pending(), f"0.1 s of work, of which nothing is pending {1e3 * (launched - began):.2f} ms after it was asked for"
    frame.assign(array, source)
    assert frame.pending(), f"0.1 s of work is over {1e3 * (time.monotonic() - launched):.2f} ms after its start"


def wrong(data):
    return np.bitwise_not(data)


@pytest.mark.parametrize("size", SIZES)
def test_a_send_waits_for_the_work_before_it(frame, comm, ring, make_noise, size):
    sent, expected = make_noise(size, comm.rank, ring[1])
    out, into = frame.new(wrong(sent)), frame.new(wrong(expected))
    late(frame, out, sent)
    status = comm.sendrecv(out, ring[0], into, ring[1], send_tag=1, recv_tag=1)
    assert np.array_equal(frame.get(into), expected) and (status.source, status.bytes) == (ring[1], size)


@pytest.mark.parametrize("size", SIZES)
def test_a_receive_writes_after_the_work_before_it(frame, comm, ring, make_noise, size):
    sent, expected = make_noise(size, comm.rank, ring[1])
    out, into = frame.new(sent), frame.new(expected)
    late(frame, into, wrong(expected))  # would overwrite what was received too early
    comm.sendrecv(out, ring[0], into, ring[1], send_tag=2, recv_tag=2)
    frame.finish()
    assert np.array_equal(frame.get(into), expected)


@pytest.mark.parametrize("size", SIZES)
def test_between_device_and_host(frame, comm, ring, make_noise, size):
    sent, expected = make_noise(size, comm.rank, ring[1])
    out, into, host = frame.new(wrong(sent)), frame.new(wrong(expected)), wrong(expected)
    late(frame, out, sent)
    comm.sendrecv(out, ring[0], host, ring[1])
    assert np.array_equal(host, expected)
    comm.sendrecv(sent, ring[0], into, ring[1])
    assert np.array_equal(frame.get(into), expected)


@pytest.mark.parametrize("size", [4096, (1 << 20) + 1])
def test_persistent_requests(frame, comm, ring, make_noise, size):
    sent, expected = make_noise(size, comm.rank, ring[1])
    out, into = frame.new(wrong(sent)), frame.new(wrong(expected))
    pair = [comm.send_init(out, ring[0], 3), comm.recv_init(into, ring[1], 3)]
    for _ in range(3):
        sent, expected = make_noise(size, comm.rank, ring[1])
        frame.assign(into, frame.new(wrong(expected)))
        late(frame, out, sent)
        isthmus.startall(pair)
        isthmus.waitall(pair)
        assert np.array_equal(frame.get(into), expected)


@pytest.mark.parametrize("size", [4096, (1 << 20) + 1])
def test_matched_messages_and_an_exchange_in_place(frame, comm, ring, make_noise, size):
    sent, expected = make_noise(size, comm.rank, ring[1])
    out, into = frame.new(wrong(sent)), frame.new(wrong(expected))
    late(frame, out, sent)
    request = comm.isend(out, ring[0], 4)
    message = comm.mprobe(ring[1], 4)
    assert message.status.bytes == size
    message.recv(into)
    request.wait()
    assert np.array_equal(frame.get(into), expected)
    late(frame, out, sent)
    comm.sendrecv_replace(out, ring[0], ring[1])
    assert np.array_equal(frame.get(out), expected)


@pytest.mark.parametrize("count", [1, 5000, 300001])
@pytest.mark.parametrize("op", [isthmus.SUM, isthmus.MAX, isthmus.Operation(np.maximum)], ids=["sum", "max", "function"])
def test_allreduce(frame, comm, count, op):
    def numbers(rank):
        return np.random.default_rng([count, rank]).integers(-1000, 1000, count).astype("f4")

    everybody = [numbers(rank) for rank in range(comm.size)]
    expected = np.add.reduce(everybody) if op is isthmus.SUM else np.maximum.reduce(everybody)
    mine, total = frame.new(np.full(count, np.nan, "f4")), frame.new(np.full(count, np.nan, "f4"))
    late(frame, mine, numbers(comm.rank))
    comm.allreduce(mine, total, op)
    assert np.array_equal(frame.get(total), expected)
    # Every second rank's result on the host.
    late(frame, mine, numbers(comm.rank))
    host = np.full(count, np.nan, "f4")
    comm.allreduce(mine, host if comm.rank % 2 else total, op)
    assert np.array_equal(host if comm.rank % 2 else frame.get(total), expected)
    comm.bcast(total, 0)
    assert np.array_equal(frame.get(total), expected)


def test_work_of_other_streams_delays_nothing(frame, comm, ring, make_noise):
    """A library that synchronised the device would stay until the other stream's kernels have ended."""
    size = (1 << 20) + 1
    sent, expected = make_noise(size, comm.rank, ring[1])
    out, into = frame.new(sent), frame.new(wrong(expected))
    comm.sendrecv(out, ring[0], into, ring[1])  # what is made at first use is made now
    total = frame.new(np.zeros(70001, "f4"))
    comm.allreduce(isthmus.IN_PLACE, total)
    frame.assign(into, frame.new(wrong(expected)))
    comm.barrier()
    frame.busy(times=40, other=True)
    comm.sendrecv(out, ring[0], into, ring[1])
    pair = [comm.send_init(out, ring[0], 5), comm.recv_init(into, ring[1], 5)]
    isthmus.startall(pair)
    isthmus.waitall(pair)
    comm.allreduce(isthmus.IN_PLACE, total)
    assert frame.pending(other=True)
    frame.finish(other=True)
    assert np.array_equal(frame.get(into), expected) and not frame.get(total).any()


def test_gaps_and_read_only(frame, comm, ring):
    array = frame.new(np.zeros((8, 8), "f4"))
    if not hasattr(array, "__getitem__"):
        pytest.skip("not covered here: arrays of the bare driver have no views")
    with pytest.raises(BufferError, match="contiguous"):
        comm.issend(array[:, :3], ring[0])
    sent, into = frame.new(np.arange(64, dtype="f4").reshape(8, 8) + 100 * comm.rank), np.zeros((8, 3), "f4")
    comm.sendrecv(sent[:, :3], ring[0], into, ring[1])
    assert np.array_equal(into, (np.arange(64, dtype="f4").reshape(8, 8) + 100 * ring[1])[:, :3])


# ---- what only one library has ----

@pytest.fixture
def torch(frame):
    if frame is not MADE.get("torch"):
        pytest.skip("for PyTorch alone")
    return frame


class OnlyDlpack:
    """A tensor of which nothing but DLPack is known: the producer is told the library's stream, and orders its work before it."""

    def __init__(self, tensor):
        self.tensor, self.asked = tensor, []

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()

    def __dlpack__(self, **options):
        self.asked.append(options)
        return self.tensor.__dlpack__(**options)


@pytest.mark.parametrize("size", [4096, (1 << 20) + 1])
def test_dlpack_of_a_real_producer(torch, comm, ring, make_noise, size):
    sent, expected = make_noise(size, comm.rank, ring[1])
    out, into = OnlyDlpack(torch.new(wrong(sent))), OnlyDlpack(torch.new(wrong(expected)))
    late(torch, out.tensor, sent)
    comm.sendrecv(out, ring[0], into, ring[1])
    assert np.array_equal(torch.get(into.tensor), expected) and out.asked[-1]["stream"] == 1


def test_torch_on_host_and_device_together(torch, comm, ring):
    here, there = torch.torch.arange(5000) + comm.rank, torch.torch.full((5000,), -1, device="cuda")
    comm.sendrecv(here, ring[0], there, ring[1])
    assert np.array_equal(torch.get(there), np.arange(5000) + ring[1])
    back = torch.torch.full((5000,), -1)
    comm.sendrecv(there, ring[1], back, ring[0])
    assert np.array_equal(back.numpy(), np.arange(5000) + comm.rank)
    half = torch.torch.full((5000,), 1.5, dtype=torch.torch.bfloat16, device="cuda")
    comm.allreduce(isthmus.IN_PLACE, half)
    assert bool((half == 1.5 * comm.size).all())


def test_torch_in_the_stream_that_is_current_at_the_start(torch, comm, ring):
    """A persistent request follows the program from stream to stream."""
    out, into = torch.new(np.zeros(70001, "f4")), torch.new(np.full(70001, -1, "f4"))
    pair = [comm.send_init(out, ring[0], 6), comm.recv_init(into, ring[1], 6)]
    for turn in range(3):
        with torch.torch.cuda.stream(torch.torch.cuda.Stream()):
            torch.torch.cuda._sleep(150_000_000)
            out.fill_(comm.rank + 10 * turn)
            isthmus.startall(pair)
            isthmus.waitall(pair)
        assert np.array_equal(torch.get(into), np.full(70001, ring[1] + 10 * turn, "f4"))
