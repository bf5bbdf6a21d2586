# What every target of the project is compiled with: warnings, sanitizers, coverage.
add_library(isthmus_flags INTERFACE)
target_compile_options(isthmus_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wnon-virtual-dtor
                       $<$<BOOL:${ISTHMUS_WERROR}>:-Werror>)
target_include_directories(isthmus_flags INTERFACE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
if(ISTHMUS_SANITIZE STREQUAL "address+undefined")
  target_compile_options(isthmus_flags INTERFACE -fsanitize=address,undefined -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(isthmus_flags INTERFACE -fsanitize=address,undefined)
elseif(ISTHMUS_SANITIZE STREQUAL "thread")
  target_compile_options(isthmus_flags INTERFACE -fsanitize=thread -fno-omit-frame-pointer)
  target_link_options(isthmus_flags INTERFACE -fsanitize=thread)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # It sees no fences. Ours stand between atomics and what other processes write, of which it sees nothing either.
    target_compile_options(isthmus_flags INTERFACE -Wno-tsan)
  endif()
elseif(ISTHMUS_SANITIZE)
  message(FATAL_ERROR "ISTHMUS_SANITIZE=${ISTHMUS_SANITIZE}: expected address+undefined, thread, or nothing")
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Instrumented code hides from GCC that an optional was looked at before its value; the release build keeps the warning.
  if(ISTHMUS_SANITIZE)
    target_compile_options(isthmus_flags INTERFACE -Wno-maybe-uninitialized)
  endif()
  # The same of the bounds of short strings, where little is optimised. Of folders, which isthmus_compiled_once() takes out.
  if(ISTHMUS_COVERAGE)
    # Memory is there, and to tidy it up takes the compiler a fifteenth of its time.
    add_compile_options(--param=ggc-min-heapsize=524288)
    add_compile_options(-Wno-maybe-uninitialized -Wno-array-bounds -Wno-restrict -Wno-stringop-overflow -Wno-stringop-overread)
  endif()
endif()
# What GCC warns of only once it has optimised is no error where it has more in its sight than one file: it is more often wrong there.
set(ISTHMUS_LATE_WARNINGS "")
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  foreach(warning maybe-uninitialized array-bounds restrict stringop-overflow stringop-overread free-nonheap-object)
    list(APPEND ISTHMUS_LATE_WARNINGS -Wno-error=${warning})
  endforeach()
endif()
# isthmus_a_dozen_at_a_time(TARGET): where the build is optimised, unless ISTHMUS_UNITY is OFF, which is kinder to who edits the files.
option(ISTHMUS_UNITY "optimised builds compile a dozen files of a room at a time" ON)
function(isthmus_a_dozen_at_a_time target)
  if(ISTHMUS_UNITY AND CMAKE_BUILD_TYPE STREQUAL "Release")
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 12)
    target_compile_options(${target} PRIVATE ${ISTHMUS_LATE_WARNINGS})
  endif()
endfunction()
# isthmus_compiled_once(FLAGS): C and C++ of this folder and those in it are compiled by the same commands, with these flags, in the
# optimised build and in the one that counts lines, so that the second, which counts no lines of theirs, has the objects of the
# first from ccache. Any other build compiles them as it does everything.
macro(isthmus_compiled_once flags)
  if(CMAKE_BUILD_TYPE STREQUAL "Release" OR ISTHMUS_COVERAGE)
    string(TOUPPER "${CMAKE_BUILD_TYPE}" isthmus_build)
    set(CMAKE_C_FLAGS_${isthmus_build} "${flags}")
    set(CMAKE_CXX_FLAGS_${isthmus_build} "${flags}")
    set_property(DIRECTORY PROPERTY COMPILE_OPTIONS "")
    set(ISTHMUS_SHARED_HEADERS "")  # those of other flags
  endif()
endmacro()
# isthmus_unhurried(FILES...): files whose speed nobody feels, but whose headers' templates take long to optimise: what reads options,
# prints and writes reports.
function(isthmus_unhurried)
  if(CMAKE_BUILD_TYPE STREQUAL "Release" OR ISTHMUS_COVERAGE)
    set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS -O1)
  endif()
endfunction()
if(ISTHMUS_COVERAGE)
  # What is counted are the lines of src/ (src/CMakeLists.txt).
  target_link_options(isthmus_flags INTERFACE --coverage)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_library(isthmus_coverage_exit STATIC ${PROJECT_SOURCE_DIR}/cmake/coverage_exit.c)
    set_target_properties(isthmus_coverage_exit PROPERTIES POSITION_INDEPENDENT_CODE ON)
    target_link_options(isthmus_coverage_exit INTERFACE -Wl,--wrap=_exit,-u,__wrap__exit)
    target_link_libraries(isthmus_flags INTERFACE isthmus_coverage_exit)
  endif()
endif()
