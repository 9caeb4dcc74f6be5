// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/launch/create_documents.h"

#include <algorithm>
#include <vector>

#include <nlohmann/json.hpp>

#include <gantry/format.h>
#include <gantry/json.h>
#include <gantry/toolkit/json/json_end.h>

namespace gantry::gvisor {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kEntry = R"({"msg":)";

/// Found by what all have in common; what follows it may be another without a newline between
/// them, or the text of a panic.
std::optional<std::string> MessageAt(std::string_view text) {
  JsonEnd end;
  const size_t length = end.Feed(text);
  const Json entry = ReadJson(text.substr(0, length));
  const auto message = entry.is_object() ? entry.find("msg") : entry.end();
  if (message == entry.end() || !message->is_string()) {
    return std::nullopt;
  }
  return message->get<std::string>();
}

std::string WithoutNewlines(std::string text) {
  while (text.ends_with('\n')) {
    text.pop_back();
  }
  std::ranges::replace(text, '\n', ' ');
  return text;
}

/// What the handler's flags and a pod's are has been decided; the command would decide again.
void RemoveFlags(Json& document) {
  Json& annotations = document["annotations"];
  if (!annotations.is_object()) {
    annotations = Json::object();
  }
  for (auto one = annotations.begin(); one != annotations.end();) {
    const bool sets_flags =
        one.key().starts_with(kFlagAnnotation) || one.key().starts_with(kBundleAnnotation);
    one = sets_flags ? annotations.erase(one) : std::next(one);
  }
}

/// Without an entry the command makes one in which each id is itself, as gantry does.
void AddUserNamespace(const Spec& spec, Json& document) {
  if (spec.userns_path.empty() && spec.uids.empty() && spec.gids.empty()) {
    return;
  }
  Json entry = {{"type", "user"}};
  if (!spec.userns_path.empty()) {
    entry["path"] = spec.userns_path;
  }
  document["linux"]["namespaces"].push_back(std::move(entry));
}

/// To the command no word for the writable layer means that there is none, and "none" nothing.
void NameImage(const FileMount& root, std::optional<int> image, Json& annotations) {
  const std::string prefix = "dev.gvisor.spec.rootfs.";
  annotations[prefix + "type"] = "erofs";
  annotations[prefix + "source"] = image ? Format("/proc/self/fd/{}", *image) : root.source;
  annotations.erase(prefix + "overlay");
  if (root.conf.upper == MountConf::Upper::kMemory) {
    annotations[prefix + "overlay"] = "memory";
  }
}

}  // namespace

Result<std::string> CreateDocument(const Spec& spec, std::optional<int> image) {
  Json document = ReadJson(spec.json, kSpecJson);
  if (!document.is_object() || !document["linux"]["namespaces"].is_array()) {
    return Fail(Code::kInternal, "write a config.json for 'runsc create': no list of namespaces");
  }
  document.erase("hooks");
  RemoveFlags(document);
  AddUserNamespace(spec, document);
  if (!spec.mounts.empty() && spec.mounts.front().conf.lower == MountConf::Lower::kErofs) {
    NameImage(spec.mounts.front(), image, document["annotations"]);
  }
  return document.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<CreateState> ReadCreateState(std::string_view text) {
  const Json json = ReadJson(text, kSpecJson);
  CreateState state;
  // The one seam to a library that throws: a build that writes another document.
  try {
    const Json& sandbox = json.at("sandbox");
    sandbox.at("pid").get_to(state.sentry);
    sandbox.at("controlSocketPath").get_to(state.socket);
    state.gofer = json.value("goferPid", 0);
  } catch (const Json::exception& e) {
    return Fail(Code::kInternal, "read the state of 'runsc create': {}", e.what());
  }
  if (state.sentry <= 1 || state.gofer < 0 || !state.socket.starts_with('/')) {
    return Fail(Code::kInternal, "read the state of 'runsc create': pids {} and {}, socket '{}'",
                state.sentry, state.gofer, state.socket);
  }
  return state;
}

std::string CreateWords(std::string_view log) {
  std::vector<std::string> messages;
  for (size_t at = 0; (at = log.find(kEntry, at)) != std::string_view::npos; at += kEntry.size()) {
    if (auto message = MessageAt(log.substr(at))) {
      messages.push_back(WithoutNewlines(std::move(*message)));
    }
  }
  if (messages.empty()) {
    return WithoutNewlines(std::string(log));
  }
  if (messages.front() == messages.back()) {
    return messages.back();
  }
  return Format("{}; before that: {}", messages.back(), messages.front());
}

}  // namespace gantry::gvisor
