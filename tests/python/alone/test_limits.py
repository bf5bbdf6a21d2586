"""What is refused because too much is under way."""
import os

import pytest


def free_memory():
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(free_memory() < 3 << 30, reason="not covered here: a million requests take 1.6 GB")
def test_an_object_whose_half_is_refused_is_not_announced(scripts):
    """A head goes in a slot, for which there is always a number; whoever received it would wait for the body for ever."""
    out = scripts.run(1, """
        import isthmus
        with isthmus.World() as world:
            comm, into, kept = world.comm, bytearray(1), []
            while True:
                try:
                    kept.append(comm.recv_init(into, isthmus.PROC_NULL))
                except isthmus.Error as error:
                    print(error.code_name, len(kept))
                    break
            for call in (comm.send_object, comm.isend_object):
                try:
                    call(bytes(100000), 0)
                except isthmus.Error as error:
                    print(error.code_name, "operations are outstanding" in str(error))
            comm.send_object("short", 0)
            kept.pop().free()
            long = comm.isend_object(bytes(200000), 0)  # the one number left
            kept.clear()
            long.test()
            print(comm.recv_object(0), len(comm.recv_object(0)))
            long.wait()
        """, timeout=150)
    assert out == "IST_ERR_MEMORY 1048576\n" + "IST_ERR_MEMORY True\n" * 2 + "short 200000\n"
