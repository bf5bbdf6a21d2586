// Python's Window: memory that every rank already has, reached by all of them.
//
// Who calls this : comm.cpp makes windows; this binds the class.
// Threads        : the caller holds the GIL, which calls that copy or wait let go of.
// Ownership      : a window keeps its object's memory until close(), or its world's end; never until its last reference is dropped: that
//                  would not be at the same time on all ranks.
// Errors         : raised.
#pragma once

#include <isthmus/window.h>
#include <nanobind/stl/shared_ptr.h>

#include <memory>
#include <string>
#include <vector>

#include "comm.hpp"

namespace isthmus_python {

class Window {
 public:
  // Collective. None: nothing of this rank's.
  static nb::object make(const std::shared_ptr<Channels>& channels, nb::handle memory);
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;
  ~Window() = default;

  void close();
  bool closed() const { return window_ == IST_WINDOW_NULL || channels_->session->closed(); }
  int pe() const { return channels_->rank; }
  int pes() const { return channels_->size; }
  nb::tuple bytes() const;
  std::uint64_t peer_ptr(std::uint64_t offset, int pe) const;
  nb::bytes view() const;

  void put(std::uint64_t offset, nb::handle source, int pe, bool now) const;
  void get(nb::handle dest, std::uint64_t offset, int pe, bool now) const;
  void put_signal(std::uint64_t offset, nb::handle source, std::uint64_t signal, std::uint64_t value, int pe,
                  bool add) const;
  void quiet() const;
  bool test(std::uint64_t offset, const std::string& compare, nb::handle value, const std::string& typestr) const;
  void wait_until(std::uint64_t offset, const std::string& compare, nb::handle value, const std::string& typestr) const;
  nb::object atomic(const std::string& operation, std::uint64_t offset, nb::handle operand, int pe,
                    const std::string& typestr) const;
  nb::object compare_swap(std::uint64_t offset, nb::handle expected, nb::handle wanted, int pe,
                          const std::string& typestr) const;
  std::string text() const;

 private:
  Window(std::shared_ptr<Channels> channels, Region memory, ist_window window)
      : channels_(std::move(channels)), memory_(std::move(memory)), window_(window) {}
  ist_window open() const;
  Session& session() const { return *channels_->session; }
  std::shared_ptr<Channels> channels_;
  Region memory_;
  ist_window window_;
  mutable std::vector<Region> under_way_;  // what put_nbi and get_nbi were given, until quiet
};

void bind_windows(nb::module_& module, Bound<Comm>& comm);

}  // namespace isthmus_python
