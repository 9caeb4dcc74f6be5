// SPDX-License-Identifier: Apache-2.0
//
// Asks each part of the node in turn (kernel, cgroups, programs, configuration), then each
// configured backend what it needs. Nothing ends the examination: what cannot be found out is a
// finding as well.
#include "core/ctl/doctor.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <set>
#include <sstream>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/cgroup/cgroup.h>
#include <gantry/toolkit/files/files.h>

#include "core/backend/backends.h"
#include "core/ctl/output.h"

namespace gantry::ctl {
namespace {

constexpr size_t kSmallFile = 65'536;

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
      Backend(name);
    }
    Handlers();
    LeftOut();
    return std::move(findings_);
  }

 private:
  void Add(std::string area, bool there, std::string what, std::string found, std::string remedy,
           std::string_view level_if_missing = "missing") {
    findings_.push_back({std::move(area), std::string(there ? "ok" : level_if_missing),
                         std::move(what), there ? std::move(found) : std::move(remedy)});
  }

  std::string File(const std::string& path) const { return node_.root + path; }

  // `program (what it says of itself)`; empty: there is none.
  std::string Version(const std::string& program, const char* flag = "--version") const {
    std::string path = node_.Find(program);
    if (path.empty() || !node_.first_line) {
      return path;
    }
    const auto line = node_.first_line({path, flag});
    return Format("{} ({})", path, line ? *line : line.error().message);
  }

  void Kernel() {
    const auto text = ReadFile(File("/proc/sys/kernel/osrelease"), kSmallFile);
    const std::string release = text ? text->substr(0, text->find('\n')) : "";
    int major = 0;
    int minor = 0;
    const bool good = std::sscanf(release.c_str(), "%d.%d", &major, &minor) == 2 &&
                      (major > 5 || (major == 5 && minor >= 3));
    Add("node", good, "Linux 5.3 or later", release,
        "this is '" + release + "'; pidfds and clone3 are needed");
  }

  void Cgroups() {
    const auto hierarchy = cgroup::CgroupHierarchy::At(File("/sys/fs/cgroup"));
    if (!hierarchy) {
      Add("node", false, "cgroups", "", "mount cgroup2 at /sys/fs/cgroup");
      return;
    }
    const std::set<std::string> controllers = Controllers(*hierarchy);
    Add("node", true, "cgroups",
        hierarchy->mode() == cgroup::CgroupMode::kV2 ? "version 2"
        : hierarchy->mode() == cgroup::CgroupMode::kHybrid
            ? "version 1 with an empty version 2 tree"
            : "version 1",
        "");
    const bool unified = hierarchy->mode() == cgroup::CgroupMode::kV2;
    for (const std::string name : {"memory", "cpu", "pids", "cpuset", unified ? "io" : "blkio"}) {
      Add("node", controllers.contains(name), "cgroup controller " + name, "",
          Format("not enabled; see cgroup_enable={} and cgroup_disable= on the kernel's "
                 "command line",
                 name),
          name == "memory" || name == "pids" ? "missing" : "optional");
    }
  }

  static std::set<std::string> Controllers(const cgroup::CgroupHierarchy& hierarchy) {
    std::set<std::string> names;
    for (const auto& [name, tree] : hierarchy.v1()) {
      std::istringstream joined(name);
      for (std::string part; std::getline(joined, part, ',');) {
        names.insert(part);
      }
    }
    if (!hierarchy.unified().mount_dir.empty()) {
      const auto text = ReadFile(hierarchy.unified().mount_dir + "/cgroup.controllers", kSmallFile);
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
    Add("gantry", Exists(node_.run_dir), node_.run_dir, "",
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
    Add("containerd", Exists(File(socket)), socket, "",
        "systemctl start containerd, if this node's containerd has this socket", "optional");
  }

  // The plugin knows best what it needs.
  void Backend(const std::string& name) {
    const auto backend = node_.find_backend(name);
    Add(name, backend.has_value(), "plugin", "",
        backend                                       ? ""
        : std::ranges::contains(node_.left_out, name) ? WithoutBackend(name)
                                                      : backend.error().message);
    if (!backend) {
      return;
    }
    for (NodeNeed& need : (*backend)->Describe().needs) {
      findings_.push_back({name,
                           need.met        ? "ok"
                           : need.optional ? "optional"
                                           : "missing",
                           std::move(need.what), std::move(need.detail)});
    }
  }

  void Handlers() {
    for (const auto& [name, handler] : config_.handlers) {
      const auto backend = node_.find_backend(handler.backend);
      if (!backend) {
        continue;
      }
      const Status checked = backend::CheckOptions(config_, name, handler, **backend);
      Add(handler.backend, checked.has_value(), Format("handler '{}'", name), "",
          checked ? "" : checked.error().message);
    }
  }

  static std::string WithoutBackend(const std::string& name) {
    std::string option = name;
    std::ranges::transform(option, option.begin(),
                           [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    return Format(
        "this gantry was built without it (-DGANTRY_{}=OFF): build and install one with it",
        option);
  }

  // Of a backend that is configured its own finding says it.
  void LeftOut() {
    for (const std::string& name : node_.left_out) {
      if (!config_.backends.contains(name)) {
        Add(name, false, "plugin", "", WithoutBackend(name), "optional");
      }
    }
  }

  const Node& node_;
  const config::Config& config_;
  std::vector<Finding> findings_;
};

}  // namespace

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
