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
elseif(ISTHMUS_SANITIZE)
  message(FATAL_ERROR "ISTHMUS_SANITIZE=${ISTHMUS_SANITIZE}: expected address+undefined, thread, or nothing")
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND (ISTHMUS_COVERAGE OR ISTHMUS_SANITIZE))
  # Instrumented code hides from GCC that an optional was looked at before its value; the release build keeps the warning.
  target_compile_options(isthmus_flags INTERFACE -Wno-maybe-uninitialized)
endif()
if(ISTHMUS_COVERAGE)
  # Counters are added to by several threads; plain additions would lose some, and now and then make one negative.
  target_compile_options(isthmus_flags INTERFACE --coverage -fprofile-update=atomic)
  target_link_options(isthmus_flags INTERFACE --coverage)
endif()
