// The files of ISTHMUS_TRACE, read by another reader than what wrote them: every span that began has ended, and lies in its time.
//
// Who calls this : trace_test.cpp, trace_device_test.cpp.
// Threads        : one.
// Ownership      : values; a Folder is removed with all that is in it.
// Errors         : failures of the test that reads.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

namespace trace_file {

using Json = nlohmann::json;

class Folder {
 public:
  Folder() {
    std::string name = std::filesystem::temp_directory_path() / "isthmus-trace-XXXXXX";
    path_ = ::mkdtemp(name.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string operator/(const std::string& name) const { return path_ / name; }
  std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator{path_}, std::filesystem::directory_iterator{}));
  }

 private:
  std::filesystem::path path_;
};

struct Span {
  std::string category;
  std::string name;
  std::string id;
  double begin = 0;  // us
  double end = 0;
  Json args;
};

struct File {
  std::string process;
  std::vector<Span> spans;  // in the order in which they ended
  // The one of that kind with that tag; an empty one, and a failure, if there is none or several.
  Span one(const std::string& name, int tag) const {
    std::vector<Span> found;
    for (const Span& span : spans)
      if (span.name == name && span.args.value("tag", -1) == tag) found.push_back(span);
    EXPECT_EQ(1U, found.size()) << name << " with tag " << tag;
    return found.size() == 1 ? found[0] : Span{};
  }
  std::vector<Span> named(const std::string& name) const {
    std::vector<Span> found;
    for (const Span& span : spans)
      if (span.name == name) found.push_back(span);
    return found;
  }
};

// `whole`: the file was ended; else it may lack its end, as viewers allow. The process may have been killed while nothing was written.
inline File read(const std::string& name, int rank, bool whole = true) {
  std::ifstream stream(name);
  EXPECT_TRUE(stream.good()) << name;
  std::stringstream text;
  text << stream.rdbuf();
  Json events = Json::parse(text.str(), nullptr, false);
  if (!whole && events.is_discarded()) events = Json::parse(text.str() + "]", nullptr, false);
  File file;
  EXPECT_TRUE(events.is_array()) << name << ":\n" << text.str();
  if (!events.is_array()) return file;
  std::map<std::string, Span> begun;
  for (const Json& event : events) {
    EXPECT_EQ(rank, event.at("pid"));
    if (event.at("ph") == "M") {
      file.process = event.at("args").at("name");
      continue;
    }
    const std::string key = event.at("id").get<std::string>() + event.at("name").get<std::string>();
    if (event.at("ph") == "b") {
      EXPECT_FALSE(begun.contains(key)) << event;
      begun[key] = {event.at("cat"), event.at("name"), event.at("id"), event.at("ts"), 0, event.at("args")};
      continue;
    }
    EXPECT_EQ("e", event.at("ph").get<std::string>());
    const auto found = begun.find(key);
    if (found == begun.end()) {
      ADD_FAILURE() << "ends, and never began: " << event;
      continue;
    }
    found->second.end = event.at("ts");
    EXPECT_GE(found->second.end, found->second.begin) << event;
    EXPECT_EQ(found->second.category, event.at("cat").get<std::string>());
    file.spans.push_back(found->second);
    begun.erase(found);
  }
  EXPECT_TRUE(begun.empty()) << begun.size() << " spans never end";
  return file;
}

}  // namespace trace_file
