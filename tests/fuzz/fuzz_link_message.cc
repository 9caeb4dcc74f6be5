// SPDX-License-Identifier: Apache-2.0
//
// The bodies of link messages. The first byte is the message's type.
#include <string>

#include "core/link/messages.h"
#include "core/link/record_peek.h"
#include "tests/fuzz/fuzz.h"

namespace gantry::fuzz {
namespace {

template <class T>
void CheckOne(std::string_view bytes) {
  const Result<T> message = DecodeProto<T>(bytes);
  if (!message) {
    return;
  }
  const std::string once = EncodeProto(*message);
  const Result<T> again = DecodeProto<T>(once);
  Require(again.has_value() && EncodeProto(*again) == once,
          "an encoded message is read as the same");
}

template <class... T>
void CheckType(link::Type type, std::string_view bytes) {
  ((T::kType == type ? CheckOne<T>(bytes) : void()), ...);
}

}  // namespace

void FuzzOne(std::string_view input) {
  const auto type = static_cast<link::Type>(TakeByte(input));
  CheckType<link::Announce, link::Announced, link::Delete, link::Deleted, link::Query,
            link::KeeperStatus, link::Upgrade, link::Upgraded, link::Failed, link::Hello,
            link::Inquire, link::Inventory, link::Refuse, link::Ping, link::Pong, link::Welcome,
            link::InstanceAdded, link::InstanceRemoved, link::Recovering, link::SnapshotEnd,
            link::StoredNames, link::Watched, link::NamedSpawn, link::EndedNames, link::ForgetEnded,
            link::AddMember, link::MemberAdded, link::Request, link::Response,
            link::ConnectionClosed, link::DeleteCall, link::DeleteDone, link::Spawn, link::Spawned,
            link::Adopt, link::Adopted, link::Exit, link::ExitAck, link::Put, link::PutDone,
            link::Take, link::Taken, link::Drop, link::Protect, link::Forget, link::StreamOpened,
            link::StreamTaken>(type, input);
  CheckOne<link::RecordPeek>(input);
}

}  // namespace gantry::fuzz
