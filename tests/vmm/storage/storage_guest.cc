// SPDX-License-Identifier: Apache-2.0
#include "tests/vmm/storage/storage_guest.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/oci/json.h>

#include "tests/unit/vmm/guest/stream_io.h"

namespace gantry::vmm {
namespace {

std::string Setting(const char* name, const char* otherwise) {
  const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
  return value == nullptr ? otherwise : value;
}

std::string SpecOf(const ContainerShape& shape) {
  return Format(
      R"({{"ociVersion": "1.2.0", "root": {{"path": "rootfs"}},
          "process": {{"args": [{5}, "sh", "-c", {0}], "env": ["PATH=/bin"], "cwd": "/",
                       "user": {{"uid": 0, "gid": 0}},
                       "capabilities": {{"bounding": {1}, "effective": {1}, "permitted": {1}}}}},
          "mounts": [{{"destination": "/proc", "type": "proc", "source": "proc"}},
                     {{"destination": "/dev", "type": "tmpfs", "source": "tmpfs"}}{2}{3}],
          "linux": {{"namespaces": [{{"type": "pid"}}, {{"type": "mount"}}]{4}}}}})",
      oci::Quote(shape.script), R"(["CAP_MKNOD", "CAP_DAC_OVERRIDE", "CAP_CHOWN", "CAP_FOWNER"])",
      shape.mounts.empty() ? "" : ", ", shape.mounts, shape.linux_more, oci::Quote(shape.busybox));
}

}  // namespace

std::string BindOf(const std::string& source, const std::string& destination,
                   const std::string& options) {
  return Format(R"({{"destination": "{}", "type": "bind", "source": "{}", "options": [{}]}})",
                destination, source, options);
}

std::unique_ptr<StorageGuest> StorageInGuest::guest_;
std::string StorageInGuest::why_;

void StorageInGuest::BootWith(uint32_t layer_mib) {
  auto booted = StorageGuest::Boot(layer_mib);
  if (!booted) {  // Without an image: `./run test vmm` makes it.
    why_ = booted.error().message;
    return;
  }
  why_ = "";
  guest_ = std::move(*booted);
}

void StorageInGuest::TearDown() {
  if (HasFailure() && guest_) {
    std::fprintf(stderr, "%s\n", guest_->Words().c_str());
  }
}

Result<std::unique_ptr<StorageGuest>> StorageGuest::Boot(uint32_t layer_mib) {
  std::unique_ptr<StorageGuest> guest(new StorageGuest);
  GANTRY_CHECK_OK(guest->Begin(layer_mib));
  return guest;
}

// Of each directory of sandboxes there is a folder.
std::string StorageGuest::layers() const {
  const std::string all = folder_.path() + "/layers";
  const auto names = ListDirectory(all, 2);
  return all + "/" + (names && !names->empty() ? names->front() : "none");
}

Status StorageGuest::Begin(uint32_t layer_mib) {
  if (const TestImage& image = TestImage::Get(); !image.why_not.empty()) {
    return Fail(Code::kFailedPrecondition, "{}", image.why_not);
  }
  GANTRY_CHECK_OK(os::MakeDirs(run_, 0700));
  GANTRY_TRY(
      storage_,
      Storage::Make(
          context_,
          {.directory = run_,
           .options = {.virtiofsd = Setting("GANTRY_VIRTIOFSD", "/usr/libexec/virtiofsd"),
                       .writable_layer_mib = layer_mib,
                       .layers_directory = layer_mib == 0 ? "" : folder_.path() + "/layers"},
           .cgroups = {},
           .traits = {.disks = true, .file_systems = true},
           .disk_places = 8,
           .ended = [](const Error& why) { std::fprintf(stderr, "%s\n", why.message.c_str()); }}));
  GANTRY_TRY(machine_, RealGuest::Boot({}, [this](VmConfig& config) {
               config.file_systems = storage_->file_systems();
             }));
  return {};
}

// virtiofsd ends with the machine, and all others with the context.
StorageGuest::~StorageGuest() {
  machine_.reset();
  if (storage_) {
    const Status gone = storage_->Shutdown();
    EXPECT_TRUE(gone) << gone.error().message;
  }
}

std::string StorageGuest::NewFolder(const std::string& name) const {
  const std::string path = folder_.path() + "/" + name;
  EXPECT_TRUE(os::MakeDirs(path, 0755));
  return path;
}

std::string StorageGuest::NewRoot(const std::string& name) const {
  const std::string root = NewFolder(name);
  NewFolder(name + "/bin");
  std::filesystem::copy_file("/bin/busybox", root + "/bin/busybox",
                             std::filesystem::copy_options::overwrite_existing);
  for (const char* applet : {"cat", "dd", "echo", "grep", "head", "id", "ls", "mkdir", "mkfifo",
                             "mknod", "mv", "rm", "stat", "touch"}) {
    std::filesystem::create_symlink("busybox", root + "/bin/" + applet);
  }
  return root;
}

Status StorageGuest::Attach(const ContainerStorage& storage) {
  for (const Disk& disk : storage.disks) {
    const auto added = vm().AddDisk(disk, Soon());
    if (!added && added.error().code != Code::kAlreadyExists) {
      return std::unexpected(added.error());
    }
  }
  if (!storage.sysctls.empty()) {
    protocol::SetUp set_up;
    set_up.sysctls = storage.sysctls;
    GANTRY_TRY([[maybe_unused]] const auto set, machine_->Call(set_up));
  }
  GANTRY_TRY([[maybe_unused]] const auto attached, machine_->Call(storage.attach));
  return {};
}

Result<GuestContainer> StorageGuest::Create(const ContainerShape& shape) {
  GuestContainer container;
  container.id = Format("c{}", ++containers_);
  ContainerRequest& request = container.request;
  GANTRY_TRY(request.id, ContainerId::Parse(container.id));
  request.bundle = NewFolder(container.id);
  request.rootfs = shape.rootfs.empty() ? NewRoot(container.id + "/rootfs") : shape.rootfs;
  request.spec_json = SpecOf(shape);
  GANTRY_TRY(const oci::Spec spec, oci::ParseSpec(request.spec_json, "config.json"));
  GANTRY_TRY(const ContainerStorage storage, storage_->Add(request, spec));
  GANTRY_CHECK_OK(Attach(storage));
  protocol::Streams streams;
  GANTRY_TRY(streams.output, machine_->streams().Expect());
  GANTRY_TRY([[maybe_unused]] const auto created,
             machine_->Call(protocol::CreateContainer{.container = container.id,
                                                      .bundle = storage.bundle,
                                                      .spec_json = storage.spec_json,
                                                      .streams = streams}));
  GANTRY_TRY(container.out, machine_->Stream(streams.output));
  return container;
}

Status StorageGuest::Start(const GuestContainer& container) {
  GANTRY_TRY([[maybe_unused]] const auto started,
             machine_->Call(protocol::Start{.container = container.id, .exec = ""}));
  return {};
}

std::string StorageGuest::Say(const ContainerShape& shape) {
  auto container = Create(shape);
  const Status started = container ? Start(*container) : std::unexpected(container.error());
  if (!started) {
    ADD_FAILURE() << started.error().message;
    return "";
  }
  std::string said = ReadStream(container->out);
  const Status gone = Delete(*container);
  EXPECT_TRUE(gone) << gone.error().message;
  return said;
}

Status StorageGuest::WaitForExit(const GuestContainer& container) {
  return machine_->WaitForExit(container.id) != RealGuest::kNoExit
             ? Status()
             : Fail(Code::kDeadlineExceeded, "'{}' has not ended", container.id);
}

Status StorageGuest::Delete(const GuestContainer& container) {
  const ContainerId& id = container.request.id;
  GANTRY_TRY([[maybe_unused]] const auto deleted,
             machine_->Call(protocol::Delete{.container = container.id, .exec = ""}));
  GANTRY_TRY([[maybe_unused]] const auto detached, machine_->Call(storage_->DetachOf(id)));
  for (const std::string& serial : storage_->DisksOf(id)) {
    GANTRY_CHECK_OK(vm().RemoveDisk(serial, Soon()));
  }
  return storage_->Remove(id);
}

}  // namespace gantry::vmm
