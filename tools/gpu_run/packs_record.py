"""The table of random layouts that were packed on devices (tools/gpu_run.sh packs)."""
import json


def packs_table(files):
    if not files:
        return []
    lines = ["### Random layouts packed on devices", "",
             "Each test packs and unpacks so many random layouts, and compares them byte by byte with an interpreter of their definitions.", "",
             "| record | machine | commit | layouts a test | tests passed | failed | seconds |", "|---|---|---|---|---|---|---|"]
    for file in files:
        found = json.loads(file.read_text())
        for record in found if isinstance(found, list) else [found]:
            failed = [test["name"] for test in record["tests"] if not test["passed"]]
            failed += [step for step in record["steps"] if step.startswith("FAILED")]
            lines.append(f"| [{file.name}]({file.name}) | {record['machine']} | {record['commit']} | {record['cases']} | "
                         f"{sum(test['passed'] for test in record['tests'])} | {', '.join(failed) or 0} | "
                         f"{round(sum(test['seconds'] for test in record['tests']))} |")
    return lines + [""]
