// SPDX-License-Identifier: Apache-2.0
//
// gantry-vsock: the vsock device of one virtual machine, for a front end of vhost-user. README.md
// says what it does for whom.
#include <string>
#include <utility>
#include <vector>

#include "plugins/vmm/vsock/arguments.h"
#include "plugins/vmm/vsock/confine.h"
#include "plugins/vmm/vsock/report.h"
#include "plugins/vmm/vsock/server.h"

namespace gantry::vmm::vsock {
namespace {

Status Run(const Arguments& arguments) {
  GANTRY_TRY(const size_t streams, ReserveDescriptors(arguments.streams));
  if (streams < arguments.streams) {
    Report("{} streams at most, not {}: there may be no more descriptors", streams,
           arguments.streams);
  }
  Server server({.front_ends = UniqueFd(arguments.front_end),
                 .hosts = UniqueFd(arguments.hosts),
                 .device = {.guest_cid = arguments.guest_cid,
                            .name = arguments.name,
                            .most_streams = streams},
                 .reconnects = arguments.reconnects});
  GANTRY_CHECK_OK(server.Open());
  GANTRY_CHECK_OK(EnterRoot(UniqueFd(arguments.directory)));
  GANTRY_CHECK_OK(GiveUpRights());
  constexpr int kForever = -1;
  while (server.Turn(kForever)) {
  }
  return {};
}

int Main(const std::vector<std::string>& words) {
  const auto arguments = ReadArguments(words);
  if (!arguments) {
    Report("{}\n{}", arguments.error().message, Usage());
    return 2;
  }
  if (const Status ran = Run(*arguments); !ran) {
    Report("{}", ran.error().message);
    return 1;
  }
  return 0;
}

}  // namespace
}  // namespace gantry::vmm::vsock

int main(int argc, char** argv) {
  return gantry::vmm::vsock::Main(std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc));
}
