# libisthmus.so: every room from base to face in one shared library that shows the C interface and nothing else.
set(isthmus_library_rooms ${ISTHMUS_ROOMS})
list(REMOVE_ITEM isthmus_library_rooms isthmus_cli)

# Their objects, not their archives: each exactly once, whoever names whom.
set(isthmus_library_objects "")
foreach(room ${isthmus_library_rooms})
  list(APPEND isthmus_library_objects $<TARGET_OBJECTS:${room}>)
endforeach()
add_library(isthmus SHARED ${isthmus_library_objects})
add_library(isthmus::isthmus ALIAS isthmus)
set_target_properties(isthmus PROPERTIES VERSION ${PROJECT_VERSION}
                      SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
                      INSTALL_RPATH "" INSTALL_RPATH_USE_LINK_PATH OFF
                      LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/exported.map)
target_link_libraries(isthmus PRIVATE isthmus_flags Threads::Threads ${CMAKE_DL_LIBS})
target_include_directories(isthmus PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                           $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_options(isthmus PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/exported.map -Wl,--as-needed)
if(NOT ISTHMUS_SANITIZE)
  target_link_options(isthmus PRIVATE -Wl,--no-undefined)
endif()
