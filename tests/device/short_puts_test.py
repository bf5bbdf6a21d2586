"""What a short put is compiled to, in PTX: a load, and a store to global memory, where one thread puts one element; where the length is found out
when it runs a hundred instructions or so, and what does not lie well out of their way. Only compiled: short_puts_test.py NVCC INCLUDE."""
import pathlib
import re
import subprocess
import sys
import tempfile

# By name: the kernel's call, and the most loads, stores, jumps, calls and instructions that it may have.
ONE_ELEMENT = {"loads": 1, "stores": 1, "generic": 0, "jumps": 0, "calls": 0, "instructions": 25}
KERNELS = {
    "a_word": ("p(view, word, value, pe);", {**ONE_ELEMENT, "loads": 0}),
    "an_element_of_8": ("put<uint64_t>(Thread(), view, word, source, 1, pe);", ONE_ELEMENT),
    "an_element_of_4": ("put<float>(Thread(), view, (float*)word, (const float*)source, 1, pe);", ONE_ELEMENT),
    "an_element_of_16": ("put<Pair>(Thread(), view, (Pair*)word, (const Pair*)source, 1, pe);", ONE_ELEMENT),
    "an_element_by_each_lane": ("put<uint64_t>(Warp(), view, word, source, 32, pe);", {**ONE_ELEMENT, "instructions": 40}),
    "a_word_of_a_window": ("p(window, bytes, value, pe);", {**ONE_ELEMENT, "loads": 0}),
    "bytes_by_a_thread": ("put(Thread(), view, word, source, bytes, pe);", {"generic": 0, "calls": 1, "instructions": 150}),
    "bytes_by_a_warp": ("put(Warp(), view, word, source, bytes, pe);", {"generic": 0, "calls": 1, "instructions": 150}),
    "bytes_by_a_block": ("put(Block(), view, word, source, bytes, pe);", {"generic": 0, "calls": 1, "instructions": 150}),
}
PARAMETERS = ("const __grid_constant__ ist_window_view window, ist_team_view view, uint64_t* word, const uint64_t* source, uint64_t value, "
              "uint64_t bytes, int pe")


def counted(body):
    lines = [line.strip() for line in body.splitlines()]
    lines = [re.sub(r"^@!?%p\d+\s+", "", line) for line in lines if re.match(r"^(@!?%p\d+\s+)?[a-z][a-z0-9_.:]*\s.*[;,(]$|^ret;$", line)]
    count = lambda begins: sum(line.startswith(begins) for line in lines)
    return {"loads": count(("ld.global", "ld.u", "ld.v", "ld.volatile")), "stores": count(("st.global", "st.u", "st.v")),
            "generic": count(("st.u", "st.v")), "jumps": count(("bra",)), "calls": len(re.findall(r"\bcall(?:\.uni)?\b", body)),
            "instructions": len(lines)}


def main():
    nvcc, include = sys.argv[1:3]
    text = "".join(f'extern "C" __global__ void {name}({PARAMETERS}) {{ {call} }}\n' for name, (call, _) in KERNELS.items())
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        source, ptx = pathlib.Path(folder, "puts.cu"), pathlib.Path(folder, "puts.ptx")
        source.write_text('#include "isthmus/device.cuh"\n#include "isthmus/device/window.cuh"\nusing namespace ist::device;\n' + text)
        for target in ("compute_75", "compute_90"):
            subprocess.run([nvcc, "-std=c++17", "-O3", f"-arch={target}", "-ptx", f"-I{include}", source, "-o", ptx], check=True)
            for name, (_, most) in KERNELS.items():
                body = re.search(r"\.entry " + name + r"\(.*?\n\{(.*?)\n\}", ptx.read_text(), re.S)
                found = counted(body.group(1))
                print(target, name, found)
                wrong += [f"{target}: {name} has {found[what]} {what}, and {limit} are enough"
                          for what, limit in most.items() if found[what] > limit]
                if found["stores"] == 0:
                    wrong.append(f"{target}: {name} stores nothing that was found; is the PTX written in another way?")
    print("\n".join(wrong))
    sys.exit(1 if wrong else 0)


main()
