#include "cli/bench_rows.hpp"

#include <array>
#include <optional>
#include <string>

#include "cli/failure.hpp"
#include "memory/opencl/opencl_api.hpp"
#ifdef ISTHMUS_CUDA_COMPILED
#include "cli/bench_driver.hpp"
#endif

namespace ist::cli {
namespace {

// Rows of `width` bytes, `height` of them a pitch apart, and `depth` such planes.
struct Rows {
  std::size_t width = 0, height = 1, depth = 1, pitch = 0;
  std::size_t heights = 1;  // how many pitches from plane to plane
};

// Both calls count planes in whole pitches.
std::optional<Rows> rows_of(const Form& form) {
  if (!form.strided() || form.dimensions == 0 || form.dimensions > 2) return {};
  const Dimension row = form.dimension[0];
  const Dimension plane = form.dimensions == 2 ? form.dimension[1] : Dimension{1, row.count * row.stride};
  if (row.stride < form.block || plane.stride < row.count * row.stride || plane.stride % row.stride != 0) return {};
  return Rows{static_cast<std::size_t>(form.block), static_cast<std::size_t>(row.count),
              static_cast<std::size_t>(plane.count), static_cast<std::size_t>(row.stride),
              static_cast<std::size_t>(plane.stride / row.stride)};
}

#ifdef ISTHMUS_CUDA_COMPILED
class CudaRows final : public RowsCopy {
 public:
  CudaRows(const Rows& rows, const Form& form, const Piece& spread, const Piece& packed)
      : driver_(Driver::get()), side_(driver_, spread.device) {
    copy_.srcMemoryType = copy_.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy_.srcDevice = spread.object + spread.offset.value + static_cast<std::uint64_t>(form.offset);
    copy_.dstDevice = packed.object + packed.offset.value;
    copy_.WidthInBytes = copy_.dstPitch = rows.width;
    copy_.Height = copy_.dstHeight = rows.height;
    copy_.Depth = rows.depth;
    copy_.srcPitch = rows.pitch;
    copy_.srcHeight = rows.heights;
  }
  void pack() override {
    side_.use();
    CUresult result = driver_.api().cuMemcpy3DAsync_v2(&copy_, side_.stream(0));
    if (result == CUDA_SUCCESS) result = driver_.api().cuStreamSynchronize(side_.stream(0));
    side_.leave();
    driver_.must(result, "cuMemcpy3DAsync of " + std::to_string(copy_.Height * copy_.Depth) + " rows of " +
                             std::to_string(copy_.WidthInBytes) + " bytes, " + std::to_string(copy_.srcPitch) +
                             " bytes apart");
  }

 private:
  const Driver& driver_;
  const DriverSide side_;
  CUDA_MEMCPY3D copy_{};
};
#endif

class OpenclRows final : public RowsCopy {
 public:
  OpenclRows(const OpenclApi& api, const Rows& rows, const Form& form, const Piece& spread, const Piece& packed)
      : api_(api),
        rows_(rows),
        spread_(spread),
        packed_(packed),
        from_(spread.offset.value + static_cast<std::uint64_t>(form.offset)) {}
  void pack() override {
    // An origin is a number of bytes, rows and planes; the first of them may be beyond one row.
    const std::array<std::size_t, 3> from{from_, 0, 0}, to{packed_.offset.value, 0, 0};
    const std::array<std::size_t, 3> region{rows_.width, rows_.height, rows_.depth};
    cl_int error = api_.clEnqueueCopyBufferRect(queue_of(spread_), memory_of(spread_), memory_of(packed_), from.data(),
                                                to.data(), region.data(), rows_.pitch, rows_.pitch * rows_.heights,
                                                rows_.width, rows_.width * rows_.height, 0, nullptr, nullptr);
    if (error == CL_SUCCESS) error = api_.clFinish(queue_of(spread_));
    if (const Status found =
            opencl_status(error, "clEnqueueCopyBufferRect of " + std::to_string(rows_.height * rows_.depth) + " rows of " +
                                     std::to_string(rows_.width) + " bytes");
        !found.ok())
      throw Failure(found);
  }

 private:
  const OpenclApi& api_;
  const Rows rows_;
  const Piece spread_, packed_;
  const std::uint64_t from_;
};

}  // namespace

std::unique_ptr<RowsCopy> RowsCopy::open(const Kinds& kinds, const Form& form, const ist_buffer& spread,
                                         const ist_buffer& packed) {
  const auto rows = rows_of(form);
  if (!rows) return nullptr;
  const auto there = kinds.resolve(spread, Bytes{1}),
             row = kinds.resolve(packed, Bytes{static_cast<std::uint64_t>(form.size)});
  for (const auto* piece : {&there, &row})
    if (!piece->ok()) throw Failure(piece->status());
  if (there->kind == KindId::opencl) {
    const auto api = OpenclApi::get();
    if (!api.ok()) throw Failure(api.status());
    return std::make_unique<OpenclRows>(**api, *rows, form, *there, *row);
  }
#ifdef ISTHMUS_CUDA_COMPILED
  if (there->kind == KindId::cuda && Driver::get().api().cuMemcpy3DAsync_v2 != nullptr)
    return std::make_unique<CudaRows>(*rows, form, *there, *row);
#endif
  return nullptr;
}

}  // namespace ist::cli
