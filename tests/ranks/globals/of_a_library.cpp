// Variables of a shared library, which are never symmetric.
extern "C" {
[[gnu::visibility("default")]] int of_library_given = 3;
[[gnu::visibility("default")]] int of_library_zeroed;
}
