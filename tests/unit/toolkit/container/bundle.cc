// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/toolkit/container/bundle.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <utility>

#include <gtest/gtest.h>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>

namespace gantry::container {
namespace {

constexpr const char* kNamespaces =
    R"([{"type": "pid"}, {"type": "mount"}, {"type": "uts"}, {"type": "ipc"}])";

struct Pipe {
  UniqueFd in;
  UniqueFd out;
};

Pipe MakePipe() {
  int ends[2];
  EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

std::string Quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
    }
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    out += c;
  }
  return out + "\"";
}

std::string AlsoMembers(const std::string& members) {
  return members.empty() ? "" : ", " + members;
}

}  // namespace

std::string Drain(int fd) {
  std::string text;
  char part[4096];
  for (;;) {
    const ssize_t got = ::read(fd, part, sizeof(part));
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got <= 0) {
      return text;
    }
    text.append(part, static_cast<size_t>(got));
  }
}

std::string EndOf(pid_t pid) {
  int status = 0;
  if (::waitpid(pid, &status, 0) != pid) {
    return "not a child";
  }
  return WIFSIGNALED(status) ? Format("signal {}", WTERMSIG(status))
                             : Format("exit {}", WEXITSTATUS(status));
}

Bundle::Bundle() {
  char name[] = "/tmp/gantry-make-XXXXXX";
  path_ = ::mkdtemp(name);
  // A container in a user namespace goes through it.
  EXPECT_EQ(::chmod(path_.c_str(), 0755), 0);
  for (const char* const folder : {"", "/etc", "/bin", "/proc", "/dev", "/sys", "/tmp"}) {
    EXPECT_EQ(::mkdir(InRoot(folder).c_str(), 0755), 0) << folder;
    EXPECT_EQ(::chmod(InRoot(folder).c_str(), 0755), 0) << folder;
  }
  std::ofstream(InRoot("/etc/passwd"))
      << "other:x:7:7::/other:/bin/sh\nu:x:77:7::/home/of77:/bin/sh\n";
  std::ifstream from("/bin/busybox", std::ios::binary);
  std::ofstream to(InRoot("/bin/busybox"), std::ios::binary);
  to << from.rdbuf();
  to.close();
  EXPECT_EQ(::chmod(InRoot("/bin/busybox").c_str(), 0755), 0);
  for (const char* const applet :
       {"sh", "cat", "grep", "ls", "hostname", "env", "sort", "uname", "id", "cut", "readlink",
        "stat", "mkdir", "tty", "stty", "ip", "sleep"}) {
    EXPECT_EQ(::symlink("busybox", InRoot(std::string("/bin/") + applet).c_str()), 0);
  }
}

Bundle::~Bundle() { IgnoreError(RemoveTree(path_), "the next set-up takes another name"); }

std::string Bundle::ProcessOf(const Config& config) {
  return Format(R"({{"args": ["sh", "-c", {}], "env": ["PATH=/bin", "A=b"], "cwd": {},
                     "user": {}{}}})",
                Quoted(config.script), Quoted(config.cwd), config.user,
                AlsoMembers(config.process));
}

std::string Bundle::TextOf(const Config& config) {
  return Format(
      R"({{"ociVersion": "1.0.2", "root": {{"path": "rootfs"}},
          "process": {},
          "mounts": [{{"destination": "/proc", "type": "proc", "source": "proc"}}{}],
          "linux": {{"namespaces": {}{}}}{}}})",
      ProcessOf(config), AlsoMembers(config.mounts),
      config.namespaces.empty() ? kNamespaces : config.namespaces, AlsoMembers(config.linux_part),
      AlsoMembers(config.top));
}

Result<MakeRequest> Bundle::RequestOf(const Config& config) const {
  MakeRequest request;
  GANTRY_TRY(request.spec, oci::ParseSpec(TextOf(config), path_ + "/config.json"));
  request.bundle = path_;
  return request;
}

std::string Bundle::Run(const Config& config) const {
  auto request = RequestOf(config);
  if (!request) {
    return request.error().message;
  }
  Pipe output = MakePipe();
  const Pipe input = MakePipe();
  request->streams = {input.in.get(), output.out.get(), output.out.get()};
  auto made = Make(*request);
  output.out.reset();
  if (!made) {
    return Format("{}: {}", CodeName(made.error().code), made.error().message);
  }
  if (const Status started = made->Start(); !started) {
    return Format("{}: {}", CodeName(started.error().code), started.error().message);
  }
  std::string text = Drain(output.in.get());
  return text + EndOf(made->pid());
}

std::string Bundle::RunBy(const std::string& runtime, const Config& config) const {
  std::ofstream(path_ + "/config.json") << TextOf(config);
  Pipe output = MakePipe();
  // Not /dev/null: crun gives what is its standard input to the container's user.
  const Pipe input = MakePipe();
  const std::string state = path_ + "/state";
  const std::string id = "peer-" + std::to_string(::getpid());
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::dup2(input.in.get(), 0);
    ::dup2(output.out.get(), 1);
    ::dup2(output.out.get(), 2);
    ::execlp(runtime.c_str(), runtime.c_str(), "--root", state.c_str(), "run", "--bundle",
             path_.c_str(), id.c_str(), nullptr);
    ::_exit(127);
  }
  output.out.reset();
  std::string text = Drain(output.in.get());
  return text + EndOf(pid);
}

}  // namespace gantry::container
