#!/usr/bin/env python3
"""No exception of the library's comes to a program of C: each call of OpenSHMEM that may throw is guarded() or ends in caught(), by its own name.

    guarded_test.py SOURCES GENERATED    SOURCES is src/face/shmem, GENERATED the folder that generate.py has written to
"""
import re
import sys
from pathlib import Path

# They look at numbers that are there, or do nothing.
NEVER_THROW = {"query_thread", "my_pe", "n_pes", "global_exit", "pe_accessible", "addr_accessible", "ptr", "info_get_version", "info_get_name",
               "initialized", "finalized", "query_initialized", "query_interoperability", "pcontrol", "ctx_get_team", "team_my_pe", "team_n_pes",
               "team_get_config", "team_translate_pe", "team_ptr", "clear_cache_inv", "set_cache_inv", "clear_cache_line_inv",
               "set_cache_line_inv", "udcflush", "udcflush_line"}
NEVER_THROW_EITHER = {"shmemx_ptr", "shmemx_error_text", "shmemx_set_error_handler", "start_pes", "_my_pe", "_num_pes", "my_pe", "num_pes", "globalexit"}
DEFINED = re.compile(r"^[\w:* ]+?\b(\w+)\([^;{}]*\) (?:try )?\{(.*?)^(?:\}|SHMEM_ALSO)", re.M | re.S)


def definitions(path):
    return DEFINED.findall(path.read_text().partition('extern "C" {')[2])


def faults(path):
    for name, body in definitions(path):
        plain = name.removeprefix("pshmem_")
        if plain in NEVER_THROW and plain != name or name in NEVER_THROW_EITHER:
            continue
        said = name if plain == name else "shmem_" + plain
        ends = re.search(r"\b(?:guarded|caught|signal_from)\((?:kCall|\"%s\")" % said, body)
        if not ends or "kCall" in ends[0] and f'kCall = "{said}"' not in body:
            yield f"{path.name}: {name}() lets exceptions out"


def main():
    sources, generated = (Path(word) for word in sys.argv[1:3])
    files = sorted(sources.glob("*.cpp")) + sorted(generated.glob("definitions_*.cpp"))
    count = sum(len(definitions(path)) for path in files)
    found = [fault for path in files for fault in faults(path)]
    print("\n".join(found) or f"{count} definitions of {len(files)} files")
    return 1 if found or count < 1900 else 0


if __name__ == "__main__":
    sys.exit(main())
