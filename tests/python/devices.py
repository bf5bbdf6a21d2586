"""A CUDA driver and an OpenCL platform as tests need them: memory, a stream whose work comes late, and copies.

The driver is whatever libcuda.so.1 the loader finds: a GPU's, or tests/fake_cuda, where LD_LIBRARY_PATH names its folder.
"""
import ctypes

import numpy as np

U64 = ctypes.c_uint64
# cuLaunchHostFunc takes a plain C function; a sleep of so many microseconds in the stream makes its work late.
HOST_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def give_numba_its_names():
    """Numba compiles kernels with a table of NumPy's functions, which names this one; from 2.5 on NumPy has no such name."""
    if not hasattr(np, "row_stack"):
        np.row_stack = np.vstack


class Driver:
    def __init__(self):
        self.library = ctypes.CDLL("libcuda.so.1")
        self.call("cuInit", 0)
        count = ctypes.c_int()
        self.call("cuDeviceGetCount", ctypes.byref(count))
        if count.value == 0:
            raise OSError("no CUDA device")
        self.context = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), 0)
        self.use()
        self.fake = hasattr(self.library, "fake_cuda_delay")
        self.libc = ctypes.CDLL(None)
        self.usleep = ctypes.cast(self.libc.usleep, ctypes.c_void_p)

    def use(self):
        """Each thread needs a current context."""
        self.call("cuCtxSetCurrent", self.context)

    def call(self, name, *arguments):
        code = getattr(self.library, name)(*arguments)
        if code != 0:
            raise OSError(f"{name} gave {code}")

    def stream(self, blocking=False):
        """A blocking one is ordered with the default stream, which then waits for it."""
        made = ctypes.c_void_p()
        self.call("cuStreamCreate", ctypes.byref(made), 0 if blocking else 1)
        return made.value

    def late(self, stream, microseconds):
        self.call("cuLaunchHostFunc", ctypes.c_void_p(stream), self.usleep, ctypes.c_void_p(microseconds))

    def held(self, stream):
        """The stream goes on when what this gives is called."""
        gate = ctypes.create_string_buffer(64)  # a sem_t
        self.libc.sem_init(gate, 0, 0)
        self.call("cuLaunchHostFunc", ctypes.c_void_p(stream), ctypes.cast(self.libc.sem_wait, ctypes.c_void_p), gate)

        def opens():
            self.libc.sem_post(gate)
            self.wait(stream)
        return opens

    def copy(self, to, source, size, stream):
        self.call("cuMemcpyAsync", U64(to), U64(source), ctypes.c_size_t(size), ctypes.c_void_p(stream))

    def wait(self, stream):
        self.call("cuStreamSynchronize", ctypes.c_void_p(stream))


class DeviceArray:
    """Memory of the driver; what it shows of itself depends on the class below."""

    def __init__(self, driver, data, stream=None):
        self.driver, self.dtype, self.shape, self.size = driver, data.dtype, data.shape, data.nbytes
        self.stream = stream if stream is not None else driver.stream()
        address = U64()
        driver.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(max(self.size, 1)))
        self.address = address.value
        self.strides = None
        self.fill(data)
        driver.wait(self.stream)

    def fill(self, data):
        """Enqueued, not waited for."""
        self.staged = np.ascontiguousarray(data)
        if data.nbytes:
            self.driver.copy(self.address, self.staged.ctypes.data, data.nbytes, self.stream)

    def fill_late(self, data, microseconds=100000):
        self.driver.late(self.stream, microseconds)
        self.fill(data)

    def get(self):
        """Read in a stream of its own: what a completed receive promises to show."""
        data = np.empty(self.shape, self.dtype)
        reading = self.driver.stream()
        if self.size:
            self.driver.copy(data.ctypes.data, self.address, self.size, reading)
        self.driver.wait(reading)
        return data

    def __del__(self):
        self.driver.use()
        self.driver.wait(self.stream)
        self.driver.call("cuMemFree_v2", U64(self.address))


class InterfaceArray(DeviceArray):
    """Speaks the CUDA array interface, as CuPy and Numba do."""
    version = 3
    named_stream = "own"
    read_only = False

    @property
    def __cuda_array_interface__(self):
        answer = {"shape": self.shape, "typestr": self.dtype.str, "data": (self.address, self.read_only), "version": self.version,
                  "strides": self.strides}
        if self.version >= 3 and self.named_stream != "absent":
            answer["stream"] = self.stream if self.named_stream == "own" else self.named_stream
        return answer


class OldInterfaceArray(InterfaceArray):
    """As Numba before version 3: nothing says which stream has its work."""
    version = 2


class Stream:
    def __init__(self, handle):
        self.cuda_stream = handle


class TorchLike:
    """A module as PyTorch is to isthmus: tensors that speak DLPack, and a stream that is current. Put it into sys.modules."""

    def __init__(self, driver):
        self.current = driver.stream()
        self.cuda = self

        class Tensor(DeviceArray):
            requires_grad, is_cuda, device, asked = False, True, "cuda:0", ()

            def __dlpack_device__(self):
                return 2, 0

            def __dlpack__(self, **options):
                self.asked = (*self.asked, options.get("stream"))
                # Each as long as the tensor: capsules that are still held have their destructors in it.
                self.exporters = [*getattr(self, "exporters", ()), Exporter(self.address, self.shape, self.dtype, 2)]
                return self.exporters[-1].__dlpack__(**options)

            def detach(self):
                return View(self)

            @property
            def __cuda_array_interface__(self):
                raise AssertionError("the array interface of a tensor does not name its stream")

        class View(Tensor):
            def __init__(self, tensor):
                self.__dict__.update(tensor.__dict__, owner=tensor, requires_grad=False)

            def __del__(self):
                pass

        self.Tensor = Tensor

    def current_stream(self, device):
        assert device == "cuda:0"
        return Stream(self.current)


class OpenclObject:
    def __init__(self, int_ptr):
        self.int_ptr = int_ptr


class OpenclArray:
    """As pyopencl's arrays, over memory of World.allocate."""

    def __init__(self, memory, dtype, count, offset=0):
        self.memory, self.dtype, self.offset = memory, np.dtype(dtype), offset
        self.shape, self.strides = (count,), (self.dtype.itemsize,)
        self.data, self.queue = OpenclObject(memory.address), OpenclObject(memory.queue)


# ---- DLPack, made by hand ----

class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device", ctypes.c_int32), ("id", ctypes.c_int32), ("ndim", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)), ("offset", ctypes.c_uint64)]


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
DESTRUCTOR = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Managed(ctypes.Structure):
    _fields_ = [("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", DELETER)]


class ManagedVersioned(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p), ("deleter", DELETER),
                ("flags", ctypes.c_uint64), ("tensor", Tensor)]


new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, DESTRUCTOR]
CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}


class Exporter:
    """DLPack over memory at `address`. Notes what it was asked, and how many capsules are alive."""

    def __init__(self, address, shape, dtype, device=1, *, versioned=True, read_only=False, owner=None, on_stream=None):
        self.address, self.shape, self.dtype, self.device, self.owner = address, shape, np.dtype(dtype), device, owner
        self.versioned, self.read_only, self.on_stream = versioned, read_only, on_stream
        self.strides, self.offset, self.bits, self.major, self.alive = None, 0, None, 1, 0
        self.asked = []

    def __dlpack_device__(self):
        return self.device, 0

    def __dlpack__(self, **options):
        self.asked.append(options)
        if not self.versioned and "max_version" in options:
            raise TypeError("__dlpack__() got an unexpected keyword argument 'max_version'")
        if self.on_stream is not None:
            self.on_stream(options.get("stream"))
        numbers = ctypes.c_int64 * max(len(self.shape), 1)
        shape = numbers(*self.shape)
        strides = numbers(*self.strides) if self.strides else None
        tensor = Tensor(self.address, self.device, 0, len(self.shape), CODES.get(self.dtype.kind, 3),
                        self.bits or self.dtype.itemsize * 8, 1, shape, strides, self.offset)

        def delete(_):
            self.alive -= 1

        deleter = DELETER(delete)
        if self.versioned:
            managed = ManagedVersioned(self.major, 0, None, deleter, int(self.read_only), tensor)
        else:
            managed = Managed(tensor, None, deleter)
        self.alive += 1
        # As producers do it: a capsule that nobody consumed frees what it carries.
        destructor = DESTRUCTOR(lambda _: deleter(None))
        self.kept = getattr(self, "kept", []) + [(shape, strides, deleter, managed, destructor)]
        return new_capsule(ctypes.addressof(managed), b"dltensor_versioned" if self.versioned else b"dltensor", destructor)


def opencl():
    """(context, queue) of the first device, or an OSError that says why there is none."""
    try:
        import pyopencl
    except ImportError as error:
        raise OSError("pyopencl is not installed") from error
    try:
        devices = [device for platform in pyopencl.get_platforms() for device in platform.get_devices()]
    except pyopencl.Error as error:
        raise OSError(f"OpenCL gave {error}") from error
    if not devices:
        raise OSError("no OpenCL device")
    context = pyopencl.Context(devices[:1])
    return context, pyopencl.CommandQueue(context)
