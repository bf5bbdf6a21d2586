# Tests of symmetric heaps and of windows.

rank_test(ranks_one_sided SOURCES one_sided_test.cpp one_sided_layouts_test.cpp one_sided_signals_test.cpp one_sided_allocation_test.cpp device_view_test.cpp RANKS 1 2 3 4 FAKE_RANKS 2 3 COUNTED 1 4 BOTH 3)
# Symmetric heaps of OpenCL memory: mapped by all where the driver can, and once more served by each PE.
rank_test(ranks_opencl_heap SOURCES opencl_heap_test.cpp RANKS 1 2 3 4 FAKE_RANKS 2 COUNTED 1 3)
if(TARGET fake_cuda)
  rank_test(ranks_one_sided_order SOURCES one_sided_order_test.cpp RANKS 2)
  target_link_libraries(ranks_one_sided_order PRIVATE isthmus_cuda_headers)
endif()
function(rank_test_served name)
  foreach(ranks ${ARGN})
    add_test(NAME ${name}.on_${ranks}_ranks_that_serve
             COMMAND isthmus_program run -n ${ranks} --prefix-output $<TARGET_FILE:${name}> --gtest_brief=1)
    set_tests_properties(${name}.on_${ranks}_ranks_that_serve PROPERTIES TIMEOUT 120 PROCESSORS 2
                         LABELS "ranks;$<IF:$<EQUAL:${ranks},2>,counted,once>"
                         ENVIRONMENT ISTHMUS_DEVICE_IPC=never)
  endforeach()
endfunction()
rank_test_served(ranks_opencl_heap 1 2 3 4)
rank_test_served(ranks_one_sided 2 3)
# Symmetric heaps of CUDA memory where no device reaches the other's memory, where two of three do not, and where nothing is opened at all.
if(TARGET fake_cuda)
  foreach(way 2:links 3:links 4:never)
    string(REPLACE ":" ";" both ${way})
    list(GET both 0 ranks)
    list(GET both 1 how)
    set(name ranks_one_sided.on_${ranks}_ranks_apart_with_fake_cuda)
    add_test(NAME ${name} COMMAND isthmus_program run -n ${ranks} --prefix-output $<TARGET_FILE:ranks_one_sided> --gtest_brief=1
                                  "--gtest_filter=OneSided*")
    set(apart $<IF:$<STREQUAL:${how},links>,FAKE_CUDA_LINKS=0-1:refused,ISTHMUS_DEVICE_IPC=never>)
    set_tests_properties(${name} PROPERTIES TIMEOUT 120 PROCESSORS 2 LABELS "ranks;counted"
                         ENVIRONMENT "LD_LIBRARY_PATH=${CMAKE_BINARY_DIR}/tests/fake_cuda;FAKE_CUDA_DEVICES=${ranks};ISTHMUS_KINDS=host,cuda;${apart}")
  endforeach()
endif()
# Memory that ranks already have, opened by the others.
rank_test(ranks_windows SOURCES windows_test.cpp windows_words_test.cpp RANKS 1 2 3 4 FAKE_RANKS 1 2 3 COUNTED 1 3)
target_include_directories(ranks_windows PRIVATE ${PROJECT_SOURCE_DIR}/include)
if(ISTHMUS_HAVE_CUDA)
  target_sources(ranks_windows PRIVATE windows_memory_test.cpp)
  target_link_libraries(ranks_windows PRIVATE isthmus_cuda_headers)
endif()
test_on_one_device(ranks_windows LABELS counted)
