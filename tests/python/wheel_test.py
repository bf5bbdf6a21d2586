"""Builds the wheel from the sources, installs it into an empty environment, and uses it there.

Arguments: sources, work folder, the build beside it, whose device code is taken, the compilers for C and C++ that it uses, and perhaps a folder of dependencies, as tools/fetch_deps.sh prepares it. Ends
with 77 where Python cannot make environments.
"""
import email
import importlib.util
import os
import pathlib
import subprocess
import sys
import zipfile

SOURCES, WORK, BESIDE = (pathlib.Path(argument).resolve() for argument in sys.argv[1:4])
PROGRAM = """
import sys
import isthmus
with isthmus.World() as world:
    into = bytearray(5)
    peer = (world.rank + 1) % world.size
    world.comm.sendrecv(b"hello", peer, into)
    assert into == b"hello" and world.comm.sendrecv_object(world.rank, peer) == (world.rank - 1) % world.size
    assert not any(name.split(".")[0] == "numpy" for name in sys.modules)
    assert isthmus.__file__.startswith(sys.prefix), isthmus.__file__
    if world.rank == 0:
        print("right")
"""


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], text=True, capture_output=True, **options)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\nended with {done.returncode}:\n{done.stdout}\n{done.stderr}")
    return done.stdout


DEPENDENCIES = pathlib.Path(sys.argv[6]).resolve() if sys.argv[6:] else None
missing = [name for name in ("pip", "venv", "ensurepip") if importlib.util.find_spec(name) is None]
if missing:
    print(f"SKIPPED: this Python has no {' and no '.join(missing)}")
    sys.exit(77)
WORK.mkdir(parents=True, exist_ok=True)
for old in WORK.glob("*.whl"):
    old.unlink()
# Only this environment counts, not what the tests beside it set.
clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "LD_LIBRARY_PATH")}
clean.update(zip(("CC", "CXX"), sys.argv[4:6]))
# So that what tools/run_tests.sh compiled is not compiled again.
clean.setdefault("CCACHE_BASEDIR", str(WORK / "build"))
clean.setdefault("CCACHE_SLOPPINESS", "pch_defines,time_macros")
building, more = clean, []
if DEPENDENCIES is not None:
    building = {**clean, "PYTHONPATH": str(DEPENDENCIES / "python")}
    more = ["--config-settings", f"cmake.define.ISTHMUS_DEPS_DIR={DEPENDENCIES}"]
run(sys.executable, "-m", "pip", "wheel", "--disable-pip-version-check", "--no-build-isolation", "--no-deps", "--no-index",
    "--wheel-dir", WORK, "--config-settings", f"build-dir={WORK / 'build'}",
    "--config-settings", "cmake.define.ISTHMUS_WERROR=ON",
    "--config-settings", f"cmake.define.ISTHMUS_CUDA_IMAGES={BESIDE}", *more, SOURCES, env=building)
(wheel,) = WORK.glob("*.whl")
names = zipfile.ZipFile(wheel).namelist()
for wanted in ("isthmus/__init__.py", "isthmus/_core.pyi", "isthmus/py.typed", "isthmus/lib/libisthmus.so", "isthmus/bin/isthmus",
               "isthmus/numba_cuda.py", "isthmus/numba_cuda.cu", "isthmus/include/isthmus/device.cuh", "isthmus/_core."):
    assert any(name.startswith(wanted) for name in names), (wanted, names)
assert all(name.startswith(("isthmus/", "isthmus-")) for name in names), names
# It is installed without dependencies below, which proves nothing of those that it names: it names none but what an extra asks for.
(metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
needed = [line for line in email.message_from_bytes(zipfile.ZipFile(wheel).read(metadata)).get_all("Requires-Dist", [])
          if "extra ==" not in line.partition(";")[2]]
assert not needed, needed

run(sys.executable, "-m", "venv", "--clear", WORK / "environment", env=clean)
python = WORK / "environment" / "bin" / "python"
run(python, "-m", "pip", "install", "--disable-pip-version-check", "--no-index", "--no-deps", wheel, env=clean)
script = WORK / "program.py"
script.write_text(PROGRAM)
for command in ([python.parent / "isthmus"], [python, "-m", "isthmus"]):
    assert run(*command, "--version", env=clean).strip()
    assert run(*command, "run", "-n", "2", python, script, env=clean, cwd=WORK) == "right\n"
assert run(python, script, env=clean, cwd=WORK) == "right\n"
print(f"{wheel.name}: {wheel.stat().st_size // 1024} KiB, installed and used")
