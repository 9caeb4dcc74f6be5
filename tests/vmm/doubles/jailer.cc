// SPDX-License-Identifier: Apache-2.0
//
// Firecracker's `jailer`, of which the double keeps words, layout and user:
// BASE/NAME-OF-PROGRAM/ID/root, all of it that user's. The root stays the node's, where QEMU is.
// Source: firecracker 1.17, docs/jailer.md.
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/vmm/doubles/command_line.h"

namespace gantry::test {
namespace {

namespace fs = std::filesystem;

int Refuse(const char* what) {
  std::fprintf(stderr, "jailer: %s\n", what);
  return 1;
}

bool JoinNetwork(const std::string& netns) {
  if (netns.empty()) {
    return true;
  }
  const int fd = open(netns.c_str(), O_RDONLY | O_CLOEXEC);
  return fd >= 0 && setns(fd, CLONE_NEWNET) == 0;
}

int Main(int argc, char** argv) {
  const CommandLine line = ReadCommandLine(
      argc, argv,
      {"--id", "--exec-file", "--uid", "--gid", "--chroot-base-dir", "--netns", "--cgroup"},
      {"--new-pid-ns"});
  const std::string program = line.Value("--exec-file");
  const std::string id = line.Value("--id");
  const std::string name = fs::path(program).filename().string();
  if (!line.wrong.empty() || id.empty() || !line.values.contains("--uid") ||
      !line.values.contains("--gid")) {
    return Refuse("a word is wrong or missing");
  }
  if (name.find("firecracker") == std::string::npos) {
    return Refuse("the program's name has no 'firecracker' in it");
  }
  const std::string root =
      line.Value("--chroot-base-dir", "/srv/jailer") + "/" + name + "/" + id + "/root";
  fs::create_directories(root + "/run");
  const auto uid = static_cast<uid_t>(std::stoul(line.Value("--uid")));
  const auto gid = static_cast<gid_t>(std::stoul(line.Value("--gid")));
  if (chown(root.c_str(), uid, gid) != 0 || chown((root + "/run").c_str(), uid, gid) != 0) {
    return Refuse("the root cannot be given to the user");
  }
  if (!JoinNetwork(line.Value("--netns"))) {
    return Refuse("the network namespace cannot be joined");
  }
  if (setgroups(0, nullptr) != 0 || setgid(gid) != 0 || setuid(uid) != 0) {
    return Refuse("the user cannot be changed to");
  }
  std::vector<std::string> words = {program, "--id", id};
  words.insert(words.end(), line.rest.begin(), line.rest.end());
  std::vector<char*> all;
  for (std::string& word : words) {
    all.push_back(word.data());
  }
  all.push_back(nullptr);
  setenv("GANTRY_DOUBLE_ROOT", root.c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
  execv(program.c_str(), all.data());
  return Refuse("the program cannot be started");
}

}  // namespace
}  // namespace gantry::test

int main(int argc, char** argv) { return gantry::test::Main(argc, argv); }
