// SPDX-License-Identifier: Apache-2.0
//
// Bytes of a process of a guest: through its standard output and gantry, and straight through the
// vsock device from a process that dials the host itself. In the same guest, in turns.
#include <algorithm>

#include "tests/performance/guest_tools.h"
#include "tests/performance/stream.h"
#include "tests/performance/vmm_lab.h"
#include "tests/performance/vmm_rows.h"

namespace gantry::bench {
namespace {

constexpr uint64_t kBytes = uint64_t{64} << 20;
constexpr int kRounds = 9;

Result<Phases> ThroughStdout(VmmGuest& guest) {
  GANTRY_TRY(const auto process, guest.Begin({"/bin/bench", "--write", std::to_string(kBytes)}));
  Phases phases;
  GANTRY_CHECK_OK(ReadStream(guest.lab(), VmmSide(guest.lab()), process->stdio.out().get(), kBytes,
                             "an exec's output", phases));
  GANTRY_CHECK_OK(guest.Finish(*process));
  return phases;
}

Result<Phases> ThroughVsock(VmmGuest& guest, const UniqueFd& listener) {
  GANTRY_TRY(const auto process,
             guest.Begin({"/bin/bench", "--guest-write", std::to_string(kBytes)}));
  GANTRY_TRY(UniqueFd socket, AwaitGuest(listener));
  Phases phases;
  GANTRY_CHECK_OK(ReadStream(guest.lab(), VmmSide(guest.lab()), socket.get(), kBytes,
                             "a guest's connection", phases));
  socket.reset();
  GANTRY_CHECK_OK(guest.Finish(*process));
  return phases;
}

}  // namespace

Status VmmStdoutRow(Lab& lab, const Extent& extent, Report& report) {
  GANTRY_TRY(const auto guest, VmmGuest::Boot(lab));
  GANTRY_TRY(const UniqueFd listener, guest->Listen(kBulkPort));
  GANTRY_TRY(const Pair pair,
             Alternate(
                 1, std::min(extent.rounds, kRounds), [&] { return ThroughStdout(*guest); },
                 [&] { return ThroughVsock(*guest, listener); }));
  GANTRY_CHECK_OK(guest->End());
  report.Add(Row{
      .id = "vmm-stdout",
      .what = "an exec's output to a reader of 32 KiB; the same bytes over a bare vsock connection",
      .unit = "MiB/s",
      .ours = pair.ours.MedianOf("rate"),
      .peer = pair.peer.MedianOf("rate"),
      .target = "",
      .met = {}}.RatioAtLeast(0.9));
  return {};
}

}  // namespace gantry::bench
