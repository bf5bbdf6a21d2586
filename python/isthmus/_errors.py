"""Errors of the library as exceptions."""
from __future__ import annotations

import enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._core import Status


class Code(enum.IntEnum):
    """The library's codes; isthmus.h says what each means."""

    OK = 0
    ARGUMENT = 1
    RANK = 2
    HANDLE = 3
    TRUNCATE = 4
    OVERFLOW = 5
    KIND = 6
    MEMORY = 7
    DEVICE = 8
    PEER_DEAD = 9
    PEER_LEFT = 10
    UNREACHABLE = 11
    BOOT = 12
    SETTING = 13
    SYSTEM = 14
    PENDING = 15
    IN_STATUS = 16
    INTERNAL = 17
    CANCELLED = 18
    NOT_CAPTURABLE = 19
    UNSUPPORTED = 20


class Error(Exception):
    """What a call of the library came to: what was asked, what was found, what to do."""

    __module__ = "isthmus"
    code: int
    code_name: str
    #: of the operation that failed, where there was one
    status: Status | None

    def __init__(self, text: str, code: int = Code.INTERNAL, code_name: str = "IST_ERR_INTERNAL", status: Status | None = None):
        super().__init__(text)
        self.code = Code(code) if code in Code._value2member_map_ else code
        self.code_name = code_name
        self.status = status

    def __reduce__(self):
        """Pickled without what is of operations of this process."""
        state = {name: value for name, value in self.__dict__.items() if name != "status"}
        if "statuses" in state:
            state["statuses"] = [None] * len(state["statuses"])
        return type(self), (str(self),), state


class TruncateError(Error):
    """The message is longer than the receive; its first bytes were delivered."""

    __module__ = "isthmus"


class DeviceError(Error):
    """A driver or runtime refused an operation."""

    __module__ = "isthmus"


class PeerDeadError(Error):
    """A rank of this world died; the text names it."""

    __module__ = "isthmus"


class PeerLeftError(Error):
    """A rank left the world before this operation could complete."""

    __module__ = "isthmus"


class UnreachableError(Error):
    """No path connects the two ranks."""

    __module__ = "isthmus"


class BootError(Error):
    """The ranks could not find each other."""

    __module__ = "isthmus"


class WaitallError(Error):
    """Some of the requests failed. `errors` has one entry for each request, None where it succeeded or is not complete."""

    __module__ = "isthmus"
    statuses: list[Status | None]
    errors: list[BaseException | None]


_CLASSES = {Code.TRUNCATE: TruncateError, Code.DEVICE: DeviceError, Code.PEER_DEAD: PeerDeadError, Code.PEER_LEFT: PeerLeftError,
            Code.UNREACHABLE: UnreachableError, Code.BOOT: BootError}


def make_error(code: int, name: str, text: str, status: Status | None) -> Error:
    """The exception for a code; called by the extension."""
    return _CLASSES.get(code, Error)(text, code, name, status)  # type: ignore[call-overload]


def make_waitall_error(call: str, name: str, statuses: list[Status | None], errors: list[BaseException | None]) -> WaitallError:
    """The exception of waitall and its like; called by the extension."""
    failed = [(at, each) for at, each in enumerate(errors) if each is not None]
    at, first = failed[0]
    why = str(first).removeprefix(f"{call}: ")
    error = WaitallError(f"{call}: {len(failed)} of {len(errors)} requests failed; the first is number {at}: {why}",
                         Code.IN_STATUS, name, statuses[at])
    error.statuses, error.errors, error.__cause__ = statuses, errors, first
    return error
