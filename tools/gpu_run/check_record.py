#!/usr/bin/env python3
"""What tools/gpu_run.sh check found, in parts and as a whole.

    check_record.py part NAME RAW OUT KEPT    the record of one part ("tests 1/2", "rest"), written to a file of its own in KEPT, from
                                              RAW (names.txt, tests.xml, steps.txt, demo/) and OUT (info.json, bench.json)
    check_record.py merge TO FROM...          one record of several, which may be records of parts or of wholes; it says which parts
                                              and which tests were not run. Of a part that is there twice the later one counts

Both have the same form, that of a record with the parts which it has. Records of another machine or commit, or of tests that were
dealt out otherwise, are not put together: merge says which, takes those that are as the last one is, and its status is 1.
"""
import datetime
import json
import pathlib
import re
import sys
import xml.etree.ElementTree as tree


def results(raw):
    """Of the tests that were to be run: which passed, failed, were skipped, or were not reached; and the slowest of them."""
    tests = {"passed": 0, "failed": [], "skipped": [], "not_run": []}
    names = (raw / "names.txt").read_text().splitlines() if (raw / "names.txt").exists() else []
    try:
        cases = list(tree.parse(raw / "tests.xml").getroot().iter("testcase"))
    except (OSError, tree.ParseError):
        cases = []
    for case in cases:
        status = case.get("status")
        if status == "run":
            tests["passed"] += 1
        else:
            tests["failed" if status == "fail" else "skipped"].append(case.get("name"))
    reached = {case.get("name") for case in cases}
    tests["not_run"] = [name for name in names if name not in reached]
    slowest = sorted(((float(case.get("time") or 0), case.get("name")) for case in cases), reverse=True)
    return tests, [{"test": name, "seconds": round(seconds, 1)} for seconds, name in slowest[:20] if seconds >= 3]


def part(name, raw, out, kept):
    info = json.loads((out / "info.json").read_text())
    steps = [{"part": name, "step": step, "passed": word == "ok", "seconds": int(seconds)} for word, step, seconds in
             re.findall(r"^(ok|FAILED) +(.*) \((\d+) s\)$", (raw / "steps.txt").read_text(), re.MULTILINE)]
    tests, slowest = results(raw)
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    demo, benches = raw / "demo" / "stencil2d.json", out / "bench.json"
    record = {"machine": info["machine"], "commit": info["commit"], "date": now,
              "parts": [{"part": name, "date": now, "tests": tests, "slowest": slowest}],
              "demo": json.loads(demo.read_text()) if name == "rest" and demo.exists() else None,
              "benches": json.loads(benches.read_text()) if name == "rest" and benches.exists() else [], "steps": steps}
    (kept / (re.sub(r"\W+", "-", name) + ".json")).write_text(json.dumps(record, indent=1) + "\n")
    print(f"{name}: {counted(tests)}")


def counted(tests):
    return (f"{tests['passed']} passed, {len(tests['failed'])} failed, {len(tests['skipped'])} skipped, "
            f"{len(tests['not_run'])} not run")


def shares_of(record):
    """Into how many shares the tests of a record were dealt; None where it has none of them."""
    found = {name["part"].split("/")[1] for name in record["parts"] if "/" in name["part"]}
    return int(found.pop()) if found else None


def fitting(records):
    """Those that belong to the latest one, oldest first, and whether that is all of them."""
    records.sort(key=lambda record: record["date"])
    about = [records[-1]["machine"], records[-1]["commit"]]
    shares = next((shares_of(record) for record in reversed(records) if shares_of(record)), None)
    chosen = []
    for record in records:
        if [record["machine"], record["commit"]] == about and shares_of(record) in (None, shares):
            chosen.append(record)
        else:
            print(f"left out: {', '.join(one['part'] for one in record['parts'])} of {record['commit']} on {record['machine']}, "
                  f"{record['date']}: another machine, commit or number of shares than the latest record has")
    return chosen, len(chosen) == len(records), shares


def merged(records, shares):
    parts, steps, whole = {}, {}, {"demo": None, "benches": []}
    for record in records:
        for one in record["parts"]:
            parts[one["part"]] = one
            steps[one["part"]] = [step for step in record["steps"] if step["part"] == one["part"]]
            if one["part"] == "rest":
                whole = {"demo": record["demo"], "benches": record["benches"]}
    wanted = [f"tests {share}/{shares}" for share in range(1, shares + 1)] if shares else ["tests"]
    tests = {"passed": sum(one["tests"]["passed"] for one in parts.values())}
    for word in ("failed", "skipped", "not_run"):
        tests[word] = [name for one in parts.values() for name in one["tests"][word]]
    last = records[-1]
    return {"machine": last["machine"], "commit": last["commit"], "date": last["date"], "tests": tests,
            "parts_not_run": [name for name in [*wanted, "rest"] if name not in parts], "parts": list(parts.values()), **whole,
            "steps": [step for one in steps.values() for step in one]}


def merge(to, files):
    records, all_of_them, shares = fitting([json.loads(file.read_text()) for file in files])
    record = merged(records, shares)
    to.write_text(json.dumps(record, indent=1) + "\n")
    print(f"tests: {counted(record['tests'])}")
    if record["parts_not_run"]:
        print(f"NOT RUN yet: {', '.join(record['parts_not_run'])}")
    return 0 if all_of_them else 1


def main():
    words = sys.argv[1:]
    if len(words) == 5 and words[0] == "part":
        return part(words[1], *map(pathlib.Path, words[2:]))
    if len(words) >= 3 and words[0] == "merge":
        to, *files = map(pathlib.Path, words[1:])
        return merge(to, files)
    print(__doc__)
    return 2


if __name__ == "__main__":
    sys.exit(main())
