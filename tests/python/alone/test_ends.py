"""Ctrl-C, peers that leave or die, and worlds that are closed or never closed."""
import os
import socket
import subprocess
import sys
import time

import pytest


def test_ctrl_c_ends_a_wait_and_the_request_goes_on(scripts):
    out = scripts.run(1, """
        import os, signal, threading, time
        import isthmus
        world = isthmus.World()
        comm = world.comm
        into = bytearray(4)
        request = comm.irecv(into, 0, 5)
        persistent = comm.recv_init(bytearray(1), 0, 13)
        waits = {"wait": request.wait, "recv": lambda: comm.recv(bytearray(1), 0, 6),
                 "send": lambda: comm.send(bytes(8 << 20), 0, 7), "waitall": lambda: isthmus.waitall([request]),
                 "object": lambda: comm.recv_object(0, 8),
                 "sendrecv": lambda: comm.sendrecv(b"", 0, bytearray(1), 0, send_tag=10, recv_tag=9),
                 "replace": lambda: comm.sendrecv_replace(bytearray(1), 0, 0, send_tag=10, recv_tag=9),
                 "ssend": lambda: comm.ssend(b"", 0, 11), "probe": lambda: comm.probe(0, 12),
                 "mprobe": lambda: comm.mprobe(0, 12), "waitany": lambda: isthmus.waitany([request]),
                 "waitsome": lambda: isthmus.waitsome([request]), "persistent": persistent.wait}
        persistent.start()
        for name, wait in waits.items():
            sent = []
            def interrupt():
                sent.append(time.monotonic())
                os.kill(os.getpid(), signal.SIGINT)
            timer = threading.Timer(0.15, interrupt)
            timer.start()
            try:
                wait()
                print(name, "came back")
            except KeyboardInterrupt:
                print(name, "late" if time.monotonic() - sent[0] > 0.2 else "interrupted")
            timer.join()
        assert not request.test()
        comm.send(b"here", 0, 5)
        print(request.wait().bytes, into.decode())
        comm.send(b"", 0, 13)
        print(persistent.wait().tag)
        world.close()
        """)
    assert out.split("\n")[:-1] == [f"{name} interrupted" for name in
                                    ("wait", "recv", "send", "waitall", "object", "sendrecv", "replace", "ssend", "probe",
                                     "mprobe", "waitany", "waitsome", "persistent")] + ["4 here", "13"]


def test_ctrl_c_ends_a_barrier_which_others_still_pass(scripts):
    out = scripts.run(2, """
        import os, signal, threading, time
        import isthmus
        with isthmus.World() as world:
            comm = world.comm
            if comm.rank == 0:
                threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
                try:
                    comm.barrier()
                except KeyboardInterrupt:
                    print("interrupted", flush=True)
                comm.send(b"", 1)
                comm.recv(bytearray(), 1)
            else:
                comm.recv(bytearray(), 0)
                comm.barrier()
                comm.send(b"", 0)
            comm.barrier()
        """)
    assert out == "interrupted\n"


def test_other_signal_handlers_run_in_a_wait(scripts):
    out = scripts.run(1, """
        import signal
        import isthmus
        with isthmus.World() as world:
            request = world.comm.irecv(bytearray(2))
            signal.signal(signal.SIGALRM, lambda *_: world.comm.send(b"ok", 0))
            signal.setitimer(signal.ITIMER_REAL, 0.1)
            print(request.wait().bytes)
        """)
    assert out == "2\n"


def test_ctrl_c_ends_a_reduction_by_a_function_and_its_wait(scripts):
    """In the wait it ends the wait; in the function it is what the function raised, and the other rank hears of it."""
    out = scripts.run(2, """
        import os, signal, threading, time
        from array import array
        import isthmus
        with isthmus.World() as world:
            comm, got = world.comm, array("d", [0.0] * 4)
            add = isthmus.Operation(lambda lower, higher: [a + b for a, b in zip(lower, higher)])
            if comm.rank == 0:
                threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
                try:
                    comm.allreduce(array("d", [1.0] * 4), got, add)
                except KeyboardInterrupt:
                    print("wait interrupted", flush=True)
                comm.send(b"", 1)
            else:
                comm.recv(bytearray(), 0)
                comm.allreduce(array("d", [2.0] * 4), got, add)
                assert list(got) == [3.0] * 4
            def slow(lower, higher):
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(1)
            comm.barrier()
            words = []
            try:
                comm.allreduce(array("d", [1.0] * 4), got, isthmus.Operation(slow))
            except KeyboardInterrupt:
                words.append("own")
            except isthmus.Error as error:
                words.append("told" if "KeyboardInterrupt" in str(error) else str(error))
            words = comm.allgather_object(words)
            if comm.rank == 0:
                print(all(each in (["own"], ["told"]) for each in words) and ["own"] in words)
        """)
    assert out == "wait interrupted\nTrue\n"


def test_a_peer_that_leaves(scripts):
    out = scripts.run(2, """
        import isthmus
        world = isthmus.World()
        if world.rank == 1:
            world.close()
        else:
            for call in (lambda: world.comm.recv(bytearray(1), 1), lambda: world.comm.recv_object(1), world.comm.barrier):
                try:
                    call()
                except isthmus.PeerLeftError as error:
                    print(error.code_name, "1" in str(error))
        """)
    assert out == "IST_ERR_PEER_LEFT True\n" * 3


def test_a_peer_that_dies(scripts):
    """Without the launcher, which would end the survivor."""
    script = scripts.write("""
        import os, signal, sys, time
        import isthmus
        world = isthmus.World()
        world.comm.barrier()
        if world.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        began = time.monotonic()
        try:
            world.comm.recv(bytearray(1), 1)
        except isthmus.PeerDeadError as error:
            print(error.code_name, "rank 1" in str(error), time.monotonic() - began < 5)
        """)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ranks = [subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True,
                              env={**os.environ, "RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1",
                                   "MASTER_PORT": str(port)}) for rank in range(2)]
    try:
        out = ranks[0].communicate(timeout=60)[0]
        assert ranks[1].wait(timeout=60) == -9
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait()
    assert out == "IST_ERR_PEER_DEAD True True\n"


def test_a_rank_that_fails_ends_the_job(scripts):
    began = time.monotonic()
    done = scripts.try_run(2, """
        import isthmus
        with isthmus.World() as world:
            if world.rank == 1:
                raise RuntimeError("on purpose")
            world.comm.recv(bytearray(1), 1)
        """)
    assert done.returncode != 0 and "on purpose" in done.stderr
    assert time.monotonic() - began < 30


def test_a_closed_world_says_so(scripts):
    out = scripts.run(1, """
        import isthmus
        with isthmus.World() as world:
            comm, into = world.comm, bytearray(1)
            request = comm.irecv(into)
            memory = world.allocate("host", 10)
        print(world.closed, world)
        world.close()
        for call in (request.wait, lambda: comm.send(b"", 0), comm.barrier, lambda: comm.local_rank,
                     lambda: world.allocate("host", 1), lambda: world.devices("host")):
            try:
                call()
            except isthmus.Error as error:
                print(error.code_name, "closed" in str(error))
        del memory
        with isthmus.World() as again:
            print(again.comm.sendrecv_object("again", 0))
        """)
    assert out == "True <isthmus.World, closed>\n" + "IST_ERR_HANDLE True\n" * 6 + "again\n"


def test_worlds_left_open_are_left_at_the_end(scripts):
    """With requests, buffers and threads still there; the peer hears that the rank left, not that it died."""
    done = scripts.try_run(2, """
        import isthmus
        world = isthmus.World()
        comm = world.comm
        comm.barrier()
        if comm.rank == 1:
            kept = [comm.irecv(bytearray(10), 0, 3), comm.irecv_object(0, 3)]
            comm.irecv(bytearray(10), 0, 4)
            comm.isend_object(b"x" * 100000, 0, 5)
        else:
            try:
                comm.recv(bytearray(1), 1, 9)
            except isthmus.Error as error:
                print(type(error).__name__)
        """)
    assert (done.returncode, done.stdout, done.stderr) == (0, "PeerLeftError\n", "")


def test_a_world_that_is_dropped_with_a_receive_of_an_object_is_left(scripts):
    """The receive holds what holds the world; once, the world stayed until the process ended."""
    out = scripts.run(2, """
        import gc
        import isthmus
        control, world = isthmus.World(), isthmus.World()
        world.comm.barrier()
        if control.rank == 1:
            request = world.comm.irecv_object(0)
            assert not request.test()
            del request
            world.comm.irecv_object(0)
            del world
            gc.collect()
        else:
            try:
                world.comm.recv(bytearray(1), 1)
            except isthmus.Error as error:
                print(type(error).__name__)
        control.comm.barrier()
        """)
    assert out == "PeerLeftError\n"


def test_ctrl_c_leaves_the_object_for_the_next_receive(scripts):
    out = scripts.run(1, """
        import os, signal, threading
        import isthmus
        with isthmus.World() as world:
            comm = world.comm
            for length in (10, 100000):
                threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
                try:
                    comm.recv_object(0)
                except KeyboardInterrupt:
                    comm.isend_object(bytes(length), 0)
                    print(len(comm.recv_object(0)))
        """)
    assert out == "10\n100000\n"


def test_threads_that_still_wait_at_the_end(scripts):
    """Python ends such threads on the spot when they ask for its lock, which once was abort() inside a wait."""
    for _ in range(5):
        assert scripts.run(1, """
            import threading, time
            import isthmus
            comm = isthmus.World().comm
            request = comm.irecv(bytearray(1), 0, 6)
            def wait(call):
                try:
                    while True:
                        call()
                except isthmus.Error:
                    pass
            for call in (lambda: comm.recv(bytearray(1), 0, 5), request.test, request.wait, comm.iprobe):
                threading.Thread(target=wait, args=(call,), daemon=True).start()
            time.sleep(0.2)
            """) == ""


def test_several_worlds_at_once(scripts):
    out = scripts.run(2, """
        import isthmus
        first, second = isthmus.World(), isthmus.World()
        peer = 1 - first.rank
        into = bytearray(6)
        later = second.comm.irecv(into, peer)
        first.comm.sendrecv(b"first", peer, bytearray(5), peer)
        assert not later.test()
        first.comm.barrier()
        second.comm.send(b"second", peer)
        later.wait()
        first.close()
        assert into == b"second" and second.comm.sendrecv_object(second.rank, peer) == peer
        if second.rank == 0:
            print("both")
        """)
    assert out == "both\n"


SET_CALLS = ["waitall", "waitany", "waitsome", "testall", "testany", "testsome"]


def test_a_complete_request_needs_its_world_no_more(scripts):
    """The first of a set is of a closed world; the one behind it is waited for in its own."""
    out = scripts.run(1, f"""
        import isthmus
        first, second = isthmus.World(), isthmus.World()
        done = first.comm.irecv(bytearray(4), 0)
        first.comm.send(b"done", 0)
        done.wait()
        first.close()
        for name in {SET_CALLS}:
            into = bytearray(5)
            later = second.comm.irecv(into, 0)
            second.comm.send(b"later", 0)
            found = getattr(isthmus, name)([done, later])
            later.wait()
            print(name, found[0].bytes if name.endswith("all") else found[0] if name.endswith("any") else len(found), into.decode())
            print(len(isthmus.waitall([done, later])), isthmus.waitany([done])[0])
        """)
    assert out == "".join(f"{name} {found} later\n2 0\n" for name, found in zip(SET_CALLS, [4, 0, 2] * 2))


def test_every_world_of_a_set_must_be_open(scripts):
    out = scripts.run(1, f"""
        import isthmus
        first, second = isthmus.World(), isthmus.World()
        requests = [world.comm.irecv(bytearray(1), 0) for world in (first, second)]
        second.close()
        for name in {SET_CALLS}:
            for each in (requests, requests[::-1]):
                try:
                    getattr(isthmus, name)(each)
                except isthmus.Error as error:
                    print(name, error.code_name, "closed" in str(error))
        first.comm.send(b"1", 0)
        print(isthmus.waitall(requests[:1])[0].bytes)
        """)
    assert out == "".join(f"{name} IST_ERR_HANDLE True\n" * 2 for name in SET_CALLS) + "1\n"


@pytest.mark.parametrize("name", ["waitall", "waitany", "waitsome"])
def test_a_later_world_that_closes_ends_the_wait(scripts, name):
    out = scripts.run(1, f"""
        import threading
        import isthmus
        first, second = isthmus.World(), isthmus.World()
        requests = [world.comm.irecv(bytearray(1), 0) for world in (first, second)]
        threading.Timer(0.2, second.close).start()
        try:
            isthmus.{name}(requests)
        except isthmus.Error as error:
            print(error.code_name, "closed" in str(error), second.closed)
        """)
    assert out == "IST_ERR_HANDLE True True\n"
