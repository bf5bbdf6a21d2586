"""What `isthmus bench sweep SETTING --json FILE` wrote: the name under which it is filed, and its table.

Called by tools/record_measurements.py. A file is a list of reports, each of which says the sweep, its setting and the value; a folder may hold
several, all named *sweep.json, or all sweeps in one list, sweeps.json, as tools/gpu_run.sh sweeps leaves them. The two files *-ring-sweep*.json are of an earlier tool of another form, and are named alone.
"""
import json

from host_targets import records, size_text
from peers_on_record import word

KIB, MIB = 1 << 10, 1 << 20
SIZES = (8, 4 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB)
FIGURES = {"latency": ("median_us", "us", min), "bandwidth": ("gbps", "GB/s", max)}


def sweeps_in(folder):
    return sorted([*folder.glob("*sweep.json"), *folder.glob("sweeps.json")])


def apart(reports):
    """The reports of each sweep by itself, in their order."""
    by_sweep = {}
    for report in reports:
        by_sweep.setdefault(tuple(report.get(name) for name in ("sweep", "setting", "from", "to")), []).append(report)
    return list(by_sweep.values())


def sweep_name(file, reports):
    """'slot-cuda-cuda-sweep'; None and why, where it is something else."""
    said = {tuple(report.get(name) for name in ("sweep", "setting", "from", "to")) for report in reports}
    if len(said) != 1 or None in next(iter(said)) or any(report.get("value") is None for report in reports):
        return None, f"{file} is no sweep: every report of one says the same sweep, setting and places, and its value"
    sweep, _, source, target = said.pop()
    return f"{sweep}-{word(source)}-{word(target)}-sweep", None


def is_sweep(found):
    return isinstance(found, list) and all("sweep" in report for report in found)


def line(reports, measure, size):
    """The figures under each value, the best one with a star; None where the size was not measured."""
    figure, unit, best_of = FIGURES[measure]
    found = [next((row[figure] for row in report["rows"] if row["bytes"] == size), None) for report in reports]
    known = [value for value in found if value is not None]
    if not known:
        return None
    best = best_of(known)
    cells = ["" if value is None else f"{value:.2f}{' *' if value == best else ''}" for value in found]
    return f"| {measure}, {unit} | {size_text(size)} | " + " | ".join(cells) + " |"


def sweep_table(measured):
    lines, older = [], []
    for file in records(measured, "sweep"):
        found = json.loads(file.read_text())
        if not is_sweep(found):
            older.append(file)
            continue
        first = found[0]
        values = list(dict.fromkeys(report["value"] for report in found))
        lines += [f"### Sweep of {first['sweep']}, {first['from']} to {first['to']}, in [{file.name}]({file.name})", "",
                  f"{first['machine']}; commit {first['commit']}; {first['date'][:10]}. "
                  + (f"Values of {first['setting']}, through cells and ring alone" if first["setting"] else "How buffers are named")
                  + "; * the best.", "", "| measure | bytes | " + " | ".join(values) + " |", "|---" * (2 + len(values)) + "|"]
        for measure in FIGURES:
            reports = [report for report in found if report["benchmark"] == measure]
            sizes = sorted({row["bytes"] for report in reports for row in report["rows"]})
            lines += filter(None, (line(reports, measure, size) for size in ([size for size in SIZES if size in sizes] or sizes)))
        lines.append("")
    older += sorted(measured.glob("*-ring-sweep-*.json"), reverse=True)
    if older:
        lines += ["### The ring over slot size, slots and copies in flight, by a tool before `isthmus bench sweep`", ""]
        lines += [f"- [{file.name}]({file.name})" for file in older] + [""]
    return lines
