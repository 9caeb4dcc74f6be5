// SPDX-License-Identifier: Apache-2.0
//
// A root of a process's own with something of the node in it, as the process and the kernel show
// it.
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>

#include "core/os/fs.h"
#include "core/os/spawn.h"
#include "tests/unit/os/spawned.h"

namespace gantry::os {
namespace {

using testing::HasSubstr;
using testing::Not;

class SpawnRoot : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) {
      GTEST_SKIP() << "needs root";
    }
    for (const char* const name : {"/read", "/written"}) {
      ASSERT_EQ(mkdir((folder_.path() + name).c_str(), 0755), 0);
      ASSERT_TRUE(WriteFile(folder_.path() + name + "/file", name, 0644));
    }
  }

  /// With a shell that is linked dynamically.
  SpawnRequest Request(std::vector<RootPath> more) const {
    SpawnRequest request;
    request.empty_root = true;
    for (const char* const path : {"/bin", "/lib", "/lib64", "/usr", "/dev/null"}) {
      if (access(path, F_OK) == 0) {
        request.root_paths.push_back({.path = path});
      }
    }
    std::ranges::move(more, std::back_inserter(request.root_paths));
    return request;
  }

  std::string In(const std::string& name) const { return folder_.path() + name; }

  static std::string Said(const std::string& script, SpawnRequest request) {
    const auto result = RunScript(script, request);
    return result ? result->output : result.error().message;
  }

  TempDir folder_ = TempDir::Create().value();
};

TEST_F(SpawnRoot, ShowsWhatIsNamedAndNothingElse) {
  EXPECT_EQ(Said("ls /; ls /dev; ls -d " + In("/*") + "; cat " + In("/read/file"),
                 Request({{.path = In("/read")}})),
            Format("bin\ndev\nlib\nlib64\n{}\nusr\nnull\n{}\n/read",
                   folder_.path().substr(1, folder_.path().find('/', 1) - 1), In("/read")));
}

TEST_F(SpawnRoot, IsReadOnlyButForWhatIsNotToBe) {
  EXPECT_EQ(
      Said(Format("for to in / /usr/ {0}/read/ {0}/written/; do touch \"$to\"new 2>/dev/null && "
                  "echo \"$to\"; done; echo x >/dev/null && echo device",
                  folder_.path()),
           Request({{.path = In("/read")}, {.path = In("/written"), .writable = true}})),
      In("/written/") + "\ndevice\n");
  EXPECT_TRUE(Exists(In("/written/new")));
}

TEST_F(SpawnRoot, CanBePassedByWhoIsNotRoot) {
  SpawnRequest request = Request({{.path = In("/read/file")}});
  request.uid = 65534;
  request.gid = 65534;
  ASSERT_EQ(chmod(folder_.path().c_str(), 0711), 0);
  const mode_t before = umask(0077);
  const std::string said =
      Said("cat " + In("/read/file") + "; echo x >/dev/null && umask", request);
  umask(before);
  EXPECT_EQ(said, "/read0077\n") << "whatever the umask is, which it keeps";
}

TEST_F(SpawnRoot, FollowsALinkAndShowsAFileWithinADirectory) {
  ASSERT_EQ(symlink(In("/read/file").c_str(), In("/link").c_str()), 0);
  EXPECT_EQ(Said("cat " + In("/link") + " " + In("/written/file"),
                 Request({{.path = In("/link")},
                          {.path = In("/written"), .writable = true},
                          {.path = In("/written/file")}})),
            "/read/written");
}

/// What is mounted in a folder of the node's, whose mounts are shared, after the child is there.
TEST_F(SpawnRoot, ShowsWhatComesLaterInADirectoryThatIsWritable) {
  const std::string shared = In("/written");
  ASSERT_EQ(::mount("none", shared.c_str(), "tmpfs", 0, ""), 0);
  ASSERT_EQ(::mount(nullptr, shared.c_str(), nullptr, MS_SHARED, nullptr), 0);
  ASSERT_EQ(mkdir((shared + "/later").c_str(), 0755), 0);
  SpawnRequest request = Request({{.path = shared, .writable = true}});
  request.argv = {"/bin/sleep", "1000"};
  auto spawned = SpawnProcess(request);
  ASSERT_TRUE(spawned) << spawned.error().message;
  {
    const Child child(std::move(*spawned));
    EXPECT_EQ(::mount(In("/read").c_str(), (shared + "/later").c_str(), nullptr, MS_BIND, nullptr),
              0);
    const std::string seen = "/proc/" + std::to_string(child.process().pid) + "/root" + shared;
    EXPECT_EQ(ReadFile(seen + "/later/file", 100).value_or(""), "/read");
    EXPECT_EQ(umount2((shared + "/later").c_str(), MNT_DETACH), 0);
    EXPECT_FALSE(Exists(seen + "/later/file"));
  }
  EXPECT_EQ(umount2(shared.c_str(), MNT_DETACH), 0);
}

TEST_F(SpawnRoot, LeavesNoMountBehind) {
  EXPECT_EQ(Said("echo here", Request({{.path = In("/written"), .writable = true}})), "here\n");
  // Others of this machine may mount what they like meanwhile.
  const std::string mounts = ReadFile("/proc/self/mountinfo", size_t{1} << 20).value();
  EXPECT_THAT(mounts, Not(HasSubstr(folder_.path())));
  EXPECT_THAT(mounts, Not(HasSubstr(" / /proc ro,nosuid,nodev,noexec")));
}

TEST_F(SpawnRoot, SaysWhatIsNotThere) {
  EXPECT_EQ(Said("true", Request({{.path = "/nowhere/at/all"}})),
            "show '/nowhere/at/all' in a root of its own: ENOENT");
}

TEST_F(SpawnRoot, TakesPlainPathsOnly) {
  for (const char* const path : {"", "/", "usr", "/usr/", "/usr/../etc", "/usr/..", "/./usr",
                                 "/usr/.", "//usr", "/proc", "/proc/self"}) {
    EXPECT_THAT(Said("true", Request({{.path = path}})), HasSubstr("an absolute path without"));
  }
  SpawnRequest request = Request({});
  request.root_paths.resize(65, {.path = "/usr"});
  EXPECT_THAT(Said("true", request), HasSubstr("64 are the most"));
  request = Request({});
  request.empty_root = false;
  EXPECT_THAT(Said("true", request), HasSubstr("none of its own"));
}

}  // namespace
}  // namespace gantry::os
