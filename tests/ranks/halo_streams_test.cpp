// Halo exchanges in CUDA streams: plain and replayed from graphs, and what is refused there. Run on 1, 2 and 4 ranks.
#include <isthmus/heap.h>

#include "halo_support.hpp"
#include "streams_support.hpp"

namespace {

using namespace rank_test;

#define NEEDS_A_DEVICE() \
  if (devices() == 0) GTEST_SKIP() << "not covered here: exchanges in streams, which take a CUDA device"

Cut all_around() {
  Cut cut;
  cut.ndims = 3;
  cut.dims = size() % 2 == 0 ? std::array<int, 4>{size() / 2, 1, 2, 1} : std::array<int, 4>{size(), 1, 1, 1};
  cut.periods = {1, 1, 0, 0};
  cut.cells = {4, 3, 5, 1};
  return cut;
}

struct InStream {
  Cut cut = all_around();
  ist_halo_grid grid = grid_for(cut);
  std::array<int, 4> coords = coords_in(grid, 3);
  std::vector<std::unique_ptr<CodedField>> fields;
  std::vector<ist_halo_field> given;
  ist_halo halo = IST_HALO_NULL;
  InStream() {
    const FieldShape shapes[] = {{8, {2, 1, 1}, {1, 0, 2}, {0, 1, 0}, {1, 0, 0}, {0, 1, 2, 3}},
                                 {4, {1, 1, 0}, {0, 2, 1}, {0, 0, 0}, {0, 0, 1}, {2, 0, 1, 3}},
                                 {3, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {2, 1, 0, 3}}};
    for (const FieldShape& shape : shapes) {
      fields.push_back(std::make_unique<CodedField>(cut, shape, static_cast<int>(fields.size()), coords, IST_KIND_CUDA));
      given.push_back(fields.back()->get());
    }
  }
  ~InStream() {
    if (halo != IST_HALO_NULL) {
      EXPECT_EQ(IST_OK, ist_halo_free(&halo)) << ist_error_text();
    }
    EXPECT_EQ(IST_OK, ist_halo_grid_free(&grid)) << ist_error_text();
  }
  InStream(const InStream&) = delete;
  InStream& operator=(const InStream&) = delete;
  void make(ist_halo_packing packing) {
    const ist_halo_options options{sizeof options, 0, packing, IST_HALO_MESSAGES, 0};
    ASSERT_EQ(IST_OK, ist_halo_create(grid, 3, given.data(), &options, &halo)) << ist_error_text();
  }
  void fill(int step) {
    for (const auto& field : fields) field->fill(step);
  }
  void check(int step) {
    for (const auto& field : fields) field->check(step, "step " + std::to_string(step));
  }
};

TEST(HaloStreams, exchange_when_the_stream_comes_to_it) {
  NEEDS_A_DEVICE();
  const Stream stream;
  for (const ist_halo_packing packing : {IST_HALO_CALLS, IST_HALO_LAYOUTS, IST_HALO_LOOPS}) {
    InStream in;
    in.make(packing);
    for (int step = 0; step < 4; ++step) {
      in.fill(step);
      IST_OK_OR_FAIL(ist_halo_exchange_on(in.halo, stream.get()));
      stream.wait();
      in.check(step);
    }
    // The other form, on the same buffers.
    in.fill(9);
    IST_OK_OR_FAIL(ist_halo_pack(in.halo));
    IST_OK_OR_FAIL(ist_halo_exchange(in.halo));
    IST_OK_OR_FAIL(ist_halo_unpack(in.halo));
    in.check(9);
    IST_OK_OR_FAIL(ist_barrier(comm()));
  }
}

TEST(HaloStreams, exchange_again_with_every_replay_of_a_graph) {
  NEEDS_A_DEVICE();
  const Stream stream;
  InStream in;
  in.make(IST_HALO_LOOPS);
  IST_OK_OR_FAIL(ist_halo_prepare_on(in.halo, stream.get()));
  const Graph graph(stream, [&] { EXPECT_EQ(IST_OK, ist_halo_exchange_on(in.halo, stream.get())) << ist_error_text(); });
  for (int step = 0; step < 10; ++step) {
    in.fill(step);
    if (step % 3 == 2)
      IST_OK_OR_FAIL(ist_halo_exchange_on(in.halo, stream.get()));
    else
      graph.launch();
    stream.wait();
    in.check(step);
  }
  IST_OK_OR_FAIL(ist_barrier(comm()));
}

TEST(HaloStreams, two_exchanges_are_in_flight_at_once) {
  NEEDS_A_DEVICE();
  const Stream one, other;
  InStream a, b, level;
  a.make(IST_HALO_LOOPS), b.make(IST_HALO_LAYOUTS);
  for (int step = 0; step < 4; ++step) {
    a.fill(step), b.fill(100 + step), level.fill(200 + step);
    // Two on the same stream, of two sets of fields that share buffers, and one on another stream beside them.
    IST_OK_OR_FAIL(ist_halo_exchange_on(a.halo, one.get()));
    IST_OK_OR_FAIL(ist_halo_exchange_on(b.halo, other.get()));
    IST_OK_OR_FAIL(ist_halo_set_fields(a.halo, 3, level.given.data()));
    IST_OK_OR_FAIL(ist_halo_exchange_on(a.halo, one.get()));
    one.wait(), other.wait();
    a.check(step), b.check(100 + step), level.check(200 + step);
    IST_OK_OR_FAIL(ist_halo_set_fields(a.halo, 3, a.given.data()));
  }
  IST_OK_OR_FAIL(ist_barrier(comm()));
}

// Three fields of four cells, and one on both sides, in one allocation. How far they lie apart is another distance in every set, so that no
// two sets have the same list of runs.
class OneAllocation {
 public:
  explicit OneAllocation(std::size_t set)
      : starts_{0, 8 + 2 * set, 24 + 7 * set}, words_(starts_[2] + 6), memory_(IST_KIND_CUDA, 8 * words_) {
    for (const std::size_t start : starts_)
      fields_.push_back({ist_buffer_at(memory_.get(), 8 * start), 8, &range_, nullptr});
  }
  OneAllocation(const OneAllocation&) = delete;
  OneAllocation& operator=(const OneAllocation&) = delete;
  const ist_halo_field* get() const { return fields_.data(); }
  void fill(int step) { memory_.poison(), memory_.fill(picture(step, false)); }
  void check(int step, const std::string& what) const { memory_.expect(picture(step, true), what); }

 private:
  std::vector<unsigned char> picture(int step, bool exchanged) const {
    std::vector<unsigned char> bytes(8 * words_, 0xa5);
    for (std::size_t f = 0; f < starts_.size(); ++f)
      for (int cell = exchanged ? -1 : 0; cell < (exchanged ? 5 : 4); ++cell) {
        const int all = 4 * size(), global = (4 * rank() + cell + all) % all;
        encode(&bytes[8 * (starts_[f] + static_cast<std::size_t>(cell + 1))], 8, static_cast<int>(f), {global, 0, 0, 0},
               step);
      }
    return bytes;
  }
  ist_halo_range range_{1, 1, 1, 4, 6};
  std::array<std::size_t, 3> starts_;
  std::size_t words_;
  GuardedBuffer memory_;
  std::vector<ist_halo_field> fields_;
};

// More sets of fields than are kept take turns; a graph's stays, with the lists of runs that it holds.
TEST(HaloStreams, many_sets_of_fields_take_turns_and_a_graph_keeps_its_own) {
  NEEDS_A_DEVICE();
  const Stream stream;
  Cut cut;
  cut.dims = {size(), 1, 1, 1};
  cut.periods = {1, 0, 0, 0};
  ist_halo_grid grid = grid_for(cut);
  OneAllocation own(0);
  const ist_halo_options options{sizeof options, 0, IST_HALO_LAYOUTS, IST_HALO_MESSAGES, 0};
  ist_halo halo = IST_HALO_NULL;
  IST_OK_OR_FAIL(ist_halo_create(grid, 3, own.get(), &options, &halo));
  IST_OK_OR_FAIL(ist_halo_prepare_on(halo, stream.get()));
  const Graph graph(stream, [&] { EXPECT_EQ(IST_OK, ist_halo_exchange_on(halo, stream.get())) << ist_error_text(); });
  std::vector<std::unique_ptr<OneAllocation>> others;
  for (std::size_t set = 1; set <= 20; ++set) others.push_back(std::make_unique<OneAllocation>(set));
  for (int round = 0; round < 2; ++round) {
    for (const auto& each : others) {
      each->fill(round);
      IST_OK_OR_FAIL(ist_halo_set_fields(halo, 3, each->get()));
      IST_OK_OR_FAIL(ist_halo_exchange_on(halo, stream.get()));
    }
    stream.wait();
    for (const auto& each : others) each->check(round, "a set of round " + std::to_string(round));
    own.fill(round);
    graph.launch();
    stream.wait();
    own.check(round, "the graph's in round " + std::to_string(round));
  }
  IST_OK_OR_FAIL(ist_barrier(comm()));
  IST_OK_OR_FAIL(ist_halo_free(&halo));
  IST_OK_OR_FAIL(ist_halo_grid_free(&grid));
}

TEST(HaloStreams, long_messages_wait_for_each_other_in_one_order) {
  NEEDS_A_DEVICE();
  const Stream stream;
  Cut cut;
  cut.ndims = 1;
  cut.dims = {size(), 1, 1, 1};
  cut.periods = {1, 0, 0, 0};
  cut.cells = {3, 1, 1, 1};
  ist_halo_grid grid = grid_for(cut);
  // Two cells one way, and one back, of 1.25 MiB each.
  CodedField field(cut, {5 << 18, {2}, {1}, {}, {}, {0, 1, 2, 3}}, 0, coords_in(grid, 1), IST_KIND_CUDA);
  const ist_halo_field given = field.get();
  ist_halo halo = IST_HALO_NULL;
  IST_OK_OR_FAIL(ist_halo_create(grid, 1, &given, nullptr, &halo));
  for (int step = 0; step < 2; ++step) {
    field.fill(step);
    IST_OK_OR_FAIL(ist_halo_exchange_on(halo, stream.get()));
    stream.wait();
    field.check(step, "long messages");
  }
  IST_OK_OR_FAIL(ist_barrier(comm()));
  IST_OK_OR_FAIL(ist_halo_free(&halo));
  IST_OK_OR_FAIL(ist_halo_grid_free(&grid));
}

TEST(HaloStreams, other_memory_other_ways_and_other_moments_are_refused) {
  NEEDS_A_DEVICE();
  const Stream stream;
  Cut cut;
  cut.dims = {size(), 1, 1, 1};
  cut.cells = {4, 1, 1, 1};
  ist_halo_grid grid = grid_for(cut);
  CodedField on_host(cut, {8, {1}, {1}}, 0, coords_in(grid, 1), IST_KIND_HOST);
  CodedField on_device(cut, {8, {1}, {1}}, 0, coords_in(grid, 1), IST_KIND_CUDA);
  ist_halo_field given = on_host.get();
  ist_halo halo = IST_HALO_NULL;
  IST_OK_OR_FAIL(ist_halo_create(grid, 1, &given, nullptr, &halo));
  EXPECT_EQ(IST_ERR_KIND, ist_halo_exchange_on(halo, stream.get()));
  EXPECT_NE(std::string{ist_error_text()}.find("field 0 lies in host memory"), std::string::npos) << ist_error_text();
  IST_OK_OR_FAIL(ist_halo_free(&halo));
  given = on_device.get();
  const ist_halo_options one_sided{sizeof one_sided, 0, IST_HALO_LOOPS, IST_HALO_ONE_SIDED, 0};
  IST_OK_OR_FAIL(ist_halo_create(grid, 1, &given, &one_sided, &halo));
  EXPECT_EQ(IST_ERR_UNSUPPORTED, ist_halo_prepare_on(halo, stream.get()));
  IST_OK_OR_FAIL(ist_halo_free(&halo));
  IST_OK_OR_FAIL(ist_halo_create(grid, 1, &given, nullptr, &halo));
  on_device.fill(0);
  IST_OK_OR_FAIL(ist_halo_pack(halo));
  EXPECT_EQ(IST_ERR_ARGUMENT, ist_halo_exchange_on(halo, stream.get()));
  IST_OK_OR_FAIL(ist_halo_exchange(halo));
  IST_OK_OR_FAIL(ist_halo_unpack(halo));
  const Graph graph(stream, [&] {
    const int code = ist_halo_exchange_on(halo, stream.get());
    EXPECT_EQ(size() > 1 ? IST_ERR_NOT_CAPTURABLE : IST_OK, code) << ist_error_text();
  });
  IST_OK_OR_FAIL(ist_halo_free(&halo));
  IST_OK_OR_FAIL(ist_halo_grid_free(&grid));
}

}  // namespace
