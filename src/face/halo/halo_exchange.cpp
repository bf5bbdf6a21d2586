#include "face/halo/halo_exchange.hpp"

#include <algorithm>

#include "face/halo/halo_agreement.hpp"
#include "face/message/handles.hpp"

namespace ist::halo {
namespace {

// So long a message is under way in a stream before its receive, whatever the two devices are; of a longer one the send waits.
constexpr std::int64_t kUnderWay = std::int64_t{1} << 20;

std::vector<Shape> shapes_of(const std::vector<Field>& fields) {
  std::vector<Shape> shapes;
  for (const Field& field : fields) shapes.push_back(field.shape);
  return shapes;
}

const char* name_of(int state) {
  constexpr const char* kNames[] = {"pack", "exchange or start_exchange", "wait", "unpack",
                                    "nothing but ist_halo_free, since an exchange failed half-way,"};
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
  if (own.ok()) own = read(count, fields, plan_.fields);
  if (own.ok()) own = set_up(plan_, lists);
  const AgreedNumber alike[] = {{"count", count}, {"reach", options_.reach}, {"way", static_cast<int>(options_.way)}};
  IST_TRY(agree(comm(), own, alike));
  IST_TRY(agree(comm(), compare_shapes(comm(), shapes_of(plan_.fields), dimensions())));
  own = compare();
  if (const Status groups = common_groups(comm(), plan_.groups, ranks_); own.ok()) own = groups;
  IST_TRY(agree(comm(), own));
  own = make_shares(plan_);
  if (own.ok()) own = bind(plan_);
  return agree(comm(), own);
}

Status Exchange::compare() const {
  if (grid_ == nullptr) return compare_amounts(comm(), plan_.pattern, plan_.fields.size(), ranks_);
  return compare_boxes(*grid_, shapes_of(plan_.fields), options_.reach);
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
Status Exchange::set_up(Plan& plan, const ist_halo_lists* lists) const {
  const auto shapes = shapes_of(plan.fields);
  if (grid_ != nullptr) IST_TRY(check_thickness(*grid_, shapes));
  auto pattern = grid_ != nullptr ? pattern_of(*grid_, shapes, options_.reach) : pattern_of(*lists, ranks_, shapes);
  if (!pattern.ok()) return pattern.status();
  plan.pattern = std::move(*pattern);
  IST_TRY(find_bytes(plan));
  IST_TRY(check_elements(plan));
  IST_TRY(place(plan, plan.placed));
  return group(plan);
}

// How far into each field the exchange reaches.
Status Exchange::find_bytes(Plan& plan) const {
  const auto& fields = plan.fields;
  plan.bytes.assign(fields.size(), 0);
  for (std::size_t f = 0; f < fields.size(); ++f) {
    const Shape& shape = fields[f].shape;
    if (grid_ == nullptr) continue;
    plan.bytes[f] = shape.element;
    for (std::size_t d = 0; d < dimensions(); ++d)
      if (__builtin_mul_overflow(plan.bytes[f], shape.ranges[d].total_length, &plan.bytes[f]))
        return {IST_ERR_OVERFLOW, "field " + std::to_string(f) + ": its bytes do not fit 64 bits"};
  }
  for (const Partner& partner : plan.pattern)
    for (const auto* sections : {&partner.out, &partner.in})
      for (const Section& section : *sections)
        plan.bytes[section.field] = std::max(plan.bytes[section.field], section.layout->true_bounds().upper);
  return {};
}

Status Exchange::check_elements(const Plan& plan) {
  for (std::size_t f = 0; f < plan.fields.size(); ++f)
    if (const Shape& shape = plan.fields[f].shape;
        shape.elements >= 0 && (plan.bytes[f] + shape.element - 1) / shape.element > shape.elements)
      return {IST_ERR_ARGUMENT, "field " + std::to_string(f) + " has " + std::to_string(shape.elements) +
                                    " elements, and element " + std::to_string((plan.bytes[f] - 1) / shape.element) +
                                    " is listed; they are numbered from 0"};
  return {};
}

Status Exchange::place(const Plan& plan, std::vector<Placed>& placed) const {
  const auto& fields = plan.fields;
  for (std::size_t f = 0; f < fields.size(); ++f) {
    auto piece = world_.kinds().resolve(fields[f].buffer, Bytes{static_cast<std::uint64_t>(plan.bytes[f])});
    if (!piece.ok()) return {piece.status().code(), "field " + std::to_string(f) + ": " + piece.status().text()};
    piece->facts = 0;  // it outlives this call
    // Of a field that has no bytes here nobody looks at the buffer, which may be null: its share's lie on the rank's own device.
    if (piece->size == Bytes{} && piece->device < 0) piece->device = world_.own_device(*world_.kinds().find(piece->kind));
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
Status Exchange::group(Plan& plan) const {
  const auto& placed = plan.placed;
  plan.groups.clear();
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
    plan.groups.push_back(static_cast<int>(first));
  }
  return {};
}

// Nothing fails at one rank alone before ways are made, which may be a collective call.
Status Exchange::make_shares(Plan& plan) {
  const auto order = order_in_messages(shapes_of(plan.fields));
  for (std::size_t f = 0; f < plan.fields.size(); ++f) {
    if (plan.groups[f] != static_cast<int>(f)) continue;
    Share share;
    for (const std::size_t field : order)
      if (plan.groups[field] == plan.groups[f]) share.fields.push_back(field);
    share.beside = plan.placed[f].memory;
    share.packing = options_.packing;
    plan.shares.push_back(std::move(share));
  }
  for (std::size_t s = 0; s < plan.shares.size(); ++s) {
    Share& share = plan.shares[s];
    // A kind that packs all of them by one layout wants no gaps.
    MemoryKind& kind = *world_.kinds().find(share.beside.kind);
    const bool one_layout = kind.id() != KindId::host && kind.box_packing() == nullptr;
    share.lanes = lanes_of(plan.pattern, share.fields, rank_, one_layout ? 1 : kLaneAlignment);
    share.ahead = std::all_of(share.lanes.in_turn.begin(), share.lanes.in_turn.end(),
                              [](const Lane& lane) { return lane.out_bytes <= kUnderWay; });
    const WayWanted wanted{world_, comm(), rank_, static_cast<int>(s), share.lanes.lanes, share.beside};
    auto way = options_.way == IST_HALO_ONE_SIDED ? one_sided(wanted) : by_messages(wanted);
    if (!way.ok()) return way.status();
    share.way = std::move(*way);
  }
  return {};
}

Status Exchange::close(Plan& plan) {
  Status outcome;
  for (Share& share : plan.shares)
    if (share.way != nullptr)
      if (const Status closed = share.way->close(); outcome.ok()) outcome = closed;
  plan = {};
  return outcome;
}

Status Exchange::set_fields(int count, const ist_halo_field* fields) {
  IST_TRY(expect(State::idle));
  Plan wanted;
  IST_TRY(read(count, fields, wanted.fields));
  bool alike = wanted.fields.size() == plan_.fields.size();
  for (std::size_t f = 0; alike && f < wanted.fields.size(); ++f)
    alike = halo::same(wanted.fields[f].shape, plan_.fields[f].shape, dimensions());
  if (alike) {
    std::swap(plan_.fields, wanted.fields);
    Status bound = check_elements(plan_);
    if (bound.ok()) bound = bind(plan_);
    if (!bound.ok()) std::swap(plan_.fields, wanted.fields);  // the fields before are exchanged as before
    return bound;
  }
  if (options_.way == IST_HALO_ONE_SIDED || grid_ == nullptr)
    return {IST_ERR_UNSUPPORTED, std::string{grid_ == nullptr ? "cells are listed" : "the exchange is one-sided"} +
                                     ", so that other fields must have the number and shapes of the first ones; "
                                     "make another exchange"};
  Status made = set_up(wanted, nullptr);
  if (made.ok()) made = make_shares(wanted);
  if (made.ok()) made = bind(wanted);
  if (made.ok()) std::swap(plan_, wanted);
  static_cast<void>(close(wanted));
  return made;
}

Status Exchange::expect(State state) const {
  if (state_ == state) return {};
  // What is called before it is put in front of it: one and the same step has several names.
  return {IST_ERR_ARGUMENT, std::string{"called where "} + name_of(static_cast<int>(state_)) +
                                " comes next; the order is pack, exchange (or start_exchange and wait), unpack"};
}

Status Exchange::pack() {
  if (state_ != State::packed) IST_TRY(expect(State::idle));
  state_ = State::idle;
  for (const Packer& packer : plan_.bindings.back().packs) IST_TRY(run(world_, packer, 0));
  state_ = State::packed;
  return {};
}

Status Exchange::start() {
  IST_TRY(expect(State::packed));
  Status outcome;
  for (Share& share : plan_.shares)
    if (outcome.ok()) outcome = share.way->start();
  if (outcome.ok()) {
    state_ = State::under_way;
    return {};
  }
  bool whole = true;
  for (Share& share : plan_.shares) whole = share.way->take_back() && whole;
  if (!whole) state_ = State::broken;
  return outcome;
}

Status Exchange::test(bool& over) {
  IST_TRY(expect(State::under_way));
  over = true;
  for (Share& share : plan_.shares) {
    const auto ended = share.way->over();
    over = over && (!ended.ok() || *ended);
  }
  return over ? wait() : Status{};
}

Status Exchange::wait() {
  IST_TRY(expect(State::under_way));
  Status outcome;
  for (Share& share : plan_.shares)
    if (const Status waited = share.way->wait(); outcome.ok()) outcome = waited;
  state_ = outcome.ok() ? State::arrived : State::idle;
  return outcome;
}

Status Exchange::unpack() {
  IST_TRY(expect(State::arrived));
  state_ = State::idle;
  for (std::size_t s = 0; s < plan_.shares.size(); ++s)
    IST_TRY(run(world_, plan_.bindings.back().unpacks[s], plan_.shares[s].way->arrived()));
  return {};
}

Status Exchange::close() {
  // Neighbours may never come to it: what has met nobody is given up.
  if (state_ == State::under_way)
    for (Share& share : plan_.shares) static_cast<void>(share.way->take_back());
  return close(plan_);
}

}  // namespace ist::halo
