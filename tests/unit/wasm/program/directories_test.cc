// SPDX-License-Identifier: Apache-2.0
//
// Which directories a guest gets of a spec. Their paths are looked up in the root of the test.
#include "plugins/wasm/program/directories.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gantry::wasm {

void PrintTo(const Directory& one, std::ostream* out) {
  *out << one.path << (one.writable ? " rw" : " ro");
}

namespace {

using testing::ElementsAre;

oci::Spec With(bool readonly, std::vector<oci::SpecMount> mounts) {
  oci::Spec spec;
  spec.root.readonly = readonly;
  spec.mounts = std::move(mounts);
  return spec;
}

oci::SpecMount At(const char* destination, std::vector<std::string> options = {}) {
  oci::SpecMount mount;
  mount.destination = destination;
  mount.options = std::move(options);
  return mount;
}

TEST(DirectoriesTest, TheRootIsAsTheSpecHasIt) {
  EXPECT_THAT(DirectoriesOf(With(false, {})), ElementsAre(Directory{"/", true}));
  EXPECT_THAT(DirectoriesOf(With(true, {})), ElementsAre(Directory{"/", false}));
}

TEST(DirectoriesTest, AMountThatDiffersHasItsOwn) {
  EXPECT_THAT(DirectoriesOf(With(false, {At("/usr//bin/", {"bind", "ro"}), At("/etc")})),
              ElementsAre(Directory{"/", true}, Directory{"/usr/bin", false}));
  EXPECT_THAT(DirectoriesOf(With(true, {At("/tmp", {"rw"}), At("/etc", {"ro"})})),
              ElementsAre(Directory{"/", false}, Directory{"/tmp", true}));
}

TEST(DirectoriesTest, TheLastWordCounts) {
  EXPECT_THAT(DirectoriesOf(With(false, {At("/tmp", {"ro", "rw"}), At("/etc", {"rw", "rro"})})),
              ElementsAre(Directory{"/", true}, Directory{"/etc", false}));
}

TEST(DirectoriesTest, WhatIsBelowAMountGoesByThat) {
  EXPECT_THAT(
      DirectoriesOf(With(false, {At("/usr", {"ro"}), At("/usr/lib"), At("/usr/bin", {"ro"})})),
      ElementsAre(Directory{"/", true}, Directory{"/usr", false}, Directory{"/usr/lib", true}));
  EXPECT_THAT(DirectoriesOf(With(false, {At("/us", {"ro"}), At("/usr", {"ro"})})),
              ElementsAre(Directory{"/", true}, Directory{"/usr", false}));
}

TEST(DirectoriesTest, ALaterMountHidesWhatWasThere) {
  EXPECT_THAT(DirectoriesOf(With(false, {At("/usr/lib", {"ro"}), At("/usr")})),
              ElementsAre(Directory{"/", true}));
}

TEST(DirectoriesTest, WhatIsNoDirectoryIsLeftToTheKernel) {
  EXPECT_THAT(DirectoriesOf(With(false, {At("/etc/passwd", {"ro"}), At("/no/such", {"ro"}),
                                         At("/usr/../etc", {"ro"}), At("/", {"ro"})})),
              ElementsAre(Directory{"/", true}));
}

}  // namespace
}  // namespace gantry::wasm
