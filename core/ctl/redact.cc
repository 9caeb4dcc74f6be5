// SPDX-License-Identifier: Apache-2.0
#include "core/ctl/redact.h"

#include <algorithm>
#include <array>
#include <cctype>

#include <yaml-cpp/yaml.h>

namespace gantry::ctl {
namespace {

constexpr std::array<std::string_view, 11> kSecretParts = {
    "token",      "secret",  "password",    "passwd",     "apikey",       "api_key",
    "credential", "private", "environment", "annotation", "authorization"};
/// What a value ends at.
constexpr std::string_view kEnds = " \t,;\"'}])&";
constexpr std::string_view kBearer = "bearer ";

char Lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

std::string Lowered(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), Lower);
  return lower;
}

bool IsNamePart(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.';
}

/// Where the value begins that belongs to a name which goes on at `at`: behind the rest of the
/// name,
/// `=` or `:`, blanks and a quote. npos: none does.
size_t ValueAfter(std::string_view line, size_t at) {
  while (at < line.size() && IsNamePart(line[at])) {
    ++at;
  }
  at = line.find_first_not_of("\"' \\", at);
  if (at == std::string_view::npos || (line[at] != '=' && line[at] != ':')) {
    return std::string_view::npos;
  }
  at = line.find_first_not_of("\"' \\", at + 1);
  return at;
}

/// Where the next value that is a secret begins, at `from` or behind it.
size_t NextSecret(std::string_view line, std::string_view lower, size_t from) {
  size_t next = std::string_view::npos;
  for (const std::string_view part : kSecretParts) {
    for (size_t at = lower.find(part, from); at != std::string_view::npos;
         at = lower.find(part, at + 1)) {
      if (const size_t value = ValueAfter(line, at + part.size()); value >= from) {
        next = std::min(next, value);
        break;
      }
    }
  }
  if (const size_t at = lower.find(kBearer, from); at != std::string_view::npos) {
    next = std::min(next, at + kBearer.size());
  }
  return next;
}

/// The last one of an authorization goes on behind its scheme.
size_t EndOf(std::string_view line, std::string_view lower, size_t value) {
  for (const std::string_view scheme : {kBearer, std::string_view("basic ")}) {
    if (lower.substr(value).starts_with(scheme)) {
      value += scheme.size();
      break;
    }
  }
  size_t end = std::min(line.find_first_of(kEnds, value), line.size());
  // A name where the value should be: what it names is that.
  while (end > value && end < line.size() && (line[end - 1] == ':' || line[end - 1] == '=')) {
    end = std::min(line.find_first_of(kEnds, line.find_first_not_of(kEnds, end)), line.size());
  }
  return end;
}

/// `scheme://user:password@host`.
void RedactUrls(std::string& line) {
  for (size_t at = line.find("://"); at != std::string::npos; at = line.find("://", at + 3)) {
    const size_t begin = at + 3;
    const size_t end = std::min(line.find_first_of("/ \t\"'", begin), line.size());
    const size_t mark = line.rfind('@', end);
    if (mark != std::string::npos && mark >= begin && mark < end) {
      line.replace(begin, mark - begin, kLeftOut);
    }
  }
}

std::string RedactLine(std::string_view line) {
  const std::string lower = Lowered(line);
  std::string out;
  size_t done = 0;
  for (size_t value = NextSecret(line, lower, 0); value != std::string_view::npos;
       value = NextSecret(line, lower, done)) {
    const size_t end = EndOf(line, lower, value);
    out += line.substr(done, value - done);
    out += kLeftOut;
    done = std::max(end, value);
    if (done >= line.size()) {
      break;
    }
    if (end == value) {  // Nothing stands there.
      out += line[done++];
    }
  }
  out += line.substr(std::min(done, line.size()));
  RedactUrls(out);
  return out;
}

/// Of `node` only the shape stays.
void LeaveOut(YAML::Node node) {
  if (node.IsMap()) {
    for (auto member : node) {
      LeaveOut(member.second);
    }
  } else if (node.IsSequence()) {
    for (auto item : node) {
      LeaveOut(item);
    }
  } else if (node.IsScalar()) {
    node = std::string(kLeftOut);
  }
}

void Redact(YAML::Node node) {
  if (node.IsMap()) {
    for (auto member : node) {
      const bool secret = !member.first.IsScalar() || IsSecretName(member.first.Scalar());
      secret ? LeaveOut(member.second) : Redact(member.second);
    }
  } else if (node.IsSequence()) {
    for (auto item : node) {
      Redact(item);
    }
  } else if (node.IsScalar()) {
    const std::string redacted = RedactText(node.Scalar());
    if (redacted != node.Scalar()) {
      node = redacted;
    }
  }
}

}  // namespace

bool IsSecretName(std::string_view name) {
  const std::string lower = Lowered(name);
  return lower == "env" || lower == "key" || lower.ends_with("_key") ||
         std::ranges::any_of(kSecretParts, [&](std::string_view part) {
           return lower.find(part) != std::string::npos;
         });
}

std::string RedactText(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    out += RedactLine(text.substr(0, end));
    if (end < text.size()) {
      out += '\n';
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

Result<std::string> RedactYaml(const std::string& text) {
  // The seam to yaml-cpp.
  try {
    YAML::Node node = YAML::Load(text);
    Redact(node);
    YAML::Emitter out;
    out << node;
    return std::string(out.c_str()) + "\n";
  } catch (const YAML::Exception& error) {
    return Fail(Code::kInvalidArgument, "read it as YAML: {}", error.what());
  }
}

}  // namespace gantry::ctl
