"""What elements are, where they are named by NumPy's short texts, and of records and errors."""
import pickle

import numpy as np
import pytest

import isthmus


def test_text_of_an_array_has_four_bytes_a_character(comm):
    with comm.heap("host", 1 << 20) as heap:
        text, numbers = heap.array(1000, "U8"), heap.array(1000, "f8")
        np.asarray(numbers)[:] = 3
        np.asarray(text)[:] = "abcdefgh"
        assert text.nbytes == np.asarray(text).nbytes == 32000
        assert np.all(np.asarray(numbers) == 3)
        assert np.asarray(heap.array(3, "M8[ns]")).dtype == np.dtype("M8[ns]")
        heap.barrier()


@pytest.mark.parametrize("typestr", ["f8,i4", "f8x", "U", "8", "", "f0", "O8", "f99999999999999"])
def test_what_names_no_element_is_refused(comm, typestr):
    with pytest.raises(ValueError, match="typestr is"):
        isthmus.Buffer("host", 0, 0, typestr)
    with comm.heap("host", 1 << 20) as heap, pytest.raises(ValueError, match="typestr is"):
        heap.array(2, typestr)


def test_numbers_in_another_byte_order_are_not_reduced(comm):
    given, found = np.array([1.0, 2.0], ">f8"), np.zeros(2, ">f8")
    with pytest.raises(TypeError):
        comm.allreduce(given, found)
    with pytest.raises(TypeError):
        comm.allreduce(isthmus.Buffer("host", given.ctypes.data, 2, ">f8"), isthmus.Buffer("host", found.ctypes.data, 2, ">f8"))


def _pair(formats, offsets, size):
    return np.dtype({"names": ["value", "index"], "formats": formats, "offsets": offsets, "itemsize": size})


@pytest.mark.parametrize("dtype", [_pair(["f8", "i4"], [0, 12], 16), _pair(["i2", "i4"], [0, 2], 8), _pair(["i2", "i4"], [2, 4], 8)])
def test_records_that_do_not_lie_as_in_c_have_no_least(comm, dtype):
    with pytest.raises(TypeError):
        comm.allreduce(np.zeros(2, dtype), np.zeros(2, dtype), isthmus.MINLOC)


@pytest.mark.parametrize("formats", [["f4", "i4"], ["f8", "i4"], ["i8", "i4"], ["i4", "i4"], ["i2", "i4"], ["i8", "i8"]])
def test_records_that_lie_as_in_c_have_one(comm, formats):
    dtype = np.dtype(list(zip(["value", "index"], formats)), align=True)
    given, found = np.zeros(2, dtype), np.zeros(2, dtype)
    given["value"], given["index"] = 5, 20 - comm.rank
    comm.allreduce(given, found, isthmus.MINLOC)
    assert np.all(found["value"] == 5) and np.all(found["index"] == 20 - (comm.size - 1))


def test_errors_travel(comm, ring):
    sent = comm.isend(np.zeros(3), ring[0])
    with pytest.raises(isthmus.TruncateError) as short:
        comm.recv(np.zeros(1), ring[1])
    sent.wait()
    sent = comm.isend(np.zeros(3), ring[0])
    with pytest.raises(isthmus.WaitallError) as several:
        isthmus.waitall([comm.irecv(np.zeros(1), ring[1])])
    sent.wait()
    for error in (short.value, several.value):
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again), again.code, again.code_name) == (type(error), str(error), error.code, error.code_name)
        assert again.status is None
    assert [str(each) for each in pickle.loads(pickle.dumps(several.value)).errors] == [str(each) for each in several.value.errors]
    assert all(isinstance(each, isthmus.TruncateError) for each in comm.allgather_object(short.value))
