// What in_kernel.cu checks and measures, in which order, and how it prints it. Part of that file, cut off for its length.
//
// Who calls this : in_kernel.cu includes it, in its own namespace, behind the kernels.
// Threads        : one of the host's.
// Ownership      : none.
// Errors         : a check that went wrong is printed, and nothing is measured.

bool all_right = true;
int printed = 0;
std::uint32_t shortened = 1;
bool with_bulk = true, with_others = true;  // checks of the copy unit, and all others

void check(Two& pair, const char* name, Kernel kernel, std::uint32_t epochs, std::uint32_t sequence, std::uint32_t bytes,
           unsigned blocks, unsigned threads, unsigned long long wrong = 0) {
  epochs = std::max(1U, epochs / shortened);
  const int status = run(pair, kernel, epochs, sequence, bytes, blocks, threads);
  wrong += pair.sides[0].result->wrong + pair.sides[1].result->wrong;
  all_right = all_right && status == 0 && wrong == 0;
  std::printf("%s\n {\"check\": \"%s\", \"epochs\": %u, \"wrong\": %llu, \"first\": %llu, \"status\": %d}",
              printed++ ? "," : "", name, epochs, wrong, std::max(pair.sides[0].result->first, pair.sides[1].result->first),
              status);
  std::fflush(stdout);
}

void check_word(const Two& pair, const char* name, int pe, int offset, unsigned long long wanted) {
  unsigned long long found = 0;
  const Side& side = pair.sides[pe];
  const unsigned char* const part = side.view.base + static_cast<std::uint64_t>(pe) * side.view.stride;
  must(cudaMemcpy(&found, part + side.view.sync_bytes + 4 * kRoom + offset, sizeof found, cudaMemcpyDefault), "cudaMemcpy");
  all_right = all_right && found == wanted;
  std::printf(",\n {\"check\": \"%s\", \"wanted\": %llu, \"found\": %llu}", name, wanted, found);
  std::fflush(stdout);
}

// A wait that nobody ends: one passes its deadline, one sees the abort word. Of a thread, or of a message to a grid.
void check_waits(Two& pair, bool of_grids) {
  const std::uint64_t deadlines[2] = {20000000, 0};
  for (int pe = 0; pe < 2; ++pe) {
    *pair.sides[pe].result = {};
    pair.sides[pe].sequence = 1U << 29;  // of no other message
    must(cudaSetDevice(pair.devices[pe]), "cudaSetDevice");
    if (of_grids)
      receive_in_vain<<<8, 64, 0, pair.streams[pe]>>>(pair.sides[pe], deadlines[pe]);
    else
      wait_in_vain<<<1, 1, 0, pair.streams[pe]>>>(pair.sides[pe], deadlines[pe]);
    must(cudaGetLastError(), "launch");
  }
  // Under a sanitizer the call that waits for one of two kernels of a device waits for the other one, too.
  const auto begun = std::chrono::steady_clock::now();
  while (cudaStreamQuery(pair.streams[0]) == cudaErrorNotReady &&
         std::chrono::steady_clock::now() - begun < std::chrono::seconds(2)) {
  }
  *const_cast<volatile std::uint32_t*>(pair.abort_word) = 1;
  must(cudaStreamSynchronize(pair.streams[0]), "cudaStreamSynchronize");
  must(cudaStreamSynchronize(pair.streams[1]), "cudaStreamSynchronize");
  *const_cast<volatile std::uint32_t*>(pair.abort_word) = 0;
  // After a death no grid of that PE meets any more, unless its words are as they were when the team was made.
  const ist_team_view& view = pair.sides[1].view;
  must(cudaMemset(view.base + view.stride + view.sync + offsetof(Control, come), 0,
                  sizeof(Control) - offsetof(Control, come)),
       "cudaMemset");
  must(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  const Result &late = *pair.sides[0].result, &dead = *pair.sides[1].result;
  const bool right = late.status == static_cast<int>(Status::late) && late.nanoseconds >= 20000000 &&
                     dead.status == static_cast<int>(Status::peer_dead) && late.wrong == 0 && dead.wrong == 0;
  all_right = all_right && right;
  std::printf(
      ",\n {\"check\": \"deadline of 20 ms, and abort word%s\", \"wrong\": %d, \"late_ms\": %.2f, \"dead_ms\": %.2f}",
      of_grids ? ", of a grid" : "", right ? 0 : 1, late.nanoseconds / 1e6, dead.nanoseconds / 1e6);
  std::fflush(stdout);
}

constexpr std::uint32_t kExchanged = 100000, kExchangedByGrids = 20000, kPutEpochs = 20000;

void check_bulk_copies(Two& pair) {
  check(pair, "bulk copies by one thread, up to 64 KiB", check_bulk, 20000, 0, 65536, 1, 128);
}

// Calls that all blocks of a grid make together: numbers of messages and of signals go on where those of a block ended.
void check_grids(Two& pair) {
  const auto epochs = [](std::uint32_t all) { return std::max(1U, all / shortened); };
  const std::uint32_t packets = epochs(kExchanged), puts = epochs(kPutEpochs);
  check(pair, "put_signal of a grid of 16 blocks, up to 64 KiB", check_put_signal<Grid>, 10000, puts, 65536, 16, 128);
  check(pair, "put_signal of a grid of 5 blocks, up to 64 KiB", check_put_signal<Grid>, 5000, puts + epochs(10000), 65536, 5,
        96);
  check(pair, "packets both ways of a grid, up to 16 KiB", check_packets<Grid, Reuse::credited, false>, kExchangedByGrids,
        packets, 16384, 8, 128);
  check(pair, "packets one way of a grid, up to 4 KiB", check_packets<Grid, Reuse::credited, true>, 20000, packets, 4096, 3,
        32);
  check(pair, "packets both ways of a grid, answered, up to 4 KiB", check_packets<Grid, Reuse::answered, false>, 20000,
        packets, 4096, 4, 64);
  check(pair, "allreduce, broadcast, alltoall of a grid", check_calls<Grid>, 20000, 0, 0, 6, 64);
  check(pair, "allreduce, broadcast, alltoall of a block again", check_calls<Block>, 1000, 0, 0, 1, 64);
  check(pair, "barrier of a grid again", check_barrier<Grid>, 5000, 0, 0, 7, 64);
  check_waits(pair, true);
}

bool check_all(Two& pair) {
  if (with_bulk) check_bulk_copies(pair);
  if (!with_others) return all_right;
  check(pair, "packets both ways, up to 16 KiB", check_packets<Block, Reuse::credited, false>, kExchanged, 0, 16384, 1, 256);
  check(pair, "packets one way, up to 4 KiB", check_packets<Block, Reuse::credited, true>, kExchanged, 0, 4096, 1, 256);
  check(pair, "packets both ways, answered, up to 4 KiB", check_packets<Block, Reuse::answered, false>, kExchanged, 0, 4096,
        1, 64);
  check(pair, "put_signal, up to 64 KiB", check_put_signal<Block>, kPutEpochs, 0, 65536, 1, 512);
  check(pair, "barrier of a warp", check_barrier<Warp>, 20000, 0, 0, 1, 32);
  check(pair, "barrier of a block", check_barrier<Block>, kExchanged, 0, 0, 1, 256);
  check(pair, "barrier of a grid of 16 blocks", check_barrier<Grid>, kExchanged, 0, 0, 16, 128);
  check(pair, "barrier of a block again", check_barrier<Block>, 1000, 0, 0, 1, 64);
  check(pair, "allreduce, broadcast, alltoall", check_calls<Block>, 30000, 0, 0, 1, 128);
  check(pair, "atomics", check_atomics, 100 * shortened, 0, 0, 1, 256);
  check_word(pair, "atomics: sum", 0, 1024, 100 * 256 * 2);
  check_word(pair, "atomics: compare and swap", 1, 2048, 100 * 256 * 2);
  check_word(pair, "atomics: or", 0, 3072, ~0ULL);
  check_waits(pair, false);
  check_grids(pair);
  return all_right;
}

// How many numbers of a channel, or of a flag, are used: all ways of a call go on from there.
struct Used {
  std::uint32_t packets = kExchanged + kExchangedByGrids, answered = 0, bare_packets = 0, puts = 0, bare_puts = 0,
                bare_barriers = 0, none = 0;
};
struct Way {
  const char* name;
  Kernel kernel;
  unsigned blocks;
  unsigned threads;
  std::uint32_t* used;
  // One that would take a second is never the best; a block that wants more registers than there are cannot be launched.
  bool suits(std::uint32_t bytes) const {
    cudaFuncAttributes attributes;
    must(cudaFuncGetAttributes(&attributes, kernel), "cudaFuncGetAttributes");
    return bytes / 16 <= 64 * threads && threads <= static_cast<unsigned>(attributes.maxThreadsPerBlock);
  }
};
struct Figure {
  double median = 0, low = 0, high = 0;
  const Way* way = nullptr;
};
using Times = std::vector<std::vector<double>>;

Figure best_of(const std::vector<Way>& ways, Times& times) {
  Figure best;
  for (std::size_t k = 0; k < ways.size(); ++k) {
    if (times[k].empty()) continue;
    std::sort(times[k].begin(), times[k].end());
    const double median = times[k][times[k].size() / 2];
    if (best.way == nullptr || median < best.median) best = {median, times[k].front(), times[k].back(), &ways[k]};
  }
  return best;
}

// Each way once; `legs`: so many in an iteration.
void time_round(Two& pair, const std::vector<Way>& ways, std::uint32_t bytes, int legs, Times& times) {
  for (std::size_t k = 0; k < ways.size(); ++k) {
    const Way& way = ways[k];
    if (!way.suits(bytes)) continue;
    const int status = run(pair, way.kernel, kIterations, *way.used, bytes, way.blocks, way.threads);
    *way.used += kIterations;
    all_right = all_right && status == 0;
    times[k].push_back(pair.sides[0].result->nanoseconds / 1e3 / (kIterations - kIterations / 10 + 1) / legs);
  }
}

void row(Two& pair, const char* call, std::uint32_t bytes, int legs, const std::vector<Way>& ours,
         const std::vector<Way>& bares) {
  if (!all_right) return;
  Times our_times(ours.size()), bare_times(bares.size());
  for (int round = 0; round < kRounds; ++round) {
    time_round(pair, ours, bytes, legs, our_times);
    time_round(pair, bares, bytes, legs, bare_times);
  }
  const Figure our = best_of(ours, our_times);
  std::printf(
      "%s\n {\"call\": \"%s\", \"by\": \"%s\", \"bytes\": %u, \"blocks\": %u, \"threads\": %u, \"us\": %.3f, "
      "\"us_low\": %.3f, \"us_high\": %.3f",
      printed++ ? "," : "", call, our.way->name, bytes, our.way->blocks, our.way->threads, our.median, our.low, our.high);
  if (!bares.empty()) {
    const Figure bare = best_of(bares, bare_times);
    std::printf(", \"bare\": \"%s\", \"bare_threads\": %u, \"bare_us\": %.3f, \"ratio\": %.3f", bare.way->name,
                bare.way->threads, bare.median, our.median / bare.median);
  }
  std::printf("}");
  std::fflush(stdout);
}

void measure_messages(Two& pair, Used& used) {
  std::vector<Way> packets = {{"a warp", ping_pong<Packets<Warp, Reuse::credited>>, 1, 32, &used.packets}};
  std::vector<Way> answered = {{"a warp", ping_pong<Packets<Warp, Reuse::answered>>, 1, 32, &used.answered}};
  std::vector<Way> puts = {{"a thread", ping_pong<PutSignal<Thread>>, 1, 1, &used.puts},
                           {"a warp", ping_pong<PutSignal<Warp>>, 1, 32, &used.puts}};
  std::vector<Way> bare, flags = {{"store, fence, flag", ping_pong<BareFlag>, 1, 1, &used.bare_puts}};
  for (const unsigned threads : {32U, 64U, 128U, 256U, 512U, 1024U}) {
    packets.push_back({"a block", ping_pong<Packets<Block, Reuse::credited>>, 1, threads, &used.packets});
    answered.push_back({"a block", ping_pong<Packets<Block, Reuse::answered>>, 1, threads, &used.answered});
    puts.push_back({"a block", ping_pong<PutSignal<Block>>, 1, threads, &used.puts});
  }
  for (const unsigned threads : {32U, 64U, 128U, 256U, 512U, 1024U}) {
    bare.push_back({"8-byte packets", ping_pong<BarePackets>, 1, threads, &used.bare_packets});
    bare.push_back({"pairs of packets", ping_pong<BarePairs>, 1, threads, &used.bare_packets});
    flags.push_back({"store, fence, flag", ping_pong<BareFlag>, 1, threads, &used.bare_puts});
  }
  for (const std::uint32_t bytes : {8U, 64U, 512U, 4096U, 16384U}) row(pair, "packets", bytes, 2, packets, bare);
  for (const std::uint32_t bytes : {8U, 64U, 512U, 4096U}) row(pair, "packets, answered", bytes, 2, answered, bare);
  for (const std::uint32_t bytes : {8U, 512U, 4096U, 16384U, 65536U}) row(pair, "put_signal", bytes, 2, puts, flags);
}

// All blocks of a grid together, beside no bare loop: what it costs that they meet.
void measure_grids(Two& pair, Used& used) {
  std::vector<Way> packets, puts, calls;
  for (const unsigned blocks : {2U, 8U, 32U}) {
    packets.push_back({"a grid", ping_pong<Packets<Grid, Reuse::credited>>, blocks, 256, &used.packets});
    puts.push_back({"a grid", ping_pong<PutSignal<Grid>>, blocks, 256, &used.puts});
    calls.push_back({"a grid", reductions<Grid>, blocks, 128, &used.none});
  }
  for (const std::uint32_t bytes : {512U, 16384U}) row(pair, "packets", bytes, 2, packets, {});
  for (const std::uint32_t bytes : {512U, 65536U, 131072U}) row(pair, "put_signal", bytes, 2, puts, {});
  row(pair, "allreduce", 4096, 1, calls, {});
}

bool measure_all(Two& pair) {
  printed = 0;
  Used used;
  measure_messages(pair, used);
  const auto one = [&](Kernel kernel, const char* name, unsigned blocks, unsigned threads) {
    return std::vector<Way>{{name, kernel, blocks, threads, &used.none}};
  };
  const std::vector<Way> bare = {{"push barrier", bare_barriers, 1, 32, &used.bare_barriers},
                                 {"push barrier", bare_barriers, 1, 256, &used.bare_barriers}};
  row(pair, "barrier", 0, 1, one(barriers<Warp, Order::everything>, "a warp", 1, 32), bare);
  row(pair, "barrier", 0, 1, one(barriers<Block, Order::everything>, "a block", 1, 32), bare);
  row(pair, "barrier", 0, 1, one(barriers<Block, Order::everything>, "a block", 1, 256), bare);
  row(pair, "barrier", 0, 1, one(barriers<Grid, Order::everything>, "a grid", 16, 256), bare);
  row(pair, "sync", 0, 1, one(barriers<Block, Order::nothing>, "a block", 1, 32), bare);
  for (const std::uint32_t bytes : {8U, 1024U, 4096U})
    row(pair, "allreduce", bytes, 1, one(reductions<Block>, "a block", 1, 128), {});
  row(pair, "atomic_fetch_add", 8, 1, one(adds<true>, "a thread", 1, 1), {});
  row(pair, "atomic_add", 8, 1, one(adds<false>, "a thread", 1, 1), {});
  measure_grids(pair, used);
  return all_right;
}
