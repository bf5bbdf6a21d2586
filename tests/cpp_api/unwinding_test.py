#!/usr/bin/env python3
"""An exception that passes a request under way is told, and the program ends: it does not wait for what nobody sends."""
import subprocess
import sys

SECONDS = 20


def main():
    launcher, program = sys.argv[1:3]
    for what in ["irecv", "isend", "vector", "recv_init", "send_init", "ibarrier", "iallreduce of few", "iallreduce", "calls"]:
        for who in ["both", "alone"]:
            command = [launcher, "run", "-n", "2", program, what, who]
            try:
                done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
            except subprocess.TimeoutExpired as late:
                sys.exit(f"{what}, {who}: still there after {SECONDS} s: {late.stdout} {late.stderr}")
            told = [line for line in done.stdout.splitlines() if "has ranks 0 to 1" in line]
            if done.returncode != 1 or not told or (who == "both" and len(told) > 2):
                sys.exit(f"{what}, {who}: exit status {done.returncode}\n{done.stdout}\n{done.stderr}")


main()
