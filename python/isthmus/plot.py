"""Pictures of what `isthmus bench --json` wrote: one PNG for each pair of memories, and one page that holds them all.

    python -m isthmus.plot FILE... [--out FOLDER]

FILE holds one report or a list of them, as `isthmus bench` writes it with --json, also that of `bench sweep` and `bench limits`.
Needs matplotlib (`pip install isthmus[plot]`). Writes FOLDER/<measure>-<from>-<to>.png, of a sweep sweep-<setting>-<measure>-..., and
FOLDER/index.html, which needs no other file. Operations of one-sided, shapes, blocks, packings and so on have a curve each; where they would
be too many for one picture, each operation or shape has a picture, <measure>-<operation>-<from>-<to>.png. What has no place in a picture, as
a barrier, which has no bytes, is named.
"""
import argparse
import base64
import html
import json
import pathlib
import re
import sys
import typing

# What tells the curves of one report apart, beside its sizes. Elsewhere a path is how messages of some sizes go, and is part of the curve.
APART = {"one-sided": ("operation", "path"), "pack": ("shape", "block"), "layout": ("shape", "block", "source", "into"),
         "halo": ("packing", "way"), "halo lists": ("case", "packing", "way")}
SAYS = {"block": "blocks of {} B", "source": "from {}", "into": "into {}"}
# Beyond so many curves in one picture each of these has one of its own.
PARTS, MOST = ("operation", "shape"), 12
LIMIT = {"linestyle": "--", "linewidth": 1}


class PlotError(Exception):
    """What is wrong with a file, and what would be right."""


class Curve(typing.NamedTuple):
    """A line of a picture. part: the operation or shape that it is of; name: what else it is; a limit stands beside the curve of its name, or,
    as `alone`, for itself."""
    part: str
    name: str
    points: tuple
    is_limit: bool = False
    alone: bool = True

    def label(self, parted):
        return self.name if parted and self.name else ", ".join(filter(None, (self.part, self.name)))


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
        for report in found:
            require_figures(name, report)
        reports += found
    return reports


def require_figures(file, report):
    """Errors: PlotError that names the file and what a row of it lacks."""
    for number, row in enumerate(report["rows"]):
        if report["benchmark"] != "limit-calls" and not ("bytes" in row and figures_of(report, row)):
            raise PlotError(f"{file}: row {number} of the report of {report['benchmark']} cannot be drawn: it has neither bytes with "
                            f"{figure_of(report)} nor with pack_us; it has {', '.join(row)}")


def picture_of(report, part=""):
    """What belongs into one picture has the same name: measure, who calls, pair of memories, and of a sweep its setting."""
    parts = ["sweep", report["sweep"]] if "sweep" in report else []
    parts += [report["benchmark"].removeprefix("limit-"), part, report.get("side", "host").removeprefix("host")]
    return "-".join(filter(None, [*parts, report["from"], report["to"]])).replace(":", "").replace(" ", "-").replace("/", "-")


def curves_of(report, among=()):
    """The curves of a report: time in us of a latency or a call, GB/s of windows; one for each path of limits, and for each operation, shape
    and so on of what has several. among: the reports of the same picture, from which its number of ranks may tell it."""
    label = f"{report['setting'] or 'buffers'}={report['value']}" if "sweep" in report else report["benchmark"]
    label += " by hand" if report.get("staged") else ""
    ranks = f"{report.get('ranks')} ranks" if len({one.get("ranks") for one in among}) > 1 else ""
    if report["benchmark"].startswith("limit-"):
        return curves_by(("path",), report, ranks, True)
    if report["benchmark"] in APART:
        return curves_by(APART[report["benchmark"]], report, ranks, False)
    figure = figure_of(report)
    curves = [Curve("", ", ".join(filter(None, (label, ranks))), points_of(report["rows"], figure))]
    bounds = tuple((row["bytes"], row["limit_gbs"]) for row in report["rows"] if figure == "gbps" and row.get("limit_gbs"))
    curves += [Curve("", "memcpy", bounds, True)] if bounds else []
    bounds = tuple((row["bytes"], limit_of(row, figure)) for row in report["rows"] if row["bytes"] > 0 and row.get("limit_us"))
    return curves + ([Curve("", "limit", bounds, True)] if bounds else [])


def curves_by(keys, report, ranks, is_limit):
    """A curve for each value of these keys of the rows, and figure; and the limits beside them."""
    found = {}
    for row in report["rows"]:
        part = next((row[key] for key in PARTS if key in keys and key in row), "")
        words = [SAYS.get(key, "{}").format(row[key]) for key in keys if key not in PARTS and row.get(key) not in (None, "")]
        for figure, says in figures_of(report, row):
            found.setdefault((part, ", ".join(filter(None, [*words, says, ranks])), figure), []).append(row)
    curves = [Curve(part, name, points_of(rows, figure), is_limit) for (part, name, figure), rows in found.items()]
    for (part, name, figure), rows in found.items():
        bounds = tuple((row["bytes"], limit_of(row, figure)) for row in rows if row.get("limit_us") and figure != "unpack_us")
        if bounds and not is_limit:
            curves.append(Curve(part, name, bounds, True, False))
    return curves


def points_of(rows, figure):
    return tuple((row["bytes"], row[figure]) for row in rows)


def limit_of(row, figure):
    """What limit_us allows, as the figure of the row counts it: both ways at once are two messages in one time."""
    if figure != "gbps":
        return row["limit_us"]
    return row["gbps"] * row["median_us"] / row["limit_us"]


def figure_of(report):
    return "gbps" if re.search("bandwidth|bidirectional", report["benchmark"]) else "median_us"


def figures_of(report, row):
    """Those that a row has, each with what its curve is called for it."""
    if row.get(figure_of(report)) is not None:
        return [(figure_of(report), "")]
    # Packing alone, which is not sent.
    return [(figure, says) for figure, says in (("pack_us", "pack"), ("unpack_us", "unpack")) if row.get(figure) is not None]


def drawn(curve):
    """On a logarithmic axis."""
    return sorted((size, value) for size, value in curve.points if size > 0)


def draw(file, title, unit, curves, parted):
    """Writes the picture."""
    from matplotlib import pyplot

    picture, axes = pyplot.subplots(figsize=(8 if len(curves) <= 8 else 11, 5), layout="constrained")
    colours = {}
    for curve in curves:
        if not drawn(curve):
            continue
        beside = curve.is_limit and not curve.alone
        style = {**LIMIT, "marker": "_" if len(drawn(curve)) == 1 else None} if curve.is_limit else {
            "marker": "os^vDPX*"[len(colours) // 10 % 8], "markersize": 3}
        colour = colours.get(curve[:2]) if beside else None
        line, = axes.plot(*zip(*drawn(curve)), color=colour, label=None if beside else curve.label(parted), **style)
        if not beside:
            colours[curve[:2]] = line.get_color()
    if any(curve.is_limit and not curve.alone for curve in curves):
        axes.plot([], [], color="grey", label="limit of each", **LIMIT)
    axes.set_xscale("log", base=2)
    if unit == "us":
        axes.set_yscale("log")
    axes.set_xlabel("bytes")
    axes.set_ylabel(unit)
    axes.set_title(title, fontsize=9)
    axes.grid(True, which="both", alpha=0.3)
    axes.legend(fontsize=8 if len(colours) <= 8 else 7, **({} if len(colours) <= 8 else {"loc": "center left", "bbox_to_anchor": (1, 0.5)}))
    picture.savefig(file, dpi=110)
    pyplot.close(picture)


def pictures_of(name, reports):
    """[(name, part, curves, parted)] of the reports that belong together: one picture, or one for each operation or shape."""
    curves = {}
    for curve in (curve for report in reports for curve in curves_of(report, reports)):
        # What is measured beside several reports is the same limit, and drawn once.
        curves.setdefault(curve.name if curve.is_limit and curve.alone else curve, curve)
    curves = list(curves.values())
    parts = list(dict.fromkeys(curve.part for curve in curves))
    if len(parts) < 2 or sum(not curve.is_limit for curve in curves) <= MOST:
        return [(name, "", curves, False)]
    return [(picture_of(reports[0], part), part, [curve for curve in curves if curve.part == part], True) for part in parts]


def page_of(pictures):
    """One HTML page with the pictures inside and their figures as tables; pictures: (file, reports, unit, curves, parted) by name."""
    parts = ["<!DOCTYPE html><meta charset=utf-8><title>isthmus bench</title>"
             "<style>body{font-family:sans-serif;max-width:60em;margin:auto}img{max-width:100%}td,th{padding:0 .8em;text-align:right}</style>"]
    for name, (file, reports, unit, curves, parted) in pictures.items():
        image = base64.b64encode(file.read_bytes()).decode()
        about = {f"{one.get('machine', '')}; commit {one.get('commit', '')}; {one.get('date', '')}" for one in reports}
        parts.append(f"<h2>{html.escape(name)}</h2><p>{html.escape(' / '.join(sorted(about)))}</p>"
                     f"<img alt='{html.escape(name)}' src='data:image/png;base64,{image}'>")
        for curve in curves:
            cells = "".join(f"<tr><td>{size}<td>{value:.3f}" for size, value in curve.points)
            label = ("" if curve.alone else "limit of ") + curve.label(parted)
            parts.append(f"<details><summary>{html.escape(label)}</summary><table><tr><th>bytes<th>{unit}{cells}</table></details>")
    return "\n".join(parts) + "\n"


def plot(files, folder):
    """Draws every picture of the files into the folder, which is made; the names of the pictures, and index.html, as paths, and in words what has
    no place in one.

    Errors: PlotError; ImportError where matplotlib is missing.
    """
    grouped, left_out = {}, []
    for report in read_reports(files):
        if report["benchmark"] == "limit-calls":
            left_out.append("limit-calls: what single calls of a driver take has no size")
        else:
            grouped.setdefault(picture_of(report), []).append(report)
    # Without a display, and only where something is drawn.
    import matplotlib
    matplotlib.use("Agg")

    folder, pictures = pathlib.Path(folder), {}
    folder.mkdir(parents=True, exist_ok=True)
    for whole, reports in grouped.items():
        first, unit = reports[0], "GB/s" if figure_of(reports[0]) == "gbps" else "us"
        for name, part, curves, parted in pictures_of(whole, reports):
            left_out += [f"{name}: {curve.label(False)} has no row of one byte or more"
                         for curve in curves if not curve.is_limit and not drawn(curve)]
            if not any(drawn(curve) for curve in curves):
                continue
            file = folder / f"{name}.png"
            what = ", ".join(filter(None, (first["benchmark"], part)))
            draw(file, f"{what}, {first['from']} to {first['to']}\n{first.get('machine', '')}", unit, curves, parted)
            pictures[name] = file, reports, unit, curves, parted
    if not pictures:
        raise PlotError(f"nothing of {', '.join(map(str, files))} can be drawn: {'; '.join(left_out)}")
    page = folder / "index.html"
    page.write_text(page_of(pictures), encoding="utf-8")
    return [picture[0] for picture in pictures.values()] + [page], left_out


def main(words=None):
    parser = argparse.ArgumentParser(prog="python -m isthmus.plot", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("--out", default="plots", metavar="FOLDER", help="where the pictures go (plots)")
    options = parser.parse_args(words)
    try:
        written, left_out = plot(options.files, options.out)
    except PlotError as error:
        sys.exit(f"isthmus.plot: {error}")
    except ImportError as error:
        sys.exit(f"isthmus.plot: matplotlib, which draws the pictures, cannot be imported ({error}); pip install matplotlib")
    except OSError as error:
        sys.exit(f"isthmus.plot: cannot write into {options.out}: {error.strerror}")
    for what in left_out:
        print(f"isthmus.plot: not drawn: {what}", file=sys.stderr)
    for file in written:
        print(file)


if __name__ == "__main__":
    main()
