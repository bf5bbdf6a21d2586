"""The example in the documentation is the one that runs."""
import os
import re

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


def test_the_document_shows_the_example():
    blocks = re.findall(r"```python\n(.*?)```", (SOURCES / "docs" / "python.md").read_text(), flags=re.DOTALL)
    assert (SOURCES / "examples" / "hello" / "hello.py").read_text() in blocks


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
    blocks = re.findall(r"```python\n(.*?)```", (SOURCES / "docs" / "halo.md").read_text(), flags=re.DOTALL)
    assert (SOURCES / "examples" / "heat3d" / "heat3d.py").read_text() in blocks
