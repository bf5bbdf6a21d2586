"""Pictures of benchmarks: every kind of report, the page that holds them, and files that are none."""
import base64
import json
import os
import re
import subprocess
import sys

import pytest

pytest.importorskip("matplotlib", reason="not covered here: pictures of benchmarks; matplotlib is not installed")


def bench(*words, **variables):
    inherited = {name: value for name, value in os.environ.items() if not re.match("ISTHMUS_(RANK|SIZE|BOOT_FD)|RANK|WORLD_SIZE", name)}
    subprocess.run([os.environ["COMMAND_UNDER_TEST"], "bench", *words], check=True, capture_output=True, timeout=120,
                   env={**inherited, **variables})


def plot(*words):
    return subprocess.run([sys.executable, "-m", "isthmus.plot", *words], capture_output=True, text=True, timeout=120, check=False)


def test_every_report_becomes_a_picture(tmp_path):
    files = {name: str(tmp_path / f"{name}.json") for name in ("latency", "bandwidth", "bidirectional", "sweep", "limits")}
    for name in ("latency", "bandwidth", "bidirectional"):
        bench(name, "--iterations", "20", "--max", "4KiB", "--json", files[name])
    bench("sweep", "naming", "--iterations", "2", "--max", "2KiB", "--json", files["sweep"])
    bench("limits", "--from", "host", "--to", "host", "--quick", "--max", "4KiB", "--json", files["limits"])
    out = tmp_path / "made" / "here"
    done = plot(*files.values(), "--out", str(out))
    assert done.returncode == 0, done.stderr
    pictures = {"latency-host-host", "bandwidth-host-host", "bidirectional-host-host", "sweep-naming-latency-host-host", "sweep-naming-bandwidth-host-host"}
    assert {file.name for file in out.iterdir()} == {f"{name}.png" for name in pictures} | {"index.html"}
    page = (out / "index.html").read_text()
    for name in pictures:
        made = (out / f"{name}.png").read_bytes()
        assert made.startswith(b"\x89PNG\r\n") and len(made) > 5000
        assert base64.b64encode(made).decode() in page
    # The limit of a memcpy is drawn beside the windows, and every figure is in a table.
    assert "memcpy, one thread" in page and "buffers=auto" in page
    for row in json.loads((tmp_path / "bidirectional.json").read_text())["rows"]:
        # In GB/s, both ways together.
        limit = row["gbps"] * row["limit_ratio"]
        found = re.search(rf"<summary>limit</summary>.*?<td>{row['bytes']}<td>([0-9.]+)", page)
        assert found and abs(float(found[1]) / limit - 1) < 0.1, (found, limit)
    for row in json.loads((tmp_path / "latency.json").read_text())["rows"]:
        assert f"<td>{row['bytes']}<td>{row['median_us']:.3f}" in page


def tables_of(page):
    """The sizes of each curve, by what it is called; curves of one picture have different names."""
    found = {}
    for name, rest in re.findall(r"<h2>(.*?)</h2>(.*?)(?=<h2>|$)", page, flags=re.DOTALL):
        for label, cells in re.findall(r"<summary>(.*?)</summary>(.*?)</table>", rest):
            assert (name, label) not in found
            found[name, label] = [int(size) for size in re.findall(r"<tr><td>(\d+)<td>", cells)]
    return found


def test_what_has_several_curves_has_each_for_itself(tmp_path):
    """Shapes, blocks, directions, packings and operations: no size twice in one curve, and where there are many, a picture for each shape."""
    bench("pack", "--quick", "--sizes", "1KiB,64KiB", "--json", str(tmp_path / "pack.json"))
    bench("layout", "vector", "--quick", "--sizes", "64KiB,128KiB", "--blocks", "1KiB", "--json", str(tmp_path / "layout.json"))
    bench("halo", "--quick", "--sizes", "4,8", "--json", str(tmp_path / "halo.json"))
    bench("halo", "--quick", "--sizes", "4,8", "--ranks", "3", "--json", str(tmp_path / "halo3.json"))
    bench("one-sided", "--quick", "--iterations", "4", "--json", str(tmp_path / "one-sided.json"))
    done = plot(*map(str, tmp_path.glob("*.json")), "--out", str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    tables = tables_of((tmp_path / "out" / "index.html").read_text())
    assert all(sizes == sorted(set(sizes)) and sizes for sizes in tables.values())
    shapes = [f"pack-{shape}-host-host" for shape in ("vector", "hvector", "subarray", "indexed", "struct")]
    assert {name for name, _ in tables} == {*shapes, "layout-host-host", "halo-host-host", "one-sided-host-host"}
    assert {file.stem for file in (tmp_path / "out").glob("*.png")} == {name for name, _ in tables}
    wanted = {(shape, f"blocks of {block} B, {way}") for shape in shapes for block in (4, 16, 64, 256, 1024, 4096) for way in ("pack", "unpack")}
    wanted |= {("layout-host-host", f"vector, blocks of 1024 B, {way}") for way in (
        "from strided, into contiguous", "from contiguous, into strided", "from strided, into strided")}
    wanted |= {("halo-host-host", f"{packing}, {ranks} ranks") for ranks in (2, 3) for packing in (
        "calls, messages", "layouts, messages", "loops, messages", "auto, messages", "auto, one-sided")}
    rows = json.loads((tmp_path / "one-sided.json").read_text())["rows"]
    wanted |= {("one-sided-host-host", f"{row['operation']}, {row['path']}") for row in rows}
    assert {(name, label) for name, label in tables if not label.startswith("limit of ")} == wanted
    assert all(label.removeprefix("limit of ") in [other for same, other in wanted if same == name] for name, label in tables)
    # A barrier is in the table, and has no place on an axis of bytes.
    assert tables["one-sided-host-host", "barrier, barrier of the heap"] == [0]
    assert "not drawn: one-sided-host-host: barrier, barrier of the heap has no row of one byte or more" in done.stderr


def test_what_cannot_be_drawn_is_refused_by_name(tmp_path):
    report = {"benchmark": "tides", "from": "host", "to": "host"}
    without, empty = tmp_path / "without.json", tmp_path / "empty.json"
    without.write_text(json.dumps({**report, "rows": [{"bytes": 1, "height": 2}]}))
    empty.write_text(json.dumps({**report, "rows": [{"bytes": 0, "median_us": 2}]}))
    for file, words in ((without, "row 0 of the report of tides cannot be drawn: it has neither bytes with median_us"), (empty, "tides has no row of one byte")):
        done = plot(str(file), "--out", str(tmp_path / "out"))
        assert done.returncode == 1 and str(file) in done.stderr and words in done.stderr and "Traceback" not in done.stderr


def test_without_matplotlib_it_says_what_is_missing(tmp_path):
    file = tmp_path / "report.json"
    file.write_text(json.dumps({"benchmark": "latency", "from": "host", "to": "host", "rows": [{"bytes": 1, "median_us": 2}]}))
    code = "import sys; sys.modules['matplotlib'] = None; from isthmus import plot; plot.main(sys.argv[1:])"
    done = subprocess.run([sys.executable, "-c", code, str(file), "--out", str(tmp_path / "out")], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "isthmus.plot: matplotlib, which draws the pictures, cannot be imported" in done.stderr
    assert "pip install matplotlib" in done.stderr and not (tmp_path / "out").exists()


def test_what_is_no_report_is_named(tmp_path):
    other = tmp_path / "other.json"
    other.write_text('{"colour": "blue"}')
    for file, words in ((other, "holds no report of isthmus bench"), (tmp_path / "absent.json", "cannot be read as JSON")):
        done = plot(str(file), "--out", str(tmp_path / "out"))
        assert done.returncode == 1
        assert str(file) in done.stderr and words in done.stderr and "isthmus bench" in done.stderr
