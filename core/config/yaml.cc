// SPDX-License-Identifier: Apache-2.0
#include "core/config/yaml.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <system_error>

#include <gantry/format.h>

#include "core/config/units.h"

namespace gantry::config {
namespace {

std::string BytesText(size_t bytes) {
  if (bytes >= (1U << 20) && bytes % (1U << 20) == 0) {
    return Format("{}MiB", bytes >> 20);
  }
  if (bytes >= (1U << 10) && bytes % (1U << 10) == 0) {
    return Format("{}KiB", bytes >> 10);
  }
  return Format("{}B", bytes);
}

std::string DurationText(Millis time) {
  const auto count = time.count();
  return count >= 1000 && count % 1000 == 0 ? Format("{}s", count / 1000) : Format("{}ms", count);
}

}  // namespace

std::unexpected<Error> Yaml::Wrong(std::string_view cause) const {
  const YAML::Mark mark = node_.Mark().is_null() ? mark_ : node_.Mark();
  const std::string place =
      mark.is_null() ? file_ : Format("{}:{}:{}", file_, mark.line + 1, mark.column + 1);
  return Fail(Code::kInvalidArgument, "read configuration '{}': {}{}{}", place, key_,
              key_.empty() ? "" : ": ", cause);
}

Result<std::string> Yaml::KeyOf(const YAML::Node& key) const {
  if (!key.IsScalar()) {
    return Yaml(key, file_, key_, mark_).Wrong("a key that is not text");
  }
  return key.Scalar();
}

Status Yaml::EachMember(size_t most,
                        const std::function<Status(const std::string&, const Yaml&)>& read) const {
  if (node_.IsNull()) {
    return {};
  }
  if (!node_.IsMap()) {
    return Wrong("expected a map of keys and values");
  }
  std::set<std::string> seen;
  for (const auto& member : node_) {
    GANTRY_TRY(const std::string key, KeyOf(member.first));
    const std::string full = (key_.empty() ? "" : key_ + ".") + key.substr(0, 80);
    const Yaml value(member.second, file_, full, member.first.Mark());
    if (!seen.insert(key).second) {
      return Yaml(member.first, file_, full, mark_).Wrong("given twice");
    }
    if (seen.size() > most) {
      return Wrong(Format("more than {} entries", most));
    }
    GANTRY_CHECK_OK(read(key, value));
  }
  return {};
}

Status Yaml::ReadMap(std::initializer_list<Member> members) const {
  return EachMember(members.size() + 1, [&](const std::string& key, const Yaml& value) -> Status {
    const auto* const found = std::ranges::find(members, key, &Member::first);
    if (found != members.end()) {
      return found->second(value);
    }
    std::string known;
    for (const Member& member : members) {
      known.append(known.empty() ? "" : ", ").append(member.first);
    }
    return Yaml(YAML::Node(YAML::NodeType::Undefined), file_, value.key_, value.mark_)
        .Wrong(Format("unknown key; known here: {}", known));
  });
}

Result<std::string> Yaml::Scalar(std::string_view expected) const {
  if (!node_.IsScalar() || node_.Scalar().contains('\0')) {
    return Wrong(Format("expected {}", expected));
  }
  return node_.Scalar();
}

Status Yaml::ReadText(std::string& out) const {
  GANTRY_TRY(out, Scalar("text"));
  return {};
}

Status Yaml::ReadNumber(uint64_t& out, uint64_t least, uint64_t most) const {
  GANTRY_TRY(const std::string text, Scalar("a whole number"));
  const auto value = ParsePlain(text);
  if (!value) {
    return Wrong(Format("expected a whole number, found '{}'", text.substr(0, 80)));
  }
  if (*value < least || *value > most) {
    return Wrong(Format("{} is not within {} to {}", text, least, most));
  }
  out = *value;
  return {};
}

Status Yaml::ReadPart(double& out) const {
  GANTRY_TRY(const std::string text, Scalar("a number from 0 to 1"));
  double value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= 0 && value <= 1)) {
    return Wrong(
        Format("expected a number from 0 to 1, such as 0.1, found '{}'", text.substr(0, 80)));
  }
  out = value;
  return {};
}

Status Yaml::ReadBytes(size_t& out, size_t least, size_t most) const {
  GANTRY_TRY(const std::string text, Scalar("a size such as 256KiB"));
  const auto value = ParseBytes(text);
  if (!value) {
    return Wrong(Format("expected a size such as 256KiB (B, KiB, MiB, GiB), found '{}'",
                        text.substr(0, 80)));
  }
  if (*value < least || *value > most) {
    return Wrong(Format("{} is not within {} to {}", text, BytesText(least), BytesText(most)));
  }
  out = *value;
  return {};
}

Status Yaml::ReadDuration(Millis& out, Millis least, Millis most) const {
  GANTRY_TRY(const std::string text, Scalar("a time such as 10s"));
  const auto value = ParseMillis(text);
  if (!value) {
    return Wrong(
        Format("expected a time such as 10s (ms, s, m, h), found '{}'", text.substr(0, 80)));
  }
  if (*value < static_cast<uint64_t>(least.count()) ||
      *value > static_cast<uint64_t>(most.count())) {
    return Wrong(
        Format("{} is not within {} to {}", text, DurationText(least), DurationText(most)));
  }
  out = Millis(*value);
  return {};
}

}  // namespace gantry::config
