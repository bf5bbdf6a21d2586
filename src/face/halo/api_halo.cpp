// C calls that make exchanges and take their steps.
#include <algorithm>
#include <cstring>

#include "base/ranges.hpp"
#include "face/halo/halo_exchange.hpp"
#include "face/message/calls.hpp"
#include "face/message/errors.hpp"
#include "face/message/numbered.hpp"

namespace ist::halo {
namespace {

using SharedExchange = std::shared_ptr<Exchange>;

Numbered<SharedExchange>& exchanges() {
  static auto* const table = new Numbered<SharedExchange>;
  return *table;
}

std::uint64_t number_of(ist_halo handle) { return reinterpret_cast<std::uint64_t>(handle); }

// With its world still there.
Result<SharedExchange> exchange_of(ist_halo handle) {
  if (handle == IST_HALO_NULL) return Status{IST_ERR_HANDLE, "the exchange is null; make one with ist_halo_create"};
  auto found = exchanges().find(number_of(handle));
  if (!found)
    return Status{IST_ERR_HANDLE, number_text(number_of(handle)) +
                                      " is no exchange: it was not made by ist_halo_create, or was freed since"};
  if (!look_up((*found)->comm()).ok())
    return Status{IST_ERR_HANDLE, "the exchange's world was destroyed; free exchanges before their world"};
  return std::move(*found);
}

template <class What>
int in_exchange(const char* call, ist_halo halo, const What& what) {
  const Range range(call);
  const auto found = exchange_of(halo);
  if (!found.ok()) return report(in_call(call, found.status()));
  const Status done = what(**found);
  return done.ok() ? IST_OK : report(in_call(call, done));
}

int null_place(const char* call, const char* name) {
  return report(IST_ERR_ARGUMENT, std::string{call} + ": " + name + " is null; pass the address of a variable");
}

// Where there is no place for it this rank has taken part all the same: the others' waits say that it has gone.
int hand_out(const char* call, Result<std::unique_ptr<Exchange>> made, ist_halo* halo) {
  if (!made.ok()) return report(in_call(call, made.status()));
  if (halo == nullptr) return null_place(call, "halo");
  *halo = reinterpret_cast<ist_halo>(exchanges().add(SharedExchange{std::move(*made)}));
  return IST_OK;
}

int create_halo(ist_halo_grid grid, int count, const ist_halo_field* fields, const ist_halo_options* options,
                ist_halo* halo) {
  constexpr const char* kCall = "ist_halo_create";
  const Range range(kCall);
  if (halo != nullptr) *halo = IST_HALO_NULL;
  auto found = grid_of(grid);
  if (!found.ok()) return report(in_call(kCall, found.status()));
  const ist_comm comm = (*found)->comm->get();
  return hand_out(kCall, Exchange::create(comm, std::move(*found), nullptr, count, fields, options), halo);
}

int create_lists(ist_comm comm, const ist_halo_lists* lists, int count, const ist_halo_field* fields,
                 const ist_halo_options* options, ist_halo* halo) {
  constexpr const char* kCall = "ist_halo_create_lists";
  const Range range(kCall);
  if (halo != nullptr) *halo = IST_HALO_NULL;
  const ist_halo_lists none{};
  return hand_out(kCall, Exchange::create(comm, nullptr, lists == nullptr ? &none : lists, count, fields, options), halo);
}

int free_halo(ist_halo* halo) {
  constexpr const char* kCall = "ist_halo_free";
  if (halo == nullptr) return null_place(kCall, "halo");
  const auto found = exchange_of(*halo);
  if (!found.ok()) return report(in_call(kCall, found.status()));
  const Status closed = (*found)->close();
  exchanges().remove(number_of(*halo));
  *halo = IST_HALO_NULL;
  return closed.ok() ? IST_OK : report(in_call(kCall, closed));
}

Status tell(const Exchange& exchange, char* text, std::size_t size, std::size_t* needed) {
  if (text == nullptr && size > 0) return {IST_ERR_ARGUMENT, "text is null, with a size of " + std::to_string(size)};
  const std::string all = exchange.text();
  if (needed != nullptr) *needed = all.size() + 1;
  if (size == 0) return {};
  const std::size_t fits = std::min(all.size(), size - 1);
  std::memcpy(text, all.data(), fits);
  text[fits] = '\0';
  return {};
}

Status split_inner(int ndims, const ist_halo_range* ranges, ist_halo_box* interior, ist_halo_box* border, int* boxes) {
  if (ndims < 1 || ndims > IST_HALO_MOST_DIMENSIONS)
    return {IST_ERR_ARGUMENT, "ndims is " + std::to_string(ndims) + "; it must be 1 to 4"};
  for (const auto& [name, given] :
       {std::pair<const char*, const void*>{"ranges", ranges}, {"interior", interior}, {"border", border}, {"boxes", boxes}})
    if (given == nullptr) return {IST_ERR_ARGUMENT, std::string{name} + " is null"};
  return split({ranges, static_cast<std::size_t>(ndims)}, *interior, border, *boxes);
}

}  // namespace
}  // namespace ist::halo

extern "C" {

int ist_halo_create(ist_halo_grid grid, int count, const ist_halo_field* fields, const ist_halo_options* options,
                    ist_halo* halo) try {
  return ist::halo::create_halo(grid, count, fields, options, halo);
} catch (...) {
  return ist::report_exception("ist_halo_create");
}

int ist_halo_create_lists(ist_comm comm, const ist_halo_lists* lists, int count, const ist_halo_field* fields,
                          const ist_halo_options* options, ist_halo* halo) try {
  return ist::halo::create_lists(comm, lists, count, fields, options, halo);
} catch (...) {
  return ist::report_exception("ist_halo_create_lists");
}

int ist_halo_set_fields(ist_halo halo, int count, const ist_halo_field* fields) try {
  return ist::halo::in_exchange("ist_halo_set_fields", halo,
                                [=](ist::halo::Exchange& in) { return in.set_fields(count, fields); });
} catch (...) {
  return ist::report_exception("ist_halo_set_fields");
}

int ist_halo_free(ist_halo* halo) try { return ist::halo::free_halo(halo); } catch (...) {
  return ist::report_exception("ist_halo_free");
}

int ist_halo_pack(ist_halo halo) try {
  return ist::halo::in_exchange("ist_halo_pack", halo, [](ist::halo::Exchange& in) { return in.pack(); });
} catch (...) {
  return ist::report_exception("ist_halo_pack");
}

int ist_halo_exchange(ist_halo halo) try {
  return ist::halo::in_exchange("ist_halo_exchange", halo, [](ist::halo::Exchange& in) -> ist::Status {
    IST_TRY(in.start());
    return in.wait();
  });
} catch (...) {
  return ist::report_exception("ist_halo_exchange");
}

int ist_halo_start_exchange(ist_halo halo) try {
  return ist::halo::in_exchange("ist_halo_start_exchange", halo, [](ist::halo::Exchange& in) { return in.start(); });
} catch (...) {
  return ist::report_exception("ist_halo_start_exchange");
}

int ist_halo_wait(ist_halo halo) try {
  return ist::halo::in_exchange("ist_halo_wait", halo, [](ist::halo::Exchange& in) { return in.wait(); });
} catch (...) {
  return ist::report_exception("ist_halo_wait");
}

int ist_halo_test(ist_halo halo, int* over) try {
  if (over == nullptr) return ist::halo::null_place("ist_halo_test", "over");
  *over = 0;
  return ist::halo::in_exchange("ist_halo_test", halo, [=](ist::halo::Exchange& in) {
    bool found = false;
    const ist::Status tested = in.test(found);
    *over = found ? 1 : 0;
    return tested;
  });
} catch (...) {
  return ist::report_exception("ist_halo_test");
}

int ist_halo_unpack(ist_halo halo) try {
  return ist::halo::in_exchange("ist_halo_unpack", halo, [](ist::halo::Exchange& in) { return in.unpack(); });
} catch (...) {
  return ist::report_exception("ist_halo_unpack");
}

int ist_halo_split(int ndims, const ist_halo_range* ranges, ist_halo_box* interior, ist_halo_box* border, int* boxes) try {
  const ist::Status done = ist::halo::split_inner(ndims, ranges, interior, border, boxes);
  return done.ok() ? IST_OK : ist::report(ist::in_call("ist_halo_split", done));
} catch (...) {
  return ist::report_exception("ist_halo_split");
}

int ist_halo_exchange_on(ist_halo halo, void* stream) try {
  return ist::halo::in_exchange("ist_halo_exchange_on", halo,
                                [=](ist::halo::Exchange& in) { return in.exchange_on(stream); });
} catch (...) {
  return ist::report_exception("ist_halo_exchange_on");
}

int ist_halo_prepare_on(ist_halo halo, void* stream) try {
  return ist::halo::in_exchange("ist_halo_prepare_on", halo, [=](ist::halo::Exchange& in) { return in.prepare_on(stream); });
} catch (...) {
  return ist::report_exception("ist_halo_prepare_on");
}

int ist_halo_text(ist_halo halo, char* text, size_t size, size_t* needed) try {
  return ist::halo::in_exchange("ist_halo_text", halo,
                                [=](ist::halo::Exchange& in) { return ist::halo::tell(in, text, size, needed); });
} catch (...) {
  return ist::report_exception("ist_halo_text");
}
}
