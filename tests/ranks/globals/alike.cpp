// A program of which the ranks of a test start copies that differ: is what it says of its variables what the test expects?
#include <isthmus/isthmus.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "face/shmem/globals.hpp"

namespace {

#ifndef ALIKE_ROOM
#define ALIKE_ROOM 64
#endif
unsigned char room[ALIKE_ROOM];
#ifdef ALIKE_CODE
// Code alone differs.
[[gnu::used]] int more_code(int value) { return value * 3 + 1; }
#endif

int fail(const std::string& text) {
  std::fprintf(stderr, "wrong: %s\n", text.c_str());
  return 1;
}

// `expected`: part of why variables are not symmetric; "alike": they are.
int check(ist_comm comm, const std::string& expected) {
  auto made = ist::SymmetricGlobals::create(comm);
  if (!made.ok()) return fail(made.status().text());
  ist::SymmetricGlobals& globals = **made;
  const bool alike = expected == "alike";
  if (globals.symmetric() != alike) return fail(alike ? globals.why() : "they are symmetric");
  if ((globals.in_heap(room) != nullptr) != alike) return fail("a variable's address");
  if (!alike && globals.why().find(expected) == std::string::npos) return fail(globals.why());
  room[ALIKE_ROOM - 1] = 1;
  const ist::Status ended = globals.end();
  return ended.ok() ? 0 : fail(ended.text());
}

}  // namespace

int main(int, char** arguments) {
  ist_world world = IST_WORLD_NULL;
  ist_comm comm = IST_COMM_NULL;
  if (ist_world_create(&world) != IST_OK || ist_world_comm(world, &comm) != IST_OK) return fail(ist_error_text());
  const int wrong = check(comm, arguments[1]);
  return ist_world_destroy(&world) == IST_OK ? wrong : fail(ist_error_text());
}
