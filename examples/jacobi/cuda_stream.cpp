// Rows and norms by what is put into streams, a short iteration as one graph.
#include <isthmus/stream.h>

#include <map>
#include <tuple>

#include "launched.hpp"

namespace jacobi {
namespace {

using example::cuda::check;
using example::cuda::Event;
using example::cuda::Graph;
using example::cuda::Stream;

constexpr int kUpward = 0, kDownward = 1;  // the two neighbours may be one rank

class InStream final : public Launched {
 public:
  explicit InStream(const Needs& needs)
      : Launched(needs.comm, needs.tiling, needs.problem.factor()),
        ring_(needs.comm),
        total_(example::cuda::memory<float>(1)),
        times_(example::cuda::memory<std::uint32_t>(1)) {
    grid_ = std::make_unique<DeviceGrid>(needs.problem,
                                         example::part_of(needs.problem.cut_rows(), needs.comm.size(), needs.comm.rank()));
    check(cudaMemset(times_.get(), 0, sizeof(std::uint32_t)), "cudaMemset");
    check(cudaMemset(sums_.get(), 0, kRing * sizeof(float)), "cudaMemset");
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    // What waits for the other ranks, once; captures cannot.
    comm_.prepare_on(stream_.get(), ring_.up, kUpward, IST_SENDS);
    comm_.prepare_on(stream_.get(), ring_.down, kUpward, IST_RECEIVES);
    comm_.prepare_on(downward_.get(), ring_.down, kDownward, IST_SENDS);
    comm_.prepare_on(downward_.get(), ring_.up, kDownward, IST_RECEIVES);
    add_up(0);
    norms_.wait();
  }

 protected:
  void launch(int iteration, bool checks, bool checked_before) override {
    if (is_long()) {
      iterate(iteration, checks, checked_before);
    } else {
      Graph& graph = graphs_[{iteration % kRing, checks, checked_before}];
      if (!graph) graph = example::cuda::captured(stream_.get(), [&] { iterate(iteration, checks, checked_before); });
      graph.launch(stream_.get());
    }
    if (checked_before) ++published_;
  }
  float change_of(int iteration, bool last) override {
    if (last) {
      fork_.order(stream_, norms_);
      publish(iteration);
      ++published_;
    }
    return mailbox_.await(published_, last ? norms_ : stream_);
  }
  void wait() override {
    stream_.wait();
    norms_.wait();
  }

 private:
  // Where the GPU has enough to do for the processor to be ahead of it, a graph of each iteration only adds the time from one graph to the
  // next one.
  bool is_long() const {
    constexpr std::int64_t kLong = std::int64_t{1} << 24;  // cells: tens of microseconds
    return std::int64_t{grid_->cells().rows} * grid_->cells().columns >= kLong;
  }
  isthmus::Buffer row(int level, int y) const { return isthmus::Buffer::cuda(grid_->row(level, y)); }
  // Everything that another stream is to do while it is captured begins behind the beginning, and ends ahead of the end.
  void iterate(int iteration, bool checks, bool checked_before) {
    fork_.order(stream_, between_);
    if (checked_before) fork_.order(stream_, norms_);
    const Sweep now = sweep(iteration, checks);
    launch_sweep(now, Share::sides, tiling_.batch, stream_.get());
    sides_.order(stream_, downward_);
    exchange(iteration % 2);
    launch_sweep(now, Share::interior, tiling_.batch, between_.get());
    if (checked_before) {
      publish(iteration - 1);
      norms_join_.order(norms_, stream_);
    }
    downward_join_.order(downward_, stream_);
    join_.order(between_, stream_);
  }
  // Each way in a stream of its own: what is launched behind the sides gets no place on the GPU before the first tiles of the sweep have
  // ended, and of two in a row the second one none before the second tiles have.
  void exchange(int level) {
    const Cells& cells = grid_->cells();
    comm_.sendrecv_on(stream_.get(), row(level, 1), cells.columns, IST_FLOAT, ring_.up, kUpward, row(level, cells.rows + 1),
                      cells.columns, IST_FLOAT, ring_.down, kUpward);
    comm_.sendrecv_on(downward_.get(), row(level, cells.rows), cells.columns, IST_FLOAT, ring_.down, kDownward,
                      row(level, 0), cells.columns, IST_FLOAT, ring_.up, kDownward);
  }
  void add_up(int iteration) {
    comm_.allreduce_on(norms_.get(), isthmus::Buffer::cuda(sum_of(iteration)), isthmus::Buffer::cuda(total_.get()), 1,
                       IST_FLOAT, isthmus::op::sum);
  }
  void publish(int iteration) {
    add_up(iteration);
    launch_publish(total_.get(), times_.get(), mailbox_.word(), norms_.get());
  }

  Ring ring_;
  Stream between_{false}, norms_, downward_;
  Event fork_, sides_, downward_join_, join_, norms_join_;
  Mailbox mailbox_;
  std::shared_ptr<float[]> total_;
  std::shared_ptr<std::uint32_t[]> times_;
  std::uint32_t published_ = 0;
  std::map<std::tuple<int, bool, bool>, Graph> graphs_;
};

}  // namespace

std::unique_ptr<Way> make_stream(const Needs& needs) { return std::make_unique<InStream>(needs); }

}  // namespace jacobi
