"""Proves that README shows the programs that are built, that no link of a document leads nowhere, and that the instructions,
atomic operations and indirect calls in docs/messages.md are the recorded ones. Argument: the sources."""
import json
import pathlib
import re
import sys

SOURCES = pathlib.Path(sys.argv[1])
faults = []

readme = (SOURCES / "README.md").read_text()
blocks = dict(re.findall(r"```(c|cpp)\n(.*?)```", readme, flags=re.DOTALL))
for language in ("c", "cpp"):
    example = SOURCES / "examples" / "hello" / f"hello.{language}"
    if blocks.get(language) != example.read_text():
        faults.append(f"README.md: its program in {language} is not {example.relative_to(SOURCES)}")

documents = [SOURCES / "README.md", SOURCES / "CONTRIBUTING.md", *sorted((SOURCES / "docs").rglob("*.md"))]
for document in documents:
    text = re.sub(r"```.*?```", "", document.read_text(), flags=re.DOTALL)
    for link in re.findall(r"\]\(([^)#]+)", text):
        if not link.startswith("http") and not (document.parent / link).exists():
            faults.append(f"{document.relative_to(SOURCES)}: {link} is not there")

record = json.loads((SOURCES / "tests" / "stress" / "instructions.json").read_text())
recorded = {call: tuple(f"{record[event][call]:g}" for event in ("instructions", "atomics", "indirect")) for call in record["instructions"]}
number = r" ([\d.]+) \|"
told = {call: tuple(counts) for call, *counts in re.findall(rf"^\| `(ist_\w+)`[^|]*\|{number * 3}$", (SOURCES / "docs" / "messages.md").read_text(),
                                                           flags=re.MULTILINE)}
if recorded != told:
    faults.append(f"docs/messages.md tells of {told} instructions, atomic operations and indirect calls; tests/stress/instructions.json has "
                  f"{recorded}")

print("\n".join(faults) or f"{len(documents)} documents in order")
sys.exit(1 if faults else 0)
