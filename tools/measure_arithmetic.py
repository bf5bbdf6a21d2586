#!/usr/bin/env python3
"""From which size on an OpenCL device should compute reductions of its memory itself, on this machine: the same calls with all arithmetic
on the host and with all of it on the device, in turn.

    tools/measure_arithmetic.py ISTHMUS OUT_FILE [ROUNDS [DEVICE]]      DEVICE: such as opencl:1 (each rank's own)

As `tools/gpu_run.sh arithmetic` does of CUDA devices: where rank 0 alone has the device (rank 1 host memory), and where both have it. A rank's
part of an allreduce is half of the vector. Writes one list of reports, which tools/record_measurements.py files, and prints the table.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "gpu_run"))
import arithmetic_record  # noqa: E402

NAMES = ("device_arithmetic_above", "device_arithmetic_above_shared", "device_arithmetic_above_processor", "device_arithmetic_above_opencl",
         "device_arithmetic_above_opencl_shared")


def profile(folder, where, above):
    """A profile by which so many bytes are computed on the host."""
    file = folder / f"profile-{where}.json"
    file.write_text(json.dumps({"isthmus_profile": 1, "machine": "any", "message": dict.fromkeys(NAMES, above), "collective": {}}))
    return str(file)


def measure(isthmus, folder, call, whose, device, variables):
    out = folder / "report.json"
    kinds = ["--kind", device] if whose == "shared" else ["--from", device, "--to", "host"]
    done = subprocess.run([isthmus, "run", "-n", "2", isthmus, "bench", "collective", call, *kinds, "--min", "4KiB", "--max", "64MiB", "--quick",
                           "--json", str(out)], env={**os.environ, **variables}, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode != 0:
        sys.exit(f"measure_arithmetic: {call}, {whose}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return json.loads(out.read_text())


def main():
    if len(sys.argv) not in (3, 4, 5):
        sys.exit(__doc__)
    isthmus, to, rounds = sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 3
    device = sys.argv[4] if len(sys.argv) > 4 else "opencl"
    reports = []
    with tempfile.TemporaryDirectory() as made:
        folder = pathlib.Path(made)
        profiles = {"host": profile(folder, "host", 1e12), "device": profile(folder, "device", 0)}
        for number in range(1, rounds + 1):
            for whose in ("own", "shared"):
                for call in ("allreduce", "reduce_scatter"):
                    for where, file in profiles.items():
                        found = measure(isthmus, folder, call, whose, device, {"ISTHMUS_PROFILE": file})
                        reports.append({**found, "where": where, "whose": whose, "round": number})
    to.parent.mkdir(parents=True, exist_ok=True)
    to.write_text(json.dumps(reports, indent=1) + "\n")
    print("\n".join(arithmetic_record.lines_of(reports)))


if __name__ == "__main__":
    main()
