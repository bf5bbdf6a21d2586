"""Which NCCL a process with Python packages should have.

A loader keeps one library of a name per process. Whatever loads NCCL first decides for all, and PyTorch does not start with an older
one than its own. So the package's NCCL comes before the system's, if there is one, wherever nobody said otherwise.
"""
import os
import pathlib
import sys


def prefer_the_packages_own(environment=os.environ):
    if "ISTHMUS_NCCL_LIBRARY" in environment:
        return
    # By its place: to ask Python would import the package.
    for folder in sys.path:
        library = pathlib.Path(folder) / "nvidia" / "nccl" / "lib" / "libnccl.so.2"
        if library.is_file():
            environment["ISTHMUS_NCCL_LIBRARY"] = str(library.resolve())
            return
