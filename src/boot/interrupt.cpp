#include "boot/interrupt.hpp"

#include <isthmus/boot.h>

namespace ist::interrupt {
namespace {

struct Function {
  int (*asked)(void*) = nullptr;
  void* context = nullptr;
  bool inside = false;
  bool yes = false;
};
thread_local Function function;

}  // namespace

void set(int (*asked)(void*), void* context) { function = {asked, context, function.inside, false}; }

Scope::Scope() { function.inside = true; }
Scope::~Scope() { function.inside = function.yes = false; }
bool Scope::happened() const { return function.yes; }

bool is_asked() { return function.inside && function.asked != nullptr; }

bool wanted() {
  if (is_asked() && !function.yes) function.yes = function.asked(function.context) != 0;
  return function.inside && function.yes;
}

}  // namespace ist::interrupt
