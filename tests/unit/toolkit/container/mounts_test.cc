// SPDX-License-Identifier: Apache-2.0
//
// Mounts of config.json, seen from inside.
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include <gantry/format.h>

#include "tests/unit/toolkit/container/container_test.h"

namespace gantry::container {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

class MountsTest : public ContainerTest {};

GANTRY_IN_ALL_WORLDS(MountsTest);

class MountsAsRootTest : public ContainerTest {};

GANTRY_AS_ROOT(MountsAsRootTest);

TEST_P(MountsTest, BindsDirectoriesAndFiles) {
  NodeFile("file", "the node's");
  NodeDir("dir");
  NodeFile("dir/below", "below");
  RootfsRequest request = With(Bind("file", "/etc/made/file"));
  request.mounts.push_back(Bind(bundle_ + "/dir", "data"));

  EXPECT_EQ(Look(request,
                 [] {
                   return Format("{} {} {} {}", TextOf("/etc/made/file"), TextOf("/data/below"),
                                 Kind("/etc/made"), TryToMake("/data/new"));
                 }),
            "the node's below d 755 OK");
}

TEST_P(MountsTest, BindsTakeFlags) {
  NodeDir("dir");
  const auto options = [this](std::vector<std::string> words) {
    words.emplace_back("bind");
    return Look(With(Bind("dir", "/data", std::move(words))), [] {
      const std::string line = MountAt("/data");
      return line.substr(0, line.find(' '));
    });
  };

  EXPECT_EQ(options({}), "rw,relatime");
  EXPECT_EQ(options({"ro"}), "ro,relatime");
  EXPECT_EQ(options({"ro", "nosuid", "nodev", "noexec"}), "ro,nosuid,nodev,noexec,relatime");
  EXPECT_EQ(options({"nosymfollow"}), "rw,relatime,nosymfollow");
}

TEST_P(MountsAsRootTest, BindsTakeAccessTimes) {
  NodeDir("dir");
  const auto options = [this](std::vector<std::string> words) {
    words.emplace_back("bind");
    return Look(With(Bind("dir", "/data", std::move(words))), [] {
      const std::string line = MountAt("/data");
      return line.substr(0, line.find(' '));
    });
  };

  EXPECT_EQ(options({"noatime", "nodiratime"}), "rw,noatime,nodiratime");
  EXPECT_EQ(options({"strictatime"}), "rw");
  EXPECT_EQ(options({"noatime", "relatime"}), "rw,relatime");
}

TEST_P(MountsAsRootTest, RecursiveWordsReachWhatIsBelow) {
  const std::string dir = NodeDir("dir");
  NodeDir("dir/below");
  const auto below = [&](std::vector<std::string> words) {
    return InMountNamespace([&] {
      if (::mount("tmpfs", (dir + "/below").c_str(), "tmpfs", 0, "") != 0) {
        return std::string("no tmpfs");
      }
      return Look(With(Bind("dir", "/data", words)),
                  [] { return TryToMake("/data/new") + " " + TryToMake("/data/below/new"); });
    });
  };

  EXPECT_EQ(below({"rbind"}), "OK OK");
  EXPECT_EQ(below({"rbind", "ro"}), "EROFS OK");
  EXPECT_EQ(below({"rbind", "rro"}), "EROFS EROFS");
  EXPECT_EQ(below({"rbind", "rro", "rw"}), "OK EROFS");
  // What is below is not there at all.
  EXPECT_EQ(below({"bind", "rro"}), "EROFS EROFS");
}

TEST_P(MountsAsRootTest, BindsKeepTheFlagsOfTheirSource) {
  const std::string dir = NodeDir("dir");
  const auto options = [&](std::vector<std::string> words) {
    return InMountNamespace([&] {
      if (::mount("tmpfs", dir.c_str(), "tmpfs", MS_NOSUID | MS_NOEXEC, "") != 0) {
        return std::string("no tmpfs");
      }
      return Look(With(Bind("dir", "/data", words)), [] {
        const std::string line = MountAt("/data");
        return line.substr(0, line.find(' '));
      });
    });
  };

  EXPECT_EQ(options({"rbind"}), "rw,nosuid,noexec,relatime");
  EXPECT_EQ(options({"rbind", "ro", "nodev"}), "ro,nosuid,nodev,noexec,relatime");
  EXPECT_EQ(options({"rbind", "exec"}), "rw,nosuid,relatime");
}

TEST_P(MountsAsRootTest, BindsPropagateAsTheRootAndTheirWordsSay) {
  const std::string dir = NodeDir("dir");
  const auto seen = [&](const std::string& root, std::vector<std::string> words, World world) {
    return InMountNamespace([&] {
      if (::mount("tmpfs", dir.c_str(), "tmpfs", 0, "mode=777") != 0 ||
          ::mount(nullptr, dir.c_str(), nullptr, MS_SHARED, nullptr) != 0) {
        return std::string("no shared tmpfs");
      }
      RootfsRequest request = With(Bind("dir", "/data", words));
      request.settings.rootfs_propagation = root;
      if (world != World::kRoot) {
        request.binds_devices = true;
        request.mounts.front() = Bind("/proc", "/proc");
      }
      return InContainer(world, request, [] { return PropagationAt("/data"); });
    });
  };

  EXPECT_EQ(seen("", {"rbind"}, World::kRoot), "private");
  EXPECT_EQ(seen("rslave", {"rbind"}, World::kRoot), "master");
  EXPECT_EQ(seen("rshared", {"rbind"}, World::kRoot), "shared");
  EXPECT_EQ(seen("rshared", {"rbind", "rprivate"}, World::kRoot), "private");
  EXPECT_EQ(seen("rshared", {"rbind", "rslave"}, World::kRoot), "master");
  EXPECT_EQ(seen("rslave", {"rbind", "rshared"}, World::kRoot), "shared master");
  // Another user namespace's mounts are never the node's.
  ASSERT_EQ(lchown(InRoot("/").c_str(), kFirstId, kFirstId), 0);
  EXPECT_EQ(seen("rshared", {"rbind"}, World::kUserNamespace), "master");
  EXPECT_EQ(seen("rshared", {"rbind", "rshared"}, World::kUserNamespace), "shared master");
}

TEST_P(MountsAsRootTest, SharedBindReachesTheNode) {
  const std::string dir = NodeDir("dir");
  const std::string said = InMountNamespace([&] {
    if (::mount("tmpfs", dir.c_str(), "tmpfs", 0, "mode=777") != 0 ||
        ::mount(nullptr, dir.c_str(), nullptr, MS_SHARED, nullptr) != 0) {
      return std::string("no shared tmpfs");
    }
    RootfsRequest request = With(Bind("dir", "/data", {"rbind", "rshared"}));
    request.settings.rootfs_propagation = "rshared";
    Look(request, [] {
      mkdir("/data/up", 0755);
      return ::mount("tmpfs", "/data/up", "tmpfs", 0, "") == 0 ? "OK" : "no mount";
    });
    return MountAt(dir + "/up");
  });

  EXPECT_THAT(said, HasSubstr("tmpfs"));
}

TEST_P(MountsTest, NewFileSystemsTakeOptions) {
  const RootfsRequest request =
      With(MountOf("/scratch", "tmpfs", "scratch", {"nosuid", "noexec", "size=64k", "mode=1770"}));

  EXPECT_THAT(Look(request, [] { return MountAt("/scratch") + " " + Kind("/scratch"); }),
              AllOf(StartsWith("rw,nosuid,noexec,relatime - tmpfs scratch"), HasSubstr("size=64k"),
                    HasSubstr("d 1770")));
}

TEST_P(MountsTest, TmpfsTakesTheModeOfWhatItCovers) {
  MakeDir("/var/tmp");
  ASSERT_EQ(chmod(InRoot("/var/tmp").c_str(), 01777), 0);
  MakeDir("/plain");
  RootfsRequest request = With(MountOf("/var/tmp", "tmpfs", "tmpfs"));
  request.mounts.push_back(MountOf("/plain", "tmpfs", "tmpfs"));
  request.mounts.push_back(MountOf("/new", "tmpfs", "tmpfs"));

  EXPECT_EQ(
      Look(request, [] { return Kind("/var/tmp") + ", " + Kind("/plain") + ", " + Kind("/new"); }),
      "d 1777, d 755, d 1777");
}

TEST_P(MountsTest, TmpfsIsReadOnlyWhenItIsComplete) {
  RootfsRequest request = Plain();
  request.mounts.back().options.emplace_back("ro");
  request.mounts.push_back(MountOf("/scratch", "tmpfs", "tmpfs", {"ro"}));

  EXPECT_EQ(Look(request,
                 [] {
                   return Format("{} {} {}", TryToMake("/dev/new"), TryToMake("/scratch/new"),
                                 Kind("/dev/fd"));
                 }),
            "EROFS EROFS l -> /proc/self/fd");
}

TEST_P(MountsTest, TmpfsBeginsWithWhatItCovers) {
  MakeFile("/etc/a/file", "text");
  ASSERT_EQ(chmod(InRoot("/etc/a/file").c_str(), 0640), 0);
  ASSERT_EQ(chmod(InRoot("/etc/a").c_str(), 0750), 0);
  MakeLink("/etc/link", "/nowhere");
  ASSERT_EQ(mkfifo(InRoot("/etc/fifo").c_str(), 0600), 0);
  const RootfsRequest request = With(MountOf("/etc", "tmpfs", "tmpfs", {"tmpcopyup"}));

  EXPECT_EQ(Look(request,
                 [] {
                   return Format("{} {} {} {} {} {} {}", TextOf("/etc/a/file"), Kind("/etc/a/file"),
                                 Kind("/etc/a"), Kind("/etc/link"), Kind("/etc/fifo"), Kind("/etc"),
                                 TryToMake("/etc/a/new"));
                 }),
            "text f 640 d 750 l -> /nowhere ENOENT d 755 OK");
}

TEST_P(MountsTest, CopyEndsWhereTheTmpfsDoes) {
  MakeFile("/etc/large", std::string(300000, 'x'));

  EXPECT_THAT(
      Look(With(MountOf("/etc", "tmpfs", "tmpfs", {"tmpcopyup", "size=64k"})),
           [] { return std::string(); }),
      AllOf(StartsWith("RESOURCE_EXHAUSTED: mount '/etc' (type 'tmpfs'"), HasSubstr("'large'")));
}

TEST_P(MountsTest, CopyHasALimitOfDepth) {
  std::string deep = "/etc";
  for (int i = 0; i < 140; ++i) {
    deep += "/d";
  }
  MakeDir(deep);

  EXPECT_THAT(
      Look(With(MountOf("/etc", "tmpfs", "tmpfs", {"tmpcopyup"})), [] { return std::string(); }),
      AllOf(StartsWith("RESOURCE_EXHAUSTED: mount '/etc'"), HasSubstr("128 deep")));
}

TEST_P(MountsTest, TerminalsAreTheContainersOwn) {
  const RootfsRequest request = With(MountOf("/dev/pts", "devpts", "devpts",
                                             {"nosuid", "noexec", "newinstance", "ptmxmode=0666"}));

  EXPECT_EQ(Look(request,
                 [] {
                   const int terminal = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
                   return Format("{} {} {}", Kind("/dev/ptmx"), Kind("/dev/pts/ptmx"),
                                 terminal >= 0 ? Kind("/dev/pts/0") : "no terminal");
                 })
                .substr(0, 28),
            "l -> pts/ptmx 5:2 666 136:0 ");
}

TEST_P(MountsTest, MessageQueuesAreMounted) {
  EXPECT_THAT(Look(With(MountOf("/dev/mqueue", "mqueue", "mqueue", {"nosuid", "noexec", "nodev"})),
                   [] { return MountAt("/dev/mqueue"); }),
              StartsWith("rw,nosuid,nodev,noexec,relatime - mqueue mqueue"));
}

TEST_P(MountsAsRootTest, SysfsIsReadOnlyForItselfAlone) {
  // The file system is the network namespace's, which others may have, too: here a new one, so
  // that nobody has mounted it before.
  Steps steps;
  steps.first = [] { EXPECT_EQ(unshare(CLONE_NEWNET), 0); };

  EXPECT_THAT(Look(
                  With(MountOf("/sys", "sysfs", "sysfs", {"nosuid", "noexec", "nodev", "ro"})),
                  [] { return MountAt("/sys"); }, steps),
              StartsWith("ro,nosuid,nodev,noexec,relatime - sysfs sysfs rw"));
}

TEST_P(MountsTest, RemountsChangeWhatIsThere) {
  RootfsRequest request = With(MountOf("/scratch", "tmpfs", "tmpfs", {"size=64k"}));
  request.mounts.push_back(MountOf("/scratch", "tmpfs", "", {"remount", "ro", "size=128k"}));
  NodeDir("dir");
  request.mounts.push_back(Bind("dir", "/data"));
  request.mounts.push_back(MountOf("/data", "none", "", {"remount", "bind", "ro"}));

  EXPECT_THAT(Look(request, [] { return MountAt("/scratch") + " " + TryToMake("/data/new"); }),
              AllOf(StartsWith("ro,"), HasSubstr("size=128k"), HasSubstr(" EROFS")));
}

TEST_P(MountsTest, LaterOnesCoverEarlierOnes) {
  NodeDir("one");
  NodeDir("two");
  NodeFile("two/file", "two's");
  RootfsRequest request = With(Bind("one", "/data"));
  request.mounts.push_back(Bind("two", "/data/below"));
  request.mounts.push_back(Bind("two", "/data/"));

  EXPECT_EQ(Look(request, [] { return TextOf("/data/file") + Kind("/data/below"); }),
            "two'sENOENT");
  EXPECT_TRUE(std::filesystem::exists(bundle_ + "/one/below"));
}

TEST_P(MountsTest, TellWhichOneFailedAndWhy) {
  const auto error = [this](oci::SpecMount mount) {
    return Look(With(std::move(mount)), [] { return std::string("none"); });
  };
  NodeFile("file", "");
  MakeDir("/dir");

  EXPECT_THAT(error(Bind("missing", "/data")),
              AllOf(StartsWith("NOT_FOUND: mount '/data' (type 'bind', source 'missing'): "),
                    HasSubstr("ENOENT")));
  EXPECT_THAT(error(Bind("", "/data")), HasSubstr("it has no source"));
  EXPECT_THAT(error(MountOf("/data", "", "x")),
              AllOf(StartsWith("INVALID_ARGUMENT: "), HasSubstr("no type")));
  EXPECT_THAT(error(MountOf("/data", "no-such-fs", "x")),
              AllOf(HasSubstr("'no-such-fs'"), HasSubstr("ENODEV")));
  EXPECT_THAT(error(MountOf("/data", "tmpfs", "x", {"zise=1"})),
              AllOf(HasSubstr("option 'zise=1'"), HasSubstr("Unknown parameter 'zise'")));
  EXPECT_THAT(error(MountOf("/data", "tmpfs", "x", {"size=" + std::string(300, '1')})),
              AllOf(StartsWith("INVALID_ARGUMENT: "), HasSubstr("option 'size'")));
  EXPECT_THAT(error(Bind("file", "/dir")),
              AllOf(HasSubstr("mount '/dir'"), HasSubstr("put the mount in its place")));
  EXPECT_THAT(error(MountOf("/never", "none", "", {"remount", "bind", "ro"})),
              StartsWith("NOT_FOUND: mount '/never'"));
  EXPECT_THAT(error(MountOf("/dir", "none", "", {"remount", "bind", "ro"})),
              AllOf(StartsWith("FAILED_PRECONDITION: mount '/dir'"), HasSubstr("not a mount")));
  EXPECT_THAT(error(MountOf("/data", "tmpfs", "x", {"idmap"})), StartsWith("UNIMPLEMENTED: "));
}

}  // namespace
}  // namespace gantry::container
