"""isthmus/device.cuh by NVRTC, which has no standard library: with its folder, and as one text; what Numba's kernels call, and an example's
kernel. Only compiled; 77: no NVRTC here."""
import ast
import ctypes
import importlib.util
import pathlib
import sys

SOURCES = pathlib.Path(__file__).resolve().parents[2]
# Not with std::, which NVRTC lacks.
WINDOW = '''
using namespace ist::device;
extern "C" __global__ void step(const __grid_constant__ ist_window_view window, uint64_t flag, uint64_t round, Status* ended) {
  const Block crew;
  const int right = (window.pe + 1) % window.pes;
  put_signal(crew, window, 4096, peer_ptr(window, 0, window.pe), 4096, flag, round, Signal::set, right);
  Status status = Status::ok;
  auto* const mine = peer_ptr<uint64_t>(window, flag, window.pe);
  if (crew.thread == 0) status = wait_until(window, mine, Compare::greater_equal, round, 1000000000);
  get(crew, window, peer_ptr(window, 8192, window.pe), 0, 4096, right);
  if (crew.thread == 0 && atomic_fetch_add<uint64_t>(window, flag + 8, 1, right) == 7) p<float>(window, flag + 16, 1, right);
  if (crew.thread == 1 && atomic_fetch_inc<uint64_t>(window, flag + 24, right) == 7) atomic_inc<uint32_t>(window, flag + 32, right);
  if (agreed(crew, status) != Status::ok && crew.thread == 0) *ended = status;
}
'''


def library_near(compiler):
    for folder in pathlib.Path(compiler).resolve().parents:
        for found in sorted(folder.glob("lib*/libnvrtc.so*")) + sorted(folder.glob("targets/*/lib/libnvrtc.so*")):
            return ctypes.CDLL(str(found))
    for name in ("libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12"):
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    print("not covered here: kernels by NVRTC; it was not found beside", compiler)
    sys.exit(77)


def compile_text(nvrtc, text, options):
    program = ctypes.c_void_p()
    assert nvrtc.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"kernel.cu", 0, None, None) == 0
    words = [word.encode() for word in options]
    failed = nvrtc.nvrtcCompileProgram(program, len(words), (ctypes.c_char_p * len(words))(*words))
    size = ctypes.c_size_t()
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, log)
    nvrtc.nvrtcGetPTXSize(program, ctypes.byref(size))
    assert failed == 0 and size.value > 1000, log.value.decode()
    return log.value.decode()


# What no grid makes is refused with words that say what to do.
NO_GRIDS = {"put_signal(Grid(), window, 0, mine, 64, 64, 1, Signal::set, 1)": "put_signal to a window by a Grid needs a team"}
# What all crews make, each with the same arguments.
BY_ALL = """
  status = put_signal(crew, view, mine, mine, 64, word, 1, Signal::set, 1);
  status = put_signal(crew, device, mine, mine, 64, word, 1, Signal::set, 1);
  status = put_signal(crew, view, window, 0, mine, 64, 64, 1, Signal::set, 1, 5);
  if (is_first(crew)) status = wait_until(view, word, Compare::equal, uint64_t{1}, 5);
  status = agreed(crew, view, status, 5);
  Channel<CREW> channel(crew, view, 1, 0);
  status = channel.send(mine, 64, 1, 5);
  status = channel.receive(mine, 64, 1, 5);
  status = send<Reuse::answered>(crew, view, 1, 1, mine, 63, 1);
  status = receive<Reuse::answered>(crew, view, 1, 1, mine, 63, 1);
  status = allreduce<Sum>(crew, view, mine, mine, 9, 5);
  status = broadcast(crew, view, mine, mine, 64, 0);
  status = alltoall(crew, view, mine + 64, mine, 64);
  status = barrier(crew, view, 5)"""


def check_grids(nvrtc, options):
    """Every crew makes the calls of a team; a grid's wrong ones do not compile; beside them copies of a type do."""
    kernel = """#include "isthmus/device.cuh"
#include "isthmus/device/host_words.cuh"
#include "isthmus/device/window.cuh"
using namespace ist::device;
extern "C" __global__ void step(const __grid_constant__ ist_window_view window, ist_device_view device, float* mine, uint64_t* word) {
  const ist_team_view& view = device.team;
  put(Grid(), view, mine, mine + 64, 64, 1);
  put<float>(Grid(), view, mine, mine + 64, 16, 1);
  get<float>(Block(), window, mine, 64, 16, 1);
  Waiter waiter(window, 0);
  bool is = false;
  while (!is && test(waiter, word, Compare::equal, uint64_t{1}, is) == Status::ok) ++mine[1];
  Status status = Status::ok;
  CALL;
  mine[2] = static_cast<float>(static_cast<int>(status));
}
"""
    said = ""
    for crew in ("Thread", "Warp", "Block", "Grid"):
        said += compile_text(nvrtc, kernel.replace("CALL", f"const {crew} crew;" + BY_ALL.replace("CREW", crew)), options)
    for call, words in NO_GRIDS.items():
        try:
            compile_text(nvrtc, kernel.replace("CALL", call), options)
        except AssertionError as refused:
            assert words in str(refused), f"{call}: {refused}"
        else:
            raise AssertionError(f"{call} compiles")
    return said


def source_in(script):
    """The text that a script calls SOURCE."""
    for node in ast.parse(script.read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "SOURCE":
            return ast.literal_eval(node.value)
    raise AssertionError(f"{script} has no SOURCE")


def main():
    nvrtc = library_near(sys.argv[1])
    found = importlib.util.spec_from_file_location("isthmus_device", SOURCES / "python" / "isthmus" / "_device.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    module.get_include = lambda: str(SOURCES / "include")
    kernel = (SOURCES / "tests" / "python" / "gpu" / "ring_kernel.cu").read_text()
    options = ["-std=c++17", "-arch=compute_75"]
    said = compile_text(nvrtc, kernel, options + ["-I" + module.get_include()])
    whole = module.device_source()
    assert '#include "isthmus/' not in whole
    said += compile_text(nvrtc, kernel.replace('#include "isthmus/device.cuh"', whole), options)
    # Beside names of the program's own.
    said += compile_text(nvrtc, "typedef unsigned long long uint64_t;\nnamespace std { struct byte_of_mine {}; }\n" + kernel,
                         options + ["-I" + module.get_include()])
    # As numba-cuda does: functions that other code is linked with.
    functions = (SOURCES / "python" / "isthmus" / "numba_cuda.cu").read_text()
    said += compile_text(nvrtc, module.flattened(functions), options + ["-rdc=true"])
    said += compile_text(nvrtc, source_in(SOURCES / "examples" / "in_kernel" / "cupy_ring.py"), options + ["-I" + module.get_include()])
    # Windows: of memory that is not symmetric.
    said += compile_text(nvrtc, '#include "isthmus/device.cuh"\n#include "isthmus/device/window.cuh"\n' + WINDOW,
                         options + ["-I" + module.get_include()])
    said += compile_text(nvrtc, whole + WINDOW, options)
    # What is included by itself.
    words = """#include "isthmus/device/host_words.cuh"
extern "C" __global__ void count(ist_device_view view, uint64_t* word, int* status) {
  using namespace ist::device;
  *status = static_cast<int>(atomic_add(view, word, uint64_t{1}, 0));
  *word = atomic_fetch_add(view, word, uint64_t{1}, 0) + atomic_compare_swap(view, word, uint64_t{1}, uint64_t{2}, 0);
  *status += static_cast<int>(signal(view, word, 1, Signal::add, 0)) + static_cast<int>(quiet(view));
}
"""
    said += compile_text(nvrtc, words, options + ["-I" + module.get_include()])
    # One thread's copy unit, and where there is none.
    bulk = """#include "isthmus/device/bulk.cuh"
extern "C" __global__ void pass_on(ist_team_view view, unsigned char* mine, uint64_t* word, uint64_t bytes) {
  using namespace ist::device;
  __shared__ BulkRoom<2048, 2> room;
  if (threadIdx.x != 0) return;
  Bulk<BulkRoom<2048, 2>> copies(room);
  copies.get(view, mine, mine + bytes, bytes, 1);
  copies.put_signal(view, mine + bytes, mine, bytes, word, 1, Signal::set, 1);
}
"""
    for target in ("compute_75", "compute_90"):
        said += compile_text(nvrtc, bulk, ["-std=c++17", "-arch=" + target, "-I" + module.get_include()])
    said += compile_text(nvrtc, whole + bulk.split("\n", 1)[1], options)
    said += check_grids(nvrtc, options + ["-I" + module.get_include()])
    assert "warning" not in said, said


main()
