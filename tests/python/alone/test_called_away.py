"""Ctrl-C in calls that all ranks make in several steps: they go on, and the next ones are as usual on every rank."""
import textwrap

import pytest

START = """
import os, pathlib, signal, threading, time
import numpy as np
import isthmus

def place(name):
    return pathlib.Path(__file__).with_name(name)

def wait_for(name):
    while not place(name).exists():
        time.sleep(0.01)

def say(text):
    print(text + "\\n", end="", flush=True)

def interrupted(call):
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        call()
    except KeyboardInterrupt:
        return
    raise AssertionError("came back")

"""
CALLS = {"bcast": ("comm.bcast_object('x' * 70000 if rank == 1 else None, 1)", "'x' * 70000"),
         "gather": ("comm.gather_object(rank, 0)", "([0, 1, 2] if rank == 0 else None)"),
         "allgather": ("comm.allgather_object(rank)", "[0, 1, 2]"),
         "scatter": ("comm.scatter_object('abc' if rank == 1 else None, 1)", "'abc'[rank]"),
         "alltoall": ("comm.alltoall_object([(rank, to) for to in range(3)])", "[(source, rank) for source in range(3)]"),
         "allreduce": ("comm.allreduce_object(rank)", "3"),
         "scan": ("comm.scan_object([rank])", "list(range(rank + 1))"),
         "barrier": ("comm.barrier()", "None"),
         "function": ("comm.allreduce(np.full(3, 2.0), np.zeros(3), isthmus.Operation(np.multiply))", "None")}


def run(scripts, text, **more):
    return scripts.run(3, START + textwrap.dedent(text), **more)


@pytest.mark.parametrize("call", CALLS)
def test_the_next_calls_are_as_usual(scripts, call):
    """Rank 0 is called away twice before the others come; which of them have a result then, and that of the calls that follow, is looked at."""
    made, expected = CALLS[call]
    out = run(scripts, f"""
        with isthmus.World() as world:
            comm, rank = world.comm, world.rank
            if rank == 0:
                for _ in range(2):
                    interrupted(lambda: {made})
                place("gone").touch()
            else:
                wait_for("gone")
                for _ in range(2):
                    assert {made} == {expected}
            for number in range(3):
                assert comm.allgather_object((rank, number)) == [(each, number) for each in range(3)]
                assert {made} == {expected}
            say("right")
        """)
    assert out == "right\n" * 3


@pytest.mark.parametrize("call", CALLS)
def test_the_others_go_on_while_who_was_called_away_makes_no_call(scripts, call):
    made, expected = CALLS[call]
    out = run(scripts, f"""
        with isthmus.World() as world:
            comm, rank = world.comm, world.rank
            if rank == 0:
                interrupted(lambda: {made})
                place("gone").touch()
                for other in (1, 2):
                    wait_for(f"over-{{other}}")
            else:
                wait_for("gone")
                assert {made} == {expected}
                place(f"over-{{rank}}").touch()
            say("right")
        """)
    assert out == "right\n" * 3


AFTER = {"messages": "comm.sendrecv(bytes(1), (rank + 1) % 3, bytearray(1), (rank + 2) % 3)",
         "collective": "comm.allreduce(np.ones(3), np.zeros(3))", "communicator": "comm.dup().barrier()",
         "heap": "comm.heap('host', 1 << 16).array(8)", "halo": "comm.halo_grid([3]).halo([isthmus.HaloField(np.zeros(6), [(1, 1)])])",
         "interrupted": "interrupted(comm.barrier) if rank == 0 else comm.barrier()"}


@pytest.mark.parametrize("threads", ["multiple", "single"])
@pytest.mark.parametrize("after", AFTER)
def test_a_call_of_another_sort_follows(scripts, after, threads):
    """The others come while rank 0 is in it already, and need the second step of the call that it has left."""
    out = run(scripts, f"""
        with isthmus.World() as world:
            comm, rank = world.comm, world.rank
            if rank == 0:
                interrupted(lambda: comm.bcast_object(None, 1))
                place("gone").touch()
            else:
                wait_for("gone")
                time.sleep(0.3)
                assert comm.bcast_object("x" * (3 << 20), 1) == "x" * (3 << 20)
            {AFTER[after]}
            assert comm.allgather_object(rank) == [0, 1, 2]
            say("right")
        """, environment={"ISTHMUS_THREADS": threads})
    assert out == "right\n" * 3


def test_what_another_handler_raises_ends_it_too_and_what_cannot_be_pickled_changes_nothing(scripts):
    out = run(scripts, """
        def raises(*_):
            raise TimeoutError
        signal.signal(signal.SIGALRM, raises)
        with isthmus.World() as world:
            comm, rank = world.comm, world.rank
            if rank == 0:
                signal.setitimer(signal.ITIMER_REAL, 0.2)
                try:
                    comm.allgather_object("first")
                except TimeoutError:
                    say("raised")
                try:
                    comm.allgather_object(lambda: 0)
                except Exception as error:
                    assert "pickle" in str(error), error
                place("gone").touch()
            else:
                wait_for("gone")
                assert comm.allgather_object("first") == ["first"] * 3
            assert comm.allgather_object("second") == ["second"] * 3
        """)
    assert out == "raised\n"


def test_each_communicator_has_an_order_of_its_own(scripts):
    """A call that the others never make holds up those of its communicator alone."""
    out = run(scripts, """
        with isthmus.World() as world:
            comm, rank = world.comm, world.rank
            other = comm.dup()
            if rank == 0:
                interrupted(lambda: other.allgather_object("nobody comes"))
            for number in range(3):
                assert comm.allgather_object(number) == [number] * 3
            assert comm.dup().allgather_object(rank) == [0, 1, 2]
            if rank == 0:
                began = time.monotonic()
                world.close()
                assert time.monotonic() - began < 1.5
            say("right")
        """)
    assert out == "right\n" * 3


def test_when_the_world_is_closed_before_the_others_come_they_hear_of_it(scripts):
    out = run(scripts, """
        world = isthmus.World()
        if world.rank == 0:
            interrupted(lambda: world.comm.bcast_object(None, 1))
            world.close()
            place("gone").touch()
        else:
            wait_for("gone")
            try:
                # Of this one it may be over before anybody looks for rank 0.
                world.comm.bcast_object("x" * 100000, 1)
                world.comm.barrier()
            except isthmus.Error as error:
                assert "rank 0" in str(error) and "left" in str(error), error
                say("told")
        """)
    assert out.count("told\n") == 2


@pytest.mark.parametrize("thread", ("main", "another"))
def test_a_request_with_steps_is_under_way_while_a_communicator_is_made(scripts, thread):
    """The others wait for it first, and come to the communicator then."""
    out = run(scripts, f"""
        def in_thread(call):
            one = threading.Thread(target=call)
            one.start()
            one.join()
        with isthmus.World() as world:
            comm, total = world.comm, np.zeros(3)
            request = comm.iallreduce(np.full(3, 2.0), total, isthmus.Operation(np.multiply))
            if world.rank != 0:
                time.sleep(0.3)
                request.wait()
            comm.dup() if "{thread}" == "main" else in_thread(comm.dup)
            request.wait()
            say(str(total[2]))
        """)
    assert out == "8.0\n" * 3
