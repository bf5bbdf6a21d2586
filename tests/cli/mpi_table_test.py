"""Proves that docs/mpi.md places every call, type and operation of MPI, as the mpi.h of this machine and the list below have them,
either among what is there or among what is left out, and that every name on the page exists: MPI's in one of those, ours in
include/isthmus. Arguments: the sources, and perhaps mpi.h's to take in place of the installed ones. Status 77: there is none."""
import glob
import pathlib
import re
import subprocess
import sys

SKIPPED = 77
LEFT_OUT = "## Left out, and why"
PLACES = ("/usr/lib/*/openmpi/include/mpi.h", "/usr/include/*/mpich/mpi.h", "/usr/include/mpi.h")
COMPILERS = ("mpicc.openmpi", "mpicc.mpich", "mpicc")

# What an mpi.h may lack, so that the page is held to it with each MPI's header alone: calls that came with MPI-4.0 ...
PERSISTENT = ("Allgather Allgatherv Allreduce Alltoall Alltoallv Alltoallw Barrier Bcast Exscan Gather Gatherv Reduce Reduce_scatter "
              "Reduce_scatter_block Scan Scatter Scatterv")
NEW_IN_4_0 = ("Comm_create_from_group Comm_idup_with_info Group_from_session_pset Isendrecv Isendrecv_replace Parrived Pready "
              "Pready_list Pready_range Precv_init Psend_init Session_c2f Session_call_errhandler Session_create_errhandler "
              "Session_f2c Session_finalize Session_get_info Session_init Session_set_errhandler Status_c2f08 Status_f082c "
              "Status_f082f Status_f2f08")
# ... with 4.1 and 5.0 ...
NEW_SINCE = ("Abi_get_info Comm_attach_buffer Comm_detach_buffer Comm_flush_buffer Comm_iflush_buffer Get_hw_resource_info "
             "Remove_error_class Request_get_status_all Session_attach_buffer Session_detach_buffer Session_flush_buffer "
             "Session_iflush_buffer Status_get_error Status_get_source Status_get_tag")
WITH_NUMBERS = "Comm Group Op Request Session Type"
# ... and types that one MPI has and another one has not.
TYPES_OF_SOME = "2COMPLEX 2DOUBLE_COMPLEX COMPLEX4 CXX_COMPLEX LOGICAL1 LOGICAL2 LOGICAL4 LOGICAL8 LOGICAL16 REAL2"
MORE = ({f"MPI_{name}_init" for name in PERSISTENT.split()} | {"MPIX_Query_cuda_support"} |
        {f"MPI_{name}" for names in (NEW_IN_4_0, NEW_SINCE, TYPES_OF_SOME) for name in names.split()} |
        {f"MPI_{name}_{way}" for name in WITH_NUMBERS.split() for way in ("fromint", "toint")})

CALL = r"MPI_(?:[A-Z][a-z]|T_[a-z])\w*"


def installed_headers():
    found = {pathlib.Path(path).resolve() for place in PLACES for path in glob.glob(place)}
    for compiler in COMPILERS:
        try:
            shown = subprocess.run([compiler, "-show"], capture_output=True, text=True).stdout
        except OSError:
            continue
        paths = (pathlib.Path(folder) / "mpi.h" for folder in re.findall(r"(?<=-I)\S+", shown))
        found |= {path.resolve() for path in paths if path.is_file()}
    return sorted(found)


def without_comments(text):
    return re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.DOTALL)


def text_of(header):
    """With what it includes from its own folder, but for MPI's own C++."""
    text = without_comments(header.read_text(errors="replace"))
    beside = [header.parent / name for name in re.findall(r'#\s*include\s*[<"]([\w.]+)[">]', text)]
    return "\n".join([text] + [without_comments(path.read_text(errors="replace")) for path in beside
                               if path.is_file() and "cxx" not in path.name])


def calls_of(text):
    """Functions, and macros that stand for one. A call for large counts goes by the name of the one without."""
    names = re.findall(rf"(?:\b(?:int|double|MPI_\w+)\s+|#\s*define\s+)({CALL})\s*\(", text)
    return {re.sub(r"_c$", "", name) for name in names}


def handles_of(text):
    """Types and operations that are there from the start, other names of them included."""
    defined = re.findall(r"^\s*#\s*define\s+(MPI_[A-Z0-9_]+)\s+(\S.*)$", text, flags=re.MULTILINE)
    names = {name for name, value in defined if re.search(r"\(\s*MPI_(?:Datatype|Op)\b", value)}
    return names | {name for name, value in defined if value.strip() in names}


def whole(first, cut):
    """`_size` behind MPI_Comm_rank is MPI_Comm_size, and `_Recv` behind MPI_Send is MPI_Recv; so behind ist_comm_rank, in small."""
    head = first.split("_")
    return "_".join(head[: 2 if re.match(r"_[a-z]", cut) else 1]) + cut


def names_of(cell, ours):
    """The names that stand in a cell between backticks, in full; of MPI or ours."""
    start = re.compile(r"(?:ist|IST)_\w+\*?" if ours else r"MPIX?_[\w*]+")
    names = []
    for span in re.findall(r"`([^`]+)`", cell):
        if match := start.match(span):
            names.append(match[0])
        elif names and re.fullmatch(r"_[\w*]+", span):
            names.append(whole(names[-1], span))
    return names


def tables_of(page):
    """The first cells of what is there and of what is left out, and all other cells."""
    there, left_out, others = [], [], []
    section = there
    for line in page.splitlines():
        if line.strip() == LEFT_OUT:
            section = left_out
        elif line.startswith("| ") and not line.startswith("| MPI |"):
            first, *rest = line.strip().strip("|").split("|")
            section.append(first)
            others += rest
    return there, left_out, others


class Named:
    """The names of one table: single ones, and beginnings of whole families."""

    def __init__(self, cells):
        names = [name for cell in cells for name in names_of(cell, ours=False)]
        self.single = {name for name in names if "*" not in name}
        self.families = {name for name in names if "*" in name}

    def has(self, name):
        return name in self.single or any(name.startswith(family.rstrip("*")) for family in self.families)


def faults_of_tables(there, left_out, wanted, known, declared):
    for name in sorted(wanted):
        if not there.has(name) and not left_out.has(name):
            yield f"{name} is in neither table"
        if f"ist_{name[4:].lower()}" in declared and name not in there.single:
            yield f"{name} is not among what is there, and we have ist_{name[4:].lower()}"
    for name in sorted(there.single & left_out.single):
        yield f"{name} is in both tables"
    for one, other in ((there, left_out), (left_out, there)):
        for family in sorted(one.families):
            if not re.fullmatch(r"MPI_[A-Z][A-Za-z0-9]*_(?:[A-Za-z0-9]+_)*\*", family):
                yield f"{family} is no family: a whole part of a name and `_` must stand before the star"
                continue
            if not any(name.startswith(family[:-1]) for name in known):
                yield f"{family} holds nothing that an mpi.h has"
            if torn := sorted(name for name in other.single if name.startswith(family[:-1])):
                yield f"{family} is in one table, and {torn[0]} in the other: name smaller families"


def faults_of_names(page, first_cells, other_cells, known, declared):
    of_mpi = {name for cell in first_cells for name in names_of(cell, ours=False)} | set(re.findall(r"\bMPIX?_\w+", page))
    for name in sorted(of_mpi):
        if "*" not in name and not name.endswith("_") and name not in known:
            yield f"{name} is on the page, and in no mpi.h"
    ours = {name for cell in other_cells for name in names_of(cell, ours=True)} | set(re.findall(r"\b(?:ist|IST)_\w+", page))
    for name in sorted(ours):
        beginning = name.rstrip("*")
        is_family = beginning != name or name.endswith("_")
        if not (any(one.startswith(beginning) for one in declared) if is_family else name in declared):
            yield f"{name} is on the page, and not in include/isthmus"


def main():
    sources = pathlib.Path(sys.argv[1])
    headers = [pathlib.Path(path) for path in sys.argv[2:]] or installed_headers()
    if not headers:
        print("skipped: no mpi.h was found, neither in its usual folders nor by mpicc")
        return SKIPPED
    texts = [text_of(header) for header in headers]
    found = set().union(*(calls_of(text) | handles_of(text) for text in texts))
    wanted = found | MORE
    known = set(re.findall(r"\bMPIX?_\w+", " ".join(texts))) | MORE
    ours = " ".join(without_comments(path.read_text()) for path in (sources / "include" / "isthmus").glob("*.h"))
    declared = set(re.findall(r"\b(?:ist|IST)_\w+", ours))
    page = (sources / "docs" / "mpi.md").read_text()
    there, left_out, others = tables_of(page)
    faults = [*faults_of_tables(Named(there), Named(left_out), wanted, known, declared),
              *faults_of_names(page, there + left_out, others, known, declared)]
    if len(found) < 400 or not there or not left_out or "`_c`" not in page:
        faults.append(f"{len(found)} names in {', '.join(map(str, headers))}, {len(there)} and {len(left_out)} rows on the page, which "
                      "must tell of calls with `_c`: this test no longer reads what it was written for")
    print("\n".join(f"docs/mpi.md: {fault}" for fault in faults) or
          f"{len(wanted)} names of {len(headers)} headers have their place in docs/mpi.md")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
