"""The command `isthmus` of a wheel: the program that lies in this package."""
import os
import signal
import sys


def main() -> None:
    package = os.path.dirname(os.path.abspath(__file__))
    program = os.path.join(package, "bin", "isthmus")
    # Python ignores these, and what it becomes would, too, with all ranks: they would print on when nobody reads any more.
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(ignored, signal.SIG_DFL)
    try:
        os.execv(program, ["isthmus", *sys.argv[1:]])
    except OSError as error:
        if os.path.exists(program):
            sys.exit(f"isthmus: {program} cannot be started ({error.strerror}); install the package again")
        # A build has the package in python/isthmus, and the program in bin.
        built = os.path.join(os.path.dirname(os.path.dirname(package)), "bin", "isthmus")
        there = built if os.path.exists(built) else "build/bin/isthmus"
        sys.exit(f"isthmus: {program} is not there: this package lies where it was built, and was not installed; "
                 f"run {there} instead, or install the package (pip install .)")
