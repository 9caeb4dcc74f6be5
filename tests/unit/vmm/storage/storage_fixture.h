// SPDX-License-Identifier: Apache-2.0
//
// A sandbox's storage with real mounts, and in place of virtiofsd a program that waits in its
// namespaces. With the real one, and a guest: tests/vmm/storage.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <gantry/testing/sandbox_context.h>
#include <gantry/toolkit/sync/mutex.h>

#include "core/os/fs.h"
#include "plugins/vmm/storage/storage.h"

namespace gantry::vmm {

class StorageFixture : public testing::Test {
 protected:
  StorageFixture();
  ~StorageFixture() override;

  /// `script`: what virtiofsd is.
  void WriteProgram(const std::string& script);
  StorageRequest Request();
  void Start();
  /// As a new engine finds it.
  Result<std::unique_ptr<Storage>> RestartEngine();

  /// A container with a root of its own on the node; `mounts`, `more`: of its config.json, `more`
  /// with a comma before it.
  ContainerRequest Container(const std::string& id, const std::string& mounts = "",
                             const std::string& more = "");
  Result<ContainerStorage> Add(const ContainerRequest& request);

  Result<ContainerStorage> Add(const std::string& id, const std::string& mounts = "",
                               const std::string& more = "") {
    return Add(Container(id, mounts, more));
  }

  /// The same, whose root is an image of erofs, `root.erofs` in the test's folder.
  Result<ContainerStorage> AddOnImage(const ContainerRequest& request);

  std::string Shared(const std::string& name = "") const {
    return directory_ + "/shared" + (name.empty() ? "" : "/" + name);
  }

  /// On the node, of what a guest has at `path`.
  std::string Behind(const std::string& path) const;
  std::string NewFolder(const std::string& name);
  std::optional<Error> WaitForEnd();

  /// In the guest: its root; what is bound at the mount of that place.
  static std::string RootOf(const ContainerStorage& storage);
  static std::string SourceOf(const ContainerStorage& storage, size_t place = 0);
  /// Of what the agent mounts.
  static std::vector<std::string> Types(const ContainerStorage& storage);

  static ContainerId Id(const std::string& id) { return ContainerId::Parse(id).value(); }

  FakeSandboxContext context_;
  os::TempDir folder_ = os::TempDir::Create().value();
  std::string directory_ = folder_.path() + "/sandbox";
  Traits traits_{.disks = true, .file_systems = true};
  uint32_t disk_places_ = 16;
  /// Of layers for writing; empty: they are in memory.
  std::string layers_{};
  std::unique_ptr<Storage> storage_;

 private:
  Mutex mutex_;
  std::condition_variable ended_;
  std::optional<Error> why_ GANTRY_GUARDED_BY(mutex_);
};

/// A member of `mounts`.
std::string BindOf(const std::string& source, const std::string& destination,
                   const std::string& options = R"("rbind")");

}  // namespace gantry::vmm
