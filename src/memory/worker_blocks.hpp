// What workers of this process take of the devices that they may be on at any moment: of all worlds, for whoever fills a device with blocks.
//
// Who calls this : cuda/, when a worker is ready to be launched, and when it never will be again; face/ asks.
// Threads        : any.
// Ownership      : of the process.
// Errors         : none.
#pragma once

namespace ist {

// Of one block; registers are each thread's.
struct WorkerBlock {
  int threads = 0;
  int registers = 0;
  int shared_bytes = 0;
};
struct WorkerBlocks {
  int blocks = 0;
  WorkerBlock each;  // alike on one device
};

void worker_comes(int device, const WorkerBlock& block);
void worker_goes(int device);
WorkerBlocks workers_on(int device);

}  // namespace ist
