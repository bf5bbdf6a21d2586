"""The example in the documentation is the one that runs."""
import os
import re
import textwrap

import pytest

from conftest import SOURCES


def test_the_example_runs_and_is_short(scripts):
    example = SOURCES / "examples" / "hello" / "hello.py"
    assert len(example.read_text().splitlines()) <= 20
    for ranks in (1, 2, 4):
        out = scripts.run(ranks, str(example))
        lines = re.findall(r"rank (\d): (\d+) of (\d+) numbers from rank (\d) are right", out)
        assert sorted(int(rank) for rank, *_ in lines) == list(range(ranks)), out
        assert all(right == count and int(count) > 0 and (int(rank) - 1) % ranks == int(source)
                   for rank, right, count, source in lines)


def blocks_of(document):
    return re.findall(r"```python\n(.*?)```", (SOURCES / "docs" / document).read_text(), flags=re.DOTALL)


def test_the_document_shows_the_example():
    assert (SOURCES / "examples" / "hello" / "hello.py").read_text() in blocks_of("python.md")


def check_halos(scripts, ranks, library, environment=None):
    out = scripts.run(ranks, str(SOURCES / "examples" / "heat3d" / "heat3d.py"), environment=environment,
                      arguments=[] if library == "numpy" else [library])
    found = re.findall(rf"rank (\d): (\d+) cells of {library} are right", out)
    assert sorted(int(rank) for rank, _ in found) == list(range(ranks)), out
    assert sum(int(cells) for _, cells in found) == 24**3


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_the_example_of_halos_is_right(scripts, ranks):
    check_halos(scripts, ranks, "numpy")


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_the_example_of_halos_is_right_with_what_stands_in_for_cupy(scripts, ranks):
    """Arrays that nothing but the CUDA array interface shows, in memory that the processor does not reach."""
    if "FAKE_CUDA_FOLDER" not in os.environ:
        pytest.skip("not covered here: the example of halos with device memory; this build has no driver without a GPU")
    folders = [str(SOURCES / "tests" / "python" / "stand_in"), os.environ.get("PYTHONPATH", "")]
    check_halos(scripts, ranks, "cupy", {"PYTHONPATH": ":".join(folders), "LD_LIBRARY_PATH": os.environ["FAKE_CUDA_FOLDER"]})


@pytest.mark.parametrize("ranks", [1, 2])
def test_the_example_of_halos_is_right_with_cupy(scripts, ranks):
    try:
        import cupy
        devices = cupy.cuda.runtime.getDeviceCount()
    except Exception as error:  # without a driver it raises its own
        pytest.skip(f"not covered here: the example of halos with CuPy ({error})")
    if devices == 0:
        pytest.skip("not covered here: the example of halos with CuPy; there is no device")
    check_halos(scripts, ranks, "cupy")


def test_the_example_of_halos_is_short():
    """Blank lines, comments and what the text at the top says are no code."""
    text = (SOURCES / "examples" / "heat3d" / "heat3d.py").read_text().split('"""', 2)[2]
    assert len([line for line in text.splitlines() if line.strip() and not line.strip().startswith("#")]) <= 20


def test_the_document_shows_the_example_of_halos():
    assert (SOURCES / "examples" / "heat3d" / "heat3d.py").read_text() in blocks_of("halo.md")


def test_halo_fields_in_the_documents_run(scripts):
    """The other blocks with them: the one of docs/halo.md is a program, in that of docs/python.md the world is there."""
    program, = (block for block in blocks_of("halo.md") if "isthmus.HaloField(pressure" in block)
    lines, = (block for block in blocks_of("python.md") if "isthmus.HaloField(field" in block)
    inside = "import isthmus, numpy as np\nwith isthmus.World() as world:\n    comm = world.comm\n" + textwrap.indent(lines, "    ")
    inside += "    assert (field[0, 1:-1] == grid.neighbour([-1, 0])).all() and (field[1:-1, -1] == grid.neighbour([0, 1])).all()\n"
    for ranks in (1, 4):
        scripts.run(ranks, program.replace("range(1000)", "range(3)"))
        scripts.run(ranks, inside)
