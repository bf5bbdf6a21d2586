# Collective calls that NCCL carries, or might: ranks with a GPU each, or with the fake driver and the fake NCCL.
# With a GPU for each rank, and an NCCL; without, and on a driver of its own, the test of what goes by messages instead.
rank_test(ranks_nccl SOURCES nccl_test.cpp RANKS 2 FAKE_RANKS none TIMEOUT 240)
if(TARGET fake_nccl)
  foreach(ranks 1 2 3 5)
    foreach(way nccl messages)
      if(ranks EQUAL 5 AND way STREQUAL messages)
        continue()
      endif()
      set(label)
      if(ranks EQUAL 5)
        set(label ";once;long")
      elseif(way STREQUAL messages AND ranks GREATER 1)
        set(label ";once")
      elseif(ranks GREATER 1)
        set(label ";counted")
      endif()
      set(never $<$<STREQUAL:${way},messages>:ISTHMUS_NCCL=never>)
      add_test(NAME ranks_nccl.on_${ranks}_ranks_by_${way}
               COMMAND isthmus_program run -n ${ranks} --prefix-output $<TARGET_FILE:ranks_nccl> --gtest_brief=1)
      set_tests_properties(ranks_nccl.on_${ranks}_ranks_by_${way} PROPERTIES TIMEOUT 240
                           LABELS "ranks${label}" ENVIRONMENT
                           "LD_LIBRARY_PATH=${CMAKE_BINARY_DIR}/tests/fake_cuda;FAKE_CUDA_DEVICES=8;ISTHMUS_TEST_NCCL=${way};ISTHMUS_PROFILE=${CMAKE_CURRENT_SOURCE_DIR}/profiles/nccl.json;${never}")
    endforeach()
  endforeach()
  # Also where kernels are loaded when they are first launched, which waits for those that run.
  add_test(NAME ranks_nccl.on_2_ranks_lazily
           COMMAND isthmus_program run -n 2 --prefix-output $<TARGET_FILE:ranks_nccl> --gtest_brief=1)
  set_tests_properties(ranks_nccl.on_2_ranks_lazily PROPERTIES TIMEOUT 240 LABELS "ranks;once" ENVIRONMENT
                       "LD_LIBRARY_PATH=${CMAKE_BINARY_DIR}/tests/fake_cuda;FAKE_CUDA_DEVICES=8;FAKE_CUDA_LAZY=1;CUDA_MODULE_LOADING=LAZY;ISTHMUS_TEST_NCCL=nccl;ISTHMUS_PROFILE=${CMAKE_CURRENT_SOURCE_DIR}/profiles/nccl.json")
  # A process of its own: once streams wait, NCCL does not set itself up.
  rank_test(ranks_heap_nccl SOURCES heap_nccl_test.cpp RANKS 2 LINK isthmus_cuda_headers)
  set_property(TEST ranks_heap_nccl.on_2_ranks_with_fake_cuda APPEND PROPERTY ENVIRONMENT FAKE_CUDA_DEVICES=2 ISTHMUS_PROFILE=builtin)
  # Where the order of combining shows, who carries a call must not follow from what streams hold: a process of its own, too.
  rank_test(ranks_nccl_streams SOURCES nccl_streams_test.cpp RANKS 2 FAKE_RANKS none LINK isthmus_cuda_headers)
  foreach(run 2_ranks_lazily 3_ranks_lazily 3_ranks_eagerly 3_ranks_in_any_order 3_ranks_compared 3_ranks_alone)
    string(SUBSTRING ${run} 0 1 ranks)
    set(loading $<IF:$<STREQUAL:${run},3_ranks_eagerly>,EAGER,LAZY>)
    set(profile nccl.json)
    set(any_order)
    set(tests -NcclAlone.*)
    if(run STREQUAL 3_ranks_alone)  # some of it waits for as long as that
      set(tests NcclAlone.*)
      set(any_order ISTHMUS_BOOT_TIMEOUT=5)
    elseif(run STREQUAL 3_ranks_compared)
      set(any_order ISTHMUS_CHECK=1)
    elseif(run STREQUAL 3_ranks_in_any_order)
      set(profile nccl_any_order.json)
      set(any_order ISTHMUS_TEST_ANY_ORDER=1)
    endif()
    add_test(NAME ranks_nccl_streams.on_${run}
             COMMAND isthmus_program run -n ${ranks} --prefix-output $<TARGET_FILE:ranks_nccl_streams> --gtest_brief=1
             --gtest_filter=${tests})
    set_tests_properties(ranks_nccl_streams.on_${run} PROPERTIES TIMEOUT 120 LABELS "ranks;counted" ENVIRONMENT
                         "LD_LIBRARY_PATH=${CMAKE_BINARY_DIR}/tests/fake_cuda;FAKE_CUDA_DEVICES=8;FAKE_CUDA_LAZY=1;CUDA_MODULE_LOADING=${loading};ISTHMUS_PROFILE=${CMAKE_CURRENT_SOURCE_DIR}/profiles/${profile};${any_order}")
  endforeach()
  # What rank 0's numbers say of messages counts: where they are next to free NCCL is never asked for, where they are dear it
  # nearly always is, and what then goes by messages after all goes round rings.
  foreach(profile flat rings)
    set(carried $<$<STREQUAL:${profile},flat>:ISTHMUS_TEST_NCCL=messages>)
    add_test(NAME ranks_nccl.on_3_ranks_by_${profile}
             COMMAND isthmus_program run -n 3 --prefix-output $<TARGET_FILE:ranks_nccl> --gtest_brief=1)
    set_tests_properties(ranks_nccl.on_3_ranks_by_${profile} PROPERTIES TIMEOUT 240 LABELS "ranks;once" ENVIRONMENT
                         "LD_LIBRARY_PATH=${CMAKE_BINARY_DIR}/tests/fake_cuda;FAKE_CUDA_DEVICES=8;ISTHMUS_PROFILE=${CMAKE_CURRENT_SOURCE_DIR}/profiles/${profile}.json;${carried}")
  endforeach()
endif()
