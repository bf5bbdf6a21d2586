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


def test_what_is_no_report_is_named(tmp_path):
    other = tmp_path / "other.json"
    other.write_text('{"colour": "blue"}')
    for file, words in ((other, "holds no report of isthmus bench"), (tmp_path / "absent.json", "cannot be read as JSON")):
        done = plot(str(file), "--out", str(tmp_path / "out"))
        assert done.returncode == 1
        assert str(file) in done.stderr and words in done.stderr and "isthmus bench" in done.stderr
