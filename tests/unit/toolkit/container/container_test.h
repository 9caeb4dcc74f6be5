// SPDX-License-Identifier: Apache-2.0
//
// A bundle with a root in which a container can be made, in each of the worlds.
#pragma once

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/toolkit/container/rootfs.h>

#include "tests/unit/toolkit/container/in_child.h"

namespace gantry::container {

class ContainerTest : public testing::TestWithParam<World> {
 protected:
  void SetUp() override;
  void TearDown() override;

  /// In the root; `path` begins with a slash. Directories before it are made.
  void MakeDir(const std::string& path) const;
  void MakeFile(const std::string& path, const std::string& text = "") const;
  void MakeLink(const std::string& path, const std::string& target) const;
  /// The same beside the root: what is the node's. Gives its path.
  std::string NodeDir(const std::string& name) const;
  std::string NodeFile(const std::string& name, const std::string& text) const;

  std::string InRoot(const std::string& path) const { return bundle_ + "/rootfs" + path; }

  /// /proc, and a tmpfs at /dev.
  RootfsRequest Plain() const;
  /// `Plain` with one mount more.
  RootfsRequest With(oci::SpecMount mount) const;

  std::string Look(const RootfsRequest& request, const std::function<std::string()>& look,
                   const Steps& steps = {}) const {
    return InContainer(GetParam(), request, look, steps);
  }

  std::string bundle_;

 private:
  void Give(const std::string& path) const;
};

/// One mount of a spec.
oci::SpecMount MountOf(const std::string& destination, const std::string& type,
                       const std::string& source, std::vector<std::string> options = {});

inline oci::SpecMount Bind(const std::string& source, const std::string& destination,
                           std::vector<std::string> options = {"rbind"}) {
  return MountOf(destination, "bind", source, std::move(options));
}

inline std::string WorldName(const testing::TestParamInfo<World>& world) {
  return NameOf(world.param);
}

}  // namespace gantry::container

/// What differs with the rights of the maker is in all worlds, the rest in the first.
#define GANTRY_AS_ROOT(suite)                                                                \
  INSTANTIATE_TEST_SUITE_P(World, suite, testing::Values(::gantry::container::World::kRoot), \
                           ::gantry::container::WorldName)
#define GANTRY_IN_ALL_WORLDS(suite)                                                    \
  INSTANTIATE_TEST_SUITE_P(Worlds, suite,                                              \
                           testing::Values(::gantry::container::World::kRoot,          \
                                           ::gantry::container::World::kUserNamespace, \
                                           ::gantry::container::World::kInside),       \
                           ::gantry::container::WorldName)
