"""Proves that the record and its targets come from the files, with the right verdicts. Argument: the folder tools/."""
import json
import pathlib
import subprocess
import sys
import tempfile

TOOLS = pathlib.Path(sys.argv[1])
MIB = 1 << 20


def bench(benchmark, source, target, rows, **more):
    return {"machine": "Processor X, 32 processors, 2 x NVIDIA H200", "commit": "0123456789ab", "date": "2026-11-21T10:00:00Z",
            "benchmark": benchmark, "from": source, "to": target,
            "rows": [{"bytes": size, "median_us": us, "p10_us": us, "p90_us": us, "gbps": gbps, "path": "shm/ring"}
                     for size, us, gbps in rows],
            "staged": False, "limits": {"cache_line_us": 0.1, "memcpy_gbps": 10.0}, **more}


def record(folder, benches):
    source, measured = folder / "out", folder / "measured"
    source.mkdir(exist_ok=True)
    (source / "bench.json").write_text(json.dumps(benches))
    (source / "stencil.json").write_text("[]")
    done = subprocess.run([sys.executable, TOOLS / "record_measurements.py", source, "--measured", measured],
                          capture_output=True, text=True)
    return done, measured


def verdicts(measured):
    return {(one["row"], one["measure"]): one for one in json.loads((measured / "targets.json").read_text())}


with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    done, measured = record(folder, [
        bench("latency", "host", "host", [(8, 0.12, 0.07)]),
        bench("bandwidth", "host", "host", [(8, 0.1, 0.08), (4 * MIB, 500.0, 8.0)]),
        bench("bandwidth", "cuda:0", "cuda:1", [(MIB, 14.0, 75.0), (4 * MIB, 100.0, 40.0)]),
        bench("bandwidth", "cuda:0", "cuda:1", [(MIB, 100.0, 10.0), (4 * MIB, 400.0, 10.0)], staged=True),
    ])
    assert done.returncode == 0, done.stderr
    stem = "2026-11-21-2x-nvidia-h200"
    assert (measured / f"{stem}-messages.json").exists() and (measured / f"{stem}-stencil2d.json").exists()
    found = verdicts(measured)
    assert found["10", "host to host, 8 B, one way"]["pass"] is True
    assert found["10", f"host to host, {4 * MIB} B, bandwidth"]["pass"] is False
    assert found["11", "device to device, 1 MiB, bandwidth (cuda:0 to cuda:1)"]["pass"] is True
    missed = found["11", "device to device, 4 MiB, bandwidth (cuda:0 to cuda:1)"]
    assert missed["pass"] is False and missed["peer"] == 10.0 and missed["peer_name"] == "staged by hand"
    for one in found.values():
        assert {"row", "measure", "ours", "peer", "peer_name", "limit", "unit", "target", "pass", "machine", "commit",
                "date"} == set(one), one
    text = (measured / "README.md").read_text()
    assert f"{stem}-messages.json" in text and "| 11 |" in text, text

    # The same again changes nothing; text around the tables stays.
    (measured / "README.md").write_text("Before.\n" + text + "After.\n")
    done, measured = record(folder, json.loads((folder / "out" / "bench.json").read_text()))
    again = (measured / "README.md").read_text()
    assert again == "Before.\n" + text + "After.\n", again

    # What cannot be attributed to one commit is no record.
    for commit in ("unknown", "0123456789ab-changed"):
        done, _ = record(folder, [bench("latency", "host", "host", [(8, 0.12, 0.07)], commit=commit)])
        assert done.returncode != 0 and "commit" in done.stderr, done

    # A check is a record of its own, and no measurement.
    targets = (measured / "targets.json").read_text()
    demo = {"kind": "cuda", "rows": [{"exchange": "isthmus", "verified": True, "largest_error": 1e-6, "tolerance": 1e-5}]}
    check = {"machine": "Processor X, 32 processors, 2 x NVIDIA H200", "commit": "0123456789ab", "date": "2026-11-21T10:00:00Z",
             "tests": {"passed": 700, "failed": ["Ring.breaks"], "skipped": ["Other"]}, "demo": demo,
             "steps": [{"step": "every test", "passed": False, "seconds": 9}, {"step": "demo", "passed": True, "seconds": 1}]}
    (folder / "out" / "check.json").write_text(json.dumps(check))
    done, measured = record(folder, [])
    assert done.returncode == 0, done.stderr
    text = (measured / "README.md").read_text()
    assert json.loads((measured / f"{stem}-check.json").read_text()) == check
    assert "| 700 | Ring.breaks | 1 | isthmus on cuda verified (error 1.0e-06, tolerance 1.0e-05) | every test |" in text, text
    assert (measured / "targets.json").read_text() == targets
    (folder / "out" / "check.json").unlink()

    long = {**{name: check[name] for name in ("machine", "commit", "date")}, "set": "long",
            "steps": [{"step": "build, tsan", "passed": True, "seconds": 40}, {"step": "tests, tsan", "passed": False, "seconds": 2}]}
    (folder / "out" / "tests-long.json").write_text(json.dumps(long))
    done, measured = record(folder, [])
    assert done.returncode == 0 and (measured / f"{stem}-test-long.json").exists(), done.stderr
    assert "| 1 | tests, tsan | 42 |" in (measured / "README.md").read_text()
    (folder / "out" / "tests-long.json").unlink()

    (folder / "out" / "bench.json").unlink()
    done = subprocess.run([sys.executable, TOOLS / "record_measurements.py", folder / "out", "--measured", folder / "measured"],
                          capture_output=True, text=True)
    assert done.returncode != 0 and "bench.json is not there" in done.stderr, done

done = subprocess.run([TOOLS / "gpu_run.sh"], capture_output=True, text=True)
assert done.returncode == 2 and "tools/gpu_run.sh check" in done.stdout, done
print("recorded as it was measured")
