"""The table that OpenSHMEM's typed routines come from: types, and one row for each routine that has a form for several of them.

generate.py makes shmem.h, the definitions and the lists for tests of it. In a row {N} is the name of a type or size, {t} its C type and
{B} the bytes of an element; CTX is the context, CALL the name of the routine.
"""
from typing import NamedTuple

# Names in the standard, with the C types.
TYPES = {
    "float": "float", "double": "double", "longdouble": "long double", "char": "char", "schar": "signed char",
    "short": "short", "int": "int", "long": "long", "longlong": "long long", "uchar": "unsigned char",
    "ushort": "unsigned short", "uint": "unsigned int", "ulong": "unsigned long", "ulonglong": "unsigned long long",
    "int8": "int8_t", "int16": "int16_t", "int32": "int32_t", "int64": "int64_t", "uint8": "uint8_t", "uint16": "uint16_t",
    "uint32": "uint32_t", "uint64": "uint64_t", "size": "size_t", "ptrdiff": "ptrdiff_t",
    "complexf": "shmemx_complexf_", "complexd": "shmemx_complexd_",
}
# Those that are another one's name, which a choice by type may name only once.
SAME = {"int8": "schar", "int16": "short", "int32": "int", "int64": "long", "uint8": "uchar", "uint16": "ushort",
        "uint32": "uint", "uint64": "ulong", "size": "ulong", "ptrdiff": "long"}

FIXED = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
RMA = [name for name in TYPES if not name.startswith("complex")]
ATOMIC = ["int", "long", "longlong", "uint", "ulong", "ulonglong", "int32", "int64", "uint32", "uint64", "size", "ptrdiff"]
EXTENDED = ["float", "double"] + ATOMIC
# The standard has the unsigned and the fixed ones; other implementations have the signed ones, too, and programs name them.
BITWISE = ["uint", "ulong", "ulonglong", "int32", "int64", "uint32", "uint64", "int", "long", "longlong"]
WAITED = ["short", "ushort"] + ATOMIC
BITS = ["uchar", "ushort", "uint", "ulong", "ulonglong"] + FIXED + ["size", "char", "schar", "short", "int", "long", "longlong", "ptrdiff"]
ORDERED = RMA
SUMMED = RMA + ["complexf", "complexd"]
# Of routines that the standard has given up, which programs still call.
OLD = ["int", "long", "longlong"]
OLD_SET = ["float", "double"] + OLD
OLD_WAITED = WAITED
OLD_BITS = ["short", "int", "long", "longlong"]
OLD_ORDERED = OLD_BITS + ["float", "double", "longdouble"]
OLD_SUMMED = OLD_ORDERED + ["complexf", "complexd"]
SIZES = ["8", "16", "32", "64", "128"]
TWO_SIZES = ["32", "64"]
BYTES = ["mem"]


class Row(NamedTuple):
    ret: str
    name: str
    params: str
    types: list
    body: str
    ctx: bool = False  # also with a context before the rest
    generic: str = ""  # the name by which C11 and C++ choose the form for the type
    by: int = 0  # the parameter whose type decides, a context not counted
    otherwise: str = "{}"  # what it returns where it cannot go on


def copies():
    """Puts and gets of every kind, by type, by size and of bytes."""
    rows = []
    for types, typed in ((RMA, True), (SIZES, False), (BYTES, False)):
        t, n = ("{t}", "{N}_%s") if typed else ("void", "%s{N}")
        many = "size_t nelems"
        to_from = f"{t} *dest, const {t} *source"
        strides = "ptrdiff_t dst, ptrdiff_t sst"
        signal = "uint64_t *sig_addr, uint64_t signal, int sig_op, int pe"

        def row(verb, params, body, tail="", types=types, typed=typed, n=n):
            rows.append(Row("void", n % verb + tail, params, types, body, True, verb.join(["shmem_", tail]) if typed else ""))

        for verb in ("put", "get"):
            row(verb, f"{to_from}, {many}, int pe", f"{verb}(CALL, CTX, dest, source, bytes_of(nelems, {{B}}), pe)")
            row(verb, f"{to_from}, {many}, int pe", f"{verb}_nbi(CALL, CTX, dest, source, bytes_of(nelems, {{B}}), pe)", "_nbi")
            if types is not BYTES:
                row("i" + verb, f"{to_from}, {strides}, {many}, int pe",
                    f"strided_{verb}(CALL, CTX, {{dest, source, dst, sst, 1, nelems, {{B}}}}, pe)")
                row("ib" + verb, f"{to_from}, {strides}, size_t bsize, size_t nblocks, int pe",
                    f"strided_{verb}(CALL, CTX, {{dest, source, dst, sst, bsize, nblocks, {{B}}}}, pe)")
        sent = "dest, source, bytes_of(nelems, {B}), pe}, {sig_addr, signal, sig_op})"
        if typed:
            rows.append(Row("void", "{N}_put_signal", f"{to_from}, {many}, {signal}", types, "put_signal(CALL, CTX, {" + sent,
                            True, "shmem_put_signal"))
            rows.append(Row("void", "{N}_put_signal_nbi", f"{to_from}, {many}, {signal}", types,
                            "put_signal(CALL, CTX, {" + sent, True, "shmem_put_signal_nbi"))
            rows.append(Row("void", "{N}_p", "{t} *dest, {t} value, int pe", types, "put_one(CALL, CTX, dest, value, pe)",
                            True, "shmem_p"))
            rows.append(Row("{t}", "{N}_g", "const {t} *source, int pe", types, "return get_one(CALL, CTX, source, pe)",
                            True, "shmem_g"))
        else:
            for tail in ("_signal", "_signal_nbi"):
                rows.append(Row("void", "put{N}" + tail, f"{to_from}, {many}, {signal}", types,
                                "put_signal(CALL, CTX, {" + sent, True))
    return rows


def atomics():
    rows = []

    def row(ret, verb, params, types, body):
        rows.append(Row(ret, "{N}_atomic_" + verb, params, types, body, True, "shmem_atomic_" + verb))
        if ret != "void":
            rows.append(Row("void", "{N}_atomic_" + verb + "_nbi", "{t} *fetch, " + params, types,
                            body.replace("return ", "keep(fetch, ") + ")", True, "shmem_atomic_" + verb + "_nbi"))

    row("{t}", "fetch", "const {t} *source, int pe", EXTENDED, "return atomic_fetch(CALL, CTX, source, pe)")
    row("void", "set", "{t} *dest, {t} value, int pe", EXTENDED, "atomic_set(CALL, CTX, dest, value, pe)")
    row("{t}", "swap", "{t} *dest, {t} value, int pe", EXTENDED, "return atomic_swap(CALL, CTX, dest, value, pe)")
    row("{t}", "compare_swap", "{t} *dest, {t} cond, {t} value, int pe", ATOMIC,
        "return atomic_compare_swap(CALL, CTX, dest, cond, value, pe)")
    row("{t}", "fetch_inc", "{t} *dest, int pe", ATOMIC, "return atomic_add(CALL, CTX, dest, static_cast<{t}>(1), pe)")
    row("void", "inc", "{t} *dest, int pe", ATOMIC, "atomic_add(CALL, CTX, dest, static_cast<{t}>(1), pe)")
    row("{t}", "fetch_add", "{t} *dest, {t} value, int pe", ATOMIC, "return atomic_add(CALL, CTX, dest, value, pe)")
    row("void", "add", "{t} *dest, {t} value, int pe", ATOMIC, "atomic_add(CALL, CTX, dest, value, pe)")
    for verb in ("and", "or", "xor"):
        row("{t}", "fetch_" + verb, "{t} *dest, {t} value, int pe", BITWISE, f"return atomic_{verb}(CALL, CTX, dest, value, pe)")
        row("void", verb, "{t} *dest, {t} value, int pe", BITWISE, f"atomic_{verb}(CALL, CTX, dest, value, pe)")
    return rows


def waits():
    rows = []
    some = "{t} *ivars, size_t nelems, size_t *indices, const int *status, int cmp, "
    several = "{t} *ivars, size_t nelems, const int *status, int cmp, "
    for verb in ("wait_until", "test"):
        one, number = ("void", "size_t") if verb == "wait_until" else ("int", "size_t")
        back = "" if verb == "wait_until" else "return "

        def row(ret, tail, params, body, verb=verb):
            otherwise = "SIZE_MAX" if tail.startswith("_any") else "{}"
            rows.append(Row(ret, "{N}_" + verb + tail, params, WAITED, body, False, "shmem_" + verb + tail, 0, otherwise))

        row(one, "", "{t} *ivar, int cmp, {t} cmp_value", f"{back}{verb}(CALL, ivar, cmp, cmp_value)")
        for vector, value, form in (("", "{t} cmp_value", "cmp_value"), ("_vector", "{t} *cmp_values", "cmp_values")):
            row(one, "_all" + vector, several + value, f"{back}{verb}_all(CALL, Words{{ivars, nelems, status, cmp, {form}}})")
            row(number, "_any" + vector, several + value, f"return {verb}_any(CALL, Words{{ivars, nelems, status, cmp, {form}}})")
            row(number, "_some" + vector, some + value,
                f"return {verb}_some(CALL, Words{{ivars, nelems, status, cmp, {form}}}, indices)")
    return rows


def collectives():
    rows = []
    for types, typed in ((RMA, True), (BYTES, False)):
        t, n = ("{t}", "{N}_%s") if typed else ("void", "%s{N}")
        first = f"shmem_team_t team, {t} *dest, const {t} *source, "

        def row(verb, params, body, types=types, typed=typed, n=n, first=first):
            rows.append(Row("int", n % verb, first + params, types, "return " + body, False,
                            "shmem_" + verb if typed else "", 1, "-1"))

        row("broadcast", "size_t nelems, int PE_root", "broadcast(CALL, team, {dest, source, bytes_of(nelems, {B})}, PE_root)")
        row("collect", "size_t nelems", "collect(CALL, team, {dest, source, bytes_of(nelems, {B})})")
        row("fcollect", "size_t nelems", "fcollect(CALL, team, {dest, source, bytes_of(nelems, {B})})")
        row("alltoall", "size_t nelems", "alltoall(CALL, team, {dest, source, bytes_of(nelems, {B})})")
        row("alltoalls", "ptrdiff_t dst, ptrdiff_t sst, size_t nelems",
            "alltoalls(CALL, team, {dest, source, dst, sst, 1, nelems, {B}})")
    first = "shmem_team_t team, {t} *dest, const {t} *source, size_t nelems"
    for verb, types in (("and", BITS), ("or", BITS), ("xor", BITS), ("max", ORDERED), ("min", ORDERED), ("sum", SUMMED),
                        ("prod", SUMMED)):
        rows.append(Row("int", "{N}_" + verb + "_reduce", first, types,
                        f"return reduce(CALL, team, {{dest, source, bytes_of(nelems, {{B}})}}, combiner<{{t}}, {verb.title()}>)", False,
                        f"shmem_{verb}_reduce", 1, "-1"))
    for verb, own in (("inscan", "true"), ("exscan", "false")):
        rows.append(Row("int", "{N}_sum_" + verb, first, SUMMED,
                        f"return scan(CALL, team, {{dest, source, bytes_of(nelems, {{B}})}}, combiner<{{t}}, Sum>, {own})", False,
                        f"shmem_sum_{verb}", 1, "-1"))
    return rows


def old():
    """What the standard has given up."""
    rows = []
    active = "int PE_start, int logPE_stride, int PE_size"
    here = "{PE_start, logPE_stride, PE_size, pSync}"
    for verb, types in (("and", OLD_BITS), ("or", OLD_BITS), ("xor", OLD_BITS), ("max", OLD_ORDERED), ("min", OLD_ORDERED),
                        ("sum", OLD_SUMMED), ("prod", OLD_SUMMED)):
        rows.append(Row("void", "{N}_" + verb + "_to_all",
                        "{t} *dest, const {t} *source, int nreduce, " + active + ", {t} *pWrk, long *pSync", types,
                        f"static_cast<void>(pWrk), reduce(CALL, ActiveSet{here}, {{dest, source, bytes_of(count_of(nreduce), {{B}})}}, "
                        f"combiner<{{t}}, {verb.title()}>)"))
    to_from = "void *dest, const void *source, "
    block = "{dest, source, bytes_of(nelems, {B})}"
    rows.append(Row("void", "broadcast{N}", to_from + "size_t nelems, int PE_root, " + active + ", long *pSync", TWO_SIZES,
                    f"broadcast(CALL, ActiveSet{here}, {block}, PE_root)"))
    for verb in ("collect", "fcollect", "alltoall"):
        rows.append(Row("void", verb + "{N}", to_from + "size_t nelems, " + active + ", long *pSync", TWO_SIZES,
                        f"{verb}(CALL, ActiveSet{here}, {block})"))
    rows.append(Row("void", "alltoalls{N}", to_from + "ptrdiff_t dst, ptrdiff_t sst, size_t nelems, " + active + ", long *pSync",
                    TWO_SIZES, f"alltoalls(CALL, ActiveSet{here}, {{dest, source, dst, sst, 1, nelems, {{B}}}})"))
    for verb, ret, params, types, body in (
            ("cswap", "{t}", "{t} *dest, {t} cond, {t} value, int pe", OLD, "return atomic_compare_swap(CALL, CTX, dest, cond, value, pe)"),
            ("swap", "{t}", "{t} *dest, {t} value, int pe", OLD_SET, "return atomic_swap(CALL, CTX, dest, value, pe)"),
            ("finc", "{t}", "{t} *dest, int pe", OLD, "return atomic_add(CALL, CTX, dest, static_cast<{t}>(1), pe)"),
            ("inc", "void", "{t} *dest, int pe", OLD, "atomic_add(CALL, CTX, dest, static_cast<{t}>(1), pe)"),
            ("fadd", "{t}", "{t} *dest, {t} value, int pe", OLD, "return atomic_add(CALL, CTX, dest, value, pe)"),
            ("add", "void", "{t} *dest, {t} value, int pe", OLD, "atomic_add(CALL, CTX, dest, value, pe)"),
            ("fetch", "{t}", "const {t} *dest, int pe", OLD_SET, "return atomic_fetch(CALL, CTX, dest, pe)"),
            ("set", "void", "{t} *dest, {t} value, int pe", OLD_SET, "atomic_set(CALL, CTX, dest, value, pe)"),
            ("wait", "void", "{t} *ivar, {t} cmp_value", OLD_WAITED, "wait_until(CALL, ivar, SHMEM_CMP_NE, cmp_value)")):
        rows.append(Row(ret, "{N}_" + verb, params, types, body, False, "shmem_" + verb))
    return rows


GROUPS = {"copies": copies(), "atomics": atomics(), "waits": waits(), "collectives": collectives(), "old": old()}
