// Boot through an exchange that the program gives: a table of functions, for the time of one call.
//
// Who calls this : face/message/api_world_with.cpp.
// Threads        : one.
// Ownership      : the table belongs to the program and is used until close(); a Boot that outlives it fails.
// Errors         : IST_ERR_BOOT with the function's own text. No rank is left waiting: a rank that fails before the others
//                  says so in the next exchange, and all fail.
#pragma once

#include <isthmus/boot.h>

#include <memory>

#include "boot/boot.hpp"

namespace ist {

class GivenExchange {
 public:
  explicit GivenExchange(const ist_boot_functions& functions) : functions_(functions) {}
  int rank() const { return functions_.rank; }
  int size() const { return functions_.ranks; }
  Result<std::vector<std::string>> all_gather(const std::string& mine);
  // The last exchange: did every rank come through, this one included? Each rank calls it once.
  Status agree(const Status& mine);
  void close() { open_ = false; }

 private:
  Status call(const void* mine, void* all, std::size_t bytes);
  ist_boot_functions functions_;
  bool open_ = true;
  Status failed_;  // the exchange itself, or another rank: nobody comes to a further one
};

std::unique_ptr<Boot> make_given_boot(std::shared_ptr<GivenExchange> exchange);

}  // namespace ist
