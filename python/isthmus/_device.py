"""Where the headers for kernels are, for compilers that Python programs drive: CuPy, Numba, NVRTC itself."""
import pathlib
import re

_INCLUDED = re.compile(r'^#include "(isthmus/[^"]+)".*\n', re.MULTILINE)


def get_include():
    """The folder for -I: kernels then begin with #include "isthmus/device.cuh"."""
    # As it was imported: in a build this file is a link.
    return str(pathlib.Path(__file__).absolute().parent / "include")


def device_source():
    """isthmus/device.cuh and isthmus/device/window.cuh, and all that they include, as one text, for compilers that take no folder."""
    folder = pathlib.Path(get_include())
    seen = set()

    def text_of(name):
        if name in seen:
            return ""
        seen.add(name)
        return _INCLUDED.sub(lambda found: text_of(found[1]), (folder / name).read_text())

    return text_of("isthmus/device.cuh") + text_of("isthmus/device/window.cuh")
