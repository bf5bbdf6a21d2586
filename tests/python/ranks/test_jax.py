"""JAX, where it is installed: its arrays are sent and never received into, and some of them are not there yet, or no more."""
import gc
import os
import threading
import weakref

import numpy as np
import pytest

import isthmus

pytestmark = pytest.mark.skipif("ISTHMUS_TEST_FAKE_CUDA" in os.environ,
                                reason="not covered here: frameworks would take the invented driver for a real one")


@pytest.fixture(scope="module")
def jax(world):
    """On what JAX_PLATFORMS names first: this rank's device of those."""
    found = pytest.importorskip("jax", reason="not covered here: JAX is not installed")
    try:
        devices = found.devices()
    except RuntimeError as error:
        pytest.skip(f"not covered here: JAX's arrays on {os.environ.get('JAX_PLATFORMS')}: {str(error).splitlines()[0]}")
    # Without a GPU it takes the processor, which is named behind it, and says nothing.
    if os.environ.get("JAX_PLATFORMS", "").startswith("cuda") and devices[0].platform != "gpu":
        pytest.skip(f"not covered here: JAX's arrays on a GPU; it finds none, only {devices[0]}, on which other tests have run these")
    with found.default_device(devices[world.comm.local_rank % len(devices)]):
        yield found


@pytest.fixture
def jnp(jax):
    return jax.numpy


def as_sent(array):
    """What the bytes of a JAX array are, as an array of NumPy."""
    return np.array(array)


def swap(comm, ring, array, into, **options):
    status = comm.sendrecv(array, ring[0], into, ring[1], **options)
    assert status.count == into.size
    return into


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int8", "uint16", "int32", "bool", "complex64", "float8_e4m3fn"])
@pytest.mark.parametrize("size", [0, 1, 1000, 300001])
def test_arrays_of_every_type(jnp, comm, ring, dtype, size):
    expected = as_sent((jnp.arange(size) % 50 + ring[1]).astype(dtype))
    into = swap(comm, ring, (jnp.arange(size) % 50 + comm.rank).astype(dtype), np.zeros_like(expected))
    assert into.dtype == expected.dtype and into.tobytes() == expected.tobytes()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (3, 0), (1, 1), (2, 3, 4)])
def test_shapes_with_and_without_elements(jnp, comm, ring, dtype, shape):
    out = jnp.full(shape, comm.rank + 1, dtype)
    into = swap(comm, ring, out, np.zeros_like(as_sent(out)))
    assert (into == ring[1] + 1).all()


def test_views_are_arrays_of_their_own(jnp, comm, ring):
    table = jnp.arange(12.0).reshape(3, 4) + 100 * comm.rank
    expected = np.arange(12.0, dtype="f4").reshape(3, 4) + 100 * ring[1]
    for view in (lambda a: a.T, lambda a: a[:, ::2], lambda a: a[::-1], lambda a: a[1], lambda a: a[1, 2]):
        into = swap(comm, ring, view(table), np.zeros(view(expected).shape, "f4"))
        assert np.array_equal(into, view(expected))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_another_layout_travels_in_the_order_of_memory(jax, jnp, comm, ring, dtype):
    layout = pytest.importorskip("jax.experimental.layout")
    if not hasattr(layout, "Format"):
        pytest.skip("not covered here: this JAX has no formats of arrays")
    table = (jnp.arange(12).reshape(3, 4) + comm.rank).astype(dtype)
    first_fastest = jax.device_put(table, layout.Format(layout.Layout(major_to_minor=(1, 0)), table.sharding))
    into = np.zeros((3, 4), as_sent(table).dtype, order="F")
    swap(comm, ring, first_fastest, into)
    assert np.array_equal(into, (np.arange(12).reshape(3, 4) + ring[1]).astype(into.dtype))


def test_a_result_that_is_not_ready_yet_is_waited_for(jax, jnp, comm, ring):
    @jax.jit
    def slow(start):
        same = jnp.eye(300, dtype=start.dtype)
        return jax.lax.fori_loop(0, 100, lambda _, product: product @ same, jnp.full((300, 300), start))

    for dtype in ("float32", "bfloat16"):
        slow(jnp.asarray(0, dtype)).block_until_ready()  # compiled
        out = slow(jnp.asarray(comm.rank + 1, dtype))
        into = swap(comm, ring, out, np.zeros((300, 300), as_sent(jnp.zeros(1, dtype)).dtype))
        assert (into == ring[1] + 1).all()


def test_nothing_is_received_into_them(jnp, world, comm, ring):
    array, other = jnp.arange(6.0), np.arange(6, dtype="f4")
    calls = [lambda: comm.irecv(array), lambda: comm.recv(array), lambda: comm.recv_init(array), lambda: world.copy(array, other),
             lambda: comm.sendrecv(other, ring[0], array, ring[1]), lambda: comm.sendrecv_replace(array, ring[0], ring[1]),
             lambda: comm.allreduce(other, array), lambda: comm.allreduce(isthmus.IN_PLACE, array),
             lambda: comm.ibcast(array, ring[0]) if comm.size > 1 else comm.scan(other, array),
             lambda: comm.irecv(array.astype("bfloat16")), lambda: comm.irecv(jnp.zeros(0)), lambda: comm.irecv(jnp.float32(1))]
    for call in calls:
        with pytest.raises(BufferError, match="JAX arrays never change: receive into an array of NumPy or CuPy"):
            call()
    assert np.array_equal(array, other)
    comm.barrier()


def test_what_is_no_array_says_what_to_do(jax, jnp, comm, ring):
    gone = jnp.arange(5.0)
    gone.delete()
    with pytest.raises(ValueError, match="was deleted.*donated to; send what that function returned"):
        comm.isend(gone, ring[0])
    for traced in (jax.jit, jax.grad, jax.vmap):
        with pytest.raises(TypeError, match="while JAX traces a function.*send what the function returns"):
            traced(lambda array: comm.isend(array, ring[0]) and array.sum())(jnp.ones(3))
    with pytest.raises(TypeError, match="send_object"):
        comm.isend(jax.random.key(0), ring[0])
    with pytest.raises(TypeError, match="send_object"):
        comm.isend({"weights": jnp.ones(3)}, ring[0])


def test_a_call_from_inside_a_traced_function(jax, jnp, comm, ring):
    """As the error above says."""
    experimental = pytest.importorskip("jax.experimental")

    def swapped(array):
        return swap(comm, ring, array, np.empty(array.shape, array.dtype))

    @jax.jit
    def step(array):
        return 2 * experimental.io_callback(swapped, jax.ShapeDtypeStruct(array.shape, array.dtype), array + 1)

    assert np.array_equal(step(jnp.full(1000, comm.rank, "float32")), np.full(1000, 2.0 * ring[1] + 2))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_request_keeps_the_array(jax, jnp, comm, ring, dtype):
    size = 3 << 20
    array = jnp.full(size, comm.rank + 1, dtype)
    seen, into = weakref.ref(array), np.zeros_like(as_sent(array))
    request = comm.issend(array, ring[0], 1)
    del array
    gc.collect()
    # What DLPack gives keeps the memory, and not the Python object.
    assert seen() is not None or dtype == "bfloat16" or jax.default_backend() != "cpu"
    others = [jnp.full(size, 100 + number, dtype) for number in range(3)]  # what takes the memory if it was given away
    comm.recv(into, ring[1], 1)
    request.wait()
    assert (into == ring[1] + 1).all() and len(others) == 3
    del request
    gc.collect()
    assert seen() is None


def test_a_blocking_call_and_a_persistent_request_keep_the_array(jnp, comm, ring):
    into = np.zeros(3 << 20, "f4")
    sender = threading.Thread(target=lambda: comm.ssend(jnp.full(into.size, comm.rank + 1, "float32"), ring[0], 1))
    sender.start()
    comm.recv(into, ring[1], 1)
    sender.join()
    assert (into == ring[1] + 1).all()
    request = comm.send_init(jnp.full(into.size, comm.rank + 5, "float32"), ring[0], 2)
    for _ in range(2):
        gc.collect()
        into[:] = 0
        request.start()
        comm.recv(into, ring[1], 2)
        request.wait()
        assert (into == ring[1] + 5).all()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_an_array_is_deleted_and_donated_under_way(jax, jnp, comm, ring, dtype):
    """JAX lets go of the memory only when nobody looks at it any more, or refuses."""
    size = 3 << 20
    donated = jax.jit(lambda array: array + 1, donate_argnums=0)
    for give_away in (lambda array: array.delete(), donated):
        array = jnp.full(size, comm.rank + 1, dtype)
        into = np.zeros_like(as_sent(array))
        request = comm.issend(array, ring[0], 3)
        try:
            kept = give_away(array)
        except (RuntimeError, ValueError) as refused:
            kept = refused
        others = [jnp.full(size, 100 + number, dtype) for number in range(3)]
        comm.recv(into, ring[1], 3)
        request.wait()
        assert (into == ring[1] + 1).all()
        del kept, others


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int32", "complex64"])
def test_collective_calls_take_them(jnp, comm, dtype):
    ranks, count = range(comm.size), 120
    mine = jnp.arange(count).astype(dtype) * (comm.rank + 1)
    every = [as_sent(jnp.arange(count).astype(dtype) * (rank + 1)) for rank in ranks]
    total = sum(each.astype("c16" if dtype == "complex64" else "f8") for each in every)
    into = np.zeros_like(every[0])
    comm.allreduce(mine, into)
    assert np.array_equal(into, total.astype(into.dtype))
    comm.iallreduce(isthmus.ready(mine), into).wait()
    assert np.array_equal(into, total.astype(into.dtype))
    comm.allreduce(mine, into, isthmus.Operation(lambda lower, higher: lower + higher))
    assert np.array_equal(into, total.astype(into.dtype))
    gathered = np.zeros((comm.size, count), into.dtype)
    comm.allgather(mine, gathered)
    assert np.array_equal(gathered, every)
    part = np.zeros(count // comm.size, into.dtype)
    comm.scatter(mine if comm.rank == 0 else None, part)
    assert np.array_equal(part, every[0][comm.rank * part.size:(comm.rank + 1) * part.size])
    everybodys = np.zeros(part.size * comm.size, into.dtype)
    comm.alltoall(mine[:everybodys.size], everybodys)
    assert np.array_equal(everybodys, np.concatenate([each[comm.rank * part.size:(comm.rank + 1) * part.size] for each in every]))
    if comm.rank == 0:
        comm.bcast(mine)
    else:
        comm.bcast(into)
        assert np.array_equal(into, every[0])


def test_objects_hold_them(jax, jnp, comm, ring):
    got = comm.sendrecv_object({"weights": jnp.full(5000, comm.rank), "none": None}, ring[0], ring[1])
    assert isinstance(got["weights"], jax.Array) and np.array_equal(got["weights"], np.full(5000, ring[1]))
