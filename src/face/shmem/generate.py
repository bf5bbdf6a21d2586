#!/usr/bin/env python3
"""Makes shmem.h, the definitions of its typed routines and lists of types for tests from table.py. Only Python's own library.

    generate.py OUTPUT VERSION    writes OUTPUT/include/shmem.h, OUTPUT/definitions_GROUP.cpp and OUTPUT/shmem_types.h
"""
import re
import sys
from pathlib import Path

import table

HERE = Path(__file__).resolve().parent
DECLARED = re.compile(r"^SHMEM_API_ (.*\bshmem_)", re.M)


def expand(text, name):
    """A row's text for one type or size."""
    if name in table.TYPES:
        return text.replace("{N}", name).replace("{t}", table.TYPES[name]).replace("{B}", f"sizeof({table.TYPES[name]})")
    return text.replace("{N}", name).replace("{B}", "1" if name == "mem" else str(int(name) // 8) if name.isdigit() else "")


def forms(row):
    """(with a context?, type) of each routine of the row."""
    return [(ctx, name) for ctx in ((False, True) if row.ctx else (False,)) for name in row.types]


def signature(row, ctx, name, first="shmem_"):
    context = "shmem_ctx_t ctx, " if ctx else ""
    return f"{expand(row.ret, name)} {first}{'ctx_' if ctx else ''}{expand(row.name, name)}({context}{expand(row.params, name)})"


def prototypes():
    return "".join(f"SHMEM_API_ {signature(row, ctx, name, first)};\n"
                   for rows in table.GROUPS.values() for row in rows for ctx, name in forms(row) for first in ("shmem_", "pshmem_"))


def definitions(group):
    lines = ["// Made by src/face/shmem/generate.py.", '#include "face/shmem/typed.hpp"', "", "using namespace ist::shmem;", 'extern "C" {']
    for row in table.GROUPS[group]:
        for ctx, name in forms(row):
            routine = ("ctx_" if ctx else "") + expand(row.name, name)
            body = expand(row.body, name).replace("CALL", f'"shmem_{routine}"').replace("CTX", "ctx" if ctx else "SHMEM_CTX_DEFAULT")
            lines.append(f"{signature(row, ctx, name, 'pshmem_')} try {{ {body}; }} catch (...) {{ {otherwise(row, name, routine)} }}")
            lines.append(f"SHMEM_ALSO({routine});")
    return "\n".join(lines + ["}", ""])


def otherwise(row, name, routine):
    """What is done where the body throws, which no program of C can catch: as guarded() of errors.hpp has it."""
    caught = f'caught("shmem_{routine}");'
    return caught if row.ret == "void" else f"{caught} return {row.otherwise};"


def distinct(row):
    return [name for name in row.types if table.SAME.get(name) not in row.types]


def generic_rows():
    """One row for each name: the first that the table has."""
    rows = {}
    for group in table.GROUPS.values():
        for row in group:
            if row.generic and row.generic not in rows:
                rows[row.generic] = row
    return rows.values()


def c11():
    """Each set of types once, as a list of associations; then a macro for each name."""
    lines, sets = [], {}
    for row in generic_rows():
        key = tuple(distinct(row))
        if key not in sets:
            sets[key] = f"SHMEM_BY_TYPE_{len(sets)}_"
            kinds = [f"{q}{table.TYPES[n]}*: pre##{n}##post" for n in key for q in ("", "const ", "volatile ", "const volatile ")]
            lines.append(f"#define {sets[key]}(pre, post) \\\n  " + ", \\\n  ".join(kinds))
        by = sets[key]
        tail = row.name.replace("{N}", "")
        other = "default: shmem_no_such_type_"
        plain = f"{by}(shmem_, {tail})"
        if row.ctx:
            plain = f"shmem_ctx_t: _Generic((SHMEM_ARG_1_(__VA_ARGS__, 0, 0)), {by}(shmem_ctx_, {tail}), {other}), " + plain
        lines.append(f"#define {row.generic}(...) _Generic((SHMEM_ARG_{row.by}_(__VA_ARGS__, 0, 0)), {plain}, {other})(__VA_ARGS__)")
    return "\n".join(lines)


def arguments(params):
    return ", ".join(re.findall(r"(\w+)(?=,|$)", params))


CPP_COMPLEX = {"complexf": "std::complex<float>", "complexd": "std::complex<double>"}


def of_cpp_complex():
    """std::complex is laid out as the complex types of C, for which the calls are declared."""
    lines = []
    for row in [row for group in table.GROUPS.values() for row in group]:
        for name in [name for name in row.types if name in CPP_COMPLEX]:
            params = expand(row.params, name)
            routine = f"shmem_{expand(row.name, name)}"
            pointers = [f"reinterpret_cast<{kind}>({word})" if table.TYPES[name] in kind else word
                        for kind, word in re.findall(r"([^,]*?)(\w+)(?=,|$)", params)]
            for named in [routine] + ([row.generic] if row.generic else []):
                lines.append(f"static inline {row.ret} {named}({params.replace(table.TYPES[name], CPP_COMPLEX[name])}) "
                             f"{{ return {routine}({', '.join(pointers)}); }}")
    return "\n".join(lines)


def overloads():
    lines = []
    for row in generic_rows():
        for ctx, name in [form for form in forms(row) if form[1] in distinct(row)]:
            context = "shmem_ctx_t ctx, " if ctx else ""
            params = context + expand(row.params, name)
            routine = f"shmem_{'ctx_' if ctx else ''}{expand(row.name, name)}"
            lines.append(f"static inline {expand(row.ret, name)} {row.generic}({params}) {{ return {routine}({arguments(params)}); }}")
    return "\n".join(lines)


def generics():
    return f"""/* In C11 and C++ a name without a type does for every type. */
#if defined(__cplusplus)
extern "C++" {{
{overloads()}
{of_cpp_complex()}
static inline int shmem_sync(shmem_team_t team) {{ return shmem_team_sync(team); }}
}}
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
static inline void shmem_no_such_type_(void) {{}}
#define SHMEM_ARG_0_(first, ...) first
#define SHMEM_ARG_1_(first, second, ...) second
{c11()}
#define shmem_sync(...) _Generic((SHMEM_ARG_0_(__VA_ARGS__, 0)), shmem_team_t: shmem_team_sync, default: shmem_sync)(__VA_ARGS__)
#endif
"""


def header(version):
    text = (HERE / "shmem.h.in").read_text().replace("@VERSION@", version)
    text = re.sub(r"^(SHMEM_API_ [^;]*\bshmem_[^;]*;)$",
                  lambda found: found.group(1) + "\n" + re.sub(r"\bshmem_(?=\w+\()", "pshmem_", found.group(1), count=1), text, flags=re.M)
    return text.replace("@TYPED@", prototypes()).replace("@GENERIC@", generics())


def for_tests():
    """X(name, type) for each type of a set."""
    sets = {"RMA": table.RMA, "ATOMIC": table.ATOMIC, "EXTENDED": table.EXTENDED, "BITWISE": table.BITWISE, "WAITED": table.WAITED,
            "BITS": table.BITS, "ORDERED": table.ORDERED, "SUMMED": table.SUMMED, "OLD": table.OLD, "OLD_SET": table.OLD_SET,
            "OLD_WAITED": table.OLD_WAITED, "OLD_BITS": table.OLD_BITS, "OLD_ORDERED": table.OLD_ORDERED,
            "OLD_SUMMED": table.OLD_SUMMED}
    lines = []
    for name, types in sets.items():
        lines.append(f"#define FOR_{name}(X) " + " ".join(f"X({n}, {table.TYPES[n]})" for n in types))
        once = [n for n in types if table.SAME.get(n) not in types]
        lines.append(f"#define FOR_DISTINCT_{name}(X) " + " ".join(f"X({n}, {table.TYPES[n]})" for n in once))
    every = [f"shmem_{'ctx_' if ctx else ''}{expand(row.name, n)}" for g in table.GROUPS.values() for row in g for ctx, n in forms(row)]
    lines.append("#define FOR_ROUTINES(X) " + " ".join(f"X({n})" for n in every))
    fixed = re.findall(r"^SHMEM_API_ [^;]*?\b(shmem_\w+)\(", (HERE / "shmem.h.in").read_text(), re.M)
    lines.append("#define FOR_UNTYPED_ROUTINES(X) " + " ".join(f"X({n})" for n in fixed))
    return "\n".join(lines + [""])


def write(path, text):
    """Only what has changed, so that nothing is compiled again in vain."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def main():
    out, version = Path(sys.argv[1]), sys.argv[2]
    write(out / "include" / "shmem.h", header(version))
    for other in ("shmemx.h", "pshmem.h", "mpp/shmem.h", "mpp/shmemx.h", "mpp/pshmem.h"):
        write(out / "include" / other, "/* Another name of the one header. */\n#include <shmem.h>\n")
    for group in table.GROUPS:
        write(out / f"definitions_{group}.cpp", definitions(group))
    write(out / "shmem_types.h", for_tests())


if __name__ == "__main__":
    main()
