// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>

#include <gantry/format.h>
#include <gantry/toolkit/container/in_root.h>
#include <gantry/toolkit/container/rootfs.h>
#include <gantry/unique_fd.h>

#include "tests/unit/toolkit/container/container_test.h"

namespace gantry::container {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class RootfsTest : public ContainerTest {};

GANTRY_IN_ALL_WORLDS(RootfsTest);

class RootfsAsRootTest : public ContainerTest {};

GANTRY_AS_ROOT(RootfsAsRootTest);

TEST_P(RootfsTest, IsAllThatTheProcessSees) {
  MakeFile("/etc/os", "the image's");

  EXPECT_EQ(Look(Plain(), [] { return TextOf("/etc/os") + Kind("/tmp") + Kind("/../tmp"); }),
            "the image'sENOENTENOENT");
  EXPECT_THAT(Look(Plain(), [] { return TextOf("/proc/self/mountinfo"); }),
              Not(HasSubstr(" /tmp ")));
}

TEST_P(RootfsTest, IsWritableAsItIs) {
  EXPECT_EQ(Look(Plain(), [] { return TryToMake("/new"); }), "OK");
}

TEST_P(RootfsTest, IsReadOnlyWhereTheSpecSaysSo) {
  RootfsRequest request = Plain();
  request.root.readonly = true;

  // Not what is mounted in it.
  EXPECT_EQ(Look(request, [] { return TryToMake("/new") + TryToMake("/dev/new"); }), "EROFSOK");
}

TEST_P(RootfsTest, LeavesNothingMountedInTheBundle) {
  const std::string node = NodeDir("node");

  Look(With(Bind(node, "/data")), [] { return std::string(); });

  // Places are made in the root, mounts are not.
  EXPECT_TRUE(std::filesystem::is_empty(InRoot("/data")));
  EXPECT_TRUE(std::filesystem::is_empty(InRoot("/dev")));
}

TEST_P(RootfsTest, HasNoPathMayBeRelativeOrAbsolute) {
  RootfsRequest request = Plain();
  request.root.path = bundle_ + "/rootfs";
  EXPECT_EQ(Look(request, [] { return Kind("/dev/fd"); }), "l -> /proc/self/fd");

  request.root.path = "missing";
  EXPECT_THAT(Look(request, [] { return std::string(); }),
              AllOf(StartsWith("NOT_FOUND: root: "), HasSubstr("'missing'"), HasSubstr("ENOENT")));

  NodeFile("file", "");
  request.root.path = "file";
  EXPECT_THAT(Look(request, [] { return std::string(); }),
              StartsWith("FAILED_PRECONDITION: root 'file'"));
}

TEST_P(RootfsTest, IsEnteredByAMoveWhereItCannotBePivoted) {
  MakeFile("/etc/os", "the image's");
  Steps steps;
  steps.by = EnterBy::kMove;

  EXPECT_EQ(Look(
                Plain(),
                [] {
                  // As one leaves a root that is only this process's.
                  mkdir("/jail", 0755);
                  if (chroot("/jail") != 0) {
                    return std::string("no chroot");
                  }
                  for (int i = 0; i < 64; ++i) {
                    if (chdir("..") != 0) {
                      return std::string("no chdir");
                    }
                  }
                  return Kind("etc/os") + Kind("tmp");
                },
                steps),
            "f 644ENOENT");
}

TEST_P(RootfsTest, PropagatesAsTheSpecSays) {
  const auto root = [this](const std::string& word) {
    RootfsRequest request = Plain();
    request.settings.rootfs_propagation = word;
    return Look(request, [] { return PropagationAt("/"); });
  };

  EXPECT_EQ(root(""), "private");
  EXPECT_EQ(root("rprivate"), "private");
  EXPECT_EQ(root("shared"), "shared");
  EXPECT_EQ(root("rshared"), "shared");
  EXPECT_EQ(root("unbindable"), "unbindable");
  EXPECT_THAT(root("loud"), StartsWith("INVALID_ARGUMENT: rootfsPropagation 'loud'"));
}

TEST_P(RootfsTest, ConsoleIsTheTerminalThatIsGiven) {
  const RootfsRequest request =
      With(MountOf("/dev/pts", "devpts", "devpts", {"newinstance", "ptmxmode=0666", "mode=0620"}));
  Steps steps;
  steps.entered = [](Rootfs& rootfs) -> Status {
    const UniqueFd master(open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC));
    if (!master || unlockpt(master.get()) != 0) {
      return FailErrno(errno, "open a terminal");
    }
    const UniqueFd end(open("/dev/pts/0", O_RDWR | O_NOCTTY | O_CLOEXEC));
    if (!end) {
      return FailErrno(errno, "open the end of a terminal");
    }
    return rootfs.AttachConsole(end.get());
  };

  EXPECT_THAT(
      Look(
          request, [] { return Kind("/dev/console") + " " + MountAt("/dev/console"); }, steps),
      AllOf(StartsWith("136:0 "), HasSubstr("devpts")));
}

TEST_P(RootfsTest, ConsoleIsNoFileAndFollowsNoLink) {
  Steps steps;
  steps.entered = [](Rootfs& rootfs) {
    const UniqueFd file(open("/file", O_CREAT | O_RDWR | O_CLOEXEC, 0600));
    return rootfs.AttachConsole(file.get());
  };
  EXPECT_THAT(Look(
                  Plain(), [] { return std::string(); }, steps),
              StartsWith("INVALID_ARGUMENT: console '/dev/console'"));

  steps.entered = [](Rootfs& rootfs) -> Status {
    const UniqueFd device(open("/dev/null", O_RDWR | O_CLOEXEC));
    if (symlink("/file", "/dev/console") != 0) {
      return FailErrno(errno, "link");
    }
    return rootfs.AttachConsole(device.get());
  };
  EXPECT_THAT(Look(
                  Plain(), [] { return std::string(); }, steps),
              StartsWith("FAILED_PRECONDITION: console '/dev/console'"));
}

TEST_P(RootfsAsRootTest, IsNotSeenByANodeThatSharesItsMounts) {
  NodeDir("node");
  const RootfsRequest request = With(Bind("node", "/data"));
  const std::string said = InMountNamespace([&]() -> std::string {
    // The bundle's root is a mount, as with each snapshotter.
    const std::string root = InRoot("");
    if (::mount(root.c_str(), root.c_str(), nullptr, MS_BIND, nullptr) != 0 ||
        ::mount(nullptr, "/", nullptr, MS_REC | MS_SHARED, nullptr) != 0) {
      return "no shared mounts";
    }
    std::string seen;
    for (const char* word : {"", "rslave", "rshared"}) {
      RootfsRequest asked = request;
      asked.settings.rootfs_propagation = word;
      const std::string before = LinesWith("/proc/self/mountinfo", root);
      seen += Look(asked,
                   [] { return std::string(MountAt("/").contains(" - ") ? "made " : "missing "); });
      seen += LinesWith("/proc/self/mountinfo", root) == before ? "unseen " : "seen ";
    }
    return seen;
  });

  EXPECT_EQ(said, "made unseen made unseen made unseen ");
}

TEST_P(RootfsAsRootTest, CanBeMadeByWhoIsInTheMountNamespaceAlready) {
  const std::string node = NodeDir("node");
  NodeFile("node/file", "the node's");
  Steps steps;
  steps.own_mounts_first = true;

  EXPECT_EQ(
      Look(With(Bind(node, "/data")), [] { return TextOf("/data/file"); }, steps), "the node's");
}

TEST_P(RootfsTest, UmaskIsNotItsBusiness) {
  Steps steps;
  steps.first = [] { umask(0077); };

  EXPECT_EQ(Look(
                With(MountOf("/a/b", "tmpfs", "tmpfs")),
                [] {
                  const mode_t now = umask(0);
                  return Format("{} {} {:o}", Kind("/a"), Kind("/dev/shm"), now);
                },
                steps),
            "d 755 ENOENT 77");
}

TEST_P(RootfsAsRootTest, IsMadeByAStaticProgram) {
  MakeFile("/masked/file", "secret");
  const std::string command = Format("'{}' '{}'", GANTRY_CONTAINER_PROBE, bundle_);
  const auto close = [](FILE* stream) { pclose(stream); };
  const std::unique_ptr<FILE, decltype(close)> stream(popen(command.c_str(), "re"), close);
  std::array<char, 512> said{};

  ASSERT_NE(fgets(said.data(), said.size(), stream.get()), nullptr);
  EXPECT_STREQ(said.data(), "contained null masked\n");
}

TEST(SwitchRootTest, MakesAMountTheRootThatCanBePivoted) {
  if (geteuid() != 0) {
    GTEST_SKIP() << "needs root: mounts are made";
  }
  std::string place = "/tmp/gantry-switch-XXXXXX";
  ASSERT_NE(mkdtemp(place.data()), nullptr);

  const std::string said = InMountNamespace([&]() -> std::string {
    if (::mount("tmpfs", place.c_str(), "tmpfs", 0, "mode=755") != 0) {
      return "no tmpfs";
    }
    mkdir((place + "/bundle").c_str(), 0755);
    mkdir((place + "/bundle/rootfs").c_str(), 0755);
    if (const Status done = SwitchRoot(place); !done) {
      return done.error().message;
    }
    RootfsRequest request;
    request.bundle = "/bundle";
    request.root.path = "rootfs";
    auto rootfs = Rootfs::Open(request);
    if (!rootfs) {
      return rootfs.error().message;
    }
    for (const Status& done : {rootfs->Mount(), rootfs->Enter(EnterBy::kPivot)}) {
      if (!done) {
        return done.error().message;
      }
    }
    return Kind("/bundle") + " " + Kind("/dev/null");
  });

  EXPECT_EQ(said, "ENOENT 1:3 666");
  rmdir(place.c_str());
}

TEST(SwitchRootTest, SaysWhatIsNoMount) {
  EXPECT_THAT(InMountNamespace([]() -> std::string {
                const Status done = SwitchRoot("/proc/self");
                return done ? "done" : done.error().message;
              }),
              AllOf(HasSubstr("switch the root to '/proc/self'"), HasSubstr("EINVAL")));
}

}  // namespace
}  // namespace gantry::container
