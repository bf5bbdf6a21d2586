"""Functions of Python's as operations of reductions: bytes become arrays, and the combination becomes bytes again. And the other way
round: what the library's operations are of objects."""
from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from typing import Any

_LETTERS = {"i1": "b", "u1": "B", "i2": "h", "u2": "H", "i4": "i", "u4": "I", "i8": "q", "u8": "Q", "f2": "e", "f4": "f", "f8": "d"}

# MINLOC and MAXLOC: of pairs of a value and a place, where the lower place counts if the values are equal.
_OF_OBJECTS: dict[str, Callable[[Any, Any], Any]] = {
    "SUM": operator.add, "PROD": operator.mul, "MIN": min, "MAX": max, "BAND": operator.and_, "BOR": operator.or_, "BXOR": operator.xor,
    "LAND": lambda lower, higher: bool(lower) and bool(higher), "LOR": lambda lower, higher: bool(lower) or bool(higher),
    "LXOR": lambda lower, higher: bool(lower) != bool(higher),
    "MINLOC": lambda lower, higher: lower if lower[0] < higher[0] or (lower[0] == higher[0] and lower[1] <= higher[1]) else higher,
    "MAXLOC": lambda lower, higher: lower if lower[0] > higher[0] or (lower[0] == higher[0] and lower[1] <= higher[1]) else higher}


def of_objects(name: str) -> Callable[[Any, Any], Any]:
    """What combines two objects as the library's operation of that name combines elements; called by the extension."""
    if name not in _OF_OBJECTS:
        raise TypeError("an Operation made of a function combines arrays; of objects, give the function itself")
    return _OF_OBJECTS[name]


def prepare(function: Callable[[Any, Any], Any], typestr: str) -> Callable[[bytes, bytearray], None]:
    """Of the lower ranks' bytes and the higher ranks', which the combination replaces; called by the extension.

    NumPy's arrays where the program has imported NumPy, memoryviews otherwise.
    """
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        return _with_arrays(function, numpy, _dtype(numpy, typestr))
    if typestr not in _LETTERS:
        raise TypeError(f"a reduction of {typestr} by a function needs NumPy; import numpy before")
    return _with_views(function, _LETTERS[typestr])


def _dtype(numpy: Any, typestr: str) -> Any:
    if typestr == "bfloat16":
        types = sys.modules.get("ml_dtypes")
        if types is None:
            raise TypeError("a reduction of bfloat16 by a function needs NumPy's type of that name; import ml_dtypes before")
        return numpy.dtype(types.bfloat16)
    if "," in typestr:
        value, index = typestr.split(",")
        return numpy.dtype([("value", value), ("index", index)], align=True)
    return numpy.dtype(typestr)


def _with_arrays(function: Callable[[Any, Any], Any], numpy: Any, dtype: Any) -> Callable[[bytes, bytearray], None]:
    def combine(lower: bytes, higher: bytearray) -> None:
        into = numpy.frombuffer(higher, dtype)
        result = function(numpy.frombuffer(lower, dtype), into)
        if result is None:
            return
        if numpy.shape(result) != into.shape:
            raise ValueError(f"the reduction's function gave an array of shape {numpy.shape(result)} for two of {into.shape}; "
                             "it must combine element by element")
        numpy.copyto(into, result, casting="same_kind")

    return combine


def _with_views(function: Callable[[Any, Any], Any], letter: str) -> Callable[[bytes, bytearray], None]:
    def combine(lower: bytes, higher: bytearray) -> None:
        into = memoryview(higher).cast(letter)
        result = function(memoryview(lower).cast(letter), into)
        if result is None:
            return
        elements = list(result)
        if len(elements) != len(into):
            raise ValueError(f"the reduction's function gave {len(elements)} elements for two arrays of {len(into)}; "
                             "it must combine element by element")
        for at, element in enumerate(elements):
            into[at] = element

    return combine
