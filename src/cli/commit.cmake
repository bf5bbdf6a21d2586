# Writes OUTPUT with GIVEN, the word of whoever brought the sources, or else the commit of SOURCE; leaves it alone if nothing changed.
set(commit "${GIVEN}")
find_program(git git)
if(commit STREQUAL "" AND git AND EXISTS ${SOURCE}/.git)
  execute_process(COMMAND ${git} -C ${SOURCE} rev-parse --short=12 HEAD OUTPUT_VARIABLE commit ERROR_QUIET
                  OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed)
  if(failed)
    set(commit "")
  else()
    # What is built from changes that were not committed must not pass for the commit.
    execute_process(COMMAND ${git} -C ${SOURCE} status --porcelain --untracked-files=no -- src include cmake CMakeLists.txt
                    OUTPUT_VARIABLE changes ERROR_QUIET RESULT_VARIABLE failed)
    if(failed OR NOT changes STREQUAL "")
      string(APPEND commit "-changed")
    endif()
  endif()
endif()
if(commit STREQUAL "")
  set(commit "unknown")
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT [[
// Written by the build.
#pragma once
#define ISTHMUS_COMMIT "@commit@"
]] @ONLY)
