// The ranges that a tool is told of: one for each call, none open afterwards; and nothing where no tool is there. Ranks are forked,
// since a tool is named before the process starts.
#include <dlfcn.h>
#include <isthmus/collective.h>
#include <isthmus/queue.h>
#include <isthmus/stream.h>

#include "../ranks/forked_ranks.hpp"

namespace {

using namespace forked_ranks;

int wrong(bool as_it_should_be, const char* what) {
  if (!as_it_should_be) std::fprintf(stderr, "not so: %s; last error: %s\n", what, ist_error_text());
  return as_it_should_be ? 0 : 1;
}

template <class Function>
Function* tools(const char* name) {
  void* const library = ::dlopen(FAKE_NVTX, RTLD_NOW | RTLD_NOLOAD);
  return library == nullptr ? nullptr : reinterpret_cast<Function*>(::dlsym(library, name));
}

int begun(const char* name) {
  auto* const call = tools<int(const char*)>("fake_nvtx_begun");
  return call == nullptr ? 0 : call(name);
}

// Three messages, a request and two collective calls; and a copy by a device where there is one.
int calls(const Here& here) {
  int found = 0;
  for (int n = 0; n < 3; ++n) {
    int value = here.rank == 0 ? n : -1;
    const int code = here.rank == 0 ? ist_send(ist_host(&value), 1, IST_INT, 1, 5, here.comm)
                                    : ist_recv(ist_host(&value), 1, IST_INT, 0, 5, here.comm, IST_STATUS_IGNORE);
    found += wrong(code == IST_OK && value == n, "a message arrives");
  }
  int value = here.rank == 0 ? 77 : -1;
  ist_request request = IST_REQUEST_NULL;
  int code = here.rank == 0 ? ist_isend(ist_host(&value), 1, IST_INT, 1, 6, here.comm, &request)
                            : ist_irecv(ist_host(&value), 1, IST_INT, 0, 6, here.comm, &request);
  if (code == IST_OK) code = ist_wait(&request, IST_STATUS_IGNORE);
  found += wrong(code == IST_OK && value == 77, "a request completes");
  int one = 1;
  int sum = 0;
  for (int n = 0; n < 2; ++n)
    found += wrong(ist_allreduce(ist_host(&one), ist_host(&sum), 1, IST_INT, IST_SUM, here.comm) == IST_OK && sum == 2,
                   "allreduce");
  found +=
      wrong(ist_recv(ist_host(&value), 1, IST_INT, 99, 6, here.comm, IST_STATUS_IGNORE) == IST_ERR_RANK, "a wrong call");
  int devices = 0;
  found += wrong(ist_kind_devices(here.world, IST_KIND_CUDA, &devices) == IST_OK, "devices");
  ist_buffer buffer{};
  if (devices > 0)
    found += wrong(ist_memory_alloc(here.world, IST_KIND_CUDA, 0, 8, &buffer) == IST_OK &&
                       ist_memory_copy(here.world, buffer, ist_host(&one), 4) == IST_OK &&
                       ist_memory_free(here.world, buffer) == IST_OK,
                   "a copy");
  return found;
}

// What a call puts into a stream or a queue takes a device; a call that is refused is a range all the same.
int refused_calls() {
  const ist_buffer nowhere{};
  ist_request request = IST_REQUEST_NULL;
  ist_comm cart = IST_COMM_NULL;
  const int one = 1;
  const ist_comm none = IST_COMM_NULL;
  int refused = 0;
  const auto refuses = [&refused](int code) { refused += wrong(code != IST_OK, "no communicator was named"); };
  refuses(ist_send_on(nullptr, nowhere, 1, IST_INT, 0, 0, none));
  refuses(ist_recv_on(nullptr, nowhere, 1, IST_INT, 0, 0, none));
  refuses(ist_sendrecv_on(nullptr, nowhere, 1, IST_INT, 0, 0, nowhere, 1, IST_INT, 0, 0, none));
  refuses(ist_prepare_on(nullptr, 0, 0, IST_SENDS, none));
  refuses(ist_prepare_collectives_on(nullptr, none));
  refuses(ist_barrier_on(nullptr, none));
  refuses(ist_bcast_on(nullptr, nowhere, 1, IST_INT, 0, none));
  refuses(ist_reduce_on(nullptr, nowhere, nowhere, 1, IST_INT, IST_SUM, 0, none));
  refuses(ist_allreduce_on(nullptr, nowhere, nowhere, 1, IST_INT, IST_SUM, none));
  refuses(ist_send_on_queue(nullptr, nowhere, 1, IST_INT, 0, 0, none, 0, nullptr, nullptr));
  refuses(ist_recv_on_queue(nullptr, nowhere, 1, IST_INT, 0, 0, none, 0, nullptr, nullptr));
  refuses(ist_sendrecv_on_queue(nullptr, nowhere, 1, IST_INT, 0, 0, nowhere, 1, IST_INT, 0, 0, none, 0, nullptr, nullptr));
  refuses(ist_prepare_on_queue(nullptr, 0, 0, IST_SENDS, none));
  refuses(ist_prepare(nowhere, 1, IST_INT, 0, none));
  refuses(ist_iprepare(nowhere, 1, IST_INT, 0, none, &request));
  refuses(ist_cart_create(none, 1, &one, &one, 0, &cart));
  for (const char* name :
       {"ist_send_on", "ist_recv_on", "ist_sendrecv_on", "ist_prepare_on", "ist_prepare_collectives_on", "ist_barrier_on",
        "ist_bcast_on", "ist_reduce_on", "ist_allreduce_on", "ist_send_on_queue", "ist_recv_on_queue",
        "ist_sendrecv_on_queue", "ist_prepare_on_queue", "ist_prepare", "ist_iprepare", "ist_cart_create"})
    refused += wrong(begun(name) == 1, name);
  return refused;
}

int expect_ranges(const Here& here) {
  int found = calls(here);
  const bool sends = here.rank == 0;
  const auto counted = [&found](const char* name, int times) { found += wrong(begun(name) == times, name); };
  counted("ist_world_create", 1);
  counted("ist_send", sends ? 3 : 0);
  counted("ist_recv", sends ? 1 : 4);
  counted("ist_isend", sends ? 1 : 0);
  counted("ist_irecv", sends ? 0 : 1);
  counted("ist_wait", 1);
  counted("ist_allreduce", 2);
  counted("ist_barrier", 1);  // forked_ranks.hpp
  int devices = 0;
  ist_kind_devices(here.world, IST_KIND_CUDA, &devices);
  counted("ist_memory_copy", devices > 0 ? 1 : 0);
  counted("isthmus: cuda copy", devices > 0 ? 1 : 0);
  found += refused_calls();
  found += wrong(tools<int()>("fake_nvtx_open")() == 0, "every range has ended");
  found += wrong(tools<int()>("fake_nvtx_wrong")() == 0, "the tool understands all of it");
  return found;
}

TEST(Ranges, AreToldToAToolForEveryCallThatMovesBytesOrWaits) {
  ::setenv("NVTX_INJECTION64_PATH", FAKE_NVTX, 1);
  expect_all(run_ranks(2, "host,cuda", expect_ranges));
  ::unsetenv("NVTX_INJECTION64_PATH");
}

TEST(Ranges, AreNoneWhereThereIsNoTool) {
  ::unsetenv("NVTX_INJECTION64_PATH");
  expect_all(run_ranks(2, "host,cuda", [](const Here& here) {
    return calls(here) + wrong(::dlopen(FAKE_NVTX, RTLD_NOW | RTLD_NOLOAD) == nullptr, "no tool was loaded");
  }));
}

TEST(Ranges, OfAToolThatIsNotThereDoNoHarm) {
  ::setenv("NVTX_INJECTION64_PATH", "/nowhere/tool.so", 1);
  expect_all(run_ranks(2, "host,cuda", calls));
  ::unsetenv("NVTX_INJECTION64_PATH");
}

}  // namespace
