"""Ranks that Slurm's own srun starts, by PMIx and by PMI-2. The cluster is two nodes of this machine, with daemons that this script starts
in a folder of its own, and ends: no service of the system takes part. Arguments: the rank of other launchers' tests, hello in C, and
where there is a Python package the interpreter, hello in Python and the path of modules.
"""
import ctypes
import getpass
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

PLUGINS = {"pmix": "pmix", "pmi2": "pmi"}  # what srun calls it, and what we do

CONFIGURATION = """
ClusterName=isthmus
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
# The PMIx plugin makes a folder for each step in here, whose name does not tell the node.
TmpFS={folder}/tmp-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SchedulerType=sched/builtin
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
# Nodes with more processors than this machine may have.
SlurmdParameters=config_overrides
ReturnToService=2
NodeName=left NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=8
NodeName=right NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=8
PartitionName=all Nodes=left,right Default=YES
"""


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def ends_with_its_parent():
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGTERM)


class Cluster:
    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="slurm-")  # short: sockets are in it
        self.daemons = []
        # Nothing of a cluster to which this process may belong, and nothing that makes ranks of us by other ways.
        self.environment = {name: value for name, value in os.environ.items()
                            if not name.startswith(("SLURM", "PMI", "ISTHMUS_")) and name not in ("RANK", "WORLD_SIZE")}
        self.environment["SLURM_CONF"] = self.at("slurm.conf")
        self.environment["PATH"] += ":/usr/sbin:/sbin"

    def at(self, name):
        return os.path.join(self.folder, name)

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def start(self):
        for name in ("state", "spool-left", "spool-right", "tmp-left", "tmp-right"):
            os.mkdir(self.at(name))
        with open(os.open(self.at("munge.key"), os.O_CREAT | os.O_WRONLY, 0o400), "wb") as key:
            key.write(os.urandom(128))
        with open(self.at("slurm.conf"), "w") as configuration:
            configuration.write(CONFIGURATION.format(host=socket.gethostname().split(".")[0], user=getpass.getuser(),
                                                     folder=self.folder, ports=free_ports(3)))
        self.daemon("munged", "--foreground", "--force", *(f"--{what}-file={self.at('munge.' + what)}"
                                                           for what in ("key", "pid", "log", "seed")),
                    f"--socket={self.at('munge.socket')}")
        self.until(lambda: os.path.exists(self.at("munge.socket")), "munged")
        self.daemon("slurmctld", "-D", "-c")
        for node in ("left", "right"):
            self.daemon("slurmd", "-D", "-N", node)
        self.until(lambda: "idle 2" in self.run("sinfo", "-h", "-o", "%T %D").stdout, "the two nodes")

    def daemon(self, *words):
        with open(self.at(f"daemon-{len(self.daemons)}.out"), "w") as output:
            self.daemons.append(subprocess.Popen(words, env=self.environment, stdout=output, stderr=output,
                                                 stdin=subprocess.DEVNULL, preexec_fn=ends_with_its_parent))

    def until(self, holds, what, seconds=30):
        end = time.monotonic() + seconds
        while not holds():
            gone = [one.args[0] for one in self.daemons if one.poll() is not None]
            if gone or time.monotonic() > end:
                logs = ""
                for name in sorted(os.listdir(self.folder)):
                    if name.endswith((".log", ".out")):
                        with open(self.at(name), errors="replace") as log:
                            logs += f"--- {name}\n{log.read()[-3000:]}"
                sys.exit(f"{what} did not come up within {seconds} s; ended: {gone}\n{logs}")
            time.sleep(0.05)

    def run(self, *words, **more):
        return subprocess.run(words, env={**self.environment, **more}, capture_output=True, text=True, timeout=90)

    def __exit__(self, *_):
        for one in reversed(self.daemons):
            one.terminate()
            try:
                one.wait(10)
            except subprocess.TimeoutExpired:
                one.kill()
                one.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def expect(holds, what, done):
    if not holds:
        sys.exit(f"{what}: status {done.returncode}\n{done.stdout}\n{done.stderr}")


def expect_printed(done, text, times, what):
    expect(done.returncode == 0 and done.stdout.count(text) == times, f"{what}: not {times} times {text!r}", done)


def ranks_find_each_other(cluster, plugin, rank):
    for shape, ranks in ((["-N1", "-n5"], 5), (["-N2", "-n4"], 4)):
        salt = str(random.getrandbits(30))
        done = cluster.run("srun", "-Q", f"--mpi={plugin}", *shape, rank, "exchange", ISTHMUS_TEST_SALT=salt)
        for number in range(ranks):
            expect_printed(done, f"{PLUGINS[plugin]} rank {number} of {ranks}, {ranks} on this host\n", 1, f"{plugin} {shape}")
        expect(done.stderr == "", f"{plugin} {shape}: complaints", done)
    for action, said in (("worlds", " of 3, 3 on this host\n"), ("forked", "the child was refused\n"),
                         ("again", "the world was made in the end\n"), ("order", "the order was found wrong\n")):
        expect_printed(cluster.run("srun", f"--mpi={plugin}", "-N1", "-n3", rank, action), said, 3, f"{plugin} {action}")


def programs_exchange_numbers(cluster, plugin, programs):
    for name, program in programs.items():
        for shape, ranks in ((["-N1", "-n1"], 1), (["-N2", "-n3"], 3)):
            done = cluster.run("srun", f"--mpi={plugin}", *shape, *program)
            for number in range(ranks):
                before = (number + ranks - 1) % ranks
                expect_printed(done, f"rank {number}: 1048576 of 1048576 numbers from rank {before} are right", 1,
                               f"{plugin} {shape} {name}")


def a_rank_that_fails_ends_the_job_with_its_reason(cluster, plugin, rank, hello):
    """PMIx tells the others of a rank that ended. Of PMI-2's they hear nothing until their patience ends, unless srun -K ends them."""
    begun = time.monotonic()
    done = cluster.run("srun", "-K", f"--mpi={plugin}", "-N1", "-n3", rank, "die")
    expect(done.returncode != 0 and "task 1: Exited with exit code 3" in done.stderr, f"{plugin}: a rank that dies", done)
    if plugin == "pmix":
        done = cluster.run("srun", f"--mpi={plugin}", "-N1", "-n3", rank, "die")
        # As they came to the fence before it ended, or after.
        told = ("rank 1 offered nothing for exchange 1 of world number 1", "some ranks of the job ended or gave up before")
        expect(sum(map(done.stdout.count, told)) == 2, "pmix: the others are told of the dead", done)
    expect(time.monotonic() - begun < 20, f"{plugin}: a rank that dies keeps the others waiting", done)
    done = cluster.run("srun", f"--mpi={plugin}", "-N1", "-n2", "sh", "-c",
                       f"[ $SLURM_PROCID = 0 ] || export ISTHMUS_CELLS=many; exec {hello}", ISTHMUS_BOOT_TIMEOUT="2")
    expect(done.returncode != 0 and 'ISTHMUS_CELLS="many"' in done.stderr and "are right" not in done.stdout,
           f"{plugin}: a rank that cannot create its world", done)


def without_a_plugin_each_process_is_told(cluster, rank):
    done = cluster.run("srun", "-N1", "-n2", rank, "exchange")
    expect_printed(done, "alone rank 0 of 1, 1 on this host\n", 2, "plain srun")
    expect(done.stderr.count("srun started 2 processes, but offers them no way to find each other") == 2, "plain srun", done)
    expect_printed(cluster.run("srun", "-N1", "-n2", rank, "exchange", SLURM_MPI_TYPE="pmix"), "pmix rank ", 2,
                   "plain srun where the site's default is PMIx")


def main(rank, hello, *python):
    programs = {"C": [hello]}
    if python:
        programs["Python"] = ["env", f"PYTHONPATH={python[2]}", python[0], python[1]]
    with Cluster() as cluster:
        for plugin in PLUGINS:
            ranks_find_each_other(cluster, plugin, rank)
            programs_exchange_numbers(cluster, plugin, programs)
            a_rank_that_fails_ends_the_job_with_its_reason(cluster, plugin, rank, hello)
            print(f"srun --mpi={plugin}: good", flush=True)
        without_a_plugin_each_process_is_told(cluster, rank)


if __name__ == "__main__":
    main(*sys.argv[1:])
