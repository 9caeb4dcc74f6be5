// SPDX-License-Identifier: Apache-2.0
//
// A further container of a pod that runs, to the first byte that it says; crun in the same guest,
// which this program times there, with the same config.json.
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string>
#include <system_error>

#include <nlohmann/json.hpp>

#include "tests/harness/host.h"
#include "tests/harness/program.h"
#include "tests/performance/guest_tools.h"
#include "tests/performance/output.h"
#include "tests/performance/vmm_lab.h"
#include "tests/performance/vmm_rows.h"

namespace gantry::bench {
namespace {

namespace fs = std::filesystem;

/// A call takes a second and more where the guest is translated.
constexpr int kRounds = 7;

const std::vector<std::string>& Speaks() {
  static const std::vector<std::string> argv{"sh", "-c", "echo here"};
  return argv;
}

Status CopyInto(const std::string& root, const std::string& file) {
  std::error_code error;
  fs::create_directories(fs::path(root + file).parent_path(), error);
  fs::copy_file(file, root + file, fs::copy_options::skip_existing, error);
  return error ? Status(FailErrno(error.value(), "copy '{}'", file)) : Status();
}

/// crun with what it loads, and a bundle for it, in the root of the guest's containers.
Status AddCrun(const Lab& lab) {
  const e2e::Output which =
      e2e::RunProgram({"sh", "-c", "command -v crun && ldd `command -v crun`"});
  if (which.status != 0) {
    return Fail(Code::kFailedPrecondition, "find crun: {}", which.Text());
  }
  std::istringstream words(which.out);
  for (std::string word; words >> word;) {
    if (word.starts_with('/')) {
      GANTRY_CHECK_OK(CopyInto(lab.rootfs(), word));
    }
  }
  const std::string bundle = lab.rootfs() + "/bundle";
  std::error_code error;
  for (const char* folder : {"/bin", "/dev", "/proc", "/sys", "/tmp", "/run", "/etc"}) {
    fs::create_directories(bundle + "/rootfs" + folder, error);
  }
  fs::copy(lab.rootfs() + "/bin/busybox", bundle + "/rootfs/bin/busybox",
           fs::copy_options::skip_existing, error);
  fs::create_symlink("busybox", bundle + "/rootfs/bin/sh", error);
  GANTRY_TRY(const std::string text, ContainerSpec(lab.default_spec(), "", Speaks()));
  nlohmann::json spec = nlohmann::json::parse(text);
  spec["linux"].erase("cgroupsPath");
  e2e::WriteText(bundle + "/config.json", spec.dump());
  return {};
}

Result<Phases> OurContainer(VmmGuest& guest) {
  Instance instance(guest.lab(), VmmSide(guest.lab()));
  GANTRY_CHECK_OK(instance.Prepare(Speaks(), InPod(guest.pod(), false)));
  GANTRY_CHECK_OK(instance.StartShim());
  GANTRY_CHECK_OK(instance.Connect());
  Phases phases;
  GANTRY_CHECK_OK(Timed(phases, "Create", [&] { return instance.Create(); }));
  GANTRY_CHECK_OK(instance.SendStart());
  GANTRY_CHECK_OK(Timed(phases, "Start to the first byte",
                        [&] { return AwaitOutput(instance.stdio(), instance.id()); }));
  GANTRY_CHECK_OK(instance.Receive());
  GANTRY_CHECK_OK(instance.Wait(0));
  GANTRY_CHECK_OK(instance.Delete());
  GANTRY_CHECK_OK(instance.Shutdown());
  GANTRY_CHECK_OK(instance.DeleteShim());
  return phases;
}

Result<Phases> Crun(VmmGuest& guest) {
  GANTRY_TRY(const std::vector<double> took,
             guest.SayNumbers({"/bin/bench", "--guest-first-byte", "/usr/bin/crun",
                               "--cgroup-manager=disabled", "--root=/run/crun", "run",
                               "--bundle=/bundle", "crun"}));
  Phases phases;
  phases.Add("crun run", took.front());
  return phases;
}

}  // namespace

Status VmmContainerRow(Lab& lab, const Extent& extent, Report& report) {
  GANTRY_CHECK_OK(AddCrun(lab));
  GANTRY_TRY(const auto guest, VmmGuest::Boot(lab));
  GANTRY_TRY(const Pair pair,
             Alternate(
                 1, std::min(extent.rounds, kRounds), [&] { return OurContainer(*guest); },
                 [&] { return Crun(*guest); }));
  GANTRY_CHECK_OK(guest->End());
  report.Add(Row{
      .id = "vmm-container",
      .what = "Create to the first byte of a further container of a pod; crun run in its guest",
      .unit = "ms",
      .ours = pair.ours.MedianTotal(),
      .peer = pair.peer.MedianTotal(),
      .target = "",
      .met = {}}.RatioAtMost(0.3));
  report.AddPhases("vmm-container", pair);
  return {};
}

}  // namespace gantry::bench
