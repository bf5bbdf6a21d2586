"""The examples of kernels in Python, each rank on a GPU of its own."""
import importlib.util
import os
import pathlib
import re
import subprocess
import sys

import pytest

import devices

FOLDER = pathlib.Path(__file__).resolve().parents[3] / "examples" / "in_kernel"


# With NumPy 2.5 Numba needs a name that a program of its own would not give it.
@pytest.mark.parametrize("name", ["numba_ring.py"])
def test_the_numbers_go_round(world, comm, capsys, name):
    if "ISTHMUS_TEST_FAKE_CUDA" in os.environ:
        pytest.skip("not covered here: examples of kernels; they would take the invented driver for a real one")
    devices.give_numba_its_names()
    found = importlib.util.spec_from_file_location(name[:-3], FOLDER / name)
    example = importlib.util.module_from_spec(found)
    try:
        found.loader.exec_module(example)
    except SystemExit:
        pass
    else:
        example.main(world)
    out = capsys.readouterr().out
    if out.startswith("SKIPPED: "):
        pytest.skip(f"not covered here: {out[9:].strip()}")
    count = re.fullmatch(rf"rank {comm.rank}: (\d+) of (\d+) numbers are right, status 0\n", out)
    assert count and count[1] == count[2] != "0", out


@pytest.mark.parametrize("name", ["cupy_ring.py", "triton_ring.py"])
def test_the_numbers_go_round_as_a_user_runs_it(comm, name):
    """In processes of their own: what else has made contexts in this one is none of theirs."""
    if "ISTHMUS_TEST_FAKE_CUDA" in os.environ:
        pytest.skip("not covered here: examples of kernels; they would take the invented driver for a real one")
    if comm.rank == 0:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("ISTHMUS_")}
        done = subprocess.run([os.environ.get("COMMAND_UNDER_TEST", "isthmus"), "run", "-n", str(comm.size), sys.executable, str(FOLDER / name)], env=clean,
                              capture_output=True, text=True, timeout=100)
        said = done.stdout + done.stderr
    else:
        said = None
    said = comm.bcast_object(said, 0)
    if "SKIPPED: " in said:
        pytest.skip(f"not covered here: {said.strip()}")
    right = re.findall(r"(\d+) of (\d+) numbers are right, status 0", said)
    assert len(right) == comm.size and all(one == all_ != "0" for one, all_ in right), said
