#!/usr/bin/env python3
"""Proves the verdicts on rows 14 to 16, their table, and that a run is put together and filed as it was. Argument: the folder tools/."""
import json
import pathlib
import subprocess
import sys
import tempfile

TOOLS = pathlib.Path(sys.argv[1])
sys.path.insert(0, sys.argv[1])
sys.dont_write_bytecode = True
from workloads_record import from_record, rows_table, slabs_table, workloads_table  # noqa: E402

ABOUT = {"machine": "Processor X, 32 processors, 2 x NVIDIA H200", "commit": "0123456789ab", "date": "2026-11-26T10:00:00Z"}


def way(name, us, efficiency=None):
    return {"name": name, "us_per_iteration": us, "mflops": 1e6 / us, "right": True, **({"efficiency": efficiency} if efficiency else {})}


def himeno(size, ways, alone=4.0, **more):
    return {"program": "himeno", "size": size, "grid": [2, 1, 1], "right": True, "one_rank_alone": way("one rank alone", alone),
            "ways": [way(name, us, alone / us / 2) for name, us in ways.items()], **more}


def by_nccl(size, us):
    ways = [{"name": name, "us_per_iteration": took, "mflops": 1e6 / took, "gosa": 1.0, "other_cells": other}
            for name, took, other in (("NCCL", us + 1, 0), ("NCCL, overlapped", us, 0), ("NCCL, spoiled", us / 9, 3))]
    return {"peer_name": "NCCL 2.28.9", "size": size, "iterations": 64, "gpus": 2, "ways": ways}


def jacobi(ranks, alone, copied, rows=()):
    return {"benchmark": "jacobi", "cells": [16384, 16384], "ranks": ranks, "verified": True, "gpix_per_second_alone": alone,
            "gpix_per_second_of_copying_alone": copied, "us_per_iteration_alone": 500.0,
            "rows": [{"exchange": name, "gpix_per_second": rate, "us_per_iteration": 1.0, "efficiency": rate / alone / ranks} for name, rate in rows]}


def lbm(ranks, glups, alone=None, **more):
    compared = {"one_device_alone": {"done": True, "glups": alone, "efficiency": glups / alone / ranks}} if alone else {}
    return {"program": "lbm", "verdict": "verified", "flow": "tgv", "cells": [512, 512, 512], "ranks": ranks, "exchange": "one-sided", "glups": glups,
            "seconds": 0.1, "steps": 50, "copy_bytes_per_second": 4.2e12 * ranks, "bytes_per_update": 152, **compared, **more}


def pixels(rate, verified=True):
    return {"program": "pixels", "cells": [3000, 16000], "ranks": 2, "verified": verified,
            "ways": [{"name": "stream", "ranks": ranks, "seconds": 1e-4 / ranks, "rate": rate * ranks, "unit": "Gpix/s", "efficiency": 1.0, "verified": verified}
                     for ranks in (1, 2)]}


def particles(rate):
    return {"program": "particles", "particles": 4000000, "speed": 0.01, "ranks": 2, "verified": True,
            "ways": [{"name": "soa", "ranks": 2, "seconds": 2e-3, "rate": rate, "unit": "M particles/s", "efficiency": 0.5, "verified": True}]}


def figures(name, ranks, us, rate, unit, efficiency=None):
    return {"name": name, "ranks": ranks, "seconds": us / 1e6, "rate": rate, "unit": unit, "verified": True, **({"efficiency": efficiency} if efficiency else {})}


def new_himeno(size, ways, alone=4.0):
    return {"program": "himeno", "size": size, "ranks": 2, "grid": [2, 1, 1], "verified": True, "alone": figures("one rank alone", 1, alone, 1e6 / alone, "MFLOPS"),
            "ways": [figures(name, 2, us, 1e6 / us, "MFLOPS", alone / us / 2) for name, us in ways.items()]}


def slab(planes, cells, ways, alone=40.0):
    return {**new_himeno(f"{planes}x{cells}x{cells}", ways, alone), "cells": [planes, cells, cells]}


def new_jacobi(ranks, alone, copied, rows=()):
    return {"program": "jacobi", "cells": [16384, 16384], "ranks": ranks, "verified": True, "copy_rate_alone": copied,
            "alone": figures("one GPU alone", 1, 500.0, alone, "Gpix/s"),
            "ways": [figures(name, ranks, 1.0, rate, "Gpix/s", rate / alone / ranks) for name, rate in rows] + [{"name": "kernel", "ranks": ranks, "not_here": "one GPU"}]}


def new_lbm(ranks, glups, alone=None):
    efficiency = glups / alone / ranks if alone else None
    return {"program": "lbm", "verdict": "verified", "verified": True, "flow": "tgv", "cells": [512, 512, 512], "ranks": ranks, "steps": 50, "bytes_per_update": 152,
            "alone": figures("one rank alone", 1, 1.0, alone, "GLUPS") if alone else None, "copy_rate": 4.2e12 * ranks / 152 / 1e9,
            "ways": [figures("one-sided", ranks, 2000.0, glups, "GLUPS", efficiency)]}


def judged(*runs, **more):
    return {one["measure"]: one for one in from_record({**ABOUT, "runs": list(runs), **more})}


def verdicts(*runs, **more):
    return [one["pass"] for one in judged(*runs, **more).values()]


def kernels_are_twice_as_quick_as_the_best_that_is_driven():
    ways = {"messages": 40.0, "stream": 10.0, "kernel": 5.0}
    assert verdicts(himeno("S", ways)) == [None], "NCCL was no part of it"
    assert verdicts(himeno("S", ways), by_nccl("S", 12.0)) == [True]
    assert verdicts(himeno("S", ways), by_nccl("S", 9.99)) == [False]
    assert verdicts(himeno("S", {**ways, "kernel": 5.01})) == [False], "too slow beside ours alone"
    found, = judged(himeno("XS", ways), by_nccl("XS", 9.5), by_nccl("S", 1.0)).values()
    assert (found["row"], found["peer"], found["peer_name"], found["pass"]) == ("14", 9.5, "NCCL 2.28.9 in a graph", False), found
    assert verdicts(himeno("M", ways)) == [], "no size of the row"
    assert verdicts(himeno("S", {**ways, "kernel, coefficients kept": 1.0}), by_nccl("S", 12.0)) == [True], "no way that is driven"
    # Of three starts the median.
    assert verdicts(*(himeno("S", {"stream": 10.0, "kernel": us}) for us in (1.0, 5.1, 9.0)), by_nccl("S", 20.0)) == [False]


def large_sizes_scale():
    found = judged(himeno("L", {"stream": 300.0, "kernel": 105.26}, alone=200.0))
    assert {name.split(", ")[2]: one["pass"] for name, one in found.items()} == {"an iteration in one kernel": True, "by ours: stream": False}, found
    assert verdicts(himeno("XL", {"kernel": 105.27}, alone=200.0)) == [False]
    # One GPU is as quick as its quickest way.
    assert verdicts(himeno("XL", {"kernel": 105.0}, alone=200.0), himeno("XL", {"kernel": 190.0}, alone=200.0, grid=[1, 1, 1])) == [False]
    found, = judged(himeno("L", {"kernel": 100.0}, alone=200.0, right=False)).values()
    assert found["pass"] is False and found["ours"] is None, "a wrong result is no figure"


def jacobi_stands_beside_a_copy_and_one_gpu():
    assert verdicts(jacobi(1, 450.0, 500.0)) == [True] and verdicts(jacobi(1, 449.9, 500.0)) == [False]
    found = judged(jacobi(2, 500.0, 520.0, [("messages", 970.0), ("kernel", 969.0)]))
    assert {name.split(", ")[-1]: one["pass"] for name, one in found.items()} == {"kernel": False, "messages": None}, found
    messages = found["Jacobi 16384 x 16384, 2 GPUs, messages"]
    assert messages["limit"] == 1000.0 and messages["note"] == "the target is of 4 GPUs", found
    assert verdicts(jacobi(4, 500.0, 520.0, [("messages", 1940.0)])) == [True]
    assert verdicts(jacobi(4, 500.0, 520.0, [("messages", 1940.0)]), jacobi(1, 500.0, 520.0, [("kernel", 501.0)])) == [True, False]


def lattices_scale_and_one_gpu_is_quick():
    assert verdicts(lbm(1, 25.0)) == [True] and verdicts(lbm(1, 24.9)) == [False]
    assert verdicts(lbm(1, 25.0), machine="Y, 1 x NVIDIA H100") == [None]
    assert verdicts(lbm(4, 95.0, 25.0)) == [True] and verdicts(lbm(4, 94.9, 25.0)) == [False] and verdicts(lbm(2, 47.5, 25.0)) == [None]
    assert verdicts(lbm(1, 26.0), lbm(4, 95.0, 25.0)) == [True, False]
    assert verdicts(lbm(2, 50.0, 25.0, verdict="wrong")) == [False]


def what_programs_wrote_before_says_the_same():
    rows = [("messages", 970.0), ("stream", 980.0)]
    ways = {"messages": 40.0, "stream": 10.0, "kernel": 5.0}
    for old, new in ((himeno("S", ways), new_himeno("S", ways)), (himeno("L", ways, alone=9.0), new_himeno("L", ways, alone=9.0)),
                     (jacobi(1, 450.0, 500.0, rows), new_jacobi(1, 450.0, 500.0, rows)), (jacobi(2, 500.0, 520.0, rows), new_jacobi(2, 500.0, 520.0, rows)),
                     (lbm(1, 25.0), new_lbm(1, 25.0)), (lbm(4, 95.0, 25.0), new_lbm(4, 95.0, 25.0))):
        assert judged(old) and judged(new) == judged(old), (judged(new), judged(old))
        assert rows_table({**ABOUT, "runs": [new]}) == rows_table({**ABOUT, "runs": [old]})
    assert verdicts({**new_lbm(1, 25.0), "verified": False}) == [False]


def other_cuts_are_judged_by_themselves():
    cut = {**new_himeno("L", {"kernel": 100.0}, alone=200.0), "grid": [1, 1, 2]}
    found = judged(new_himeno("L", {"kernel": 190.0}, alone=200.0), cut)
    assert [one["pass"] for one in found.values()] == [False, True] and "cut 1 x 1 x 2" in list(found)[1], found
    assert verdicts({**cut, "size": "S"}) == [], "of the small sizes the ways to exchange are compared along one dimension"
    assert verdicts({**cut, "verified": False}) == [False]
    assert "| Himeno | L, ranks 1 x 1 x 2 | 2 | kernel | 10 | GFLOPS | 100.00 | 1.000 | yes |" in rows_table({**ABOUT, "runs": [cut]})


def planes_have_a_table_of_their_own():
    ways = {"messages": 44.0, "messages, overlapped": 40.0, "stream": 30.0, "stream, overlapped": 33.0, "kernel": 21.0, "kernel, coefficients kept": 20.0}
    runs = [slab(32, 128, ways), slab(16, 128, {"messages": 44.0}), {**slab(16, 64, ways), "verified": False}, new_himeno("S", ways)]
    assert verdicts(*runs) == [False], "planes are not of a row; size S is"
    record = {**ABOUT, "runs": runs}
    assert [cells.split(" | ")[1] for cells in rows_table(record)[2:]] == ["S"] * 7, rows_table(record)
    assert slabs_table(record)[3:] == ["| 64 x 64 | 16 | 2 | 40.00 | 40.00 | 30.00 | 20.00 | 1.50 | 1.000 | NO |",
                                       "| 128 x 128 | 16 | 2 | 40.00 | 44.00 |  |  |  |  | yes |",
                                       "| 128 x 128 | 32 | 2 | 40.00 | 40.00 | 30.00 | 20.00 | 1.50 | 1.000 | yes |"], slabs_table(record)
    assert slabs_table({**ABOUT, "runs": runs[3:]}) == []


def a_run_is_put_together_shown_and_filed():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "info.json").write_text(json.dumps(ABOUT))
        for number, run in enumerate((himeno("S", {"kernel": 5.0}), by_nccl("S", 12.0), jacobi(2, 500.0, 520.0, [("kernel", 990.0)]), lbm(2, 50.0, 25.4),
                                       pixels(480.0), particles(2000.0))):
            (folder / f"{number}.workload.json").write_text(json.dumps(run))
        (folder / "slices.workload.json").write_text(json.dumps({"program": "himeno", "ranks": 2, "verified": True,
                                                                 "runs": [slab(16, 64, {"kernel": 5.0}), slab(32, 64, {"kernel": 6.0})]}))
        (folder / "cut.workload.json").write_text('{"program": "lb')
        done = subprocess.run([sys.executable, "-B", TOOLS / "workloads_record.py", folder / "info.json", folder, folder / "workloads.json"],
                              capture_output=True, text=True)
        assert done.returncode == 0 and "left out cut.workload.json" in done.stdout, done
        record = json.loads((folder / "workloads.json").read_text())
        assert len(record["runs"]) == 8 and record["commit"] == ABOUT["commit"], record
        table = "\n".join(workloads_table([folder / "workloads.json"]))
        for cell in ("| Himeno | S | 2 | kernel |", "| NCCL 2.28.9 in a graph |", "| Jacobi | 16384 x 16384 | 2 | kernel | 990.0 |", "| lattice Boltzmann | tgv 512 x 512 x 512 | 2 | one-sided | 50.00 |",
                     "| pixels | 3000 x 16000 | 2 | stream | 960.0 | Gpix/s | 50.00 | 1.000 | yes |",
                     "| 64 x 64 | 32 | 2 | 40.00 |  |  | 6.00 |",
                     "| particles | 4000000, 0.01 of the box a step | 2 | soa | 2000.0 | M particles/s | 2000.00 | 0.500 | yes |"):
            assert cell in table, (cell, table)
        measured = folder / "measured"
        filed = subprocess.run([sys.executable, "-B", TOOLS / "record_measurements.py", folder, "--measured", measured], capture_output=True, text=True)
        assert filed.returncode == 0, filed
        assert [file.name for file in measured.glob("*-workloads.json")] == [f"{record['date'][:10]}-2x-nvidia-h200-workloads.json"], filed
        for file in folder.glob("*.workload.json"):
            file.unlink()
        none = subprocess.run([sys.executable, "-B", TOOLS / "workloads_record.py", folder / "info.json", folder, folder / "none.json"],
                              capture_output=True, text=True)
        assert none.returncode == 1 and "holds no *.workload.json" in none.stderr, none


for proof in (kernels_are_twice_as_quick_as_the_best_that_is_driven, large_sizes_scale, jacobi_stands_beside_a_copy_and_one_gpu,
              lattices_scale_and_one_gpu_is_quick, what_programs_wrote_before_says_the_same, other_cuts_are_judged_by_themselves, planes_have_a_table_of_their_own, a_run_is_put_together_shown_and_filed):
    proof()
    print(proof.__name__)
