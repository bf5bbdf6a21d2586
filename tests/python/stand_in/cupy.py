"""What examples need of CuPy, over the memory of tests/fake_cuda: arrays that show themselves by the CUDA array interface alone."""
import ctypes
import pathlib
import sys
import types

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from devices import U64, Driver  # noqa: E402

_driver = Driver()
if not _driver.fake:
    raise ImportError("this stands in for CuPy where the driver is an invented one")
_driver.own = _driver.stream()
cuda = types.SimpleNamespace(Device=lambda number: types.SimpleNamespace(use=_driver.use))


class _Block:
    """Device memory, and host memory beside it into which it is copied for every look: the processor cannot read it."""

    def __init__(self, size):
        self.beside, self.address = np.zeros(max(size, 1), np.uint8), U64()
        _driver.use()
        _driver.call("cuMemAlloc_v2", ctypes.byref(self.address), ctypes.c_size_t(self.beside.nbytes))

    def copy(self, to_device):
        ends = self.address.value, self.beside.ctypes.data
        _driver.copy(*(ends if to_device else reversed(ends)), self.beside.nbytes, _driver.own)
        _driver.wait(_driver.own)

    def __del__(self):
        _driver.use()
        _driver.call("cuMemFree_v2", self.address)


def _plain(value):
    if not isinstance(value, ndarray):
        return value
    value._block.copy(False)
    return value._seen


def _made(value):
    """A new array of the device with these contents."""
    value = np.asarray(value)
    block = _Block(value.nbytes)
    seen = block.beside[:value.nbytes].view(value.dtype).reshape(value.shape)
    seen[...] = value
    block.copy(True)
    return ndarray(seen, block)


class ndarray(np.lib.mixins.NDArrayOperatorsMixin):
    def __init__(self, seen, block):
        self._seen, self._block = seen, block

    def __array_ufunc__(self, function, method, *inputs, **options):
        return _made(getattr(function, method)(*map(_plain, inputs), **options))

    def __getitem__(self, part):
        return ndarray(self._seen[part], self._block)

    def __setitem__(self, part, value):
        value = np.array(_plain(value))
        _plain(self)[part] = value
        self._block.copy(True)

    def __bool__(self):
        return bool(_plain(self))

    @property
    def __cuda_array_interface__(self):
        told = self._seen.__array_interface__
        address = self._block.address.value + told["data"][0] - self._block.beside.ctypes.data
        return {"version": 3, "shape": told["shape"], "strides": told["strides"], "typestr": told["typestr"], "data": (address, False),
                "stream": 1}

    shape, size = (property(lambda self, name=name: getattr(self._seen, name)) for name in ("shape", "size"))

    def copy(self):
        return _made(_plain(self))

    def max(self):
        return _made(_plain(self).max())


def _of_numpy(name):
    return lambda *arguments: _made(getattr(np, name)(*map(_plain, arguments)))


arange, cos, roll, zeros_like = map(_of_numpy, ("arange", "cos", "roll", "zeros_like"))
