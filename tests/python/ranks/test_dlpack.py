"""DLPack without any framework: versions, read-only memory, streams, and what is refused."""
import gc

import numpy as np
import pytest

import isthmus
from devices import Exporter


def exporter(data, **options):
    return Exporter(data.ctypes.data, data.shape, data.dtype, owner=data, **options)


@pytest.mark.parametrize("versioned", [True, False])
@pytest.mark.parametrize("dtype", ["i1", "u2", "i4", "i8", "f4", "f8", "c16", "f2"])
def test_host_tensors_travel(comm, ring, make_noise, dtype, versioned):
    sent, expected = make_noise(48 * np.dtype(dtype).itemsize, comm.rank, ring[1])
    received = np.bitwise_not(expected)
    out = exporter(sent.view(dtype).reshape(6, 8), versioned=versioned)
    into = exporter(received.view(dtype).reshape(6, 8), versioned=versioned)
    status = comm.sendrecv(out, ring[0], into, ring[1])
    assert np.array_equal(received, expected) and status.count == 48
    # Host memory has no stream to be told.
    assert all("stream" not in options for options in out.asked + into.asked)
    assert ("max_version" in out.asked[0]) and len(out.asked) == (1 if versioned else 2)
    gc.collect()
    assert (out.alive, into.alive) == (0, 0)


def test_the_capsule_lives_as_long_as_the_operation(comm, ring):
    data = np.zeros(10)
    into = exporter(data)
    request = comm.irecv(into, ring[1])
    assert into.alive == 1
    comm.send(np.arange(10.0), ring[0])
    request.wait()
    del request
    gc.collect()
    assert into.alive == 0 and np.array_equal(data, np.arange(10.0))


def test_offset_and_strides_that_leave_no_gap(comm, ring):
    data = np.arange(12.0)
    into = np.full(12, -1.0)
    out, place = exporter(data), exporter(into)
    for each in (out, place):
        each.shape, each.strides, each.offset = (2, 4), (4, 1), 32
    comm.sendrecv(out, ring[0], place, ring[1])
    assert np.array_equal(into, [-1.0] * 4 + list(data[4:]))
    out.shape, out.strides = (4, 1, 2), (1, 99, 4)
    comm.sendrecv(out, ring[0], place, ring[1])


def test_what_is_refused(comm, ring):
    data = np.zeros((4, 4))
    with pytest.raises(BufferError, match="read-only"):
        comm.irecv(exporter(data, read_only=True), ring[1])
    gaps = exporter(data)
    gaps.strides = (8, 1)
    with pytest.raises(BufferError, match="contiguous"):
        comm.issend(gaps, ring[0])
    small = exporter(data)
    small.bits = 4
    with pytest.raises(BufferError, match="4 bits"):
        comm.isend(small, ring[0])
    for device, text in ((10, "type 10"), (4, "queue.*isthmus.Buffer")):
        with pytest.raises(BufferError, match=text):
            comm.isend(exporter(data, device=device), ring[0])
    later = exporter(data)
    later.major = 2
    with pytest.raises(BufferError, match="DLPack 2"):
        comm.isend(later, ring[0])

    class Half:
        def __dlpack__(self):
            return 7

    with pytest.raises(TypeError, match="__dlpack_device__"):
        comm.isend(Half(), ring[0])
    Half.__dlpack_device__ = lambda self: (1, 0)
    with pytest.raises(TypeError, match="no DLPack capsule"):
        comm.isend(Half(), ring[0])

    class Refusing(Half):
        def __dlpack__(self, **options):
            raise BufferError("the producer's own words")

    with pytest.raises(BufferError, match="own words"):
        comm.isend(Refusing(), ring[0])
    gc.collect()


def test_arrays_that_jax_calls_its_own_are_read_only(comm, ring):
    class Array(Exporter):
        __module__ = "jaxlib._jax"

    data = np.arange(4.0)
    array = Array(data.ctypes.data, data.shape, data.dtype, versioned=False, owner=data)
    with pytest.raises(BufferError, match="JAX arrays never change: receive into an array of NumPy"):
        comm.irecv(array, ring[1])
    into = np.zeros(4)
    comm.sendrecv(array, ring[0], into, ring[1])
    assert np.array_equal(into, data)


def test_array_interface_of_types_the_buffer_protocol_cannot_name(comm, ring):
    class Named:
        def __init__(self, data, typestr, **more):
            self.data = data
            self.__array_interface__ = {"data": (data.ctypes.data, False), "shape": data.shape, "typestr": typestr, "version": 3, **more}

    sent, into = np.arange(8, dtype="u2") + comm.rank, np.zeros(8, dtype="u2")
    status = comm.sendrecv(Named(sent, "<V2"), ring[0], Named(into, "<V2"), ring[1])
    assert np.array_equal(into, np.arange(8) + ring[1]) and status.count == 8
    with pytest.raises(BufferError, match="contiguous"):
        comm.issend(Named(sent[::2], "<u2", strides=(4,)), ring[0])
    with pytest.raises(ValueError, match="mask"):
        comm.isend(Named(sent, "<u2", mask=sent), ring[0])
    with pytest.raises(ValueError, match="has typestr ''"):
        comm.isend(Named(sent, ""), ring[0])
    with pytest.raises(ValueError, match="lacks"):
        thing = Named(sent, "<u2")
        del thing.__array_interface__["data"]
        comm.isend(thing, ring[0])
