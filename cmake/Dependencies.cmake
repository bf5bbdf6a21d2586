# Everything the build needs from outside, found the same way everywhere: a header, and perhaps a library.
#
# With ISTHMUS_DEPS_DIR (made by tools/fetch_deps.sh) that folder comes before the system. The vendors' own CMake packages
# are not used: those of an unpacked folder point back into the system, and spdlog's would make the library depend on fmt.
include(GNUInstallDirs)
find_package(Threads REQUIRED)
set(isthmus_missing "")

# isthmus_dependency(TARGET HEADER file PACKAGE name [LIBRARY names in order of preference] [NEEDS targets] [DEFINITIONS ...])
function(isthmus_dependency target)
  cmake_parse_arguments(IT "" "HEADER;PACKAGE" "LIBRARY;NEEDS;DEFINITIONS" ${ARGN})
  string(MAKE_C_IDENTIFIER "ISTHMUS_DEP_${target}" variable)
  find_path(${variable}_INCLUDE ${IT_HEADER} HINTS ${ISTHMUS_DEPS_DIR}/usr/include NO_CMAKE_INSTALL_PREFIX)
  mark_as_advanced(${variable}_INCLUDE)
  if(IT_LIBRARY)
    # Ours are the same words on every machine: a static library where there is one, else the shared one with an rpath.
    find_library(${variable}_LIBRARY NAMES ${IT_LIBRARY}
                 HINTS ${ISTHMUS_DEPS_DIR}/usr/lib/${CMAKE_LIBRARY_ARCHITECTURE} ${ISTHMUS_DEPS_DIR}/usr/lib)
    mark_as_advanced(${variable}_LIBRARY)
  endif()
  if(NOT ${variable}_INCLUDE OR (IT_LIBRARY AND NOT ${variable}_LIBRARY))
    set(isthmus_missing ${isthmus_missing} ${IT_PACKAGE} PARENT_SCOPE)
    return()
  endif()
  add_library(${target} INTERFACE IMPORTED GLOBAL)
  # The system's own folder named again would hide the compiler's headers behind it.
  if(NOT ${variable}_INCLUDE IN_LIST CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES)
    target_include_directories(${target} SYSTEM INTERFACE ${${variable}_INCLUDE})
  endif()
  if(IT_DEFINITIONS)
    target_compile_definitions(${target} INTERFACE ${IT_DEFINITIONS})
  endif()
  if(IT_LIBRARY)
    target_link_libraries(${target} INTERFACE ${${variable}_LIBRARY})
    if(ISTHMUS_DEPS_DIR)
      # The old kind of rpath also serves the libraries' own needs.
      target_link_options(${target} INTERFACE -Wl,--disable-new-dtags)
    endif()
  endif()
  target_link_libraries(${target} INTERFACE ${IT_NEEDS})
endfunction()

isthmus_dependency(nlohmann_json::nlohmann_json HEADER nlohmann/json.hpp PACKAGE nlohmann-json3-dev)
isthmus_dependency(CLI11::CLI11 HEADER CLI/CLI.hpp PACKAGE libcli11-dev)
isthmus_dependency(fmt::fmt_header_only HEADER fmt/format.h PACKAGE libfmt-dev DEFINITIONS FMT_HEADER_ONLY)
isthmus_dependency(spdlog::spdlog_header_only HEADER spdlog/spdlog.h PACKAGE libspdlog-dev
                   DEFINITIONS SPDLOG_FMT_EXTERNAL NEEDS fmt::fmt_header_only)
isthmus_dependency(PkgConfig::HWLOC HEADER hwloc.h LIBRARY hwloc PACKAGE libhwloc-dev)
isthmus_dependency(ZLIB::ZLIB HEADER zlib.h LIBRARY libz.a z PACKAGE zlib1g-dev)
isthmus_dependency(PNG::PNG HEADER png.h LIBRARY libpng16.a png16 NEEDS ZLIB::ZLIB m PACKAGE libpng-dev)
if(ISTHMUS_TESTS)
  isthmus_dependency(GTest::gtest HEADER gtest/gtest.h LIBRARY gtest NEEDS Threads::Threads PACKAGE libgtest-dev)
  isthmus_dependency(GTest::gtest_main HEADER gtest/gtest.h LIBRARY gtest_main NEEDS GTest::gtest PACKAGE libgtest-dev)
  isthmus_dependency(GTest::gmock HEADER gmock/gmock.h LIBRARY gmock NEEDS GTest::gtest PACKAGE libgmock-dev)
  isthmus_dependency(GTest::gmock_main HEADER gmock/gmock.h LIBRARY gmock_main NEEDS GTest::gmock PACKAGE libgmock-dev)
endif()

# OpenCL itself is loaded at run time; only its headers are needed.
find_path(OPENCL_HEADERS CL/cl.h HINTS ${ISTHMUS_DEPS_DIR}/usr/include)
if(NOT OPENCL_HEADERS)
  list(APPEND isthmus_missing opencl-c-headers)
endif()

if(isthmus_missing)
  list(REMOVE_DUPLICATES isthmus_missing)
  list(JOIN isthmus_missing " " isthmus_missing)
  message(FATAL_ERROR "missing development files of: ${isthmus_missing}\n"
                      "Install these packages (tools/setup.sh does it), or give a folder that holds them with "
                      "-DISTHMUS_DEPS_DIR= (tools/fetch_deps.sh prepares one).")
endif()
