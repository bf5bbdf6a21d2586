#include "cli/bench_one_sided_runs.hpp"

#include <algorithm>
#include <cstring>

#include "cli/bench_one_sided_device.hpp"
#include "cli/bench_timing.hpp"
#include "cli/failure.hpp"

namespace ist::cli {
namespace {

constexpr std::uint64_t kPatienceOfWaits = 10000000000;  // ns
constexpr std::uint64_t kRoomOfWords = 16 << 20;

const char* words_of(device::Status status) {
  switch (status) {
    case device::Status::ok:
      return "ended well";
    case device::Status::peer_dead:
      return "was told that the other PE had died";
    case device::Status::late:
      return "waited in vain for 10 s";
    case device::Status::misuse:
      return "was given numbers that are not of the team";
  }
  return "ended in an unknown way";
}

}  // namespace

OneSidedRuns::OneSidedRuns(OneSidedBench& bench, std::uint64_t room)
    : bench_(bench),
      kernels_(own_device(bench)),
      multiprocessors_(kernels_.multiprocessors()),
      room_(room),
      heap_(bench.world.comm(), bench.kind, 2 * room_ + kRoomOfWords, 0, own_device(bench)),
      source_(heap_.alloc<unsigned char>(room_)),
      dest_(heap_.alloc<unsigned char>(room_)) {
  // As many blocks at both PEs, whatever their devices.
  std::vector<unsigned> fewest(1);
  bench_.world.comm().allreduce(std::vector{multiprocessors_}, fewest, isthmus::op::min);
  multiprocessors_ = fewest[0];
  must_have_a_device_each();
}

void OneSidedRuns::must_have_a_device_each() const {
  std::vector<unsigned char> mine(sizeof(CUuuid)), theirs(sizeof(CUuuid));
  std::memcpy(mine.data(), &kernels_.uuid(), mine.size());
  bench_.world.comm().sendrecv(mine, bench_.other(), 0, theirs, bench_.other(), 0);
  if (mine != theirs) return;
  throw Failure(2, bench_.first() ? "kernels that wait for each other need a GPU each, and both ranks are on cuda:" +
                                        std::to_string(own_device(bench_)) +
                                        ": run this where each rank has its own, or take --side host"
                                  : "");
}

void OneSidedRuns::prepare(std::uint64_t salt, std::uint64_t bytes) {
  auto wrong = bytes_of_rank(bench_.other(), salt, bytes);
  for (unsigned char& one : wrong) one = static_cast<unsigned char>(~one);
  bench_.write(source_, bytes_of_rank(bench_.world.rank(), salt, bytes));
  bench_.write(dest_, wrong);
  heap_.barrier();
}

void OneSidedRuns::must_have_come(std::uint64_t salt, std::uint64_t bytes, const std::string& what) {
  heap_.barrier();
  bench_.must_be_right(bench_.holds(dest_, bytes_of_rank(bench_.other(), salt, bytes)),
                       what + " of " + std::to_string(bytes) + " bytes");
}

std::uint64_t OneSidedRuns::trips(std::uint64_t usual) const {
  if (bench_.options.iterations != 0) return bench_.options.iterations;
  return bench_.options.quick ? std::max<std::uint64_t>(usual / 20, 4) : usual;
}

double OneSidedRuns::told_by_blocks(const OneSidedForm& form, std::uint64_t trips) const {
  std::uint64_t begun = ~std::uint64_t{0}, ended = 0;
  for (unsigned block = 0; block < form.blocks; ++block) {
    const one_sided::BlockEnd& end = kernels_.ends()[block];
    const auto status = static_cast<device::Status>(end.status);
    if (end.over != 1 || status != device::Status::ok)
      throw Failure(1, std::string{"kernel "} + name_of_kernel(form.kernel) + " by " + form.text() + " of " +
                           std::to_string(form.bytes) + " bytes: block " + std::to_string(block) + " of PE " +
                           std::to_string(bench_.world.rank()) + " " +
                           (end.over != 1 ? "left nothing behind" : words_of(status)));
    begun = std::min(begun, end.begun);
    ended = std::max(ended, end.ended);
  }
  return ended <= begun ? 1e-3 : static_cast<double>(ended - begun) / 1e3 / static_cast<double>(trips);
}

double OneSidedRuns::run(const OneSidedForm& form, std::uint64_t trips) {
  one_sided::Work work{};
  work.view = heap_.device_view().team;
  work.ends = kernels_.ends();
  work.source = source_;
  work.dest = dest_;
  work.words = form.numbers->words;
  work.bytes = form.bytes;
  work.count = form.count;
  work.places = form.places;
  work.first_ones = trips / 10 + 1;
  work.trips = trips + work.first_ones;
  work.before = form.numbers->used;
  work.most = kPatienceOfWaits;
  std::fill_n(kernels_.ends(), form.blocks, one_sided::BlockEnd{});
  bench_.world.comm().barrier();
  kernels_.launch(form.kernel, work, form.blocks, form.threads);
  kernels_.wait();
  form.numbers->used += work.trips;
  return told_by_blocks(form, trips);
}

void OneSidedRuns::race(OneSidedRow row, const std::vector<OneSidedForm>& ours, const std::vector<OneSidedForm>& bare,
                        double share) {
  constexpr int kRounds = 9, kQuickRounds = 3;
  const std::uint64_t each = row.iterations;
  std::vector<std::vector<double>> times(ours.size()), bare_times(bare.size());
  for (int round = 0; round < (bench_.options.quick ? kQuickRounds : kRounds); ++round) {
    for (std::size_t n = 0; n < ours.size(); ++n) times[n].push_back(run(ours[n], each) / share);
    for (std::size_t n = 0; n < bare.size(); ++n) bare_times[n].push_back(run(bare[n], each) / share);
  }
  const auto best_of = [](const std::vector<std::vector<double>>& all) {
    std::size_t best = 0;
    for (std::size_t n = 1; n < all.size(); ++n)
      if (median_of(all[n]) < median_of(all[best])) best = n;
    return best;
  };
  const std::size_t best = best_of(times);
  row.by += (row.by.empty() ? "" : ", ") + ours[best].text();
  row.blocks = ours[best].blocks, row.threads = ours[best].threads;
  row.times = times[best];
  if (!bare.empty()) {
    const std::size_t best_bare = best_of(bare_times);
    row.limit_is += ", " + bare[best_bare].text();
    row.limit_times = bare_times[best_bare];
  }
  bench_.add(std::move(row));
}

}  // namespace ist::cli
