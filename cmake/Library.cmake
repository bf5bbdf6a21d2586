# libisthmus.so: every room from base to face in one shared library that shows the C interface and nothing else.
set(isthmus_library_rooms ${ISTHMUS_ROOMS})
list(REMOVE_ITEM isthmus_library_rooms isthmus_cli)

# CMake wants a source; all of the library comes from the rooms.
set(isthmus_library_source ${CMAKE_CURRENT_BINARY_DIR}/library.cpp)
file(CONFIGURE OUTPUT ${isthmus_library_source} CONTENT "#include <isthmus/isthmus.h>\n")
add_library(isthmus SHARED ${isthmus_library_source})
add_library(isthmus::isthmus ALIAS isthmus)
set_target_properties(isthmus PROPERTIES VERSION ${PROJECT_VERSION}
                      SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
                      LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/exported.map)
target_link_libraries(isthmus PRIVATE isthmus_flags)
# Rooms also name each other; all mentions of one must agree that it is taken whole.
foreach(room ${isthmus_library_rooms})
  set_property(TARGET isthmus PROPERTY LINK_LIBRARY_OVERRIDE_${room} WHOLE_ARCHIVE)
  target_link_libraries(isthmus PRIVATE ${room})
endforeach()
target_include_directories(isthmus PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                           $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_options(isthmus PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/exported.map -Wl,--as-needed)
if(NOT ISTHMUS_SANITIZE)
  target_link_options(isthmus PRIVATE -Wl,--no-undefined)
endif()
