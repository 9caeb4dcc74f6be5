// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/hypervisor/qemu/qmp_message.h"

#include <algorithm>

namespace gantry::vmm {
namespace {

using Kind = QmpMessage::Kind;

constexpr size_t kMaxShown = 120;

std::unexpected<Error> NoMessage(std::string_view line, std::string_view why) {
  std::string shown(line.substr(0, kMaxShown));
  std::ranges::replace_if(shown, [](char c) { return c < ' ' || c > '~'; }, '?');
  return Fail(Code::kDataLoss, "QEMU's message is not taken: {}: {}", why, shown);
}

std::string StringOf(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::optional<uint64_t> IdOf(const Json& object) {
  const auto found = object.find("id");
  if (found == object.end() || !found->is_number_unsigned()) {
    return std::nullopt;
  }
  return found->get<uint64_t>();
}

}  // namespace

Result<QmpMessage> ParseQmp(std::string_view line, const JsonLimits& limits) {
  Result<Json> parsed = ParseJson(line, "QMP", limits);
  if (!parsed) {
    return NoMessage(line, parsed.error().message);
  }
  Json& object = *parsed;
  if (!object.is_object()) {
    return NoMessage(line, "it is no object");
  }
  if (const auto event = object.find("event"); event != object.end()) {
    if (!event->is_string()) {
      return NoMessage(line, "an event without a name");
    }
    return QmpMessage{.kind = Kind::kEvent,
                      .id = {},
                      .name = event->get<std::string>(),
                      .text = {},
                      .value = object.value("data", Json::object())};
  }
  if (const auto error = object.find("error"); error != object.end()) {
    if (!error->is_object()) {
      return NoMessage(line, "an error that is none");
    }
    return QmpMessage{.kind = Kind::kError,
                      .id = IdOf(object),
                      .name = StringOf(*error, "class"),
                      .text = StringOf(*error, "desc"),
                      .value = {}};
  }
  if (const auto value = object.find("return"); value != object.end()) {
    return QmpMessage{
        .kind = Kind::kReturn, .id = IdOf(object), .name = {}, .text = {}, .value = *value};
  }
  if (const auto greeting = object.find("QMP"); greeting != object.end()) {
    return QmpMessage{
        .kind = Kind::kGreeting, .id = {}, .name = {}, .text = {}, .value = *greeting};
  }
  return NoMessage(line, "neither answer nor event");
}

Result<std::optional<std::string>> QmpLines::Next() {
  const size_t end = buffer_.find('\n', looked_at_);
  if (std::min(end, buffer_.size()) > most_) {
    return Fail(Code::kDataLoss, "QEMU's message has more than the {} bytes that are taken of it",
                most_);
  }
  if (end == std::string::npos) {
    looked_at_ = buffer_.size();
    return std::nullopt;
  }
  std::string line = buffer_.substr(0, end);
  buffer_.erase(0, end + 1);
  looked_at_ = 0;
  if (line.ends_with('\r')) {
    line.pop_back();
  }
  return line;
}

}  // namespace gantry::vmm
