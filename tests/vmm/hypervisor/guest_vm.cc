// SPDX-License-Identifier: Apache-2.0
#include "tests/vmm/hypervisor/guest_vm.h"

#include <poll.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include <gtest/gtest.h>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>

#include "plugins/vmm/hypervisor/kernel_command_line.h"

namespace gantry::vmm {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxConsole = size_t{8} << 20;
constexpr size_t kAlign = 4;
constexpr unsigned kFolder = 0040755;
constexpr unsigned kFile = 0100000;

/// Modules of the guest's that a kernel may have.
constexpr const char* kModules[] = {"virtio_ring",
                                    "virtio",
                                    "virtio_pci_legacy_dev",
                                    "virtio_pci_modern_dev",
                                    "virtio_pci",
                                    "virtio_blk",
                                    "failover",
                                    "net_failover",
                                    "virtio_net",
                                    "virtio_balloon",
                                    "virtio_mem"};

std::string Env(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string Slurp(const fs::path& path) {
  std::ostringstream all;
  all << std::ifstream(path, std::ios::binary).rdbuf();
  return all.str();
}

/// The Debian that tools/node/make-base made, by tools/lib/guest_base.sh.
fs::path BaseFolder() {
  if (const std::string named = Env("GANTRY_VMM_GUEST"); !named.empty()) {
    return named;
  }
  const std::string cache = Env("GANTRY_CACHE");
  const fs::path bases = (cache.empty() ? Env("HOME") + "/.cache/gantry" : cache) + "/node";
  std::error_code none;
  for (const auto& one : fs::directory_iterator(bases, none)) {
    if (fs::exists(one.path() / "kernel")) {
      return one.path();
    }
  }
  return {};
}

void AddModules(const fs::path& root, Initramfs& archive) {
  archive.AddFolder("modules");
  for (const auto& one : fs::recursive_directory_iterator(root / "lib/modules")) {
    const std::string name = one.path().filename();
    const std::string stem = name.substr(0, name.find('.'));
    if (name.find(".ko") != std::string::npos && std::ranges::contains(kModules, stem)) {
      archive.AddFile("modules/" + name, Slurp(one.path()), 0644);
    }
  }
}

GuestFiles Find() {
  GuestFiles files;
  const fs::path base = BaseFolder();
  if (base.empty()) {
    files.why_not =
        "there is no guest's kernel: GANTRY_VMM_GUEST names no folder, and ./run setup "
        "node has not made one";
    return files;
  }
  if (access(QemuOptions().program.c_str(), X_OK) != 0) {
    files.why_not = "QEMU is not installed";
    return files;
  }
  Initramfs archive;
  for (const char* const folder : {"dev", "proc", "sys"}) {
    archive.AddFolder(folder);
  }
  archive.AddFile("init", Slurp(GANTRY_VMM_TEST_INIT), 0755);
  AddModules(base / "root", archive);
  static const os::TempDir kept = os::TempDir::Create().value();
  files.initrd = kept.path() + "/initrd";
  std::ofstream(files.initrd, std::ios::binary) << archive.Finish();
  files.kernel = base / "kernel";
  files.acceleration = ChooseAccelerator(
      {.canary = GANTRY_KVM_CANARY, .qemu = QemuOptions().program, .kernel = files.kernel});
  std::printf("%s\n", files.acceleration.words.c_str());
  return files;
}

/// Readable when the file has changed, or when it ends.
UniqueFd WatchOf(const std::string& path) {
  UniqueFd watch(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  inotify_add_watch(watch.get(), path.c_str(), IN_MODIFY);
  return watch;
}

}  // namespace

const GuestFiles& GuestFiles::Get() {
  static const GuestFiles files = Find();
  return files;
}

void Initramfs::AddFolder(const std::string& path) { Add(path, "", kFolder); }

void Initramfs::AddFile(const std::string& path, const std::string& content, unsigned mode) {
  Add(path, content, kFile | mode);
}

void Initramfs::Add(const std::string& path, const std::string& content, unsigned mode) {
  bytes_ += Format(
      "070701{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}{:08x}"
      "{:08x}",
      ++inode_, mode, 0, 0, 1, 0, content.size(), 0, 0, 0, 0, path.size() + 1, 0);
  bytes_ += path;
  bytes_ += '\0';
  bytes_.resize((bytes_.size() + kAlign - 1) / kAlign * kAlign, '\0');
  bytes_ += content;
  bytes_.resize((bytes_.size() + kAlign - 1) / kAlign * kAlign, '\0');
}

std::string Initramfs::Finish() {
  Add("TRAILER!!!", "", 0);
  return std::move(bytes_);
}

VmConfig GuestVm::ConfigIn(const std::string& folder, const std::string& name) {
  const GuestFiles& files = GuestFiles::Get();
  VmConfig config;
  config.id = name;
  config.kernel = files.kernel;
  config.initrd = files.initrd;
  config.console = folder + "/console";
  return config;
}

GuestVm::GuestVm(const std::function<void(VmConfig&, QemuOptions&)>& change) {
  const GuestFiles& files = GuestFiles::Get();
  VmConfig config = ConfigIn(folder(), "guest");
  QemuOptions options;
  options.accelerator = files.acceleration.accelerator;
  options.control_socket = folder() + "/control";
  if (change) {
    change(config, options);
  }
  console_ = config.console;
  WriteFile(console_, "", 0600).value();
  if (config.cmdline.empty() || config.cmdline.starts_with('+')) {
    const bool tcg = options.accelerator == Accelerator::kTcg;
    config.cmdline =
        KernelCommandLine({.profile = tcg ? CmdlineProfile::kTcg : CmdlineProfile::kProduction,
                           .machine = options.machine,
                           .tsc_khz = HostTscKhz(),
                           .extra = config.cmdline.empty() ? "" : config.cmdline.substr(1)})
            .value();
  }
  vm_ = MakeQemu(std::move(config), std::move(options)).value();
}

GuestVm::~GuestVm() {
  if (testing::Test::HasFailure()) {
    std::printf("--- the guest's console:\n%s\n---\n", Console().c_str());
  }
  if (process_) {
    IgnoreError(process_->Signal(SIGKILL), "it may have ended");
    IgnoreError(process_->Wait(std::chrono::seconds(60)), "the context collects it");
  }
}

void GuestVm::StartUnchecked() {
  SpawnRequest request = vm_->Describe().value();
  // What it has to say goes to the log of the tests.
  request.fds.emplace_back(UniqueFd(dup(STDERR_FILENO)), STDERR_FILENO);
  process_ = context_.Spawn(std::move(request)).value();
}

void GuestVm::Start() {
  StartUnchecked();
  const Status connected = vm_->Connect(Soon(), process_.get());
  ASSERT_TRUE(connected) << connected.error().message;
  const Status configured = vm_->Configure(Soon());
  ASSERT_TRUE(configured) << configured.error().message;
}

void GuestVm::Boot() {
  Start();
  const Status booted = vm_->Boot(Soon());
  ASSERT_TRUE(booted) << booted.error().message;
  Await("gantry guest: ready");
}

std::string GuestVm::Console() const {
  return ReadTail(console_, kMaxConsole).value_or(std::string());
}

size_t GuestVm::Await(const std::string& words, size_t from) {
  const UniqueFd watch = WatchOf(console_);
  const Deadline deadline = Soon();
  while (true) {
    const std::string console = Console();
    if (const size_t at = console.find(words, from); at != std::string::npos) {
      return at + words.size();
    }
    if (process_->Ended()) {
      ADD_FAILURE() << "QEMU has ended before '" << words << "' came";
      return 0;
    }
    pollfd one{watch.get(), POLLIN, 0};
    if (poll(&one, 1, PollTimeout(deadline)) == 0) {
      ADD_FAILURE() << "'" << words << "' has not come";
      return 0;
    }
    std::array<char, 4096> events{};
    while (read(watch.get(), events.data(), events.size()) > 0) {
    }
  }
}

VmEnd GuestVm::AwaitEnd() {
  const auto ended = process_->Wait(Left(Soon()));
  EXPECT_TRUE(ended) << "QEMU has not ended";
  return ended ? vm_->Ended(*ended) : VmEnd{};
}

}  // namespace gantry::vmm
