# What a user gets: headers, library, command, manual page, and two ways to find them (CMake, pkg-config).
include(CMakePackageConfigHelpers)
set(isthmus_package ${CMAKE_INSTALL_LIBDIR}/cmake/isthmus)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS isthmus EXPORT isthmusTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET isthmus_program)
  install(TARGETS isthmus_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
if(TARGET isthmus_shmem)
  install(DIRECTORY ${CMAKE_BINARY_DIR}/shmem/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} PATTERN isthmus EXCLUDE)
  install(TARGETS isthmus_shmem EXPORT isthmusTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  foreach(command oshcc oshc++ oshrun oshcxx oshCC isthmus-cc isthmus-c++)
    install(PROGRAMS ${CMAKE_BINARY_DIR}/bin/${command} DESTINATION ${CMAKE_INSTALL_BINDIR})
  endforeach()
endif()
install(FILES ${CMAKE_BINARY_DIR}/man/isthmus.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 OPTIONAL)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

install(EXPORT isthmusTargets NAMESPACE isthmus:: FILE isthmusTargets.cmake DESTINATION ${isthmus_package})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/isthmusConfig.cmake.in ${CMAKE_BINARY_DIR}/isthmusConfig.cmake
                              INSTALL_DESTINATION ${isthmus_package})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/isthmusConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/isthmusConfig.cmake ${CMAKE_BINARY_DIR}/isthmusConfigVersion.cmake
        DESTINATION ${isthmus_package})

# The prefix is found from the file's own place, so that an installed folder can be moved.
file(RELATIVE_PATH isthmus_up ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" isthmus_up "${isthmus_up}")
foreach(description isthmus isthmus-shmem)
  if(description STREQUAL "isthmus" OR TARGET isthmus_shmem)
    configure_file(${PROJECT_SOURCE_DIR}/cmake/${description}.pc.in ${CMAKE_BINARY_DIR}/${description}.pc @ONLY)
    install(FILES ${CMAKE_BINARY_DIR}/${description}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
  endif()
endforeach()
