#include "base/dynamic_library.hpp"

#include <gtest/gtest.h>

namespace ist {
namespace {

TEST(DynamicLibrary, a_library_that_is_there_gives_its_symbols) {
  const auto library = DynamicLibrary::open("libm.so.6");
  ASSERT_TRUE(library.ok()) << library.status().text();
  EXPECT_NE(library->find("cos"), nullptr);
  EXPECT_EQ(library->find("no_such_function_in_the_mathematics_library"), nullptr);
}

TEST(DynamicLibrary, a_library_that_is_not_there_is_an_error_that_names_it) {
  const auto library = DynamicLibrary::open("libnowhere_to_be_found.so.7");
  ASSERT_FALSE(library.ok());
  EXPECT_EQ(library.status().code(), IST_ERR_KIND);
  EXPECT_NE(library.status().text().find("libnowhere_to_be_found.so.7"), std::string::npos) << library.status().text();
}

}  // namespace
}  // namespace ist
