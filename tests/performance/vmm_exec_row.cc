// SPDX-License-Identifier: Apache-2.0
//
// An exec in a machine that runs: to its exit status, against a byte that goes to a process of the
// same guest over the vsock device, is answered by it with a fork before, and comes back.
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/performance/bundle.h"
#include "tests/performance/guest_tools.h"
#include "tests/performance/vmm_lab.h"
#include "tests/performance/vmm_rows.h"

namespace gantry::bench {
namespace {

constexpr int kGuestMs = 60'000;
/// The floor is many times shorter than what stands on it.
constexpr int kEchoes = 10;

Result<Phases> OneExec(VmmGuest& guest, int& count) {
  GANTRY_TRY(const std::string spec, ProcessSpec(guest.lab().default_spec(), {"true"}));
  const std::string exec_id = "x" + std::to_string(count++);
  Stdio stdio;
  GANTRY_CHECK_OK(stdio.Make(guest.lab().bundles() + "/io-" + guest.tools().id() + exec_id));
  Phases phases;
  GANTRY_CHECK_OK(guest.tools().Exec(exec_id, spec, stdio, phases));
  return phases;
}

Result<Phases> OneEcho(int socket) {
  std::vector<double> all;
  for (int i = 0; i < kEchoes; ++i) {
    const auto begin = Clock::now();
    char byte = 'e';
    pollfd answer{socket, POLLIN, 0};
    if (write(socket, &byte, 1) != 1 || poll(&answer, 1, kGuestMs) != 1 ||
        read(socket, &byte, 1) != 1) {
      return Fail(Code::kUnavailable, "ask a guest for an echo: no answer");
    }
    all.push_back(MillisecondsSince(begin));
  }
  Phases phases;
  phases.Add("echo", Median(all));
  return phases;
}

}  // namespace

Result<UniqueFd> AwaitGuest(const UniqueFd& listener) {
  pollfd caller{listener.get(), POLLIN, 0};
  if (poll(&caller, 1, kGuestMs) != 1) {
    return Fail(Code::kDeadlineExceeded, "wait for a guest that dials: it does not");
  }
  return UniqueFd(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
}

Status VmmExecRow(Lab& lab, const Extent& extent, Report& report) {
  GANTRY_TRY(const auto guest, VmmGuest::Boot(lab));
  GANTRY_TRY(const UniqueFd listener, guest->Listen(kEchoPort));
  GANTRY_TRY(const auto echo, guest->Begin({"/bin/bench", "--guest-echo"}));
  GANTRY_TRY(UniqueFd socket, AwaitGuest(listener));
  int count = 0;
  GANTRY_TRY(const Pair pair,
             Alternate(
                 extent.warm(), extent.rounds, [&] { return OneExec(*guest, count); },
                 [&] { return OneEcho(socket.get()); }));
  socket.reset();
  GANTRY_CHECK_OK(guest->Finish(*echo));
  GANTRY_CHECK_OK(guest->End());
  report.Add(Row{
      .id = "vmm-exec",
      .what = "Exec to the exit status of a process that ends at once; a round trip over vsock "
              "with a fork in the guest",
      .unit = "ms",
      .ours = pair.ours.MedianOf({"Exec", "Start", "Wait"}),
      .peer = pair.peer.MedianTotal(),
      .target = "",
      .met = {}}.RatioAtMost(4));
  report.AddPhases("vmm-exec", pair);
  return {};
}

}  // namespace gantry::bench
