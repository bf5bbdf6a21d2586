#include "boot/interrupt.hpp"

#include <isthmus/boot.h>

#include <algorithm>
#include <optional>

namespace ist::interrupt {
namespace {

struct Function {
  int (*asked)(void*) = nullptr;
  void* context = nullptr;
  bool inside = false;
  bool yes = false;
  std::optional<Deadline> next;  // before that it is not asked again: it may have to wait for Python's lock
};
thread_local Function function;

bool is_asked() { return function.inside && function.asked != nullptr; }

}  // namespace

void set(int (*asked)(void*), void* context) {
  function.asked = asked;
  function.context = context;
}

Scope::Scope() {
  function.inside = true;
  function.yes = false;
  function.next = Deadline::after(kMilliseconds / 2000.0);
}
Scope::~Scope() { function.inside = function.yes = false; }
bool Scope::happened() const { return function.yes; }

Unheard::Unheard() : before_(function.inside) { function.inside = false; }
Unheard::~Unheard() { function.inside = before_; }

void ask_not_before(Deadline moment) { function.next = moment; }

bool wanted() {
  if (!is_asked()) return false;
  if (function.yes || !function.next->over()) return function.yes;
  function.yes = function.asked(function.context) != 0;
  function.next = Deadline::after(kMilliseconds / 2000.0);
  return function.yes;
}

bool over(Deadline deadline) { return deadline.over() || wanted(); }

int milliseconds(Deadline deadline) {
  const int left = deadline.milliseconds_left();
  return is_asked() ? std::min(left, kMilliseconds) : left;
}

}  // namespace ist::interrupt
