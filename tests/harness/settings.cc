// SPDX-License-Identifier: Apache-2.0
#include "tests/harness/settings.h"

#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "tests/harness/host.h"

namespace gantry::e2e {
namespace {

namespace fs = std::filesystem;

std::string Env(const char* name, const std::string& otherwise) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): before any thread
  return value != nullptr && *value != '\0' ? value : otherwise;
}

/// In the build folder beside the programs, below libexec where they are installed.
std::string PluginOf(const Settings& settings, const std::string& backend) {
  const std::string file = "/plugins/libgantry_" + backend + ".so";
  const std::string installed = settings.gantry_bin + "/../libexec/gantry" + file;
  std::error_code error;
  return fs::exists(installed, error) ? installed : settings.gantry_bin + file;
}

/// Of the vmm backend: kernel and initrd are made by tools/lib/vmm_image.sh.
std::string MissingVmm(const Settings& settings) {
  std::error_code error;
  for (const std::string& file : {PluginOf(settings, "vmm"), settings.vmm_image + "/kernel",
                                  settings.vmm_image + "/initrd"}) {
    if (!fs::exists(file, error)) {
      return "the vmm backend or its guest image is not built: " + file;
    }
  }
  if (settings.hypervisor != "qemu" &&
      !fs::exists(settings.doubles + "/" + settings.hypervisor, error)) {
    return "there is no double of '" + settings.hypervisor + "' in " + settings.doubles;
  }
  const std::string programs = "command -v qemu-system-x86_64 && test -x /usr/libexec/virtiofsd";
  const bool installed = RunProgram({"sh", "-c", programs}).status == 0;
  return installed ? "" : "QEMU or virtiofsd is not installed: run ./run setup vmm";
}

/// Of what runs the containers.
std::string MissingBackend(const Settings& settings) {
  std::error_code error;
  if (settings.remote()) {
    return fs::exists(settings.remote_plugin, error)
               ? ""
               : "the fake remote backend is not built: " + settings.remote_plugin;
  }
  if (settings.gvisor()) {
    const std::string plugin = PluginOf(settings, "gvisor");
    return fs::exists(plugin, error) ? settings.no_runsc(settings.runsc_release)
                                     : "the gvisor backend is not built: " + plugin;
  }
  if (settings.wasm()) {
    for (const std::string& file : {PluginOf(settings, "wasm"), settings.guests + "/tool.wasm"}) {
      if (!fs::exists(file, error)) {
        return "the wasm backend or its guests are not built: " + file;
      }
    }
    return "";
  }
  if (settings.vmm()) {
    return MissingVmm(settings);
  }
  const bool installed = RunProgram({"sh", "-c", "command -v " + settings.oci}).status == 0;
  return installed ? "" : settings.oci + " is not installed";
}

std::string Missing(const Settings& settings) {
  if (geteuid() != 0) {
    return "needs root";
  }
  std::error_code error;
  if (!fs::exists(settings.containerd_bin + "/containerd", error)) {
    return "containerd " + settings.release + " is not in " + settings.containerd_bin +
           ": run ./run setup e2e";
  }
  if (!fs::exists(settings.images + "/busybox.tar", error)) {
    return "no busybox.tar in " + settings.images;
  }
  if (std::string missing = MissingBackend(settings); !missing.empty()) {
    return missing;
  }
  if (!settings.stock() && !fs::exists(settings.gantry_bin + "/containerd-shim-gantry-v1", error)) {
    return "containerd-shim-gantry-v1 is not in " + settings.gantry_bin;
  }
  return "";
}

std::vector<HostProcess> Ours(const Settings& settings) {
  std::vector<HostProcess> found = ProcessesWithEnv("GANTRY_RUN_DIR=" + settings.run_dir);
  const auto inside = ProcessesInCgroup("/" + settings.ns);
  found.insert(found.end(), inside.begin(), inside.end());
  const auto named = Processes([&](const HostProcess& process) {
    return process.pid != getpid() && process.pid != getppid() &&
           process.command.find(settings.root + "/") != std::string::npos;
  });
  found.insert(found.end(), named.begin(), named.end());
  // What the keeper has spawned need not have any of these marks.
  for (size_t i = 0; i < found.size(); ++i) {
    const pid_t parent = found[i].pid;
    const auto children =
        Processes([&](const HostProcess& process) { return process.parent == parent; });
    for (const HostProcess& child : children) {
      if (std::ranges::none_of(found, [&](const auto& one) { return one.pid == child.pid; })) {
        found.push_back(child);
      }
    }
  }
  return found;
}

void RemoveCgroups(const Settings& settings) {
  for (const std::string& top : CgroupFolders("/" + settings.ns)) {
    for (const std::string& name : ListFolder(top)) {
      rmdir((top + "/" + name).c_str());
    }
    rmdir(top.c_str());
  }
}

}  // namespace

bool Settings::AtLeast(int major, int minor) const {
  int is_major = 0;
  int is_minor = 0;
  const char* const end = release.data() + release.size();
  const auto [dot, no_major] = std::from_chars(release.data(), end, is_major);
  if (no_major != std::errc() || dot == end ||
      std::from_chars(dot + 1, end, is_minor).ec != std::errc()) {
    return false;
  }
  return std::pair(is_major, is_minor) >= std::pair(major, minor);
}

std::string Settings::no_runsc(const std::string& release_of_runsc) const {
  const std::string path = RunscOf(release_of_runsc);
  std::error_code error;
  return fs::exists(path, error)
             ? ""
             : "runsc " + release_of_runsc + " is not at " + path + ": run ./run setup e2e";
}

Settings ReadSettings() {
  Settings settings;
  settings.release = Env("GANTRY_E2E_CONTAINERD", "2.3.4");
  settings.oci = Env("GANTRY_E2E_OCI", "crun");
  settings.newer_cri = Env("ENABLE_CRI_SANDBOXES", "") == "1";
  settings.runtime = Env("GANTRY_E2E_RUNTIME", "io.containerd.gantry.v1");
  settings.runsc_release = Env("GANTRY_E2E_RUNSC", "20260905");
  settings.cache = Env("GANTRY_CACHE", Env("HOME", "/root") + "/.cache/gantry");
  settings.containerd_bin = settings.cache + "/containerd/" + settings.release + "/bin";
  const fs::path build = fs::read_symlink("/proc/self/exe").parent_path().parent_path();
  settings.remote_plugin = build / "tests/libgantry_remote.so";
  settings.gantry_bin = Env("GANTRY_E2E_BIN", build / "bin");
  settings.images = Env("GANTRY_E2E_IMAGES", build.parent_path() / "images");
  settings.vmm_image = Env("GANTRY_E2E_VMM_IMAGE", build.parent_path() / "vmm");
  settings.hypervisor = Env("GANTRY_VMM_HYPERVISOR", "qemu");
  settings.doubles = build / "doubles/bin";
  settings.guests = Env("GANTRY_E2E_GUESTS", build / "guests");
  // Each ctr of the tests takes it from there.
  setenv("CONTAINERD_SNAPSHOTTER", settings.snapshotter().c_str(),
         1);  // NOLINT(concurrency-mt-unsafe)
  char folder[] = "/tmp/ge-XXXXXX";
  // As a service has it: a run directory that others may write in is refused.
  umask(022);
  if (mkdtemp(folder) == nullptr) {
    settings.unavailable = "no folder below /tmp";
    return settings;
  }
  // As /run is: a container's root may be nobody here, and has to get to its bundle.
  fs::permissions(folder, fs::perms(0711));
  settings.root = folder;
  settings.run_dir = settings.root + "/run";
  settings.ns = "ge" + std::to_string(getpid());
  settings.two_backends = settings.runc() && fs::exists(settings.remote_plugin);
  settings.unavailable = Missing(settings);
  return settings;
}

void CleanUp(const Settings& settings) {
  if (settings.root.empty()) {
    return;
  }
  Eventually([&] {
    const auto left = Ours(settings);
    for (const HostProcess& process : left) {
      kill(process.pid, SIGKILL);
    }
    return left.empty();
  });
  for (const std::string& point : MountsBelow(settings.root)) {
    umount2(point.c_str(), MNT_DETACH);
  }
  RemoveCgroups(settings);
  std::error_code error;
  fs::remove_all("/run/containerd/runc/" + settings.ns, error);
  if (Env("GANTRY_E2E_KEEP", "").empty()) {
    fs::remove_all(settings.root, error);
  }
}

}  // namespace gantry::e2e
