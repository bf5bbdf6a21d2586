# The CUDA parts: found, or left out and said so in one line.
#
#   ISTHMUS_CUDA               AUTO (default), ON: it is an error if no compiler is found, OFF
#   ISTHMUS_NVCC               a compiler to use instead of the first one found
#   ISTHMUS_CUDA_IMAGES        a build folder of the same sources, whose device code is taken instead of compiled again; not kept
#                              for the next time CMake runs here, since the other folder may be older by then
#   ISTHMUS_HAVE_CUDA          result: TRUE or FALSE
#   ISTHMUS_HAVE_NVTX          result: TRUE where nvtx3/nvToolsExt.h lies beside cuda.h
#   isthmus_cuda_headers       target: cuda.h, and the definition ISTHMUS_HAVE_CUDA=1; empty without CUDA
#   isthmus_cuda_objects(TARGET sources.cu... [CUDART] [OPTIONS options...])
#                              compiles with nvcc and adds the objects to TARGET, which gives include folders and
#                              definitions; CUDART links the static runtime, so that the program starts without a driver.
#   isthmus_cuda_image(TARGET source.cu SYMBOL [options...])
#                              compiles with nvcc and adds the device code alone to TARGET, as bytes that the C symbol names and
#                              the driver loads at run time.
#
# A compiler is looked for on PATH, under CUDA_HOME and CUDA_PATH, in the usual folder, and in the wheels of the project's
# own environment (.venv, see tools/setup.sh). CMake's own CUDA language is not used: it wants one of the first places and
# fails the whole configuration where there is none.
set(ISTHMUS_CUDA AUTO CACHE STRING "CUDA parts: AUTO, ON or OFF")
set_property(CACHE ISTHMUS_CUDA PROPERTY STRINGS AUTO ON OFF)
set(ISTHMUS_NVCC "" CACHE FILEPATH "nvcc to use instead of the first one found")
set(images "${ISTHMUS_CUDA_IMAGES}")
unset(ISTHMUS_CUDA_IMAGES CACHE)
set(ISTHMUS_CUDA_IMAGES "${images}")
set(ISTHMUS_HAVE_CUDA FALSE)
set(ISTHMUS_HAVE_NVTX FALSE)
add_library(isthmus_cuda_headers INTERFACE)

# Machine code for Hopper; every other GPU from Turing on compiles the PTX at load time.
set(ISTHMUS_CUDA_CODE -gencode arch=compute_90,code=sm_90 -gencode arch=compute_75,code=compute_75)

# Can this nvcc with our host compiler make an object? Sets `answer`, and `reason` if not.
function(isthmus_try_nvcc nvcc answer reason)
  set(probe ${CMAKE_BINARY_DIR}/CMakeFiles/isthmus_cuda_probe)
  file(WRITE ${probe}.cu
       "#include <concepts>\n__global__ void fill(int* a) { a[threadIdx.x] = 1; }\nint main() { fill<<<1, 1>>>(nullptr); }\n")
  execute_process(
    COMMAND ${nvcc} -std=c++20 -ccbin ${CMAKE_CXX_COMPILER} ${ISTHMUS_CUDA_CODE} -c ${probe}.cu -o ${probe}.o
    RESULT_VARIABLE status OUTPUT_VARIABLE text ERROR_VARIABLE text)
  if(status EQUAL 0)
    set(${answer} TRUE PARENT_SCOPE)
  else()
    string(REGEX REPLACE "[\r\n]+" " / " text "${text}")
    string(SUBSTRING "${text}" 0 300 text)
    set(${answer} FALSE PARENT_SCOPE)
    set(${reason} "${nvcc} cannot compile here: ${text}" PARENT_SCOPE)
  endif()
endfunction()

function(isthmus_find_nvcc)
  file(GLOB wheels ${PROJECT_SOURCE_DIR}/.venv/lib/python3*/site-packages/nvidia/cu*/bin/nvcc)
  find_program(on_path nvcc NO_CACHE NO_CMAKE_PATH NO_CMAKE_SYSTEM_PATH)
  if(ISTHMUS_NVCC AND NOT EXISTS "${ISTHMUS_NVCC}")
    message(FATAL_ERROR "ISTHMUS_NVCC names ${ISTHMUS_NVCC}, and there is no such file: name an nvcc, or leave it empty to look for one")
  endif()
  set(reason "no nvcc on PATH, under CUDA_HOME, in /usr/local/cuda or in .venv")
  foreach(candidate ${ISTHMUS_NVCC} ${on_path} $ENV{CUDA_HOME}/bin/nvcc $ENV{CUDA_PATH}/bin/nvcc /usr/local/cuda/bin/nvcc
                    ${wheels})
    if(NOT EXISTS ${candidate})
      continue()
    endif()
    get_filename_component(nvcc ${candidate} REALPATH)
    # The probe takes seconds, so its answer is kept while compilers stay the same.
    set(key "${nvcc} ${CMAKE_CXX_COMPILER} ${CMAKE_CXX_COMPILER_VERSION}")
    if(NOT ISTHMUS_NVCC_PROVED STREQUAL key)
      isthmus_try_nvcc(${nvcc} works reason)
      if(NOT works)
        continue()
      endif()
      set(ISTHMUS_NVCC_PROVED "${key}" CACHE INTERNAL "")
    endif()
    get_filename_component(top ${nvcc} DIRECTORY)
    get_filename_component(top ${top} DIRECTORY)
    find_path(include cuda.h PATHS ${top}/include ${top}/targets/x86_64-linux/include ${top}/targets/sbsa-linux/include
              NO_CACHE)
    find_library(cudart NAMES libcudart_static.a
                 PATHS ${top}/lib ${top}/lib64 ${top}/targets/x86_64-linux/lib ${top}/targets/sbsa-linux/lib NO_CACHE)
    if(NOT include OR NOT cudart)
      set(reason "${nvcc} has no cuda.h or libcudart_static.a beside it")
      continue()
    endif()
    set(ISTHMUS_NVCC_FOUND ${nvcc} PARENT_SCOPE)
    set(ISTHMUS_CUDA_INCLUDE ${include} PARENT_SCOPE)
    set(ISTHMUS_CUDART ${cudart} PARENT_SCOPE)
    return()
  endforeach()
  set(ISTHMUS_NVCC_REASON "${reason}" PARENT_SCOPE)
endfunction()

if(ISTHMUS_CUDA)
  isthmus_find_nvcc()
  if(ISTHMUS_NVCC_FOUND)
    set(ISTHMUS_HAVE_CUDA TRUE)
    target_include_directories(isthmus_cuda_headers SYSTEM INTERFACE ${ISTHMUS_CUDA_INCLUDE})
    target_compile_definitions(isthmus_cuda_headers INTERFACE ISTHMUS_HAVE_CUDA=1)
    message(STATUS "CUDA parts: compiled by ${ISTHMUS_NVCC_FOUND}")
    if(EXISTS ${ISTHMUS_CUDA_INCLUDE}/nvtx3/nvToolsExt.h)
      set(ISTHMUS_HAVE_NVTX TRUE)
    endif()
  elseif(ISTHMUS_CUDA STREQUAL "AUTO")
    message(STATUS "CUDA parts: left out (${ISTHMUS_NVCC_REASON})")
  else()
    message(FATAL_ERROR "ISTHMUS_CUDA=ON, but ${ISTHMUS_NVCC_REASON}; name one with -DISTHMUS_NVCC=, or run tools/setup.sh")
  endif()
else()
  message(STATUS "CUDA parts: left out (ISTHMUS_CUDA=OFF)")
endif()

function(isthmus_cuda_objects target)
  cmake_parse_arguments(CUDA "CUDART" "" "OPTIONS" ${ARGN})
  if(NOT ISTHMUS_HAVE_CUDA)
    message(FATAL_ERROR "isthmus_cuda_objects(${target}): call it only if(ISTHMUS_HAVE_CUDA)")
  endif()
  set(flags -std=c++20 -O3 -ccbin ${CMAKE_CXX_COMPILER} ${ISTHMUS_CUDA_CODE} -lineinfo
            -Xcompiler=-fPIC,-Wall,-Wextra,-fvisibility=hidden ${CUDA_OPTIONS})
  if(ISTHMUS_WERROR)
    list(APPEND flags -Werror all-warnings -Xcompiler=-Werror)
  endif()
  # The system's own folder named again would hide the compiler's headers behind it.
  set(folders "$<FILTER:$<TARGET_PROPERTY:${target},INCLUDE_DIRECTORIES>,EXCLUDE,^/usr/include$>")
  set(definitions "$<TARGET_PROPERTY:${target},COMPILE_DEFINITIONS>")
  foreach(source ${CUDA_UNPARSED_ARGUMENTS})
    get_filename_component(name ${source} NAME)
    set(object ${CMAKE_CURRENT_BINARY_DIR}/${target}.${name}.o)
    add_custom_command(
      OUTPUT ${object}
      COMMAND ${CMAKE_CXX_COMPILER_LAUNCHER} ${ISTHMUS_NVCC_FOUND} ${flags}
              "$<$<BOOL:${folders}>:-I$<JOIN:${folders},;-I>>" "$<$<BOOL:${definitions}>:-D$<JOIN:${definitions},;-D>>"
              -MD -MT ${object} -MF ${object}.d -c ${CMAKE_CURRENT_SOURCE_DIR}/${source} -o ${object}
      DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${source} DEPFILE ${object}.d
      COMMENT "nvcc ${name}" COMMAND_EXPAND_LISTS VERBATIM)
    set_source_files_properties(${object} PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
    target_sources(${target} PRIVATE ${object})
  endforeach()
  if(CUDA_CUDART)
    target_link_libraries(${target} PRIVATE ${ISTHMUS_CUDART} Threads::Threads ${CMAKE_DL_LIBS} rt)
  endif()
endfunction()

function(isthmus_cuda_image target source symbol)
  get_filename_component(name ${source} NAME_WE)
  set(image ${CMAKE_CURRENT_BINARY_DIR}/${name}.fatbin)
  set(flags -std=c++20 -O3 -ccbin ${CMAKE_CXX_COMPILER} ${ISTHMUS_CUDA_CODE} -Xcompiler=-Wall,-Wextra ${ARGN})
  if(ISTHMUS_WERROR)
    list(APPEND flags -Werror all-warnings -Xcompiler=-Werror)
  endif()
  file(RELATIVE_PATH place ${CMAKE_BINARY_DIR} ${image})
  if(ISTHMUS_CUDA_IMAGES AND EXISTS ${ISTHMUS_CUDA_IMAGES}/${place})
    set(known ${ISTHMUS_CUDA_IMAGES}/${place})
    add_custom_command(OUTPUT ${image} COMMAND ${CMAKE_COMMAND} -E copy ${known} ${image} DEPENDS ${known}
                       COMMENT "${name}, device code: taken from ${known}" VERBATIM)
  else()
    add_custom_command(
      OUTPUT ${image}
      COMMAND ${ISTHMUS_NVCC_FOUND} ${flags} -I${PROJECT_SOURCE_DIR}/src -I${PROJECT_SOURCE_DIR}/include
              -MD -MT ${image} -MF ${image}.d -fatbin ${CMAKE_CURRENT_SOURCE_DIR}/${source} -o ${image}
      DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${source} DEPFILE ${image}.d
      COMMENT "nvcc ${source}, device code" VERBATIM)
  endif()
  # The assembler takes the bytes in as they are; written out as numbers they would be a source of megabytes.
  set(bytes ${CMAKE_CURRENT_BINARY_DIR}/${name}_image.cpp)
  file(CONFIGURE OUTPUT ${bytes} @ONLY CONTENT [[
__asm__(".pushsection .rodata\n"
        ".balign 64\n"
        ".globl @symbol@\n"
        ".hidden @symbol@\n"
        ".type @symbol@, %object\n"
        "@symbol@:\n"
        ".incbin \"@image@\"\n"
        ".size @symbol@, . - @symbol@\n"
        ".popsection\n");
]])
  # The target may be another folder's, where this folder's commands and properties are not seen by themselves.
  add_custom_target(${target}_${name} DEPENDS ${image})
  add_dependencies(${target} ${target}_${name})
  # By itself: a file of several would not depend on the image.
  set_source_files_properties(${bytes} TARGET_DIRECTORY ${target} PROPERTIES OBJECT_DEPENDS ${image} SKIP_UNITY_BUILD_INCLUSION ON
                              SKIP_PRECOMPILE_HEADERS ON)
  target_sources(${target} PRIVATE ${bytes})
endfunction()
