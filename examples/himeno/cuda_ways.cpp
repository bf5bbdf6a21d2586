#include "cuda_ways.hpp"

#include "cuda_borders.hpp"

namespace himeno {
namespace {

using example::cuda::check, example::cuda::Event, example::cuda::Graph, example::cuda::Stream;

// What both ways that the processor drives have.
class Driven : public Way {
 public:
  Driven(const char* name, const isthmus::HaloGrid& grid, const Field& field, bool overlapped)
      : Way(std::string(name) + (overlapped ? ", overlapped" : "")),
        field_(field),
        overlapped_(overlapped),
        whole_(whole_work(field.part())),
        border_(border_work(field.part())),
        interior_(interior_work(field.part())),
        borders_(grid, field, stream_) {}
  const Field& field() const override { return field_; }
  int level() const override { return level_; }

 protected:
  // From that level, the border in the urgent stream. Neither stream begins the next iteration before the other one is through with this.
  void sweep(int from, double* gosa) const {
    if (!overlapped_) return field_.sweep(stream_, whole_, from, gosa);
    event_.order(inner_stream_, stream_);
    field_.sweep(inner_stream_, interior_, from, gosa);
    field_.sweep(stream_, border_, from, gosa);
    event_.order(stream_, inner_stream_);
  }
  // What comes last has the whole sum behind it.
  const Stream& last_stream() const { return overlapped_ ? inner_stream_ : stream_; }

  const Field& field_;
  const bool overlapped_;
  const Work whole_, border_, interior_;
  Stream inner_stream_{false};
  Event event_;
  Borders borders_;
  int level_ = 0;
};

class Messages final : public Driven {
 public:
  Messages(const isthmus::HaloGrid& grid, const Field& field, bool overlapped)
      : Driven("messages", grid, field, overlapped), found_(example::cuda::pinned<double>(1)) {}

  double go(int iterations) override {
    const auto count = static_cast<std::size_t>(iterations);
    if (count > room_) sums_ = example::cuda::memory<double>(room_ = count);
    check(cudaMemsetAsync(sums_.get(), 0, count * sizeof(double), stream_.get()), "cudaMemsetAsync");
    event_.order(stream_, inner_stream_);
    std::vector<double> mine(1), sum(1);
    for (std::size_t n = 0; n < count; ++n) {
      const int from = static_cast<int>(n % 2);
      sweep(from, sums_.get() + n);
      check(cudaMemcpyAsync(found_.get(), sums_.get() + n, sizeof(double), cudaMemcpyDeviceToHost, last_stream().get()),
            "cudaMemcpyAsync");
      borders_.exchange(1 - from);
      last_stream().wait();
      mine[0] = found_[0];
      borders_.comm().allreduce(mine, sum, isthmus::op::sum);
    }
    level_ = iterations % 2;
    return sum[0];
  }

 private:
  std::shared_ptr<double[]> sums_, found_;
  std::size_t room_ = 0;
};

class Streams final : public Driven {
 public:
  Streams(const isthmus::HaloGrid& grid, const Field& field, bool overlapped)
      : Driven("stream", grid, field, overlapped), sums_(example::cuda::memory<double>(kInGraph)) {
    borders_.prepare_on();
    sum_all(0);  // prepares what follows
    sum_stream_.wait();
    graph_ = graph_of(kInGraph);
  }

  double go(int iterations) override {
    const int rest = iterations % kInGraph;
    if (rest != rest_of_) {
      if (rest > 0) rest_ = graph_of(rest);
      rest_of_ = rest;
    }
    for (int n = 0; n < iterations / kInGraph; ++n) graph_.launch(stream_.get());
    if (rest > 0) rest_.launch(stream_.get());
    stream_.wait();
    level_ = rest % 2;
    double found = 0;
    check(cudaMemcpy(&found, sums_.get() + (rest > 0 ? rest : kInGraph) - 1, sizeof found, cudaMemcpyDeviceToHost),
          "cudaMemcpy");
    return found;
  }

 private:
  static constexpr int kInGraph = 64;  // even, so that each replay finds the level that it was captured with

  void sum_all(int n) const {
    const auto sum = isthmus::Buffer::cuda(sums_.get() + n, sum_stream_.get());
    if (borders_.comm().size() > 1)
      borders_.comm().allreduce_on(sum_stream_.get(), sum, sum, 1, IST_DOUBLE, isthmus::op::sum);
  }
  Graph graph_of(int iterations) const {
    return example::cuda::captured(stream_.get(), [&] {
      check(cudaMemsetAsync(sums_.get(), 0, kInGraph * sizeof(double), stream_.get()), "cudaMemsetAsync");
      event_.order(stream_, inner_stream_);
      event_.order(stream_, sum_stream_);
      for (int n = 0; n < iterations; ++n) {
        sweep(n % 2, sums_.get() + n);
        event_.order(last_stream(), sum_stream_);
        borders_.exchange_on(1 - n % 2);
        sum_all(n);
      }
      event_.order(inner_stream_, stream_);
      event_.order(sum_stream_, stream_);
    });
  }

  std::shared_ptr<double[]> sums_;
  Stream sum_stream_;
  Graph graph_, rest_;
  int rest_of_ = 0;
};

}  // namespace

std::unique_ptr<Way> by_messages(const isthmus::HaloGrid& grid, const Field& field, bool overlapped) {
  return std::make_unique<Messages>(grid, field, overlapped);
}
std::unique_ptr<Way> by_streams(const isthmus::HaloGrid& grid, const Field& field, bool overlapped) {
  return std::make_unique<Streams>(grid, field, overlapped);
}

}  // namespace himeno
