"""The example in the documentation is the one that runs."""
import re

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


def test_the_example_of_halos_is_right(scripts):
    for ranks in (1, 2, 4):
        out = scripts.run(ranks, str(SOURCES / "examples" / "heat3d" / "heat3d.py"))
        found = re.findall(r"rank (\d): (\d+) cells are right", out)
        assert sorted(int(rank) for rank, _ in found) == list(range(ranks)), out
        assert sum(int(cells) for _, cells in found) == 24**3


def test_the_document_shows_the_example_of_halos():
    blocks = re.findall(r"```python\n(.*?)```", (SOURCES / "docs" / "halo.md").read_text(), flags=re.DOTALL)
    assert (SOURCES / "examples" / "heat3d" / "heat3d.py").read_text() in blocks
