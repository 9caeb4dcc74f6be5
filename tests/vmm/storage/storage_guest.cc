// SPDX-License-Identifier: Apache-2.0
#include "tests/vmm/storage/storage_guest.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/descriptors/unix_socket.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/oci/json.h>

#include "plugins/vmm/hypervisor/accelerator.h"
#include "plugins/vmm/hypervisor/kernel_command_line.h"
#include "plugins/vmm/hypervisor/qemu/qemu.h"
#include "plugins/vmm/protocol/frames.h"
#include "tests/unit/vmm/guest/stream_io.h"

namespace gantry::vmm {
namespace {

constexpr size_t kMaxConsole = 6000;

std::string Image(const char* name) { return std::string(GANTRY_VMM_IMAGE) + "/" + name; }

std::string Setting(const char* name, const char* otherwise) {
  const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
  return value == nullptr ? otherwise : value;
}

Accelerator Chosen() {
  return Setting("GANTRY_VMM_ACCEL", "tcg") == "kvm" ? Accelerator::kKvm : Accelerator::kTcg;
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

void StorageInGuest::SetUpTestSuite() {
  auto booted = StorageGuest::Boot();
  if (!booted) {  // Without an image: `./run test vmm` makes it.
    why_ = booted.error().message;
    return;
  }
  why_ = "";
  guest_ = std::move(*booted);
}

void StorageInGuest::TearDown() {
  if (HasFailure() && guest_) {
    std::fprintf(stderr, "--- console:\n%s\n", guest_->Console().c_str());
  }
}

Result<std::unique_ptr<StorageGuest>> StorageGuest::Boot() {
  std::unique_ptr<StorageGuest> guest(new StorageGuest);
  if (Status begun = guest->Begin(); !begun) {
    Error error = std::move(begun).error();
    error.message += "\n--- console:\n" + guest->Console();
    return std::unexpected(std::move(error));
  }
  return guest;
}

Status StorageGuest::Begin() {
  GANTRY_CHECK_OK(os::MakeDirs(run_, 0700));
  GANTRY_TRY(control_, ListenUnix(Format("{}/v_{}", run_, protocol::kControlPort)));
  GANTRY_TRY(UniqueFd streams, ListenUnix(Format("{}/v_{}", run_, protocol::kStreamPort)));
  GANTRY_TRY(streams_, StreamListener::On(std::move(streams)));
  GANTRY_TRY(on_streams_,
             context_.WatchReadable(streams_->fd(), [this] { streams_->OnReadable(); }));
  GANTRY_TRY(
      storage_,
      Storage::Make(
          context_,
          {.directory = run_,
           .options = {.virtiofsd = Setting("GANTRY_VIRTIOFSD", "/usr/libexec/virtiofsd")},
           .cgroups = {},
           .traits = {.disks = true, .file_systems = true},
           .disk_places = 8,
           .ended = [](const Error& why) { std::fprintf(stderr, "%s\n", why.message.c_str()); }}));
  GANTRY_CHECK_OK(StartDevice());
  GANTRY_CHECK_OK(StartMachine());
  return Greet();
}

Status StorageGuest::StartDevice() {
  SpawnRequest request;
  request.argv = {GANTRY_VSOCK,    "--front-end=3", "--hosts=4",
                  "--directory=5", "--name=v",      "--guest-cid=3"};
  GANTRY_TRY(UniqueFd front_end, ListenUnix(run_ + "/vu.sock"));
  GANTRY_TRY(UniqueFd hosts, ListenUnix(run_ + "/v"));
  request.fds.emplace_back(std::move(front_end), 3);
  request.fds.emplace_back(std::move(hosts), 4);
  request.fds.emplace_back(UniqueFd(::open(run_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)), 5);
  request.fds.emplace_back(UniqueFd(::dup(STDERR_FILENO)), STDERR_FILENO);
  GANTRY_TRY([[maybe_unused]] const auto process, context_.Spawn(std::move(request)));
  return {};
}

Status StorageGuest::StartMachine() {
  VmConfig config;
  config.id = "storage";
  config.kernel = Image("kernel");
  config.initrd = Image("initrd");
  config.console = run_ + "/console";
  config.file_systems = storage_->file_systems();
  config.vsock = Vsock{.cid = 3, .vhost_user = run_ + "/vu.sock", .vhost = {}, .uds = {}};
  GANTRY_CHECK_OK(WriteFile(config.console, "", 0600));
  GANTRY_TRY(config.cmdline, KernelCommandLine({.profile = Chosen() == Accelerator::kTcg
                                                               ? CmdlineProfile::kTcg
                                                               : CmdlineProfile::kProduction,
                                                .tsc_khz = HostTscKhz()}));
  QemuOptions options;
  options.accelerator = Chosen();
  options.control_socket = run_ + "/control";
  GANTRY_TRY(vm_, MakeQemu(std::move(config), std::move(options)));
  GANTRY_TRY(SpawnRequest request, vm_->Describe());
  request.fds.emplace_back(UniqueFd(::dup(STDERR_FILENO)), STDERR_FILENO);
  GANTRY_TRY(machine_, context_.Spawn(std::move(request)));
  GANTRY_CHECK_OK(vm_->Connect(Soon(), machine_.get()));
  GANTRY_CHECK_OK(vm_->Configure(Soon()));
  return vm_->Boot(Soon());
}

Status StorageGuest::Greet() {
  const Deadline deadline = Soon();
  Result<Greeted> greeted;
  do {
    greeted =
        GreetAgent(control_, "",
                   std::min(deadline, std::chrono::steady_clock::now() + std::chrono::seconds(5)));
    if (machine_->Ended()) {
      return Fail(Code::kUnavailable, "boot a guest: the machine has ended");
    }
  } while (!greeted && Left(deadline).count() > 0);
  if (!greeted) {
    return std::unexpected(std::move(greeted).error());
  }
  AgentEvents events;
  events.exited = [this](const AgentExit& exit) {
    const MutexLock lock(mutex_);
    exits_[exit.container] = exit.exit.status;
    changed_.notify_all();
  };
  events.log = [](const std::string& line) { std::fprintf(stderr, "agent: %s\n", line.c_str()); };
  client_ = std::make_unique<AgentClient>("guest", std::move(*greeted), std::move(events));
  GANTRY_TRY(on_agent_, context_.WatchReadable(client_->fd(), [this] {
    if (!client_->OnReadable()) {
      on_agent_.reset();
    }
  }));
  return {};
}

// virtiofsd ends with the machine, and all others with the context.
StorageGuest::~StorageGuest() {
  on_streams_.reset();
  if (client_) {
    client_->Close();
  }
  on_agent_.reset();
  if (machine_) {
    IgnoreError(machine_->Signal(SIGKILL), "it may have ended");
    IgnoreError(machine_->Wait(std::chrono::seconds(60)), "the context collects it");
  }
  if (storage_) {
    const Status gone = storage_->Shutdown();
    EXPECT_TRUE(gone) << gone.error().message;
  }
}

std::string StorageGuest::Console() const {
  return ReadTail(run_ + "/console", kMaxConsole).value_or("");
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
    const auto added = vm_->AddDisk(disk, Soon());
    if (!added && added.error().code != Code::kAlreadyExists) {
      return std::unexpected(added.error());
    }
  }
  if (!storage.sysctls.empty()) {
    protocol::SetUp set_up;
    set_up.sysctls = storage.sysctls;
    GANTRY_TRY([[maybe_unused]] const auto set, Call(set_up));
  }
  GANTRY_TRY([[maybe_unused]] const auto attached, Call(storage.attach));
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
  GANTRY_TRY(streams.output, streams_->Expect());
  GANTRY_TRY([[maybe_unused]] const auto created,
             Call(protocol::CreateContainer{.container = container.id,
                                            .bundle = storage.bundle,
                                            .spec_json = storage.spec_json,
                                            .streams = streams}));
  GANTRY_TRY(container.out, streams_->Take(streams.output, Soon()));
  return container;
}

Status StorageGuest::Start(const GuestContainer& container) {
  GANTRY_TRY([[maybe_unused]] const auto started,
             Call(protocol::Start{.container = container.id, .exec = ""}));
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
  MutexLock lock(mutex_);
  const bool ended = changed_.wait_until(lock.native(), Soon(), [&]() GANTRY_REQUIRES(mutex_) {
    return exits_.contains(container.id);
  });
  return ended ? Status() : Fail(Code::kDeadlineExceeded, "'{}' has not ended", container.id);
}

Status StorageGuest::Delete(const GuestContainer& container) {
  const ContainerId& id = container.request.id;
  GANTRY_TRY([[maybe_unused]] const auto deleted,
             Call(protocol::Delete{.container = container.id, .exec = ""}));
  GANTRY_TRY([[maybe_unused]] const auto detached, Call(storage_->DetachOf(id)));
  for (const std::string& serial : storage_->DisksOf(id)) {
    GANTRY_CHECK_OK(vm_->RemoveDisk(serial, Soon()));
  }
  return storage_->Remove(id);
}

}  // namespace gantry::vmm
