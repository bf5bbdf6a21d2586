#!/usr/bin/env python3
"""Rows 14, 15 and 16 of the targets: Himeno, Jacobi and lattice Boltzmann on GPUs, by each way to exchange, beside one GPU alone and a copy of
the same run. cudaMPI's stencil and particles have no row, and are in the table alone.

    workloads_record.py INFO RAW TO    one object: machine, commit and date of INFO, and as "runs" what the programs wrote into
                                       RAW/*.workload.json, those that are complete; and its table. Status 1 where there is none.

Called so by tools/gpu_run.sh workloads; tools/record_measurements.py takes targets and tables of what is filed as `*-workloads.json` from here.
Of runs of one program, size and number of ranks the median counts. Himeno's planes over their number (sizes such as 16x128x128) are a table of their own.
"""
import datetime
import json
import pathlib
import statistics
import sys

from host_targets import complete, entry, last_objects

SMALL, LARGE = ("XS", "S"), ("L", "XL")
SIZES = (*SMALL, "M", *LARGE)
GAIN, SCALING = 2, 0.95                         # row 14
JACOBI_SHARE, JACOBI_SCALING = 0.9, 0.97        # row 15
GLUPS, LBM_SCALING = 25, 0.95                   # row 16
FULL = 4                                        # GPUs that rows 15 and 16 are of


def median(values):
    return statistics.median(values) if values else None


def nccl_runs(record):
    """What tools/peers/himeno_nccl.cu printed, where its cells were right: the quicker of its ways."""
    for run in record["runs"]:
        ways = [way for way in run.get("ways", []) if way.get("other_cells") == 0]
        if run.get("peer_name", "").startswith("NCCL") and ways:
            best = min(ways, key=lambda way: way["us_per_iteration"])
            yield {"size": run["size"], "ranks": run["gpus"], "name": f"{run['peer_name']} in a graph", **{name: best[name] for name in ("us_per_iteration", "mflops")}}


# What programs write: `ways`, each with name, ranks, seconds of an iteration, rate, unit and whether it was right (verified), or why it is not_here;
# `alone`, the same of one rank, or null; copy_rate and copy_rate_alone in that unit. Records of 2026-11-26 have a form of each program's own.

def way_of(name, ranks, us, rate, unit, verified, **more):
    return {"name": name, "ranks": ranks, "us": us, "rate": rate, "unit": unit, "verified": verified, **more}


def of_efficiency(found):
    return {"efficiency": found["efficiency"]} if "efficiency" in found else {}


def old_himeno(run):
    x, y, z = run["grid"]
    def way(found, ranks):
        return way_of(found["name"], ranks, found["us_per_iteration"], found["mflops"], "MFLOPS", found["right"], **of_efficiency(found))
    return {**run, "ranks": x * y * z, "verified": run["right"], "ways": [way(found, x * y * z) for found in run["ways"]],
            "alone": way(run["one_rank_alone"], 1) if run["one_rank_alone"] else None}


def old_jacobi(run):
    def way(row):
        if "not_here" in row:
            return {"name": row["exchange"], "ranks": run["ranks"], "not_here": row["not_here"]}
        return way_of(row["exchange"], run["ranks"], row["us_per_iteration"], row["gpix_per_second"], "Gpix/s", row.get("verified", True), **of_efficiency(row))
    return {**run, "program": "jacobi", "copy_rate_alone": run["gpix_per_second_of_copying_alone"], "ways": [way(row) for row in run["rows"]],
            "alone": way_of("one GPU alone", 1, run["us_per_iteration_alone"], run["gpix_per_second_alone"], "Gpix/s", True)}


def old_lbm(run):
    verified = run["verdict"] == "verified"
    alone = run.get("one_device_alone", {})
    us = 1e6 * run["seconds"] / run["steps"]
    return {**run, "verified": verified, "ways": [way_of(run["exchange"], run["ranks"], us, run["glups"], "GLUPS", verified, **of_efficiency(alone))],
            "copy_rate": run["copy_bytes_per_second"] / run["bytes_per_update"] / 1e9,
            "alone": way_of("one GPU alone", 1, None, alone["glups"], "GLUPS", True) if alone.get("done") else None}


def shaped(run):
    """As programs write it now, and with us of an iteration beside its seconds."""
    is_old = {"himeno": "one_rank_alone" in run, "jacobi": "rows" in run, "lbm": "glups" in run}
    program = run.get("program", run.get("benchmark"))
    if is_old.get(program):
        return {"himeno": old_himeno, "jacobi": old_jacobi, "lbm": old_lbm}[program](run)
    def with_us(way):
        return {**way, "us": 1e6 * way["seconds"]} if "seconds" in way else way
    return {**run, "ways": [with_us(way) for way in run["ways"]], "alone": with_us(run["alone"]) if run.get("alone") else None}


def is_slab(run):
    """Himeno's of cells that were asked for by their numbers: planes of one size, cut along the other dimension."""
    return run["program"] == "himeno" and run["size"] not in SIZES


def is_along_i(run):
    return run["grid"][1:] == [1, 1]


def runs_of(record, program):
    return [shaped(run) for run in record["runs"] if run.get("program", run.get("benchmark")) == program]


def right(run):
    return run["verified"]


def measured_ways(run):
    return [way for way in run["ways"] if "not_here" not in way]


def grouped(runs, key):
    found = {}
    for run in runs:
        found.setdefault(key(run), []).append(run)
    return dict(sorted(found.items(), key=lambda item: str(item[0])))


def all_ways(runs):
    return [way for run in runs for way in measured_ways(run)]


def ways_of(runs):
    """us of an iteration by way, the median over runs."""
    return {name: median([way["us"] for way in ways]) for name, ways in grouped(all_ways(runs), lambda way: way["name"]).items()}


def wrong(row, measure, record, unit, target):
    return entry(row, measure, record, None, unit, target, passed=False, note="a run's result was wrong")


def scaled(row, measure, record, rate, unit, share, best_alone, ranks):
    """Beside the best that one GPU did in the record, whichever way. The rows ask for four GPUs: fewer can miss them, and not reach them."""
    reached = rate >= share * ranks * best_alone
    note = f"the target is of {FULL} GPUs" if reached and ranks < FULL else None
    return entry(row, measure, record, rate, unit, f">= {share:.0%} efficiency", limit=ranks * best_alone, passed=None if note else reached, note=note)


def himeno_alone(record):
    """us of one GPU's iteration by its quickest way, of each size."""
    alone = {}
    for run in runs_of(record, "himeno"):
        found = [run["alone"]] if run["alone"] else []
        for way in found + (measured_ways(run) if run["ranks"] == 1 else []):
            alone.setdefault(run["size"], {}).setdefault(way["name"], []).append(way["us"])
    return {size: min(median(times) for times in ways.values()) for size, ways in alone.items()}


def of_himeno(record):
    nccl = {size: (median([run["us_per_iteration"] for run in runs]), runs[0]["name"])
            for size, runs in grouped(nccl_runs(record), lambda run: (run["size"], run["ranks"])).items()}
    alone = himeno_alone(record)
    for (size, ranks), runs in grouped(filter(is_along_i, runs_of(record, "himeno")), lambda run: (run["size"], run["ranks"])).items():
        if ranks < 2 or size not in SMALL + LARGE:
            continue
        beside, faster = "beside the best that is driven from outside", f">= {GAIN} x faster"
        name = f"Himeno {size}, {ranks} GPUs, an iteration in one kernel, {beside if size in SMALL else 'beside one GPU'}"
        scaling = f">= {SCALING:.0%} strong scaling"
        if not all(map(right, runs)):
            yield wrong("14", name, record, "us", faster if size in SMALL else scaling)
            continue
        ways = ways_of(runs)
        kernel = ways.get("kernel")
        # Coefficients that are kept between iterations are another program's.
        ways = {f"ours: {way}": us for way, us in ways.items() if not way.startswith("kernel")}
        if (size, ranks) in nccl:
            us, theirs = nccl[(size, ranks)]
            ways[theirs] = us
        if size in SMALL and kernel and ways:
            best = min(ways, key=ways.get)
            note = None if (size, ranks) in nccl else "not measured: NCCL in a graph"
            gains = kernel * GAIN <= ways[best]
            yield entry("14", name, record, kernel, "us", faster, peer=ways[best], peer_name=best, passed=gains if note is None or not gains else None,
                        note=note)
        if size in LARGE and size in alone:
            best = min(ways, key=ways.get) if ways else None
            for what, us in ([(name, kernel)] if kernel else []) + ([(f"Himeno {size}, {ranks} GPUs, by {best}, beside one GPU", ways[best])] if best else []):
                yield entry("14", what, record, us, "us", scaling, limit=alone[size] / ranks, passed=alone[size] >= SCALING * ranks * us)


def of_himeno_cut(record):
    """The same of one kernel, cut in more than the sliced dimension, an entry for each cut."""
    alone = himeno_alone(record)
    runs = [run for run in runs_of(record, "himeno") if run["ranks"] > 1 and run["size"] in LARGE]
    for (size, grid), cut in grouped([run for run in runs if not is_along_i(run)], lambda run: (run["size"], tuple(run["grid"]))).items():
        ranks = cut[0]["ranks"]
        name = f"Himeno {size}, {ranks} GPUs cut {' x '.join(map(str, grid))}, an iteration in one kernel, beside one GPU"
        scaling = f">= {SCALING:.0%} strong scaling"
        if not all(map(right, cut)):
            yield wrong("14", name, record, "us", scaling)
        elif size in alone and "kernel" in ways_of(cut):
            limit, us = alone[size] / ranks, ways_of(cut)["kernel"]
            yield entry("14", name, record, us, "us", scaling, limit=limit, passed=limit >= SCALING * us)


def of_jacobi(record):
    grouped_runs = grouped(runs_of(record, "jacobi"), lambda run: (tuple(run["cells"]), run["ranks"]))
    best = {}
    for (cells, ranks), runs in grouped_runs.items():
        found = [median([run["alone"]["rate"] for run in runs])]
        if ranks == 1:
            found += [median([way["rate"] for way in ways]) for ways in grouped(all_ways(runs), lambda way: way["name"]).values()]
        best[cells] = max([best.get(cells, 0), *found])
    for (cells, ranks), runs in grouped_runs.items():
        size = " x ".join(map(str, cells))
        if not all(map(right, runs)):
            yield wrong("15", f"Jacobi {size}, {ranks} GPU(s)", record, "Gpix/s", f">= {JACOBI_SCALING:.0%} efficiency")
        elif ranks == 1:
            copied = median([run["copy_rate_alone"] for run in runs])
            alone = median([run["alone"]["rate"] for run in runs])
            yield entry("15", f"Jacobi {size}, one GPU", record, alone, "Gpix/s", f">= {JACOBI_SHARE} x copy roofline", limit=copied,
                        passed=alone >= JACOBI_SHARE * copied)
        else:
            for name, ways in grouped(all_ways(runs), lambda way: way["name"]).items():
                rate = median([way["rate"] for way in ways])
                yield scaled("15", f"Jacobi {size}, {ranks} GPUs, {name}", record, rate, "Gpix/s", JACOBI_SCALING, best[cells], ranks)


def of_lbm(record):
    best = {}
    for run in runs_of(record, "lbm"):
        by_one = (run["alone"] or {"rate": 0}) if run["ranks"] > 1 else run["ways"][0]
        best.setdefault(tuple(run["cells"]), {}).setdefault(run["ranks"] > 1, []).append(by_one["rate"])
    best = {cells: max(median(found) for found in kinds.values()) for cells, kinds in best.items()}
    for (cells, ranks, exchange), runs in grouped(runs_of(record, "lbm"), lambda run: (tuple(run["cells"]), run["ranks"], run["ways"][0]["name"])).items():
        size = " x ".join(map(str, cells))
        rate = median([run["ways"][0]["rate"] for run in runs])
        if not all(map(right, runs)):
            yield wrong("16", f"lattice Boltzmann {size}, {ranks} GPU(s), {exchange}", record, "GLUPS", f">= {LBM_SCALING:.0%} efficiency")
        elif ranks == 1:
            copied = median([run["copy_rate"] for run in runs])
            yield entry("16", f"lattice Boltzmann {size}, one GPU", record, rate, "GLUPS", f">= {GLUPS} on one H200", limit=copied,
                        passed=rate >= GLUPS if "H200" in record["machine"] else None,
                        note=None if "H200" in record["machine"] else "the target is of an H200")
        elif best[cells]:
            yield scaled("16", f"lattice Boltzmann {size}, {ranks} GPUs, {exchange}", record, rate, "GLUPS", LBM_SCALING, best[cells], ranks)


def from_record(record):
    for found in (of_himeno, of_himeno_cut, of_jacobi, of_lbm):
        yield from found(record)


def from_workloads(measured):
    """Of every machine its last record."""
    for record in last_objects(measured, "workloads"):
        yield from from_record(record)


def line(*cells):
    return "| " + " | ".join(map(str, cells)) + " |"


def case_of(run):
    cells = " x ".join(map(str, run.get("cells", [])))
    himeno = run.get("size") if run["program"] != "himeno" or is_along_i(run) else f"{run['size']}, ranks {' x '.join(map(str, run['grid']))}"
    return {"himeno": himeno, "lbm": f"{run.get('flow')} {cells}", "particles": f"{run.get('particles')}, {run.get('speed')} of the box a step"}.get(run["program"], cells)


def figures(record):
    """Program, case, ranks, way, rate, unit, us of an iteration, efficiency, verified: of every run."""
    titles = {"himeno": "Himeno", "jacobi": "Jacobi", "lbm": "lattice Boltzmann", "pixels": "pixels", "particles": "particles"}
    shown = {"MFLOPS": lambda rate: (f"{rate / 1000:.0f}", "GFLOPS"), "GLUPS": lambda rate: (f"{rate:.2f}", "GLUPS")}
    for program, title in titles.items():
        for run in runs_of(record, program):
            if is_slab(run):
                continue  # slabs_table() has it
            # What lattice Boltzmann did on one GPU is a start of its own.
            alone = [run["alone"]] if run["alone"] and program != "lbm" else []
            for way in alone + measured_ways(run):
                name = way["name"] if program != "lbm" or run["ranks"] > 1 else "one GPU alone"
                rate, unit = shown.get(way["unit"], lambda rate, unit=way["unit"]: (f"{rate:.1f}", unit))(way["rate"])
                yield title, case_of(run), way["ranks"], name, rate, unit, way["us"], f"{way['efficiency']:.3f}" if "efficiency" in way else "", right(run)
        for run in nccl_runs(record) if program == "himeno" else ():
            yield title, run["size"], run["ranks"], run["name"], f"{run['mflops'] / 1000:.0f}", "GFLOPS", run["us_per_iteration"], "", True


def rows_table(record):
    lines = [line("program", "case", "ranks", "way", "rate", "unit", "us an iteration", "efficiency", "verified"), "|---|---|---|---|---|---|---|---|---|"]
    return lines + [line(program, case, ranks, way, rate, unit, f"{us:.2f}", efficiency, "yes" if is_right else "NO")
                    for program, case, ranks, way, rate, unit, us, efficiency, is_right in figures(record)]


def slabs_table(record):
    """Himeno's planes over their number: us of an iteration by the quickest way of each kind; nothing where none were measured."""
    slabs = sorted(filter(is_slab, runs_of(record, "himeno")), key=lambda run: (run["cells"][1], run["cells"][2], run["cells"][0]))
    lines = ["", line("planes", "how many", "ranks", "one GPU alone, us", "messages, us", "stream, us", "kernel, us", "driven / kernel", "efficiency of the kernel", "verified"),
             "|---|---|---|---|---|---|---|---|---|---|"] if slabs else []
    for run in slabs:
        best = {}
        for way in measured_ways(run):
            kind = way["name"].split(",")[0]
            best[kind] = min(best.get(kind, way["us"]), way["us"])
        driven = [best[kind] for kind in ("messages", "stream") if kind in best]
        kernel, alone = best.get("kernel"), run["alone"]["us"] if run["alone"] else None
        def shown(us):
            return "" if us is None else f"{us:.2f}"
        lines.append(line("{1} x {2}".format(*run["cells"]), run["cells"][0], run["ranks"], shown(alone), shown(best.get("messages")), shown(best.get("stream")), shown(kernel),
                          shown(min(driven) / kernel if driven and kernel else None), f"{alone / kernel / run['ranks']:.3f}" if alone and kernel else "",
                          "yes" if right(run) else "NO"))
    return lines


def workloads_table(files):
    lines = []
    for file in files:
        record = json.loads(file.read_text())
        copies = [f"{run['copy_rate_alone']:.0f} Gpix/s of 8 bytes" for run in runs_of(record, "jacobi")]
        copies += [f"{run['copy_rate'] * run['bytes_per_update']:.0f} GB/s by {run['ranks']} rank(s)" for run in runs_of(record, "lbm")]
        lines += [f"### Programs on GPUs in [{file.name}]({file.name})", "",
                  f"{record['machine']}; commit {record['commit']}; {record['date'][:10]}. Each line is one start of the program, which compared "
                  f"the result; of all but lattice Boltzmann the median of three runs within it. Efficiency is beside what that start did on one GPU. What copies reached there: {'; '.join(copies)}.", "", *rows_table(record), *slabs_table(record), ""]
    return lines


def main(info, raw, to):
    about = json.loads(pathlib.Path(info).read_text())
    found = map(complete, sorted(pathlib.Path(raw).glob("*.workload.json")))
    # A start of several sizes wrote an object of each.
    runs = [run for file in found if file is not None for run in file.get("runs", [file])]
    if not runs:
        sys.exit(f"{raw} holds no *.workload.json that is complete; the log says more")
    record = {"machine": about["machine"], "commit": about["commit"],
              "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"), "runs": runs}
    pathlib.Path(to).write_text(json.dumps(record, indent=1) + "\n")
    print("\n".join(rows_table(record) + slabs_table(record)))
    for one in from_record(record):
        print(f"row {one['row']}: {one['measure']}: {one['ours']} {one['unit']}, wanted {one['target']}: {one['pass']}")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        print(__doc__)
        sys.exit(2)
    main(*sys.argv[1:])
