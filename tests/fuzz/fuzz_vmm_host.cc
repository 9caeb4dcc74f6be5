// SPDX-License-Identifier: Apache-2.0
//
// What a host says to the agent: frames, requests, and of these what the kernel is told of the
// network.
#include <algorithm>
#include <string>
#include <vector>

#include <gantry/toolkit/proto/proto_message.h>

#include "plugins/vmm/guest/network.h"
#include "plugins/vmm/protocol/frames.h"
#include "plugins/vmm/protocol/greeting.h"
#include "plugins/vmm/protocol/messages.h"
#include "plugins/vmm/protocol/reports.h"
#include "tests/fuzz/fuzz.h"

namespace gantry::fuzz {
namespace {

using namespace vmm::protocol;  // NOLINT(google-build-using-namespace)

/// What was read is written, and read again, alike.
template <class Message>
void Look(std::string_view body) {
  const auto message = DecodeProto<Message>(body);
  if (!message) {
    Require(message.error().code == Code::kInvalidArgument, "whatever is wrong is told as that");
    return;
  }
  const std::string bytes = EncodeProto(*message);
  const auto again = DecodeProto<Message>(bytes);
  Require(again && EncodeProto(*again) == bytes, "there is one way to write a message");
}

void LookAtNetwork(std::string_view body) {
  const auto request = DecodeProto<SetUp>(body);
  if (!request) {
    return;
  }
  for (const Interface& one : request->interfaces) {
    vmm::guest::IsInterfaceName(one.name);
    for (const Address& address : one.addresses) {
      const auto change = vmm::guest::AddressChange(1, one.name, address);
      Require(!change || change->message.size() % 4 == 0, "messages are aligned");
    }
  }
  for (const Route& route : vmm::guest::InOrder(request->routes)) {
    const std::vector<int32_t> hops(route.next_hops.size(), 1);
    const auto change = vmm::guest::RouteChange(1, route, hops);
    Require(!change || change->message.size() % 4 == 0, "messages are aligned");
  }
  for (const Neighbour& neighbour : request->neighbours) {
    const auto change = vmm::guest::NeighbourChange(1, neighbour);
    Require(!change || change->message.size() % 4 == 0, "messages are aligned");
  }
}

void LookAtBody(const Envelope& envelope) {
  switch (static_cast<Kind>(envelope.kind)) {
    case Kind::kWelcome:
      return Look<Welcome>(envelope.body);
    case Kind::kSetUp:
      LookAtNetwork(envelope.body);
      return Look<SetUp>(envelope.body);
    case Kind::kAttach:
      return Look<Attach>(envelope.body);
    case Kind::kCreateContainer:
      return Look<CreateContainer>(envelope.body);
    case Kind::kCreateExec:
      return Look<CreateExec>(envelope.body);
    case Kind::kSignal:
      return Look<Signal>(envelope.body);
    case Kind::kUpdate:
      return Look<Update>(envelope.body);
    case Kind::kResize:
      return Look<Resize>(envelope.body);
    case Kind::kOnline:
      return Look<Online>(envelope.body);
    case Kind::kForward:
      return Look<Forward>(envelope.body);
    default:
      return Look<Start>(envelope.body);
  }
}

}  // namespace

void FuzzOne(std::string_view input) {
  const size_t portion = 1 + TakeByte(input);
  FrameReader frames(kMaxFromHost);
  while (!input.empty()) {
    frames.Feed(input.substr(0, portion));
    input.remove_prefix(std::min(portion, input.size()));
    for (;;) {
      const auto frame = frames.Next();
      if (!frame) {
        return;
      }
      if (!*frame) {
        break;
      }
      Require(!(*frame)->empty() && (*frame)->size() <= kMaxFromHost, "a frame is bounded");
      const auto envelope = DecodeProto<Envelope>(**frame);
      if (envelope) {
        LookAtBody(*envelope);
      }
    }
  }
}

}  // namespace gantry::fuzz
