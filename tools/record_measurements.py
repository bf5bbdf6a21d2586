#!/usr/bin/env python3
"""Turns what tools/gpu_run.sh left into the project's record.

    tools/record_measurements.py [IN_DIR] [--measured DIR]
    tools/record_measurements.py --check [--measured DIR]

Of a `bench`, copies bench.json and stencil.json to docs/measured/<date>-<machine>-<name>.json; of a `check`, copies check.json;
of `collectives`, collectives.json; of `peers`, device.json; of `workers`, workers.json; of `arithmetic`, arithmetic.json; of `overlap`, overlap.json; of `isthmus bench halo`, a list of what it wrote, halo.json; of `in-kernel`, in_kernel.json; of tools/layout_record.py, layouts.json; of `one-sided`, one_sided.json; of `workloads`, workloads.json; of `soak` and `replays`, soak.json; of `sanitize`, sanitize.json; of `packs`, packs.json;
of build/, what tools/run_tests.sh left there last, such as tests-quick.json of `make test`; of build/mpi/, what
tools/compare_mpi.sh left in mpi.json; what tools/compare_collectives.py left, host_collectives.json; of build/overlap/, what tools/measure_overlap.py left in overlap.json; of shared.json, a list of
reports of benches by ranks that share a GPU, which are no figures of any target; of *sweep.json and sweeps.json, what `isthmus bench sweep` wrote. Draws up docs/measured/targets.json from the newest benchmarks and comparisons recorded
for each machine (of those beside the peers, for each pair of memories), and rewrites docs/measured/tables.md; without IN_DIR that alone, from what is recorded. Figures are
never typed in. With --check nothing is written: the status is 1 unless targets.json says what the records do.
"""
import argparse
import json
import pathlib
import re
import sys

from device_collectives import device_table
from device_targets import (device_peers_table, from_collectives, from_device_peers, from_streams, from_workers, not_measured, on_one_gpu,
                            stream_table)
from gpu_run.arithmetic_record import arithmetic_table
from gpu_run.packs_record import packs_table
from gpu_run.sanitize_record import sanitize_table
from gpu_run.soak_record import soak_table
from gpu_run.workers_record import workers_table
from halo_record import halo_table
from host_targets import entry, from_benchmarks, from_comparison, host_collectives_table, mpi_table, newest, newest_of_pairs, records
from in_kernel_record import from_in_kernel, in_kernel_table
from layout_record import from_layouts, layout_table
from measure_overlap import overlap_table
from peers_on_record import word
from sweep_record import apart, sweep_name, sweep_table, sweeps_in
from workloads_record import from_workloads, workloads_table

KIB, MIB = 1 << 10, 1 << 20
BEGIN, END = "<!-- tables: generated -->", "<!-- end of tables -->"


def slug(machine):
    """'AMD EPYC 9555, 32 processors, 2 x NVIDIA H200' -> '2x-nvidia-h200'; without a GPU, the processor."""
    parts = [part.strip() for part in machine.split(",")]
    gpus = [part for part in parts if re.match(r"\d+ x ", part)]
    words = " ".join(gpus).replace(" x ", "x ") if gpus else parts[0]
    return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-")


def at(bench, size):
    return next((row for row in bench["rows"] if row["bytes"] == size), None)


class Figures:
    """The benchmarks of one machine and commit."""

    def __init__(self, benches):
        self.benches = benches

    def find(self, benchmark, source, target, staged=False):
        for bench in self.benches:
            if (bench["benchmark"], word(bench["from"]), word(bench["to"])) == (benchmark, source, target) and not on_one_gpu(bench):
                if bool(bench.get("staged")) == staged:
                    return bench
        return None


def staged_entries(figures):
    """Row 11: device to device against staging by hand, from 1 MiB up."""
    ours, staged = figures.find("bandwidth", "cuda", "cuda"), figures.find("bandwidth", "cuda", "cuda", staged=True)
    if not ours or not staged:
        return
    for size in (MIB, 2 * MIB, 4 * MIB):
        mine, theirs = at(ours, size), at(staged, size)
        if mine and theirs:
            yield entry("11", f"device to device, {size // MIB} MiB, bandwidth ({ours['from']} to {ours['to']})", ours,
                        mine["gbps"], "GB/s", ">= 7 x staging by hand", peer=theirs["gbps"], peer_name="staged by hand",
                        passed=mine["gbps"] >= 7 * theirs["gbps"])


def plain_entries(figures):
    """Figures whose peer or limit is not part of these runs: recorded, not judged."""
    wanted = [
        ("3", "latency", "cuda", "cuda", 8, "median_us", "us", ">= 2.2 x faster than Open MPI + UCX"),
        ("4", "latency", "cuda", "cuda", 64 * KIB, "median_us", "us", "<= 1.05 x (copy to peer + sync + 0.3 us)"),
        ("4", "latency", "cuda", "cuda", 4 * MIB, "median_us", "us", "<= 1.05 x (copy to peer + sync + 0.3 us)"),
        ("6", "bandwidth", "cuda", "cuda", 64 * MIB, "gbps", "GB/s", ">= 0.99 x copy engine"),
        ("7", "bandwidth", "pinned", "cuda", 4 * MIB, "gbps", "GB/s", ">= 0.95 x PCIe"),
        ("7", "bandwidth", "cuda", "pinned", 4 * MIB, "gbps", "GB/s", ">= 0.95 x PCIe"),
        ("8", "bandwidth", "host", "cuda", 4 * MIB, "gbps", "GB/s", ">= 2 x Open MPI + UCX"),
        ("8", "bandwidth", "cuda", "host", 4 * MIB, "gbps", "GB/s", ">= 2 x Open MPI + UCX"),
        ("7", "latency", "pinned", "cuda", 4 * MIB, "median_us", "us", ">= 15 x faster than Open MPI + UCX"),
        ("7", "latency", "cuda", "pinned", 4 * MIB, "median_us", "us", ">= 15 x faster than Open MPI + UCX"),
        ("8", "latency", "host", "cuda", 4 * MIB, "median_us", "us", ">= 10 x faster than Open MPI + UCX"),
        ("8", "latency", "cuda", "host", 4 * MIB, "median_us", "us", ">= 10 x faster than Open MPI + UCX"),
        ("9", "latency", "host", "cuda", 8, "median_us", "us", "<= 1.1 x the bare copy"),
        ("9", "latency", "cuda", "host", 8, "median_us", "us", "<= 1.1 x the bare copy"),
    ]
    for row, benchmark, source, target, size, name, unit, goal in wanted:
        bench = figures.find(benchmark, source, target)
        if bench and at(bench, size):
            yield entry(row, f"{bench['from']} to {bench['to']}, {size} B, {benchmark}", bench, at(bench, size)[name], unit, goal)


def targets(measured):
    entries, comparisons, beside = [], newest(measured, "mpi"), newest_of_pairs(measured, "device-peers")
    for compared in comparisons.values():
        entries.extend(from_comparison(compared))
    for compared in beside.values():
        entries.extend(from_device_peers(compared))
    for machine, reports in newest(measured, "streams").items():
        if not any(one["measure"] == "stream-latency" for one in beside.get(machine, ())):
            entries.extend(from_streams(reports, beside.get(machine, ())))
    for benches in newest(measured, "device-collectives").values():
        entries.extend(from_collectives(benches))
    for machine, reports in newest(measured, "workers").items():
        if not any("worker" in one for one in beside.get(machine, ())):
            entries.extend(from_workers(reports, beside.get(machine, ())))
    entries.extend(not_measured(entries, beside))
    entries.extend([*from_in_kernel(measured), *from_layouts(measured), *from_workloads(measured)])
    for machine, benches in newest(measured, "messages").items():
        figures = Figures(benches)
        parts = [] if machine in comparisons else [from_benchmarks]
        parts += [] if machine in beside else [staged_entries, plain_entries]
        for found in parts:
            entries.extend(found(figures))
    return sorted(entries, key=lambda one: (int(re.match(r"\d+", one["row"])[0]), one["row"], one["measure"], one["machine"]))


def is_collective(bench):
    return any("average_us" in row for row in bench["rows"])


def collective_table(file, benches):
    """Calls of all ranks; messages are in the other table of the file."""
    benches = [bench for bench in benches if is_collective(bench)]
    if not benches:
        return []
    first = benches[0]
    lines = [f"### Collective calls in [{file.name}]({file.name})", "",
             f"{first['machine']}; commit {first['commit']}; {first['date'][:10]}", "",
             "| call | ranks | from | to | 8 B us (p10 to p90) | 64 KiB us | 1 MiB us | 1 MiB us, fastest and slowest rank |",
             "|---|---|---|---|---|---|---|---|"]
    for bench in benches:
        small, middle, large = at(bench, 8), at(bench, 64 * KIB), at(bench, MIB)
        cells = [bench["benchmark"], str(bench["ranks"]), bench["from"], bench["to"],
                 f"{small['median_us']:.2f} ({small['p10_us']:.2f} to {small['p90_us']:.2f})" if small else "",
                 f"{middle['median_us']:.1f}" if middle else "", f"{large['median_us']:.1f}" if large else "",
                 f"{large['min_us']:.1f}, {large['max_us']:.1f}" if large else ""]
        lines.append("| " + " | ".join(cells) + " |")
    return lines + [""]


def bench_table(file, benches):
    calls = collective_table(file, benches)
    benches = [bench for bench in benches if not is_collective(bench)]
    if not benches:
        return calls
    first = benches[0]
    lines = [f"### [{file.name}]({file.name})", "", f"{first['machine']}; commit {first['commit']}; {first['date'][:10]}", "",
             "| benchmark | from | to | by hand | 8 B us (p10 to p90) | 64 KiB us | 4 MiB us | 4 MiB GB/s | best GB/s | path at 4 MiB |",
             "|---|---|---|---|---|---|---|---|---|---|"]
    for bench in benches:
        small, middle, large = at(bench, 8), at(bench, 64 * KIB), at(bench, 4 * MIB)
        cells = [bench["benchmark"], bench["from"], bench["to"], "yes" if bench.get("staged") else "",
                 f"{small['median_us']:.2f} ({small['p10_us']:.2f} to {small['p90_us']:.2f})" if small else "",
                 f"{middle['median_us']:.1f}" if middle else "", f"{large['median_us']:.1f}" if large else "",
                 f"{large['gbps']:.2f}" if large else "", f"{max((row['gbps'] for row in bench['rows']), default=0):.2f}",
                 large["path"] if large else ""]
        lines.append("| " + " | ".join(cells) + " |")
    return lines + [""] + calls


def target_table(entries):
    lines = ["### Targets", "", "From targets.json; a blank verdict: the peer or the limit was not part of the run, or what is noted.", "",
             "| row | measure | ours | peer | limit | unit | target | reached | note | machine | commit |",
             "|---|---|---|---|---|---|---|---|---|---|---|"]
    for one in entries:
        verdict = {True: "yes", False: "no", None: ""}[one["pass"]]
        peer = "" if one["peer"] is None else f"{one['peer']:.2f} ({one['peer_name']})"
        limit = "" if one["limit"] is None else f"{one['limit']:.2f}"
        ours = "" if one["ours"] is None else f"{one['ours']:.2f}"
        lines.append(f"| {one['row']} | {one['measure']} | {ours} | {peer} | {limit} | {one['unit']} | {one['target']} | "
                     f"{verdict} | {one['note'] or ''} | {one['machine']} | {one['commit']} |")
    return lines + [""]


def verdict(row):
    if "verified" not in row:
        return "not compared"
    return (f"{'verified' if row['verified'] else 'WRONG'} (error {row['largest_error']:.1e}, "
            f"tolerance {row['tolerance']:.1e})")


def check_table(files):
    if not files:
        return []
    lines = ["### Checks", "", "| record | machine | commit | tests passed | failed | skipped | not run | demo | steps failed |",
             "|---|---|---|---|---|---|---|---|---|"]
    for file in files:
        check = json.loads(file.read_text())
        tests, demo = check["tests"], check["demo"]
        verified = "did not run" if not demo else ", ".join(
            f"{row['exchange']} on {demo['kind']} {verdict(row)}" for row in demo["rows"])
        failed = [step["step"] for step in check["steps"] if not step["passed"]]
        # A record of before a check had parts has neither word.
        not_run = [*check.get("parts_not_run", []), *([f"{len(tests['not_run'])} tests"] if tests.get("not_run") else [])]
        lines.append(f"| [{file.name}]({file.name}) | {check['machine']} | {check['commit']} | {tests['passed']} | "
                     f"{', '.join(tests['failed']) or 0} | {len(tests['skipped'])} | {', '.join(not_run) or 0} | {verified} | {', '.join(failed) or 0} |")
    return lines + [""]


def stencil_table(files):
    if not files:
        return []
    lines = ["### Stencil", "", "All exchanges in one run, results compared with a serial run where it says verified; older runs left out the one-sided one.", "",
             "| record | field | ranks | kind | steps | us/step isthmus | us/step staged | us/step one-sided | verified | machine | commit |",
             "|---|---|---|---|---|---|---|---|---|---|---|"]
    for file in files:
        for one in json.loads(file.read_text()):
            us = {row["exchange"]: f"{row['us_per_step']:.1f}" for row in one["rows"]}
            verdicts = {}
            for row in one["rows"]:
                verdicts.setdefault(verdict(row), []).append(row["exchange"])
            verified = "; ".join(f"{' and '.join(names)} {text}" for text, names in verdicts.items())
            lines.append(f"| [{file.name}]({file.name}) | {one['input'] or 'i*j'}, {' x '.join(map(str, one['field']))} | "
                         f"{one['ranks']} | {one['kind']} | {one['steps']} | {us.get('isthmus', '')} | {us.get('staged', '')} | {us.get('one-sided', '')} | "
                         f"{verified} | {one['machine']} | {one['commit']} |")
    return lines + [""]


def steps_table(title, files):
    if not files:
        return []
    lines = [f"### {title}", "", "| record | machine | commit | steps passed | failed | seconds |", "|---|---|---|---|---|---|"]
    for file in files:
        run = json.loads(file.read_text())
        failed = [step["step"] for step in run["steps"] if not step["passed"]]
        lines.append(f"| [{file.name}]({file.name}) | {run['machine']} | {run['commit']} | {len(run['steps']) - len(failed)} | "
                     f"{', '.join(failed) or 0} | {sum(step['seconds'] for step in run['steps'])} |")
    return lines + [""]


def attributed(source, objects):
    """Every object says where, of what and when it is."""
    for each in objects:
        lacking = [name for name in ("machine", "commit", "date") if not each.get(name)]
        if lacking:
            sys.exit(f"{source} holds an object without {', '.join(lacking)}: a record names all three; file what "
                     "tools/gpu_run.sh of this version wrote")


def commits_of(record):
    return {str(each["commit"]) for each in (record if isinstance(record, list) else [record])}


def one_commit(source, objects):
    attributed(source, objects)
    commits = commits_of(objects)
    if len(commits) != 1 or any(commit in ("unknown", "None") or commit.endswith("-changed") for commit in commits):
        sys.exit(f"{source} is of commit {', '.join(sorted(commits))}: a record needs one commit, without changes on top")


def rewrite_tables(measured, entries):
    tables = measured / "tables.md"
    text = tables.read_text() if tables.exists() else f"# Measured, in tables\n\n{BEGIN}\n{END}\n"
    if BEGIN not in text or END not in text:
        sys.exit(f"{tables} has no lines '{BEGIN}' and '{END}' between which the tables go")
    lines = target_table(entries) if entries else []
    for file in records(measured, "messages"):
        lines += bench_table(file, json.loads(file.read_text()))
    checks = records(measured, "check")
    for file in checks:
        # The short benches of a check, where the machine has no record of its own.
        benches = json.loads(file.read_text()).get("benches", [])
        if benches and not list(measured.glob(f"*-{slug(benches[0]['machine'])}-messages.json")):
            lines += bench_table(file, benches)
    for file in records(measured, "shared"):
        lines += bench_table(file, json.loads(file.read_text()))
    lines += arithmetic_table(records(measured, "arithmetic"))
    lines += device_peers_table(records(measured, "device-peers")) + in_kernel_table(records(measured, "in-kernel"), records(measured, "one-sided"))
    lines += stream_table(records(measured, "streams"))
    lines += workers_table(records(measured, "workers"))
    lines += device_table(records(measured, "device-collectives"))
    lines += mpi_table(records(measured, "mpi")) + host_collectives_table(records(measured, "host-collectives"))
    lines += overlap_table(records(measured, "overlap")) + halo_table(records(measured, "halo")) + layout_table(records(measured, "layouts"))
    lines += check_table(checks)
    lines += packs_table(records(measured, "packs")) + sanitize_table(records(measured, "sanitize")) + soak_table(records(measured, "soak"))
    lines += steps_table("make test", records(measured, "test"))
    parts = [file for part in PARTS for file in records(measured, f"test-{part}")]
    lines += steps_table("What make test-long has besides make test", parts)
    lines += steps_table("make test-long", records(measured, "test-long"))
    lines += stencil_table(records(measured, "stencil2d")) + workloads_table(records(measured, "workloads"))
    lines += sweep_table(measured)
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    tables.write_text(before + BEGIN + "\n\n" + "\n".join(lines) + END + after)


# What make test-long consists of besides make test, and what of that there is by itself (tools/run_tests.sh).
PARTS = ("asan", "tsan", "tsan-threads", "clang")
SETS = ("quick", "long", *PARTS)


def find_source(folder):
    """What the folder's record is of: a check, a comparison with an MPI or NCCL, the tests that ran last, or benchmarks."""
    for name in ("check.json", "mpi.json", "collectives.json", "device.json", "stream.json", "workers.json", "soak.json",
                 "sanitize.json", "packs.json", "overlap.json", "halo.json", "host_collectives.json", "in_kernel.json", "layouts.json", "one_sided.json", "shared.json", "arithmetic.json", "workloads.json"):
        if (folder / name).exists():
            return folder / name
    tests = [file for file in (folder / f"tests-{name}.json" for name in SETS) if file.exists()]
    return max(tests, key=lambda file: file.stat().st_mtime) if tests else folder / "bench.json"


def write_record(measured, objects, report, name):
    """One file, beside that of another commit on the same day."""
    measured.mkdir(parents=True, exist_ok=True)
    stem = f"{objects[0]['date'][:10]}-{slug(objects[0]['machine'])}"
    file = measured / f"{stem}-{name}.json"
    if file.exists() and commits_of(json.loads(file.read_text())) != commits_of(objects):
        file = measured / f"{stem}-{objects[0]['commit'][:7]}-{name}.json"
    file.write_text(json.dumps(report, indent=1) + "\n")
    return file


def file_sweeps(folder, measured):
    """What `isthmus bench sweep --json` left, whatever else is there."""
    written = []
    for source in sweeps_in(folder):
        reports = json.loads(source.read_text())
        reports = reports if isinstance(reports, list) else [reports]
        one_commit(source, reports)
        for sweep in apart(reports):
            name, why = sweep_name(source, sweep)
            written.append(write_record(measured, sweep, sweep, name) if name else sys.exit(why))
    return written


def file_record(folder, measured):
    """Checks what the folder holds and copies it to its name in `measured`."""
    source, written = find_source(folder), file_sweeps(folder, measured)
    if written and not source.exists():
        return written
    if not source.exists():
        sys.exit(f"{source} is not there: give the folder that tools/gpu_run.sh check or bench wrote, or build/ after make test")
    found = json.loads(source.read_text())
    objects = found if isinstance(found, list) else [found]
    if not objects:
        sys.exit(f"{source} holds no benchmark")
    stencil = folder / "stencil.json"
    if source.name == "bench.json" and stencil.exists():
        # One run, so one record.
        attributed(stencil, json.loads(stencil.read_text()))
        one_commit(f"{source} with {stencil.name}", objects + json.loads(stencil.read_text()))
    one_commit(source, objects)
    special = {"collectives.json": {"collectives.json": "device-collectives"}, "device.json": {"device.json": "device-peers"},
               "stream.json": {"stream.json": "streams"}, "tests-long.json": {"tests-long.json": "test-long"},
               "tests-quick.json": {"tests-quick.json": "test"}, **{f"tests-{part}.json": {f"tests-{part}.json": f"test-{part}"} for part in PARTS},
               "bench.json": {"bench.json": "messages", "stencil.json": "stencil2d"}}
    names = special.get(source.name, {source.name: source.stem.replace("_", "-")})
    for raw, name in names.items():
        if (folder / raw).exists():
            # Some write one report by itself, but a record of benchmarks is a list.
            report = objects if raw == "stream.json" else json.loads((folder / raw).read_text())
            written.append(write_record(measured, objects, report, name))
    return written


def check_targets(measured):
    """Every verdict is computed again from the records."""
    file, drawn = measured / "targets.json", targets(measured)
    written = json.loads(file.read_text()) if file.exists() else []
    wrong = [one for one in drawn if one not in written] + [one for one in written if one not in drawn]
    for one in wrong:
        print(f"row {one['row']}, {one['measure']}: {'not as recorded' if one in written else 'not in ' + file.name}")
    if wrong:
        sys.exit(f"{file} does not say what the records say: run tools/record_measurements.py")
    print(f"{file.name}: {len(drawn)} entries, as the records have them")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, nargs="?",
                        help="what tools/gpu_run.sh wrote, build/ after make test or test-long, or build/mpi/")
    parser.add_argument("--measured", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent / "docs" / "measured")
    parser.add_argument("--check", action="store_true", help="compare targets.json with the records, and write nothing")
    options = parser.parse_args()
    if options.check:
        return check_targets(options.measured)
    written = file_record(options.folder, options.measured) if options.folder else []
    entries = targets(options.measured)
    (options.measured / "targets.json").write_text(json.dumps(entries, indent=1) + "\n")
    rewrite_tables(options.measured, entries)
    for file in written:
        print(f"wrote {file.name}")
    print(f"wrote targets.json: {len(entries)} entries, {sum(one['pass'] is True for one in entries)} reached, "
          f"{sum(one['pass'] is False for one in entries)} missed")


if __name__ == "__main__":
    main()
