// A file of a run's figures, in JSON.
//
// Who calls this : jacobi, pixels, particles, lbm and himeno.
// Threads        : one.
// Ownership      : none.
// Errors         : Failure on all ranks alike ahead of the run; std::runtime_error on the rank that writes. Both name the file and why.
#pragma once

#include <isthmus/isthmus.hpp>
#include <string>

namespace example {

// Collective, ahead of the run, so that it does not lose its figures in the end: whether rank 0 can write a file of this name. An empty
// name is none. A file that there is stays as it is, and none is left behind.
void must_be_writable(const isthmus::Comm& comm, const std::string& path);

void write_text(const std::string& path, const std::string& text);

// `Json`: one of nlohmann's, whose header takes long to compile.
template <class Json>
void write_json(const std::string& path, const Json& json) {
  write_text(path, json.dump(2) + '\n');
}

}  // namespace example
