// SPDX-License-Identifier: Apache-2.0
//
// The agent in its guest: what is resident of it, as the guest's kernel says, with one container
// and with more that do nothing.
#include <memory>
#include <vector>

#include "tests/performance/vmm_lab.h"
#include "tests/performance/vmm_rows.h"

namespace gantry::bench {
namespace {

constexpr size_t kIdle = 8;
constexpr double kKibPerMib = 1024;

}  // namespace

Status VmmAgentRows(Lab& lab, const Extent& /*extent*/, Report& report) {
  const std::vector<std::string> ask{"/bin/bench", "--guest-agent"};
  GANTRY_TRY(const auto guest, VmmGuest::Boot(lab));
  // What the first exec touches is none of the containers'.
  GANTRY_TRY(auto before, guest->SayNumbers(ask));
  GANTRY_TRY(before, guest->SayNumbers(ask));
  std::vector<std::unique_ptr<Instance>> idle;
  for (size_t i = 0; i < kIdle; ++i) {
    idle.push_back(std::make_unique<Instance>(lab, VmmSide(lab)));
    GANTRY_CHECK_OK(idle.back()->Run({"sleep", "100000"}, InPod(guest->pod(), false)));
  }
  GANTRY_TRY(const auto after, guest->SayNumbers(ask));
  for (const auto& one : idle) {
    GANTRY_CHECK_OK(one->End());
  }
  GANTRY_CHECK_OK(guest->End());
  report.Add(Row{
      .id = "vmm-agent",
      .what = "the agent's resident memory, most of it its program",
      .unit = "MiB",
      .ours = before.front() / kKibPerMib,
      .peer = {},
      .target = "",
      .met = {}}.AtMost(1.5));
  report.Add(Row{
      .id = "vmm-agent-container",
      .what = "the same for each further container that does nothing",
      .unit = "KiB",
      .ours = (after.front() - before.front()) / static_cast<double>(kIdle),
      .peer = {},
      .target = "",
      .met = {}}.AtMost(120));
  return {};
}

}  // namespace gantry::bench
