// himeno's kernels, played by the processor over the fake driver: each launch is a host function in its stream, so that exchanges, graphs, sums
// and heaps between processes are run where there is no GPU. The kernel that does all iterations is the program's own code, by as many threads as
// its grid has; what sweeps do to each quad is the kernels' own, too.
#include <sys/mman.h>

#include <map>
#include <stdexcept>
#include <vector>

#include "played_cuda.hpp"
#include "played_driver.hpp"
// Behind the words.
#include "himeno/cuda_persistent.cuh"

namespace {

using played::host, played::post;

// A team's memory as kernels know it: the parts of all PEs side by side, wherever the fake driver has each of them.
class Parts {
 public:
  explicit Parts(const ist_team_view& of) : of_(of), here_(of) {
    const std::uint64_t all = of.stride * static_cast<std::uint64_t>(of.pes);
    void* const place = mmap(nullptr, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (place == MAP_FAILED) throw std::runtime_error("no addresses for the parts of a team");
    here_.base = static_cast<unsigned char*>(place);
    here_.abort_word = host(const_cast<std::uint32_t*>(const_cast<const std::uint32_t*>(of.abort_word)));
    for (std::uint64_t at = 0; at < all; at += kBlock) {
      void* const bytes = DRIVER(fake_cuda_bytes)(played::number_of(of.base + at));
      // Of length 0: the same pages once more.
      if (bytes != nullptr && mremap(bytes, 0, kBlock, MREMAP_MAYMOVE | MREMAP_FIXED, here_.base + at) == MAP_FAILED)
        throw std::runtime_error("a part of a team cannot be mapped once more");
    }
  }
  static const Parts& of(const ist_team_view& view) {
    static auto* const known = new std::map<const unsigned char*, Parts>;
    return known->try_emplace(view.base, view).first->second;
  }
  const ist_team_view& view() const { return here_; }
  template <class T>
  T* here(T* address) const {
    if (address == nullptr) return nullptr;
    return reinterpret_cast<T*>(here_.base + (reinterpret_cast<const unsigned char*>(address) - of_.base));
  }

 private:
  static constexpr std::uint64_t kBlock = 2U << 20;  // of the fake driver's mappings
  ist_team_view of_, here_;
};

himeno::Coefficients on_host(himeno::Coefficients with) {
  for (const float*& array : with.of) array = host(const_cast<float*>(array));
  return with;
}
himeno::Persistent on_host(himeno::Persistent job) {
  const Parts& parts = Parts::of(job.view);
  job.view = parts.view();
  job.with = on_host(job.with);
  for (float*& level : job.p) level = parts.here(level);
  job.packets.base = parts.here(job.packets.base);
  job.flags = parts.here(job.flags);
  job.taken = host(job.taken), job.arrived = host(job.arrived), job.ended = host(job.ended);
  job.partial = host(job.partial), job.sums = host(job.sums);
  return job;
}

constexpr unsigned kFewThreads = 64, kFewBlocks = 3;

}  // namespace

namespace himeno {

void fill_coefficients(cudaStream_t stream, std::int64_t elements, float* const (&arrays)[kCoefficients], float b) {
  const float values[kCoefficients] = {1, 1, 1, 1.0F / 6.0F, b, b, b, 1, 1, 1, 1, 0};
  for (int n = 0; n < kCoefficients; ++n)
    post(stream, [=, array = host(arrays[n]), value = values[n]] { std::fill_n(array, elements, value); });
}

void fill_levels(cudaStream_t stream, const Extent& extent, float* p0, float* p1) {
  post(stream, [=, first = host(p0), second = host(p1)] {
    const std::int64_t* const total = extent.total;
    for (std::int64_t n = 0; n < total[0] * total[1] * total[2]; ++n) {
      const std::int64_t at[3] = {n / total[2] / total[1] + extent.first[0], n / total[2] % total[1] + extent.first[1],
                                  n % total[2] + extent.first[2]};
      bool inside = true;
      for (int d = 0; d < 3; ++d) inside = inside && at[d] >= 0 && at[d] < extent.all[d];
      const auto square = [](std::int64_t number) { return static_cast<float>(number * number); };
      first[n] = second[n] = inside ? square(at[0]) / square(extent.all[0] - 1) : 0.0F;
    }
  });
}

void sweep(cudaStream_t stream, const Shape& shape, const Coefficients& with, const float* from, float* to, const Work& work,
           double* gosa) {
  post(stream,
       [=, coefficients = on_host(with), before = host(const_cast<float*>(from)), after = host(to), sum = host(gosa)] {
         double mine = 0;
         for (unsigned n = 0; n < work.quads(); ++n) {
           const Quad quad = quad_of(shape, work, n);
           Four four;
           mine += change(shape, coefficients, before, quad, four);
           store(after, quad, four);
         }
         // Two streams may add at once.
         auto* const word = reinterpret_cast<std::uint64_t*>(sum);
         std::uint64_t known = __atomic_load_n(word, __ATOMIC_ACQUIRE);
         while (!__atomic_compare_exchange_n(word, &known, std::bit_cast<std::uint64_t>(std::bit_cast<double>(known) + mine),
                                             false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
         }
       });
}

void compare(cudaStream_t stream, const Compared& of, unsigned long long* unlike) {
  post(stream,
       [=, one = host(const_cast<float*>(of.one)), other = host(const_cast<float*>(of.other)), count = host(unlike)] {
         for (int i = of.box.first[0]; i <= of.box.last[0]; ++i)
           for (int j = of.box.first[1]; j <= of.box.last[1]; ++j)
             for (int k = of.box.first[2]; k <= of.box.last[2]; ++k)
               if (__float_as_uint(one[i * of.shape.plane + j * of.shape.row + k]) !=
                   __float_as_uint(other[(i + of.shift[0]) * of.other_shape.plane + (j + of.shift[1]) * of.other_shape.row +
                                         k + of.shift[2]]))
                 ++*count;
       });
}

unsigned most_threads() { return kFewThreads; }
unsigned most_blocks(bool /*packets*/, bool /*keeps*/, unsigned /*threads*/) { return kFewBlocks + 1; }

void iterate(cudaStream_t stream, const Persistent& job, unsigned blocks, unsigned threads) {
  post(stream, [=, here = on_host(job)] {
    played::play_grid(blocks + 1, threads, [&] {
      if (here.packets.base != nullptr)
        iterate_kernel<true, kFewThreads>(here);
      else
        iterate_kernel<false, kFewThreads>(here);
    });
  });
}

}  // namespace himeno
