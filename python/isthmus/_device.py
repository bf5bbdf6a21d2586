"""Where the headers for kernels are, for compilers that Python programs drive: CuPy, Numba, NVRTC itself."""
import pathlib
import re

_INCLUDED = re.compile(r'^#include "(isthmus/[^"]+)".*\n', re.MULTILINE)


def get_include():
    """The folder for -I: kernels then begin with #include "isthmus/device.cuh"."""
    # As it was imported: in a build this file is a link.
    return str(pathlib.Path(__file__).absolute().parent / "include")


def flattened(text):
    """The text with the headers of this package in it, each once."""
    folder = pathlib.Path(get_include())
    seen = set()

    def once(name):
        if name in seen:
            return ""
        seen.add(name)
        return all_of((folder / name).read_text())

    def all_of(part):
        return _INCLUDED.sub(lambda found: once(found[1]), part)

    return all_of(text)


def device_source():
    """isthmus/device.cuh, isthmus/device/bulk.cuh and isthmus/device/window.cuh, and all that they include, as one text, for compilers that take no
    folder."""
    names = ("device.cuh", "device/bulk.cuh", "device/window.cuh")
    return flattened("".join(f'#include "isthmus/{name}"\n' for name in names))
