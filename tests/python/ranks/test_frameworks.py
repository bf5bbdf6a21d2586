"""The arrays of frameworks, where they are installed; each one that is not says so."""
import os

import numpy as np
import pytest

import isthmus
from devices import opencl

pytestmark = pytest.mark.skipif("ISTHMUS_TEST_FAKE_CUDA" in os.environ,
                                reason="not covered here: frameworks would take the invented driver for a real one")


def on_cuda(world):
    if world.devices("cuda") == 0:
        pytest.skip("not covered here: this machine has no CUDA device")


# ---- pyopencl ----

@pytest.fixture(scope="module")
def queue():
    pytest.importorskip("pyopencl", reason="not covered here: pyopencl is not installed")
    try:
        return opencl()[1]
    except OSError as error:
        pytest.skip(f"not covered here: {error}")


@pytest.mark.parametrize("size", [0, 1, 4097, (1 << 20) + 1])
def test_pyopencl_arrays(queue, comm, ring, make_noise, size):
    import pyopencl.array as cla
    sent, expected = make_noise(size, comm.rank, ring[1])
    out, into = cla.to_device(queue, sent), cla.to_device(queue, np.bitwise_not(expected))
    status = comm.sendrecv(out, ring[0], into, ring[1])
    assert status.bytes == size and np.array_equal(into.get(), expected)


def test_pyopencl_views_and_work_that_is_pending(queue, comm, ring):
    import pyopencl.array as cla
    out = cla.arange(queue, 100000, dtype=np.float64)
    for _ in range(20):
        out = out * 1.0 + 1.0  # enqueued, not waited for
    into = cla.zeros(queue, 100000, np.float64)
    comm.sendrecv(out[1000:2000], ring[0], into[5:1005], ring[1])
    got = into.get()
    assert np.array_equal(got[5:1005], np.arange(1000, 2000) + 20.0)
    assert not got[:5].any() and not got[1005:].any()


def test_pyopencl_work_of_another_queue(queue, comm, ring):
    import pyopencl as cl
    import pyopencl.array as cla
    other = cl.CommandQueue(queue.context)
    out = cla.zeros(queue, 1000, np.float64)
    for _ in range(20):
        out += 1.0
    into = np.zeros(1000)
    comm.sendrecv(out.with_queue(other), ring[0], into, ring[1])
    assert np.array_equal(into, np.full(1000, 20.0))


def test_messages_that_queues_carry(queue, comm, ring, make_noise):
    import pyopencl as cl
    import pyopencl.array as cla
    sent, expected = make_noise(30001, comm.rank, ring[1])
    out, into = cla.to_device(queue, sent), cla.to_device(queue, np.bitwise_not(expected))
    comm.prepare_on_queue(queue, ring[0], 41, receives=False)
    comm.prepare_on_queue(queue, ring[1], 41, sends=False)
    gate = cl.UserEvent(queue.context)
    other = cl.CommandQueue(queue.context)
    went = comm.send_on_queue(other, out, ring[0], 41, wait_for=[gate])
    came = comm.recv_on_queue(queue, into, ring[1], 41)
    assert isinstance(went, cl.Event) and went.command_execution_status != cl.command_execution_status.COMPLETE
    gate.set_status(cl.command_execution_status.COMPLETE)
    came.wait()
    went.wait()
    assert np.array_equal(into.get(), expected)
    again = cla.to_device(queue, np.bitwise_not(expected))
    both = comm.sendrecv_on_queue(queue.int_ptr, out, ring[0], again, ring[1], send_tag=41, recv_tag=41, send_count=100, recv_count=100)
    both.wait()
    assert np.array_equal(again.get()[:100], expected[:100])
    assert np.array_equal(again.get()[100:], np.bitwise_not(expected)[100:])
    # Views with gaps, into one and into a row.
    mine = np.arange(900, dtype="i4").reshape(100, 9) + 1000 * comm.rank
    theirs = (mine - 1000 * comm.rank + 1000 * ring[1])[:, 1::3]
    whole, gaps, row = cla.to_device(queue, mine), cla.to_device(queue, np.full((100, 9), 7, "i4")), cla.zeros(queue, 300, "i4")
    comm.send_on_queue(queue, whole[:, 1::3], ring[0], 43)
    comm.recv_on_queue(queue, gaps[:, :6:2], ring[1], 43).wait()
    comm.sendrecv_on_queue(queue, whole[:, 1::3], ring[0], row, ring[1], send_tag=43, recv_tag=43).wait()
    wanted = np.full((100, 9), 7, "i4")
    wanted[:, :6:2] = theirs
    assert np.array_equal(gaps.get(), wanted) and np.array_equal(row.get(), theirs.ravel())
    with pytest.raises(isthmus.Error, match="source is -1"):
        comm.recv_on_queue(queue, into, isthmus.ANY_SOURCE)
    with pytest.raises(TypeError, match="an OpenCL queue is wanted"):
        comm.send_on_queue("queue", out, ring[0])
    with pytest.raises(TypeError, match="an OpenCL event is wanted"):
        comm.send_on_queue(queue, out, ring[0], wait_for=["event"])


def test_views_of_pyopencl_with_gaps(queue, comm, ring):
    import pyopencl.array as cla
    numbers = np.arange(800, dtype="f4").reshape(20, 40)
    out, into = cla.to_device(queue, numbers + 1000 * comm.rank), cla.to_device(queue, np.full((20, 40), -1, "f4"))
    comm.sendrecv(out[:, 5:9], ring[0], into[::2, ::5], ring[1])
    expected = np.full((20, 40), -1, "f4")
    expected[::2, ::5] = (numbers + 1000 * ring[1])[:, 5:9].reshape(10, 8)
    assert np.array_equal(into.get(), expected)


def test_pyopencl_arrays_that_are_refused(queue, comm, ring):
    import pyopencl.array as cla
    array = cla.zeros(queue, (8, 8), np.float32)
    with pytest.raises(BufferError, match="contiguous"):
        comm.issend(array[:, :3], ring[0])
    with pytest.raises(ValueError, match="with_queue"):
        comm.isend(array.with_queue(None), ring[0])


# ---- PyTorch ----

@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch", reason="not covered here: PyTorch is not installed")


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int64", "uint8", "bool", "complex64"])
def test_torch_on_the_host(torch, comm, ring, dtype):
    out = (torch.arange(1000) % 100 + comm.rank).to(getattr(torch, dtype))
    into = torch.zeros_like(out)
    status = comm.sendrecv(out, ring[0], into, ring[1])
    assert torch.equal(into, (torch.arange(1000) % 100 + ring[1]).to(getattr(torch, dtype))) and status.count == 1000


def test_torch_under_differentiation(torch, comm, ring):
    out = torch.arange(10.0, requires_grad=True)
    with pytest.raises(BufferError, match="read-only"):
        comm.irecv(out, ring[1])
    into = torch.zeros(10, requires_grad=True)
    comm.sendrecv(out, ring[0], into.detach(), ring[1])
    assert torch.equal(into.detach(), torch.arange(10.0))
    with pytest.raises(BufferError, match="contiguous"):
        comm.issend(torch.zeros(4, 4)[:, :2], ring[0])


def test_views_of_torch_with_gaps(torch, comm, ring):
    numbers = torch.arange(240.0).reshape(12, 20)
    out, into = numbers + 1000 * comm.rank, torch.full((12, 20), -1.0)
    comm.sendrecv(out[:, 4:8], ring[0], into[::2, 1:9].t(), ring[1])
    expected = torch.full((12, 20), -1.0)
    expected[::2, 1:9] = (numbers + 1000 * ring[1])[:, 4:8].reshape(8, 6).t()
    assert torch.equal(into, expected)


@pytest.mark.parametrize("size", [1, 5000, 3 << 20])
def test_torch_on_the_gpu_in_a_stream_of_its_own(torch, world, comm, ring, size):
    on_cuda(world)
    if not torch.cuda.is_available():
        pytest.skip("not covered here: PyTorch finds no GPU")
    torch.cuda.set_device(comm.local_rank % torch.cuda.device_count())
    with torch.cuda.stream(torch.cuda.Stream()):
        out = torch.full((size,), -1.0, device="cuda")
        torch.cuda._sleep(200_000_000)  # the kernel before it runs for about 0.1 s
        out.fill_(comm.rank)
        into = torch.full((size,), -2.0, device="cuda")
        comm.sendrecv(out, ring[0], into, ring[1])
        assert bool((into == ring[1]).all())


# ---- CuPy, Numba, NumPy's other types; JAX is in test_jax.py ----

@pytest.mark.parametrize("size", [0, 1, 5000, 3 << 20])
def test_cupy(world, comm, ring, size):
    cupy = pytest.importorskip("cupy", reason="not covered here: CuPy is not installed")
    on_cuda(world)
    with cupy.cuda.Stream(non_blocking=True):
        out = cupy.arange(size, dtype="f4") + comm.rank
        into = cupy.full(size, -1, dtype="f4")
        comm.sendrecv(out, ring[0], into, ring[1])
        assert bool((into == cupy.arange(size, dtype="f4") + ring[1]).all())


def test_numba(world, comm, ring):
    cuda = pytest.importorskip("numba.cuda", reason="not covered here: Numba is not installed")
    on_cuda(world)
    out, into = cuda.to_device(np.arange(1000.0) + comm.rank), cuda.to_device(np.zeros(1000))
    comm.sendrecv(out, ring[0], into, ring[1])
    assert np.array_equal(into.copy_to_host(), np.arange(1000.0) + ring[1])


def test_bfloat16_of_numpy(comm, ring):
    types = pytest.importorskip("ml_dtypes", reason="not covered here: ml_dtypes is not installed")
    out = np.arange(50).astype(types.bfloat16) + types.bfloat16(comm.rank)
    into = np.zeros(50, dtype=types.bfloat16)
    comm.sendrecv(out, ring[0], into, ring[1])
    assert np.array_equal(into.astype("f4"), np.arange(50, dtype="f4") + ring[1])
    total = np.zeros(50, dtype=types.bfloat16)
    comm.allreduce(out, total, isthmus.MAX)
    assert np.array_equal(total.astype("f4"), np.arange(50, dtype="f4") + comm.size - 1)
    comm.allreduce(out.reshape(5, 10).T, total, isthmus.Operation(np.minimum))
    assert np.array_equal(total.astype("f4"), np.arange(50, dtype="f4")) and total.dtype == types.bfloat16
    with pytest.raises(TypeError, match="different types"):
        comm.iallreduce(out, np.zeros(50, "V2"))
