// SPDX-License-Identifier: Apache-2.0
#include "tests/fault/points/link_stream.h"

#include "core/link/message_type.h"

namespace gantry::fault {

std::string_view MessageName(uint16_t type) {
  using link::Type;
  switch (static_cast<Type>(type)) {
    case Type::kHello:
      return "Hello";
    case Type::kWelcome:
      return "Welcome";
    case Type::kInstanceAdded:
      return "InstanceAdded";
    case Type::kInstanceRemoved:
      return "InstanceRemoved";
    case Type::kSnapshotEnd:
      return "SnapshotEnd";
    case Type::kStoredNames:
      return "StoredNames";
    case Type::kNamedSpawn:
      return "NamedSpawn";
    case Type::kEndedNames:
      return "EndedNames";
    case Type::kForgetEnded:
      return "ForgetEnded";
    case Type::kWatched:
      return "Watched";
    case Type::kAddMember:
      return "AddMember";
    case Type::kMemberAdded:
      return "MemberAdded";
    case Type::kRequest:
      return "Request";
    case Type::kResponse:
      return "Response";
    case Type::kConnectionClosed:
      return "ConnectionClosed";
    case Type::kDeleteCall:
      return "DeleteCall";
    case Type::kDeleteDone:
      return "DeleteDone";
    case Type::kSpawn:
      return "Spawn";
    case Type::kSpawned:
      return "Spawned";
    case Type::kAdopt:
      return "Adopt";
    case Type::kAdopted:
      return "Adopted";
    case Type::kExit:
      return "Exit";
    case Type::kExitAck:
      return "ExitAck";
    case Type::kPut:
      return "Put";
    case Type::kPutDone:
      return "PutDone";
    case Type::kTake:
      return "Take";
    case Type::kTaken:
      return "Taken";
    case Type::kDrop:
      return "Drop";
    case Type::kProtect:
      return "Protect";
    case Type::kForget:
      return "Forget";
    case Type::kInquire:
      return "Inquire";
    case Type::kInventory:
      return "Inventory";
    case Type::kRefuse:
      return "Refuse";
    default:
      return {};
  }
}

}  // namespace gantry::fault
