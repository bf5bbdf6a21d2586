"""Pictures of what `isthmus bench --json` wrote: one PNG for each pair of memories, and one page that holds them all.

    python -m isthmus.plot FILE... [--out FOLDER]

FILE holds one report or a list of them, as `isthmus bench` writes it with --json, also that of `bench sweep` and `bench limits`.
Needs matplotlib (`pip install isthmus[plot]`). Writes FOLDER/<measure>-<from>-<to>.png, of a sweep sweep-<setting>-<measure>-..., and
FOLDER/index.html, which needs no other file.
"""
import argparse
import base64
import html
import json
import pathlib
import re
import sys


class PlotError(Exception):
    """What is wrong with a file, and what would be right."""


def read_reports(files):
    """All reports of the files, in their order.

    Errors: PlotError that names the file where one cannot be read or is no report of `isthmus bench`.
    """
    reports = []
    for name in files:
        try:
            found = json.loads(pathlib.Path(name).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise PlotError(f"{name} cannot be read as JSON ({error}); make it with isthmus bench ... --json {name}") from error
        found = found if isinstance(found, list) else [found]
        if not found or not all(isinstance(one, dict) and {"benchmark", "from", "to", "rows"} <= one.keys() for one in found):
            raise PlotError(f"{name} holds no report of isthmus bench; make one with isthmus bench ... --json {name}")
        reports += found
    return reports


def picture_of(report):
    """What belongs into one picture has the same name: measure, pair of memories, and of a sweep its setting."""
    parts = ["sweep", report["sweep"]] if "sweep" in report else []
    return "-".join([*parts, report["benchmark"].removeprefix("limit-"), report["from"], report["to"]]).replace(":", "")


def curves_of(report):
    """[(label, [(bytes, figure)], is_limit)]: time in us of a latency or a call, GB/s of windows; one curve for each path of limits."""
    is_limit = report["benchmark"].startswith("limit-")
    figure = figure_of(report)
    label = f"{report['setting'] or 'buffers'}={report['value']}" if "sweep" in report else report["benchmark"]
    label += " by hand" if report.get("staged") else ""
    if not is_limit:
        curves = [(label, [(row["bytes"], row[figure]) for row in report["rows"] if row["bytes"] > 0], False)]
        bounds = [(row["bytes"], row["limit_gbs"]) for row in report["rows"] if figure == "gbps" and row.get("limit_gbs")]
        curves += [("memcpy", bounds, True)] if bounds else []
        bounds = [(row["bytes"], limit_of(row, figure)) for row in report["rows"] if row["bytes"] > 0 and row.get("limit_us")]
        return curves + ([("limit", bounds, True)] if bounds else [])
    paths = dict.fromkeys(row.get("path", "") for row in report["rows"])
    return [(path, [(row["bytes"], row[figure]) for row in report["rows"] if row.get("path", "") == path and row["bytes"] > 0], True)
            for path in paths]


def limit_of(row, figure):
    """What limit_us allows, as the figure of the row counts it: both ways at once are two messages in one time."""
    if figure == "median_us":
        return row["limit_us"]
    return row["gbps"] * row["median_us"] / row["limit_us"]


def figure_of(report):
    return "gbps" if re.search("bandwidth|bidirectional", report["benchmark"]) else "median_us"


def draw(name, reports, folder):
    """Writes folder/name.png, and gives its path."""
    # Without a display, and only where something is drawn.
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot

    picture, axes = pyplot.subplots(figsize=(8, 5), layout="constrained")
    curves = {}
    for label, points, is_limit in (curve for report in reports for curve in curves_of(report)):
        # What is measured beside several reports is the same limit, and drawn once.
        curves.setdefault(label if is_limit else (label, tuple(points)), (label, points, is_limit))
    for label, points, is_limit in curves.values():
        if points:
            axes.plot(*zip(*sorted(points)), label=label, marker=None if is_limit else "o", markersize=3,
                      linestyle="--" if is_limit else "-")
    axes.set_xscale("log", base=2)
    if figure_of(reports[0]) == "median_us":
        axes.set_yscale("log")
    axes.set_xlabel("bytes")
    axes.set_ylabel("GB/s" if figure_of(reports[0]) == "gbps" else "us")
    axes.set_title(f"{reports[0]['benchmark']}, {reports[0]['from']} to {reports[0]['to']}\n{reports[0].get('machine', '')}", fontsize=9)
    axes.grid(True, which="both", alpha=0.3)
    if axes.lines:
        axes.legend(fontsize=8)
    file = folder / f"{name}.png"
    picture.savefig(file, dpi=110)
    pyplot.close(picture)
    return file


def page_of(pictures):
    """One HTML page with the pictures inside and their figures as tables."""
    parts = ["<!DOCTYPE html><meta charset=utf-8><title>isthmus bench</title>"
             "<style>body{font-family:sans-serif;max-width:60em;margin:auto}td,th{padding:0 .8em;text-align:right}</style>"]
    for name, (file, reports) in pictures.items():
        image = base64.b64encode(file.read_bytes()).decode()
        about = {f"{one.get('machine', '')}; commit {one.get('commit', '')}; {one.get('date', '')}" for one in reports}
        parts.append(f"<h2>{html.escape(name)}</h2><p>{html.escape(' / '.join(sorted(about)))}</p>"
                     f"<img alt='{html.escape(name)}' src='data:image/png;base64,{image}'>")
        for report in reports:
            for label, points, _ in curves_of(report):
                cells = "".join(f"<tr><td>{size}<td>{value:.3f}" for size, value in points)
                unit = "GB/s" if figure_of(report) == "gbps" else "us"
                parts.append(f"<details><summary>{html.escape(label)}</summary><table><tr><th>bytes<th>{unit}{cells}</table></details>")
    return "\n".join(parts) + "\n"


def plot(files, folder):
    """Draws every picture of the files into the folder, which is made; the names of the pictures, and index.html, as paths.

    Errors: PlotError; ImportError where matplotlib is missing.
    """
    grouped = {}
    for report in read_reports(files):
        # What single calls of a driver take has no size.
        if report["benchmark"] != "limit-calls":
            grouped.setdefault(picture_of(report), []).append(report)
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    pictures = {name: (draw(name, reports, folder), reports) for name, reports in grouped.items()}
    page = folder / "index.html"
    page.write_text(page_of(pictures), encoding="utf-8")
    return [file for file, _ in pictures.values()] + [page]


def main(words=None):
    parser = argparse.ArgumentParser(prog="python -m isthmus.plot", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("--out", default="plots", metavar="FOLDER", help="where the pictures go (plots)")
    options = parser.parse_args(words)
    try:
        written = plot(options.files, options.out)
    except PlotError as error:
        sys.exit(f"isthmus.plot: {error}")
    except ImportError as error:
        sys.exit(f"isthmus.plot: {error}; pip install matplotlib")
    except OSError as error:
        sys.exit(f"isthmus.plot: cannot write into {options.out}: {error.strerror}")
    for file in written:
        print(file)


if __name__ == "__main__":
    main()
