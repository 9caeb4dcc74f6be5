// SPDX-License-Identifier: Apache-2.0
//
// The container maker's own tests are run on hosts, whose kernel is not that of guests, where
// nearly all containers of this backend are made. Here they run in guests: the same programs, as
// root, of a disk that is made of this machine's files, crun and runc among them where they are
// there. All of them; GANTRY_MAKER_FILTER is a filter of GoogleTest's without a comma, to look at
// some.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/vmm/harness/test_image.h"
#include "tests/vmm/maker/guest_run.h"

namespace gantry::vmm {
namespace {

std::string Filter() {
  const char* const filter = std::getenv("GANTRY_MAKER_FILTER");  // NOLINT(concurrency-mt-unsafe)
  return filter == nullptr ? "" : filter;
}

/// Other runtimes that the maker is compared with.
std::vector<std::string> Peers() {
  std::vector<std::string> peers;
  for (const char* name : {"crun", "runc"}) {
    for (const char* folder : {"/usr/local/sbin/", "/usr/local/bin/", "/usr/sbin/", "/usr/bin/"}) {
      if (const std::string path = std::string(folder) + name; access(path.c_str(), X_OK) == 0) {
        peers.push_back(path);
        break;
      }
    }
  }
  return peers;
}

/// What it says and how long that is of the outputs of those that failed.
std::string Failures(const GuestRun& run) {
  std::string all;
  for (const std::string& test : run.failed) {
    all += OutputOf(run, test);
  }
  if (!run.unended.empty()) {
    all += "the program ended in\n" + OutputOf(run, run.unended);
  }
  return all.empty()
             ? run.output.substr(run.output.size() - std::min<size_t>(run.output.size(), 4000))
             : all;
}

class MakerInGuest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(TestImage::Get().why_not, ""); }

  static void ExpectPasses(const std::string& name) {
    std::vector<std::string> files = Peers();
    files.insert(files.end(), {GANTRY_CONTAINER_PROBE, GANTRY_INIT});
    const auto run = RunInGuest(std::string(GANTRY_TESTS "/") + name, files, Filter());
    ASSERT_TRUE(run) << run.error().message;
    std::printf("%s in a guest: %zu passed, %zu skipped, %zu failed of %zu\n", name.c_str(),
                run->passed, run->skipped.size(), run->failed.size(), run->tests);
    for (const std::string& test : run->skipped) {
      std::printf("  skipped: %s\n", test.c_str());
    }
    EXPECT_EQ(run->end, "exit 0") << Failures(*run);
    EXPECT_THAT(run->failed, testing::IsEmpty());
    // A guest has all that these tests need.
    EXPECT_THAT(run->skipped, testing::IsEmpty());
    EXPECT_GT(run->tests, 0U);
    EXPECT_EQ(run->passed, run->tests);
  }
};

TEST_F(MakerInGuest, MakesContainersAndJoinsThem) { ExpectPasses("unit_container_make"); }

TEST_F(MakerInGuest, MakesRootsInEachWorld) { ExpectPasses("unit_container_rootfs"); }

TEST_F(MakerInGuest, AndItsInitAsAProgram) { ExpectPasses("unit_init"); }

}  // namespace
}  // namespace gantry::vmm
