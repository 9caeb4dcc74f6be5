// SPDX-License-Identifier: Apache-2.0
//
// 1,500 small files of a node, read in a guest: from a block image that it mounts, and through
// virtiofs. Cold in the guest alone: the node has them in its memory.
#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>

#include "tests/harness/host.h"
#include "tests/harness/program.h"
#include "tests/performance/vmm_lab.h"
#include "tests/performance/vmm_rows.h"

namespace gantry::bench {
namespace {

namespace fs = std::filesystem;

constexpr int kFiles = 1500;
constexpr int kFolders = 30;
/// As large as sources of Python are in the middle.
constexpr size_t kFileBytes = 6000;
constexpr int kRounds = 5;

Status MakeFiles(const std::string& folder) {
  std::error_code error;
  for (int i = 0; i < kFolders; ++i) {
    fs::create_directories(folder + "/" + std::to_string(i), error);
  }
  const std::string content(kFileBytes, 'x');
  for (int i = 0; i < kFiles; ++i) {
    e2e::WriteText(folder + "/" + std::to_string(i % kFolders) + "/" + std::to_string(i), content);
  }
  return error ? Status(FailErrno(error.value(), "make files in '{}'", folder)) : Status();
}

Status MakeImage(const std::string& folder, const std::string& image) {
  const e2e::Output made = e2e::RunProgram(
      {"sh", "-c", "PATH=$PATH:/usr/sbin:/sbin mke2fs -q -t ext4 -d \"$0\" \"$1\" 32M", folder,
       image});
  return made.status == 0 ? Status()
                          : Fail(Code::kFailedPrecondition, "make an ext4 image: {}", made.Text());
}

Result<Phases> ReadFiles(VmmGuest& guest, const std::string& folder) {
  GANTRY_TRY(const std::vector<double> took,
             guest.SayNumbers({"/bin/bench", "--guest-read", folder}));
  Phases phases;
  phases.Add("cold", took.front());
  phases.Add("warm", took.back());
  return phases;
}

Row RowOf(const std::string& id, const std::string& phase, const Pair& pair) {
  return {.id = id,
          .what = "1,500 files of 6 KB read in a guest, " + phase +
                  ": a disk with ext4; virtiofs (as peer)",
          .unit = "ms",
          .ours = pair.ours.MedianOf(phase),
          .peer = pair.peer.MedianOf(phase),
          .target = "",
          .met = {}};
}

}  // namespace

Status VmmRootfsRows(Lab& lab, const Extent& extent, Report& report) {
  const std::string folder = lab.disk() + "/files";
  const std::string image = lab.disk() + "/files.img";
  GANTRY_CHECK_OK(MakeFiles(folder));
  GANTRY_CHECK_OK(MakeImage(folder, image));
  GANTRY_TRY(const auto guest,
             VmmGuest::Boot(lab, R"([{"destination": "/virtiofs", "type": "bind", "source": ")" +
                                     folder + R"(", "options": ["rbind", "ro"]},)" +
                                     R"({"destination": "/block", "type": "ext4", "source": ")" +
                                     image + R"(", "options": ["ro"]}])"));
  GANTRY_TRY(const Pair pair,
             Alternate(
                 0, std::min(extent.rounds, kRounds), [&] { return ReadFiles(*guest, "/block"); },
                 [&] { return ReadFiles(*guest, "/virtiofs"); }));
  GANTRY_CHECK_OK(guest->End());
  report.Add(RowOf("vmm-rootfs", "cold", pair));
  report.Add(RowOf("vmm-rootfs-warm", "warm", pair));
  return {};
}

}  // namespace gantry::bench
