// SPDX-License-Identifier: Apache-2.0
//
// Which kernel settings a pod may have, by the names that CRI clients give them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/pod/sysctl.h>

namespace gantry {
namespace {

constexpr OwnNamespaces kAll = {.net = true, .ipc = true, .uts = true};

struct NamedSysctl {
  const char* name;
  const char* path;
};

TEST(PodSysctl, IsWrittenEitherWay) {
  for (const NamedSysctl& one : {
           NamedSysctl{"net.core.somaxconn", "net/core/somaxconn"},
           NamedSysctl{"net/ipv4/ip_forward", "net/ipv4/ip_forward"},
           NamedSysctl{"net.ipv4.conf.eth0/1.forwarding", "net/ipv4/conf/eth0.1/forwarding"},
           NamedSysctl{"net/ipv4/conf/eth0.1/forwarding", "net/ipv4/conf/eth0.1/forwarding"},
           NamedSysctl{"net.ipv6.neigh.br-a:1.mcast_solicit",
                       "net/ipv6/neigh/br-a:1/mcast_solicit"},
           NamedSysctl{"kernel.shmmax", "kernel/shmmax"},
           NamedSysctl{"kernel/shm_rmid_forced", "kernel/shm_rmid_forced"},
           NamedSysctl{"fs.mqueue.msg_max", "fs/mqueue/msg_max"},
           NamedSysctl{"kernel.domainname", "kernel/domainname"},
       }) {
    const auto path = SysctlPath(one.name, kAll);
    ASSERT_TRUE(path) << path.error().message;
    EXPECT_EQ(*path, one.path);
  }
}

TEST(PodSysctl, LeadsNowhereElse) {
  // The first two have no `..` before they are converted.
  for (const char* name : {
           "net.//.kernel.core_pattern",
           "fs.mqueue.//.//.kernel.modprobe",
           "net/../kernel/core_pattern",
           "net/./core/somaxconn",
           "net..core",
           "net.core.",
           ".net.core",
           "/net/core",
           "net//core",
           "net.core.somaxconn=1",
           "net.core.\nsomaxconn",
           "net.core. somaxconn",
           "",
       }) {
    const auto refused = SysctlPath(name, kAll);
    ASSERT_FALSE(refused) << name;
    EXPECT_EQ(refused.error().code, Code::kInvalidArgument);
    EXPECT_THAT(refused.error().message, testing::HasSubstr(name));
  }
}

TEST(PodSysctl, IsNotTheNodes) {
  for (const char* name :
       {"vm.swappiness", "kernel.panic", "kernel/core_pattern", "netx.core", "net", "fs.file-max",
        "fs.mqueue", "kernel.shmmax.x", "kernel.domainname.x"}) {
    EXPECT_FALSE(SysctlPath(name, kAll)) << name;
  }
}

TEST(PodSysctl, IsOfANamespaceThatThePodHas) {
  EXPECT_FALSE(SysctlPath("net/core/somaxconn", {.ipc = true, .uts = true}));
  EXPECT_FALSE(SysctlPath("kernel.shmmax", {.net = true, .uts = true}));
  EXPECT_FALSE(SysctlPath("fs.mqueue.msg_max", {.net = true, .uts = true}));
  EXPECT_FALSE(SysctlPath("kernel.domainname", {.net = true, .ipc = true}));
}

}  // namespace
}  // namespace gantry
