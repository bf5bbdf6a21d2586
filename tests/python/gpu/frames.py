"""The array libraries of a GPU, each behind the same few calls: arrays, a stream of their own, and work that takes long.

Each one is made once per rank, and raises Missing with the reason where it cannot be used here.
"""
import contextlib
import ctypes
import time

import numpy as np

import devices

CYCLES = 150_000_000  # about 0.1 s of a GPU


class Missing(Exception):
    pass


def imported(name):
    try:
        module = __import__(name, fromlist=["*"])
    except ImportError as error:
        raise Missing(f"{name} is not installed ({error})") from error
    except Exception as error:  # a library that finds no driver may raise anything
        raise Missing(f"{name} cannot be used here ({type(error).__name__}: {error})") from error
    return module


class Driver:
    """No library at all: the CUDA driver, a GPU's or tests/fake_cuda, and the array interface."""

    def __init__(self, local_rank):
        self.driver = devices.Driver()
        self.stream, self.other = self.driver.stream(), self.driver.stream()
        self.kept = []

    def use(self):
        self.driver.use()

    def current(self):
        return contextlib.nullcontext()

    def new(self, data):
        return devices.InterfaceArray(self.driver, data, self.stream)

    def busy(self, times=1, other=False):
        for _ in range(times):
            self.driver.late(self.other if other else self.stream, 100000)

    def assign(self, array, source):
        self.driver.copy(array.address, source.address, array.size, self.stream)
        self.kept.append(source)  # freeing it would wait for the stream

    def pending(self, other=False):
        stream = ctypes.c_void_p(self.other if other else self.stream)
        return self.driver.library.cuStreamQuery(stream) == 600

    def finish(self, other=False):
        self.driver.wait(self.other if other else self.stream)

    def get(self, array):
        return array.get()


class Torch:
    def __init__(self, local_rank):
        self.torch = imported("torch")
        if not self.torch.cuda.is_available():
            raise Missing("PyTorch finds no GPU")
        self.device = local_rank % self.torch.cuda.device_count()
        self.use()
        self.stream, self.other = self.torch.cuda.Stream(), self.torch.cuda.Stream()

    def use(self):
        self.torch.cuda.set_device(self.device)

    def current(self):
        return self.torch.cuda.stream(self.stream)

    def new(self, data):
        with self.current():
            made = self.torch.from_numpy(np.array(data)).cuda()
            self.stream.synchronize()
        return made

    def busy(self, times=1, other=False):
        with self.torch.cuda.stream(self.other if other else self.stream):
            for _ in range(times):
                self.torch.cuda._sleep(CYCLES)

    def assign(self, array, source):
        with self.current():
            array.copy_(source)

    def pending(self, other=False):
        return not (self.other if other else self.stream).query()

    def finish(self, other=False):
        (self.other if other else self.stream).synchronize()

    def get(self, array):
        """In another stream than that of the array: what a completed receive promises to show."""
        with self.torch.cuda.stream(self.torch.cuda.Stream()):
            return array.cpu().numpy()


class Cupy:
    def __init__(self, local_rank):
        self.cupy = imported("cupy")
        try:
            self.device = self.cupy.cuda.Device(local_rank % self.cupy.cuda.runtime.getDeviceCount())
            self.use()
            self.spin = self.cupy.RawKernel(
                "extern \"C\" __global__ void spin(long long n) { long long s = clock64(); while (clock64() - s < n) {} }", "spin")
            self.spin.compile()
        except Exception as error:
            raise Missing(f"CuPy cannot be used here ({type(error).__name__}: {error})") from error
        self.stream, self.other = (self.cupy.cuda.Stream(non_blocking=True) for _ in range(2))

    def use(self):
        self.device.use()

    def current(self):
        return self.stream

    def new(self, data):
        with self.stream:
            made = self.cupy.asarray(data)
        self.stream.synchronize()
        return made

    def busy(self, times=1, other=False):
        with self.other if other else self.stream:
            for _ in range(times):
                self.spin((1,), (1,), (np.int64(CYCLES),))

    def assign(self, array, source):
        with self.stream:
            array[...] = source

    def pending(self, other=False):
        return not (self.other if other else self.stream).done

    def finish(self, other=False):
        (self.other if other else self.stream).synchronize()

    def get(self, array):
        with self.cupy.cuda.Stream(non_blocking=True):
            return self.cupy.asnumpy(array)


class Numba:
    def __init__(self, local_rank):
        devices.give_numba_its_names()
        cuda = self.cuda = imported("numba.cuda")
        try:
            self.device = local_rank % len(self.cuda.gpus)
            self.use()

            @self.cuda.jit("void(int64[:], int64)")
            def spin(turns, n):
                for turn in range(n):
                    turns[0] = turns[0] * 3 + turn

            @self.cuda.jit
            def copy(to, source):
                at = cuda.grid(1)
                if at < to.size:
                    to[at] = source[at]

            self.spin, self.copy = spin, copy
            self.stream, self.other = self.cuda.stream(), self.cuda.stream()
            self.turns = [self.cuda.to_device(np.zeros(1, "i8")) for _ in range(2)]
            self.length = 1000
            for _ in range(2):  # the first time is that of compiling and loading
                began = time.monotonic()
                self.busy()
                self.finish()
            self.length = int(self.length * 0.1 / (time.monotonic() - began)) + 1
            if self.length < 200_000:  # what was measured was mostly the start of a kernel
                self.length = 200_000
        except Exception as error:
            raise Missing(f"Numba cannot use the GPU here ({type(error).__name__}: {error})") from error

    def use(self):
        self.cuda.select_device(self.device)

    def current(self):
        return contextlib.nullcontext()  # its arrays carry their stream

    def new(self, data):
        made = self.cuda.to_device(np.array(data), stream=self.stream)
        self.stream.synchronize()
        return made

    def busy(self, times=1, other=False):
        for _ in range(times):
            self.spin[1, 1, self.other if other else self.stream](self.turns[other], self.length)

    def assign(self, array, source):
        self.copy[(array.size + 255) // 256 or 1, 256, self.stream](array, source)

    def pending(self, other=False):
        event = self.cuda.event()
        event.record(self.other if other else self.stream)
        return not event.query()

    def finish(self, other=False):
        (self.other if other else self.stream).synchronize()

    def get(self, array):
        return array.copy_to_host(stream=self.cuda.stream()) if array.size else np.empty(0, array.dtype)


FRAMES = {"driver": Driver, "torch": Torch, "cupy": Cupy, "numba": Numba}
