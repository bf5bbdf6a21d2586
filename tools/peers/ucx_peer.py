"""UCX by itself as a peer of messages, without an MPI above it: its configurations, and one run of tools/peers/ucx_bench.c.

Who calls this: tools/peers/compare.py. Measured is the wheel that tools/peers/get_mpi_wheels.sh has put into BUILD/peers or, where that is
not there, what the system's compiler finds.
"""
import pathlib
import shutil
import sys

from mpis import TOP, Peer, run

# Two copies through shared memory, and one by process_vm_readv where UCX thinks that better, which is what it does when nothing is set.
# Longer pieces than its 8 KiB make windows quicker. Of more than 64 KiB wrong bytes arrive (1.22), which the program finds.
WAYS = {way: dict(word.split("=") for word in way.split()) for way in (
    "UCX_TLS=posix",
    "UCX_TLS=sysv",
    "UCX_TLS=posix,cma",
    "UCX_TLS=posix UCX_POSIX_SEG_SIZE=16k",
    "UCX_TLS=posix UCX_POSIX_SEG_SIZE=32k",
)}
# It logs to standard output, which is read here.
SILENT = {"UCX_LOG_LEVEL": "fatal"}


class Ucx(Peer):
    """Starts its two ranks itself, and has no calls of all ranks."""

    def __init__(self, program):
        self.name, self.program, self.ways = "ucx", program, dict(WAYS)
        self.title, self.times, self.again = "", {}, {}

    def command(self, way, words, ranks):
        return [self.program, *words], {**self.ways[way], **SILENT}


def find_ucx(wheels, work):
    """A list of it, or of nothing, which is said."""
    installed = next(pathlib.Path(wheels).glob("libucx-*/lib/python*/site-packages/libucx"), None)
    places = []
    if installed:
        # Of its libraries one finds the other by the old sort of path alone.
        library = installed.resolve() / "lib"
        places = [f"-I{installed.resolve() / 'include'}", f"-L{library}", f"-Wl,--disable-new-dtags,-rpath,{library}"]
    program, compiler = str(work / "ucx_bench"), shutil.which("cc") or shutil.which("gcc")
    why = "there is no compiler"
    if compiler:
        said, why = run([compiler, "-O2", "-o", program, str(TOP / "tools/peers/ucx_bench.c"), *places, "-lucp", "-lucs"], {}, 120)
        if said is not None:
            return [Ucx(program)]
    print(f"left out: ucx: {why}", file=sys.stderr)
    return []
