"""Errors begin with the call that was made, and not with the one of the library that it is made of."""
import numpy as np
import pytest

import isthmus

CALLS = {"send": lambda comm, buffer: comm.send(buffer, comm.size), "isend": lambda comm, buffer: comm.isend(buffer, comm.size),
         "recv": lambda comm, buffer: comm.recv(buffer, comm.size), "sendrecv": lambda comm, buffer: comm.sendrecv(buffer, comm.size, buffer),
         "send_object": lambda comm, buffer: comm.send_object(buffer, comm.size), "probe": lambda comm, buffer: comm.probe(comm.size),
         "send_init": lambda comm, buffer: comm.send_init(buffer, comm.size), "bcast": lambda comm, buffer: comm.bcast(buffer, comm.size),
         "ibcast": lambda comm, buffer: comm.ibcast(buffer, comm.size), "bcast_object": lambda comm, buffer: comm.bcast_object(buffer, comm.size),
         "create_group": lambda comm, buffer: comm.create_group([comm.size]), "cart_create": lambda comm, buffer: comm.cart_create([comm.size + 1]),
         "heap": lambda comm, buffer: comm.heap("host", 1 << 60), "dims_create": lambda comm, buffer: isthmus.dims_create(5, [3, 0]),
         "World": lambda comm, buffer: isthmus.World(eager_limit="none")}


@pytest.mark.parametrize("name", CALLS)
def test_what_is_refused_is_told_of_the_call(comm, name):
    with pytest.raises(isthmus.Error, match=f"^{name}: (?!.*ist_)"):
        CALLS[name](comm, np.zeros(3))


def test_what_is_found_while_waiting_is_told_of_whoever_waits(comm, ring):
    def short(wait):
        sent = comm.isend(np.zeros(3), ring[0])
        try:
            wait(np.zeros(1))
        finally:
            sent.wait()

    with pytest.raises(isthmus.TruncateError, match="^recv: a message of 24 bytes"):
        short(lambda into: comm.recv(into, ring[1]))
    with pytest.raises(isthmus.TruncateError, match="^wait: a message of 24 bytes"):
        short(lambda into: comm.irecv(into, ring[1]).wait())
    with pytest.raises(isthmus.WaitallError, match="^waitall: 1 of 1 requests failed; the first is number 0: a message of 24 bytes") as caught:
        short(lambda into: isthmus.waitall([comm.irecv(into, ring[1])]))
    assert str(caught.value.errors[0]).startswith("waitall: a message of 24 bytes")


def test_a_call_inside_of_another_has_its_own_name(comm):
    """That of a function in a reduction; the reduction, and what comes after it, are told of by theirs."""
    said = []

    def function(lower, higher):
        try:
            isthmus.dims_create(5, [3, 0])
        except isthmus.Error as error:
            said.append(str(error))
        return lower

    comm.allreduce(np.ones(2), np.zeros(2), isthmus.Operation(function))
    assert all(text.startswith("dims_create: ") for text in said) and (said or comm.size == 1 or comm.rank > 0)
    with pytest.raises(isthmus.Error, match="^send: dest is"):
        comm.send(b"", comm.size)
