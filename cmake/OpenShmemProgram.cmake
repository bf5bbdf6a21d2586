# isthmus_openshmem_program(NAME OUTPUT SOURCE [options...]): a target NAME that makes OUTPUT as users do, by our own oshcc or oshc++.
function(isthmus_openshmem_program name output source)
  set(command oshcc)
  set(standard -std=c11)
  if(source MATCHES "\\.cpp$")
    set(command oshc++)
    set(standard -std=c++17)
  endif()
  set(flags -O2 -Wall -Wextra)
  if(ISTHMUS_WERROR)
    list(APPEND flags -Werror)
  endif()
  if(ISTHMUS_SANITIZE STREQUAL "thread")
    list(APPEND flags -fsanitize=thread)
  elseif(ISTHMUS_SANITIZE)
    list(APPEND flags -fsanitize=address,undefined -fno-sanitize-recover=all)
  endif()
  get_filename_component(folder ${output} DIRECTORY)
  file(MAKE_DIRECTORY ${folder})
  file(GLOB headers CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.h)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -E env OSHCC_CC=${CMAKE_C_COMPILER} OSHCXX_CXX=${CMAKE_CXX_COMPILER} ${CMAKE_BINARY_DIR}/bin/${command}
            ${standard} ${flags} ${ARGN} ${CMAKE_CURRENT_SOURCE_DIR}/${source} -o ${output} -lm
    DEPENDS ${source} ${headers} isthmus_shmem isthmus ${CMAKE_BINARY_DIR}/shmem/include/shmem.h COMMENT "${command} ${source}" VERBATIM)
  add_custom_target(${name} ALL DEPENDS ${output})
endfunction()
