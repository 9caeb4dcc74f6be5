// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/protocol/envelope.h"

#include <algorithm>

#include <gantry/format.h>

namespace gantry::vmm::protocol {
namespace {

constexpr size_t kMaxMessage = 4096;

}  // namespace

Failure ToFailure(const Error& error) {
  return {.code = static_cast<int32_t>(error.code),
          .sys_errno = error.sys_errno,
          .message = error.message.substr(0, kMaxMessage)};
}

Error ToError(const Failure& failure) {
  const bool known = failure.code > static_cast<int32_t>(Code::kOk) &&
                     failure.code <= static_cast<int32_t>(Code::kUnauthenticated);
  const bool is_errno = failure.sys_errno >= 0 && failure.sys_errno < 4096;
  std::string text = failure.message.substr(0, kMaxMessage);
  // It goes into a log, and to a terminal.
  std::ranges::replace_if(text, [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
  return {.code = known ? static_cast<Code>(failure.code) : Code::kInternal,
          .sys_errno = is_errno ? failure.sys_errno : 0,
          .message = text.empty() ? "it has failed and does not say why" : std::move(text),
          .detail = {}};
}

std::string NameOf(Kind kind) {
  switch (kind) {
    case Kind::kHello:
      return "Hello";
    case Kind::kWelcome:
      return "Welcome";
    case Kind::kSetUp:
      return "SetUp";
    case Kind::kAttach:
      return "Attach";
    case Kind::kDetach:
      return "Detach";
    case Kind::kCreateContainer:
      return "CreateContainer";
    case Kind::kCreateExec:
      return "CreateExec";
    case Kind::kStart:
      return "Start";
    case Kind::kSignal:
      return "Signal";
    case Kind::kPause:
      return "Pause";
    case Kind::kResume:
      return "Resume";
    case Kind::kUpdate:
      return "Update";
    case Kind::kStats:
      return "Stats";
    case Kind::kPids:
      return "Pids";
    case Kind::kResize:
      return "Resize";
    case Kind::kDelete:
      return "Delete";
    case Kind::kOnline:
      return "Online";
    case Kind::kList:
      return "List";
    case Kind::kShutdown:
      return "Shutdown";
    case Kind::kForward:
      return "Forward";
    case Kind::kExited:
      return "Exited";
    case Kind::kOutOfMemory:
      return "OutOfMemory";
    case Kind::kLog:
      return "Log";
    default:
      return Format("kind {}", static_cast<uint32_t>(kind));
  }
}

}  // namespace gantry::vmm::protocol
