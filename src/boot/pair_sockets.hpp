// One connected Unix socket between each two ranks of a host.
//
// Who calls this : peers, once per world.
// Threads        : one at a time.
// Ownership      : the listener owns its socket; connected sockets belong to the caller.
// Errors         : IST_ERR_BOOT. Whoever does not know the token is turned away without an error; a rank of another user
//                  is an error that names both.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/file_descriptor.hpp"
#include "base/status.hpp"
#include "base/units.hpp"
#include "boot/deadline.hpp"

namespace ist {

// Where a rank can be reached by the others of its host. The address is abstract: it lives as long as the listener and has
// no file. Any local user can connect to it, so the token, which only the ranks of the job learn, is asked for.
struct PairAddress {
  std::string name;
  std::uint64_t token = 0;
};

class PairListener {
 public:
  static Result<PairListener> open();
  const PairAddress& address() const { return address_; }
  // Waits until all of `ranks` have connected; sockets in their order.
  Result<std::vector<FileDescriptor>> accept(const std::vector<Rank>& ranks, Deadline deadline);

 private:
  PairListener(FileDescriptor socket, PairAddress address) : socket_(std::move(socket)), address_(std::move(address)) {}
  FileDescriptor socket_;
  PairAddress address_;
};

// `mine` connects to `peer`, which listens at `address`.
Result<FileDescriptor> connect_pair(Rank mine, Rank peer, const PairAddress& address, Deadline deadline);

}  // namespace ist
