// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include <gantry/toolkit/oci/json.h>
#include <gantry/toolkit/oci/spec.h>

#include "core/toolkit/oci/sections.h"

namespace gantry::oci {
namespace {

Result<std::vector<SpecMount>> ReadMounts(const Json& list) {
  GANTRY_TRY(const auto items, list.Items());
  std::vector<SpecMount> mounts(items.size());
  for (size_t i = 0; i < items.size(); ++i) {
    GANTRY_CHECK_OK(items[i].CheckObject());
    GANTRY_CHECK_OK(items[i]["destination"].Read(mounts[i].destination));
    GANTRY_CHECK_OK(items[i]["type"].Read(mounts[i].type));
    GANTRY_CHECK_OK(items[i]["source"].Read(mounts[i].source));
    GANTRY_CHECK_OK(items[i]["options"].Read(mounts[i].options));
    GANTRY_CHECK_OK(ReadIdMappings(items[i]["uidMappings"], mounts[i].uid_mappings));
    GANTRY_CHECK_OK(ReadIdMappings(items[i]["gidMappings"], mounts[i].gid_mappings));
    if (mounts[i].destination.empty()) {
      return items[i]["destination"].Wrong("missing");
    }
  }
  return mounts;
}

Status ReadVersion(const Json& version) {
  std::string text;
  GANTRY_CHECK_OK(version.Read(text));
  if (!text.starts_with("1.")) {
    return text.empty() ? version.Wrong("missing") : version.WrongValue("not a version 1");
  }
  return {};
}

}  // namespace

bool Spec::has_private_pid_namespace() const {
  const LinuxNamespace* space = FindNamespace("pid");
  return space != nullptr && space->path.empty();
}

const LinuxNamespace* Spec::FindNamespace(std::string_view type) const {
  const auto& list = linux_spec.namespaces;
  const auto found = std::ranges::find(list, type, &LinuxNamespace::type);
  return found == list.end() ? nullptr : &*found;
}

std::string Spec::network_namespace_path() const {
  const LinuxNamespace* space = FindNamespace("network");
  return space == nullptr ? std::string() : space->path;
}

std::string_view Spec::annotation(const std::string& key) const {
  const auto found = annotations.find(key);
  return found == annotations.end() ? std::string_view() : std::string_view(found->second);
}

std::string Spec::RootPath(std::string_view bundle) const {
  return root.path.starts_with('/') ? root.path : std::string(bundle) + "/" + root.path;
}

std::string Spec::RootfsIn(const std::string& bundle, bool mounted) const {
  return mounted ? bundle + "/rootfs" : RootPath(bundle);
}

Result<Spec> ParseSpec(std::string text, std::string_view file) {
  Spec out;
  GANTRY_TRY(const Json document, Json::Parse(text, file));
  if (document.absent()) {
    return document.Wrong("expected an object, found null");
  }
  GANTRY_CHECK_OK(document.CheckObject());
  GANTRY_CHECK_OK(ReadVersion(document["ociVersion"]));
  GANTRY_TRY(out.process, ReadProcess(document["process"]));
  const Json root = document["root"];
  GANTRY_CHECK_OK(root.CheckObject());
  GANTRY_CHECK_OK(root["path"].Read(out.root.path));
  GANTRY_CHECK_OK(root["readonly"].Read(out.root.readonly));
  if (out.root.path.empty()) {
    return root["path"].Wrong("missing");
  }
  GANTRY_CHECK_OK(document["hostname"].Read(out.hostname));
  GANTRY_CHECK_OK(document["domainname"].Read(out.domainname));
  GANTRY_TRY(out.mounts, ReadMounts(document["mounts"]));
  GANTRY_CHECK_OK(document["annotations"].Read(out.annotations));
  GANTRY_CHECK_OK(ReadLinux(document["linux"], out));
  out.json = std::move(text);
  return out;
}

Result<ProcessSpec> ParseProcess(std::string text, std::string_view what) {
  GANTRY_TRY(const Json document, Json::Parse(text, what));
  GANTRY_TRY(ProcessSpec process, ReadProcess(document));
  process.json = std::move(text);
  return process;
}

Result<std::string> WithTerminal(std::string_view text, bool terminal) {
  return WithMember(text, "exec spec", "terminal", terminal ? "true" : "false");
}

}  // namespace gantry::oci
