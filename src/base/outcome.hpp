// What a piece of work comes to where nobody is there to catch what it throws: in threads of the library's own, and in calls of another matter.
//
// Who calls this : started_copies, part_service, queue_channels.
// Threads        : any.
// Ownership      : none.
// Errors         : exceptions become IST_ERR_MEMORY, or IST_ERR_INTERNAL with their text.
#pragma once

#include <exception>
#include <new>

#include "base/status.hpp"

namespace ist {

// `work` returns a Status.
template <class Work>
Status outcome_of(const Work& work) try {
  return work();
} catch (const std::bad_alloc&) {
  return {IST_ERR_MEMORY, "no host memory is left; free some"};
} catch (const std::exception& exception) {
  return {IST_ERR_INTERNAL, exception.what()};
}

}  // namespace ist
