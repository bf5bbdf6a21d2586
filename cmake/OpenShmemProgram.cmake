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

# isthmus_openshmem_kernels(NAME OUTPUT SOURCE.cu): the same of a program with kernels, by oshc++ over nvcc; in two steps, of which the compiler
# cache keeps the first.
function(isthmus_openshmem_kernels name output source)
  get_filename_component(folder ${output} DIRECTORY)
  file(MAKE_DIRECTORY ${folder})
  file(GLOB headers CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.h)
  file(GLOB device CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/isthmus/device/*.cuh)
  string(REPLACE ";" " " launcher "${CMAKE_CXX_COMPILER_LAUNCHER}")
  set(object ${CMAKE_CURRENT_BINARY_DIR}/${name}.o)
  add_custom_command(
    OUTPUT ${object}
    COMMAND ${CMAKE_COMMAND} -E env "OSHCXX_CXX=${launcher} ${ISTHMUS_NVCC_FOUND} -ccbin ${CMAKE_CXX_COMPILER}" ${CMAKE_BINARY_DIR}/bin/oshc++
            -std=c++17 -O2 -arch=sm_90 -Xcompiler=-Wall,-Wextra -c ${CMAKE_CURRENT_SOURCE_DIR}/${source} -o ${object}
    DEPENDS ${source} ${headers} ${device} ${CMAKE_BINARY_DIR}/shmem/include/shmem.h COMMENT "oshc++ over nvcc ${source}" VERBATIM)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -E env "OSHCXX_CXX=${ISTHMUS_NVCC_FOUND} -ccbin ${CMAKE_CXX_COMPILER}" ${CMAKE_BINARY_DIR}/bin/oshc++
            -cudart none ${object} -o ${output} ${ISTHMUS_CUDART} -lpthread -ldl -lrt
    DEPENDS ${object} isthmus_shmem isthmus VERBATIM)
  add_custom_target(${name} ALL DEPENDS ${output})
endfunction()
