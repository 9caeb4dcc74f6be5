// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/agent/events.h"

#include <algorithm>
#include <chrono>

#include <gantry/format.h>
#include <gantry/toolkit/proto/proto_message.h>

#include "plugins/vmm/protocol/ids.h"
#include "plugins/vmm/protocol/reports.h"

namespace gantry::vmm {
namespace {

constexpr size_t kMaxLine = 1024;

int64_t Now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

bool DeliverExit(const std::string& body, const AgentEvents& events, int64_t begin_ns) {
  const auto told = DecodeProto<protocol::Exited>(body);
  if (!told || !protocol::IsId(told->container) ||
      (!told->exec.empty() && !protocol::IsId(told->exec))) {
    return false;
  }
  if (events.exited) {
    events.exited({told->container,
                   told->exec,
                   {ClampStatus(told->status), ClampTime(told->exited_at_ns, begin_ns, Now())}});
  }
  return true;
}

bool DeliverOutOfMemory(const std::string& body, const AgentEvents& events) {
  const auto told = DecodeProto<protocol::OutOfMemory>(body);
  if (!told || !protocol::IsId(told->container) || told->kills == 0) {
    return false;
  }
  if (events.out_of_memory) {
    events.out_of_memory(told->container, told->kills);
  }
  return true;
}

bool DeliverLine(const std::string& body, const AgentEvents& events, LineLimit& lines) {
  auto told = DecodeProto<protocol::LogLine>(body);
  if (!told || !lines.Take(Now())) {
    return false;
  }
  if (events.log) {
    std::string line = PrintableLine(std::move(told->text));
    if (told->lost > 0) {
      line += Format(" ({} lines before it are lost)", told->lost);
    }
    events.log(line);
  }
  return true;
}

}  // namespace

std::string PrintableLine(std::string text) {
  text.resize(std::min(text.size(), kMaxLine));
  std::ranges::replace_if(
      text, [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7f; }, '?');
  return text;
}

uint32_t ClampStatus(uint32_t status) { return std::min<uint32_t>(status, 255); }

int64_t ClampTime(int64_t time_ns, int64_t begin_ns, int64_t now_ns) {
  return std::clamp(time_ns, std::min(begin_ns, now_ns), now_ns);
}

bool LineLimit::Take(int64_t now_ns) {
  const int64_t begin = std::max(full_at_ns_, now_ns);
  if (begin - now_ns >= kAtOnce * kEachNs) {
    return false;
  }
  full_at_ns_ = begin + kEachNs;
  return true;
}

bool Deliver(const protocol::Envelope& event, const AgentEvents& events, int64_t begin_ns,
             LineLimit& lines) {
  switch (static_cast<protocol::Kind>(event.kind)) {
    case protocol::Kind::kExited:
      return DeliverExit(event.body, events, begin_ns);
    case protocol::Kind::kOutOfMemory:
      return DeliverOutOfMemory(event.body, events);
    case protocol::Kind::kLog:
      return DeliverLine(event.body, events, lines);
    default:
      return false;
  }
}

}  // namespace gantry::vmm
