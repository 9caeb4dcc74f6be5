// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/toolkit/container/in_child.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <ranges>
#include <sstream>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/unique_fd.h>

namespace gantry::container {
namespace {

std::string Told(const Error& error) {
  return Format("{}: {}", CodeName(error.code), error.message);
}

struct Ends {
  UniqueFd read;
  UniqueFd write;
};

Ends MakePipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    return {};
  }
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

std::string ReadAll(int fd) {
  std::string all;
  std::array<char, 4096> some{};
  for (ssize_t n = 0; (n = read(fd, some.data(), some.size())) > 0;) {
    all.append(some.data(), static_cast<size_t>(n));
  }
  return all;
}

/// The new user namespace of `pid` gets ids.
bool MapIdsOf(pid_t pid, unsigned first) {
  const std::string text = Format("0 {} 65536\n", first);
  for (const char* file : {"uid_map", "gid_map"}) {
    const UniqueFd map(open(Format("/proc/{}/{}", pid, file).c_str(), O_WRONLY | O_CLOEXEC));
    if (!map || write(map.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
      return false;
    }
  }
  return true;
}

/// A child that is let into its user namespace by its parent.
class ForkedChild {
 public:
  explicit ForkedChild(unsigned first_id) : first_id_(first_id) {}

  std::string Run(const std::function<std::string(ForkedChild&)>& work) {
    const pid_t child = fork();
    if (child == 0) {
      out_.read.reset();
      ask_.read.reset();
      go_.write.reset();
      const std::string said = work(*this);
      const ssize_t wrote = write(out_.write.get(), said.data(), said.size());
      _exit(wrote == static_cast<ssize_t>(said.size()) ? 0 : 1);
    }
    out_.write.reset();
    ask_.write.reset();
    go_.read.reset();
    char asked = 0;
    if (read(ask_.read.get(), &asked, 1) == 1 && MapIdsOf(child, first_id_)) {
      [[maybe_unused]] const ssize_t n = write(go_.write.get(), "g", 1);
    }
    go_.write.reset();
    std::string said = ReadAll(out_.read.get());
    int status = 0;
    waitpid(child, &status, 0);
    return status == 0 ? said : said + Format(" (the child's status is {})", status);
  }

  /// In the child: `user`: a user namespace, too.
  Status Enter(bool user) {
    if (user) {
      if (unshare(CLONE_NEWUSER) != 0) {
        return FailErrno(errno, "unshare the user namespace");
      }
      char go = 0;
      if (write(ask_.write.get(), "a", 1) != 1 || read(go_.read.get(), &go, 1) != 1) {
        return Fail(Code::kInternal, "the ids were not mapped");
      }
      if (setresgid(0, 0, 0) != 0 || setresuid(0, 0, 0) != 0) {
        return FailErrno(errno, "become root");
      }
    }
    if (unshare(CLONE_NEWNS | CLONE_NEWIPC) != 0) {
      return FailErrno(errno, "unshare the mount namespace");
    }
    return {};
  }

  void Settle() { ask_.write.reset(); }

 private:
  unsigned first_id_;
  Ends out_ = MakePipe();
  Ends ask_ = MakePipe();
  Ends go_ = MakePipe();
};

Result<std::string> MakeContainer(World world, const RootfsRequest& request,
                                  const std::function<std::string()>& look, const Steps& steps,
                                  ForkedChild& child) {
  if (steps.first) {
    steps.first();
  }
  if (world == World::kInside || steps.own_mounts_first) {
    GANTRY_CHECK_OK(child.Enter(world == World::kInside));
  }
  GANTRY_TRY(Rootfs rootfs, Rootfs::Open(request));
  if (world != World::kInside && !steps.own_mounts_first) {
    GANTRY_CHECK_OK(child.Enter(world == World::kUserNamespace));
  }
  child.Settle();
  GANTRY_CHECK_OK(rootfs.Mount());
  GANTRY_CHECK_OK(rootfs.Enter(steps.by));
  if (steps.entered) {
    GANTRY_CHECK_OK(steps.entered(rootfs));
  }
  if (steps.seal) {
    GANTRY_CHECK_OK(rootfs.Seal());
  }
  return look();
}

}  // namespace

std::string NameOf(World world) {
  switch (world) {
    case World::kRoot:
      return "Root";
    case World::kUserNamespace:
      return "UserNamespace";
    default:
      return "Inside";
  }
}

std::string InContainer(World world, const RootfsRequest& request,
                        const std::function<std::string()>& look, const Steps& steps) {
  ForkedChild child(world == World::kInside ? 0 : kFirstId);
  return child.Run([&](ForkedChild& self) {
    const Result<std::string> said = MakeContainer(world, request, look, steps, self);
    return said ? *said : Told(said.error());
  });
}

std::string InMountNamespace(const std::function<std::string()>& work) {
  ForkedChild child(0);
  return child.Run([&](ForkedChild& self) {
    const Status entered = self.Enter(false);
    self.Settle();
    if (!entered || ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
      return std::string("no mount namespace");
    }
    return work();
  });
}

std::string TextOf(const std::string& path) {
  const auto text = ReadFile(path, 1U << 20U);
  return text ? *text : ErrnoName(text.error().sys_errno);
}

std::string LinesWith(const std::string& path, const std::string& part) {
  std::string found;
  std::istringstream lines(TextOf(path));
  for (std::string line; std::getline(lines, line);) {
    if (line.contains(part)) {
      found += line + "\n";
    }
  }
  return found;
}

std::string TryToMake(const std::string& path) {
  const UniqueFd file(open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600));
  if (!file) {
    return ErrnoName(errno);
  }
  unlink(path.c_str());
  return "OK";
}

std::string TryToWrite(const std::string& path) {
  const UniqueFd file(open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK));
  return file ? "OK" : ErrnoName(errno);
}

std::string Kind(const std::string& path) {
  struct stat info{};
  if (lstat(path.c_str(), &info) != 0) {
    return ErrnoName(errno);
  }
  std::array<char, 256> target{};
  switch (info.st_mode & S_IFMT) {
    case S_IFCHR:
    case S_IFBLK:
      return Format("{}:{} {:o}", major(info.st_rdev), minor(info.st_rdev), info.st_mode & 07777U);
    case S_IFDIR:
      return Format("d {:o}", info.st_mode & 07777U);
    case S_IFLNK:
      if (readlink(path.c_str(), target.data(), target.size() - 1) < 0) {
        return ErrnoName(errno);
      }
      return Format("l -> {}", target.data());
    case S_IFIFO:
      return Format("p {:o}", info.st_mode & 07777U);
    default:
      return Format("f {:o}", info.st_mode & 07777U);
  }
}

namespace {

/// Of the last line, which is the uppermost mount: the fields from the sixth on.
std::string MountFieldsAt(const std::string& path) {
  std::string fields = "none";
  std::istringstream lines(TextOf("/proc/self/mountinfo"));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string skipped;
    std::string place;
    words >> skipped >> skipped >> skipped >> skipped >> place;
    if (place == path) {
      std::getline(words >> std::ws, fields);
    }
  }
  return fields;
}

}  // namespace

std::string MountAt(const std::string& path) {
  const std::string fields = MountFieldsAt(path);
  const size_t dash = fields.find(" - ");
  return dash == fields.npos ? fields : fields.substr(0, fields.find(' ')) + fields.substr(dash);
}

std::string PropagationAt(const std::string& path) {
  const std::string fields = MountFieldsAt(path);
  std::string found;
  for (const char* word : {"shared", "master", "unbindable"}) {
    if (fields.substr(0, fields.find(" - ")).contains(word)) {
      found += (found.empty() ? "" : " ") + std::string(word);
    }
  }
  return found.empty() ? "private" : found;
}

}  // namespace gantry::container
