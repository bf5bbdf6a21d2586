"""Fixtures of tests between ranks: every rank runs every test, in the same order; a rank that fails a test ends, and the
launcher ends the others."""
import faulthandler
import os

import numpy as np
import pytest

import isthmus


@pytest.fixture(scope="session")
def world():
    with isthmus.World() as world:
        yield world


@pytest.fixture
def comm(world):
    # A rank that waits for one that has failed ends here, and the launcher then ends the rest.
    faulthandler.dump_traceback_later(60, exit=True)
    # A test that left messages behind would disturb the next one.
    world.comm.barrier()
    yield world.comm
    faulthandler.cancel_dump_traceback_later()


@pytest.fixture
def ring(comm):
    """(next rank, previous rank)"""
    return (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size


class Noise:
    """Bytes that are new at every call, and that both sides of a message can make."""

    def __init__(self):
        self.calls = 0

    def __call__(self, size, rank):
        self.calls += 1
        seed = [int(os.environ.get("TEST_SEED", "20")), self.calls, rank]
        return np.random.default_rng(seed).integers(0, 256, size, dtype=np.uint8)


@pytest.fixture(scope="session")
def make_noise():
    noise = Noise()

    def pair(size, own, other):
        """What this rank sends and what it should receive; every rank calls it equally often."""
        noise.calls += 1
        calls = noise.calls
        sent = noise(size, own)
        noise.calls = calls
        expected = noise(size, other)
        return sent, expected

    return pair


SIZES = [0, 1, 7, 64, 65, 4095, 4096, 4097, 8191, 8192, 8193, 16384, 16385, 65537, (1 << 20) + 1, (4 << 20) + 3]


@pytest.fixture(params=SIZES)
def size(request):
    return request.param
