// SPDX-License-Identifier: Apache-2.0
//
// A process in an uninterruptible wait: SIGKILL has reached it, and it does not end before
// what it waits for comes.
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <gmock/gmock.h>

#include "tests/contract/harness/contract_test.h"
#include "tests/harness/host.h"

namespace gantry::contract {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

/// A file system that answers nobody: who has asked waits until it is closed.
/// Source: kernel, include/uapi/linux/fuse.h.
class SilentFilesystem {
 public:
  /// Mounts it on `/mnt` as the process sees it, and begins to serve.
  Status MountFor(pid_t pid) {
    device_.reset(open("/dev/fuse", O_RDWR | O_CLOEXEC));
    const UniqueFd space(
        open(("/proc/" + std::to_string(pid) + "/ns/mnt").c_str(), O_RDONLY | O_CLOEXEC));
    if (!device_ || !space) {
      return FailErrno(errno, "open /dev/fuse and the mount namespace of {}", pid);
    }
    const std::string options =
        "fd=" + std::to_string(device_.get()) + ",rootmode=40000,user_id=0,group_id=0";
    const pid_t child = fork();
    if (child == 0) {
      const bool mounted = setns(space.get(), CLONE_NEWNS) == 0 &&
                           ::mount("silent", "/mnt", "fuse", 0, options.c_str()) == 0;
      _exit(mounted ? 0 : errno);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (status != 0) {
      return FailErrno(WEXITSTATUS(status), "mount fuse in the namespace of {}", pid);
    }
    return AnswerInit();
  }

  /// Takes the next request, whoever's, and keeps it.
  Status TakeRequest() {
    GANTRY_CHECK_OK(Read());
    return {};
  }

  /// All who wait get an error.
  void Close() { device_.reset(); }

 private:
  Result<fuse_in_header> Read() {
    constexpr int kLimitMs = 60'000;
    std::vector<char> buffer(1 << 17);
    pollfd waiting{.fd = device_.get(), .events = POLLIN, .revents = 0};
    if (poll(&waiting, 1, kLimitMs) != 1) {
      return Fail(Code::kDeadlineExceeded, "wait for a request of a file system: none comes");
    }
    const ssize_t count = read(device_.get(), buffer.data(), buffer.size());
    fuse_in_header header{};
    if (count < static_cast<ssize_t>(sizeof(header))) {
      return FailErrno(errno, "read a request of a file system");
    }
    std::memcpy(&header, buffer.data(), sizeof(header));
    return header;
  }

  Status AnswerInit() {
    GANTRY_TRY(const fuse_in_header request, Read());

    struct {
      fuse_out_header header;
      fuse_init_out init;
    } answer{};

    answer.header.len = sizeof(answer);
    answer.header.unique = request.unique;
    answer.init.major = FUSE_KERNEL_VERSION;
    answer.init.minor = FUSE_KERNEL_MINOR_VERSION;
    answer.init.max_write = 4096;
    if (write(device_.get(), &answer, sizeof(answer)) != sizeof(answer)) {
      return FailErrno(errno, "answer a file system's init");
    }
    return {};
  }

  UniqueFd device_;
};

TEST(StuckProcess, HoldsUpItsContainersDeleteAndNoMore) {
  Node node;
  if (!node.unavailable().empty()) {
    GTEST_SKIP() << node.unavailable();
  }
  if (access("/dev/fuse", R_OK | W_OK) != 0) {
    GTEST_SKIP() << "no /dev/fuse: " << std::strerror(errno);
  }
  NodeAdditions more;
  more.timeouts = ", kill: 2s, delete: 2s";
  ASSERT_EQ(node.Start(more), "");
  const std::string go = node.rootfs() + "/tmp/go";
  ASSERT_EQ(mkfifo(go.c_str(), 0600), 0);
  // In the host's pid namespace its init takes nobody along.
  const Json namespaces = {{{"type", "ipc"}}, {{"type", "uts"}}, {{"type", "mount"}}};
  Box box(node, "one", "runc",
          {.args = {"sh", "-c",
                    "(read x </tmp/go; exec ls /mnt) & echo $! >/tmp/left; exec sleep 1000"},
           .spec = {{"linux", {{"namespaces", namespaces}}}}});
  ASSERT_TRUE(box.Announce());
  ASSERT_OK(box.Create());
  const auto init = static_cast<pid_t>(Got(box.Start()).pid());
  SilentFilesystem silent;
  ASSERT_OK(silent.MountFor(init));
  e2e::WriteText(go, "go\n");
  ASSERT_OK(silent.TakeRequest());
  const pid_t left = std::atoi(e2e::ReadText(node.rootfs() + "/tmp/left").c_str());
  ASSERT_GT(left, 0);

  ASSERT_OK(box.Kill(SIGKILL));
  EXPECT_EQ(Got(box.Wait()).exit_status(), 137U);
  const auto refused = box.Delete();
  EXPECT_CODE(refused, kDeadlineExceeded);
  // With cgroup v1, and v2.
  EXPECT_THAT(MessageOf(refused),
              AnyOf(HasSubstr("process " + std::to_string(left) + " outlives SIGKILL"),
                    HasSubstr("processes are in it")));

  silent.Close();
  EXPECT_TRUE(e2e::WaitGone(left));
  EXPECT_EQ(Got(box.Delete()).exit_status(), 137U);
  EXPECT_OK(box.Finish());
}

}  // namespace
}  // namespace gantry::contract
