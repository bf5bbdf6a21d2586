// What an engine is made of.
//
// Who calls this : face/, which makes one for each world; request/.
// Threads        : values.
// Ownership      : none; what is named here outlives the engine.
// Errors         : none.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/abort_board.hpp"
#include "base/settings.hpp"
#include "base/trace.hpp"
#include "memory/kinds.hpp"
#include "memory/pinned_pool.hpp"
#include "path/path.hpp"
#include "protocol/choose.hpp"

namespace ist {

struct EngineParts {
  Rank rank;
  const Settings& settings;
  const Kinds& kinds;
  PinnedPool& pool;
  std::vector<std::unique_ptr<Path>>& paths;
  const AbortBoard& board;
  std::vector<std::string> names;  // of the ranks, for error texts: "rank 3 (process 4711 on host n1)"
  MachineProfile machine = {};     // what carriers and the place of arithmetic are chosen by
  Trace* trace = nullptr;          // where there is one, small messages take no short ways (Engine::watched_)
  int processors = 0;              // that this rank has to itself; 0: nobody knows
};

}  // namespace ist
