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
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND (ISTHMUS_COVERAGE OR ISTHMUS_SANITIZE))
  # Instrumented code hides from GCC that an optional was looked at before its value; the release build keeps the warning.
  target_compile_options(isthmus_flags INTERFACE -Wno-maybe-uninitialized)
  # The same of the bounds of short strings, where little is optimised.
  if(ISTHMUS_COVERAGE)
    target_compile_options(isthmus_flags INTERFACE -Wno-array-bounds -Wno-restrict -Wno-stringop-overflow
                           -Wno-stringop-overread)
  endif()
endif()
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
