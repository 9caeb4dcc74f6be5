// SPDX-License-Identifier: Apache-2.0
//
// A real guest with the agent, and the storage of a sandbox. One for all tests of a suite: a boot
// takes longer than any of them. A test that fails shows the console's end.
#pragma once

#include <memory>
#include <string>

#include <gtest/gtest.h>

#include <gantry/testing/sandbox_context.h>

#include "core/os/fs.h"
#include "plugins/vmm/storage/storage.h"
#include "tests/vmm/agent/guest.h"

namespace gantry::vmm {

struct GuestContainer {
  std::string id;
  ContainerRequest request;
  UniqueFd out;

  /// Of its root, on the node.
  std::string InRoot(const std::string& path) const { return request.rootfs + path; }
};

/// What a container is to be.
struct ContainerShape {
  std::string script;
  /// Members of `mounts`.
  std::string mounts{};
  /// Of `linux`: members, each with a comma before it.
  std::string linux_more{};
  /// Where its root is mounted already; empty: a folder with busybox is made.
  std::string rootfs{};
  /// In its root.
  std::string busybox = "/bin/busybox";
};

class StorageGuest {
 public:
  /// `layer_mib`: layers for writing are on a disk, so large; 0: in memory.
  static Result<std::unique_ptr<StorageGuest>> Boot(uint32_t layer_mib = 0);
  StorageGuest(const StorageGuest&) = delete;
  StorageGuest& operator=(const StorageGuest&) = delete;
  ~StorageGuest();

  Result<GuestContainer> Create(const ContainerShape& shape);
  Status Start(const GuestContainer& container);
  /// Created and started; what it says, to its end.
  std::string Say(const ContainerShape& shape);
  /// As the backend does it: agent, machine, storage.
  Status Delete(const GuestContainer& container);
  Status WaitForExit(const GuestContainer& container);

  /// A folder of the node, with busybox.
  std::string NewRoot(const std::string& name) const;
  std::string NewFolder(const std::string& name) const;

  std::string folder() const { return folder_.path(); }

  /// Where the layers for writing are on a disk.
  std::string layers() const;

  Hypervisor& vm() { return machine_->vm(); }

  Storage& storage() { return *storage_; }

  std::string Words() const { return machine_->Words(); }

 private:
  StorageGuest() = default;

  Status Begin(uint32_t layer_mib);
  Status Attach(const ContainerStorage& storage);

  FakeSandboxContext context_;
  os::TempDir folder_ = os::TempDir::Create().value();
  std::string run_ = folder_.path() + "/run";
  std::unique_ptr<Storage> storage_;
  std::unique_ptr<RealGuest> machine_;
  int containers_ = 0;
};

/// A suite with such a guest.
class StorageInGuest : public testing::Test {
 protected:
  static void SetUpTestSuite() { BootWith(0); }

  /// As `StorageGuest::Boot`.
  static void BootWith(uint32_t layer_mib);

  static void TearDownTestSuite() { guest_.reset(); }

  void SetUp() override { ASSERT_EQ(why_, ""); }

  void TearDown() override;

  static std::unique_ptr<StorageGuest> guest_;
  static std::string why_;
};

/// A member of `mounts`.
std::string BindOf(const std::string& source, const std::string& destination,
                   const std::string& options = R"("rbind")");

}  // namespace gantry::vmm
