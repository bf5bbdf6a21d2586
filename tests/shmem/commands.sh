#!/bin/sh
# commands.sh BIN SOURCES WORK: oshcc, oshc++ and oshrun do what other implementations' do, with the compilers that are here.
bin=$1
sources=$2
work=$3
bad=0
mkdir -p "$work"
cd "$work" || exit 1

# is WORDS COMMAND...: it ends well and prints the words.
is() {
  words=$1
  shift
  text=$("$@" 2>&1)
  status=$?
  if test $status -ne 0 || ! printf '%s\n' "$text" | grep -qF -e "$words"; then
    printf '%s\nended with %s and said:\n%s\nwhere this was expected: %s\n' "$*" $status "$text" "$words"
    bad=1
  fi
}

cp "$sources/arguments.c" .
cp arguments.c arguments.cpp
is "" "$bin/oshcc" -Wall -Wextra -Werror arguments.c -o "in one step"
is "" "$bin/oshcc" -c arguments.c
is "" "$bin/oshcc" arguments.o -o two_steps
is "" "$bin/oshc++" -Wall -Wextra -Werror arguments.cpp -o in_cpp
is "" "$bin/isthmus-cc" -std=c99 -pedantic -Werror arguments.c -o in_c99
printf 'extern "C" {\n#include <mpp/shmem.h>\n#include <mpp/shmemx.h>\n#include <mpp/pshmem.h>\n}\nint main() { shmem_init(); long l = 0; shmem_put(&l, &l, 1, 0); shmem_finalize(); }\n' > inside.cpp
is "" "$bin/oshc++" -Wall -Wextra -Werror inside.cpp -o inside
is "0 of 1:" "./in one step"
is "2 of 3: [-np] [7] [a b]" "$bin/oshrun" -np 3 "./in one step" -np 7 "a b"
is "1 of 2: [x]" "$bin/oshrun" -n 2 ./two_steps x
is "[1] 1 of 2:" "$bin/oshrun" -l -n 2 ./in_cpp
is "1 of 2: [--] [-n]" "$bin/oshrun" --grace 3 -np 2 ./in_c99 -- -n
is "-listhmus_shmem" "$bin/oshcc" -show arguments.c
is "arguments.c" "$bin/oshcc" --showme arguments.c
is "-I" "$bin/oshcc" --showme:compile
is "version" "$bin/oshcc" -v
is "" "$bin/oshcc" -r arguments.o -o together.o
is "-L" "$bin/oshc++" --showme:link
if command -v clang > /dev/null; then
  is "" env OSHCC_CC=clang "$bin/oshcc" arguments.c -o by_another
  is "1 of 2:" "$bin/oshrun" -n 2 ./by_another
fi
if "$bin/oshcc" > said 2>&1 || ! grep -q "no program is named" said; then
  echo "oshcc without a program: $(cat said)"
  bad=1
fi
mkdir -p unbuilt/bin
cp "$(readlink -f "$bin/oshcc")" unbuilt/bin/oshcc
if unbuilt/bin/oshcc arguments.c -o unbuilt/program > said 2>&1 || ! grep -q "cmake --build build --target isthmus_shmem" said; then
  echo "oshcc without its library: $(cat said)"
  bad=1
fi
if "$bin/oshrun" ./two_steps > said 2>&1 || ! grep -q "how many ranks to start" said; then
  echo "oshrun without a number: $(cat said)"
  bad=1
fi
# Nothing of the calls is named, and yet they are there for who looks them up.
printf '#define _GNU_SOURCE\n#include <dlfcn.h>\nint main(void) { return dlsym(RTLD_DEFAULT, "pshmem_int_put") == 0; }\n' > looked_up.c
is "" "$bin/oshcc" looked_up.c -o looked_up
is "" ./looked_up
exit $bad
