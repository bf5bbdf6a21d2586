"""The table of what `isthmus bench halo --json FILE` wrote, of which halo.json is a list.

Called by tools/record_measurements.py.
"""
import json

HEAD = ["### Halo exchange", "",
        "Of `isthmus bench halo`: medians in us, as the slowest rank has them, of exchanges in which every cell was compared first. `calls` copies "
        "or packs box by box, `layouts` by one layout for each neighbour, `loops` by loops of this library's, on CUDA all boxes in one launch, `auto` is what was "
        "the quickest when the plan was made. The limit is a bare copy in one piece of what a rank sends to others. Quick runs have a twentieth of the repetitions.", "",
        "| record | memory | ranks | case | bytes of a rank | packing | way | pack | exchange | unpack | whole (p10 to p90) | limit | ratio | repetitions | machine | commit |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|"]


def halo_table(files):
    lines = []
    for file in files:
        for report in json.loads(file.read_text()):
            for row in report["rows"]:
                times = [f"{row[name]:.1f}" if name in row else "" for name in ("pack_us", "exchange_us", "unpack_us")]
                cells = [f"[{file.name}]({file.name})", report["from"], str(report["ranks"]), row["case"], str(row["bytes"]), row["packing"], row["way"], *times,
                         f"{row['median_us']:.1f} ({row['p10_us']:.1f} to {row['p90_us']:.1f})" if "median_us" in row else "",  # packed once, and no exchange
                         *(f"{row[name]:.1f}" if row.get(name) is not None else "" for name in ("limit_us", "limit_ratio")),
                         f"{row.get('iterations', 1)}{' (quick)' if report.get('quick') else ''}", report["machine"], str(report["commit"])]
                lines.append("| " + " | ".join(cells) + " |")
    return HEAD + lines + [""] if lines else []
