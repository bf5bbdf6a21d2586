/* Isthmus, C interface: messages between ranks whose buffers live in host, CUDA or OpenCL memory.
 *
 * Who calls this : applications, from C or C++; every other face is built on it.
 * Threads        : every call may be made from any thread at any time, but for ISTHMUS_THREADS=single.
 *                  A request is waited for by one thread at a time.
 * Ownership      : handles are tokens, never dereferenced by the caller; a released or foreign handle is an error, not a crash.
 *                  A buffer belongs to the library from the call that names it until that operation completes.
 * Streams        : work pending in the stream or queue that a buffer names is waited for by the library, on the device
 *                  where it can be. When a receive has completed, its bytes are visible to later work of any stream.
 *                  While that stream is being captured into a graph, calls are IST_ERR_NOT_CAPTURABLE; stream.h has some for graphs.
 * Errors         : every call returns an ist_code; ist_error_text() tells the rest. The library never ends the process.
 */
#ifndef ISTHMUS_ISTHMUS_H
#define ISTHMUS_ISTHMUS_H

#include <stddef.h>
#include <stdint.h>
#if defined(_WIN32)
#error "Isthmus runs on Linux"
#endif
#define IST_API __attribute__((visibility("default")))

#ifdef __cplusplus
#define IST_AS_INT : int /* so that a number that is none of the names is an error, too, and not undefined */
extern "C" {
#else
#define IST_AS_INT
#endif

#define IST_VERSION_MAJOR 0
#define IST_VERSION_MINOR 1
#define IST_VERSION_PATCH 0

/* Result of every call. The values never change; new ones are added at the end. */
typedef enum ist_code IST_AS_INT {
  IST_OK = 0,
  IST_ERR_ARGUMENT = 1,        /* a value that no call could accept: null with count > 0, negative count, bad tag */
  IST_ERR_RANK = 2,            /* rank outside the communicator */
  IST_ERR_HANDLE = 3,          /* released, never created, or of another type */
  IST_ERR_TRUNCATE = 4,        /* the message is longer than the receive; the first bytes were delivered */
  IST_ERR_OVERFLOW = 5,        /* count times size of the type does not fit */
  IST_ERR_KIND = 6,            /* the memory kind is unknown or not available on this machine */
  IST_ERR_MEMORY = 7,          /* no memory of the wanted kind */
  IST_ERR_DEVICE = 8,          /* a driver or runtime refused an operation */
  IST_ERR_PEER_DEAD = 9,       /* a rank of this world died; the text names it */
  IST_ERR_PEER_LEFT = 10,      /* the rank destroyed its world before this operation could complete */
  IST_ERR_UNREACHABLE = 11,    /* no path connects the two ranks */
  IST_ERR_BOOT = 12,           /* the ranks could not find each other */
  IST_ERR_SETTING = 13,        /* an ISTHMUS_ variable holds a value that cannot be read */
  IST_ERR_SYSTEM = 14,         /* a system call failed */
  IST_ERR_PENDING = 15,        /* the operation has not completed */
  IST_ERR_IN_STATUS = 16,      /* ist_waitall: at least one status holds an error */
  IST_ERR_INTERNAL = 17,       /* a defect of the library: please report */
  IST_CANCELLED = 18,          /* in a status: it was cancelled before it matched, no error; or ist_interrupt_with */
  IST_ERR_NOT_CAPTURABLE = 19, /* the stream is being captured into a graph, and this cannot be part of one */
  IST_ERR_UNSUPPORTED = 20     /* not possible with this kind of memory; the text says what is */
} ist_code;

/* Kinds of memory a buffer can live in. */
typedef enum ist_kind IST_AS_INT {
  IST_KIND_AUTO = 0, /* ask the drivers once per allocation */
  IST_KIND_HOST = 1,
  IST_KIND_CUDA = 2,
  IST_KIND_OPENCL = 3,
  IST_KIND_GL = 4 /* reserved */
} ist_kind;

typedef enum ist_type IST_AS_INT {
  IST_BYTE = 0,
  IST_CHAR = 1,
  IST_INT8 = 2,
  IST_UINT8 = 3,
  IST_INT16 = 4,
  IST_UINT16 = 5,
  IST_INT32 = 6,
  IST_UINT32 = 7,
  IST_INT64 = 8,
  IST_UINT64 = 9,
  IST_FLOAT = 10,
  IST_DOUBLE = 11,
  IST_INT = 12,
  IST_LONG = 13,
  IST_SHORT = 14,
  IST_UNSIGNED = 15,
  IST_UNSIGNED_LONG = 16,
  IST_LONG_LONG = 17,
  IST_UNSIGNED_SHORT = 18,
  IST_UNSIGNED_LONG_LONG = 19,
  IST_HALF = 20,     /* IEEE binary16 */
  IST_BFLOAT16 = 21, /* the upper half of a float */
  IST_COMPLEX_FLOAT = 22,
  IST_COMPLEX_DOUBLE = 23,
  /* A value and where it is: struct {float value; int index;} and so on, for reductions that find a place. */
  IST_FLOAT_INT = 24,
  IST_DOUBLE_INT = 25,
  IST_LONG_INT = 26,
  IST_INT_INT = 27,
  IST_SHORT_INT = 28,
  IST_INT64_INT64 = 29
} ist_type;

#define IST_ANY_SOURCE (-1)
#define IST_ANY_TAG (-1)
#define IST_PROC_NULL (-2) /* a send to or receive from it completes at once and moves nothing */
#define IST_UNDEFINED (-3) /* no index, no whole number of elements, a rank in no communicator of a split */
#define IST_TAG_MAX 2147483647

/* A place in some memory, passed by value. Frozen at 64 bytes. */
typedef struct ist_buffer {
  uint32_t kind;   /* ist_kind */
  int32_t device;  /* device ordinal of the kind; -1: the one the object belongs to */
  uint64_t object; /* host address, CUdeviceptr, or cl_mem */
  uint64_t offset; /* bytes from the start of the object */
  uint64_t queue;  /* CUstream (0 is the legacy default stream) or cl_command_queue; unused for host */
  uint32_t flags;  /* 0, or IST_BUFFER_READY */
  int32_t level;   /* reserved for textures: mip level */
  int32_t rect[4]; /* reserved for textures: x, y, width, height */
  uint32_t format; /* reserved for textures: external format */
  uint32_t reserved;
} ist_buffer;

/* In ist_buffer.flags, a promise: nothing that the program has put into any stream or queue still writes this memory, nor reads it where
 * it is being received into. Messages, collective calls and copies then do not ask the buffer's queue, which takes up to 1.5 us of
 * each, and do not wait for it. Where the promise is not kept, they carry whatever lies there. Without effect on host memory, and
 * on what is put into a stream or queue, which is in its order anyway. */
#define IST_BUFFER_READY 1u

/* What a completed operation has to say. */
typedef struct ist_status {
  int32_t source; /* rank of the sender in the communicator */
  int32_t tag;
  int32_t code;    /* ist_code of this operation */
  int32_t carrier; /* ist_carrier: how the bytes travelled */
  int64_t bytes;   /* bytes delivered */
} ist_status;
#define IST_STATUS_IGNORE ((ist_status*)0)
#define IST_STATUSES_IGNORE ((ist_status*)0)

typedef enum ist_carrier IST_AS_INT {
  IST_CARRIER_NONE = 0,
  IST_CARRIER_SLOT = 1,    /* inside the envelope's slot of the pair */
  IST_CARRIER_CELL = 2,    /* one page-locked cell of the shared queue */
  IST_CARRIER_RING = 3,    /* the pair's pipelined ring of page-locked slots */
  IST_CARRIER_DIRECT = 4,  /* one copy, source to destination */
  IST_CARRIER_NCCL = 5,    /* a collective call: by NCCL, between GPUs */
  IST_CARRIER_DEVICE = 6,  /* one copy from device to device, into the receiver's memory */
  IST_CARRIER_MAILBOX = 7, /* from device to device by the resident workers of both (ISTHMUS_WORKER) */
  /* Told apart by ist_world_traffic alone; a status says direct and device. */
  IST_CARRIER_SINGLE_COPY = 16, /* one copy out of the host memory of another process */
  IST_CARRIER_BLOCK = 17        /* from device to device in two copies, through a block of the receiver's */
} ist_carrier;

typedef struct ist_world_handle* ist_world;
typedef struct ist_comm_handle* ist_comm;
typedef struct ist_request_handle* ist_request;
typedef struct ist_message_handle* ist_message;
#define IST_WORLD_NULL ((ist_world)0)
#define IST_COMM_NULL ((ist_comm)0)
#define IST_REQUEST_NULL ((ist_request)0)
#define IST_MESSAGE_NULL ((ist_message)0)

/* ---- errors ---- */
/* Text of the last error of the calling thread: what was asked, what was found, what to do. Valid until the thread's next
 * failing call. Never null. */
IST_API const char* ist_error_text(void);
/* "IST_ERR_TRUNCATE" and so on; "unknown code" for anything else. */
IST_API const char* ist_code_name(int code);
/* "slot", "cell", "ring", "direct", "nccl", "device", "mailbox", "single copy", "block" or "none". */
IST_API const char* ist_carrier_name(int carrier);
/* "0.1.0" */
IST_API const char* ist_version(void);

/* ---- world ---- */
/* Joins the other processes of the job and returns the world of all of them. Collective. Where the program was started by
 * `isthmus run`, through PMIx or PMI (mpirun, srun), or with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT set, the job is
 * theirs; otherwise a world of one. isthmus/mpi.h makes the world of an MPI communicator. Worlds are independent: several
 * may exist at once, and one may be created after another was destroyed; all processes create them in the same order. */
IST_API int ist_world_create(ist_world* world);
/* The same with settings of this world's own, above the environment's: null, or "name=value" words such as "worker=1
 * eager_limit=32KiB", without spaces in a value; `isthmus info --settings` lists the names. "log" is the whole process's until
 * the next world. IST_ERR_SETTING, also where one rank alone gave it: the others wait for that rank as for one that is missing. */
IST_API int ist_world_create_configured(const char* settings, ist_world* world);
/* Leaves the world and releases it, its communicators and its requests, while no other thread is inside a call on it; sets
 * *world to IST_WORLD_NULL. Not collective. Eager sends that were started (ist_send's, and those of at most
 * ISTHMUS_EAGER_LIMIT bytes, of host memory eight times as many) are handed over first; a longer one needs both sides and
 * must be waited for before. Peers that still wait for something of this rank get IST_ERR_PEER_LEFT. */
IST_API int ist_world_destroy(ist_world* world);
/* The communicator of all ranks; owned by the world. */
IST_API int ist_world_comm(ist_world world, ist_comm* comm);
IST_API int ist_comm_rank(ist_comm comm, int* rank);
IST_API int ist_comm_size(ist_comm comm, int* size);
/* Rank among, and number of, the ranks of this communicator on this host: what one needs to choose a device. */
IST_API int ist_comm_local_rank(ist_comm comm, int* rank);
IST_API int ist_comm_local_size(ist_comm comm, int* size);

/* ---- communicators: ranks in an order of their own; messages never cross from one to another ---- */
/* Those that create are collective over the communicator they start from, one at a time on it. What one rank has wrong, but for that
 * communicator, its members all hear of; IST_ERR_UNREACHABLE where ranks of the new one, or those that decide on it, are on several hosts.
 * A communicator is released by ist_comm_free, or with its world; operations started on it go on. */

/* This rank alone; owned by the world. */
IST_API int ist_world_comm_self(ist_world world, ist_comm* comm);
IST_API int ist_comm_dup(ist_comm comm, ist_comm* created);
/* One communicator per colour (0 or more), ranks in the order of key, then of their rank in `comm`. IST_COMM_NULL to ranks
 * whose colour is IST_UNDEFINED. */
IST_API int ist_comm_split(ist_comm comm, int color, int key, ist_comm* created);
/* One communicator per host, whose ranks alone meet for it; order as above. */
IST_API int ist_comm_split_local(ist_comm comm, int key, ist_comm* created);
/* Collective over the listed ranks of `comm` alone, which all pass the same list, this rank in it, in the order of the new ranks. `tag`, 0
 * to 2^30 - 1, keeps calls of overlapping lists apart that are under way at once. Of what is wrong only its first rank tells its list's others. */
IST_API int ist_comm_create_group(ist_comm comm, int count, const int* ranks, int tag, ist_comm* created);
/* Local. The world's own two cannot be freed. */
IST_API int ist_comm_free(ist_comm* comm);
/* The rank in the world's communicator of a rank of this one. */
IST_API int ist_comm_world_rank(ist_comm comm, int rank, int* world_rank);
/* What errors call it, cut to `size` bytes with the final zero: "world", "colour 2 of world". */
IST_API int ist_comm_name(ist_comm comm, char* name, size_t size);

/* Balanced extents of a grid of `ranks`; entries of `dims` that are not 0 are kept. */
IST_API int ist_dims_create(int ranks, int ndims, int* dims);
/* A grid over the first dims[0] * ... ranks of `comm`, the last dimension running fastest; IST_COMM_NULL to the rest.
 * `reorder` permits other ranks than in `comm`; this version never uses it. Collective. */
IST_API int ist_cart_create(ist_comm comm, int ndims, const int* dims, const int* periods, int reorder, ist_comm* cart);
IST_API int ist_cart_ndims(ist_comm cart, int* ndims);
IST_API int ist_cart_get(ist_comm cart, int ndims, int* dims, int* periods, int* coords);
IST_API int ist_cart_coords(ist_comm cart, int rank, int ndims, int* coords);
/* Coordinates of periodic dimensions are taken modulo their extent; others must be inside. */
IST_API int ist_cart_rank(ist_comm cart, const int* coords, int* rank);
/* For a shift by `displacement` along a dimension: whom this rank receives from and sends to; IST_PROC_NULL past an edge. */
IST_API int ist_cart_shift(ist_comm cart, int dimension, int displacement, int* source, int* dest);

/* ---- messages: MPI's words, order and meaning ---- */
IST_API int ist_send(ist_buffer buffer, int64_t count, ist_type type, int dest, int tag, ist_comm comm);
IST_API int ist_recv(ist_buffer buffer, int64_t count, ist_type type, int source, int tag, ist_comm comm,
                     ist_status* status);
IST_API int ist_sendrecv(ist_buffer send_buffer, int64_t send_count, ist_type send_type, int dest, int send_tag,
                         ist_buffer recv_buffer, int64_t recv_count, ist_type recv_type, int source, int recv_tag,
                         ist_comm comm, ist_status* status);
IST_API int ist_isend(ist_buffer buffer, int64_t count, ist_type type, int dest, int tag, ist_comm comm,
                      ist_request* request);
IST_API int ist_irecv(ist_buffer buffer, int64_t count, ist_type type, int source, int tag, ist_comm comm,
                      ist_request* request);
/* On completion the request is released and *request becomes IST_REQUEST_NULL. The null request is complete. */
IST_API int ist_test(ist_request* request, int* completed, ist_status* status);
IST_API int ist_wait(ist_request* request, ist_status* status);
/* Waits for all, also when some fail; then returns IST_ERR_IN_STATUS and each status has its code. */
IST_API int ist_waitall(int count, ist_request* requests, ist_status* statuses);
IST_API int ist_barrier(ist_comm comm);

/* Synchronous: complete only when the matching receive has begun, whatever the size. */
IST_API int ist_ssend(ist_buffer buffer, int64_t count, ist_type type, int dest, int tag, ist_comm comm);
IST_API int ist_issend(ist_buffer buffer, int64_t count, ist_type type, int dest, int tag, ist_comm comm,
                       ist_request* request);
/* Sends the buffer's contents and receives as many elements into their place. */
IST_API int ist_sendrecv_replace(ist_buffer buffer, int64_t count, ist_type type, int dest, int send_tag, int source,
                                 int recv_tag, ist_comm comm, ist_status* status);

/* Of several requests; null and inactive ones count as not there. *index is IST_UNDEFINED if none is there, and the status then
 * empty. The any calls return the code of the request they complete; the some calls, as ist_waitall, IST_ERR_IN_STATUS. */
IST_API int ist_waitany(int count, ist_request* requests, int* index, ist_status* status);
IST_API int ist_testany(int count, ist_request* requests, int* index, int* completed, ist_status* status);
/* indices and statuses: room for `count`; *completed: how many are filled in, IST_UNDEFINED if no request is there. */
IST_API int ist_waitsome(int count, ist_request* requests, int* completed, int* indices, ist_status* statuses);
IST_API int ist_testsome(int count, ist_request* requests, int* completed, int* indices, ist_status* statuses);
/* *completed: 1 if all are complete, which are then released; otherwise nothing changes. */
IST_API int ist_testall(int count, ist_request* requests, int* completed, ist_status* statuses);

/* Opens device memory ahead, which takes milliseconds and else goes on beside the first messages: those then travel through host
 * memory. Collective over this rank and `peer`: both call it, in the same order where they do so several times, with the buffers that
 * they will send from and receive into, of whatever count and type. Complete when each has opened what the other lends, from the
 * device of its own buffer, so that the first message between the two takes the way of all later ones. Nothing of the buffers is read
 * or written. Memory that cannot be opened by others is no error, nor is a buffer of the host: with a device buffer on the other side
 * that does for page-locked memory, and for any other nothing is opened. With IST_PROC_NULL or this rank itself it does nothing.
 * What is open stays so while ISTHMUS_MAPPED_LIMIT allows, until the memory is freed.
 * IST_ERR_RANK, IST_ERR_ARGUMENT as of a message; IST_ERR_PEER_DEAD, IST_ERR_PEER_LEFT: the other rank will not come to the call. */
IST_API int ist_prepare(ist_buffer buffer, int64_t count, ist_type type, int peer, ist_comm comm);
/* The same as a request: for ranks that prepare with several others, in any order. The buffers stay valid until it is complete. */
IST_API int ist_iprepare(ist_buffer buffer, int64_t count, ist_type type, int peer, ist_comm comm, ist_request* request);

/* Gives up a receive that no message has matched, a send that no receive has, or this rank's part in a collective call (collective.h): it still
 * has to be waited for, which takes only who is at work on its buffers, and its status says IST_CANCELLED. A receive that met the send before has it all, or IST_ERR_DEVICE. */
IST_API int ist_cancel(ist_request request);
/* The operation goes on; its buffer stays the library's until it completes, which nobody will be told. Of the null request, as of a send that was complete at once, this and ist_cancel do nothing. */
IST_API int ist_request_free(ist_request* request);

/* Persistent requests: made once, started as often as wanted, one start at a time. Waiting and testing leave the handle valid
 * and the request inactive. The buffer is checked once, when the request is made. */
IST_API int ist_send_init(ist_buffer buffer, int64_t count, ist_type type, int dest, int tag, ist_comm comm,
                          ist_request* request);
IST_API int ist_ssend_init(ist_buffer buffer, int64_t count, ist_type type, int dest, int tag, ist_comm comm,
                           ist_request* request);
IST_API int ist_recv_init(ist_buffer buffer, int64_t count, ist_type type, int source, int tag, ist_comm comm,
                          ist_request* request);
IST_API int ist_start(ist_request* request);
IST_API int ist_startall(int count, ist_request* requests);

/* Source, tag and bytes of the first message that a receive would take now, which stays. */
IST_API int ist_probe(int source, int tag, ist_comm comm, ist_status* status);
IST_API int ist_iprobe(int source, int tag, ist_comm comm, int* found, ist_status* status);
/* The same, and the message is set aside: only ist_mrecv with this handle receives it. */
IST_API int ist_mprobe(int source, int tag, ist_comm comm, ist_message* message, ist_status* status);
IST_API int ist_improbe(int source, int tag, ist_comm comm, int* found, ist_message* message, ist_status* status);
IST_API int ist_mrecv(ist_buffer buffer, int64_t count, ist_type type, ist_message* message, ist_status* status);
IST_API int ist_imrecv(ist_buffer buffer, int64_t count, ist_type type, ist_message* message, ist_request* request);

/* Whole elements received; IST_UNDEFINED if the bytes are no whole number of them. */
IST_API int ist_get_count(const ist_status* status, ist_type type, int64_t* count);

/* Bytes of one element; 0 for an unknown type. */
IST_API size_t ist_type_size(ist_type type);

/* ---- memory of any kind ---- */
/* Is the kind usable in this world? *count: number of its devices (1 for host). */
IST_API int ist_kind_devices(ist_world world, ist_kind kind, int* count);
/* This rank's own device of a kind: ISTHMUS_DEVICE, or else the ranks of one host take its devices in turn, rank by rank. */
#define IST_OWN_DEVICE (-1)
/* Allocates `bytes` of a kind on a device, or on IST_OWN_DEVICE; the buffer's queue is one the library owns. Host memory is
 * page-aligned; from 16 KiB on it is shared memory (up to ISTHMUS_SHARED_HEAP bytes of a rank), from which other ranks of this host copy
 * what ist_isend and the like name (below 128 KiB out of places that were sent from lately), and which a forked child shares with its
 * parent. Owned by the caller: ist_memory_free releases it, before the world is destroyed. */
IST_API int ist_memory_alloc(ist_world world, ist_kind kind, int device, size_t bytes, ist_buffer* buffer);
/* Releases what ist_memory_alloc gave; nothing may be in flight on it. IST_ERR_ARGUMENT for host memory that is registered, which
 * ist_unregister has to unlock first. In a process that was forked, shared memory stays as it is: it is its parent's, too. */
IST_API int ist_memory_free(ist_world world, ist_buffer buffer);
/* Copies between two buffers of this process, any kinds, and returns when the bytes have arrived. */
IST_API int ist_memory_copy(ist_world world, ist_buffer to, ist_buffer from, size_t bytes);
/* Page-locks host memory of the caller's for the devices of this process, whose copies from and to it then need no processor:
 * messages between it and a device take one copy. Without this call no memory of the caller's is ever locked. Takes as long as
 * the system needs for so many pages; where no kind of device locks memory it does nothing. IST_ERR_ARGUMENT if it overlaps what
 * is registered already, IST_ERR_DEVICE with the driver's words if the driver refuses, as it does for memory that is page-locked
 * already: such memory needs no registering. */
IST_API int ist_register(ist_world world, void* address, size_t bytes);
/* Unlocks what ist_register was given at that address: before the memory is given back, and with nothing in flight on it. What is
 * still registered when the world is destroyed is unlocked then. IST_ERR_ARGUMENT if nothing was registered there. */
IST_API int ist_unregister(ist_world world, void* address);

/* ---- looking inside ---- */
/* Set `size` to sizeof(ist_traffic) before the call: later versions add members at the end. */
typedef struct ist_traffic {
  uint64_t size;
  uint64_t messages_sent, bytes_sent;
  uint64_t messages_received, bytes_received;
} ist_traffic;
#define IST_ALL_PEERS (-1)
/* What this rank has sent to, and received from, rank `peer` of the world's communicator (or IST_ALL_PEERS) by one carrier, or by
 * all (IST_CARRIER_NONE), since the world was made: messages that are complete, those of collective calls and the library's own
 * among them, not what ranks of one host write where all of them read. A truncated one counts with the bytes that were delivered. IST_CARRIER_NCCL: the calls that NCCL carried, with the
 * bytes of this rank's two buffers, and of IST_ALL_PEERS alone. Local; takes the world's lock. */
IST_API int ist_world_traffic(ist_world world, int peer, ist_carrier carrier, ist_traffic* traffic);

/* How a message of these would go to rank `dest` of `comm` now, as `isthmus explain` tells it: the carrier, its price term by term,
 * and why not otherwise. Of the receiver's buffer it says what it takes it to be. Of memory that kernels in streams read it says the same
 * of ist_send_on, and of ist_allreduce_on or ist_bcast_on on all ranks of comm. Nothing is sent. The text is cut to `size` bytes
 * with its final zero, and *needed (may be null) becomes the bytes of the whole with it; size 0 only asks. Errors as of ist_send. */
IST_API int ist_explain(ist_buffer buffer, int64_t count, ist_type type, int dest, ist_comm comm, char* text, size_t size,
                        size_t* needed);

/* ---- buffers ---- */

static inline ist_buffer ist_make_buffer(uint32_t kind, uint64_t object, uint64_t offset, uint64_t queue) {
  ist_buffer buffer = {kind, -1, object, offset, queue, 0, 0, {0, 0, 0, 0}, 0, 0};
#if defined(__GNUC__) && defined(__x86_64__) && !defined(__CUDACC__) && !defined(_OPENACC)
  /* As wide as it is copied into a call: one that waits for narrower stores costs 3 ns. OpenACC's -fipa-pta loses the address. */
  typedef uint64_t ist_two_words __attribute__((vector_size(16)));
  const ist_two_words words[2] = {{kind | ((uint64_t)0xffffffff << 32), object}, {offset, queue}};
  __builtin_memcpy(&buffer, words, sizeof words);
#endif
  return buffer;
}
/* Host memory, pageable or page-locked. */
static inline ist_buffer ist_host(const void* address) {
  return ist_make_buffer(IST_KIND_HOST, (uint64_t)(uintptr_t)address, 0, 0);
}
/* CUDA device or managed memory; `stream` (a CUstream or cudaStream_t) holds the work that produces or still reads it. */
static inline ist_buffer ist_cuda(const void* address, void* stream) {
  return ist_make_buffer(IST_KIND_CUDA, (uint64_t)(uintptr_t)address, 0, (uint64_t)(uintptr_t)stream);
}
/* An OpenCL buffer (cl_mem) from byte `offset` on; `queue` (cl_command_queue) holds its pending work. */
static inline ist_buffer ist_opencl(void* mem, size_t offset, void* queue) {
  return ist_make_buffer(IST_KIND_OPENCL, (uint64_t)(uintptr_t)mem, offset, (uint64_t)(uintptr_t)queue);
}
/* Any address: the drivers are asked whose it is. A device address is taken to be in use by the legacy default stream. */
static inline ist_buffer ist_auto(const void* address) {
  return ist_make_buffer(IST_KIND_AUTO, (uint64_t)(uintptr_t)address, 0, 0);
}
/* The same memory, `bytes` further on. */
static inline ist_buffer ist_buffer_at(ist_buffer buffer, size_t bytes) {
  buffer.offset += bytes;
  return buffer;
}
/* The same memory, with the promise that nothing is pending on it: IST_BUFFER_READY. */
static inline ist_buffer ist_buffer_ready(ist_buffer buffer) {
  buffer.flags |= IST_BUFFER_READY;
  return buffer;
}

#ifdef __cplusplus
}
#endif
#endif
