// SPDX-License-Identifier: Apache-2.0
#include "core/ctl/doctor.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <format>
#include <initializer_list>
#include <set>
#include <sstream>
#include <system_error>
#include <utility>

#include "core/ctl/output.h"
#include "core/ctl/run_tool.h"
#include "core/link/paths.h"
#include "core/oci/json.h"
#include "core/os/cgroup.h"
#include "core/os/fs.h"

namespace gantry::ctl {
namespace {

constexpr size_t kSmallFile = 65'536;

bool IsExecutable(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  constexpr auto kAnyExec = fs::perms::owner_exec | fs::perms::group_exec | fs::perms::others_exec;
  return fs::is_regular_file(status) && (status.permissions() & kAnyExec) != fs::perms::none;
}

// Collects what is found. One object per examination.
class Examination {
 public:
  Examination(const Node& node, const config::Config& config) : node_(node), config_(config) {}

  std::vector<Finding> Run() {
    Kernel();
    Cgroups();
    Gantry();
    Containerd();
    for (const auto& [name, backend] : config_.backends) {
      Plugin(name, backend);
    }
    Runc();
    Gvisor();
    Vmm();
    Wasm();
    return std::move(findings_);
  }

 private:
  void Add(std::string area, bool there, std::string what, std::string found, std::string remedy,
           std::string_view level_if_missing = "missing") {
    findings_.push_back({std::move(area), std::string(there ? "ok" : level_if_missing),
                         std::move(what), there ? std::move(found) : std::move(remedy)});
  }

  // Missing tools of a backend that nobody asked for are no fault.
  std::string_view LevelOf(const std::string& backend) const {
    return config_.backends.contains(backend) ? "missing" : "unused";
  }

  std::string File(const std::string& path) const { return node_.root + path; }

  // `program (what it says of itself)`; empty: there is none.
  std::string Version(const std::string& program, const char* flag = "--version") const {
    std::string path = node_.Find(program);
    if (path.empty() || !node_.first_line) {
      return path;
    }
    const auto line = node_.first_line({path, flag});
    return std::format("{} ({})", path, line ? *line : line.error().message);
  }

  std::string VersionsOfAny(std::initializer_list<const char*> programs) const {
    std::string found;
    for (const char* const program : programs) {
      if (std::string version = Version(program); !version.empty()) {
        found += (found.empty() ? "" : ", ") + version;
      }
    }
    return found;
  }

  void Kernel() {
    const auto text = os::ReadFile(File("/proc/sys/kernel/osrelease"), kSmallFile);
    const std::string release = text ? text->substr(0, text->find('\n')) : "";
    int major = 0;
    int minor = 0;
    const bool good = std::sscanf(release.c_str(), "%d.%d", &major, &minor) == 2 &&
                      (major > 5 || (major == 5 && minor >= 3));
    Add("node", good, "Linux 5.3 or later", release,
        "this is '" + release + "'; pidfds and clone3 are needed");
  }

  void Cgroups() {
    const auto hierarchy = os::CgroupHierarchy::At(File("/sys/fs/cgroup"));
    if (!hierarchy) {
      Add("node", false, "cgroups", "", "mount cgroup2 at /sys/fs/cgroup");
      return;
    }
    const std::set<std::string> controllers = Controllers(*hierarchy);
    Add("node", true, "cgroups",
        hierarchy->mode() == os::CgroupMode::kUnified  ? "version 2"
        : hierarchy->mode() == os::CgroupMode::kHybrid ? "version 1 with an empty version 2 tree"
                                                       : "version 1",
        "");
    const bool unified = hierarchy->mode() == os::CgroupMode::kUnified;
    for (const std::string name : {"memory", "cpu", "pids", "cpuset", unified ? "io" : "blkio"}) {
      Add("node", controllers.contains(name), "cgroup controller " + name, "",
          std::format("not enabled; see cgroup_enable={} and cgroup_disable= on the kernel's "
                      "command line",
                      name),
          name == "memory" || name == "pids" ? "missing" : "optional");
    }
  }

  static std::set<std::string> Controllers(const os::CgroupHierarchy& hierarchy) {
    std::set<std::string> names;
    for (const auto& [name, tree] : hierarchy.v1()) {
      std::istringstream joined(name);
      for (std::string part; std::getline(joined, part, ',');) {
        names.insert(part);
      }
    }
    if (!hierarchy.unified().mount_dir.empty()) {
      const auto text =
          os::ReadFile(hierarchy.unified().mount_dir + "/cgroup.controllers", kSmallFile);
      std::istringstream words(text ? *text : "");
      for (std::string word; words >> word;) {
        names.insert(word);
      }
    }
    return names;
  }

  void Gantry() {
    for (const std::string program : {"gantryd", "gantry-keeper"}) {
      const std::string path = node_.libexec_dir + "/" + program;
      Add("gantry", IsExecutable(path), program, path,
          "not in '" + node_.libexec_dir + "'; install gantry, or set GANTRY_LIBEXEC_DIR");
    }
    const std::string shim = node_.Find("containerd-shim-gantry-v1");
    Add("gantry", !shim.empty(), "containerd-shim-gantry-v1", shim,
        "not in PATH; containerd looks for it in its own PATH");
    Add("gantry", os::Exists(node_.run_dir), node_.run_dir, "",
        "made by the first container or by the service", "optional");
  }

  void Containerd() {
    const std::string found = Version("containerd");
    const bool old = found.contains(" 1.0") || found.contains(" 1.1.") || found.contains(" 1.2.") ||
                     found.contains(" 1.3.") || found.contains(" 1.4.") || found.contains(" 1.5.");
    Add("containerd", !found.empty() && !old, "containerd 1.6 or later", found,
        found.empty() ? "apt install containerd, or https://containerd.io/downloads"
                      : "too old: " + found);
    const std::string socket = "/run/containerd/containerd.sock";
    Add("containerd", os::Exists(File(socket)), socket, "",
        "systemctl start containerd, if this node's containerd has this socket", "optional");
  }

  void Runc() {
    const std::string found = VersionsOfAny({"crun", "runc", "youki"});
    Add("runc", !found.empty(), "an OCI runtime", found, "apt install crun", LevelOf("runc"));
    for (const auto& [name, handler] : config_.handlers) {
      const auto options = oci::Json::Parse(handler.options.json, "options");
      std::string binary;
      if (handler.backend != "runc" || !options || !(*options)["BinaryName"].Read(binary) ||
          binary.empty()) {
        continue;
      }
      const bool there =
          binary.contains('/') ? IsExecutable(File(binary)) : !node_.Find(binary).empty();
      Add("runc", there, std::format("'{}' of handler '{}'", binary, name), "",
          std::format("{}:{}: there is no such program", config_.file, handler.line));
    }
    const std::string criu = Version("criu");
    Add("runc", !criu.empty(), "criu", criu, "only for checkpoints: apt install criu",
        config_.backends.contains("runc") ? "optional" : "unused");
  }

  void Gvisor() {
    const std::string found = Version("runsc");
    Add("gvisor", !found.empty(), "runsc", found, "https://gvisor.dev/docs/user_guide/install/",
        LevelOf("gvisor"));
  }

  void Vmm() {
    Add("vmm", os::Exists(File("/dev/kvm")), "/dev/kvm", "",
        "modprobe kvm_intel or kvm_amd; in a virtual machine switch nested virtualisation on",
        LevelOf("vmm"));
    const std::string found = VersionsOfAny(
        {"qemu-system-x86_64", "qemu-system-aarch64", "cloud-hypervisor", "firecracker"});
    Add("vmm", !found.empty(), "a hypervisor", found,
        "apt install qemu-system-x86, or https://www.cloudhypervisor.org", LevelOf("vmm"));
    Add("vmm", os::Exists(File("/dev/vhost-vsock")), "/dev/vhost-vsock", "",
        "only for QEMU: modprobe vhost_vsock",
        config_.backends.contains("vmm") ? "optional" : "unused");
  }

  void Wasm() {
    std::string found;
    for (const std::string dir : {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu",
                                  "/usr/local/lib", "/usr/lib64", "/usr/lib"}) {
      for (const std::string name : {"/libwasmedge.so.0", "/libwasmedge.so"}) {
        if (found.empty() && os::Exists(File(dir + name))) {
          found = dir + name;
        }
      }
    }
    Add("wasm", !found.empty(), "WasmEdge", found, "https://wasmedge.org/docs/start/install",
        LevelOf("wasm"));
  }

  void Plugin(const std::string& name, const config::Backend& backend) {
    const std::string path = backend.path.empty()
                                 ? node_.libexec_dir + "/plugins/libgantry_" + name + ".so"
                                 : backend.path;
    Add(name, os::Exists(path), "plugin", path,
        "there is no '" + path + "'; build or install it, or take it out of the configuration");
  }

  const Node& node_;
  const config::Config& config_;
  std::vector<Finding> findings_;
};

}  // namespace

Node Node::Here() {
  Node node;
  if (const char* const path = std::getenv("PATH"); path != nullptr) {
    std::vector<std::string> dirs;
    std::istringstream words(path);
    for (std::string dir; std::getline(words, dir, ':');) {
      if (dir.starts_with('/')) {
        dirs.push_back(dir);
      }
    }
    node.path.insert(node.path.begin(), dirs.begin(), dirs.end());
  }
  node.run_dir = link::RunDir();
  const auto engine = link::FindProgram("gantryd");
  const char* const libexec = std::getenv("GANTRY_LIBEXEC_DIR");
  node.libexec_dir = engine               ? engine->substr(0, engine->rfind('/'))
                     : libexec != nullptr ? libexec
                                          : "/usr/local/libexec/gantry";
  node.first_line = [](const std::vector<std::string>& argv) { return FirstLineOf(argv); };
  return node;
}

std::string Node::Find(const std::string& program) const {
  for (const std::string& dir : path) {
    if (std::string file = std::format("{}{}/{}", root, dir, program); IsExecutable(file)) {
      return file;
    }
  }
  return "";
}

std::vector<Finding> Examine(const Node& node, const config::Config& config) {
  return Examination(node, config).Run();
}

bool Healthy(const std::vector<Finding>& findings) {
  return std::ranges::none_of(findings, [](const Finding& f) { return f.level == "missing"; });
}

std::string FindingsTable(const std::vector<Finding>& findings) {
  Table table({"AREA", "LEVEL", "WHAT", "DETAIL"});
  for (const Finding& finding : findings) {
    table.Add({finding.area, finding.level, finding.what, finding.detail});
  }
  return table.str();
}

std::string FindingsJson(const std::vector<Finding>& findings) {
  JsonWriter json;
  json.Array();
  for (const Finding& finding : findings) {
    json.Object()
        .Member("area", finding.area)
        .Member("level", finding.level)
        .Member("what", finding.what)
        .Member("detail", finding.detail)
        .End();
  }
  return json.End().Take();
}

}  // namespace gantry::ctl
