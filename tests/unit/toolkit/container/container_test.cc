// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/toolkit/container/container_test.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gantry/toolkit/files/files.h>

namespace gantry::container {

void ContainerTest::SetUp() {
  if (geteuid() != 0) {
    GTEST_SKIP() << "needs root: namespaces and mounts are made";
  }
  std::string folder = "/tmp/gantry-container-XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  bundle_ = folder;
  ASSERT_EQ(chmod(bundle_.c_str(), 0755), 0);
  MakeDir("/");
}

void ContainerTest::TearDown() {
  if (!bundle_.empty()) {
    // What is mounted went with the children's mount namespaces.
    EXPECT_TRUE(RemoveTree(bundle_));
  }
}

void ContainerTest::Give(const std::string& path) const {
  const unsigned owner = GetParam() == World::kUserNamespace ? kFirstId : 0;
  ASSERT_EQ(lchown(path.c_str(), owner, owner), 0);
}

void ContainerTest::MakeDir(const std::string& path) const {
  std::string made = bundle_ + "/rootfs";
  const std::filesystem::path names = std::filesystem::path(path).relative_path();
  mkdir(made.c_str(), 0755);
  Give(made);
  for (const auto& name : names) {
    if (!name.empty()) {
      made += "/" + name.string();
      mkdir(made.c_str(), 0755);
      ASSERT_EQ(chmod(made.c_str(), 0755), 0);
      Give(made);
    }
  }
}

void ContainerTest::MakeFile(const std::string& path, const std::string& text) const {
  MakeDir(std::filesystem::path(path).parent_path());
  std::ofstream(InRoot(path)) << text;
  ASSERT_EQ(chmod(InRoot(path).c_str(), 0644), 0);
  Give(InRoot(path));
}

void ContainerTest::MakeLink(const std::string& path, const std::string& target) const {
  MakeDir(std::filesystem::path(path).parent_path());
  ASSERT_EQ(symlink(target.c_str(), InRoot(path).c_str()), 0);
  Give(InRoot(path));
}

std::string ContainerTest::NodeDir(const std::string& name) const {
  const std::string path = bundle_ + "/" + name;
  mkdir(path.c_str(), 0755);
  EXPECT_EQ(chmod(path.c_str(), 0755), 0);
  Give(path);
  return path;
}

std::string ContainerTest::NodeFile(const std::string& name, const std::string& text) const {
  const std::string path = bundle_ + "/" + name;
  std::ofstream(path) << text;
  EXPECT_EQ(chmod(path.c_str(), 0644), 0);
  Give(path);
  return path;
}

oci::SpecMount MountOf(const std::string& destination, const std::string& type,
                       const std::string& source, std::vector<std::string> options) {
  oci::SpecMount mount;
  mount.destination = destination;
  mount.type = type;
  mount.source = source;
  mount.options = std::move(options);
  return mount;
}

RootfsRequest ContainerTest::Plain() const {
  RootfsRequest request;
  request.bundle = bundle_;
  request.root.path = "rootfs";
  request.binds_devices = GetParam() != World::kRoot;
  // A new /proc needs a pid namespace of its own where there is a user namespace.
  if (GetParam() == World::kRoot) {
    request.mounts.push_back(MountOf("/proc", "proc", "proc", {"nosuid", "noexec", "nodev"}));
  } else {
    request.mounts.push_back(MountOf("/proc", "bind", "/proc", {"rbind"}));
  }
  request.mounts.push_back(
      MountOf("/dev", "tmpfs", "tmpfs", {"nosuid", "strictatime", "mode=755", "size=65536k"}));
  return request;
}

RootfsRequest ContainerTest::With(oci::SpecMount mount) const {
  RootfsRequest request = Plain();
  request.mounts.push_back(std::move(mount));
  return request;
}

}  // namespace gantry::container
