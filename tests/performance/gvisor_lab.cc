// SPDX-License-Identifier: Apache-2.0
#include "tests/performance/gvisor_lab.h"

#include <sys/stat.h>

#include <filesystem>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/image/erofs_image.h>

#include "tests/harness/host.h"

namespace gantry::bench {
namespace {

namespace fs = std::filesystem;

/// Those of the reference figures. No log, no cgroups, no network but loopback.
const Words& Flags() {
  static const Words flags{"--platform=systrap", "--network=none", "--ignore-cgroups=true"};
  return flags;
}

std::string Configuration(const std::string& runsc, const std::string& folder, int warm) {
  std::string text = Format(
      "version: 1\ndefault_handler: gvisor\nhandlers:\n  gvisor:\n    backend: gvisor\n"
      "    options:\n      binary_name: {}\n      root: {}/gantry\n      warm: {}\n"
      "      image_prefixes: [{}]\n      runsc_config:\n",
      runsc, folder, warm, folder);
  for (const std::string& flag : Flags()) {
    const size_t equals = flag.find('=');
    text += Format("        {}: \"{}\"\n", flag.substr(2, equals - 2), flag.substr(equals + 1));
  }
  return text;
}

Words CommandLine(const std::string& runsc, const std::string& folder) {
  Words words{runsc, "--root=" + folder + "/runsc"};
  words.insert(words.end(), Flags().begin(), Flags().end());
  return words;
}

Status WriteImage(const std::string& path, const std::string& program) {
  constexpr mode_t kFolder = S_IFDIR | 0755;
  const std::string content = e2e::ReadText(program);
  std::map<std::string, ErofsEntry> entries{{"sleep", {S_IFREG | 0755, content}}};
  for (const char* name : {"dev", "proc", "run", "sys", "tmp"}) {
    entries[name] = {kFolder, {}};
  }
  GANTRY_TRY(const std::string image, ErofsImage(entries));
  e2e::WriteText(path, image);
  return {};
}

Side SideOf(const Lab& lab, const std::string& folder) {
  return {.stock = false,
          .shim = lab.programs() + "/containerd-shim-gantry-v1",
          .oci = "",
          .runtime = "",
          .env = {{"GANTRY_RUN_DIR", folder + "/run"}, {"GANTRY_CONFIG", folder + "/gantry.yaml"}}};
}

}  // namespace

const std::vector<GvisorRelease>& GvisorReleases() {
  static const std::vector<GvisorRelease> releases{{"20260905", true}, {"20240729", false}};
  return releases;
}

std::string WithoutGvisor(const Lab& lab, const GvisorRelease& release) {
  const std::string plugin = lab.programs() + "/plugins/libgantry_gvisor.so";
  std::error_code error;
  return fs::exists(plugin, error) ? lab.settings().no_runsc(release.name)
                                   : "the gvisor backend is not built: " + plugin;
}

Row GvisorRow(const GvisorRelease& release, Row row, double limit) {
  row.id = release.RowId(row.id);
  return release.has_targets ? std::move(row).RatioAtMost(limit) : row;
}

GvisorLab::GvisorLab(Lab& lab, Side side, const std::string& runsc, const std::string& folder)
    : lab_(lab),
      side_(std::move(side)),
      folder_(folder),
      image_(folder + "/root.erofs"),
      runsc_(CommandLine(runsc, folder), folder + "/runsc.log") {}

Result<std::unique_ptr<GvisorLab>> GvisorLab::Make(Lab& lab, const GvisorRelease& release,
                                                   int warm) {
  // In memory, as what it holds is on a node.
  const std::string folder = lab.bundles() + "/g";
  const std::string runsc = lab.settings().RunscOf(release.name);
  fs::create_directories(folder + "/runsc");
  std::unique_ptr<GvisorLab> made(new GvisorLab(lab, SideOf(lab, folder), runsc, folder));
  e2e::WriteText(folder + "/gantry.yaml", Configuration(runsc, folder, warm));
  GANTRY_CHECK_OK(WriteImage(made->image_, lab.rootfs() + "/bin/busybox"));
  return made;
}

GvisorLab::~GvisorLab() {
  lab_.EndGantry(side_);
  std::error_code error;
  fs::remove_all(folder_, error);
}

std::string GvisorLab::NewId(bool stock) {
  return lab_.NewId({.stock = stock, .shim = "", .oci = "", .runtime = "", .env = {}});
}

}  // namespace gantry::bench
