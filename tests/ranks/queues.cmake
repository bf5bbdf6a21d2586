# Messages in OpenCL queues; once with waits that sleep, and what depends on how many devices there are once with two of them.
rank_test(ranks_queues SOURCES queues_test.cpp queues_arithmetic_test.cpp queues_layouts_test.cpp queues_refused_test.cpp queues_types_test.cpp RANKS 2 3 BOTH 3 LINK isthmus_memory)
add_test(NAME ranks_queues.on_2_ranks_that_sleep
         COMMAND isthmus_program run -n 2 --prefix-output $<TARGET_FILE:ranks_queues> --gtest_brief=1)
set_tests_properties(ranks_queues.on_2_ranks_that_sleep PROPERTIES TIMEOUT 120 LABELS ranks ENVIRONMENT "ISTHMUS_WAIT=sleep")
add_test(NAME ranks_queues.on_2_ranks_with_two_devices
         COMMAND isthmus_program run -n 2 --prefix-output $<TARGET_FILE:ranks_queues> --gtest_brief=1 --gtest_filter=QueueArithmetic.*)
set_tests_properties(ranks_queues.on_2_ranks_with_two_devices PROPERTIES TIMEOUT 120 LABELS ranks ENVIRONMENT "POCL_DEVICES=pthread pthread")
