// SPDX-License-Identifier: Apache-2.0
#include "tests/performance/lab.h"

#include <signal.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "tests/harness/host.h"
#include "tests/harness/vmm_node.h"
#include "tests/performance/figures.h"

namespace gantry::bench {
namespace {

namespace fs = std::filesystem;

/// A backend that is not built is none to a gantry that nobody asks for it.
std::string Configuration(const e2e::Settings& settings) {
  const std::string& root = settings.root;
  return "version: 1\n"
         "default_handler: runc\n"
         "handlers:\n"
         "  runc:\n    backend: runc\n    options:\n      BinaryName: runc\n"
         "  crun:\n    backend: runc\n    options:\n      BinaryName: crun\n"
         "  wasm: {backend: wasm}\n"
         "  vmm:\n    backend: vmm\n    options:\n      kernel: " +
         settings.vmm_image + "/kernel\n      initrd: " + settings.vmm_image +
         "/initrd\n      directory: " + e2e::VmmFolder(settings) +
         "\n"
         "backends:\n  wasm:\n    options:\n      cache_dir: " +
         root + "/wasm\n";
}

Status Link(const std::string& target, const std::string& name) {
  std::error_code error;
  fs::create_symlink(target, name, error);
  if (error) {
    return FailErrno(error.value(), "link '{}'", name);
  }
  return {};
}

Status MountTmpfs(const std::string& path) {
  if (::mount("tmpfs", path.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, "mode=0711") != 0) {
    return FailErrno(errno, "mount tmpfs on '{}'", path);
  }
  return {};
}

Status RunTool(const std::vector<std::string>& argv) {
  const e2e::Output output = e2e::RunProgram(argv);
  if (output.status != 0) {
    return Fail(Code::kInternal, "run '{}': {}", argv.front(), output.Text());
  }
  return {};
}

}  // namespace

Lab::Lab(const e2e::Settings& settings)
    : settings_(settings), programs_(fs::canonical(settings.gantry_bin)) {}

Lab::~Lab() {
  node_.reset();
  e2e::CleanUp(settings_);
}

Status Lab::SetUp() {
  for (const char* folder : {"/b", "/d", "/s", "/bin", "/run", "/state", "/rootfs/bin"}) {
    fs::create_directories(root() + folder);
  }
  // In memory, as /run is on a node: bundles, containerd's state, gantry's.
  for (const char* folder : {"/b", "/run", "/state"}) {
    GANTRY_CHECK_OK(MountTmpfs(root() + folder));
  }
  GANTRY_CHECK_OK(LinkPrograms());
  GANTRY_CHECK_OK(MakeRootfs());
  e2e::WriteText(root() + "/gantry.yaml", Configuration(settings_));
  const e2e::Output spec = e2e::RunProgram({settings_.containerd_bin + "/ctr", "oci", "spec"});
  if (spec.status != 0) {
    return Fail(Code::kInternal, "run 'ctr oci spec': {}", spec.Text());
  }
  default_spec_ = spec.out;
  return events_.Start(address() + ".ttrpc");
}

// One name for each handler, as docs/configuration.md tells users to do it.
Status Lab::LinkPrograms() {
  settings_.gantry_bin = root() + "/bin";
  settings_.more_runtimes = {
      {"stock", "io.containerd.runc.v2", "podsandbox", "runc"},
      {"gantry-crun", "io.containerd.gantry-crun.v1", "shim", ""},
      {"gantry-runc", "io.containerd.gantry-runc.v1", "shim", ""},
      // Where gantry-grpc runs: WithGrpc.
      {"gantry-controller-crun", "io.containerd.gantry-crun.v1", "gantry", ""},
      {"stock-crun", "io.containerd.runc.v2", "podsandbox", "crun"},
      {"gantry-wasm", "io.containerd.gantry-wasm.v1", "shim", ""}};
  const std::string shim = programs_ + "/containerd-shim-gantry-v1";
  for (const char* handler : {"crun", "ready-vmm", "runc", "vmm", "wasm"}) {
    GANTRY_CHECK_OK(Link(shim, root() + "/bin/containerd-shim-gantry-" + handler + "-v1"));
  }
  return {};
}

Status Lab::MakeRootfs() {
  const e2e::Output which = e2e::RunProgram({"sh", "-c", "command -v busybox"});
  const std::string busybox = which.out.substr(0, which.out.find('\n'));
  for (const char* folder : {"/dev", "/proc", "/sys", "/tmp", "/run", "/etc"}) {
    fs::create_directories(rootfs() + folder);
  }
  GANTRY_CHECK_OK(RunTool({"cp", busybox, rootfs() + "/bin/busybox"}));
  GANTRY_CHECK_OK(RunTool({"cp", fs::read_symlink("/proc/self/exe"), rootfs() + "/bin/bench"}));
  for (const char* applet : {"true", "sleep", "sh"}) {
    GANTRY_CHECK_OK(Link("busybox", rootfs() + "/bin/" + applet));
  }
  return {};
}

Side Lab::Gantry(const std::string& oci) const {
  return {.stock = false,
          .shim = root() + "/bin/containerd-shim-gantry-" + oci + "-v1",
          .oci = oci,
          .runtime = "io.containerd.gantry-" + oci + ".v1",
          .env = {{"GANTRY_RUN_DIR", run_dir()}, {"GANTRY_CONFIG", root() + "/gantry.yaml"}},
          .systemd_cgroup = false};
}

Side Lab::Stock(const std::string& oci) const {
  return {.stock = true,
          .shim = settings_.containerd_bin + "/containerd-shim-runc-v2",
          .oci = oci,
          .runtime = "io.containerd.runc.v2",
          .env = {},
          .systemd_cgroup = false};
}

Result<e2e::Node*> Lab::Containerd() {
  if (node_ != nullptr) {
    return node_.get();
  }
  auto node = std::make_unique<e2e::Node>(settings_);
  if (const std::string failure = node->SetUp(); !failure.empty()) {
    return Fail(Code::kInternal, "start containerd: {}", failure);
  }
  e2e::WriteText(root() + "/gantry.yaml", Configuration(settings_));
  node_ = std::move(node);
  return node_.get();
}

void Lab::EndGantry(const Side& side) const {
  e2e::Eventually([&] {
    const auto left = Processes(*this, side);
    for (const pid_t pid : left) {
      kill(pid, SIGKILL);
    }
    return left.empty();
  });
}

std::string Lab::NewId(const Side& side) {
  return (side.stock ? "stock" : "gantry") + std::to_string(next_id_++);
}

}  // namespace gantry::bench
