# Every call, compared before it is carried out; what differs is another error then.
set(that_check collectives messages layout_collectives)
if(TARGET fake_cuda)
  list(APPEND that_check streams meetings)
endif()
foreach(name ${that_check})
  add_test(NAME ranks_${name}.on_3_ranks_that_check
           COMMAND isthmus_program run -n 3 --prefix-output $<TARGET_FILE:ranks_${name}> --gtest_brief=1
                   --gtest_filter=-*CountsThatDiffer*)
  set_tests_properties(ranks_${name}.on_3_ranks_that_check PROPERTIES TIMEOUT 120 LABELS "ranks;once" ENVIRONMENT ISTHMUS_CHECK=1)
endforeach()
if(TARGET fake_cuda)  # streams, of a device for each rank
  set_property(TEST ranks_streams.on_3_ranks_that_check ranks_meetings.on_3_ranks_that_check APPEND PROPERTY ENVIRONMENT
               "LD_LIBRARY_PATH=${CMAKE_BINARY_DIR}/tests/fake_cuda;FAKE_CUDA_DEVICES=3")
endif()
