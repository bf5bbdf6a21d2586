#include "memory.hpp"

#include <charconv>
#include <string_view>

#include "errors.hpp"

namespace isthmus_python {
namespace {
constexpr const char* kKinds[] = {"auto", "host", "cuda", "opencl"};

std::string without_order(const std::string& typestr) {
  return !typestr.empty() && std::string_view("<>|=").find(typestr[0]) != std::string_view::npos ? typestr.substr(1)
                                                                                                 : typestr;
}
}  // namespace

ist_kind kind_named(const std::string& name) {
  for (int kind = 0; kind < 4; ++kind)
    if (name == kKinds[kind]) return static_cast<ist_kind>(kind);
  throw nb::value_error(("there is no kind '" + name + "' of memory; kinds are host, cuda, opencl and auto").c_str());
}

const char* name_of(std::uint32_t kind) { return kind < 4 ? kKinds[kind] : "unknown"; }

// As NumPy reads them: of text in Unicode the number counts characters of four bytes, and behind that of dates stands their unit.
std::int64_t item_size_of(const std::string& typestr) {
  const std::string letters = without_order(typestr);
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  std::int64_t size = 0;
  const char* const begin = letters.data() + (letters.empty() ? 0 : 1);
  const auto [end, error] = std::from_chars(begin, letters.data() + letters.size(), size);
  const std::string_view rest{end, static_cast<std::size_t>(letters.data() + letters.size() - end)};
  const bool is_date = !letters.empty() && (letters[0] == 'm' || letters[0] == 'M');
  const bool ends = rest.empty() || (is_date && rest.front() == '[' && rest.back() == ']');
  if (error != std::errc{} || size < 1 || size > kMost || !ends)
    throw nb::value_error(
        ("typestr is '" + typestr + "'; give a kind and the bytes of one element, such as 'f8' or 'u1'").c_str());
  if (letters[0] == 'O')
    throw nb::value_error(
        ("typestr is '" + typestr + "', of references to objects of this process, which mean nothing to another one")
            .c_str());
  return letters[0] == 'U' ? 4 * size : size;
}

bool is_of_other_order(const std::string& typestr) {
  return !typestr.empty() && typestr[0] == (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? '>' : '<');
}

Buffer::Buffer(const std::string& kind, std::uint64_t object, std::int64_t count, const std::string& typestr,
               std::uint64_t offset, std::uint64_t queue, bool read_only, nb::object owner, bool ready) {
  const std::int64_t size = item_size_of(typestr);
  // Of numbers in another byte order, as of NumPy's such arrays, it knows no arithmetic.
  const char letter = is_of_other_order(typestr) ? 'V' : without_order(typestr)[0];
  if (count < 0)
    throw nb::value_error(("count is " + std::to_string(count) + "; give the number of elements, 0 or more").c_str());
  region_.place = ist_make_buffer(static_cast<std::uint32_t>(kind_named(kind)), object, offset, queue);
  if (ready) region_.place = ist_buffer_ready(region_.place);
  region_.count = count;
  region_.item_size = size;
  set_type(region_, letter, typestr);
  region_.read_only = read_only;
  region_.owner = std::move(owner);
}

Region Buffer::region(nb::handle self) const {
  Region region = region_;
  region.owner = nb::borrow(self);
  return region;
}

std::string Buffer::text() const {
  return std::string("<isthmus.Buffer, ") + name_of(region_.place.kind) + ", " + std::to_string(region_.count) +
         " elements of " + std::to_string(region_.item_size) + " bytes>";
}

namespace {

void* address_of(const Region& region) { return reinterpret_cast<void*>(region.place.object + region.place.offset); }

}  // namespace

Memory::Memory(std::shared_ptr<Session> session, const std::string& kind, std::size_t bytes, int device)
    : session_(std::move(session)), bytes_(bytes) {
  check(ist_memory_alloc(session_->world(), kind_named(kind), device, bytes, &place_));
}

Memory::~Memory() {
  // With its world gone, the memory is gone.
  if (!session_->closed()) ist_memory_free(session_->handle(), place_);
}

Region Memory::region(nb::handle self) const {
  session_->world();
  Region region;
  region.place = place_;
  region.count = static_cast<std::int64_t>(bytes_);
  region.owner = nb::borrow(self);
  return region;
}

std::string Memory::text() const {
  return std::string("<isthmus.Memory, ") + kind() + ", " + std::to_string(bytes_) + " bytes>";
}

Registration::Registration(std::shared_ptr<Session> session, nb::handle memory)
    : session_(std::move(session)), region_(to_region(memory, Access::read)) {
  if (region_.place.kind != IST_KIND_HOST)
    throw nb::value_error(("register: host memory is page-locked, and this is " + std::string(name_of(region_.place.kind)) +
                           " memory, which needs none")
                              .c_str());
  check(ist_register(session_->world(), address_of(region_), static_cast<std::size_t>(region_.bytes())));
  held_ = true;
}

void Registration::release() {
  if (held_ && !session_->closed()) ist_unregister(session_->handle(), address_of(region_));
  held_ = false;
  region_.owner.reset();
}

std::string Registration::text() const {
  return held_ ? "<isthmus.Registration, " + std::to_string(region_.bytes()) + " bytes>"
               : "<isthmus.Registration, released>";
}

void bind_memory(nb::module_& module) {
  using namespace nb::literals;
  Bound<Buffer>(module, "Buffer", "A place named by hand, for memory that no protocol describes.")
      .def(nb::init<const std::string&, std::uint64_t, std::int64_t, const std::string&, std::uint64_t, std::uint64_t, bool,
                    nb::object, bool>(),
           "kind"_a, "object"_a, "count"_a, "typestr"_a = "u1", nb::kw_only(), "offset"_a = 0, "queue"_a = 0,
           "read_only"_a = false, "owner"_a = nb::none(), "ready"_a = false,
           "kind: host, cuda, opencl or auto. object: an address, a CUdeviceptr or a cl_mem. offset: bytes from its start. "
           "queue: CUstream or cl_command_queue with its pending work. owner: kept alive with the buffer. "
           "ready: the promise of isthmus.ready().")
      .def("__repr__", &Buffer::text);
  define(
      module, "ready",
      [](const nb::object& memory) {
        Region region = to_region(memory, Access::read);
        region.place = ist_buffer_ready(region.place);
        return Buffer(std::move(region));
      },
      "memory"_a,
      "The same memory as a Buffer, with the promise that nothing is pending on it: no stream or queue still holds work "
      "that writes it, "
      "nor work that reads it where it is being received into. Its stream is then not asked, which saves up to 1.5 us of "
      "each message. "
      "memory: whatever can be sent; it is kept alive with the buffer.");
  Bound<Memory>(module, "Memory", "Memory of any kind that World.allocate gave; freed when the last reference is dropped.")
      .def_prop_ro("nbytes", &Memory::bytes)
      .def_prop_ro("kind", &Memory::kind)
      .def_prop_ro("address", &Memory::address, "Address, CUdeviceptr or cl_mem.")
      .def_prop_ro("queue", &Memory::queue, "The CUstream or cl_command_queue that the library uses for it.")
      .def("__repr__", &Memory::text);
  Bound<Registration>(module, "Registration",
                      "Host memory that World.register has page-locked; unlocked by release(), at the end of a with block, "
                      "or when the last reference is dropped. Keeps the memory alive; nothing may be in flight on it then.")
      .def("release", &Registration::release)
      .def(
          "__enter__", [](nb::object self) { return self; }, nb::sig("def __enter__(self) -> Registration"))
      .def(
          "__exit__", [](Registration& self, nb::args) { self.release(); },
          nb::sig("def __exit__(self, *args: object) -> None"))
      .def("__repr__", &Registration::text);
}

}  // namespace isthmus_python
