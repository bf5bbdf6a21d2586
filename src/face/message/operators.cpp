#include "face/message/operators.hpp"

#include "face/message/numbered.hpp"

namespace ist {
namespace {

Numbered<Combiner>& operators() {
  static auto* made = new Numbered<Combiner>;
  return *made;
}

std::uint64_t number_of(ist_op op) { return reinterpret_cast<std::uint64_t>(op); }

Status bad_operator(ist_op op) {
  return {IST_ERR_HANDLE, op == IST_OP_NULL ? "the operation is null"
                                            : number_text(number_of(op)) +
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
  return reinterpret_cast<ist_op>(operators().add(combiner));
}

Status remove_operator(ist_op op) {
  if (number_of(op) > 0 && number_of(op) <= kReductions)
    return {IST_ERR_HANDLE, "the library's own operations cannot be freed"};
  return operators().remove(number_of(op)) ? Status{} : bad_operator(op);
}

Result<Combiner> combiner_of(ist_op op, ist_type type) {
  if (number_of(op) > 0 && number_of(op) <= kReductions) {
    Combiner combiner;
    combiner.reduction = static_cast<Reduction>(number_of(op));
    combiner.type = type;
    IST_TRY(applicable(combiner.reduction, type));
    return combiner;
  }
  auto found = operators().find(number_of(op));
  if (!found) return bad_operator(op);
  found->type = type;
  return *found;
}

}  // namespace ist
