// SPDX-License-Identifier: Apache-2.0
//
// What a spawned process has given up when its program runs, as the kernel shows it.
#include <linux/audit.h>
#include <linux/bpf_common.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/mount/id_map.h>

#include "core/os/spawn.h"
#include "tests/unit/os/proc_of.h"
#include "tests/unit/os/spawned.h"

namespace gantry::os {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr char kAllSets[] = "grep ^Cap /proc/self/status | cut -f2 | sort -u";
/// Linked statically: it runs where nothing is.
constexpr char kBusybox[] = "/bin/busybox";

class SpawnConfined : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) {
      GTEST_SKIP() << "needs root";
    }
  }

  static SpawnRequest Capable(uint64_t capabilities) {
    SpawnRequest request;
    request.capabilities = capabilities;
    return request;
  }

  static SpawnRequest Filtered(std::vector<sock_filter> filter) {
    SpawnRequest request;
    request.no_new_privs = true;
    request.seccomp = std::move(filter);
    return request;
  }

  /// Does `action` with that system call, and lets others through.
  static std::vector<sock_filter> Only(unsigned number, unsigned action) {
    return {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1), BPF_STMT(BPF_RET | BPF_K, action),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  }

  static Error Refused(const SpawnRequest& request) {
    const auto result = RunScript("true", request);
    return result ? Error{} : result.error();
  }
};

TEST_F(SpawnConfined, GainsNoPrivileges) {
  SpawnRequest request;
  request.no_new_privs = true;
  EXPECT_EQ(RunScript("grep ^NoNewPrivs /proc/self/status", request)->output, "NoNewPrivs:\t1\n");
}

TEST_F(SpawnConfined, HasTheCapabilitiesThatAreKeptInAllSetsAsRoot) {
  EXPECT_EQ(RunScript(kAllSets, Capable(uint64_t{1} << CAP_KILL))->output, "0000000000000020\n");
}

TEST_F(SpawnConfined, HasTheCapabilitiesThatAreKeptInAllSetsAsAnotherUser) {
  SpawnRequest request = Capable(uint64_t{1} << CAP_KILL);
  request.uid = 1000;
  request.gid = 1000;
  EXPECT_EQ(RunScript(kAllSets, request)->output, "0000000000000020\n");
}

TEST_F(SpawnConfined, HasNoCapabilityWhereNoneIsKept) {
  EXPECT_EQ(RunScript(kAllSets, Capable(0))->output, "0000000000000000\n");
}

TEST_F(SpawnConfined, HasNoCapabilityThatItsCallerHasNot) {
  // More than any kernel knows.
  const auto all = RunScript("grep ^CapEff /proc/self/status", Capable(~uint64_t{0}));
  ASSERT_TRUE(all) << all.error().message;
  EXPECT_EQ(all->output, StatusLine(Self(), "CapEff:") + "\n");
}

TEST_F(SpawnConfined, IsFiltered) {
  const auto result = RunScript("grep ^Seccomp: /proc/self/status; uname; echo $?",
                                Filtered(Only(SYS_uname, SECCOMP_RET_ERRNO | EPERM)));
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->output, "Seccomp:\t2\n1\n");
}

TEST_F(SpawnConfined, IsExecutedByTheCallThatTheFilterHasToAllow) {
  SpawnRequest request = Filtered(Only(SYS_execve, SECCOMP_RET_KILL_PROCESS));
  const auto result = RunScript("echo here", request);
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->output, "here\n");
}

TEST_F(SpawnConfined, ProgramThatIsNotThereIsSaidBeforeTheFilter) {
  SpawnRequest request = Filtered(Only(SYS_sendto, SECCOMP_RET_KILL_PROCESS));
  request.argv = {"/no/such/program"};
  const auto result = SpawnProcess(request);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Code::kNotFound);
  EXPECT_EQ(result.error().message, "open '/no/such/program': ENOENT");
}

TEST_F(SpawnConfined, FilterThatTheKernelRefusesIsTheRequests) {
  // It does not end with an answer.
  const Error error = Refused(Filtered({BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0)}));
  EXPECT_EQ(error.code, Code::kInvalidArgument);
  EXPECT_EQ(error.message, "set the seccomp filter: EINVAL");
}

TEST_F(SpawnConfined, FilterIsBoundedAndGoesWithNoNewPrivileges) {
  const sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  const Error large = Refused(Filtered(std::vector<sock_filter>(BPF_MAXINSNS + 1, allow)));
  EXPECT_EQ(large.code, Code::kInvalidArgument);
  EXPECT_THAT(large.message, HasSubstr("a filter of 4097 instructions"));
  SpawnRequest request = Filtered({allow});
  request.no_new_privs = false;
  EXPECT_EQ(Refused(request).code, Code::kInvalidArgument);
}

TEST_F(SpawnConfined, SeesNoFileInAnEmptyRoot) {
  SpawnRequest request{.argv = {kBusybox, "sleep", "1000"}};
  request.empty_root = true;
  auto spawned = SpawnProcess(request);
  ASSERT_TRUE(spawned) << spawned.error().message;
  const Child child(std::move(*spawned));
  const std::string proc = "/proc/" + std::to_string(child.process().pid);
  EXPECT_THAT(ListDirectory(proc + "/root").value(), testing::IsEmpty());
  EXPECT_EQ(ReadLink(proc + "/cwd").value(), "/");
  const std::string mounts = ReadFile(proc + "/mountinfo", size_t{1} << 20).value();
  EXPECT_EQ(std::ranges::count(mounts, '\n'), 1) << mounts;
  EXPECT_THAT(mounts, HasSubstr(" / / ro,nosuid,nodev,noexec"));
  EXPECT_THAT(ReadFile("/proc/self/mountinfo", size_t{1} << 20).value(),
              Not(HasSubstr(" / /proc ro,nosuid,nodev,noexec")));
}

TEST_F(SpawnConfined, EmptyRootIsThereInAUserNamespaceToo) {
  if (const auto space = mount::NewUserNamespace({{0, 0, 1}}, {{0, 0, 1}}); !space) {
    GTEST_SKIP() << space.error().message;
  }
  SpawnRequest request{.argv = {kBusybox, "sleep", "1000"}};
  request.new_namespaces = CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS;
  request.uid_map = {{.host_id = 100000, .container_id = 0, .length = 65536}};
  request.gid_map = request.uid_map;
  request.uid = 65535;
  request.gid = 65535;
  request.empty_root = true;
  request.capabilities = 0;
  auto spawned = SpawnProcess(request);
  ASSERT_TRUE(spawned) << spawned.error().message;
  const Child child(std::move(*spawned));
  EXPECT_THAT(ListDirectory("/proc/" + std::to_string(child.process().pid) + "/root").value(),
              testing::IsEmpty());
  EXPECT_EQ(StatusLine(child.process(), "CapPrm:"), "CapPrm:\t0000000000000000");
}

TEST_F(SpawnConfined, EmptyRootSaysWhatItsProgramLacks) {
  SpawnRequest request;
  request.empty_root = true;
  EXPECT_EQ(Refused(request).message, "exec '/bin/sh' in an empty root, linked statically: ENOENT");
  request.cwd = "/tmp";
  EXPECT_EQ(Refused(request).code, Code::kInvalidArgument);
}

/// The mounts of a child with a mount namespace of its own, whose maker's are shared.
std::string MountsOf(unsigned propagation) {
  std::string seen;
  std::thread([&] {
    if (unshare(CLONE_NEWNS) != 0 ||
        ::mount(nullptr, "/", nullptr, MS_REC | MS_SHARED, nullptr) != 0) {
      return;
    }
    SpawnRequest request;
    request.new_namespaces = CLONE_NEWNS;
    request.propagation = propagation;
    seen = RunScript("cat /proc/self/mountinfo", request).value_or(ScriptResult()).output;
  }).join();
  return seen;
}

TEST_F(SpawnConfined, NewMountNamespaceIsKeptFromTheNodes) {
  EXPECT_THAT(MountsOf(0), HasSubstr(" shared:"));
  EXPECT_THAT(MountsOf(MS_PRIVATE),
              AllOf(HasSubstr(" / / "), Not(HasSubstr(" shared:")), Not(HasSubstr(" master:"))));
  EXPECT_THAT(MountsOf(MS_SLAVE), AllOf(HasSubstr(" master:"), Not(HasSubstr(" shared:"))));
}

TEST_F(SpawnConfined, OnlyMountsOfANewNamespaceAreChanged) {
  SpawnRequest request;
  request.propagation = MS_PRIVATE;
  EXPECT_EQ(Refused(request).code, Code::kInvalidArgument);
  request.new_namespaces = CLONE_NEWNS;
  request.propagation = MS_SHARED;
  EXPECT_EQ(Refused(request).code, Code::kInvalidArgument);
}

}  // namespace
}  // namespace gantry::os
