#include "reducer.hpp"

#include <algorithm>
#include <cstring>

#include "barrier.hpp"
#include "errors.hpp"
#include "gil.hpp"

namespace isthmus_python {
namespace {

using namespace nb::literals;

// A function as the library calls it, for one reduction.
class Calls {
 public:
  Calls(const Reducer& op, const Region& like) {
    const char* typestr = typestr_of(like);
    if (typestr == nullptr)
      throw nb::type_error(("the buffers have elements of " + std::to_string(like.item_size) +
                            " bytes of a type that the library does not know and a reduction could part; "
                            "convert them to numbers")
                               .c_str());
    combine_ = nb::module_::import_("isthmus._reduction").attr("prepare")(op.function, typestr);
  }
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  const nb::object& exception() const { return exception_; }
  const std::string& text() const { return text_; }

  // An ist_op_function. The arrays that Python gets are copies: it may keep them, and a traceback does.
  static void run(const void* in, void* inout, std::int64_t count, ist_type type, void* user) {
    auto& self = *static_cast<Calls*>(user);
    if (self.failed()) return;
    const std::size_t bytes = static_cast<std::size_t>(count) * ist_type_size(type);
    const nb::gil_scoped_acquire acquire;
    const Inside inside;
    try {
      const nb::bytes lower(in, bytes);
      nb::bytearray higher(inout, bytes);
      self.combine_(lower, higher);
      if (higher.size() == bytes) std::memcpy(inout, higher.data(), bytes);
    } catch (nb::python_error& error) {
      self.keep(nb::borrow(error.value()));
    } catch (const std::exception& error) {
      self.keep(nb::borrow(PyExc_MemoryError)(error.what()));
    }
  }

 private:
  struct Inside {
    Inside() { ++inside_function; }
    ~Inside() { --inside_function; }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;
  };

  // Nothing is thrown on into the library. Texts may be no UTF-8, such as names of files.
  void keep(nb::object exception) noexcept {
    exception_ = std::move(exception);
    try {
      text_ = nb::cast<std::string>(exception_.type().attr("__name__"));
      const nb::object encoded = nb::str(exception_).attr("encode")("utf-8", "backslashreplace");
      text_ += ": " + nb::cast<std::string>(encoded.attr("decode")("utf-8"));
    } catch (const std::exception&) {
      text_ += text_.empty() ? "an exception without a name" : "";
    }
    failed_.store(true, std::memory_order_release);
  }

  nb::object combine_;
  nb::object exception_;
  std::string text_;
  std::atomic<bool> failed_{false};
};

// The library's reduction, and then rounds in which all ranks learn whether a function failed anywhere.
class Folded final : public Operation {
 public:
  Folded(std::shared_ptr<Channels> channels, std::array<Region, 2> regions, const Reducer& op, const Region& like)
      : regions_(std::move(regions)), calls_(op, like), rank_(channels->rank), rounds_(std::move(channels), true) {}
  bool staged() const override { return true; }
  nb::object exception() const override { return calls_.exception(); }
  Calls* calls() { return &calls_; }
  ist_request* out() { return flight_.out(); }
  // The library refused the call: the others are told all the same.
  void refuse(const std::string& why) {
    reduced_ = true;
    say(why);
  }

 protected:
  bool step(Outcome& outcome) override {
    if (!reduced_) {
      if (!flight_.look(reduction_)) return false;
      reduced_ = true;
      if (calls_.failed()) say("the reduction's function raised " + calls_.text());
    }
    if (!rounds_.step(outcome)) return false;
    const Word& agreed = rounds_.word();
    if (reduction_.code != IST_OK) {
      outcome = reduction_;
    } else if (outcome.code == IST_OK && agreed.from >= 0) {
      outcome.code = IST_ERR_ARGUMENT;
      outcome.text = "rank " + std::to_string(agreed.from) + ": " + agreed.text.data() + "; no rank has a result";
    }
    outcome.item_size = regions_[1].item_size;
    return true;
  }

 private:
  void say(const std::string& what) {
    Word& word = rounds_.word();
    word.from = rank_;
    std::size_t length = std::min(what.size(), word.text.size() - 1);
    // Not in the middle of a letter of UTF-8.
    while (length < what.size() && (static_cast<unsigned char>(what[length]) & 0xc0U) == 0x80U) --length;
    what.copy(word.text.data(), length);
  }

  std::array<Region, 2> regions_;
  Calls calls_;
  int rank_;
  Rounds rounds_;
  Flight flight_;
  Outcome reduction_;
  bool reduced_ = false;
};

void make_operation(Reducer* made, nb::handle function, bool commutative) {
  if (PyCallable_Check(function.ptr()) == 0)
    throw nb::type_error(
        ("Operation: a " + class_name(function) + " cannot be called; give a function of two arrays, such as numpy.hypot")
            .c_str());
  new (made) Reducer{IST_OP_NULL, "", nb::borrow(function), commutative};
}

std::string text_of(const Reducer& self) {
  if (!self.function.is_valid()) return "isthmus." + self.name;
  return "isthmus.Operation(" + nb::cast<std::string>(nb::repr(self.function)) +
         (self.commutative ? ")" : ", commutative=False)");
}

}  // namespace

void require_reducible(const Region& like, const Reducer& op) {
  if (op.function.is_valid()) return;
  if (like.truth) {
    for (const ist_op fits : {IST_LAND, IST_LOR, IST_LXOR, IST_BAND, IST_BOR, IST_BXOR, IST_MAX, IST_MIN})
      if (op.op == fits) return;
    throw nb::type_error((op.name +
                          " of truth values gives none; take LAND, LOR, LXOR, MIN or MAX, or convert them to numbers, as "
                          "by array.astype('i4')")
                             .c_str());
  }
  if (like.type == IST_BYTE && !like.element.empty())
    throw nb::type_error(
        (op.name + " does not apply to elements of type '" + like.element +
         "', which the library knows as bytes alone; convert them to numbers in the order of this machine, as by "
         "array.astype('<f8'), align records of a value and a place (align=True), or give a function")
            .c_str());
}

std::shared_ptr<Operation> start_with_function(const std::shared_ptr<Channels>& on, std::array<Region, 2> regions,
                                               const Region& like, const Reducer& op, const Reduction& call) {
  on->session->sweep();
  const auto made = std::make_shared<Folded>(on, std::move(regions), op, like);
  int code = IST_OK;
  std::string text;
  {
    const LetGo without_gil{on->session->inside()};
    ist_op combined = IST_OP_NULL;  // of this call alone: it knows where what the function raises is kept
    code = ist_op_create(&Calls::run, made->calls(), op.commutative ? 1 : 0, &combined);
    if (code == IST_OK) code = call(combined, on->user, made->out());
    if (code != IST_OK) text = ist_error_text();
    if (combined != IST_OP_NULL) ist_op_free(&combined);
  }
  if (code == IST_OK) return made;
  made->refuse(text);
  on->session->keep(made);
  raise(code, text);
}

void bind_reducers(nb::module_& module) {
  Bound<Reducer>(module, "Operation", "What a reduction combines with: SUM, MIN and so on, or a function.")
      .def(
          "__init__", &make_operation, "function"_a, "commutative"_a = true,
          nb::sig("def __init__(self, function: collections.abc.Callable[[typing.Any, typing.Any], typing.Any], "
                  "commutative: bool = True) -> None"),
          "function(lower, higher): two arrays of the buffers' type, those of lower ranks first; gives their combination, "
          "or "
          "writes it into the second and gives None. Must be associative, and must not call the library. commutative=False: "
          "combined in the order of the ranks.")
      .def("__repr__", &text_of);
  const std::pair<ist_op, const char*> all[] = {{IST_SUM, "SUM"},   {IST_PROD, "PROD"},     {IST_MIN, "MIN"},
                                                {IST_MAX, "MAX"},   {IST_MINLOC, "MINLOC"}, {IST_MAXLOC, "MAXLOC"},
                                                {IST_LAND, "LAND"}, {IST_LOR, "LOR"},       {IST_LXOR, "LXOR"},
                                                {IST_BAND, "BAND"}, {IST_BOR, "BOR"},       {IST_BXOR, "BXOR"}};
  for (const auto& [op, name] : all) module.attr(name) = nb::cast(Reducer{op, name});
}

}  // namespace isthmus_python
