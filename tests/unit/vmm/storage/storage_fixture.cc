// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/vmm/storage/storage_fixture.h"

#include <sys/stat.h>

#include <chrono>
#include <utility>

#include <nlohmann/json.hpp>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/image/erofs_image.h>
#include <gantry/toolkit/mount/mount.h>
#include <gantry/toolkit/mount/unmount.h>

#include "plugins/vmm/storage/layout.h"

namespace gantry::vmm {

std::string BindOf(const std::string& source, const std::string& destination,
                   const std::string& options) {
  return Format(R"({{"destination": "{}", "type": "bind", "source": "{}", "options": [{}]}})",
                destination, source, options);
}

StorageFixture::StorageFixture() {
  EXPECT_TRUE(os::MakeDirs(directory_, 0700));
  WriteProgram("exec sleep 1000");
}

StorageFixture::~StorageFixture() {
  if (storage_) {
    const Status gone = storage_->Shutdown();
    EXPECT_TRUE(gone) << gone.error().message;
  }
}

void StorageFixture::WriteProgram(const std::string& script) {
  EXPECT_TRUE(WriteFile(folder_.path() + "/virtiofsd", "#!/bin/sh\n" + script + "\n", 0755));
}

StorageRequest StorageFixture::Request() {
  return {.directory = directory_,
          .options = {.virtiofsd = folder_.path() + "/virtiofsd",
                      .writable_layer_mib = layers_.empty() ? 0U : 64U,
                      .layers_directory = layers_},
          .cgroups = {},
          .traits = traits_,
          .disk_places = disk_places_,
          .ended = [this](Error why) {
            const MutexLock lock(mutex_);
            why_ = std::move(why);
            ended_.notify_all();
          }};
}

void StorageFixture::Start() {
  auto made = Storage::Make(context_, Request());
  ASSERT_TRUE(made) << made.error().message;
  storage_ = std::move(*made);
}

Result<std::unique_ptr<Storage>> StorageFixture::RestartEngine() {
  storage_.reset();
  context_.RestartEngine();
  return Storage::Recover(context_, Request());
}

std::string StorageFixture::NewFolder(const std::string& name) {
  const std::string path = folder_.path() + "/" + name;
  EXPECT_TRUE(os::MakeDirs(path, 0755));
  return path;
}

ContainerRequest StorageFixture::Container(const std::string& id, const std::string& mounts,
                                           const std::string& more) {
  ContainerRequest request;
  request.id = Id(id);
  request.bundle = NewFolder("bundles/" + id);
  request.rootfs = NewFolder("bundles/" + id + "/rootfs");
  EXPECT_TRUE(WriteFile(request.rootfs + "/name", id, 0644));
  request.spec_json = Format(
      R"({{"ociVersion": "1.2.0", "root": {{"path": "rootfs"}}, "mounts": [{}],
          "process": {{"args": ["x"], "cwd": "/", "user": {{"uid": 0, "gid": 0}}}}{}}})",
      mounts, more);
  return request;
}

Result<ContainerStorage> StorageFixture::Add(const ContainerRequest& request) {
  GANTRY_TRY(const oci::Spec spec, oci::ParseSpec(request.spec_json, "config.json"));
  return storage_->Add(request, spec);
}

Result<ContainerStorage> StorageFixture::AddOnImage(const ContainerRequest& request) {
  const std::string image = folder_.path() + "/root.erofs";
  if (!Exists(image)) {
    GANTRY_TRY(const std::string bytes,
               ErofsImage({{"name", {.mode = S_IFREG | 0644, .content = "a"}}}));
    GANTRY_CHECK_OK(WriteFile(image, bytes, 0600));
  }
  GANTRY_CHECK_OK(mount::MountAll(request.rootfs,
                                  {{.type = "erofs", .source = image, .options = {"loop", "ro"}}},
                                  folder_.path() + "/scratch"));
  auto added = Add(request);
  GANTRY_CHECK_OK(mount::UnmountTree(request.rootfs));
  return added;
}

std::string StorageFixture::Behind(const std::string& path) const {
  const std::string shared = kGuestShared;
  EXPECT_TRUE(path.starts_with(shared)) << path;
  return Shared() + path.substr(shared.size());
}

std::string StorageFixture::RootOf(const ContainerStorage& storage) {
  return nlohmann::json::parse(storage.spec_json)["root"]["path"];
}

std::string StorageFixture::SourceOf(const ContainerStorage& storage, size_t place) {
  return nlohmann::json::parse(storage.spec_json)["mounts"][place]["source"];
}

std::vector<std::string> StorageFixture::Types(const ContainerStorage& storage) {
  std::vector<std::string> types;
  for (const auto& mount : storage.attach.mounts) {
    types.push_back(mount.type);
  }
  return types;
}

std::optional<Error> StorageFixture::WaitForEnd() {
  MutexLock lock(mutex_);
  ended_.wait_for(lock.native(), std::chrono::seconds(60),
                  [this]() GANTRY_REQUIRES(mutex_) { return why_.has_value(); });
  return why_;
}

}  // namespace gantry::vmm
