"""The command `isthmus` of a wheel: the program that lies in this package."""
import os
import sys


def main() -> None:
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "isthmus")
    try:
        os.execv(program, ["isthmus", *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"isthmus: {program} cannot be started ({error.strerror}); install the package again")
