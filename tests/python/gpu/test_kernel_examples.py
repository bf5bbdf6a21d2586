"""The examples of kernels in Python, each rank on a GPU of its own."""
import importlib.util
import os
import pathlib
import re

import pytest

import devices

FOLDER = pathlib.Path(__file__).resolve().parents[3] / "examples" / "in_kernel"


@pytest.mark.parametrize("name", ["cupy_ring.py", "numba_ring.py", "triton_ring.py"])
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
