#include "common/json_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <system_error>

#include "common/program.hpp"

namespace example {
namespace {

std::string text_of(const std::string& path, int code) {
  return "--json: \"" + path + "\" cannot be written: " + std::generic_category().message(code) +
         "; name a file in a folder that there is";
}

// Pipes and the like are not opened, which may wait for their reader.
int why_not(const std::string& path) {
  struct stat found {};
  if (stat(path.c_str(), &found) == 0) {
    if (S_ISDIR(found.st_mode)) return EISDIR;
    return access(path.c_str(), W_OK) == 0 ? 0 : errno;
  }
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) return errno == EEXIST ? 0 : errno;  // a link to what is not there yet
  close(file);
  unlink(path.c_str());
  return 0;
}

}  // namespace

void must_be_writable(const isthmus::Comm& comm, const std::string& path) {
  if (path.empty()) return;
  int code = comm.rank() == 0 ? why_not(path) : 0;
  comm.bcast(std::span(&code, 1), 0);
  if (code != 0) throw Failure(text_of(path, code));
}

void write_text(const std::string& path, const std::string& text) {
  errno = 0;
  std::ofstream file(path);
  file << text;
  if (!file.flush()) throw std::runtime_error(text_of(path, errno != 0 ? errno : EIO));
}

}  // namespace example
