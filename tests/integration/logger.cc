// SPDX-License-Identifier: Apache-2.0
//
// A logger as `binary://` URIs name them: arguments KEY VALUE, the container's
// stdout on descriptor 3 and its stderr on 4, ready when it closes 5. Writes
// all it gets to the file named by the argument `file`. The SIGTERM at the end
// does not make it stop reading before the streams' end.

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <string_view>

namespace {

// Copies what there is; false at the end.
bool Copy(int from, int to, std::string_view mark) {
  char buffer[65536];
  const ssize_t count = read(from, buffer, sizeof(buffer));
  if (count <= 0) {
    return false;
  }
  std::string text;
  if (!mark.empty()) {
    text = mark;
  }
  text.append(buffer, static_cast<size_t>(count));
  return write(to, text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

std::string Env(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): one thread
  return value != nullptr ? value : "";
}

}  // namespace

int main(int argc, char** argv) {
  std::string file;
  bool fail = false;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view key = argv[i];
    if (key == "file") {
      file = argv[i + 1];
    }
    fail = fail || key == "fail";
  }
  if (fail) {
    return 1;
  }
  const int to = open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  const std::string begin =
      "begin " + Env("CONTAINER_NAMESPACE") + " " + Env("CONTAINER_ID") + "\n";
  if (to < 0 || write(to, begin.data(), begin.size()) < 0) {
    return 1;
  }
  signal(SIGTERM, SIG_IGN);
  close(5);
  pollfd polled[2] = {{3, POLLIN, 0}, {4, POLLIN, 0}};
  while (polled[0].fd >= 0 || polled[1].fd >= 0) {
    if (poll(polled, 2, -1) < 0) {
      continue;
    }
    if (polled[0].revents != 0 && !Copy(3, to, "")) {
      polled[0].fd = -1;
    }
    if (polled[1].revents != 0 && !Copy(4, to, "stderr: ")) {
      polled[1].fd = -1;
    }
  }
  return write(to, "end\n", 4) == 4 ? 0 : 1;
}
