// What a program compiled against version 0.1 relies on. A line that fails here is a broken promise, not a test to adapt.
#include <isthmus/boot.h>
#include <isthmus/collective.h>
#include <isthmus/halo.h>
#include <isthmus/heap.h>
#include <isthmus/isthmus.h>
#include <isthmus/layout.h>
#include <isthmus/queue.h>
#include <isthmus/stream.h>
#include <isthmus/window.h>
#include <isthmus/worker.h>

#include <type_traits>

// By-value structs: size, alignment and the place of every member.
static_assert(sizeof(ist_buffer) == 64 && alignof(ist_buffer) == 8 && std::is_trivially_copyable_v<ist_buffer>);
static_assert(offsetof(ist_buffer, kind) == 0 && offsetof(ist_buffer, device) == 4);
static_assert(offsetof(ist_buffer, object) == 8 && offsetof(ist_buffer, offset) == 16 && offsetof(ist_buffer, queue) == 24);
static_assert(offsetof(ist_buffer, flags) == 32 && offsetof(ist_buffer, level) == 36 && offsetof(ist_buffer, rect) == 40);
static_assert(offsetof(ist_buffer, format) == 56 && offsetof(ist_buffer, reserved) == 60);
static_assert(sizeof(ist_status) == 24 && alignof(ist_status) == 8 && std::is_trivially_copyable_v<ist_status>);
static_assert(offsetof(ist_status, source) == 0 && offsetof(ist_status, tag) == 4 && offsetof(ist_status, code) == 8);
static_assert(offsetof(ist_status, carrier) == 12 && offsetof(ist_status, bytes) == 16);
static_assert(std::is_same_v<decltype(ist_status::bytes), int64_t>);

// Grows at its end alone, and says its size.
static_assert(offsetof(ist_boot_functions, size) == 0 && offsetof(ist_boot_functions, context) == 8);
static_assert(offsetof(ist_boot_functions, rank) == 16 && offsetof(ist_boot_functions, ranks) == 20);
static_assert(offsetof(ist_boot_functions, all_gather) == 24 && offsetof(ist_boot_functions, error_text) == 32);
static_assert(offsetof(ist_boot_functions, refusal) == 40 && sizeof(ist_boot_functions) >= 48);

// Grows at its end alone, and says its size.
static_assert(offsetof(ist_traffic, size) == 0 && offsetof(ist_traffic, messages_sent) == 8);
static_assert(offsetof(ist_traffic, bytes_sent) == 16 && offsetof(ist_traffic, messages_received) == 24);
static_assert(offsetof(ist_traffic, bytes_received) == 32 && sizeof(ist_traffic) >= 40);

// Handles are pointers to types that nobody outside can look into.
static_assert(sizeof(ist_world) == sizeof(void*) && sizeof(ist_comm) == sizeof(void*) &&
              sizeof(ist_request) == sizeof(void*));
static_assert(!std::is_same_v<ist_world, ist_comm> && !std::is_same_v<ist_comm, ist_request>);

// Enumerations travel as int.
static_assert(sizeof(ist_code) == 4 && sizeof(ist_kind) == 4 && sizeof(ist_type) == 4 && sizeof(ist_carrier) == 4);
static_assert(IST_OK == 0 && IST_ERR_ARGUMENT == 1 && IST_ERR_RANK == 2 && IST_ERR_HANDLE == 3 && IST_ERR_TRUNCATE == 4);
static_assert(IST_ERR_OVERFLOW == 5 && IST_ERR_KIND == 6 && IST_ERR_MEMORY == 7 && IST_ERR_DEVICE == 8);
static_assert(IST_ERR_PEER_DEAD == 9 && IST_ERR_PEER_LEFT == 10 && IST_ERR_UNREACHABLE == 11 && IST_ERR_BOOT == 12);
static_assert(IST_ERR_SETTING == 13 && IST_ERR_SYSTEM == 14 && IST_ERR_PENDING == 15 && IST_ERR_IN_STATUS == 16);
static_assert(IST_ERR_INTERNAL == 17 && IST_CANCELLED == 18 && IST_ERR_NOT_CAPTURABLE == 19);
static_assert(IST_ERR_UNSUPPORTED == 20);
static_assert(IST_SIGNAL_SET == 0 && IST_SIGNAL_ADD == 1 && IST_COMPARE_EQ == 0 && IST_COMPARE_NE == 1 &&
              IST_COMPARE_GT == 2);
static_assert(IST_COMPARE_GE == 3 && IST_COMPARE_LT == 4 && IST_COMPARE_LE == 5 && IST_ATOMIC_FETCH == 0 &&
              IST_ATOMIC_SET == 1);
static_assert(IST_ATOMIC_ADD == 2 && IST_ATOMIC_INC == 3 && IST_ATOMIC_SWAP == 4 && IST_ATOMIC_AND == 5 &&
              IST_ATOMIC_OR == 6);
static_assert(IST_ATOMIC_XOR == 7 && sizeof(ist_team_view) == 56 && offsetof(ist_team_view, base) == 8);
static_assert(offsetof(ist_team_view, stride) == 16 && offsetof(ist_team_view, sync) == 32 &&
              offsetof(ist_team_view, abort_word) == 48);
static_assert(sizeof(ist_device_view) == 80 && offsetof(ist_device_view, shift) == 56 &&
              offsetof(ist_device_view, ring) == 64 && offsetof(ist_device_view, desk) == 72);
static_assert(IST_KIND_AUTO == 0 && IST_KIND_HOST == 1 && IST_KIND_CUDA == 2 && IST_KIND_OPENCL == 3 && IST_KIND_GL == 4);
static_assert(IST_BYTE == 0 && IST_CHAR == 1 && IST_INT8 == 2 && IST_UINT8 == 3 && IST_INT16 == 4 && IST_UINT16 == 5);
static_assert(IST_INT32 == 6 && IST_UINT32 == 7 && IST_INT64 == 8 && IST_UINT64 == 9 && IST_FLOAT == 10 && IST_DOUBLE == 11);
static_assert(IST_INT == 12 && IST_LONG == 13 && IST_SHORT == 14 && IST_UNSIGNED == 15 && IST_UNSIGNED_LONG == 16);
static_assert(IST_LONG_LONG == 17 && IST_UNSIGNED_SHORT == 18 && IST_UNSIGNED_LONG_LONG == 19 && IST_HALF == 20);
static_assert(IST_BFLOAT16 == 21 && IST_COMPLEX_FLOAT == 22 && IST_COMPLEX_DOUBLE == 23 && IST_FLOAT_INT == 24);
static_assert(IST_DOUBLE_INT == 25 && IST_LONG_INT == 26 && IST_INT_INT == 27 && IST_SHORT_INT == 28);
static_assert(IST_INT64_INT64 == 29);
static_assert(IST_CARRIER_NONE == 0 && IST_CARRIER_SLOT == 1 && IST_CARRIER_CELL == 2 && IST_CARRIER_RING == 3);
static_assert(IST_BUFFER_READY == 1);
static_assert(IST_CARRIER_DIRECT == 4 && IST_CARRIER_NCCL == 5 && IST_CARRIER_DEVICE == 6 && IST_CARRIER_MAILBOX == 7);
static_assert(IST_CARRIER_SINGLE_COPY == 16 && IST_CARRIER_BLOCK == 17);
static_assert(IST_ANY_SOURCE == -1 && IST_ANY_TAG == -1 && IST_PROC_NULL == -2 && IST_UNDEFINED == -3);
static_assert(IST_TAG_MAX == 2147483647 && IST_ALL_PEERS == -1);

// Calls: counts are int64_t, buffers go by value.
template <class Expected, class Found>
constexpr bool same(Found*) {
  return std::is_same_v<Expected, Found>;
}
static_assert(same<const char*()>(ist_error_text) && same<const char*()>(ist_version));
static_assert(same<const char*(int)>(ist_code_name) && same<const char*(int)>(ist_carrier_name));
static_assert(same<int(ist_world*)>(ist_world_create) && same<int(ist_world*)>(ist_world_destroy));
static_assert(same<int(const char*, ist_world*)>(ist_world_create_configured));
static_assert(same<int(const char*, const ist_boot_functions*, ist_world*)>(ist_world_create_configured_with));
static_assert(same<void(int (*)(void*), void*)>(ist_interrupt_with));
static_assert(same<int(ist_world, ist_comm*)>(ist_world_comm));
static_assert(same<int(ist_comm, int*)>(ist_comm_rank) && same<int(ist_comm, int*)>(ist_comm_size));
static_assert(same<int(ist_comm, int*)>(ist_comm_local_rank) && same<int(ist_comm, int*)>(ist_comm_local_size));
static_assert(same<int(ist_buffer, int64_t, ist_type, int, int, ist_comm)>(ist_send));
static_assert(same<int(ist_buffer, int64_t, ist_type, int, int, ist_comm, ist_status*)>(ist_recv));
static_assert(same<int(ist_buffer, int64_t, ist_type, int, int, ist_buffer, int64_t, ist_type, int, int, ist_comm,
                       ist_status*)>(ist_sendrecv));
static_assert(same<int(ist_buffer, int64_t, ist_type, int, int, ist_comm, ist_request*)>(ist_isend));
static_assert(same<int(ist_buffer, int64_t, ist_type, int, int, ist_comm, ist_request*)>(ist_irecv));
static_assert(same<int(ist_request*, int*, ist_status*)>(ist_test) && same<int(ist_request*, ist_status*)>(ist_wait));
static_assert(same<int(int, ist_request*, ist_status*)>(ist_waitall) && same<int(ist_comm)>(ist_barrier));
static_assert(same<size_t(ist_type)>(ist_type_size));

static_assert(sizeof(ist_message) == sizeof(void*) && !std::is_same_v<ist_message, ist_request>);
static_assert(same<int(ist_world, ist_comm*)>(ist_world_comm_self) && same<int(ist_comm, ist_comm*)>(ist_comm_dup));
static_assert(same<int(ist_comm, int, int, ist_comm*)>(ist_comm_split) &&
              same<int(ist_comm, int, ist_comm*)>(ist_comm_split_local));
static_assert(same<int(ist_comm, int, const int*, int, ist_comm*)>(ist_comm_create_group) &&
              same<int(ist_comm*)>(ist_comm_free));
static_assert(same<int(ist_comm, int, int*)>(ist_comm_world_rank) && same<int(ist_comm, char*, size_t)>(ist_comm_name));
static_assert(same<int(int, int, int*)>(ist_dims_create) && same<int(ist_comm, int*)>(ist_cart_ndims));
static_assert(same<int(ist_comm, int, const int*, const int*, int, ist_comm*)>(ist_cart_create));
static_assert(same<int(ist_comm, int, int*, int*, int*)>(ist_cart_get) &&
              same<int(ist_comm, int, int, int*)>(ist_cart_coords));
static_assert(same<int(ist_comm, int, const int*, ist_comm*)>(ist_cart_sub));
static_assert(same<int(ist_comm, const int*, int*)>(ist_cart_rank) &&
              same<int(ist_comm, int, int, int*, int*)>(ist_cart_shift));
static_assert(same<int(ist_buffer, int64_t, ist_type, int, int, ist_comm)>(ist_ssend));
static_assert(same<int(ist_buffer, int64_t, ist_type, int, int, ist_comm, ist_request*)>(ist_issend));
static_assert(same<int(ist_buffer, int64_t, ist_type, int, int, int, int, ist_comm, ist_status*)>(ist_sendrecv_replace));
static_assert(same<int(int, ist_request*, int*, ist_status*)>(ist_waitany) &&
              same<int(int, ist_request*, int*, int*, ist_status*)>(ist_testany));
static_assert(same<int(int, ist_request*, int*, int*, ist_status*)>(ist_waitsome) &&
              same<int(int, ist_request*, int*, int*, ist_status*)>(ist_testsome));
static_assert(same<int(int, ist_request*, int*, ist_status*)>(ist_testall) && same<int(ist_request)>(ist_cancel));
static_assert(same<int(ist_request*)>(ist_request_free) && same<int(ist_request*)>(ist_start) &&
              same<int(int, ist_request*)>(ist_startall));
static_assert(same<int(ist_buffer, int64_t, ist_type, int, int, ist_comm, ist_request*)>(ist_send_init));
static_assert(same<int(ist_buffer, int64_t, ist_type, int, int, ist_comm, ist_request*)>(ist_ssend_init));
static_assert(same<int(ist_buffer, int64_t, ist_type, int, int, ist_comm, ist_request*)>(ist_recv_init));
static_assert(same<int(ist_buffer, int64_t, ist_type, int, ist_comm)>(ist_prepare));
static_assert(same<int(ist_buffer, int64_t, ist_type, int, ist_comm, ist_request*)>(ist_iprepare));
static_assert(same<int(int, int, ist_comm, ist_status*)>(ist_probe) &&
              same<int(int, int, ist_comm, int*, ist_status*)>(ist_iprobe));
static_assert(same<int(int, int, ist_comm, ist_message*, ist_status*)>(ist_mprobe));
static_assert(same<int(int, int, ist_comm, int*, ist_message*, ist_status*)>(ist_improbe));
static_assert(same<int(ist_buffer, int64_t, ist_type, ist_message*, ist_status*)>(ist_mrecv));
static_assert(same<int(ist_buffer, int64_t, ist_type, ist_message*, ist_request*)>(ist_imrecv));
static_assert(same<int(const ist_status*, ist_type, int64_t*)>(ist_get_count));
static_assert(same<int(ist_world, ist_kind, int*)>(ist_kind_devices));
static_assert(same<int(ist_world, ist_kind, int, size_t, ist_buffer*)>(ist_memory_alloc));
static_assert(same<int(ist_world, ist_buffer)>(ist_memory_free));
static_assert(same<int(ist_world, ist_buffer, ist_buffer, size_t)>(ist_memory_copy));
static_assert(same<int(ist_world, void*, size_t)>(ist_register));
static_assert(same<int(ist_world, void*)>(ist_unregister));
static_assert(same<int(ist_world, int, ist_carrier, ist_traffic*)>(ist_world_traffic));
static_assert(same<int(ist_buffer, int64_t, ist_type, int, ist_comm, char*, size_t, size_t*)>(ist_explain));

// Operations are small numbers in the place of handles. A cast to a pointer is no constant expression, one to a number is.
static_assert(sizeof(ist_op) == sizeof(void*) && !std::is_same_v<ist_op, ist_request>);
#define ist_op intptr_t
static_assert(IST_OP_NULL == 0 && IST_SUM == 1 && IST_PROD == 2 && IST_MIN == 3 && IST_MAX == 4 && IST_MINLOC == 5);
static_assert(IST_MAXLOC == 6 && IST_LAND == 7 && IST_LOR == 8 && IST_LXOR == 9 && IST_BAND == 10 && IST_BOR == 11);
static_assert(IST_BXOR == 12);
#undef ist_op
// What the buffer holds, tests/ranks/icollectives_test.cpp says: a program has the function inside of itself.
static_assert(same<ist_buffer()>(ist_in_place) && std::is_same_v<decltype(IST_IN_PLACE), ist_buffer>);
static_assert(std::is_same_v<ist_op_function, void (*)(const void*, void*, int64_t, ist_type, void*)>);
static_assert(same<int(ist_op_function, void*, int, ist_op*)>(ist_op_create) && same<int(ist_op*)>(ist_op_free));
static_assert(same<int(ist_comm, ist_request*)>(ist_ibarrier));
static_assert(same<int(ist_buffer, int64_t, ist_type, int, ist_comm)>(ist_bcast) &&
              same<int(ist_buffer, int64_t, ist_type, int, ist_comm, ist_request*)>(ist_ibcast));
static_assert(same<int(ist_buffer, ist_buffer, int64_t, ist_type, ist_op, int, ist_comm)>(ist_reduce) &&
              same<int(ist_buffer, ist_buffer, int64_t, ist_type, ist_op, int, ist_comm, ist_request*)>(ist_ireduce));
using Reduction = int(ist_buffer, ist_buffer, int64_t, ist_type, ist_op, ist_comm);
using LaterReduction = int(ist_buffer, ist_buffer, int64_t, ist_type, ist_op, ist_comm, ist_request*);
static_assert(same<Reduction>(ist_allreduce) && same<LaterReduction>(ist_iallreduce));
static_assert(same<Reduction>(ist_reduce_scatter_block) && same<LaterReduction>(ist_ireduce_scatter_block));
static_assert(same<Reduction>(ist_scan) && same<LaterReduction>(ist_iscan));
static_assert(same<Reduction>(ist_exscan) && same<LaterReduction>(ist_iexscan));
static_assert(
    same<int(ist_buffer, ist_buffer, const int64_t*, ist_type, ist_op, ist_comm)>(ist_reduce_scatter) &&
    same<int(ist_buffer, ist_buffer, const int64_t*, ist_type, ist_op, ist_comm, ist_request*)>(ist_ireduce_scatter));
using Rooted = int(ist_buffer, int64_t, ist_buffer, int64_t, ist_type, int, ist_comm);
using LaterRooted = int(ist_buffer, int64_t, ist_buffer, int64_t, ist_type, int, ist_comm, ist_request*);
static_assert(same<Rooted>(ist_gather) && same<LaterRooted>(ist_igather));
static_assert(same<Rooted>(ist_scatter) && same<LaterRooted>(ist_iscatter));
static_assert(same<int(ist_buffer, int64_t, ist_buffer, int64_t, ist_type, ist_comm)>(ist_allgather) &&
              same<int(ist_buffer, int64_t, ist_buffer, int64_t, ist_type, ist_comm, ist_request*)>(ist_iallgather));
static_assert(same<int(ist_buffer, ist_buffer, int64_t, ist_type, ist_comm)>(ist_alltoall) &&
              same<int(ist_buffer, ist_buffer, int64_t, ist_type, ist_comm, ist_request*)>(ist_ialltoall));
static_assert(
    same<int(ist_buffer, int64_t, ist_buffer, const int64_t*, const int64_t*, ist_type, int, ist_comm)>(ist_gatherv) &&
    same<int(ist_buffer, int64_t, ist_buffer, const int64_t*, const int64_t*, ist_type, int, ist_comm, ist_request*)>(
        ist_igatherv));
static_assert(
    same<int(ist_buffer, const int64_t*, const int64_t*, ist_buffer, int64_t, ist_type, int, ist_comm)>(ist_scatterv) &&
    same<int(ist_buffer, const int64_t*, const int64_t*, ist_buffer, int64_t, ist_type, int, ist_comm, ist_request*)>(
        ist_iscatterv));
static_assert(
    same<int(ist_buffer, int64_t, ist_buffer, const int64_t*, const int64_t*, ist_type, ist_comm)>(ist_allgatherv) &&
    same<int(ist_buffer, int64_t, ist_buffer, const int64_t*, const int64_t*, ist_type, ist_comm, ist_request*)>(
        ist_iallgatherv));
static_assert(same<int(ist_buffer, const int64_t*, const int64_t*, ist_buffer, const int64_t*, const int64_t*, ist_type,
                       ist_comm)>(ist_alltoallv) &&
              same<int(ist_buffer, const int64_t*, const int64_t*, ist_buffer, const int64_t*, const int64_t*, ist_type,
                       ist_comm, ist_request*)>(ist_ialltoallv));

static_assert(IST_SENDS == 1 && IST_RECEIVES == 2);
static_assert(same<int(void*, ist_buffer, int64_t, ist_type, int, int, ist_comm)>(ist_send_on) &&
              same<int(void*, ist_buffer, int64_t, ist_type, int, int, ist_comm)>(ist_recv_on));
static_assert(same<int(void*, ist_buffer, int64_t, ist_type, int, int, ist_buffer, int64_t, ist_type, int, int, ist_comm)>(
    ist_sendrecv_on));
static_assert(same<int(void*, int, int, int, ist_comm)>(ist_prepare_on));
static_assert(same<int(void*, ist_comm)>(ist_prepare_collectives_on) && same<int(void*, ist_comm)>(ist_barrier_on));
static_assert(same<int(void*, ist_buffer, int64_t, ist_type, int, ist_comm)>(ist_bcast_on));
static_assert(same<int(void*, ist_buffer, ist_buffer, int64_t, ist_type, ist_op, int, ist_comm)>(ist_reduce_on));
static_assert(same<int(void*, ist_buffer, ist_buffer, int64_t, ist_type, ist_op, ist_comm)>(ist_allreduce_on));
static_assert(
    same<int(void*, ist_buffer, int64_t, ist_type, int, int, ist_comm, uint32_t, const void*, void*)>(ist_send_on_queue) &&
    same<int(void*, ist_buffer, int64_t, ist_type, int, int, ist_comm, uint32_t, const void*, void*)>(ist_recv_on_queue));
static_assert(same<int(void*, ist_buffer, int64_t, ist_type, int, int, ist_buffer, int64_t, ist_type, int, int, ist_comm,
                       uint32_t, const void*, void*)>(ist_sendrecv_on_queue));
static_assert(same<int(void*, int, int, int, ist_comm)>(ist_prepare_on_queue));

static_assert(same<int(ist_comm, ist_kind, int, uint64_t, uint64_t, ist_heap*)>(ist_heap_create));
static_assert(same<int(ist_heap*)>(ist_heap_destroy) && same<int(ist_heap, uint64_t)>(ist_heap_grow));
static_assert(same<int(ist_heap, uint64_t, void**)>(ist_heap_alloc) && same<int(ist_heap, void*)>(ist_heap_free));
static_assert(same<int(ist_heap, uint64_t, uint64_t, void**)>(ist_heap_calloc));
static_assert(same<int(ist_heap, uint64_t, uint64_t, void**)>(ist_heap_aligned));
static_assert(same<int(ist_heap, void*, ist_buffer, uint64_t, int)>(ist_heap_put));
static_assert(same<int(ist_heap, ist_buffer, const void*, uint64_t, int)>(ist_heap_get));
static_assert(same<int(ist_heap, void*, ist_buffer, uint64_t, uint64_t*, uint64_t, ist_signal, int)>(ist_heap_put_signal));
static_assert(
    same<int(ist_heap, void*, ist_buffer, uint64_t, uint64_t*, uint64_t, ist_signal, int)>(ist_heap_put_signal_nbi));
static_assert(same<int(ist_heap, const void*, ist_type, ist_compare, int64_t)>(ist_heap_wait_until));
static_assert(same<int(ist_heap, ist_atomic, uint64_t*, uint64_t, uint64_t*, int)>(ist_heap_atomic64));
static_assert(same<int(ist_heap, uint32_t*, uint32_t, uint32_t, uint32_t*, int)>(ist_heap_compare_swap32));
static_assert(same<int(ist_heap, int, ist_device_view*)>(ist_heap_device_view));
static_assert(same<int(ist_heap, ist_team_view*)>(ist_heap_view) && same<int(ist_heap)>(ist_heap_barrier));
static_assert(same<int(ist_comm, ist_buffer, uint64_t, ist_window*)>(ist_window_create));
static_assert(same<int(ist_window*)>(ist_window_free) && same<int(ist_window, ist_window_view*)>(ist_window_view_of));
static_assert(same<int(ist_window, uint64_t, int, void**)>(ist_window_pointer) && same<int(ist_window)>(ist_window_quiet));
static_assert(same<int(ist_window, uint64_t, ist_buffer, uint64_t, int)>(ist_window_put));
static_assert(same<int(ist_window, ist_buffer, uint64_t, uint64_t, int)>(ist_window_get));
static_assert(same<int(ist_window, uint64_t, ist_buffer, uint64_t, int)>(ist_window_put_nbi));
static_assert(same<int(ist_window, ist_buffer, uint64_t, uint64_t, int)>(ist_window_get_nbi));
static_assert(
    same<int(ist_window, uint64_t, ist_buffer, uint64_t, uint64_t, uint64_t, ist_signal, int)>(ist_window_put_signal));
static_assert(same<int(ist_window, uint64_t, ist_type, ist_compare, int64_t)>(ist_window_wait_until));
static_assert(same<int(ist_window, uint64_t, ist_type, ist_compare, int64_t, int*)>(ist_window_test));
static_assert(same<int(ist_window, ist_atomic, uint64_t, uint32_t, uint32_t*, int)>(ist_window_atomic32));
static_assert(same<int(ist_window, ist_atomic, uint64_t, uint64_t, uint64_t*, int)>(ist_window_atomic64));
static_assert(same<int(ist_window, uint64_t, uint32_t, uint32_t, uint32_t*, int)>(ist_window_compare_swap32));
static_assert(same<int(ist_window, uint64_t, uint64_t, uint64_t, uint64_t*, int)>(ist_window_compare_swap64));
static_assert(IST_WINDOW_MOST_PES == 64 && sizeof(ist_window_view) == 1040 && offsetof(ist_window_view, abort_word) == 8);
static_assert(offsetof(ist_window_view, bytes) == 16 && offsetof(ist_window_view, base) == 528);

// Layouts.
static_assert(sizeof(ist_layout) == sizeof(void*) && !std::is_same_v<ist_layout, ist_op>);
static_assert(IST_ORDER_C == 0 && IST_ORDER_FORTRAN == 1 && sizeof(ist_order) == 4 && IST_TO_END == -1);
static_assert(same<ist_layout(ist_type)>(ist_layout_of));
static_assert(same<int(ist_heap, void*, int64_t, ist_layout, ist_buffer, int64_t, ist_layout, int)>(ist_heap_put_layout));
static_assert(
    same<int(ist_heap, ist_buffer, int64_t, ist_layout, const void*, int64_t, ist_layout, int)>(ist_heap_get_layout));
using OfMany = int(int64_t, const int64_t*, const int64_t*, ist_layout, ist_layout*);
using OfBlocks = int(int64_t, int64_t, const int64_t*, ist_layout, ist_layout*);
static_assert(same<int(int64_t, ist_layout, ist_layout*)>(ist_layout_contiguous));
static_assert(same<int(int64_t, int64_t, int64_t, ist_layout, ist_layout*)>(ist_layout_vector) &&
              same<int(int64_t, int64_t, int64_t, ist_layout, ist_layout*)>(ist_layout_hvector));
static_assert(same<OfMany>(ist_layout_indexed) && same<OfMany>(ist_layout_hindexed));
static_assert(same<OfBlocks>(ist_layout_indexed_block) && same<OfBlocks>(ist_layout_hindexed_block));
static_assert(same<int(int64_t, const int64_t*, const int64_t*, const ist_layout*, ist_layout*)>(ist_layout_struct));
static_assert(
    same<int(int, const int64_t*, const int64_t*, const int64_t*, ist_order, ist_layout, ist_layout*)>(ist_layout_subarray));
static_assert(same<int(ist_layout, int64_t, int64_t, ist_layout*)>(ist_layout_resized));
static_assert(same<int(ist_layout, ist_layout*)>(ist_layout_dup) && same<int(ist_layout)>(ist_layout_commit));
static_assert(same<int(ist_layout*)>(ist_layout_free) && same<int(ist_layout, int64_t*)>(ist_layout_size));
static_assert(same<int(ist_layout, int64_t*, int64_t*)>(ist_layout_extent) &&
              same<int(ist_layout, int64_t*, int64_t*)>(ist_layout_true_extent));
static_assert(same<int(ist_layout, char*, size_t, size_t*)>(ist_layout_text));
static_assert(same<int(int64_t, ist_layout, int64_t*)>(ist_pack_size));
static_assert(same<int(ist_world, ist_buffer, int64_t, ist_layout, int64_t, int64_t, ist_buffer)>(ist_pack));
static_assert(same<int(ist_world, ist_buffer, int64_t, int64_t, ist_buffer, int64_t, ist_layout)>(ist_unpack));
static_assert(same<int(ist_buffer, int64_t, ist_layout, int, int, ist_comm)>(ist_send_layout));
static_assert(same<int(ist_buffer, int64_t, ist_layout, int, int, ist_comm, ist_status*)>(ist_recv_layout));
static_assert(same<int(ist_buffer, int64_t, ist_layout, int, int, ist_comm, ist_request*)>(ist_isend_layout) &&
              same<int(ist_buffer, int64_t, ist_layout, int, int, ist_comm, ist_request*)>(ist_irecv_layout));
static_assert(same<int(ist_buffer, int64_t, ist_layout, int, int, ist_buffer, int64_t, ist_layout, int, int, ist_comm,
                       ist_status*)>(ist_sendrecv_layout));
static_assert(same<int(ist_buffer, int64_t, ist_layout, int, ist_comm, char*, size_t, size_t*)>(ist_explain_layout));

// Halo exchange.
static_assert(sizeof(ist_halo) == sizeof(void*) && sizeof(ist_halo_grid) == sizeof(void*) &&
              !std::is_same_v<ist_halo, ist_halo_grid>);
static_assert(sizeof(ist_halo_range) == 40 && offsetof(ist_halo_range, plus) == 8 && offsetof(ist_halo_range, begin) == 16);
static_assert(offsetof(ist_halo_range, end) == 24 && offsetof(ist_halo_range, total_length) == 32);
static_assert(sizeof(ist_halo_field) == 88 && offsetof(ist_halo_field, element) == 64);
static_assert(offsetof(ist_halo_field, ranges) == 72 && offsetof(ist_halo_field, layout_map) == 80);
static_assert(sizeof(ist_halo_options) >= 24 && offsetof(ist_halo_options, reach) == 8);
static_assert(offsetof(ist_halo_options, packing) == 12 && offsetof(ist_halo_options, way) == 16);
static_assert(sizeof(ist_halo_side) == 104 && offsetof(ist_halo_side, cells) == 16 && offsetof(ist_halo_side, count) == 40);
static_assert(offsetof(ist_halo_side, stride) == 72 && offsetof(ist_halo_sides, side) == 8 && IST_HALO_MOST_SIDES == 26);
static_assert(same<int(ist_halo_grid, const ist_halo_field*, int, ist_halo_sides*)>(ist_halo_sides_of));
static_assert(sizeof(ist_halo_all_sides) == 744 && offsetof(ist_halo_all_sides, cells) == 8 &&
              IST_HALO_MOST_NEIGHBOURS == 80);
static_assert(offsetof(ist_halo_all_sides, from) == 104 && offsetof(ist_halo_all_sides, to) == 200 &&
              offsetof(ist_halo_all_sides, stride) == 296);
static_assert(offsetof(ist_halo_all_sides, digit) == 328 && offsetof(ist_halo_all_sides, pe) == 344 &&
              offsetof(ist_halo_all_sides, number) == 664);
static_assert(same<int(ist_halo_grid, const ist_halo_field*, int, ist_halo_all_sides*)>(ist_halo_all_sides_of));
static_assert(same<int(ist_halo, int*)>(ist_halo_test));
static_assert(sizeof(ist_halo_lists) == 48 && offsetof(ist_halo_lists, ranks) == 8);
static_assert(offsetof(ist_halo_lists, send_counts) == 16 && offsetof(ist_halo_lists, sends) == 24);
static_assert(offsetof(ist_halo_lists, receive_counts) == 32 && offsetof(ist_halo_lists, receives) == 40);
static_assert(IST_HALO_AUTO == 0 && IST_HALO_CALLS == 1 && IST_HALO_LAYOUTS == 2 && IST_HALO_LOOPS == 3);
static_assert(IST_HALO_MESSAGES == 0 && IST_HALO_ONE_SIDED == 1 && IST_HALO_MOST_DIMENSIONS == 4);
static_assert(same<int(ist_comm, int, const int*, const int*, const int*, ist_halo_grid*)>(ist_halo_grid_create));
static_assert(same<int(ist_comm, int, const int*, const int*, ist_buffer, int64_t, ist_comm*)>(ist_halo_order));
static_assert(same<int(ist_halo_grid, int, int*, int*, int*)>(ist_halo_grid_get));
static_assert(same<int(ist_halo_grid, const int*, int*)>(ist_halo_grid_neighbour));
static_assert(same<int(ist_halo_grid, ist_comm*)>(ist_halo_grid_comm) && same<int(ist_halo_grid*)>(ist_halo_grid_free));
static_assert(same<int(ist_halo_grid, int*)>(ist_halo_grid_ndims) && same<int(ist_halo*)>(ist_halo_free));
static_assert(same<int(ist_halo_grid, int, const ist_halo_field*, const ist_halo_options*, ist_halo*)>(ist_halo_create));
static_assert(same<int(ist_comm, const ist_halo_lists*, int, const ist_halo_field*, const ist_halo_options*, ist_halo*)>(
    ist_halo_create_lists));
static_assert(same<int(ist_halo, int, const ist_halo_field*)>(ist_halo_set_fields));
static_assert(same<int(ist_halo)>(ist_halo_pack) && same<int(ist_halo)>(ist_halo_exchange) &&
              same<int(ist_halo)>(ist_halo_start_exchange));
static_assert(same<int(ist_halo)>(ist_halo_wait) && same<int(ist_halo)>(ist_halo_unpack));
static_assert(same<int(ist_halo, void*)>(ist_halo_exchange_on) && same<int(ist_halo, void*)>(ist_halo_prepare_on));
static_assert(same<int(ist_halo, char*, size_t, size_t*)>(ist_halo_text));
static_assert(sizeof(ist_halo_box) == 64 && offsetof(ist_halo_box, last) == 32 && IST_HALO_MOST_DIMENSIONS == 4);
static_assert(same<int(int, const ist_halo_range*, ist_halo_box*, ist_halo_box*, int*)>(ist_halo_split));

// Workers.
static_assert(sizeof(ist_worker_blocks) == 16 && offsetof(ist_worker_blocks, registers) == 8);
static_assert(offsetof(ist_worker_blocks, threads) == 4 && offsetof(ist_worker_blocks, shared_bytes) == 12);
static_assert(same<int(int, ist_worker_blocks*)>(ist_worker_blocks_on));
