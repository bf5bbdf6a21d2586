"""Messages between ranks, whatever memory they use: host, CUDA, OpenCL.

    with isthmus.World() as world:
        comm = world.comm
        comm.send(array, dest=1)

Run it with `isthmus run -n 2 python script.py`.
"""
import atexit as _atexit

from . import _core, _nccl
from ._core import (ANY_SOURCE, ANY_TAG, BAND, BOR, BXOR, IN_PLACE, LAND, LOR, LXOR, MAX, MAXLOC, MIN, MINLOC, PROC_NULL,
                    PROD, SUM, TAG_MAX, Buffer, Cart, Comm, Halo, HaloField, HaloGrid, Heap, InPlace, Memory, Message, ObjectRequest, Operation,
                    PendingOperation, PersistentRequest, Registration, Request, Status, SymmetricArray, Traffic, Window, World, dims_create, ready, startall,
                    testall, testany, testsome, waitall, waitany, waitsome)
from ._device import device_source, get_include
from ._errors import (BootError, Code, DeviceError, Error, PeerDeadError, PeerLeftError, TruncateError, UnreachableError,
                      WaitallError)
from ._halo import HaloLevels, halo_bounds, halo_overlap, halo_shift, halo_split

__version__ = _core.version()
__all__ = ["ANY_SOURCE", "ANY_TAG", "BAND", "BOR", "BXOR", "BootError", "Buffer", "Cart", "Code", "Comm", "DeviceError",
           "Error", "Halo", "HaloField", "HaloGrid", "HaloLevels", "Heap", "IN_PLACE", "InPlace", "LAND", "LOR", "LXOR", "MAX", "MAXLOC", "MIN", "MINLOC", "Memory", "Message",
           "ObjectRequest", "Operation", "PROC_NULL", "PROD", "PeerDeadError", "PeerLeftError", "PendingOperation",
           "PersistentRequest", "Registration", "Request", "SUM", "Status", "SymmetricArray", "TAG_MAX", "Traffic", "TruncateError", "UnreachableError",
           "WaitallError", "Window", "World", "device_source", "dims_create", "get_include", "halo_bounds", "halo_overlap", "halo_shift", "halo_split", "ready", "startall", "testall", "testany", "testsome", "waitall", "waitany", "waitsome"]

_nccl.prefer_the_packages_own()
# A world that is left tells its peers so; one that only ends looks like a rank that died.
_atexit.register(_core.close_all)
