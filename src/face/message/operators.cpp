#include "face/message/operators.hpp"

#include <array>
#include <cstdio>
#include <map>
#include <mutex>

namespace ist {
namespace {

// Handles beyond those of the library, never used twice.
constexpr std::uint64_t kFirstOfUsers = 0x1000;

struct Table {
  std::mutex mutex;
  std::uint64_t next = kFirstOfUsers;
  std::map<std::uint64_t, Combiner> operators;
};

// Never destroyed: reductions may run in threads that end after static objects.
Table& table() {
  static auto* made = new Table;
  return *made;
}

std::uint64_t number_of(ist_op op) { return reinterpret_cast<std::uint64_t>(op); }

Status bad_operator(ist_op op) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "0x%llx", static_cast<unsigned long long>(number_of(op)));
  return {IST_ERR_HANDLE, op == IST_OP_NULL ? "the operation is null"
                                            : std::string{text.data()} +
                                                  " is no operation: it is neither one of the "
                                                  "library's nor one that ist_op_create() made and "
                                                  "ist_op_free() has not released"};
}

}  // namespace

Result<ist_op> add_operator(ist_op_function function, void* user, bool commutative) {
  Combiner combiner;
  combiner.function = function;
  combiner.user = user;
  combiner.commutative = commutative;
  const std::lock_guard lock(table().mutex);
  table().operators[table().next] = combiner;
  return reinterpret_cast<ist_op>(table().next++);
}

Status remove_operator(ist_op op) {
  if (number_of(op) > 0 && number_of(op) <= kReductions)
    return {IST_ERR_HANDLE, "the library's own operations cannot be freed"};
  const std::lock_guard lock(table().mutex);
  return table().operators.erase(number_of(op)) == 1 ? Status{} : bad_operator(op);
}

Result<Combiner> combiner_of(ist_op op, ist_type type) {
  if (number_of(op) > 0 && number_of(op) <= kReductions) {
    Combiner combiner;
    combiner.reduction = static_cast<Reduction>(number_of(op));
    combiner.type = type;
    IST_TRY(applicable(combiner.reduction, type));
    return combiner;
  }
  const std::lock_guard lock(table().mutex);
  const auto found = table().operators.find(number_of(op));
  if (found == table().operators.end()) return bad_operator(op);
  Combiner combiner = found->second;
  combiner.type = type;
  return combiner;
}

}  // namespace ist
