// SPDX-License-Identifier: Apache-2.0
//
// The vsock device against rust-vmm's, each with a guest of its own: tests/vmm/vsock/vsock_bench.cc
// measures them in turns.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <string>

#include "tests/harness/program.h"
#include "tests/performance/vmm_lab.h"
#include "tests/performance/vmm_rows.h"

namespace gantry::bench {
namespace {

constexpr const char* kPeer = "GANTRY_VMM_VHOST_DEVICE_VSOCK";
constexpr int kRounds = 5;

/// As the program calls it, and how it is here.
struct Figure {
  const char* id;
  const char* words;
  const char* what;
  const char* unit;
  /// Ours by the peer's: at least where more is better, at most else; 0: for the record.
  double at_least;
  double at_most;
};

constexpr Figure kFigures[] = {
    {"vmm-vsock-out", "guest to host, MB/s", "64 MiB of a guest to its host", "MB/s", 1.5, 0},
    {"vmm-vsock-in", "host to guest, MB/s", "64 MiB of the host to a guest", "MB/s", 1.5, 0},
    {"vmm-vsock-echo", "echo of 64 bytes, us", "an echo of 64 bytes", "us", 0, 0.5},
    {"vmm-vsock-dial", "CONNECT and echo, us", "a dial of the host's and its first echo", "us", 0,
     0},
};

Result<Row> RowOf(const Figure& figure, const std::string& table) {
  const size_t at = table.find(figure.words);
  if (at == std::string::npos) {
    return Fail(Code::kInternal, "read what vmm_vsock_bench says: no '{}' in '{}'", figure.words,
                table);
  }
  std::istringstream in(table.substr(at + std::string(figure.words).size()));
  double ours = 0;
  double peer = 0;
  in >> ours >> peer;
  Row row{.id = figure.id,
          .what = std::string(figure.what) + "; rust-vmm's vhost-device-vsock (as peer)",
          .unit = figure.unit,
          .ours = ours,
          .peer = peer,
          .target = "",
          .met = {}};
  if (figure.at_least > 0) {
    return std::move(row).RatioAtLeast(figure.at_least);
  }
  return figure.at_most > 0 ? std::move(row).RatioAtMost(figure.at_most) : row;
}

}  // namespace

Status VmmVsockRows(Lab& lab, const Extent& extent, Report& report) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): before any thread
  const char* const peer = std::getenv(kPeer);
  if (peer == nullptr || access(peer, X_OK) != 0) {
    for (const Figure& figure : kFigures) {
      report.AddNotHere(figure.id, std::string(kPeer) +
                                       " naming vhost-device-vsock 0.3.0, as `cargo install` "
                                       "makes it: Debian has no package of it");
    }
    return {};
  }
  const e2e::Output said = e2e::RunProgram({lab.programs() + "/../tests/vmm_vsock_bench",
                                            std::to_string(std::min(extent.rounds, kRounds))},
                                           {}, e2e::kLong * 3);
  if (said.status != 0) {
    return Fail(Code::kInternal, "run vmm_vsock_bench: {}", said.Text());
  }
  for (const Figure& figure : kFigures) {
    GANTRY_TRY(Row row, RowOf(figure, said.out));
    report.Add(std::move(row));
  }
  return {};
}

}  // namespace gantry::bench
