"""One list of what `isthmus bench sweep --json` wrote, and of each sweep which value was the best.

    sweeps_record.py OUT.json FOLDER

Called by tools/gpu_run.sh sweeps; FOLDER holds *-sweep.json. tools/record_measurements.py files the list as a record for each sweep.
"""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from sweep_record import FIGURES, sweeps_in  # noqa: E402


def best_values(reports):
    """A line for each measure: at every size the value that was best."""
    for measure, (figure, unit, best_of) in FIGURES.items():
        of_measure = [one for one in reports if one["benchmark"] == measure]
        cells = []
        for size in sorted({row["bytes"] for one in of_measure for row in one["rows"]}):
            found = {one["value"]: row[figure] for one in of_measure for row in one["rows"] if row["bytes"] == size}
            best = best_of(found, key=found.get)
            cells.append(f"{size} B {best} ({found[best]:.2f} {unit})")
        if cells:
            yield f"  {measure}: " + ", ".join(cells)


def main(out, folder):
    everything = []
    for file in sweeps_in(pathlib.Path(folder)):
        try:
            reports = json.loads(file.read_text())
        except ValueError:
            print(f"left out {file.name}: not complete")
            continue
        everything += reports
        print(f"sweep of {reports[0]['sweep']}, {reports[0]['from']} to {reports[0]['to']}, the best of each size")
        print("\n".join(best_values(reports)))
    if not everything:
        sys.exit(f"{folder} holds no *-sweep.json that is complete")
    pathlib.Path(out).write_text(json.dumps(everything, indent=1) + "\n")


main(*sys.argv[1:])
