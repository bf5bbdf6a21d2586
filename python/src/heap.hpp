// Python's Heap, a symmetric heap, and SymmetricArray, memory of it that every PE has.
//
// Who calls this : comm.cpp makes heaps; module.cpp binds the classes.
// Threads        : the caller holds the GIL, which calls that copy or wait let go of.
// Ownership      : a heap lasts until close() or its world's end, never until its last reference is dropped: that would not be at the
//                  same time on all ranks. An array holds its heap object, not its memory.
// Errors         : raised.
#pragma once

#include <isthmus/heap.h>
#include <nanobind/stl/shared_ptr.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm.hpp"
#include "region.hpp"

namespace isthmus_python {

class Heap;

class SymmetricArray {
 public:
  SymmetricArray(std::shared_ptr<Heap> heap, std::uint64_t address, std::vector<std::int64_t> shape, std::string typestr)
      : heap_(std::move(heap)), address_(address), shape_(std::move(shape)), typestr_(std::move(typestr)) {}
  // Of the CUDA array interface where the heap is of a device; raises AttributeError where the heap is of the other sort.
  nb::dict array_interface(bool of_device) const;
  // Raises where the array was freed, its heap closed, or the world left.
  void require_there() const;
  // As array interfaces are, whatever the address leads to.
  nb::dict named() const;
  // Its memory is an OpenCL buffer, which the address only names.
  bool is_opencl() const;
  // The caller's own copy, as what names such memory.
  Region buffer(nb::handle self) const;
  std::uint64_t address() const { return address_; }
  std::int64_t count() const;
  std::int64_t bytes() const;
  nb::tuple shape() const;
  const std::string& typestr() const { return typestr_; }
  nb::object at_pe(int pe) const;
  void free();
  std::string text() const;

 private:
  std::shared_ptr<Heap> heap_;
  std::uint64_t address_;  // 0: freed, or of no bytes
  std::vector<std::int64_t> shape_;
  std::string typestr_;
  bool freed_ = false;
};

class Heap : public std::enable_shared_from_this<Heap> {
 public:
  // Collective.
  static nb::object make(const std::shared_ptr<Channels>& channels, const std::string& kind, std::uint64_t bytes,
                         std::uint64_t most, int device);
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;
  ~Heap() = default;

  nb::object array(nb::handle shape, const std::string& typestr);
  void grow(std::uint64_t bytes);
  void close();
  bool closed() const { return heap_ == IST_HEAP_NULL || channels_->session->closed(); }
  int pe() const { return channels_->rank; }
  int pes() const { return channels_->size; }
  const std::string& kind() const { return kind_; }
  nb::tuple room() const;

  void put(nb::handle dest, nb::handle source, int pe, bool now) const;
  void get(nb::handle dest, nb::handle source, int pe, bool now) const;
  void put_signal(nb::handle dest, nb::handle source, nb::handle signal, std::uint64_t value, int pe, bool add,
                  bool now) const;
  void fence() const;
  void quiet() const;
  void barrier() const;
  bool test(nb::handle word, const std::string& compare, nb::handle value) const;
  void wait_until(nb::handle word, const std::string& compare, nb::handle value) const;
  nb::object atomic(const std::string& operation, nb::handle word, nb::handle operand, int pe) const;
  nb::object compare_swap(nb::handle word, nb::handle expected, nb::handle wanted, int pe) const;
  nb::bytes view() const;
  nb::bytes device_view(std::optional<int> device);
  std::string text() const;

  // For its arrays.
  ist_heap open() const;
  Session& session() const { return *channels_->session; }
  const std::shared_ptr<Session>& shared_session() const { return channels_->session; }
  bool of_device() const { return kind_ != "host"; }

 private:
  Heap(std::shared_ptr<Channels> channels, std::string kind, ist_heap heap)
      : channels_(std::move(channels)), kind_(std::move(kind)), heap_(heap) {}
  std::shared_ptr<Channels> channels_;
  std::string kind_;
  ist_heap heap_;
  mutable std::vector<Region> under_way_;  // what put_nbi, get_nbi and put_signal_nbi were given, until quiet
};

void bind_heaps(nb::module_& module, Bound<Comm>& comm);

}  // namespace isthmus_python
