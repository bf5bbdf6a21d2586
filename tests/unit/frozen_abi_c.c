/* The public header is plain C, and means the same to a C compiler. */
#include <isthmus/boot.h>
#include <isthmus/halo.h>
#include <isthmus/isthmus.h>
#include <isthmus/layout.h>
#include <isthmus/worker.h>

_Static_assert(sizeof(ist_buffer) == 64, "a buffer is 64 bytes");
_Static_assert(sizeof(ist_status) == 24, "a status is 24 bytes");
_Static_assert(offsetof(ist_buffer, queue) == 24 && offsetof(ist_buffer, rect) == 40, "members keep their places");
_Static_assert(offsetof(ist_status, bytes) == 16, "members keep their places");
_Static_assert(IST_ERR_INTERNAL == 17 && IST_INT64_INT64 == 29 && IST_CARRIER_DEVICE == 6, "values never change");

_Static_assert(sizeof(ist_worker_blocks) == 16, "members keep their places");
_Static_assert(sizeof(ist_halo_range) == 40 && sizeof(ist_halo_side) == 104, "members keep their places");

ist_buffer frozen_abi_buffer(void* address) { return ist_buffer_at(ist_host(address), 8); }

ist_layout frozen_abi_layout(void) { return ist_layout_of(IST_DOUBLE); }
