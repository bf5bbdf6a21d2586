// What `isthmus bench` measures between host buffers, by UCX alone, without an MPI above it: tagged messages of two ranks, which this
// program starts itself, by the loops of message_loops.h. Rank 0 prints one JSON object; tools/peers/compare.py reads it.
//
//   cc -O2 ucx_bench.c -o ucx_bench -lucp -lucs && ./ucx_bench [windows]
//
// What UCX is to do is said by its own variables, such as UCX_TLS=posix. PEER_PROCESSORS=A,B binds rank 0 to processor A and rank 1 to B.
#define _GNU_SOURCE
#include "message_loops.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

static ucp_context_h context;
static ucp_worker_h worker;
static ucp_ep_h other;
static int line_to_other;  // carries what is said before there is an endpoint, and the end
static void* requests[2 * WINDOW];
// Host memory, so that UCX need not look.
static const ucp_request_param_t plain = {.op_attr_mask = UCP_OP_ATTR_FIELD_MEMORY_TYPE,
                                          .memory_type = UCS_MEMORY_TYPE_HOST};

static void give_up(const char* why) {
  fprintf(stderr, "ucx_bench: rank %d: %s\n", rank, why);
  exit(2);
}

static void must(ucs_status_t status, const char* what) {
  if (status == UCS_OK) return;
  fprintf(stderr, "ucx_bench: rank %d: %s: %s\n", rank, what, ucs_status_string(status));
  exit(1);
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void finish(void* request) {
  ucs_status_t status;
  if (request == NULL) return;
  if (UCS_PTR_IS_ERR(request)) must(UCS_PTR_STATUS(request), "a message");
  while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS) ucp_worker_progress(worker);
  ucp_request_free(request);
  must(status, "a message");
}

static void send_one(const void* from, int bytes, int tag) {
  finish(ucp_tag_send_nbx(other, from, (size_t)bytes, (ucp_tag_t)tag, &plain));
}

static void receive_one(void* into, int bytes, int tag) {
  finish(ucp_tag_recv_nbx(worker, into, (size_t)bytes, (ucp_tag_t)tag, ~(ucp_tag_t)0, &plain));
}

static void begin_send(const void* from, int bytes, int number) {
  requests[number] = ucp_tag_send_nbx(other, from, (size_t)bytes, MESSAGE_TAG, &plain);
}

static void begin_receive(void* into, int bytes, int number) {
  requests[number] = ucp_tag_recv_nbx(worker, into, (size_t)bytes, MESSAGE_TAG, ~(ucp_tag_t)0, &plain);
}

static void finish_all(int count) {
  for (int n = 0; n < count; ++n) finish(requests[n]);
}

enum { TIMES_TAG = 3, SAYS_TAG = 4 };

static void as_rank_0_says(int* value) {
  if (rank == 0)
    send_one(value, sizeof *value, SAYS_TAG);
  else
    receive_one(value, sizeof *value, SAYS_TAG);
}

static void add_to_rank_0(const double* times, double* sums, int count) {
  if (rank != 0) {
    send_one(times, count * (int)sizeof *times, TIMES_TAG);
    return;
  }
  receive_one(sums, count * (int)sizeof *sums, TIMES_TAG);
  for (int n = 0; n < count; ++n) sums[n] += times[n];
}

static void tell(const void* from, size_t size) {
  if (send(line_to_other, from, size, MSG_NOSIGNAL) != (ssize_t)size) give_up("the other rank has gone");
}

static void hear(void* into, size_t size) {
  if (recv(line_to_other, into, size, MSG_WAITALL) != (ssize_t)size) give_up("the other rank has gone");
}

// Each is told the other's address and connects to it.
static void connect_ranks(void) {
  const ucp_params_t params = {
      .field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS | UCP_PARAM_FIELD_ESTIMATED_NUM_PPN,
      .features = UCP_FEATURE_TAG,
      .estimated_num_eps = 1,
      .estimated_num_ppn = 2};
  const ucp_worker_params_t alone = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                     .thread_mode = UCS_THREAD_MODE_SINGLE};
  ucp_ep_params_t to = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS};
  ucp_address_t *mine, *theirs;
  size_t length, their_length;
  must(ucp_init(&params, NULL, &context), "ucp_init");
  must(ucp_worker_create(context, &alone, &worker), "ucp_worker_create");
  must(ucp_worker_get_address(worker, &mine, &length), "ucp_worker_get_address");
  tell(&length, sizeof length);
  tell(mine, length);
  hear(&their_length, sizeof their_length);
  theirs = malloc(their_length);
  if (!theirs) give_up("there is no memory");
  hear(theirs, their_length);
  to.address = theirs;
  must(ucp_ep_create(worker, &to, &other), "ucp_ep_create");
  free(theirs);
  ucp_worker_release_address(worker, mine);
}

static void disconnect(void) {
  const ucp_request_param_t flush = {0};
  char over = 0;
  finish(ucp_ep_close_nbx(other, &flush));
  tell(&over, 1);
  hear(&over, 1);
  ucp_worker_destroy(worker);
  ucp_cleanup(context);
}

static int run_rank(int windows_only) {
  int processors[2] = {0, 0};
  bind_to(rank);
  connect_ranks();
  processors[rank] = sched_getcpu();
  tell(&processors[rank], sizeof processors[0]);
  hear(&processors[1 - rank], sizeof processors[0]);
  if (rank == 0)
    printf("{\"peer_name\": \"UCX %s\", \"processors\": [%d, %d], \"rows\": [", ucp_get_version_string(), processors[0],
           processors[1]);
  prove_and_take_windows(windows_only);
  if (rank == 0) printf("\n]}\n");
  disconnect();
  return 0;
}

// Two ranks; where one fails the other is ended, which would wait for ever, as are both where this process is.
int main(int argc, char** argv) {
  const int windows_only = argc == 2 && strcmp(argv[1], "windows") == 0;
  const pid_t launcher = getpid();
  pid_t children[2];
  int ends[2], status, failed = 0;
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) give_up("no socket could be made");
  for (ranks = 2, rank = 0; rank < 2; ++rank) {
    children[rank] = fork();
    if (children[rank] < 0) give_up("no process could be made");
    if (children[rank] > 0) continue;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != launcher) return 1;
    line_to_other = ends[rank];
    close(ends[1 - rank]);
    return run_rank(windows_only);
  }
  close(ends[0]);
  close(ends[1]);
  for (int left = 2; left > 0; --left) {
    const pid_t ended = wait(&status);
    for (int n = 0; n < 2; ++n)
      if (children[n] == ended) children[n] = 0;  // from now on that may be anybody's number
    if (status == 0) continue;
    failed = 1;
    for (int n = 0; n < 2; ++n)
      if (children[n] > 0) kill(children[n], SIGKILL);
  }
  return failed;
}
