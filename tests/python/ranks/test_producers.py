"""What array libraries show of themselves, by stand-ins that isthmus cannot tell from them, with work still pending."""
import sys

import numpy as np
import pytest

import isthmus
from devices import Driver, Exporter, InterfaceArray, OldInterfaceArray, OpenclArray, TorchLike


@pytest.fixture(scope="module")
def driver(world):
    if world.devices("cuda") == 0:
        pytest.skip("not covered here: this machine has no CUDA device")
    return Driver()


def late_in(driver, array, data, stream):
    """The bytes come into being 0.1 s from now, in a stream that may not be that of the array."""
    array.staged = np.ascontiguousarray(data)
    driver.late(stream, 100000)
    driver.copy(array.address, array.staged.ctypes.data, data.nbytes, stream)


@pytest.mark.parametrize("size", [1, 4097, (1 << 20) + 1])
@pytest.mark.parametrize("named, handle", [(1, 1), (2, 2), ("own", None)], ids=["legacy", "per-thread", "own"])
def test_the_named_stream_is_waited_for(driver, comm, ring, make_noise, named, handle, size):
    sent, expected = make_noise(size, comm.rank, ring[1])
    out, received = InterfaceArray(driver, np.bitwise_not(sent)), np.bitwise_not(expected)
    out.named_stream = named
    late_in(driver, out, sent, handle or out.stream)
    comm.sendrecv(out, ring[0], received, ring[1])
    assert np.array_equal(received, expected)


@pytest.mark.parametrize("size", [1, 4097, (1 << 20) + 1])
def test_an_interface_without_stream_means_the_default_one(driver, comm, ring, make_noise, size):
    sent, expected = make_noise(size, comm.rank, ring[1])
    out, received = OldInterfaceArray(driver, np.bitwise_not(sent)), np.bitwise_not(expected)
    late_in(driver, out, sent, 0)
    comm.sendrecv(out, ring[0], received, ring[1])
    assert np.array_equal(received, expected)


@pytest.mark.parametrize("size", [1, 4097, (1 << 20) + 1])
@pytest.mark.parametrize("named", [None, "absent"])
def test_where_no_stream_is_named_nothing_is_waited_for(driver, comm, ring, make_noise, named, size):
    sent, expected = make_noise(size, comm.rank, ring[1])
    out, into = InterfaceArray(driver, sent), InterfaceArray(driver, np.bitwise_not(expected))
    out.named_stream = into.named_stream = named
    comm.sendrecv(out, ring[0], into, ring[1])  # opens memory and closes what was freed, for which the driver waits until all is idle
    into.fill(np.bitwise_not(expected))
    driver.wait(into.stream)
    comm.barrier()
    opens = driver.held(driver.stream(blocking=True))  # the default stream waits for it
    comm.sendrecv(out, ring[0], into, ring[1])
    opens()
    assert np.array_equal(into.get(), expected)
    comm.barrier()


def without_stream(driver, data):
    made = InterfaceArray(driver, data)
    made.named_stream = None
    return made


def views_and_collective_calls(comm, ring, arrays, opens):
    mine, theirs = (np.arange(6000, dtype="i4").reshape(100, 60) + 10000 * rank for rank in (comm.rank, ring[1]))
    out, into, total, everybody = arrays
    out.shape = into.shape = (100, 20)
    out.strides = into.strides = (240, 12)
    comm.sendrecv(out, ring[0], into, ring[1])
    out.shape = into.shape = (100, 60)
    out.strides = into.strides = None
    comm.allreduce(out, total)
    comm.bcast(everybody)
    opens()
    wanted = np.full_like(mine, -1)
    wanted[:, ::3] = theirs[:, ::3]
    assert np.array_equal(into.get(), wanted)
    assert np.array_equal(total.get(), (mine - 10000 * comm.rank) * comm.size + 10000 * sum(range(comm.size)))
    assert np.array_equal(everybody.get(), mine - 10000 * comm.rank)


def test_where_no_stream_is_named_views_and_collective_calls_wait_for_nothing(driver, comm, ring):
    mine = np.arange(6000, dtype="i4").reshape(100, 60) + 10000 * comm.rank
    before = [mine, np.full_like(mine, -1), np.full_like(mine, -1), mine * (comm.rank == 0)]
    arrays = [without_stream(driver, data) for data in before]
    # Kernels are loaded and memory is opened before, for which the driver waits until all streams are idle.
    views_and_collective_calls(comm, ring, arrays, lambda: None)
    for array, data in zip(arrays, before):
        array.fill(data)
        driver.wait(array.stream)
    comm.barrier()
    views_and_collective_calls(comm, ring, arrays, driver.held(driver.stream(blocking=True)))
    comm.barrier()


def test_persistent_requests_ask_again_whether_a_stream_is_named(driver, comm, ring):
    out, into = InterfaceArray(driver, np.zeros(5000)), np.empty(5000)
    out.named_stream = None
    request = comm.send_init(out, ring[0], 91)
    for turn, named in enumerate([None, 1, None, 1]):
        into[:] = -1
        out.named_stream = named
        late_in(driver, out, np.full(5000, 10.0 * turn + comm.rank), 0)
        if named is None:
            driver.wait(0)
        request.start()
        comm.recv(into, ring[1], 91)
        request.wait()
        assert np.array_equal(into, np.full(5000, 10.0 * turn + ring[1]))


@pytest.mark.parametrize("size", [1, 4097, (1 << 20) + 1])
def test_numbas_arrays_without_stream_are_waited_for_in_the_default_one(driver, comm, ring, make_noise, size):
    """Into which Numba launches kernels, of which its array then says nothing."""
    class DeviceNDArray(InterfaceArray):
        __module__ = "numba.cuda.cudadrv.devicearray"

    sent, expected = make_noise(size, comm.rank, ring[1])
    out, received = DeviceNDArray(driver, np.bitwise_not(sent)), np.bitwise_not(expected)
    out.named_stream = None
    late_in(driver, out, sent, 0)
    comm.sendrecv(out, ring[0], received, ring[1])
    assert np.array_equal(received, expected)


@pytest.mark.parametrize("size", [1, 4097, (1 << 20) + 1])
def test_arrays_of_heaps_are_waited_for_in_the_default_stream(driver, comm, ring, make_noise, size):
    sent, expected = make_noise(size, comm.rank, ring[1])
    received = np.bitwise_not(expected)
    with comm.heap("cuda", 4 << 20, device=0) as heap:  # whose default stream the test fills
        array = heap.array(size, "u1")
        heap.put(array, np.bitwise_not(sent), heap.pe)
        heap.barrier()
        driver.late(0, 100000)
        driver.copy(array.address, sent.ctypes.data, size, 0)
        comm.sendrecv(array, ring[0], received, ring[1])
        assert np.array_equal(received, expected)


@pytest.fixture
def torch(driver, monkeypatch):
    made = TorchLike(driver)
    monkeypatch.setitem(sys.modules, "torch", made)
    return made


@pytest.mark.parametrize("size", [1, 4097, (1 << 20) + 1])
def test_torchs_current_stream_is_waited_for(torch, driver, comm, ring, make_noise, size):
    sent, expected = make_noise(size, comm.rank, ring[1])
    out, into = torch.Tensor(driver, np.bitwise_not(sent)), torch.Tensor(driver, np.bitwise_not(expected))
    late_in(driver, out, sent, torch.current)
    comm.sendrecv(out, ring[0], into, ring[1])
    assert np.array_equal(into.get(), expected)
    assert out.asked == (-1,)  # no synchronising by the producer: its stream is known


def test_torch_under_differentiation_is_read_only(torch, driver, comm, ring):
    out = torch.Tensor(driver, np.arange(10.0) + comm.rank)
    out.requires_grad = True
    with pytest.raises(BufferError, match="read-only"):
        comm.irecv(out, ring[1])
    into = np.zeros(10)
    comm.sendrecv(out, ring[0], into, ring[1])
    assert np.array_equal(into, np.arange(10.0) + ring[1])


def test_persistent_requests_follow_the_current_stream(torch, driver, comm, ring):
    out, into = torch.Tensor(driver, np.zeros(5000)), np.empty(5000)
    request = comm.send_init(out, ring[0], 90)
    for turn in range(3):
        into[:] = -1
        torch.current = driver.stream()
        late_in(driver, out, np.full(5000, 10.0 * turn + comm.rank), torch.current)
        request.start()
        comm.recv(into, ring[1], 90)
        request.wait()
        assert np.array_equal(into, np.full(5000, 10.0 * turn + ring[1]))


@pytest.mark.parametrize("versioned", [True, False])
def test_jax_on_the_device_sends_and_does_not_receive(driver, comm, ring, make_noise, versioned):
    class Array(Exporter):
        __module__ = "jaxlib._jax"

    sent, expected = make_noise(4097, comm.rank, ring[1])
    memory = InterfaceArray(driver, np.bitwise_not(sent))
    # A producer of DLPack makes the stream it is told wait for its own work.
    array = Array(memory.address, memory.shape, memory.dtype, 2, versioned=versioned, owner=memory,
                  on_stream=lambda asked: driver.wait(memory.stream))
    memory.fill_late(sent)
    received = np.bitwise_not(expected)
    comm.sendrecv(array, ring[0], received, ring[1])
    assert np.array_equal(received, expected) and array.asked[-1]["stream"] == 1
    with pytest.raises(BufferError, match="JAX arrays never change: receive into an array of NumPy or CuPy"):
        comm.irecv(array, ring[1])
    with pytest.raises(BufferError, match="JAX arrays never change"):
        comm.allreduce(isthmus.IN_PLACE, array)
    with pytest.raises(BufferError, match="JAX arrays never change"):
        comm.recv_init(array, ring[1])


def test_arrays_of_opencl_by_memory_offset_and_queue(world, comm, ring, make_noise):
    if world.devices("opencl") == 0:
        pytest.skip("not covered here: this machine has no OpenCL device")
    sent, expected = make_noise(8000, comm.rank, ring[1])
    memory = [world.allocate("opencl", 8080) for _ in range(2)]
    out, into = (OpenclArray(each, "f8", 1000, offset=72) for each in memory)
    world.copy(isthmus.Buffer("opencl", memory[0].address, 8000, queue=memory[0].queue, offset=72), sent)
    world.copy(memory[1], np.full(8080, 0xee, "u1"))
    status = comm.sendrecv(out, ring[0], into, ring[1])
    got = np.zeros(8080, "u1")
    world.copy(got, memory[1])
    assert np.array_equal(got[72:8072], expected) and status.count == 1000
    assert (got[:72] == 0xee).all() and (got[8072:] == 0xee).all()
    into.strides = (16,)
    with pytest.raises(BufferError, match="contiguous copy"):
        comm.issend(into, ring[1])
    into.queue = None
    into.strides = (8,)
    with pytest.raises(ValueError, match="names no queue.*with_queue"):
        comm.irecv(into, ring[1])
    comm.barrier()
