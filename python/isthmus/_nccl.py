"""Which NCCL a process with Python packages should have.

A loader keeps one library of a name per process. Whatever loads NCCL first decides for all, and PyTorch does not start with an older
one than its own. So the package's NCCL comes before the system's, if there is one, wherever nobody said otherwise.
"""
import os
import sys


def prefer_the_packages_own(environment=os.environ):
    if environment.get("ISTHMUS_NCCL", "auto") != "auto":
        return
    # By its place: to ask Python would import the package.
    for folder in sys.path:
        # Empty: the current folder, which is no place for packages of a system.
        if not isinstance(folder, str) or not folder:
            continue
        library = os.path.join(folder, "nvidia", "nccl", "lib", "libnccl.so.2")
        if os.path.isfile(library):
            environment["ISTHMUS_NCCL"] = os.path.realpath(library)
            return
