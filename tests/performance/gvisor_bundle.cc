// SPDX-License-Identifier: Apache-2.0
#include "tests/performance/gvisor_bundle.h"

#include <filesystem>
#include <system_error>

#include <nlohmann/json.hpp>

#include "tests/harness/host.h"
#include "tests/performance/bundle.h"

namespace gantry::bench {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

/// The programs of the lab's are linked: a container cannot change them below its overlay.
Status MakeRootfs(const std::string& from, const std::string& to) {
  std::error_code error;
  fs::create_directories(to, error);
  const auto options = fs::copy_options::recursive | fs::copy_options::copy_symlinks |
                       fs::copy_options::create_hard_links;
  if (!error) {
    fs::copy(from, to, options, error);
  }
  if (error) {
    return FailErrno(error.value(), "make the root '{}'", to);
  }
  return {};
}

Result<std::string> Spec(const GvisorLab& lab, const std::string& default_spec,
                         const GvisorRequest& wanted, const std::string& rootfs) {
  const std::string program = wanted.is_image ? "/sleep" : "/bin/sleep";
  GANTRY_TRY(const std::string text, ContainerSpec(default_spec, "", {program, "100000"}));
  Json spec = Json::parse(text);
  spec["root"]["path"] = rootfs;
  spec["linux"].erase("cgroupsPath");
  spec["linux"].erase("resources");
  // As CRI's have one, and by which a sentry's accounts are the container's own.
  spec["mounts"].push_back({{"destination", "/sys/fs/cgroup"},
                            {"type", "cgroup"},
                            {"source", "cgroup"},
                            {"options", {"nosuid", "noexec", "nodev", "relatime", "ro"}}});
  Json& annotations = spec["annotations"];
  annotations["io.kubernetes.cri.container-type"] =
      wanted.id == wanted.pod ? "sandbox" : "container";
  annotations["io.kubernetes.cri.sandbox-id"] = wanted.pod;
  if (wanted.is_image) {
    annotations["dev.gvisor.spec.rootfs.type"] = "erofs";
    annotations["dev.gvisor.spec.rootfs.source"] = lab.image();
    annotations["dev.gvisor.spec.rootfs.overlay"] = "memory";
  }
  return spec.dump();
}

}  // namespace

Status GvisorBundle::Make(GvisorLab& lab, const GvisorRequest& wanted) {
  path_ = lab.lab().bundles() + "/" + wanted.id;
  // On disk, as snapshots are.
  rootfs_ = lab.lab().disk() + "/" + wanted.id;
  std::error_code error;
  fs::create_directories(path_, error);
  fs::create_directories(rootfs_, error);
  if (error) {
    return FailErrno(error.value(), "make the bundle '{}'", path_);
  }
  if (!wanted.is_image) {
    GANTRY_CHECK_OK(MakeRootfs(lab.lab().rootfs(), rootfs_));
  }
  GANTRY_TRY(const std::string spec, Spec(lab, lab.lab().default_spec(), wanted, rootfs_));
  e2e::WriteText(path_ + "/config.json", spec);
  return {};
}

GvisorBundle::~GvisorBundle() {
  if (!path_.empty()) {
    std::error_code error;
    fs::remove_all(path_, error);
    fs::remove_all(rootfs_, error);
  }
}

}  // namespace gantry::bench
