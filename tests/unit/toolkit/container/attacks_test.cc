// SPDX-License-Identifier: Apache-2.0
//
// Roots that were made to get at the node: by links, by dots, by links of /proc, and by somebody
// who exchanges directories while the container is made.
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <sstream>

#include <gantry/format.h>

#include "tests/unit/toolkit/container/container_test.h"

namespace gantry::container {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class AttackTest : public ContainerTest {
 protected:
  void SetUp() override {
    ContainerTest::SetUp();
    if (!bundle_.empty()) {
      outside_ = NodeDir("outside");
      NodeFile("outside/file", "the node's");
      NodeDir("volume");
    }
  }

  /// Nothing was made outside, and nothing changed.
  void ExpectNothingOutside() const {
    std::string seen;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(outside_)) {
      seen += entry.path().filename().string() + " ";
    }
    EXPECT_EQ(seen, "file ");
    EXPECT_EQ(TextOf(outside_ + "/file"), "the node's");
  }

  std::string outside_;
};

/// Each kind of a mount.
struct Kinds {
  const char* type;
  const char* source;
  std::vector<std::string> options;
};

const std::vector<Kinds>& AllKinds() {
  static const std::vector<Kinds> kinds = {
      {"bind", "volume", {"rbind"}}, {"bind", "outside/file", {"bind", "ro"}},
      {"tmpfs", "tmpfs", {}},        {"tmpfs", "tmpfs", {"tmpcopyup"}},
      {"mqueue", "mqueue", {}},      {"devpts", "devpts", {"newinstance"}},
  };
  return kinds;
}

GANTRY_IN_ALL_WORLDS(AttackTest);

class AttackAsRootTest : public AttackTest {};

GANTRY_AS_ROOT(AttackAsRootTest);

TEST_P(AttackTest, LinksOnTheWayToAMountEndInTheRoot) {
  for (const std::string& target : {outside_, std::string("../../../../outside"),
                                    std::string("../outside"), "../../.." + outside_}) {
    std::filesystem::remove(InRoot("/trap"));
    MakeLink("/trap", target);
    for (const Kinds& kind : AllKinds()) {
      const std::string place =
          Format("/trap/{}-{}", kind.type, kind.options.empty() ? "" : kind.options.front());
      EXPECT_THAT(Look(With(MountOf(place, kind.type, kind.source, kind.options)),
                       [&] { return MountAt(std::filesystem::canonical(place)); }),
                  HasSubstr(" - "))
          << place << " by " << target;
      ExpectNothingOutside();
    }
  }
}

TEST_P(AttackTest, LinksInThePlaceOfAMountEndInTheRoot) {
  for (const std::string& target :
       {outside_ + "/new", outside_ + "/file", std::string("../../outside/new")}) {
    std::filesystem::remove(InRoot("/trap"));
    MakeLink("/trap", target);

    Look(With(Bind("outside/file", "/trap")), [] { return std::string(); });
    Look(With(MountOf("/trap", "tmpfs", "tmpfs")), [] { return std::string(); });
    ExpectNothingOutside();
  }
}

TEST_P(AttackTest, DotsInADestinationEndAtTheRoot) {
  EXPECT_EQ(
      Look(With(Bind("volume", "/../../../outside/new")), [] { return Kind("/outside/new"); }),
      "d 755");
  EXPECT_THAT(Look(With(Bind("volume", "/a/../..")), [] { return std::string(); }),
              AnyOf(StartsWith("FAILED_PRECONDITION: mount '/a/../..'"),
                    StartsWith("NOT_FOUND: mount '/a/../..'")));
  EXPECT_THAT(Look(With(Bind("volume", "/")), [] { return std::string(); }),
              AllOf(StartsWith("FAILED_PRECONDITION: mount '/'"), HasSubstr("the root itself")));
  ExpectNothingOutside();
}

TEST_P(AttackTest, KernelsPlacesAreNoLinks) {
  MakeDir("/fake");
  for (const char* name : {"/proc", "/dev"}) {
    MakeLink(name, "/fake");
    EXPECT_THAT(Look(Plain(), [] { return std::string(); }),
                AllOf(StartsWith(Format("FAILED_PRECONDITION: mount '{}'", name)),
                      HasSubstr("a link is on the way")));
    std::filesystem::remove(InRoot(name));
    // The mount of the case before made it.
    std::filesystem::remove_all(InRoot("/proc"));
  }
  MakeLink("/sys", "fake");
  EXPECT_THAT(Look(With(Bind("volume", "/sys/fs/cgroup")), [] { return std::string(); }),
              StartsWith("FAILED_PRECONDITION: mount '/sys/fs/cgroup'"));
}

TEST_P(AttackTest, DevicesAreNotMadeThroughLinks) {
  RootfsRequest request = Plain();
  request.mounts.pop_back();
  oci::Device device;
  device.path = "/dev/sub/null2";
  device.major = 1;
  device.minor = 3;
  MakeLink("/dev/sub", "/fake");
  request.settings.devices = {device};
  // The node has no such file, so it is made where it can be.
  if (GetParam() == World::kRoot) {
    EXPECT_THAT(Look(request, [] { return std::string(); }),
                StartsWith("FAILED_PRECONDITION: device '/dev/sub/null2'"));
  }

  request.settings.devices.clear();
  std::filesystem::remove_all(InRoot("/dev"));
  MakeLink("/dev", "/fake");
  EXPECT_THAT(Look(request, [] { return std::string(); }),
              StartsWith("FAILED_PRECONDITION: device "));
  EXPECT_FALSE(std::filesystem::exists(InRoot("/fake")));
}

TEST_P(AttackTest, NoLinkLeadsAMountIntoProc) {
  // What is written there is believed: the label of what is executed, for one.
  for (const char* target :
       {"/proc/self/attr", "/proc/thread-self/attr", "/proc/sys/kernel", "proc/self/fdinfo"}) {
    std::filesystem::remove(InRoot("/data"));
    MakeLink("/data", target);
    EXPECT_THAT(Look(With(Bind("volume", "/data")), [] { return std::string("made"); }),
                AllOf(StartsWith("FAILED_PRECONDITION: mount '/data'"), HasSubstr("proc")))
        << target;
  }
}

TEST_P(AttackTest, NoLinkLeadsAMountOntoAKernelsPlace) {
  // Devices would be made in it, and they would be the node's to use.
  for (const char* target : {"/dev", "dev/../dev", "/proc"}) {
    std::filesystem::remove(InRoot("/data"));
    MakeLink("/data", target);
    EXPECT_THAT(Look(With(Bind("volume", "/data")), [] { return std::string("made"); }),
                AllOf(StartsWith("FAILED_PRECONDITION: mount '/data'"), HasSubstr("a link leads")))
        << target;
    EXPECT_TRUE(std::filesystem::is_empty(bundle_ + "/volume"));
  }
}

TEST_P(AttackTest, NoLinkOfProcIsFollowed) {
  // They lead out of every root: to that of a process of the node, or to its working directory.
  for (const char* target : {"/proc/self/root", "/proc/self/cwd", "/proc/1/root", "/proc/self/exe",
                             "/proc/self/ns/mnt", "/proc/self/root/etc"}) {
    std::filesystem::remove(InRoot("/data"));
    MakeLink("/data", target);
    EXPECT_THAT(Look(With(Bind("volume", "/data")), [] { return std::string("made"); }),
                AnyOf(StartsWith("FAILED_PRECONDITION: mount '/data'"),
                      StartsWith("PERMISSION_DENIED: mount '/data'")))
        << target;
  }
  EXPECT_THAT(
      Look(With(Bind("volume", "/proc/self/root/data")), [] { return std::string("made"); }),
      StartsWith("FAILED_PRECONDITION: mount '/proc/self/root/data'"));
}

TEST_P(AttackTest, CopyOfWhatATmpfsCoversFollowsNoLink) {
  MakeLink("/etc/secret", outside_ + "/file");
  MakeLink("/etc/dir", outside_);

  EXPECT_EQ(Look(With(MountOf("/etc", "tmpfs", "tmpfs", {"tmpcopyup"})),
                 [] { return TextOf("/etc/secret") + Kind("/etc/dir/file") + Kind("/etc/dir"); }),
            "ENOENTENOENTl -> " + outside_);
}

TEST_P(AttackTest, MasksAndReadOnlyPathsEndInTheRoot) {
  MakeLink("/trap", outside_);
  MakeLink("/up", "../../../../outside");
  RootfsRequest request = Plain();
  request.settings.masked_paths = {"/trap/file", "/up/file", "/../outside"};
  request.settings.readonly_paths = {"/trap", "/up"};

  EXPECT_EQ(Look(request, [] { return std::string("made"); }), "made");
  ExpectNothingOutside();
}

/// A process that exchanges two names without end, as one in a shared volume may.
class ExchangesNames {
 public:
  ExchangesNames(const std::string& one, const std::string& other) : child_(fork()) {
    if (child_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      for (;;) {
        syscall(SYS_renameat2, AT_FDCWD, one.c_str(), AT_FDCWD, other.c_str(), RENAME_EXCHANGE);
      }
    }
  }

  ExchangesNames(const ExchangesNames&) = delete;
  ExchangesNames& operator=(const ExchangesNames&) = delete;

  ~ExchangesNames() {
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }

 private:
  pid_t child_;
};

/// How many mounts are in the root that this process sees, its own included.
size_t MountsInRoot() {
  size_t count = 0;
  std::istringstream lines(TextOf("/proc/self/mountinfo"));
  for (std::string line; std::getline(lines, line);) {
    ++count;
  }
  return count;
}

TEST_P(AttackAsRootTest, WhoeverExchangesDirectoriesLeadsNoMountOut) {
  constexpr int kTries = 60;
  MakeDir("/data/dir");
  MakeLink("/data/trap", outside_);
  MakeLink("/data/up", "../../../outside");
  const ExchangesNames absolute(InRoot("/data/dir"), InRoot("/data/trap"));
  const ExchangesNames relative(InRoot("/data/dir"), InRoot("/data/up"));
  RootfsRequest request = Plain();
  request.mounts.push_back(Bind("volume", "/data/dir/bind"));
  request.mounts.push_back(Bind("outside/file", "/data/dir/bound-file"));
  request.mounts.push_back(MountOf("/data/dir/tmpfs", "tmpfs", "tmpfs"));
  request.settings.masked_paths = {"/data/dir/file"};

  size_t made = 0;
  for (int i = 0; i < kTries; ++i) {
    const std::string said = Look(request, [] { return Format("{} mounts", MountsInRoot()); });
    // One that went elsewhere would be one less: the node's tree is gone by now. The default
    // devices are files; a mask may be one more.
    if (said == "6 mounts" || said == "7 mounts") {
      ++made;
    } else {
      EXPECT_THAT(said, AnyOf(StartsWith("ABORTED: "), StartsWith("FAILED_PRECONDITION: "),
                              HasSubstr("ENOENT"), HasSubstr("ENOTDIR")));
    }
  }
  ExpectNothingOutside();
  EXPECT_GT(made, 0U);
}

TEST_P(AttackAsRootTest, WhoeverExchangesFilesGetsNoOthersCopied) {
  constexpr int kTries = 60;
  MakeFile("/etc/file", "the image's");
  MakeLink("/etc/trap", outside_ + "/file");
  const ExchangesNames exchange(InRoot("/etc/file"), InRoot("/etc/trap"));
  const RootfsRequest request = With(MountOf("/etc", "tmpfs", "tmpfs", {"tmpcopyup"}));

  for (int i = 0; i < kTries; ++i) {
    EXPECT_THAT(Look(request, [] { return TextOf("/etc/file") + TextOf("/etc/trap"); }),
                Not(HasSubstr("the node's")));
  }
}

}  // namespace
}  // namespace gantry::container
