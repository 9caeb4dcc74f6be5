// SPDX-License-Identifier: Apache-2.0
#include "core/io/file_uses.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include <gtest/gtest.h>

#include "tests/unit/io/client.h"

namespace gantry::io {
namespace {

/// The descriptors of this process that are of `file`.
int DescriptorsOf(const std::string& file) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    count += std::filesystem::read_symlink(entry, gone) == file ? 1 : 0;
  }
  return count;
}

int InotifyInstances() { return DescriptorsOf("anon_inode:inotify"); }

class FileUsesTest : public IoTest {
 protected:
  UniqueFd OpenFile(const std::string& name) {
    return UniqueFd(open(Path(name).c_str(), O_RDONLY | O_CLOEXEC));
  }

  void Turn() {
    while (loop_.RunOnce(std::chrono::milliseconds(0))) {
    }
  }

  async::Loop loop_;
  FileUses uses_{loop_};
};

TEST_F(FileUsesTest, TellWhoseFileIsUsed) {
  File("a", "text");
  File("b", "text");
  int a = 0;
  int b = 0;
  ASSERT_TRUE(uses_.Watch(OpenFile("a").get(), [&] { ++a; }));
  ASSERT_TRUE(uses_.Watch(OpenFile("b").get(), [&] { ++b; }));
  OpenFile("a");
  Turn();
  EXPECT_EQ(a, 1);
  EXPECT_EQ(b, 0);
}

TEST_F(FileUsesTest, TellAllWhoWantToKnowOfOneFile) {
  File("a", "text");
  int first = 0;
  int second = 0;
  const UseId one = uses_.Watch(OpenFile("a").get(), [&] { ++first; }).value();
  ASSERT_TRUE(uses_.Watch(OpenFile("a").get(), [&] { ++second; }));
  Turn();
  first = 0;
  second = 0;
  OpenFile("a");
  Turn();
  EXPECT_EQ(first, 1);
  EXPECT_EQ(second, 1);
  uses_.Unwatch(one);
  uses_.Unwatch(one);
  // Were the kernel's watch gone with the first one, it would say so now.
  Turn();
  EXPECT_EQ(second, 1);
  OpenFile("a");
  Turn();
  EXPECT_EQ(first, 1);
  EXPECT_EQ(second, 2);
}

TEST_F(FileUsesTest, OneMayEndTheOthers) {
  File("a", "text");
  int calls = 0;
  std::vector<UseId> both;
  for (int i = 0; i < 2; ++i) {
    both.push_back(uses_
                       .Watch(OpenFile("a").get(),
                              [&] {
                                ++calls;
                                uses_.Unwatch(both[0]);
                                uses_.Unwatch(both[1]);
                              })
                       .value());
  }
  OpenFile("a");
  Turn();
  EXPECT_EQ(calls, 1);
}

TEST_F(FileUsesTest, ManyTailsCostOneInstance) {
  constexpr int kTails = 20;
  const int before = InotifyInstances();
  std::vector<std::unique_ptr<ProcessIo>> all;
  for (int i = 0; i < kTails; ++i) {
    const StdioPaths paths{"", Fifo("out" + std::to_string(i)), "", false};
    {
      const Reader goes_away(paths.out, SIZE_MAX, true);
      all.push_back(Open(paths));
    }
    Stdio stdio = all.back()->Take().value();
    ASSERT_EQ(write(stdio.out.fd.get(), "tail", 4), 4);
    stdio = Stdio();
    all.back()->Started();
    all.back()->Ended();
  }
  // Each has seen its writers go, and has a write end again: it waits for a reader. The
  // host has a read end of the last one, for all have the same names.
  for (int i = 0; i < kTails; ++i) {
    const std::string path = Path("out" + std::to_string(i));
    const int expected = i == kTails - 1 ? 3 : 2;
    ASSERT_TRUE(Eventually([&] { return DescriptorsOf(path) == expected; }));
  }
  EXPECT_LE(InotifyInstances(), before + 1);
  for (int i = 0; i < kTails; ++i) {
    Reader out(Path("out" + std::to_string(i)));
    ASSERT_TRUE(out.AwaitEnd());
    EXPECT_EQ(out.text(), "tail");
  }
}

}  // namespace
}  // namespace gantry::io
