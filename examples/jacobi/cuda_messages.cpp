// Rows by messages, norms by the processor.
#include "launched.hpp"

namespace jacobi {
namespace {

using example::cuda::check;
using example::cuda::Event;
using example::cuda::Stream;

constexpr int kUpward = 0, kDownward = 1;  // the two neighbours may be one rank

class Messages final : public Launched {
 public:
  explicit Messages(const Needs& needs)
      : Launched(needs.comm, needs.tiling, needs.problem.factor()),
        ring_(needs.comm),
        found_(example::cuda::pinned<float>(2)) {
    grid_ = std::make_unique<DeviceGrid>(needs.problem,
                                         example::part_of(needs.problem.cut_rows(), needs.comm.size(), needs.comm.rank()));
  }

 protected:
  void launch(int iteration, bool checks, bool /*checked_before*/) override {
    isthmus::wait_all(requests_);
    requests_.clear();
    const Sweep now = sweep(iteration, checks);
    if (iteration > 1) {
      check(cudaStreamWaitEvent(between_.get(), outermost_done_.get(), 0), "cudaStreamWaitEvent");
      check(cudaStreamWaitEvent(stream_.get(), between_done_.get(), 0), "cudaStreamWaitEvent");
    }
    launch_sweep(now, Share::sides, tiling_.batch, stream_.get());
    check(cudaEventRecord(outermost_done_.get(), stream_.get()), "cudaEventRecord");
    launch_sweep(now, Share::interior, tiling_.batch, between_.get());
    check(cudaEventRecord(between_done_.get(), between_.get()), "cudaEventRecord");
    if (checks) fetch_sum(iteration);
    exchange(iteration % 2);
  }
  float change_of(int iteration, bool /*last*/) override {
    check(cudaEventSynchronize(fetched_[iteration % 2].get()), "cudaEventSynchronize");
    mine_[0] = found_[iteration % 2];
    comm_.allreduce(mine_, all_, isthmus::op::sum);
    return all_[0];
  }
  void wait() override {
    isthmus::wait_all(requests_);
    requests_.clear();
    stream_.wait();
    between_.wait();
    sums_stream_.wait();
  }

 private:
  void fetch_sum(int iteration) {
    check(cudaStreamWaitEvent(sums_stream_.get(), outermost_done_.get(), 0), "cudaStreamWaitEvent");
    check(cudaStreamWaitEvent(sums_stream_.get(), between_done_.get(), 0), "cudaStreamWaitEvent");
    check(cudaMemcpyAsync(&found_[iteration % 2], sum_of(iteration), sizeof(float), cudaMemcpyDeviceToHost,
                          sums_stream_.get()),
          "cudaMemcpyAsync");
    check(cudaEventRecord(fetched_[iteration % 2].get(), sums_stream_.get()), "cudaEventRecord");
  }
  // Behind the kernel that has computed the outermost rows, and that has read the halos of this level one iteration ago.
  void exchange(int level) {
    const Cells& cells = grid_->cells();
    const auto row = [&](int y) { return isthmus::Buffer::cuda(grid_->row(level, y), stream_.get()); };
    requests_.push_back(comm_.irecv(row(0), cells.columns, IST_FLOAT, ring_.up, kDownward));
    requests_.push_back(comm_.irecv(row(cells.rows + 1), cells.columns, IST_FLOAT, ring_.down, kUpward));
    requests_.push_back(comm_.isend(row(1), cells.columns, IST_FLOAT, ring_.up, kUpward));
    requests_.push_back(comm_.isend(row(cells.rows), cells.columns, IST_FLOAT, ring_.down, kDownward));
  }

  Ring ring_;
  Stream between_{false}, sums_stream_;
  Event outermost_done_, between_done_;
  std::array<Event, 2> fetched_;
  std::shared_ptr<float[]> found_;
  std::vector<float> mine_{0}, all_{0};
  std::vector<isthmus::Request> requests_;
};

}  // namespace

std::unique_ptr<Way> make_messages(const Needs& needs) { return std::make_unique<Messages>(needs); }

}  // namespace jacobi
