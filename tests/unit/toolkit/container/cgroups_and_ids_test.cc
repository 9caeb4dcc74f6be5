// SPDX-License-Identifier: Apache-2.0
//
// Mounts that depend on who makes them: of the maker's own cgroups, and with mapped owners.
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include <gantry/format.h>

#include "tests/unit/toolkit/container/container_test.h"

namespace gantry::container {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class CgroupsAndIdsTest : public ContainerTest {};

GANTRY_AS_ROOT(CgroupsAndIdsTest);

/// Where this node has a cgroup of the process in a file system.
TEST_P(CgroupsAndIdsTest, CgroupsAreItsOwnAndNoOthers) {
  const RootfsRequest request = With(MountOf("/sys/fs/cgroup", "cgroup", "cgroup",
                                             {"nosuid", "noexec", "nodev", "relatime", "ro"}));
  // Outside: what this process is in.
  const std::string own = TextOf("/proc/self/cgroup");
  const bool one_hierarchy = own.starts_with("0::");

  const std::string seen = Look(request, [&] {
    std::string found;
    for (const auto& entry : std::filesystem::directory_iterator("/sys/fs/cgroup")) {
      const std::string path = entry.path();
      const std::string procs = TextOf(path + "/cgroup.procs");
      if (procs != "ENOENT" && procs != "ENOTDIR" && !entry.is_symlink()) {
        // This process sees itself there.
        found += procs.contains(Format("{}\n", getpid())) ? "own " : "other ";
        found += TryToWrite(path + "/cgroup.procs") + " ";
      }
    }
    return found + TryToMake("/sys/fs/cgroup/new");
  });

  if (one_hierarchy) {
    EXPECT_EQ(seen, "EROFS");
  } else {
    EXPECT_THAT(seen,
                AllOf(StartsWith("own EROFS "), Not(HasSubstr("other")), Not(HasSubstr("OK"))));
  }
}

TEST_P(CgroupsAndIdsTest, CgroupOfVersion2IsItsOwn) {
  const RootfsRequest request =
      With(MountOf("/sys/fs/cgroup", "cgroup2", "cgroup2", {"nosuid", "noexec", "nodev", "ro"}));
  const bool mounted = TextOf("/proc/self/mountinfo").contains(" - cgroup2 ");

  EXPECT_THAT(
      Look(request,
           [] {
             const std::string procs = TextOf("/sys/fs/cgroup/cgroup.procs");
             return MountAt("/sys/fs/cgroup") + " " + TryToWrite("/sys/fs/cgroup/cgroup.procs") +
                    (procs.contains(Format("{}\n", getpid())) ? " own" : " other");
           }),
      mounted
          ? AllOf(StartsWith("ro,nosuid,nodev,noexec,relatime - cgroup2 "), HasSubstr("EROFS own"))
          : AllOf(StartsWith("FAILED_PRECONDITION: mount '/sys/fs/cgroup'"),
                  HasSubstr("no mount of this mount namespace")));
}

TEST_P(CgroupsAndIdsTest, IdsAreMapped) {
  NodeDir("dir");
  NodeFile("dir/file", "");
  oci::SpecMount mount = Bind("dir", "/data", {"rbind", "idmap"});
  mount.uid_mappings = {{.host_id = 5000, .container_id = 0, .length = 10}};
  mount.gid_mappings = {{.host_id = 6000, .container_id = 0, .length = 10}};

  EXPECT_EQ(Look(With(mount),
                 [] {
                   struct stat info{};
                   stat("/data/file", &info);
                   return Format("{}:{}", info.st_uid, info.st_gid);
                 }),
            "5000:6000");
}

TEST_P(CgroupsAndIdsTest, IdsAreMappedAsTheContainersAre) {
  NodeDir("dir");
  NodeFile("dir/file", "");
  RootfsRequest request = With(Bind("dir", "/data", {"rbind", "ridmap"}));
  request.settings.uid_mappings = {{.host_id = kFirstId, .container_id = 0, .length = 65536}};
  request.settings.gid_mappings = request.settings.uid_mappings;
  request.mounts.front() = Bind("/proc", "/proc");
  request.binds_devices = true;
  ASSERT_EQ(lchown(InRoot("/").c_str(), kFirstId, kFirstId), 0);

  EXPECT_EQ(InContainer(World::kUserNamespace, request,
                        [] {
                          struct stat info{};
                          stat("/data/file", &info);
                          return Format("{}:{} {}", info.st_uid, info.st_gid,
                                        TryToMake("/data/new"));
                        }),
            "0:0 OK");
}

TEST_P(CgroupsAndIdsTest, IdMappingsThatCannotBeAreTold) {
  NodeDir("dir");
  oci::SpecMount mount = Bind("dir", "/data", {"rbind", "idmap"});
  EXPECT_THAT(Look(With(mount), [] { return std::string(); }),
              AllOf(StartsWith("INVALID_ARGUMENT: mount '/data'"), HasSubstr("id mappings")));

  mount.uid_mappings = {{.host_id = 5000, .container_id = 0, .length = 10},
                        {.host_id = 5005, .container_id = 5, .length = 10}};
  mount.gid_mappings = mount.uid_mappings;
  EXPECT_THAT(Look(With(mount), [] { return std::string(); }),
              StartsWith("INVALID_ARGUMENT: mount '/data'"));
}

}  // namespace
}  // namespace gantry::container
