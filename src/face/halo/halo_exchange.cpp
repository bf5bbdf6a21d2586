#include "face/halo/halo_exchange.hpp"

#include <algorithm>
#include <iterator>

#include "face/halo/halo_agreement.hpp"
#include "face/message/handles.hpp"

namespace ist::halo {
namespace {

std::vector<Shape> shapes_of(const std::vector<Field>& fields) {
  std::vector<Shape> shapes;
  for (const Field& field : fields) shapes.push_back(field.shape);
  return shapes;
}

const char* name_of(int state) {
  constexpr const char* kNames[] = {"pack", "exchange or start_exchange", "wait", "unpack"};
  return kNames[state];
}

}  // namespace

Exchange::~Exchange() = default;

Result<std::unique_ptr<Exchange>> Exchange::create(ist_comm comm, SharedGrid grid, const ist_halo_lists* lists, int count,
                                                   const ist_halo_field* fields, const ist_halo_options* options) {
  const auto found = ist::look_up(comm);
  if (!found.ok()) return found.status();
  ist_comm own = IST_COMM_NULL;
  if (const int code = ist_comm_dup(comm, &own); code != IST_OK) return told(code);
  std::unique_ptr<Exchange> made{new Exchange(*found->world, std::make_unique<OwnComm>(own), std::move(grid))};
  if (const Status prepared = made->prepare(lists, count, fields, options); !prepared.ok()) {
    static_cast<void>(made->close());
    return prepared;
  }
  return made;
}

Status Exchange::prepare(const ist_halo_lists* lists, int count, const ist_halo_field* fields,
                         const ist_halo_options* options) {
  int code = ist_comm_rank(comm(), &rank_);
  if (code == IST_OK) code = ist_comm_size(comm(), &ranks_);
  if (code != IST_OK) return told(code);
  Status own = read(options);
  if (own.ok()) own = read(count, fields, fields_);
  if (own.ok()) own = set_up(lists);
  const Alike alike[] = {{"count", count}, {"reach", options_.reach}, {"way", options_.way}};
  IST_TRY(agree(comm(), own, alike));
  IST_TRY(agree(comm(), compare_shapes(comm(), shapes_of(fields_), dimensions())));
  own = compare_amounts(comm(), pattern_, fields_.size(), ranks_);
  if (const Status groups = common_groups(comm(), groups_, ranks_); own.ok()) own = groups;
  IST_TRY(agree(comm(), own));
  own = make_shares();
  if (own.ok()) own = bind();
  return agree(comm(), own);
}

Status Exchange::read(const ist_halo_options* options) {
  if (options == nullptr) return {};
  if (options->size < sizeof(ist_halo_options))
    return {IST_ERR_ARGUMENT, "options->size is " + std::to_string(options->size) + "; set it to sizeof(ist_halo_options)"};
  const auto most = static_cast<int>(std::max<std::size_t>(dimensions(), 1));
  if (options->reach < 0 || options->reach > most)
    return {IST_ERR_ARGUMENT, "reach is " + std::to_string(options->reach) + "; it must be 0 to " + std::to_string(most) +
                                  ", in how many dimensions at once a neighbour may lie"};
  if (options->packing < IST_HALO_AUTO || options->packing > IST_HALO_LOOPS)
    return {IST_ERR_ARGUMENT, "packing is " + std::to_string(options->packing) + "; it must be one of ist_halo_packing"};
  if (options->way != IST_HALO_MESSAGES && options->way != IST_HALO_ONE_SIDED)
    return {IST_ERR_ARGUMENT, "way is " + std::to_string(options->way) + "; it must be one of ist_halo_way"};
  options_ = {options->reach, static_cast<ist_halo_packing>(options->packing), static_cast<ist_halo_way>(options->way)};
  return {};
}

Status Exchange::read(int count, const ist_halo_field* fields, std::vector<Field>& into) const {
  if (count < 1 || fields == nullptr)
    return {IST_ERR_ARGUMENT, "count is " + std::to_string(count) + (fields == nullptr ? ", and fields null" : "") +
                                  "; an exchange has at least one field"};
  into.clear();
  for (int i = 0; i < count; ++i) {
    auto shape = shape_of(fields[i], dimensions());
    if (!shape.ok()) return {shape.status().code(), "field " + std::to_string(i) + ": " + shape.status().text()};
    into.push_back({fields[i].buffer, *shape});
  }
  return {};
}

// What this rank can tell alone.
Status Exchange::set_up(const ist_halo_lists* lists) {
  const auto shapes = shapes_of(fields_);
  if (grid_ != nullptr) IST_TRY(check_thickness(*grid_, shapes));
  auto pattern = grid_ != nullptr ? pattern_of(*grid_, shapes, options_.reach) : pattern_of(*lists, ranks_, shapes);
  if (!pattern.ok()) return pattern.status();
  pattern_ = std::move(*pattern);
  std::vector<Placed> placed;
  IST_TRY(place(placed));
  return group(placed);
}

Status Exchange::place(std::vector<Placed>& placed) const {
  std::vector<std::int64_t> bytes(fields_.size(), 0);
  for (std::size_t f = 0; f < fields_.size(); ++f) {
    const Shape& shape = fields_[f].shape;
    if (grid_ == nullptr) continue;
    bytes[f] = shape.element;
    for (std::size_t d = 0; d < dimensions(); ++d)
      if (__builtin_mul_overflow(bytes[f], shape.ranges[d].total_length, &bytes[f]))
        return {IST_ERR_OVERFLOW, "field " + std::to_string(f) + ": its bytes do not fit 64 bits"};
  }
  for (const Partner& partner : pattern_)
    for (const auto* sections : {&partner.out, &partner.in})
      for (const Section& section : *sections)
        bytes[section.field] = std::max(bytes[section.field], section.layout->true_bounds().upper);
  for (std::size_t f = 0; f < fields_.size(); ++f) {
    auto piece = world_.kinds().resolve(fields_[f].buffer, Bytes{static_cast<std::uint64_t>(bytes[f])});
    if (!piece.ok()) return {piece.status().code(), "field " + std::to_string(f) + ": " + piece.status().text()};
    piece->facts = 0;  // it outlives this call
    Placed one{*piece, 0};
    if (piece->kind == KindId::cuda) {
      const auto known = world_.kinds().find(KindId::cuda)->recognise(piece->address());
      one.allocation = known && known->buffer_id != 0 ? known->buffer_id : piece->object;
    } else if (piece->kind == KindId::opencl) {
      one.allocation = piece->object;
    }
    placed.push_back(one);
  }
  return {};
}

// Fields that can share buffers have the number of the first of them.
Status Exchange::group(const std::vector<Placed>& placed) {
  groups_.clear();
  for (std::size_t f = 0; f < placed.size(); ++f) {
    const Piece& memory = placed[f].memory;
    MemoryKind& kind = *world_.kinds().find(memory.kind);
    if (memory.kind != KindId::host) {
      if (kind.packing() == nullptr)
        return {IST_ERR_KIND, "field " + std::to_string(f) + ": the " + std::string{kind.name()} +
                                  " driver of this machine has not what kernels that pack need; exchange from host memory"};
      IST_TRY(kind.packing()->can_pack(std::max(memory.device, 0)));
    }
    std::size_t first = 0;
    for (; first < f; ++first) {
      const Piece& other = placed[first].memory;
      if (other.kind == memory.kind &&
          (memory.kind == KindId::host || (other.device == memory.device && kind.together(other, memory))))
        break;
    }
    groups_.push_back(static_cast<int>(first));
  }
  return {};
}

Status Exchange::make_shares() {
  std::vector<Placed> placed;
  IST_TRY(place(placed));
  for (Share& share : shares_)
    if (share.way != nullptr) static_cast<void>(share.way->close());
  shares_.clear();
  bindings_.clear();
  const auto order = order_in_messages(shapes_of(fields_));
  for (std::size_t f = 0; f < fields_.size(); ++f) {
    if (groups_[f] != static_cast<int>(f)) continue;
    Share share;
    for (const std::size_t field : order)
      if (groups_[field] == groups_[f]) share.fields.push_back(field);
    share.beside = placed[f].memory;
    share.packing = options_.packing;
    shares_.push_back(std::move(share));
  }
  for (std::size_t s = 0; s < shares_.size(); ++s) {
    lay_out(shares_[s]);
    const WayWanted wanted{world_, comm(), rank_, static_cast<int>(s), shares_[s].lanes, shares_[s].beside};
    auto way = options_.way == IST_HALO_ONE_SIDED ? one_sided(wanted) : by_messages(wanted);
    if (!way.ok()) return way.status();
    shares_[s].way = std::move(*way);
  }
  return {};
}

// What goes to this rank itself is unpacked from where it was packed, and has no place where others' arrives.
void Exchange::lay_out(Share& share) const {
  std::int64_t out = 0, in = 0;
  const auto ours = [&](const Section& section) {
    return std::find(share.fields.begin(), share.fields.end(), section.field) != share.fields.end();
  };
  for (std::size_t p = 0; p < pattern_.size(); ++p) {
    Lane lane{pattern_[p].rank, out, 0, in, 0};
    for (const Section& section : pattern_[p].out) {
      if (!ours(section)) continue;
      share.out.push_back({&section, p, out, false});
      out += section.layout->size();
    }
    const bool own = lane.rank == rank_;
    std::int64_t at = own ? lane.out_at : in;
    for (const Section& section : pattern_[p].in) {
      if (!ours(section)) continue;
      share.in.push_back({&section, p, at, own});
      at += section.layout->size();
    }
    lane.out_bytes = out - lane.out_at;
    lane.in_bytes = own ? 0 : at - in;
    if (!own) in = at;
    share.lanes.push_back(lane);
  }
  // Those of this rank's own first, all else as it was.
  std::vector<Laid> ordered;
  for (const bool own : {true, false})
    std::copy_if(share.in.begin(), share.in.end(), std::back_inserter(ordered),
                 [own](const Laid& laid) { return laid.own == own; });
  share.in = std::move(ordered);
}

Status Exchange::rebuild() {
  IST_TRY(set_up(nullptr));
  IST_TRY(make_shares());
  return bind();
}

Status Exchange::set_fields(int count, const ist_halo_field* fields) {
  IST_TRY(expect(State::idle, "set_fields"));
  std::vector<Field> wanted;
  IST_TRY(read(count, fields, wanted));
  bool alike = wanted.size() == fields_.size();
  for (std::size_t f = 0; alike && f < wanted.size(); ++f)
    alike = halo::same(wanted[f].shape, fields_[f].shape, dimensions());
  if (!alike && (options_.way == IST_HALO_ONE_SIDED || grid_ == nullptr))
    return {IST_ERR_UNSUPPORTED, std::string{grid_ == nullptr ? "cells are listed" : "the exchange is one-sided"} +
                                     ", so that other fields must have the number and shapes of the first ones; "
                                     "make another exchange"};
  std::swap(fields_, wanted);
  Status outcome = alike ? bind() : rebuild();
  if (outcome.ok()) return {};
  std::swap(fields_, wanted);  // the fields before are exchanged as before
  if (!alike) IST_TRY(rebuild());
  return outcome;
}

Status Exchange::expect_fields() const {
  if (!bindings_.empty()) return {};
  return {IST_ERR_ARGUMENT,
          "no fields are set, since neither those that were given last nor those before could be; set others"};
}

Status Exchange::expect(State state, const char* what) const {
  if (state_ == state) return {};
  return {IST_ERR_ARGUMENT, std::string{what} + " was called where " + name_of(static_cast<int>(state_)) +
                                " comes next; the order is pack, exchange (or start_exchange and wait), unpack"};
}

Status Exchange::pack() {
  if (state_ != State::packed) IST_TRY(expect(State::idle, "pack"));
  IST_TRY(expect_fields());
  state_ = State::idle;
  for (std::size_t s = 0; s < shares_.size(); ++s) {
    const Piece& out = shares_[s].way->out();
    IST_TRY(run(world_, bindings_.back().packs[s], out, out));
  }
  state_ = State::packed;
  return {};
}

Status Exchange::start() {
  IST_TRY(expect(State::packed, "exchange"));
  for (Share& share : shares_) IST_TRY(share.way->start());
  state_ = State::under_way;
  return {};
}

Status Exchange::wait() {
  IST_TRY(expect(State::under_way, "wait"));
  Status outcome;
  for (Share& share : shares_)
    if (const Status waited = share.way->wait(); outcome.ok()) outcome = waited;
  state_ = outcome.ok() ? State::arrived : State::idle;
  return outcome;
}

Status Exchange::unpack() {
  IST_TRY(expect(State::arrived, "unpack"));
  state_ = State::idle;
  for (std::size_t s = 0; s < shares_.size(); ++s)
    IST_TRY(run(world_, bindings_.back().unpacks[s], shares_[s].way->out(), shares_[s].way->in()));
  return {};
}

Status Exchange::close() {
  Status outcome;
  if (state_ == State::under_way) static_cast<void>(wait());
  for (Share& share : shares_)
    if (share.way != nullptr)
      if (const Status closed = share.way->close(); outcome.ok()) outcome = closed;
  shares_.clear();
  bindings_.clear();
  return outcome;
}

}  // namespace ist::halo
