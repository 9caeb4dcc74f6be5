// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/format.h>
#include <gantry/toolkit/container/in_root.h>
#include <gantry/toolkit/files/files.h>

namespace gantry::container {
namespace {

using testing::HasSubstr;

class InRootTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string folder = "/tmp/gantry-in-root-XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    base_ = folder;
    // Beside the root is what must not be reached.
    for (const char* name : {"/root", "/root/dir", "/root/dir/below", "/outside"}) {
      ASSERT_EQ(mkdir((base_ + name).c_str(), 0755), 0);
    }
    std::ofstream(base_ + "/root/file") << "in";
    std::ofstream(base_ + "/outside/file") << "out";
    root_.reset(open((base_ + "/root").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    ASSERT_TRUE(root_);
  }

  void TearDown() override { EXPECT_TRUE(RemoveTree(base_)); }

  void Link(const std::string& name, const std::string& target) const {
    ASSERT_EQ(symlink(target.c_str(), (base_ + "/root/" + name).c_str()), 0);
  }

  /// Where it is in the root; the code's name of an error.
  std::string Where(const Result<UniqueFd>& found) const {
    if (!found) {
      return std::string(CodeName(found.error().code));
    }
    std::array<char, 4096> path{};
    const std::string name = Format("/proc/self/fd/{}", found->get());
    if (readlink(name.c_str(), path.data(), path.size() - 1) < 0) {
      return "nowhere";
    }
    const std::string whole = path.data();
    const std::string root = base_ + "/root";
    return whole.starts_with(root) ? "in " + whole.substr(root.size()) : "OUT " + whole;
  }

  std::string Open(const std::string& path, Links links = Links::kFollow) const {
    return Where(OpenInRoot(root_.get(), path, links));
  }

  std::string MakeDirectory(const std::string& path, Links links = Links::kFollow) const {
    return Where(MakeDirectoryInRoot(root_.get(), path, 0755, links));
  }

  std::string MakeFile(const std::string& path, Links links = Links::kFollow) const {
    return Where(MakeFileInRoot(root_.get(), path, 0644, links));
  }

  bool OutsideIsAsItWas() const {
    size_t entries = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(base_ + "/outside")) {
      entries += entry.exists() ? 1 : 0;
    }
    return entries == 1;
  }

  std::string base_;
  UniqueFd root_;
};

TEST_F(InRootTest, SlashIsTheRoot) {
  EXPECT_EQ(Open("/"), "in ");
  EXPECT_EQ(Open(""), "in ");
  EXPECT_EQ(Open("/dir/below"), "in /dir/below");
  EXPECT_EQ(Open("dir//./below/"), "in /dir/below");
  EXPECT_EQ(Open("/missing"), "NOT_FOUND");
}

TEST_F(InRootTest, DotsEndAtTheRoot) {
  EXPECT_EQ(Open("/../../../dir"), "in /dir");
  EXPECT_EQ(Open("dir/../../../../file"), "in /file");
  EXPECT_EQ(MakeDirectory("/../../new/../other"), "in /other");
  EXPECT_EQ(MakeFile("../../../made"), "in /made");
  EXPECT_TRUE(OutsideIsAsItWas());
}

TEST_F(InRootTest, LinksLeadWhereTheyLeadTheContainer) {
  Link("absolute", "/dir");
  Link("up", "../../../../dir");
  Link("out", base_ + "/outside");
  Link("chain", "absolute/below");

  EXPECT_EQ(Open("/absolute"), "in /dir");
  EXPECT_EQ(Open("/up/below"), "in /dir/below");
  EXPECT_EQ(Open("/out/file"), "NOT_FOUND");
  EXPECT_EQ(Open("/chain"), "in /dir/below");
  EXPECT_EQ(MakeDirectory("/up/new"), "in /dir/new");
  EXPECT_EQ(MakeFile("/absolute/made"), "in /dir/made");
}

TEST_F(InRootTest, LinksToNothingAreMadeInTheRoot) {
  Link("run", "/var/run");
  Link("relative", "dir/a/../b");
  Link("out", base_ + "/outside/new");
  Link("up", "../../../outside/new");
  Link("dir/deep", "/srv");
  Link("dir/beside", "c/d");

  EXPECT_EQ(MakeDirectory("/dir/deep/x"), "in /srv/x");
  EXPECT_EQ(MakeDirectory("/dir/beside"), "in /dir/c/d");
  EXPECT_EQ(MakeDirectory("/run/secrets"), "in /var/run/secrets");
  EXPECT_EQ(MakeFile("/relative"), "in /dir/b");
  // The same names, but in the root.
  EXPECT_EQ(MakeDirectory("/out"), "in " + base_ + "/outside/new");
  EXPECT_EQ(MakeDirectory("/up"), "in /outside/new");
  EXPECT_TRUE(OutsideIsAsItWas());
}

TEST_F(InRootTest, RefusesLinksWhereTheyAreNotWanted) {
  Link("absolute", "/dir");
  Link("dir/below/link", "/file");

  EXPECT_EQ(Open("/absolute", Links::kRefuse), "FAILED_PRECONDITION");
  EXPECT_EQ(Open("/absolute/below", Links::kRefuse), "FAILED_PRECONDITION");
  EXPECT_EQ(Open("/dir/below", Links::kRefuse), "in /dir/below");
  EXPECT_EQ(MakeDirectory("/absolute/new", Links::kRefuse), "FAILED_PRECONDITION");
  EXPECT_EQ(MakeFile("/dir/below/link", Links::kRefuse), "FAILED_PRECONDITION");
  Link("nothing", "/new");
  EXPECT_EQ(MakeDirectory("/nothing", Links::kRefuse), "FAILED_PRECONDITION");
  EXPECT_FALSE(Exists(base_ + "/root/new"));
}

TEST_F(InRootTest, LinksInACircleEnd) {
  Link("a", "b");
  Link("b", "a");
  Link("self", "self/x");

  EXPECT_EQ(Open("/a"), "FAILED_PRECONDITION");
  EXPECT_EQ(MakeDirectory("/a/new"), "FAILED_PRECONDITION");
  EXPECT_EQ(MakeDirectory("/self"), "FAILED_PRECONDITION");
}

TEST_F(InRootTest, LinksOfProcLeadNowhere) {
  // They lead to a file that somebody has open, whatever root it is in.
  const UniqueFd proc(open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC));
  const UniqueFd outside(open((base_ + "/outside").c_str(), O_PATH | O_CLOEXEC));

  EXPECT_EQ(Where(OpenInRoot(proc.get(), "self/root")), "FAILED_PRECONDITION");
  EXPECT_EQ(Where(OpenInRoot(proc.get(), Format("self/fd/{}/file", outside.get()))),
            "FAILED_PRECONDITION");
  EXPECT_EQ(Where(MakeDirectoryInRoot(proc.get(), Format("self/fd/{}/new", outside.get()), 0755)),
            "FAILED_PRECONDITION");
  EXPECT_TRUE(OutsideIsAsItWas());
}

TEST_F(InRootTest, SaysWhatIsNotWhatItHasToBe) {
  EXPECT_EQ(MakeDirectory("/file"), "FAILED_PRECONDITION");
  EXPECT_EQ(MakeFile("/dir"), "FAILED_PRECONDITION");
  EXPECT_EQ(MakeDirectory("/file/new"), "INTERNAL");
  EXPECT_THAT(MakeDirectoryInRoot(root_.get(), "/file/new", 0755).error().message,
              HasSubstr("'/file/new' in the root: ENOTDIR"));
  EXPECT_EQ(Open(std::string("/dir\0/x", 7)), "INVALID_ARGUMENT");
}

TEST_F(InRootTest, WhatIsThereStays) {
  EXPECT_EQ(MakeFile("/file"), "in /file");
  EXPECT_EQ(ReadFile(base_ + "/root/file", 100).value_or(""), "in");
  ASSERT_EQ(mkfifo((base_ + "/root/fifo").c_str(), 0600), 0);
  // Nobody opens it: that would wait for its other end.
  EXPECT_EQ(MakeFile("/fifo"), "in /fifo");
}

TEST_F(InRootTest, MakesWithTheModeThatIsWanted) {
  const mode_t before = umask(0);
  MakeDirectory("/a/b");
  EXPECT_TRUE(MakeDirectoryInRoot(root_.get(), "/c/d", 0700));
  EXPECT_TRUE(MakeFileInRoot(root_.get(), "/e/f", 0640));
  umask(before);

  const auto mode = [this](const char* name) {
    struct stat info{};
    stat((base_ + "/root" + name).c_str(), &info);
    return info.st_mode & 07777U;
  };
  EXPECT_EQ(mode("/a"), 0755U);
  EXPECT_EQ(mode("/c"), 0700U);
  EXPECT_EQ(mode("/c/d"), 0700U);
  EXPECT_EQ(mode("/e"), 0755U);
  EXPECT_EQ(mode("/e/f"), 0640U);
}

/// A process that exchanges two names without end, as one in a shared volume may.
class Exchanger {
 public:
  Exchanger(const std::string& one, const std::string& other) : child_(fork()) {
    if (child_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      for (;;) {
        syscall(SYS_renameat2, AT_FDCWD, one.c_str(), AT_FDCWD, other.c_str(), RENAME_EXCHANGE);
      }
    }
  }

  Exchanger(const Exchanger&) = delete;
  Exchanger& operator=(const Exchanger&) = delete;

  ~Exchanger() {
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }

 private:
  pid_t child_;
};

TEST_F(InRootTest, WhoeverExchangesDirectoriesLeadsNobodyOut) {
  constexpr int kTries = 2000;
  Link("trap", base_ + "/outside");
  Link("up", "../../outside");
  const Exchanger absolute(base_ + "/root/dir", base_ + "/root/trap");
  const Exchanger relative(base_ + "/root/dir", base_ + "/root/up");

  for (int i = 0; i < kTries; ++i) {
    const std::string name = Format("/dir/new{}", i % 3);
    for (const std::string& where :
         {Open("/dir/below"), Open("/dir/file"), MakeDirectory(name), MakeFile(name + "/f"),
          MakeDirectory("/dir/../dir/x", Links::kRefuse)}) {
      ASSERT_THAT(where, testing::Not(testing::StartsWith("OUT")));
    }
  }
  EXPECT_TRUE(OutsideIsAsItWas());
}

}  // namespace
}  // namespace gantry::container
