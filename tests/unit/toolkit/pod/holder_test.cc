// SPDX-License-Identifier: Apache-2.0
//
// Pods without a pause container: who holds their namespaces.
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/deadline.h>
#include <gantry/testing/sandbox_context.h>
#include <gantry/toolkit/pod/holder.h>

#include "tests/unit/runc/test_files.h"

namespace gantry {
namespace {

using runc::Slurp;

using testing::HasSubstr;

SandboxRequest PodRequest() {
  SandboxRequest request;
  request.id = *SandboxId::Parse("p1");
  request.kind = SandboxKind::kPauseless;
  request.netns_path = "/proc/self/ns/net";
  return request;
}

TEST(PodHolder, HasWhatIsNotTheNodes) {
  PodConfig config;
  config.hostname = "web";
  const auto own = HolderRequestOf(PodRequest(), config);
  ASSERT_TRUE(own) << own.error().message;
  EXPECT_TRUE(own->ipc && own->uts && own->pid);
  EXPECT_EQ(own->hostname, "web");
  EXPECT_EQ(own->netns_path, "/proc/self/ns/net");
  config.network = NamespaceMode::kNode;
  config.ipc = NamespaceMode::kNode;
  config.pid = NamespaceMode::kContainer;
  const auto nodes = HolderRequestOf(PodRequest(), config);
  ASSERT_TRUE(nodes);
  EXPECT_FALSE(nodes->ipc || nodes->uts || nodes->pid || nodes->user);
  EXPECT_EQ(nodes->netns_path, "");
}

TEST(PodHolder, ANetworkOfItsOwnHasToBeThere) {
  SandboxRequest request = PodRequest();
  request.netns_path.clear();
  EXPECT_EQ(HolderRequestOf(request, PodConfig()).error().code, Code::kInvalidArgument);
}

TEST(PodHolder, AUserNamespaceNeedsANetworkOfItsOwn) {
  PodConfig config;
  config.user = NamespaceMode::kPod;
  EXPECT_TRUE(HolderRequestOf(PodRequest(), config)->user);
  config.network = NamespaceMode::kNode;
  EXPECT_EQ(HolderRequestOf(PodRequest(), config).error().code, Code::kInvalidArgument);
}

TEST(PodHolder, WritesSysctlsOfItsOwnOnly) {
  PodConfig config;
  config.sysctls = {{"net.core.somaxconn", "1"}};
  const auto holder_request = HolderRequestOf(PodRequest(), config);
  ASSERT_TRUE(holder_request) << holder_request.error().message;
  EXPECT_EQ(holder_request->sysctls,
            (std::map<std::string, std::string>{{"net/core/somaxconn", "1"}}));
  config.network = NamespaceMode::kNode;
  EXPECT_FALSE(HolderRequestOf(PodRequest(), config)) << "it would be the node's";
}

class PodHolderProcess : public testing::Test {
 protected:
  Result<std::shared_ptr<HostProcess>> Hold(HolderRequest holder_request) {
    holder_request.program = GANTRY_PAUSE;
    return StartHolder(context_, holder_request, In(10), [this](const auto& process) -> Status {
      seen_ = process->pid();
      return taken_;
    });
  }

  static Deadline In(int seconds) {
    return std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  }

  FakeSandboxContext context_{Orphans::kAdopted};
  HostPid seen_;
  Status taken_;
};

TEST_F(PodHolderProcess, HoldsUntilItIsStopped) {
  const auto holder = Hold({});
  ASSERT_TRUE(holder) << holder.error().message;
  EXPECT_EQ(seen_, (*holder)->pid());
  EXPECT_FALSE((*holder)->Ended());
  EXPECT_TRUE(StopHolder(**holder, std::chrono::seconds(10)));
  ASSERT_TRUE((*holder)->Ended());
  EXPECT_EQ((*holder)->Ended()->code(), 0U) << "it obeys";
  EXPECT_TRUE(StopHolder(**holder, std::chrono::seconds(10)));
}

TEST_F(PodHolderProcess, IsTheFirstOfItsPidNamespace) {
  HolderRequest holder_request;
  holder_request.pid = true;
  const auto holder = Hold(std::move(holder_request));
  ASSERT_TRUE(holder) << holder.error().message;
  const std::string status = Slurp("/proc/" + std::to_string((*holder)->pid().value) + "/status");
  EXPECT_THAT(status, testing::ContainsRegex("NSpid:\t[0-9]+\t1\n"));
  EXPECT_TRUE(StopHolder(**holder, std::chrono::seconds(10)));
}

TEST_F(PodHolderProcess, HasItsOwnNameAndSysctls) {
  HolderRequest holder_request;
  holder_request.uts = true;
  holder_request.ipc = true;
  holder_request.hostname = "held";
  holder_request.sysctls["kernel/shmmni"] = "1234";
  const auto holder = Hold(std::move(holder_request));
  ASSERT_TRUE(holder) << holder.error().message;
  const std::string pid = std::to_string((*holder)->pid().value);
  for (const char* space : {"uts", "ipc"}) {
    EXPECT_NE(std::filesystem::read_symlink("/proc/" + pid + "/ns/" + space),
              std::filesystem::read_symlink(std::string("/proc/self/ns/") + space));
  }
  const auto look = runc::RunShell("nsenter -t " + pid +
                                   " -u -i sh -c 'test $(hostname) = held && test "
                                   "$(cat /proc/sys/kernel/shmmni) = 1234'");
  EXPECT_EQ(look->Wait(std::chrono::seconds(10))->code(), 0U);
  EXPECT_TRUE(StopHolder(**holder, std::chrono::seconds(10)));
}

TEST_F(PodHolderProcess, SaysWhatDoesNotWork) {
  HolderRequest holder_request;
  holder_request.sysctls["net/no/such/thing"] = "1";
  const auto failed = Hold(std::move(holder_request));
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().message, HasSubstr("net/no/such/thing"));
}

TEST_F(PodHolderProcess, StaysBelowItsFolders) {
  // Should such a path come to it after all.
  for (const char* path : {"net/../kernel/domainname", "fs/mqueue/../../kernel/domainname",
                           "kernel/../vm/swappiness", "vm/swappiness", "net", "/proc/sys/net/x"}) {
    HolderRequest holder_request;
    holder_request.uts = true;
    holder_request.hostname = "held";
    holder_request.sysctls[path] = "60";
    const auto failed = Hold(std::move(holder_request));
    ASSERT_FALSE(failed) << path;
    EXPECT_THAT(failed.error().message, HasSubstr(path));
    EXPECT_NE(failed.error().code, Code::kNotFound) << failed.error().message;
  }
}

TEST_F(PodHolderProcess, EndsWhenNobodyTakesNoteOfIt) {
  for (const bool pid : {false, true}) {
    taken_ = Fail(Code::kUnavailable, "the disk is full");
    HolderRequest holder_request;
    holder_request.pid = pid;
    EXPECT_FALSE(Hold(std::move(holder_request)));
    const auto gone = context_.Adopt(seen_);
    ASSERT_TRUE(gone) << gone.error().message;
    EXPECT_TRUE((*gone)->Wait(std::chrono::seconds(10))) << "pid namespace: " << pid;
  }
}

}  // namespace
}  // namespace gantry
