"""Ctrl-C while a world waits for the other ranks, however these were started."""
import os
import shutil
import socket
import subprocess
import sys

import pytest


@pytest.fixture(autouse=True)
def without_devices(monkeypatch):
    """Their drivers load before a rank looks for the others, and take seconds on a busy machine."""
    monkeypatch.setenv("ISTHMUS_KINDS", "host")


def run_with_variables(script, ranks):
    """Output of ranks that find each other as those of torchrun do."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    running = [subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True,
                                env={**os.environ, "RANK": str(rank), "WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1",
                                     "MASTER_PORT": str(port)}) for rank in range(ranks)]
    try:
        outputs = [each.communicate(timeout=60)[0] for each in running]
        assert [each.returncode for each in running] == [0] * ranks
    finally:
        for each in running:
            each.kill()
            each.wait()
    return "".join(outputs)


@pytest.mark.parametrize("way", ["launcher", "variables"])
@pytest.mark.parametrize("gives_up", [0, 1])
def test_ctrl_c_ends_the_making_of_a_world_and_all_may_make_it_again(scripts, way, gives_up):
    """Rank 2 comes only when the one who gave up and the one who was told have left. Files say how far each is."""
    text = f"""
        import os, pathlib, signal, threading, time
        import isthmus
        rank = int(os.environ.get("ISTHMUS_RANK", os.environ.get("RANK", "0")))
        gives_up = {gives_up}
        sent = []
        def place(name):
            return pathlib.Path(__file__).with_name(name)
        def wait_for(name):
            while not place(name).exists():
                time.sleep(0.01)
            time.sleep(0.5)
        def interrupt():
            wait_for(f"here-{{1 - gives_up}}")
            sent.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGINT)
        def say(text):
            print(text + "\\n", end="", flush=True)
        if rank == gives_up:
            threading.Thread(target=interrupt).start()
        if rank == 2:
            wait_for("gone")
        place(f"here-{{rank}}").touch()
        began = time.monotonic()
        try:
            isthmus.World()
            say(f"{{rank}} came back")
        except KeyboardInterrupt:
            say(f"{{rank}} late" if time.monotonic() - sent[0] > 4 else f"{{rank}} interrupted")
            place("gone").touch()
        except isthmus.Error as error:
            named = f"rank {{gives_up}} gave up" in str(error) and "Ctrl-C" in str(error)
            soon = time.monotonic() - began < 5
            say(f"{{rank}} told {{error.code_name}}" if named and soon else f"{{rank}} {{error}}")
        with isthmus.World() as world:
            got = world.comm.allgather_object(world.rank * 7)
            assert got == [0, 7, 14], got
            say(f"{{rank}} again")
        """
    out = scripts.run(3, text) if way == "launcher" else run_with_variables(scripts.write(text), 3)
    told = [f"{rank} told IST_ERR_BOOT" for rank in range(3) if rank != gives_up]
    assert sorted(out.split("\n")[:-1]) == sorted([f"{gives_up} interrupted"] + told + ["0 again", "1 again", "2 again"])


@pytest.mark.parametrize("way", ["launcher", "variables"])
@pytest.mark.parametrize("gives_up", [0, 1])
def test_who_gives_up_before_the_other_came_meets_it_at_the_same_world(scripts, way, gives_up):
    text = f"""
        import os, pathlib, signal, threading, time
        import isthmus
        gone = pathlib.Path(__file__).with_name("gone")
        rank = int(os.environ.get("ISTHMUS_RANK", os.environ.get("RANK", "0")))
        if rank == {gives_up}:
            for _ in range(2):
                threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
                try:
                    isthmus.World()
                except KeyboardInterrupt:
                    print("interrupted", flush=True)
            gone.touch()
        while not gone.exists():
            time.sleep(0.01)
        for _ in range(2):
            with isthmus.World() as world:
                assert world.comm.allgather_object(world.rank * 7) == [0, 7]
        """
    out = scripts.run(2, text) if way == "launcher" else run_with_variables(scripts.write(text), 2)
    assert out == "interrupted\n" * 2


@pytest.mark.skipif(shutil.which("mpirun.openmpi") is None, reason="Debian's Open MPI is not installed")
def test_ctrl_c_ends_the_making_of_a_world_under_pmix_and_it_goes_on_later(scripts):
    script = scripts.write("""
        import os, pathlib, signal, threading, time
        import isthmus
        gone = pathlib.Path(__file__).with_name("gone")
        rank = int(os.environ["PMIX_RANK"])
        if rank == 0:
            for _ in range(2):
                sent = []
                def interrupt():
                    sent.append(time.monotonic())
                    os.kill(os.getpid(), signal.SIGINT)
                threading.Timer(0.4, interrupt).start()
                try:
                    isthmus.World()
                except KeyboardInterrupt:
                    print("late" if time.monotonic() - sent[0] > 4 else "interrupted", flush=True)
            gone.touch()
        while rank == 2 and not gone.exists():
            time.sleep(0.01)
        for _ in range(2):
            with isthmus.World() as world:
                assert world.comm.allgather_object(world.rank * 7) == [0, 7, 14]
        """)
    done = subprocess.run(["mpirun.openmpi", "--oversubscribe", "--bind-to", "none", "-n", "3", sys.executable, script],
                          capture_output=True, text=True, timeout=60,
                          env={**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"})
    assert (done.returncode, done.stdout) == (0, "interrupted\n" * 2), done.stderr


def test_signals_that_end_nothing_do_not_end_the_making_of_a_world(scripts):
    out = scripts.run(2, """
        import os, signal, time
        import isthmus
        heard = []
        signal.signal(signal.SIGALRM, lambda *_: heard.append(1))
        if os.environ["ISTHMUS_RANK"] == "0":
            signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)
        else:
            time.sleep(1)
        with isthmus.World() as world:
            signal.setitimer(signal.ITIMER_REAL, 0)
            heard = world.comm.allgather_object(len(heard))
            if world.rank == 0:
                print(heard[0] >= 3, heard[1])
        """)
    assert out == "True 0\n"


CALLS = {"dup": "comm.dup()", "split": "comm.split(0)", "split_local": "comm.split_local()", "cart": "comm.cart_create([comm.size])",
         "group": "comm.create_group(range(comm.size))", "heap": "comm.heap('host', 1 << 16)", "array": "heap.array(64)",
         "grow": "heap.grow(2 << 20)"}


@pytest.mark.parametrize("call", CALLS)
def test_ctrl_c_ends_the_wait_of_calls_that_all_ranks_make(scripts, call):
    """Rank 1 comes when rank 0 was called away, and meets the call that goes on there; the next one is made by both as usual."""
    out = scripts.run(2, f"""
        import os, pathlib, signal, threading, time
        import isthmus
        gone = pathlib.Path(__file__).with_name("gone")
        with isthmus.World() as world:
            comm = world.comm
            heap = comm.heap("host", 1 << 20)
            sent = []
            def interrupt():
                sent.append(time.monotonic())
                os.kill(os.getpid(), signal.SIGINT)
            if world.rank == 0:
                threading.Timer(0.3, interrupt).start()
                try:
                    {CALLS[call]}
                    print("came back")
                except KeyboardInterrupt:
                    print("late" if time.monotonic() - sent[0] > 1 else "interrupted")
                gone.touch()
            else:
                while not gone.exists():
                    time.sleep(0.01)
                time.sleep(0.2)
                {CALLS[call]}
            made = {CALLS[call]}
            if hasattr(made, "allgather_object"):
                assert made.allgather_object(world.rank * 7) == [0, 7]
            assert comm.allgather_object(world.rank * 7) == [0, 7]
        """)
    assert out == "interrupted\n"


@pytest.mark.parametrize("call", ["sub.split(0)", "sub.heap('host', 1 << 16)", "sub.dup()"])
def test_a_call_that_goes_on_keeps_what_it_works_on(scripts, call):
    """Its communicator is dropped, and freed as soon as nobody needs it, while rank 1 is not there yet."""
    out = scripts.run(2, f"""
        import gc, os, pathlib, signal, threading, time
        import isthmus
        gone = pathlib.Path(__file__).with_name("gone")
        with isthmus.World() as world:
            comm = world.comm
            sub = comm.split(0)
            if world.rank == 0:
                threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
                try:
                    {call}
                except KeyboardInterrupt:
                    print("interrupted")
                del sub
                gc.collect()
                for _ in range(3):   # sweeps
                    comm.sendrecv(bytes(1), 0, bytearray(1), 0)
                gone.touch()
            else:
                while not gone.exists():
                    time.sleep(0.01)
                time.sleep(0.2)
                {call}
            assert comm.dup().allgather_object(world.rank * 7) == [0, 7]
        """)
    assert out == "interrupted\n"


def test_closing_a_heap_that_waits_for_a_call_before_is_done_once_that_is_over(scripts):
    out = scripts.run(2, """
        import os, pathlib, signal, threading, time
        import isthmus
        gone = pathlib.Path(__file__).with_name("gone")
        with isthmus.World() as world:
            heap = world.comm.heap("host", 1 << 20)
            if world.rank == 0:
                for call in (lambda: heap.grow(2 << 20), heap.close):   # the second one waits for the first
                    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
                    try:
                        call()
                    except KeyboardInterrupt:
                        print("interrupted", heap.closed)
                gone.touch()
            else:
                while not gone.exists():
                    time.sleep(0.01)
                time.sleep(0.2)
                heap.grow(2 << 20)
            heap.close()
            print(heap.closed)
        """)
    assert out.count("interrupted False") == 2 and out.count("True") == 2, out


@pytest.mark.parametrize("way", ["messages", "one-sided"])
def test_ctrl_c_ends_the_wait_for_a_halo_and_the_exchange_goes_on(scripts, way):
    """Rank 1 starts only when rank 0 was interrupted twice: in exchange(), whose Halo is dropped then, and in wait(), which is called again."""
    out = scripts.run(2, f"""
        import os, pathlib, signal, threading, time
        import numpy as np
        import isthmus
        gone = pathlib.Path(__file__).with_name("gone")
        def interrupted(wait):
            sent = []
            def interrupt():
                sent.append(time.monotonic())
                os.kill(os.getpid(), signal.SIGINT)
            timer = threading.Timer(0.3, interrupt)
            timer.start()
            try:
                wait()
            except KeyboardInterrupt:
                print("late" if time.monotonic() - sent[0] > 4 else "interrupted", flush=True)
        with isthmus.World() as world:
            grid = world.comm.halo_grid([2], [True])
            array = np.full(6, -1.0)
            array[1:5] = 10 * world.rank + np.arange(4)
            halo = grid.halo([isthmus.HaloField(array, [(1, 1)])], way={way!r})
            given_up = grid.halo([isthmus.HaloField(array.copy(), [(1, 1)])])
            if world.rank == 0:
                given_up.pack()
                interrupted(given_up.exchange)
                del given_up
                halo.pack()
                halo.start_exchange()
                assert not halo.test()
                interrupted(halo.wait)
                gone.touch()
                halo.wait()
                halo.unpack()
            else:
                while not gone.exists():
                    time.sleep(0.01)
                halo.update()
            other = 10 * (1 - world.rank)
            assert array[0] == other + 3 and array[5] == other, array
            if {way!r} == "one-sided":
                halo.free()
            world.comm.barrier()
        """)
    assert out == "interrupted\n" * 2
