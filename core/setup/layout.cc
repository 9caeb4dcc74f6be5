// SPDX-License-Identifier: Apache-2.0
#include "core/setup/layout.h"

#include <algorithm>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>

#include "core/setup/file_change.h"

namespace gantry::setup {
namespace {

Layout Plain(const std::string& root) {
  return {.distribution = "containerd",
          .config = root + "/etc/containerd/config.toml",
          .containerd = "",
          .socket = root + "/run/containerd/containerd.sock",
          .restart = "systemctl restart containerd"};
}

std::string RancherConfig(const std::string& root, std::string_view name) {
  return Format("{}/var/lib/rancher/{}/agent/etc/containerd/config.toml", root, name);
}

/// k3s and rke2 have one agent. Source: k3s 1.31 to 1.35, pkg/agent/config, pkg/daemons/config.
Layout Rancher(const std::string& root, const std::string& name) {
  const std::string data = Format("{}/var/lib/rancher/{}", root, name);
  return {.distribution = name,
          .config = RancherConfig(root, name),
          .generated = true,
          .containerd =
              name == "k3s" ? data + "/data/current/bin/containerd" : data + "/bin/containerd",
          .socket = root + "/run/k3s/containerd/containerd.sock",
          .restart = name == "k3s" ? "systemctl restart k3s (on agents: k3s-agent)"
                                   : "systemctl restart rke2-server (on agents: rke2-agent)"};
}

}  // namespace

std::string Layout::TemplateOf(int config_version) const {
  return Format("{}/config{}.toml.tmpl", FolderOf(config), config_version >= 3 ? "-v3" : "");
}

std::vector<std::string> Layout::DropInFolders(const ConfigFile& parsed) const {
  constexpr std::string_view kEvery = "/*.toml";
  std::vector<std::string> folders;
  for (std::string import : parsed.imports) {
    if (!import.starts_with('/')) {
      import = Format("{}/{}", FolderOf(config), import);
    }
    if (import.ends_with(kEvery) && std::ranges::count(import, '*') == 1) {
      folders.push_back(import.substr(0, import.size() - kEvery.size()));
    }
  }
  return folders;
}

std::vector<std::string> Layout::Candidates() const {
  if (!generated) {
    return {config, Format("{}/conf.d/{}", FolderOf(config), kDropInName)};
  }
  std::vector<std::string> files;
  for (const int version : {2, 3}) {
    files.push_back(TemplateOf(version));
    files.push_back(
        Format("{}/config{}.toml.d/{}", FolderOf(config), version >= 3 ? "-v3" : "", kDropInName));
  }
  return files;
}

Result<Layout> FindLayout(const std::string& root, const std::string& distribution,
                          const std::string& config) {
  Layout layout;
  if (distribution == "containerd" || (distribution.empty() && !config.empty())) {
    layout = Plain(root);
  } else if (distribution == "k3s" || distribution == "rke2") {
    layout = Rancher(root, distribution);
  } else if (distribution.empty()) {
    const bool k3s = Exists(RancherConfig(root, "k3s"));
    const bool rke2 = Exists(RancherConfig(root, "rke2"));
    if (k3s && rke2) {
      return Fail(
          Code::kFailedPrecondition,
          "this node has a containerd of k3s and one of rke2: say which with --distribution");
    }
    layout = k3s ? Rancher(root, "k3s") : rke2 ? Rancher(root, "rke2") : Plain(root);
  } else {
    return Fail(
        Code::kInvalidArgument,
        "distribution '{}': it is containerd, k3s or rke2; of another one name the file with "
        "--containerd-config",
        distribution);
  }
  if (!config.empty()) {
    layout.config = config;
  }
  return layout;
}

}  // namespace gantry::setup
