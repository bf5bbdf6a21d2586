// The kernels of `isthmus bench one-sided` on the fake memory, one thread to a block. Each process plays those of its own PE.
#include "cli/bench_one_sided_work.hpp"
#include "fake_channel.hpp"
#include "fake_places.hpp"

namespace fake {
namespace {

using ist::cli::one_sided::Lone;
using ist::cli::one_sided::Work;

void run_block(std::string_view name, const Lone& crew, const Work& work) {
  using namespace ist::cli::one_sided;
  if (name == "words") trade_words(crew, work);
  if (name == "words_bare") trade_words_bare(crew, work);
  if (name.starts_with("put_by_")) trade_puts(crew, work);
  if (name == "flag_bare") trade_flags_bare(crew, work);
  if (name.starts_with("packets_by_")) trade_packets(crew, work);
  if (name == "packets_bare") trade_packets_bare(crew, work);
  if (name.starts_with("meet_by_")) meet(crew, work);
  if (name == "meet_bare") meet_bare(crew, work);
  if (name == "put") put_all(crew, work);
  if (name.starts_with("small_by_")) put_small(crew, work);
  if (name == "small_bare") put_small_bare(crew, work);
  if (name == "get") get_all(crew, work);
  if (name == "put_bulk") put_in_bulk(crew, work);
  if (name == "get_bulk") get_in_bulk(crew, work);
  if (name == "store") store_words(crew, work);
  if (name == "store_bare") store_words_bare(crew, work);
  if (name == "fetch_add") fetch_and_add(crew, work);
  if (name == "add") only_add(crew, work);
  if (name == "load_bare") load_bare(crew, work);
}

// Both parts of a heap; what lies in the own one is as far from its beginning as before.
bool find_places(CUcontext context, Work& work) {
  Places places(context);
  unsigned char* parts[2] = {work.view.base, work.view.base + work.view.stride};
  unsigned char* const own = parts[work.view.pe];
  for (unsigned char*& part : parts) places.find(part, work.view.bytes);
  const auto move = [&](auto*& address) {
    const std::ptrdiff_t offset = reinterpret_cast<unsigned char*>(address) - own;
    address = reinterpret_cast<std::remove_reference_t<decltype(address)>>(parts[work.view.pe] + offset);
  };
  move(work.source), move(work.dest), move(work.words);
  work.view.base = parts[0];
  work.view.stride = reinterpret_cast<std::uint64_t>(parts[1]) - reinterpret_cast<std::uint64_t>(parts[0]);
  places.find(work.view.abort_word);
  places.find(work.ends, ist::cli::one_sided::kMostBlocks * sizeof(ist::cli::one_sided::BlockEnd));
  return places.reached();
}

void run(std::string_view name, unsigned blocks, const Work& work) {
  // Blocks that meet would wait for those that are played after them: one does it, and the others have nothing to say.
  if (name.starts_with("meet_by_")) {
    run_block(name, Lone{}, work);
    for (unsigned block = 1; block < blocks; ++block) work.ends[block] = work.ends[0];
    return;
  }
  for (unsigned block = 0; block < blocks; ++block) run_block(name, Lone{0, 1, block, blocks}, work);
}

}  // namespace

std::optional<int> one_sided_kernel(std::string_view name) {
  return kernel_named(name, "isthmus_one_sided_", ist::cli::one_sided::kKernelNames);
}

std::optional<std::function<void()>> one_sided_work(int kernel, CUcontext context, unsigned blocks, const void* argument) {
  if (argument == nullptr || without_work<Work>(argument)) return [] {};
  Work work;
  std::memcpy(&work, argument, sizeof work);
  if (!find_places(context, work)) return std::nullopt;
  return [name = ist::cli::one_sided::kKernelNames[kernel], blocks, work] { run(name, blocks, work); };
}

}  // namespace fake
