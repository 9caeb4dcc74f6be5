// SPDX-License-Identifier: Apache-2.0
//
// What a container that shares the pod's process namespace could do with the holder,
// its process 1: nothing.
#include <sched.h>
#include <signal.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <sstream>
#include <system_error>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/testing/process_context.h>
#include <gantry/testing/sandbox_context.h>
#include <gantry/toolkit/pod/holder.h>

#include "tests/unit/runc/test_files.h"

namespace gantry {
namespace {

using runc::Slurp;
using runc::TestPipe;
using runc::Write;

constexpr auto kHolderLimit = std::chrono::seconds(60);

/// A process in user and network namespaces of its own, with COUNT ids from 0 on.
class MappedProcess {
 public:
  explicit MappedProcess(int count) {
    const TestPipe made;
    pid_ = fork();
    if (pid_ == 0) {
      const char result = unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0 ? 'y' : 'n';
      IgnoreWrite(made.write_end.get(), result);
      for (;;) {
        pause();
      }
    }
    works_ = ReadStream(made.read_end, "y") == "y";
    for (const char* map : {"/uid_map", "/gid_map"}) {
      Write("/proc/" + std::to_string(pid_) + map, "0 300000 " + std::to_string(count));
    }
  }

  ~MappedProcess() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

  MappedProcess(const MappedProcess&) = delete;
  MappedProcess& operator=(const MappedProcess&) = delete;

  bool works() const { return works_; }

  std::string net() const { return "/proc/" + std::to_string(pid_) + "/ns/net"; }

 private:
  static void IgnoreWrite(int fd, char byte) {
    if (write(fd, &byte, 1) != 1) {
      _exit(1);
    }
  }

  pid_t pid_ = -1;
  bool works_ = false;
};

class ConfinedHolder : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (geteuid() != 0) {
      GTEST_SKIP() << "it takes root to give up something";
    }
  }

  /// The folder in /proc of one that stands.
  std::string Hold(HolderRequest holder_request) {
    holder_request.program = GANTRY_PAUSE;
    holder_request.pid = GetParam();
    auto holder =
        StartHolder(context_, holder_request, std::chrono::steady_clock::now() + kHolderLimit,
                    [](const auto&) { return Status(); });
    EXPECT_TRUE(holder) << holder.error().message;
    if (!holder) {
      return "/proc/none";
    }
    holder_ = *holder;
    return "/proc/" + std::to_string(holder_->pid().value);
  }

  void TearDown() override {
    if (holder_ != nullptr) {
      EXPECT_TRUE(StopHolder(*holder_, kHolderLimit));
      ASSERT_TRUE(holder_->Ended());
      EXPECT_EQ(holder_->Ended()->code(), 0U) << "it still does what it is for";
    }
  }

  /// Of /proc/PID/status, with single blanks.
  static std::string Field(const std::string& proc, const std::string& name) {
    std::istringstream lines(Slurp(proc + "/status"));
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with(name + ":")) {
        std::istringstream words(line.substr(name.size() + 1));
        std::string text;
        for (std::string word; words >> word;) {
          text += (text.empty() ? "" : " ") + word;
        }
        return text;
      }
    }
    return "(none)";
  }

  FakeSandboxContext context_{Orphans::kAdopted};
  std::shared_ptr<HostProcess> holder_;
};

INSTANTIATE_TEST_SUITE_P(PidNamespace, ConfinedHolder, testing::Bool());

TEST_P(ConfinedHolder, HasAnEmptyRoot) {
  const std::string proc = Hold({});
  EXPECT_NE(std::filesystem::read_symlink(proc + "/ns/mnt"),
            std::filesystem::read_symlink("/proc/self/ns/mnt"));
  EXPECT_TRUE(std::filesystem::is_empty(proc + "/root/"));
  struct statvfs root = {};
  ASSERT_EQ(statvfs((proc + "/root/").c_str(), &root), 0);
  EXPECT_NE(root.f_flag & ST_RDONLY, 0UL);
  EXPECT_TRUE(std::filesystem::is_empty(proc + "/cwd/"));
  const std::string mounts = Slurp(proc + "/mountinfo");
  EXPECT_EQ(std::ranges::count(mounts, '\n'), 1) << mounts;
}

TEST_P(ConfinedHolder, IsNobodyWithoutCapabilities) {
  const std::string proc = Hold({});
  EXPECT_EQ(Field(proc, "Uid"), "65535 65535 65535 65535");
  EXPECT_EQ(Field(proc, "Gid"), "65535 65535 65535 65535");
  EXPECT_EQ(Field(proc, "Groups"), "");
  for (const char* set : {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"}) {
    EXPECT_EQ(Field(proc, set), "0000000000000000") << set;
  }
  EXPECT_EQ(Field(proc, "NoNewPrivs"), "1");
}

TEST_P(ConfinedHolder, MayCallWhatItNeeds) { EXPECT_EQ(Field(Hold({}), "Seccomp"), "2"); }

TEST_P(ConfinedHolder, CannotBeTracedByItsEquals) {
  // What of it is in /proc is root's.
  const std::string proc = Hold({});
  const auto look = runc::RunShell("setpriv --reuid 65535 --regid 65535 --clear-groups readlink " +
                                   proc + "/root");
  ASSERT_TRUE(look->Wait(kHolderLimit));
  EXPECT_NE(look->Ended()->code(), 0U);
}

TEST_P(ConfinedHolder, HasNoFileOpen) {
  // It may still be about to close the conversation.
  for (const auto& fd : std::filesystem::directory_iterator(Hold({}) + "/fd")) {
    std::error_code closed;
    const std::string file = std::filesystem::read_symlink(fd, closed).string();
    EXPECT_FALSE(file.starts_with("/")) << fd << " " << file;
  }
}

TEST_P(ConfinedHolder, ReapsWhatIsLeftToIt) {
  if (!GetParam()) {
    GTEST_SKIP() << "nothing is left to who is no init";
  }
  const std::string proc = Hold({});
  const std::string pid = std::to_string(holder_->pid().value);
  // The child of one that has ended.
  const auto left = runc::RunShell("nsenter -t " + pid +
                                   " -p sh -c '(sleep 0; exit 3) & exit 0'; while grep -q . "
                                   "/proc/" +
                                   pid + "/task/" + pid + "/children; do :; done");
  EXPECT_TRUE(left->Wait(kHolderLimit));
}

TEST_P(ConfinedHolder, IsAnIdThatItsUserNamespaceHas) {
  for (const int ids : {65536, 1000}) {
    const MappedProcess owner(ids);
    if (!owner.works()) {
      GTEST_SKIP() << "the kernel makes no user namespaces";
    }
    HolderRequest holder_request;
    holder_request.netns_path = owner.net();
    holder_request.user = true;
    holder_request.ipc = true;
    const std::string proc = Hold(holder_request);
    const std::string id = std::to_string(300000 + ids - 1);
    EXPECT_EQ(Field(proc, "Uid"), id + " " + id + " " + id + " " + id);
    EXPECT_EQ(Field(proc, "Gid"), id + " " + id + " " + id + " " + id);
    EXPECT_EQ(Field(proc, "CapBnd"), "0000000000000000");
    EXPECT_TRUE(std::filesystem::is_empty(proc + "/root/"));
    EXPECT_TRUE(StopHolder(*holder_, kHolderLimit));
  }
}

}  // namespace
}  // namespace gantry
