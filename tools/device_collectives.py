"""Collective calls between GPUs, ours beside NCCL's own: the table of what tools/gpu_run.sh collectives recorded."""
import json

SIZES = [(8, "8 B"), (64 << 10, "64 KiB"), (1 << 20, "1 MiB"), (16 << 20, "16 MiB"), (64 << 20, "64 MiB")]


def cell(bench, size):
    row = next((row for row in bench["rows"] if row["bytes"] == size), None)
    return f"{row['median_us']:.1f} ({row['p10_us']:.1f} to {row['p90_us']:.1f}), {row['path']}" if row else ""


def device_table(files):
    """One line for each call and library, in the order of the calls, ours first."""
    lines = []
    for file in files:
        benches = json.loads(file.read_text())
        first = benches[0]
        lines += [f"### Collective calls between GPUs in [{file.name}]({file.name})", "",
                  f"{first['machine']}; commit {first['commit']}; {first['date'][:10]}. Microseconds of a call, averaged over the "
                  "ranks: median (p10 to p90), and what carried it.", "",
                  "| call | ranks | by | " + " | ".join(name for _, name in SIZES) + " |", "|---|---|---|" + "---|" * len(SIZES)]
        calls = list(dict.fromkeys(one["benchmark"] for one in benches))
        for one in sorted(benches, key=lambda one: (calls.index(one["benchmark"]), one["by"] != "isthmus")):
            cells = [one["benchmark"], str(one["ranks"]), one["by"]] + [cell(one, size) for size, _ in SIZES]
            lines.append("| " + " | ".join(cells) + " |")
        lines.append("")
    return lines
