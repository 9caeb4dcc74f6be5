// SPDX-License-Identifier: Apache-2.0
#include "packaging/kubernetes/node_api/node.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include <nlohmann/json.hpp>

#include <gantry/format.h>
#include <gantry/json.h>

namespace gantry::node_api {
namespace {

using nlohmann::json;

constexpr JsonLimits kListLimits{.bytes = size_t{32} << 20, .values = 2'000'000};

/// Of what Kubernetes lets be in keys, values and names of nodes.
bool IsWord(std::string_view word, std::string_view marks) {
  return word.size() <= 253 && std::ranges::all_of(word, [&](unsigned char c) {
           return std::isalnum(c) != 0 || marks.contains(static_cast<char>(c));
         });
}

std::string TextAt(const json& object, const char* key) {
  return object.is_object() && object.contains(key) && object[key].is_string()
             ? object[key].get<std::string>()
             : "";
}

const json& At(const json& object, const char* key) {
  static const json kNone;
  const auto found = object.is_object() ? object.find(key) : object.end();
  return object.is_object() && found != object.end() ? *found : kNone;
}

/// Draining a node would end it.
bool Counts(const json& pod) {
  const std::string phase = TextAt(At(pod, "status"), "phase");
  if (phase == "Succeeded" || phase == "Failed") {
    return false;
  }
  const json& meta = At(pod, "metadata");
  if (At(meta, "annotations").contains("kubernetes.io/config.mirror")) {
    return false;
  }
  const json& owners = At(meta, "ownerReferences");
  return !owners.is_array() || std::ranges::none_of(owners, [](const json& owner) {
    return TextAt(owner, "kind") == "DaemonSet";
  });
}

std::string Escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    escaped += std::isalnum(static_cast<unsigned char>(c)) != 0
                   ? std::string(1, c)
                   : Format("%{:02X}", static_cast<unsigned>(static_cast<unsigned char>(c)));
  }
  return escaped;
}

Status CheckNode(const std::string& node) {
  if (node.empty() || !IsWord(node, "-.")) {
    return Fail(Code::kInvalidArgument, "'{}' is no name of a node", node);
  }
  return {};
}

}  // namespace

Result<std::string> LabelPatch(const std::vector<std::string>& words) {
  json labels = json::object();
  for (const std::string& word : words) {
    const size_t at = word.find('=');
    const bool gone = at == std::string::npos && word.ends_with('-');
    const std::string key = gone ? word.substr(0, word.size() - 1) : word.substr(0, at);
    const std::string value = gone || at == std::string::npos ? "" : word.substr(at + 1);
    if ((!gone && at == std::string::npos) || key.empty() || !IsWord(key, "-._/") ||
        !IsWord(value, "-._") || value.size() > 63) {
      return Fail(Code::kInvalidArgument, "'{}' is no label: KEY=VALUE, or KEY- for one that goes",
                  word);
    }
    labels[key] = gone ? json() : json(value);
  }
  return json({{"metadata", {{"labels", labels}}}}).dump();
}

Status SetLabels(const ApiServer& server, const std::string& node,
                 const std::vector<std::string>& words) {
  GANTRY_CHECK_OK(CheckNode(node));
  GANTRY_TRY(const std::string patch, LabelPatch(words));
  GANTRY_TRY(const std::string answer, Call(server, {.method = "PATCH",
                                                     .target = "/api/v1/nodes/" + node,
                                                     .content_type = "application/merge-patch+json",
                                                     .body = patch}));
  return {};
}

Result<PodPage> ReadPods(std::string_view text) {
  GANTRY_TRY(const json list, ParseJson(text, "list of pods", kListLimits));
  const json& items = At(list, "items");
  if (!items.is_array()) {
    return Fail(Code::kInvalidArgument, "list of pods: it has no items");
  }
  PodPage page;
  for (const json& pod : items) {
    if (Counts(pod)) {
      const json& meta = At(pod, "metadata");
      page.names.push_back(Format("{}/{}", TextAt(meta, "namespace"), TextAt(meta, "name")));
    }
  }
  page.next = TextAt(At(list, "metadata"), "continue");
  return page;
}

Result<std::vector<std::string>> PodsOf(const ApiServer& server, const std::string& node) {
  GANTRY_CHECK_OK(CheckNode(node));
  std::vector<std::string> names;
  std::string next;
  do {
    std::string target = "/api/v1/pods?limit=50&fieldSelector=spec.nodeName%3D" + node;
    if (!next.empty()) {
      target += "&continue=" + Escaped(next);
    }
    GANTRY_TRY(const std::string text,
               Call(server, {.target = target, .content_type = "", .body = ""}));
    GANTRY_TRY(PodPage page, ReadPods(text));
    std::ranges::move(page.names, std::back_inserter(names));
    next = std::move(page.next);
  } while (!next.empty());
  return names;
}

}  // namespace gantry::node_api
