"""CUDA memory by both protocols, on a GPU or on the driver without one: bytes, and the producer's stream."""
import numpy as np
import pytest

import isthmus
from devices import DeviceArray, Driver, Exporter, InterfaceArray


@pytest.fixture(scope="module")
def driver(world):
    if world.devices("cuda") == 0:
        pytest.skip("not covered here: this machine has no CUDA device")
    return Driver()


def test_every_byte_arrives_on_the_device(driver, comm, ring, make_noise, size):
    sent, expected = make_noise(size, comm.rank, ring[1])
    out, into = InterfaceArray(driver, sent), InterfaceArray(driver, np.bitwise_not(expected))
    status = comm.sendrecv(out, ring[0], into, ring[1])
    assert status.bytes == size and np.array_equal(into.get(), expected)


@pytest.mark.parametrize("size", [1, 4097, (1 << 20) + 1])
def test_between_host_and_device(driver, comm, ring, make_noise, size):
    sent, expected = make_noise(size, comm.rank, ring[1])
    into, back = InterfaceArray(driver, np.bitwise_not(expected)), np.bitwise_not(expected)
    comm.sendrecv(sent, ring[0], into, ring[1])
    assert np.array_equal(into.get(), expected)
    comm.sendrecv(InterfaceArray(driver, sent), ring[0], back, ring[1])
    assert np.array_equal(back, expected)


def test_registered_host_memory_and_a_device(driver, world, comm, ring, make_noise):
    sent, expected = make_noise(300001, comm.rank, ring[1])
    back = np.bitwise_not(expected)
    with world.register(sent), world.register(back):
        for _ in range(5):
            into = InterfaceArray(driver, np.bitwise_not(expected))
            comm.sendrecv(sent, ring[0], into, ring[1])
            assert np.array_equal(into.get(), expected)
            back[:] = np.bitwise_not(expected)
            comm.sendrecv(InterfaceArray(driver, sent), ring[0], back, ring[1])
            assert np.array_equal(back, expected)
    with pytest.raises(ValueError, match="needs none"):
        world.register(into)


@pytest.mark.parametrize("size", [1, 4096, (1 << 20) + 1])
def test_ready_memory_arrives_whole_and_its_stream_is_not_waited_for(driver, comm, ring, make_noise, size):
    sent, expected = make_noise(size, comm.rank, ring[1])
    out, into = InterfaceArray(driver, sent), InterfaceArray(driver, np.bitwise_not(expected))
    assert isinstance(isthmus.ready(out), isthmus.Buffer)
    comm.sendrecv(isthmus.ready(out), ring[0], isthmus.ready(into), ring[1])
    assert np.array_equal(into.get(), expected)
    back = np.bitwise_not(expected)
    comm.sendrecv(isthmus.ready(sent), ring[0], isthmus.ready(back), ring[1])  # of host memory it changes nothing
    assert np.array_equal(back, expected)
    with pytest.raises(BufferError, match="read-only"):
        comm.recv(isthmus.ready(b"abc"), ring[1])


@pytest.mark.parametrize("size", [1, 4096, (1 << 20) + 1])
def test_pending_work_of_the_stream_is_waited_for(driver, comm, ring, make_noise, size):
    sent, expected = make_noise(size, comm.rank, ring[1])
    out = InterfaceArray(driver, np.bitwise_not(sent))
    received = np.bitwise_not(expected)
    out.fill_late(sent)  # the bytes come into being 0.1 s from now
    comm.sendrecv(out, ring[0], received, ring[1])
    assert np.array_equal(received, expected)


@pytest.mark.parametrize("size", [1, 4096, (1 << 20) + 1])
def test_a_receive_writes_after_the_work_of_the_stream(driver, comm, ring, make_noise, size):
    sent, expected = make_noise(size, comm.rank, ring[1])
    into = InterfaceArray(driver, expected)
    into.fill_late(np.bitwise_not(expected))  # would overwrite what was received too early
    comm.sendrecv(sent, ring[0], into, ring[1])
    driver.wait(into.stream)
    assert np.array_equal(into.get(), expected)


def test_what_the_interface_may_name_as_stream(driver, comm, ring):
    data = np.arange(100.0)
    for stream in (None, 1, 2):
        out = InterfaceArray(driver, data + comm.rank)
        out.named_stream = stream
        into = np.zeros(100)
        comm.sendrecv(out, ring[0], into, ring[1])
        assert np.array_equal(into, data + ring[1])
    out.named_stream = 0
    with pytest.raises(ValueError, match="stream 0"):
        comm.isend(out, ring[0])


def test_read_only_and_gaps_on_the_device(driver, comm, ring):
    array = InterfaceArray(driver, np.zeros((4, 4)))
    array.read_only = True
    with pytest.raises(BufferError, match="read-only"):
        comm.irecv(array, ring[1])
    array.strides = (64, 8)
    with pytest.raises(BufferError, match="contiguous"):
        comm.issend(array, ring[0])
    array.strides = (32, 8)
    into = np.ones((4, 4))
    comm.sendrecv(array, ring[0], into, ring[1])
    assert not into.any()


def test_views_with_gaps_on_the_device(driver, comm, ring):
    sent = np.arange(4000.0).reshape(40, 100) + 10000 * comm.rank
    out, into = InterfaceArray(driver, sent), InterfaceArray(driver, np.full((40, 100), -1.0))
    # As CuPy shows array[::2, ::10]: every second row, every tenth number.
    for view in (out, into):
        view.shape, view.strides = (20, 10), (1600, 80)
    status = comm.sendrecv(out, ring[0], into, ring[1])
    assert status.bytes == 20 * 10 * 8
    into.shape, into.strides = (40, 100), None
    expected = np.full((40, 100), -1.0)
    expected[::2, ::10] = (np.arange(4000.0).reshape(40, 100) + 10000 * ring[1])[::2, ::10]
    back = np.zeros((40, 100))
    comm.sendrecv(into, comm.rank, back, comm.rank)
    assert np.array_equal(back, expected)


def wait_for_own(driver, own, asked):
    """What a producer does: makes the consumer's stream wait for its own."""
    assert asked == 1
    driver.wait(own)


@pytest.mark.parametrize("versioned", [True, False])
@pytest.mark.parametrize("device", [2, 13])
def test_dlpack_tells_the_producer_our_stream(driver, comm, ring, make_noise, versioned, device):
    sent, expected = make_noise(5000, comm.rank, ring[1])
    out = DeviceArray(driver, np.bitwise_not(sent))
    into = DeviceArray(driver, np.bitwise_not(expected))
    tensors = [Exporter(each.address, each.shape, each.dtype, device, versioned=versioned, owner=each,
                        on_stream=lambda asked, own=each.stream: wait_for_own(driver, own, asked)) for each in (out, into)]
    out.fill_late(sent)
    comm.sendrecv(tensors[0], ring[0], tensors[1], ring[1])
    assert np.array_equal(into.get(), expected)
    assert [options.get("stream") for options in tensors[0].asked] == [1] * (1 if versioned else 2)


def test_an_old_interface_gives_way_to_dlpack(driver, comm, ring):
    class Both(InterfaceArray):
        version = 2
        asked = ()

        def __dlpack_device__(self):
            return 2, 0

        def __dlpack__(self, **options):
            self.asked = options
            self.exporter = Exporter(self.address, self.shape, self.dtype, 2, owner=None)
            return self.exporter.__dlpack__(**options)

    out = Both(driver, np.arange(9.0) + comm.rank)
    into = np.zeros(9)
    comm.sendrecv(out, ring[0], into, ring[1])
    assert np.array_equal(into, np.arange(9.0) + ring[1]) and out.asked["stream"] == 1


def test_the_library_never_waits_for_the_whole_device(driver, comm, ring):
    if not driver.fake:
        pytest.skip("not covered here: only the driver without a GPU counts its calls")
    calls = driver.library.fake_cuda_calls
    calls.restype = __import__("ctypes").c_uint64
    before = calls(b"cuCtxSynchronize")
    out = InterfaceArray(driver, np.zeros(100000))
    into = InterfaceArray(driver, np.ones(100000))
    comm.sendrecv(out, ring[0], into, ring[1])
    assert calls(b"cuCtxSynchronize") == before


def test_messages_that_streams_carry(driver, comm, ring, make_noise):
    sent, expected = make_noise(30001, comm.rank, ring[1])
    out, into = InterfaceArray(driver, sent), InterfaceArray(driver, np.bitwise_not(expected))
    stream = int(out.__cuda_array_interface__["stream"])
    comm.prepare_on(stream, ring[0], 41, receives=False)
    comm.prepare_on(stream, ring[1], 41, sends=False)
    comm.send_on(stream, out, ring[0], 41)
    comm.recv_on(stream, into, ring[1], 41)
    driver.wait(stream)
    assert np.array_equal(into.get(), expected)
    again = InterfaceArray(driver, np.bitwise_not(expected))
    comm.sendrecv_on(stream, out, ring[0], again, ring[1], send_tag=41, recv_tag=41, send_count=100)
    driver.wait(stream)
    assert np.array_equal(again.get()[:100], expected[:100])
    assert np.array_equal(again.get()[100:], np.bitwise_not(expected)[100:])
    # Views with gaps, into one and into a row.
    gaps, row = InterfaceArray(driver, np.full((100, 9), 7, "i4")), InterfaceArray(driver, np.zeros(300, "i4"))
    mine = np.arange(900, dtype="i4").reshape(100, 9) + 1000 * comm.rank
    theirs = (mine - 1000 * comm.rank + 1000 * ring[1])[:, 1::3]
    whole = InterfaceArray(driver, mine)
    gaps.shape, gaps.strides = (100, 3), (36, 8)
    whole.shape, whole.strides, whole.address = (100, 3), (36, 12), whole.address + 4
    comm.send_on(stream, whole, ring[0], 43)
    comm.recv_on(stream, gaps, ring[1], 43)
    comm.sendrecv_on(stream, whole, ring[0], row, ring[1], send_tag=43, recv_tag=43)
    driver.wait(stream)
    gaps.shape, gaps.strides, whole.address = (100, 9), None, whole.address - 4
    wanted = np.full((100, 9), 7, "i4")
    wanted[:, :6:2] = theirs
    assert np.array_equal(gaps.get(), wanted) and np.array_equal(row.get(), theirs.ravel())
    with pytest.raises(isthmus.Error, match="source is -1"):
        comm.recv_on(stream, into, isthmus.ANY_SOURCE)
    with pytest.raises(TypeError, match="a CUDA stream is wanted"):
        comm.send_on("stream", out, ring[0])
    with pytest.raises(isthmus.Error, match="not page-locked"):
        comm.send_on(stream, sent, ring[0], 42)


def test_what_streams_of_all_ranks_do_together(driver, comm):
    mine = np.arange(1001, dtype=np.float64) + comm.rank
    total = sum(np.arange(1001, dtype=np.float64) + rank for rank in range(comm.size))
    send, recv = InterfaceArray(driver, mine), InterfaceArray(driver, -mine)
    stream = int(send.__cuda_array_interface__["stream"])
    comm.prepare_collectives_on(stream)
    comm.allreduce_on(stream, send, recv)
    driver.wait(stream)
    assert np.array_equal(recv.get(), total)
    last = comm.size - 1
    comm.reduce_on(stream, send, recv if comm.rank == last else None, isthmus.MAX, last)
    comm.barrier_on(stream)
    driver.wait(stream)
    assert np.array_equal(recv.get(), np.arange(1001) + last if comm.rank == last else total)
    comm.allreduce_on(stream, isthmus.IN_PLACE, send, isthmus.MIN)
    comm.bcast_on(stream, recv, last)
    driver.wait(stream)
    assert np.array_equal(send.get(), np.arange(1001)) and np.array_equal(recv.get(), np.arange(1001) + last)
    with pytest.raises(ValueError, match="differ"):
        comm.allreduce_on(stream, send, InterfaceArray(driver, np.zeros(3)))
    with pytest.raises(ValueError, match="on the processor"):
        comm.allreduce_on(stream, send, recv, isthmus.Operation(lambda a, b: None))
