// SPDX-License-Identifier: Apache-2.0
#include "plugins/runc/sealed_binary.h"

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/format.h>
#include <gantry/testing/sandbox_context.h>

#include "plugins/runc/oci_command.h"
#include "tests/unit/runc/test_files.h"

namespace gantry::runc {
namespace {

/// Good until the next call.
std::string PathOf(const SealedBinary& sealed) {
  static UniqueFd program;
  program = std::move(*sealed.Program());
  return Format("/proc/self/fd/{}", program.get());
}

TEST(Seal, CopiesOncePerVersion) {
  const TempDir dir;
  std::filesystem::copy_file("/bin/true", dir / "crun");
  const auto first = Seal(dir / "crun");
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(Seal(dir / "crun"), first);
  EXPECT_EQ(Slurp(PathOf(*first)), Slurp("/bin/true"));
  const UniqueFd writable(open(PathOf(*first).c_str(), O_RDWR | O_CLOEXEC));
  EXPECT_LT(write(writable.get(), "x", 1), 0);
  ASSERT_TRUE(std::filesystem::copy_file("/bin/false", dir / "new"));
  ASSERT_EQ(rename((dir / "new").c_str(), (dir / "crun").c_str()), 0);
  const auto second = Seal(dir / "crun");
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(Slurp(PathOf(*second)), Slurp("/bin/false"));
}

TEST(Seal, LeavesScriptsOtherNamesAndNothingAlone) {
  const TempDir dir;
  Write(dir / "crun", "#!/bin/sh\n", 0755);
  EXPECT_EQ(Seal(dir / "crun"), nullptr);
  EXPECT_EQ(Seal("/bin/true"), nullptr);
  EXPECT_EQ(Seal(dir / "runc"), nullptr);
}

class SealedRun : public testing::Test {
 protected:
  SealedRun() { std::filesystem::copy_file("/bin/true", dir_ / "runc"); }

  Status Run() {
    Options options;
    options.binary_name = dir_ / "runc";
    OciCall call;
    call.verb = "create";
    call.object = "c1";
    call.bundle = dir_.path();
    call.log_name = "x.log";
    call.capture = true;
    call.limit = std::chrono::seconds(10);
    return OciCommand(options, Namespace(), context_).Run(std::move(call));
  }

  TempDir dir_;
  FakeSandboxContext context_{Orphans::kAdopted};
};

// The engine may end before the keeper executes it, and its pid be a container's then.
TEST_F(SealedRun, ExecutesTheCopyByADescriptorAndNoPath) {
  ASSERT_TRUE(Run());
  ASSERT_EQ(context_.asked.size(), 1U);
  EXPECT_EQ(context_.asked[0].argv[0], dir_ / "runc") << "a name only";
  EXPECT_THAT(context_.asked[0].program, testing::StartsWith("/memfd:oci-runtime"));
}

TEST_F(SealedRun, FallsBackToTheFileForGood) {
  context_.on_spawn = [](const SpawnRequest& request) {
    return request.program ? Status(FailErrno(EACCES, "execute '{}'", request.argv[0])) : Status();
  };
  ASSERT_TRUE(Run());
  ASSERT_TRUE(Run());
  ASSERT_EQ(context_.asked.size(), 3U);
  EXPECT_EQ(context_.asked[1].program, "");
  EXPECT_EQ(context_.asked[2].program, "");
  EXPECT_EQ(context_.asked[2].argv[0], dir_ / "runc");
}

}  // namespace
}  // namespace gantry::runc
