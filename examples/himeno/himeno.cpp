// The Himeno benchmark: Poisson's equation in three dimensions by Jacobi's method, with 19 points and coefficients of each cell, written from
// its formulas. The box is cut over all ranks; the interior hides the exchange of halos, faces and edges. Up to size S every rank also
// computes the whole box by itself, and its own cells have to be the same to the last bit.
// Run: isthmus run -n 4 himeno [XS, S, M, L or XL] [iterations] [b, of which 0 is the benchmark's and leaves edges unused]
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <isthmus/halo.hpp>
#include <isthmus/isthmus.hpp>
#include <string>
#include <vector>

namespace {

struct Size {
  const char* name;
  std::array<std::int64_t, 3> cells;
};
constexpr std::array<Size, 5> kSizes{Size{"XS", {32, 32, 64}}, Size{"S", {64, 64, 128}}, Size{"M", {128, 128, 256}},
                                     Size{"L", {256, 256, 512}}, Size{"XL", {512, 512, 1024}}};

// What is published of the residual, summed in double, after so many iterations from the start.
struct Published {
  const char* size;
  int iterations;
  double gosa;
};
constexpr std::array<Published, 3> kPublished{Published{"XS", 64, 3.042699e-03}, Published{"S", 64, 2.394869e-03},
                                              Published{"S", 200, 1.688480e-03}};

// A rank's cells, the box's own boundary among them, with a layer of the neighbours' around.
struct Part {
  std::array<std::int64_t, 3> all, first{}, cells{};
  std::array<isthmus::HaloRange, 3> ranges{};

  Part(const Size& size, const std::vector<int>& ranks, const std::vector<int>& coords) : all(size.cells) {
    for (std::size_t d = 0; d < 3; ++d) {
      first[d] = all[d] * coords[d] / ranks[d];
      cells[d] = all[d] * (coords[d] + 1) / ranks[d] - first[d];
      ranges[d] = {1, 1, 1, cells[d], cells[d] + 2};
    }
  }
  std::size_t at(std::int64_t i, std::int64_t j, std::int64_t k) const {
    return static_cast<std::size_t>((i * ranges[1].total_length + j) * ranges[2].total_length + k);
  }
  std::size_t size() const { return at(ranges[0].total_length, 0, 0); }
  // The box without the cells whose value never changes.
  isthmus::HaloBox changing(isthmus::HaloBox box) const {
    for (std::size_t d = 0; d < 3; ++d) {
      box.first[d] = std::max(box.first[d], 2 - first[d]);
      box.last[d] = std::min(box.last[d], all[d] - 1 - first[d]);
    }
    return box;
  }
  isthmus::HaloBox inner() const { return {{1, 1, 1}, {cells[0], cells[1], cells[2]}}; }
};

class Himeno {
 public:
  Himeno(const Part& part, float b_value) : part_(part) {
    for (auto* const ones : {&a_[0], &a_[1], &a_[2], &c_[0], &c_[1], &c_[2], &bnd_}) ones->assign(part.size(), 1.0F);
    a_[3].assign(part.size(), 1.0F / 6.0F);
    for (auto& b : b_) b.assign(part.size(), b_value);
    wrk1_.assign(part.size(), 0.0F);
    const auto square = [](std::int64_t number) { return static_cast<float>(number * number); };
    for (auto& level : p) level.assign(part.size(), 0.0F);
    for (std::int64_t i = 1; i <= part.cells[0]; ++i)
      for (std::int64_t j = 1; j <= part.cells[1]; ++j)
        for (std::int64_t k = 1; k <= part.cells[2]; ++k)
          for (auto& level : p) level[part.at(i, j, k)] = square(part.first[0] + i - 1) / square(part.all[0] - 1);
  }
  // From one level to the other; the sum of the squares of what has changed.
  double sweep(std::size_t from, const isthmus::HaloBox& given) {
    const isthmus::HaloBox box = part_.changing(given);
    double gosa = 0;
    for (std::int64_t i = box.first[0]; i <= box.last[0]; ++i)
      for (std::int64_t j = box.first[1]; j <= box.last[1]; ++j)
        for (std::int64_t k = box.first[2]; k <= box.last[2]; ++k)
          gosa += step(p[from].data(), p[1 - from].data(), part_.at(i, j, k));
    return gosa;
  }
  const Part& part() const { return part_; }

  std::array<std::vector<float>, 2> p;  // two levels, which take turns

 private:
  double step(const float* from, float* to, std::size_t at) const {
    const std::ptrdiff_t k = 1, j = part_.ranges[2].total_length, i = j * part_.ranges[1].total_length;
    const float* const here = from + at;
    const float s0 = a_[0][at] * here[i] + a_[1][at] * here[j] + a_[2][at] * here[k] +
                     b_[0][at] * (here[i + j] - here[i - j] - here[-i + j] + here[-i - j]) +
                     b_[1][at] * (here[j + k] - here[-j + k] - here[j - k] + here[-j - k]) +
                     b_[2][at] * (here[i + k] - here[-i + k] - here[i - k] + here[-i - k]) + c_[0][at] * here[-i] +
                     c_[1][at] * here[-j] + c_[2][at] * here[-k] + wrk1_[at];
    const float ss = (s0 * a_[3][at] - *here) * bnd_[at];
    to[at] = *here + 0.8F * ss;
    return static_cast<double>(ss * ss);
  }

  Part part_;
  std::array<std::vector<float>, 4> a_;
  std::array<std::vector<float>, 3> b_, c_;
  std::vector<float> bnd_, wrk1_;
};

// The rank's cells in the box that it has computed alone.
bool same_bits(const Himeno& cut, const Himeno& whole, std::size_t level) {
  const Part &part = cut.part(), &all = whole.part();
  for (std::int64_t i = 1; i <= part.cells[0]; ++i)
    for (std::int64_t j = 1; j <= part.cells[1]; ++j) {
      const float* const there = &whole.p[level][all.at(part.first[0] + i, part.first[1] + j, part.first[2] + 1)];
      if (std::memcmp(&cut.p[level][part.at(i, j, 1)], there, static_cast<std::size_t>(part.cells[2]) * sizeof(float)) != 0)
        return false;
    }
  return true;
}

struct Found {
  double gosa = 0;     // of the last iteration, of all ranks
  double seconds = 0;  // of the slowest rank
};

Found run(const isthmus::World& world, const isthmus::HaloGrid& grid, Himeno& himeno, int iterations, std::string& text) {
  const auto& ranges = himeno.part().ranges;
  const std::array fields{isthmus::HaloField::of(himeno.p[0], ranges), isthmus::HaloField::of(himeno.p[1], ranges)};
  const isthmus::Halo halo(grid, std::span(&fields[0], 1), {2});  // faces and edges
  text = halo.text();
  std::vector<double> mine(1), sum(1), slowest(1);
  world.comm().barrier();
  const auto begin = std::chrono::steady_clock::now();
  for (int n = 0; n < iterations; ++n) {
    const auto now = static_cast<std::size_t>(n % 2);
    halo.set_fields(std::span(&fields[now], 1));
    mine[0] = 0;
    halo.overlap(ranges, [&](const isthmus::HaloBox& box) { mine[0] += himeno.sweep(now, box); });
    world.comm().allreduce(mine, sum, isthmus::op::sum);
  }
  mine[0] = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  world.comm().allreduce(mine, slowest, isthmus::op::max);
  return {sum[0], slowest[0]};
}

bool close_to(double found, double wanted, double share) { return std::abs(found - wanted) <= share * wanted; }

// With the one-rank run and with what is published, where there is such a thing. All ranks say the same.
bool verify(const isthmus::World& world, const Himeno& cut, const Size& size, int iterations, float b, const Found& found) {
  int wrong = 0;
  if (size.cells[0] <= 64) {
    Himeno whole(Part(size, {1, 1, 1}, {0, 0, 0}), b);
    double gosa = 0;
    for (int n = 0; n < iterations; ++n) gosa = whole.sweep(static_cast<std::size_t>(n % 2), whole.part().inner());
    if (!same_bits(cut, whole, static_cast<std::size_t>(iterations % 2)) || !close_to(found.gosa, gosa, 1e-6)) ++wrong;
  }
  for (const Published& known : kPublished)
    if (b == 0 && size.name == std::string{known.size} && iterations == known.iterations &&
        !close_to(found.gosa, known.gosa, 1e-3))
      ++wrong;
  std::vector<int> mine{wrong}, all(1);
  world.comm().allreduce(mine, all, isthmus::op::sum);
  return all[0] == 0;
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string name = argc > 1 ? argv[1] : "XS";
  const int iterations = argc > 2 ? std::atoi(argv[2]) : 64;
  const float b = argc > 3 ? std::strtof(argv[3], nullptr) : 0.0F;
  const auto size = std::find_if(kSizes.begin(), kSizes.end(), [&](const Size& each) { return name == each.name; });
  if (size == kSizes.end() || iterations < 1) {
    std::fprintf(stderr, "himeno: size is %s and iterations %d; sizes are XS, S, M, L and XL, iterations 1 or more\n",
                 name.c_str(), iterations);
    return 2;
  }
  const isthmus::World world;
  const isthmus::HaloGrid grid(world.comm(), std::array{0, 0, 0}, std::array{0, 0, 0});
  Himeno himeno(Part(*size, grid.dims(), grid.coords()), b);
  std::string text;
  const Found found = run(world, grid, himeno, iterations, text);
  const bool right = verify(world, himeno, *size, iterations, b, found);
  if (world.rank() == 0) {
    const auto& cells = size->cells;
    const double flop = 34.0 * static_cast<double>((cells[0] - 2) * (cells[1] - 2) * (cells[2] - 2)) * iterations;
    std::printf("%s: size %s, %d iterations, %d x %d x %d ranks, gosa %.6e, %.0f MFLOPS\n%s", right ? "verified" : "wrong",
                size->name, iterations, grid.dims()[0], grid.dims()[1], grid.dims()[2], found.gosa,
                flop / found.seconds / 1e6, text.c_str());
  }
  return right ? 0 : 1;
} catch (const isthmus::Error& error) {
  std::fprintf(stderr, "%s: %s\n", error.name(), error.what());
  return 1;
}
