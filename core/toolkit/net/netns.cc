// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cerrno>
#include <functional>
#include <system_error>
#include <thread>
#include <utility>

#include <gantry/toolkit/net/netns.h>
#include <gantry/toolkit/sync/mutex.h>

namespace gantry::net {
namespace {

Status RefuseHosts(const struct stat& netns) {
  for (const char* host : {"/proc/self/ns/net", "/proc/1/ns/net"}) {
    struct stat of_host{};
    // In a container not every root may look at the first process.
    if (stat(host, &of_host) != 0 && errno != EACCES && errno != EPERM) {
      return FailErrno(errno, "look at '{}'", host);
    }
    if (of_host.st_ino == netns.st_ino && of_host.st_dev == netns.st_dev) {
      return Fail(Code::kFailedPrecondition,
                  "it is the host's own network, which a sandbox must not take over");
    }
  }
  return {};
}

Result<std::vector<UniqueFd>> SocketsHere(int domain, int type, int protocol, size_t count) {
  std::vector<UniqueFd> sockets;
  while (sockets.size() < count) {
    UniqueFd one(socket(domain, type | SOCK_CLOEXEC, protocol));
    if (!one) {
      return FailErrno(errno, "make a socket");
    }
    sockets.push_back(std::move(one));
  }
  return sockets;
}

/// A thread's namespaces are its own, and it ends with that.
template <class T>
Result<T> InThread(const std::function<Result<T>()>& act) {
  Result<T> result;
  try {
    std::thread([&] { result = act(); }).join();
  } catch (const std::system_error& none) {
    return Fail(Code::kResourceExhausted, "start a thread: {}", none.what());
  }
  return result;
}

Result<UniqueFd> NewNetns() {
  return InThread<UniqueFd>([]() -> Result<UniqueFd> {
    if (unshare(CLONE_NEWNET) != 0) {
      return FailErrno(errno, "make a network namespace");
    }
    UniqueFd fd(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
    if (!fd) {
      return FailErrno(errno, "open a new network namespace");
    }
    return fd;
  });
}

}  // namespace

Result<UniqueFd> EmptyNetns() {
  /// Held while `shared` is made.
  static Mutex mutex;
  static UniqueFd shared GANTRY_GUARDED_BY(mutex);
  const MutexLock lock(mutex);
  if (!shared) {
    GANTRY_TRY(shared, NewNetns());
  }
  return shared.Duplicate();
}

Result<UniqueFd> OpenNetns(const std::string& path) {
  // A fifo of that name is not waited for.
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!fd) {
    return FailErrno(errno, "open it");
  }
  if (ioctl(fd.get(), NS_GET_NSTYPE) != CLONE_NEWNET) {
    return Fail(Code::kInvalidArgument, "it is no network namespace");
  }
  return fd;
}

Result<Netns> Netns::Open(const std::string& path) {
  GANTRY_TRY(UniqueFd fd, OpenNetns(path));
  struct stat info{};
  if (fstat(fd.get(), &info) != 0) {
    return FailErrno(errno, "look at it");
  }
  GANTRY_CHECK_OK(RefuseHosts(info));
  return Netns(std::move(fd), info.st_ino);
}

Result<Netns> Netns::Reopen(const std::string& path, uint64_t inode) {
  GANTRY_TRY(Netns netns, Open(path));
  if (netns.inode() != inode) {
    return Fail(Code::kFailedPrecondition, "it is another namespace than the one that was read");
  }
  return netns;
}

Result<std::vector<UniqueFd>> Netns::Sockets(int domain, int type, int protocol,
                                             size_t count) const {
  return InThread<std::vector<UniqueFd>>([&, fd = fd_.get()]() -> Result<std::vector<UniqueFd>> {
    if (setns(fd, CLONE_NEWNET) != 0) {
      return FailErrno(errno, "enter it");
    }
    return SocketsHere(domain, type, protocol, count);
  });
}

Result<UniqueFd> Netns::OpenFile(const std::string& path, int flags) const {
  return InThread<UniqueFd>([&, fd = fd_.get()]() -> Result<UniqueFd> {
    if (setns(fd, CLONE_NEWNET) != 0) {
      return FailErrno(errno, "enter it");
    }
    UniqueFd file(open(path.c_str(), flags));
    if (!file) {
      return FailErrno(errno, "open '{}'", path);
    }
    return file;
  });
}

}  // namespace gantry::net
