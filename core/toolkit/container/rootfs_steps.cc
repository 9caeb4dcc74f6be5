// SPDX-License-Identifier: Apache-2.0
//
// `Make` with the root that config.json describes.
#include <sys/stat.h>

#include <memory>
#include <utility>

#include <gantry/toolkit/container/make.h>
#include <gantry/toolkit/container/rootfs.h>

#include "core/toolkit/container/make_with.h"

namespace gantry::container {
namespace {

class RootfsSteps : public RootSteps {
 public:
  RootfsSteps(RootfsRequest request, EnterBy by) : request_(std::move(request)), by_(by) {}

  Status Open() override {
    GANTRY_TRY(Rootfs opened, Rootfs::Open(std::move(request_)));
    rootfs_ = std::make_unique<Rootfs>(std::move(opened));
    return {};
  }

  Status Mount() override { return rootfs_->Mount(); }

  Status Enter() override { return rootfs_->Enter(by_); }

  Status AttachConsole(int terminal) override { return rootfs_->AttachConsole(terminal); }

  Status Seal() override {
    Status sealed = rootfs_->Seal();
    rootfs_.reset();
    return sealed;
  }

 private:
  RootfsRequest request_;
  EnterBy by_;
  /// Null before `Open`, and once it is sealed.
  std::unique_ptr<Rootfs> rootfs_;
};

// Device files can be made where the node's own user namespace is. Where that cannot be seen, the
// kernel says it when it is tried. Source: of the kernel include/linux/proc_ns.h,
// PROC_USER_INIT_INO.
bool IsInOtherUserNamespace() {
  constexpr ino_t kInitial = 0xEFFFFFFDU;
  struct stat about{};
  return ::stat("/proc/self/ns/user", &about) == 0 && about.st_ino != kInitial;
}

}  // namespace

Result<MadeProcess> Make(MakeRequest request) {
  const oci::Spec& spec = request.spec;
  RootfsRequest root{
      .bundle = request.bundle,
      .root = spec.root,
      .mounts = spec.mounts,
      .settings = spec.linux_spec,
      .binds_devices = spec.FindNamespace("user") != nullptr || IsInOtherUserNamespace()};
  RootfsSteps steps(std::move(root), request.enter_by);
  return MakeWith(std::move(request), &steps);
}

}  // namespace gantry::container
