// SPDX-License-Identifier: Apache-2.0
//
// What a process in a cgroup may do with devices, asked of the kernel.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/cgroup/devices.h>

#include "tests/unit/cgroup/fake_cgroupfs.h"

namespace gantry::cgroup {
namespace {

using os::FakeCgroupFs;
using os::kBound;

using testing::HasSubstr;

constexpr uint32_t kMemory = 1;
constexpr uint32_t kKmsg = 11;
constexpr DeviceRule kDenyAll{.allow = false};
constexpr DeviceRule kAllowAll{.allow = true};

DeviceRule Kmsg(bool allow, const std::string& access) {
  return {.allow = allow,
          .type = 'c',
          .major = kMemory,
          .minor = kKmsg,
          .read = access.contains('r'),
          .write = access.contains('w'),
          .mknod = access.contains('m')};
}

TEST(DevicePolicies, BeginWithTheLastRuleForAll) {
  const auto policy =
      DevicePolicy::Of({Kmsg(true, "r"), kAllowAll, Kmsg(false, "w"), kDenyAll, Kmsg(true, "rwm")});
  EXPECT_FALSE(policy.allow_others);
  EXPECT_EQ(policy.rules.front(), Kmsg(true, "rwm"));
  EXPECT_FALSE(policy.AllowsAll());
  EXPECT_TRUE(DevicePolicy::Of({kDenyAll, kAllowAll}).AllowsAll());
  EXPECT_FALSE(DevicePolicy::Of({kAllowAll, Kmsg(false, "w")}).AllowsAll());
  EXPECT_FALSE(DevicePolicy::Of({}).AllowsAll()) << "nothing is said: what runtimes do";
}

TEST(DevicePolicies, SayARuleForBothTypesTwice) {
  const auto policy = DevicePolicy::Of({{.allow = true, .type = 'a', .major = 7}});
  ASSERT_GE(policy.rules.size(), 2U);
  EXPECT_EQ(policy.rules[0].type, 'b');
  EXPECT_EQ(policy.rules[1].type, 'c');
}

/// A child that is in a cgroup, and asked one thing after the other.
class Inhabitant {
 public:
  explicit Inhabitant(const Cgroup& cgroup) : cgroup_(cgroup) {}

  /// 0, or the error of open(2).
  int Open(const char* path, int flags) const {
    return Run([=] {
      const int fd = open(path, flags | O_CLOEXEC | O_NONBLOCK);
      return fd < 0 ? errno : 0;
    });
  }

  int Make(const std::string& path, mode_t type, dev_t number) const {
    return Run([&] { return mknod(path.c_str(), type | 0600, number) != 0 ? errno : 0; });
  }

 private:
  template <class F>
  int Run(F what) const {
    int gate[2];
    EXPECT_EQ(pipe2(gate, O_CLOEXEC), 0);
    const pid_t child = fork();
    if (child == 0) {
      char byte = 0;
      _exit(read(gate[0], &byte, 1) == 1 ? what() : 255);
    }
    close(gate[0]);
    const Status moved = cgroup_.AddProcess(child);
    EXPECT_TRUE(moved) << moved.error().message;
    EXPECT_EQ(write(gate[1], "\n", 1), 1);
    close(gate[1]);
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
  }

  const Cgroup& cgroup_;
};

class Devices : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    const auto node = CgroupHierarchy::OfNode();
    if (geteuid() != 0 || !node) {
      GTEST_SKIP() << (node ? "needs root" : node.error().message);
    }
    const bool v2 = GetParam();
    if (v2 ? node->unified().mount_dir.empty() : !node->v1().contains("devices")) {
      GTEST_SKIP() << "the node has no such tree";
    }
    if (access("/dev/kmsg", R_OK) != 0) {
      GTEST_SKIP() << "the node has no /dev/kmsg that can be read";
    }
    const auto tree = v2 ? *CgroupHierarchy::At(node->unified().mount_dir) : *node;
    auto made = Cgroup::Create(tree, "/gantry-test-" + RandomName(12));
    if (!made) {
      GTEST_SKIP() << "cannot make cgroups here: " << made.error().message;
    }
    cgroup_ = *std::move(made);
  }

  void TearDown() override {
    if (!cgroup_.empty()) {
      EXPECT_TRUE(cgroup_.Remove(kBound));
    }
  }

  void Limit(const std::vector<DeviceRule>& rules) {
    const Status limited = LimitDevices(cgroup_, rules);
    ASSERT_TRUE(limited) << limited.error().message;
  }

  int Read(const char* path) const { return inhabitant_.Open(path, O_RDONLY); }

  int Write(const char* path) const { return inhabitant_.Open(path, O_WRONLY); }

  Cgroup cgroup_;
  Inhabitant inhabitant_{cgroup_};
};

INSTANTIATE_TEST_SUITE_P(Trees, Devices, testing::Bool(),
                         [](const auto& tree) { return tree.param ? "V2" : "V1"; });

TEST_P(Devices, OfWhichNothingIsSaidAreDenied) {
  EXPECT_EQ(Read("/dev/kmsg"), 0) << "before";
  Limit({});
  EXPECT_EQ(Read("/dev/kmsg"), EPERM);
  EXPECT_EQ(Write("/dev/kmsg"), EPERM);
}

TEST_P(Devices, ThatEachContainerHasMayBeUsed) {
  Limit({kDenyAll});
  for (const char* path :
       {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/ptmx"}) {
    EXPECT_EQ(inhabitant_.Open(path, O_RDWR | O_NOCTTY), 0) << path;
  }
  // There is none, which is looked for after it is allowed.
  EXPECT_EQ(Read("/dev/tty"), ENXIO);
}

TEST_P(Devices, MayBeMadeAndNotUsed) {
  Limit({});
  const auto dir = os::TempDir::Create();
  ASSERT_TRUE(dir);
  const std::string path = dir->path() + "/kmsg";
  EXPECT_EQ(inhabitant_.Make(path, S_IFCHR, makedev(kMemory, kKmsg)), 0);
  EXPECT_NE(Read(path.c_str()), 0);
  Limit({kDenyAll, {.allow = false, .type = 'b', .read = false, .write = false}});
  // The rules of a container come before what each may do, as with an OCI runtime.
  EXPECT_EQ(inhabitant_.Make(dir->path() + "/loop", S_IFBLK, makedev(7, 0)), 0);
}

TEST_P(Devices, MayBeUsedAsTheRulesSay) {
  Limit({kDenyAll, Kmsg(true, "r")});
  EXPECT_EQ(Read("/dev/kmsg"), 0);
  EXPECT_EQ(Write("/dev/kmsg"), EPERM);
  EXPECT_EQ(inhabitant_.Open("/dev/kmsg", O_RDWR), EPERM);
  Limit({kDenyAll, Kmsg(true, "rw"), Kmsg(false, "r")});
  EXPECT_EQ(Read("/dev/kmsg"), EPERM) << "the last one counts";
  EXPECT_EQ(Write("/dev/kmsg"), 0);
  Limit({kDenyAll, Kmsg(true, "r"), Kmsg(true, "w")});
  EXPECT_EQ(inhabitant_.Open("/dev/kmsg", O_RDWR), 0) << "of two rules together";
  Limit({kDenyAll, {.allow = true, .type = 'c', .major = kMemory}});
  EXPECT_EQ(Read("/dev/kmsg"), 0) << "of a class";
  Limit({kDenyAll, {.allow = true, .type = 'b', .major = kMemory, .minor = kKmsg}});
  EXPECT_EQ(Read("/dev/kmsg"), EPERM) << "it is no block device";
}

TEST_P(Devices, OfAPrivilegedContainerAreAll) {
  Limit({});
  Limit({kDenyAll, kAllowAll});
  EXPECT_EQ(inhabitant_.Open("/dev/kmsg", O_RDWR), 0) << "the rules before have gone";
  Limit({kAllowAll, Kmsg(false, "rwm")});
  EXPECT_EQ(Read("/dev/kmsg"), EPERM);
  EXPECT_EQ(Read("/dev/null"), 0);
}

TEST_P(Devices, OfManyRulesAreLimited) {
  std::vector<DeviceRule> rules{kDenyAll};
  while (rules.size() < kMostDeviceRules - 1) {
    const auto number = static_cast<uint32_t>(rules.size());
    rules.push_back({.allow = number % 11 != 0,
                     .type = number % 2 == 0 ? 'b' : 'c',
                     .major = 200 + number,
                     .minor = number % 3 == 0 ? std::optional<uint32_t>() : number,
                     .read = number % 7 != 1,
                     .write = number % 5 != 2,
                     .mknod = number % 4 != 3});
  }
  rules.push_back(Kmsg(true, "rw"));
  Limit(rules);
  EXPECT_EQ(Read("/dev/kmsg"), 0);
  rules.push_back(Kmsg(true, "m"));
  const Status refused = LimitDevices(cgroup_, rules);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kInvalidArgument);
  EXPECT_THAT(refused.error().message, HasSubstr("513 rules, 512 are allowed"));
}

TEST_P(Devices, OfAClassWithoutOne) {
  const std::vector<DeviceRule> rules{
      kDenyAll, {.allow = true, .type = 'c', .major = kMemory}, Kmsg(false, "rwm")};
  const Status limited = LimitDevices(cgroup_, rules);
  if (GetParam()) {
    ASSERT_TRUE(limited) << limited.error().message;
    EXPECT_EQ(Read("/dev/kmsg"), EPERM);
    EXPECT_EQ(Read("/dev/null"), 0);
    return;
  }
  ASSERT_FALSE(limited) << "the kernel would take it and not do it";
  EXPECT_EQ(limited.error().code, Code::kInvalidArgument);
  EXPECT_THAT(limited.error().message,
              HasSubstr("cannot deny 'c 1:11 rwm' where 'c 1:* rwm' is allowed"));
}

TEST(DevicesWithoutAController, CannotBeLimited) {
  const FakeCgroupFs files;
  files.Put("pids/c1/cgroup.procs", "");
  const auto tree = CgroupHierarchy::At(files.path());
  ASSERT_TRUE(tree);
  const auto cgroup = Cgroup::Named(*tree, "/c1");
  ASSERT_TRUE(cgroup);
  const Status refused = LimitDevices(*cgroup, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kUnimplemented);
  EXPECT_THAT(refused.error().message, HasSubstr("without the controller 'devices'"));
  EXPECT_TRUE(LimitDevices(*cgroup, {kAllowAll}));
}

}  // namespace
}  // namespace gantry::cgroup
