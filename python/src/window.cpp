#include "window.hpp"

#include <utility>

#include "wait.hpp"
#include "words.hpp"

namespace isthmus_python {
namespace {

std::uint64_t size_in(const Region& region) { return static_cast<std::uint64_t>(region.bytes()); }

}  // namespace

nb::object Window::make(const std::shared_ptr<Channels>& channels, nb::handle memory) {
  // Shared: the call may go on when Ctrl-C has ended the wait for it.
  const auto own = std::make_shared<Region>();
  own->place = ist_auto(nullptr);
  if (!memory.is_none()) *own = to_region(memory, Access::write);
  const auto window = std::make_shared<ist_window>(IST_WINDOW_NULL);
  call_all(channels->session, [=] { return ist_window_create(channels->user, own->place, size_in(*own), window.get()); });
  return nb::cast(std::shared_ptr<Window>(new Window(channels, *own, *window)));
}

ist_window Window::open() const {
  channels_->session->require_open();
  if (window_ == IST_WINDOW_NULL) refuse("this window was closed");
  return window_;
}

void Window::close() {
  if (closed()) return;
  call_all(
      channels_->session, [window = window_]() mutable { return ist_window_free(&window); },
      [this] { window_ = IST_WINDOW_NULL; });
  under_way_.clear();
  memory_ = {};
}

nb::tuple Window::bytes() const {
  ist_window_view view{};
  // Also where the host's calls alone get to some of them.
  if (const int code = ist_window_view_of(open(), &view); code != IST_ERR_UNREACHABLE) check(code);
  nb::list all;
  for (int pe = 0; pe < view.pes; ++pe) all.append(view.bytes[pe]);
  return nb::tuple(all);
}

std::uint64_t Window::peer_ptr(std::uint64_t offset, int pe) const {
  void* address = nullptr;
  check(ist_window_pointer(open(), offset, pe, &address));
  return reinterpret_cast<std::uint64_t>(address);
}

nb::bytes Window::view() const {
  ist_window_view view{};
  check(ist_window_view_of(open(), &view));
  return nb::bytes(reinterpret_cast<const char*>(&view), sizeof view);
}

void Window::put(std::uint64_t offset, nb::handle source, int pe, bool now) const {
  const Region from = to_region(source, Access::read);
  call(session(), [&, window = open()] {
    return (now ? ist_window_put : ist_window_put_nbi)(window, offset, from.place, size_in(from), pe);
  });
  if (!now) under_way_.push_back(from);
}

void Window::get(nb::handle dest, std::uint64_t offset, int pe, bool now) const {
  const Region into = to_region(dest, Access::write);
  call(session(), [&, window = open()] {
    return (now ? ist_window_get : ist_window_get_nbi)(window, into.place, offset, size_in(into), pe);
  });
  if (!now) under_way_.push_back(into);
}

void Window::put_signal(std::uint64_t offset, nb::handle source, std::uint64_t signal, std::uint64_t value, int pe,
                        bool add) const {
  const Region from = to_region(source, Access::read);
  call(session(), [&, window = open()] {
    return ist_window_put_signal(window, offset, from.place, size_in(from), signal, value,
                                 add ? IST_SIGNAL_ADD : IST_SIGNAL_SET, pe);
  });
}

void Window::quiet() const {
  ist_window window = open();
  // What another thread starts meanwhile stays for the next one.
  std::vector<Region> complete = std::exchange(under_way_, {});
  try {
    call(session(), [&] { return ist_window_quiet(window); });
  } catch (...) {
    under_way_.insert(under_way_.end(), complete.begin(), complete.end());
    throw;
  }
}

bool Window::test(std::uint64_t offset, const std::string& compare, nb::handle number, const std::string& typestr) const {
  const WordType word = word_named(typestr);
  const std::int64_t value = number_for(word, number, Sign::own);
  const ist_compare how = compare_named(compare);
  int is = 0;
  call(session(), [&, window = open()] { return ist_window_test(window, offset, word.type, how, value, &is); });
  return is != 0;
}

void Window::wait_until(std::uint64_t offset, const std::string& compare, nb::handle number,
                        const std::string& typestr) const {
  const WordType word = word_named(typestr);
  const std::int64_t value = number_for(word, number, Sign::own);
  const ist_compare how = compare_named(compare);
  ist_window window = open();
  int code = IST_OK;
  std::string text;
  wait_for(session(), [&] {
    int is = 0;
    code = ist_window_test(window, offset, word.type, how, value, &is);
    if (code != IST_OK) text = ist_error_text();
    return code != IST_OK || is != 0;
  });
  if (code != IST_OK) raise(code, text);
}

nb::object Window::atomic(const std::string& operation, std::uint64_t offset, nb::handle number, int pe,
                          const std::string& typestr) const {
  const WordType word = word_named(typestr);
  const std::int64_t operand = number_for(word, number);
  const ist_atomic what = atomic_named(operation);
  std::uint32_t before32 = 0;
  std::uint64_t before64 = 0;
  call(session(), [&, window = open()] {
    return word.size == 4 ? ist_window_atomic32(window, what, offset, static_cast<std::uint32_t>(operand), &before32, pe)
                          : ist_window_atomic64(window, what, offset, static_cast<std::uint64_t>(operand), &before64, pe);
  });
  return to_number(word, word.size == 4 ? before32 : before64);
}

nb::object Window::compare_swap(std::uint64_t offset, nb::handle if_this, nb::handle then_this, int pe,
                                const std::string& typestr) const {
  const WordType word = word_named(typestr);
  const std::int64_t expected = number_for(word, if_this);
  const std::int64_t wanted = number_for(word, then_this);
  std::uint32_t before32 = 0;
  std::uint64_t before64 = 0;
  call(session(), [&, window = open()] {
    return word.size == 4 ? ist_window_compare_swap32(window, offset, static_cast<std::uint32_t>(expected),
                                                      static_cast<std::uint32_t>(wanted), &before32, pe)
                          : ist_window_compare_swap64(window, offset, static_cast<std::uint64_t>(expected),
                                                      static_cast<std::uint64_t>(wanted), &before64, pe);
  });
  return to_number(word, word.size == 4 ? before32 : before64);
}

std::string Window::text() const {
  if (closed()) return "<isthmus.Window, closed>";
  return "<isthmus.Window, PE " + std::to_string(pe()) + " of " + std::to_string(pes()) + ">";
}

// ---- the class ----

namespace {

using Class = Bound<Window>;

void bind_copies(Class& window) {
  using namespace nb::literals;
  window
      .def(
          "put",
          [](const Window& self, std::uint64_t offset, nb::handle source, int pe) { self.put(offset, source, pe, true); },
          "offset"_a, "source"_a, "pe"_a,
          "Writes source to that PE's memory from byte `offset` on. Returns when source may be used again; seen there after "
          "quiet and a barrier of the communicator.")
      .def(
          "get", [](const Window& self, nb::handle dest, std::uint64_t offset, int pe) { self.get(dest, offset, pe, true); },
          "dest"_a, "offset"_a, "pe"_a, "Brings as many bytes as dest has from there.")
      .def(
          "put_nbi",
          [](const Window& self, std::uint64_t offset, nb::handle source, int pe) { self.put(offset, source, pe, false); },
          "offset"_a, "source"_a, "pe"_a, "As put, complete after quiet; until then source must stay as it is.")
      .def(
          "get_nbi",
          [](const Window& self, nb::handle dest, std::uint64_t offset, int pe) { self.get(dest, offset, pe, false); },
          "dest"_a, "offset"_a, "pe"_a, "As get, complete after quiet.")
      .def("put_signal", &Window::put_signal, "offset"_a, "source"_a, "signal"_a, "value"_a, "pe"_a, "add"_a = false,
           "A put, and then the word of 8 bytes at offset `signal` of the same PE is set to value, or value is added: who "
           "sees it "
           "sees the bytes.")
      .def("quiet", &Window::quiet, "What was put and got before is complete, and visible to every PE.");
}

void bind_words(Class& window) {
  using namespace nb::literals;
  window
      .def("test", &Window::test, "offset"_a, "compare"_a, "value"_a, "typestr"_a = "u8",
           nb::sig("def test(self, offset: int, compare: str, value: int, typestr: str = 'u8') -> bool"),
           "Whether this rank's own word there, an integer of 4 or 8 bytes, compares so: ==, !=, >, >=, <, <=.")
      .def("wait_until", &Window::wait_until, "offset"_a, "compare"_a, "value"_a, "typestr"_a = "u8",
           nb::sig("def wait_until(self, offset: int, compare: str, value: int, typestr: str = 'u8') -> None"),
           "Until it does. Messages move on meanwhile, Ctrl-C ends the wait, and a PE that dies raises PeerDeadError.")
      .def(
          "atomic", &Window::atomic, "operation"_a, "offset"_a, "operand"_a = 0, "pe"_a, "typestr"_a = "u8",
          nb::sig("def atomic(self, operation: str, offset: int, operand: int = 0, *, pe: int, typestr: str = 'u8') -> int"),
          "fetch, set, add, inc, swap, and, or, xor on that PE's word; gives what was there. Of CUDA memory by a kernel on "
          "this "
          "rank's device.")
      .def("compare_swap", &Window::compare_swap, "offset"_a, "expected"_a, "wanted"_a, "pe"_a, "typestr"_a = "u8",
           nb::sig("def compare_swap(self, offset: int, expected: int, wanted: int, pe: int, typestr: str = 'u8') -> int"),
           "Writes wanted if the word is expected; gives what was there.");
}

}  // namespace

void bind_windows(nb::module_& module, Bound<Comm>& comm) {
  using namespace nb::literals;
  Class window(
      module, "Window",
      "Memory that the ranks of a communicator already have, each its own, which all others reach by offset without a call "
      "there. Ended by close(), which is collective, or with its world.");
  window.def_prop_ro("pe", &Window::pe)
      .def_prop_ro("pes", &Window::pes)
      .def_prop_ro("closed", &Window::closed)
      .def_prop_ro("nbytes", &Window::bytes, nb::sig("def nbytes(self) -> tuple[int, ...]"), "That each PE has registered.")
      .def("peer_ptr", &Window::peer_ptr, "offset"_a, "pe"_a,
           "The address in this process of that byte of that PE's: for kernels and copies of CUDA memory.")
      .def("view", &Window::view,
           "The bytes of an ist_window_view (isthmus/team.h), which kernels take by value as their argument.")
      .def("close", &Window::close, "Collective; the memory may be freed afterwards.")
      .def(
          "__enter__", [](nb::object self) { return self; }, nb::sig("def __enter__(self) -> Window"))
      .def(
          "__exit__",
          [](Window& self, nb::handle type, nb::args) {
            if (type.is_none()) self.close();  // another rank may not come to it otherwise
          },
          "type"_a.none(), "rest"_a, nb::sig("def __exit__(self, type: object, *rest: object) -> None"))
      .def("__repr__", &Window::text);
  bind_copies(window);
  bind_words(window);
  comm.def(
      "window", [](const Comm& self, nb::handle memory) { return Window::make(self.open(), memory); }, "memory"_a.none(),
      nb::sig("def window(self, memory: object | None) -> Window"),
      "Registers what an array or tensor has, so that all ranks reach it; None: nothing of this rank's. Of CUDA memory that "
      "can be "
      "exported, or of host memory that is shared, as world.allocate gives it. The object is kept until close(). "
      "Collective.");
}

}  // namespace isthmus_python
