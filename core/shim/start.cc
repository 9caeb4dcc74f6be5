// SPDX-License-Identifier: Apache-2.0
//
// containerd's `start`: read what it says, reach the keeper, announce the instance. The file
// `address` is written before the answer is printed, since containerd may be restarted right after
// it has read the answer, and then finds the socket only by that file.
#include <chrono>
#include <utility>

#include <gantry/toolkit/files/files.h>

#include "core/link/channel.h"
#include "core/shim/answers.h"
#include "core/shim/bootstrap.h"
#include "core/shim/group.h"
#include "core/shim/keeper_client.h"
#include "core/shim/shim.h"

namespace gantry::shim {
namespace {

constexpr std::chrono::seconds kKeeperAnnounces(10);

std::string FirstOf(const std::string& first, const std::string& second) {
  return first.empty() ? second : first;
}

link::Announce MakeAnnounce(const Arguments& arguments, const Surroundings& around,
                            Bootstrap bootstrap) {
  link::Announce announce;
  announce.id = arguments.id;
  announce.ns = arguments.ns;
  announce.bundle = around.bundle;
  announce.group = GroupOfBundle(around.bundle);
  announce.grpc_address = FirstOf(arguments.address, bootstrap.grpc_address);
  announce.ttrpc_address = FirstOf(around.ttrpc_address, bootstrap.ttrpc_address);
  announce.containerd_binary = FirstOf(arguments.publish_binary, bootstrap.containerd_binary);
  announce.debug = arguments.debug || bootstrap.debug;
  announce.handler = arguments.handler;
  announce.options_type_url = std::move(bootstrap.options_type_url);
  announce.options = std::move(bootstrap.options);
  announce.bootstrap_version = bootstrap.version;
  announce.containerd_version = std::move(bootstrap.containerd_version);
  announce.rlimits = link::OwnRlimits();
  return announce;
}

}  // namespace

Result<std::string> Start(const Arguments& arguments, const Surroundings& around) {
  Bootstrap bootstrap = ParseBootstrap(around.input, arguments.id, arguments.ns);
  const AnswerForm form =
      ChooseForm(around.has_max_version, bootstrap.version, around.containerd_major);
  const link::Announce announce = MakeAnnounce(arguments, around, std::move(bootstrap));
  GANTRY_TRY(UniqueFd socket, EnsureKeeper(around.run_dir));
  link::BlockingChannel channel(std::move(socket));
  auto announced =
      channel.Ask<link::Announced>(announce, std::chrono::steady_clock::now() + kKeeperAnnounces);
  if (!announced) {
    return std::unexpected(std::move(announced).error().Within(
        "announce to the keeper (its log is " + around.run_dir + "/keeper.log)"));
  }
  std::string answer = StartAnswer(form, announced->address);
  // containerd 1.6 and 1.7 find the socket again by this file after their restart.
  GANTRY_CHECK_OK(ReplaceFile(around.bundle + "/address", answer, 0644));
  return answer;
}

}  // namespace gantry::shim
