// What bench_one_sided_work.hpp does, as kernels. Without work they only have to be there: each is run once so that its code is on the
// device before one of them waits.
#include "cli/bench_one_sided_work.hpp"

namespace device = ist::device;
using namespace ist::cli::one_sided;

#define IST_ONE_SIDED_KERNEL(NAME, THREADS, BODY, CREW)                                       \
  extern "C" __global__ void __launch_bounds__(THREADS) isthmus_one_sided_##NAME(Work work) { \
    if (work.ends != nullptr) BODY(CREW{}, work);                                             \
  }

extern "C" __global__ void isthmus_one_sided_empty(Work) {}
IST_ONE_SIDED_KERNEL(words, 256, trade_words, device::Grid)
IST_ONE_SIDED_KERNEL(words_bare, 256, trade_words_bare, device::Grid)
IST_ONE_SIDED_KERNEL(put_by_thread, 1, trade_puts, device::Thread)
IST_ONE_SIDED_KERNEL(put_by_warp, 32, trade_puts, device::Warp)
IST_ONE_SIDED_KERNEL(put_by_block, 1024, trade_puts, device::Block)
IST_ONE_SIDED_KERNEL(flag_bare, 1024, trade_flags_bare, device::Block)
IST_ONE_SIDED_KERNEL(packets_by_warp, 32, trade_packets, device::Warp)
IST_ONE_SIDED_KERNEL(packets_by_block, 1024, trade_packets, device::Block)
IST_ONE_SIDED_KERNEL(packets_bare, 1024, trade_packets_bare, device::Block)
IST_ONE_SIDED_KERNEL(meet_by_warp, 32, meet, device::Warp)
IST_ONE_SIDED_KERNEL(meet_by_block, 1024, meet, device::Block)
IST_ONE_SIDED_KERNEL(meet_by_grid, 256, meet, device::Grid)
IST_ONE_SIDED_KERNEL(meet_bare, 1024, meet_bare, device::Block)
IST_ONE_SIDED_KERNEL(put, 512, put_all, device::Grid)
IST_ONE_SIDED_KERNEL(get, 512, get_all, device::Grid)
IST_ONE_SIDED_KERNEL(put_bulk, 1, put_in_bulk, device::Grid)
IST_ONE_SIDED_KERNEL(get_bulk, 1, get_in_bulk, device::Grid)
IST_ONE_SIDED_KERNEL(store, 256, store_words, device::Grid)
IST_ONE_SIDED_KERNEL(store_bare, 256, store_words_bare, device::Grid)
IST_ONE_SIDED_KERNEL(fetch_add, 256, fetch_and_add, device::Grid)
IST_ONE_SIDED_KERNEL(add, 256, only_add, device::Grid)
IST_ONE_SIDED_KERNEL(load_bare, 256, load_bare, device::Grid)
IST_ONE_SIDED_KERNEL(small_by_thread, 1, put_small, device::Thread)
IST_ONE_SIDED_KERNEL(small_by_warp, 32, put_small, device::Warp)
IST_ONE_SIDED_KERNEL(small_by_block, 256, put_small, device::Block)
IST_ONE_SIDED_KERNEL(small_bare, 256, put_small_bare, device::Block)
