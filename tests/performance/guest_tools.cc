// SPDX-License-Identifier: Apache-2.0
//
// Each tool is one figure, or one end of a connection whose other end the benchmark has. They run
// as processes of a container, so what is wrong goes to standard error and is a status.
#include "tests/performance/guest_tools.h"

#include <fcntl.h>
#include <linux/vm_sockets.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include <gantry/unique_fd.h>

#include "tests/harness/host.h"
#include "tests/performance/samples.h"

namespace gantry::bench {
namespace {

namespace fs = std::filesystem;

constexpr size_t kPart = 65536;

int Complain(const char* what) {
  std::fprintf(stderr, "bench: %s: %s\n", what, std::strerror(errno));
  return EXIT_FAILURE;
}

UniqueFd DialHost(unsigned port) {
  UniqueFd socket(::socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_vm address{};
  address.svm_family = AF_VSOCK;
  address.svm_cid = VMADDR_CID_HOST;
  address.svm_port = port;
  if (socket &&
      connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    socket.reset();
  }
  return socket;
}

int FirstByte(const std::vector<std::string>& argv) {
  std::vector<char*> words;
  for (const std::string& word : argv) {
    words.push_back(const_cast<char*>(word.c_str()));
  }
  words.push_back(nullptr);
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    return Complain("make a pipe");
  }
  const auto begin = Clock::now();
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    execv(words[0], words.data());
    _exit(127);
  }
  close(ends[1]);
  char byte = 0;
  const bool came = read(ends[0], &byte, 1) == 1;
  const double took = MillisecondsSince(begin);
  int status = 0;
  waitpid(child, &status, 0);
  if (!came || status != 0) {
    std::fprintf(stderr, "bench: '%s' said nothing, status %d\n", words[0], status);
    return EXIT_FAILURE;
  }
  std::printf("%.3f\n", took);
  return EXIT_SUCCESS;
}

int Echo() {
  const UniqueFd host = DialHost(kEchoPort);
  if (!host) {
    return Complain("dial the host");
  }
  char byte = 0;
  while (read(host.get(), &byte, 1) == 1) {
    const pid_t child = fork();
    if (child == 0) {
      _exit(0);
    }
    if (waitpid(child, nullptr, 0) != child || write(host.get(), &byte, 1) != 1) {
      return Complain("answer the host");
    }
  }
  return EXIT_SUCCESS;
}

int Write(uint64_t bytes) {
  const UniqueFd host = DialHost(kBulkPort);
  if (!host) {
    return Complain("dial the host");
  }
  const std::vector<char> buffer(kPart, 'x');
  while (bytes > 0) {
    const ssize_t put = write(host.get(), buffer.data(), std::min<uint64_t>(bytes, buffer.size()));
    if (put <= 0) {
      return Complain("write to the host");
    }
    bytes -= static_cast<uint64_t>(put);
  }
  // Whoever reads ends it.
  char byte = 0;
  return read(host.get(), &byte, 1) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/// How many files there are; -1: one cannot be read.
int ReadAll(const std::string& folder) {
  std::vector<char> buffer(kPart);
  int count = 0;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) {
      continue;
    }
    const UniqueFd file(open(entry.path().c_str(), O_RDONLY | O_CLOEXEC));
    ssize_t got = file ? 1 : -1;
    while (got > 0) {
      got = read(file.get(), buffer.data(), buffer.size());
    }
    if (got < 0) {
      return -1;
    }
    ++count;
  }
  return count;
}

int Read(const std::string& folder) {
  sync();
  const UniqueFd drop(open("/proc/sys/vm/drop_caches", O_WRONLY | O_CLOEXEC));
  if (!drop || write(drop.get(), "3", 1) != 1) {
    return Complain("drop caches");
  }
  const auto begin = Clock::now();
  const int count = ReadAll(folder);
  const double cold = MillisecondsSince(begin);
  const auto again = Clock::now();
  if (count <= 0 || ReadAll(folder) != count) {
    return Complain("read files");
  }
  std::printf("%.3f %.3f\n", cold, MillisecondsSince(again));
  return EXIT_SUCCESS;
}

unsigned long NumberBehind(const std::string& text, const char* word) {
  const size_t at = text.find(word);
  return at == std::string::npos ? 0 : std::strtoul(text.c_str() + at + strlen(word), nullptr, 10);
}

int Agent() {
  const std::string text = e2e::ReadText("/proc/1/status");
  if (!text.contains("gantry-agent") && !text.starts_with("Name:\tinit")) {
    std::fprintf(stderr, "bench: the first process is another one: %.40s\n", text.c_str());
    return EXIT_FAILURE;
  }
  std::printf("%lu %lu\n", NumberBehind(text, "VmRSS:"), NumberBehind(text, "RssAnon:"));
  return EXIT_SUCCESS;
}

}  // namespace

std::optional<int> GuestTool(const std::vector<std::string>& words) {
  if (words.empty()) {
    return {};
  }
  if (words[0] == "--guest-first-byte" && words.size() > 1) {
    return FirstByte({words.begin() + 1, words.end()});
  }
  if (words[0] == "--guest-echo") {
    return Echo();
  }
  if (words[0] == "--guest-write" && words.size() == 2) {
    return Write(std::strtoull(words[1].c_str(), nullptr, 10));
  }
  if (words[0] == "--guest-read" && words.size() == 2) {
    return Read(words[1]);
  }
  if (words[0] == "--guest-agent") {
    return Agent();
  }
  return {};
}

}  // namespace gantry::bench
