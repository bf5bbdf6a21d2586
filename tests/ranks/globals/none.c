/* A program without a single variable: it begins without the files that the compiler puts in front of every other one. */
#include <isthmus/isthmus.h>
#include <stdlib.h>

int check_that_there_are_none(ist_comm comm);

__attribute__((noreturn, used)) void begin(void) {
  ist_world world = IST_WORLD_NULL;
  ist_comm comm = IST_COMM_NULL;
  if (ist_world_create(&world) != IST_OK || ist_world_comm(world, &comm) != IST_OK) exit(1);
  const int wrong = check_that_there_are_none(comm);
  exit(ist_world_destroy(&world) == IST_OK ? wrong : 6);
}

__asm__(".globl _start\n_start:\n\txor %ebp, %ebp\n\tand $-16, %rsp\n\tcall begin\n");
