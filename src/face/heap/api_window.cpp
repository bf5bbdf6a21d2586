// C calls on windows.
#include "base/ranges.hpp"
#include "face/heap/heap_calls.hpp"
#include "face/heap/one_sided_words.hpp"
#include "face/heap/window.hpp"
#include "face/message/errors.hpp"
#include "face/message/handles.hpp"

namespace ist {

// So many bytes at an offset of that PE's.
struct InWindow {
  std::uint64_t offset;
  Bytes size;
  int pe;
};
// Found by its arguments, from one_sided_copies.hpp.
static Result<PlaceInHeap> place_in(const Window& window, const InWindow& where) {
  IST_TRY(window.check(where.pe, where.offset, where.size));
  return PlaceInHeap{Pe{where.pe}, Offset{where.offset}};
}

namespace {

// Status what(Window&)
template <class What>
int in_window(const char* call, ist_window window, const What& what) try {
  const auto found = look_up(window);
  const Status done = found.ok() ? what(**found) : found.status();
  return done.ok() ? IST_OK : report(in_call(call, done));
} catch (...) {
  return report_exception(call);
}

int create_window(ist_comm comm, const ist_buffer& memory, std::uint64_t bytes, ist_window* window) {
  constexpr const char* kCall = "ist_window_create";
  const Range range(kCall);
  if (window == nullptr) return null_argument(kCall, "window");
  *window = IST_WINDOW_NULL;
  const auto found = look_up(comm);
  if (!found.ok()) return report(in_call(kCall, found.status()));
  auto made = Window::create(*found->world, *found->comm, memory, bytes);
  if (!made.ok()) return report(in_call(kCall, made.status()));
  const auto name = found->world->windows().add(std::move(*made));
  if (!name)
    return report(IST_ERR_MEMORY, std::string{kCall} + ": this world already has 65536 windows; free some of them first");
  *window = window_handle(comm, *name);
  found->world->windows().find(*name)->look_at_board();  // who died before the watcher could see the window
  return IST_OK;
}

int free_window(ist_window* window) {
  constexpr const char* kCall = "ist_window_free";
  if (window == nullptr) return null_argument(kCall, "window");
  const auto found = look_up(*window);
  if (!found.ok()) return report(in_call(kCall, found.status()));
  const Status ended = (*found)->end();
  (*found)->world().windows().remove(name_in(*window));
  *window = IST_WINDOW_NULL;
  return ended.ok() ? IST_OK : report(in_call(kCall, ended));
}

Result<PlaceInHeap> word_in(const Window& window, const InWindow& where) {
  IST_TRY(window.check(where.pe, where.offset, where.size));
  // Where memory of that PE begins is anybody's choice.
  const PlaceInHeap word{Pe{where.pe}, Offset{where.offset}};
  IST_TRY(check_aligned(window.address_of(word.pe, word.offset), where.size.value));
  return word;
}

Result<PlaceInHeap> own_word(const Window& window, std::uint64_t offset, const Condition& wanted) {
  IST_TRY(window.check(window.pe(), offset, Bytes{word_type(wanted.type).size}));
  const PlaceInHeap word{Pe{window.pe()}, Offset{offset}};
  IST_TRY(check_condition(wanted, reinterpret_cast<std::uint64_t>(window.at(word.pe, word.offset))));
  return word;
}

template <class T>
int atomic(const char* call, ist_window window, ist_atomic operation, const InWindow& where, T operand, T* before) {
  return in_window(call, window,
                   [&](Window& in) { return change_word(in, word_in(in, where), operation, operand, before); });
}

template <class T>
int compare_swap(const char* call, ist_window window, const InWindow& where, T expected, T wanted, T* before) {
  return in_window(call, window,
                   [&](Window& in) { return compare_swap_word(in, word_in(in, where), expected, wanted, before); });
}

}  // namespace
}  // namespace ist

extern "C" {

int ist_window_create(ist_comm comm, ist_buffer memory, uint64_t bytes, ist_window* window) try {
  return ist::create_window(comm, memory, bytes, window);
} catch (...) {
  return ist::report_exception("ist_window_create");
}

int ist_window_free(ist_window* window) try { return ist::free_window(window); } catch (...) {
  return ist::report_exception("ist_window_free");
}

int ist_window_view_of(ist_window window, ist_window_view* view) {
  if (view == nullptr) return ist::null_argument("ist_window_view_of", "view");
  return ist::in_window("ist_window_view_of", window, [=](ist::Window& in) -> ist::Status {
    in.fill(*view);
    return in.has_addresses();
  });
}

int ist_window_pointer(ist_window window, uint64_t offset, int pe, void** address) {
  if (address == nullptr) return ist::null_argument("ist_window_pointer", "address");
  *address = nullptr;
  return ist::in_window("ist_window_pointer", window, [=](ist::Window& in) -> ist::Status {
    const auto place = ist::place_in(in, {offset, ist::Bytes{1}, pe});
    ist::Status reached = place.ok() ? in.has_addresses(place->pe) : place.status();
    if (reached.ok()) *address = in.at(place->pe, place->offset);
    return reached;
  });
}

int ist_window_put(ist_window window, uint64_t offset, ist_buffer source, uint64_t bytes, int pe) {
  return ist::in_window("ist_window_put", window, [&](ist::Window& in) {
    return ist::copy(in, ist::Direction::put, ist::InWindow{offset, ist::Bytes{bytes}, pe}, source, ist::Completes::now);
  });
}

int ist_window_get(ist_window window, ist_buffer dest, uint64_t offset, uint64_t bytes, int pe) {
  return ist::in_window("ist_window_get", window, [&](ist::Window& in) {
    return ist::copy(in, ist::Direction::get, ist::InWindow{offset, ist::Bytes{bytes}, pe}, dest, ist::Completes::now);
  });
}

int ist_window_put_nbi(ist_window window, uint64_t offset, ist_buffer source, uint64_t bytes, int pe) {
  return ist::in_window("ist_window_put_nbi", window, [&](ist::Window& in) {
    return ist::copy(in, ist::Direction::put, ist::InWindow{offset, ist::Bytes{bytes}, pe}, source,
                     ist::Completes::at_quiet);
  });
}

int ist_window_get_nbi(ist_window window, ist_buffer dest, uint64_t offset, uint64_t bytes, int pe) {
  return ist::in_window("ist_window_get_nbi", window, [&](ist::Window& in) {
    return ist::copy(in, ist::Direction::get, ist::InWindow{offset, ist::Bytes{bytes}, pe}, dest, ist::Completes::at_quiet);
  });
}

int ist_window_quiet(ist_window window) {
  return ist::in_window("ist_window_quiet", window, [](ist::Window& in) { return in.quiet(); });
}

int ist_window_put_signal(ist_window window, uint64_t offset, ist_buffer source, uint64_t bytes, uint64_t signal,
                          uint64_t value, ist_signal operation, int pe) {
  return ist::in_window("ist_window_put_signal", window, [&](ist::Window& in) -> ist::Status {
    const ist::InWindow word{signal, ist::Bytes{sizeof value}, pe};
    const auto found = ist::place_in(in, word);
    if (!found.ok()) return found.status();
    const ist::SignalChange change{value, operation};
    ist::Status fine = ist::check_signal(change, in.address_of(found->pe, found->offset));
    if (!fine.ok()) return fine;
    return ist::put_signal(in, ist::InWindow{offset, ist::Bytes{bytes}, pe}, source, word, change, ist::Completes::now);
  });
}

int ist_window_wait_until(ist_window window, uint64_t offset, ist_type type, ist_compare compare, int64_t value) {
  return ist::in_window("ist_window_wait_until", window, [&](ist::Window& in) -> ist::Status {
    const auto word = ist::own_word(in, offset, {type, compare, value});
    return word.ok() ? ist::wait_until(in, *word, {type, compare, value}) : word.status();
  });
}

int ist_window_test(ist_window window, uint64_t offset, ist_type type, ist_compare compare, int64_t value, int* is) {
  if (is == nullptr) return ist::null_argument("ist_window_test", "is");
  *is = 0;
  return ist::in_window("ist_window_test", window, [&](ist::Window& in) -> ist::Status {
    const auto word = ist::own_word(in, offset, {type, compare, value});
    return word.ok() ? ist::test_word(in, *word, {type, compare, value}, *is) : word.status();
  });
}

int ist_window_atomic32(ist_window window, ist_atomic operation, uint64_t offset, uint32_t operand, uint32_t* before,
                        int pe) {
  return ist::atomic("ist_window_atomic32", window, operation, {offset, ist::Bytes{sizeof operand}, pe}, operand, before);
}

int ist_window_atomic64(ist_window window, ist_atomic operation, uint64_t offset, uint64_t operand, uint64_t* before,
                        int pe) {
  return ist::atomic("ist_window_atomic64", window, operation, {offset, ist::Bytes{sizeof operand}, pe}, operand, before);
}

int ist_window_compare_swap32(ist_window window, uint64_t offset, uint32_t expected, uint32_t wanted, uint32_t* before,
                              int pe) {
  return ist::compare_swap("ist_window_compare_swap32", window, {offset, ist::Bytes{sizeof wanted}, pe}, expected, wanted,
                           before);
}

int ist_window_compare_swap64(ist_window window, uint64_t offset, uint64_t expected, uint64_t wanted, uint64_t* before,
                              int pe) {
  return ist::compare_swap("ist_window_compare_swap64", window, {offset, ist::Bytes{sizeof wanted}, pe}, expected, wanted,
                           before);
}
}
