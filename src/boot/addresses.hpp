// Names and ports made into sockets.
//
// Who calls this : rendezvous.
// Threads        : any.
// Ownership      : sockets belong to the caller.
// Errors         : returned, naming the address.
#pragma once

#include <string>
#include <vector>

#include "base/file_descriptor.hpp"
#include "base/status.hpp"
#include "boot/deadline.hpp"

namespace ist {

// Listens where ranks that look up `address` will come. A loopback address is bound alone; any other name is bound on all
// interfaces, because it may mean another interface (or, by /etc/hosts, the loopback) on the host that carries it.
Result<std::vector<FileDescriptor>> listen_at(const std::string& address, int port);

// One attempt on each address that the name stands for.
Result<FileDescriptor> connect_to(const std::string& address, int port, Deadline deadline);

// "127.0.0.1:40312": the other end.
std::string other_end(int socket);

}  // namespace ist
