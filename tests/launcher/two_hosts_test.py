"""Ranks on two hosts find each other by real addresses. The hosts are network namespaces of this machine, each with a name
and an address of its own, joined by a virtual cable. Arguments: the program of a rank, or --python for ranks in Python. Status 77:
namespaces are not permitted.
"""
import os
import random
import shlex
import subprocess
import sys
import time

SKIPPED = 77
NAMESPACES = (["unshare", "-n", "--uts"], ["unshare", "-Urn", "--uts"])


# A rank in Python: buffers go to ranks of its own host, and what needs all of them says why it cannot be.
PYTHON_RANK = """
import os, sys, numpy, isthmus
with isthmus.World() as world:
    comm = world.comm
    local = comm.split_local()
    mine, theirs = numpy.array([comm.rank]), numpy.zeros(1, int)
    comm.sendrecv(mine, comm.rank ^ 1, theirs, comm.rank ^ 1)
    assert theirs[0] == comm.rank ^ 1
    total = numpy.zeros(1, int)
    local.allreduce(mine, total)
    assert total[0] == comm.rank + theirs[0] and local.allgather_object(comm.rank) == [comm.rank & 2, comm.rank | 1]
    for call in (comm.barrier, comm.dup, lambda: comm.send_object(1, comm.rank ^ 1)):
        try:
            call()
            sys.exit("a call that needs all ranks went through")
        except isthmus.UnreachableError as error:
            assert " on left)" in str(error) and " on right)" in str(error), error
    os.write(1, f"rank {comm.rank} on {sys.argv[1]} is through\\n".encode())  # at once, among those of the others
"""


def enter(program):
    """Starts this script again where it may make hosts."""
    reason = ""
    for namespaces in NAMESPACES:
        tried = subprocess.run(namespaces + ["sh", "-c", "hostname left && ip link add name left0 type veth peer name right0"],
                               capture_output=True, text=True)
        if tried.returncode == 0:
            return subprocess.run(namespaces + [sys.executable, __file__, "--inside", program], timeout=110).returncode
        reason = tried.stderr.strip()
    print("skipped: not covered here, because this machine permits no network namespaces:", reason)
    return SKIPPED


def ip(*words):
    subprocess.run(["ip", *words], check=True)


def until(holds, seconds=10):
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            sys.exit("the other host did not come up")
        time.sleep(0.01)


def network_of(process):
    return os.readlink(f"/proc/{process}/ns/net")


def other_host(commands):
    """A shell on the host "right", which runs the commands once it has its end of the cable."""
    script = ("hostname right; read go; ip link set lo up; ip link set right0 up; ip address add 10.77.0.2/24 dev right0; "
              "ip address add fd77::2/64 dev right0 nodad; echo up; read go; " + commands)
    shell = subprocess.Popen(["unshare", "-n", "--uts", "sh", "-c", script], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    until(lambda: network_of(shell.pid) != network_of("self"))
    return shell


def run_job(program, address, ranks=4):
    """Half of the ranks on each host, in an order of starting that changes."""
    port = str(random.randrange(20000, 30000))
    environment = {**os.environ, "WORLD_SIZE": str(ranks), "MASTER_ADDR": address, "MASTER_PORT": port,
                   "ISTHMUS_BOOT_TIMEOUT": "20"}
    os.environ.update(environment)
    there = range(ranks // 2, ranks)
    start = " ".join(f"RANK={rank} timeout 40 {shlex.join(program)} right left & p{rank}=$!;" for rank in there)
    right = other_host(start + " bad=0; " + " ".join(f"wait $p{rank} || bad=1;" for rank in there) + " exit $bad")
    ip("link", "add", "name", "left0", "type", "veth", "peer", "name", "right0")
    ip("link", "set", "right0", "netns", str(right.pid))
    ip("address", "add", "10.77.0.1/24", "dev", "left0")
    ip("address", "add", "fd77::1/64", "dev", "left0", "nodad")
    ip("link", "set", "left0", "up")
    right.stdin.write("go\n")
    right.stdin.flush()
    assert right.stdout.readline() == "up\n"
    if random.random() < 0.5:
        right.stdin.write("go\n")
        right.stdin.flush()
        time.sleep(0.2)
    left = [subprocess.Popen(["timeout", "40", *program, "left", "right"], env={**environment, "RANK": str(rank)},
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for rank in reversed(range(ranks // 2))]
    outputs = [right.communicate("go\n")[0]] + [rank.communicate()[0] for rank in left]
    text = "".join(outputs)
    # The cable goes with the other host, whose last process has ended, or now.
    subprocess.run(["ip", "link", "delete", "left0"], capture_output=True)
    until(lambda: not os.path.exists("/sys/class/net/left0") or subprocess.run(
        ["ip", "link", "show", "left0"], capture_output=True).returncode != 0)
    good = all(process.returncode == 0 for process in [right, *left])
    for rank in range(ranks):
        good = good and f"rank {rank} on {'right' if rank in there else 'left'} is through\n" in text
    print(f"{ranks} ranks that meet at {address}:", "good" if good else "bad\n" + text)
    return good


def inside(program):
    subprocess.run(["hostname", "left"], check=True)
    ip("link", "set", "lo", "up")
    if program == "--python":
        return 0 if run_job([sys.executable, "-c", PYTHON_RANK], "10.77.0.1") else 1
    good = [run_job([program], address) for address in ("10.77.0.1", "fd77::1")]
    good.append(run_job([program], "10.77.0.1", ranks=2))
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(inside(sys.argv[2]) if sys.argv[1] == "--inside" else enter(sys.argv[1]))
