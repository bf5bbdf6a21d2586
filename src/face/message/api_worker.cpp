// The C call about workers of this process.
#include <isthmus/worker.h>

#include "face/message/errors.hpp"
#include "memory/worker_blocks.hpp"

extern "C" int ist_worker_blocks_on(int device, ist_worker_blocks* found) {
  using namespace ist;
  if (found == nullptr)
    return report(IST_ERR_ARGUMENT, "ist_worker_blocks_on: found is null; pass the address of a variable");
  const WorkerBlocks there = workers_on(device);
  *found = there.blocks == 0
               ? ist_worker_blocks{}
               : ist_worker_blocks{there.blocks, there.each.threads, there.each.registers, there.each.shared_bytes};
  return IST_OK;
}
