// Two shared libraries of one process whose kernels include isthmus/device.cuh and exchange with each other.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <isthmus/team.h>

#include <cstdlib>
#include <string>

namespace {

struct Library {
  explicit Library(const char* path) : handle(dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
    if (handle == nullptr) ADD_FAILURE() << dlerror();
  }
  template <class Call>
  Call* call(const char* name) const {
    void* const found = handle == nullptr ? nullptr : dlsym(handle, name);
    EXPECT_NE(found, nullptr) << name;
    return reinterpret_cast<Call*>(found);
  }
  void* handle;
};
std::string text(const char* problem) { return problem == nullptr ? "" : problem; }

TEST(TwoLibraries, ExchangeByKernelsOfTheirOwn) {
  // A kernel that waits must not hold up the loading of the next one.
  setenv("CUDA_MODULE_LOADING", "EAGER", 1);
  const Library libraries[] = {Library(LIBRARY_OF_PE_0), Library(LIBRARY_OF_PE_1)};
  if (libraries[0].call<int()>("devices")() == 0)
    GTEST_SKIP() << "not covered here: kernels of two libraries; there is no CUDA device";
  ist_team_view views[2];
  ASSERT_EQ(text(libraries[0].call<const char*(ist_team_view*)>("make")(views)), "");
  for (const Library& one : libraries) ASSERT_EQ(text(one.call<const char*()>("prepare")()), "");
  for (const Library& one : libraries) ASSERT_EQ(text(one.call<const char*(const ist_team_view*)>("begin")(views)), "");
  for (const Library& one : libraries) EXPECT_EQ(text(one.call<const char*()>("end")()), "");
}

}  // namespace
