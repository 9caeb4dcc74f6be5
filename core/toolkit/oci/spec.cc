// SPDX-License-Identifier: Apache-2.0
#include "core/oci/spec.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/oci/json.h>

#include "core/os/fs.h"

namespace gantry::oci {
namespace {

Status ReadUser(const Json& user, User& out) {
  GANTRY_CHECK_OK(user.CheckObject());
  GANTRY_CHECK_OK(user["uid"].Read(out.uid));
  GANTRY_CHECK_OK(user["gid"].Read(out.gid));
  GANTRY_CHECK_OK(user["umask"].Read(out.umask));
  return user["additionalGids"].Read(out.additional_gids);
}

Status ReadConsoleSize(const Json& size, ProcessSpec& out) {
  GANTRY_CHECK_OK(size.CheckObject());
  if (size.absent()) {
    return {};
  }
  ConsoleSize console;
  GANTRY_CHECK_OK(size["width"].Read(console.width));
  GANTRY_CHECK_OK(size["height"].Read(console.height));
  out.console_size = console;
  return {};
}

Result<ProcessSpec> ReadProcess(const Json& process) {
  ProcessSpec out;
  if (process.absent()) {
    return process.Wrong("missing");
  }
  GANTRY_CHECK_OK(process.CheckObject());
  GANTRY_CHECK_OK(process["terminal"].Read(out.terminal));
  GANTRY_CHECK_OK(ReadConsoleSize(process["consoleSize"], out));
  GANTRY_CHECK_OK(ReadUser(process["user"], out.user));
  GANTRY_CHECK_OK(process["args"].Read(out.args));
  if (out.args.empty() || out.args.front().empty()) {
    return process["args"].Wrong("no program to run");
  }
  GANTRY_CHECK_OK(process["env"].Read(out.env));
  GANTRY_CHECK_OK(process["cwd"].Read(out.cwd));
  if (!out.cwd.starts_with('/')) {
    return process["cwd"].Wrong("not an absolute path");
  }
  std::string profile;
  std::string label;
  GANTRY_CHECK_OK(process["apparmorProfile"].Read(profile));
  GANTRY_CHECK_OK(process["selinuxLabel"].Read(label));
  out.confined = !profile.empty() || !label.empty();
  return out;
}

Result<std::vector<SpecMount>> ReadMounts(const Json& list) {
  GANTRY_TRY(const auto items, list.Items());
  std::vector<SpecMount> mounts(items.size());
  for (size_t i = 0; i < items.size(); ++i) {
    GANTRY_CHECK_OK(items[i].CheckObject());
    GANTRY_CHECK_OK(items[i]["destination"].Read(mounts[i].destination));
    GANTRY_CHECK_OK(items[i]["type"].Read(mounts[i].type));
    GANTRY_CHECK_OK(items[i]["source"].Read(mounts[i].source));
    GANTRY_CHECK_OK(items[i]["options"].Read(mounts[i].options));
    if (mounts[i].destination.empty()) {
      return items[i]["destination"].Wrong("missing");
    }
  }
  return mounts;
}

Status ReadNamespaces(const Json& list, std::vector<LinuxNamespace>& out) {
  constexpr std::string_view kTypes[] = {"pid", "network", "mount",  "ipc",
                                         "uts", "user",    "cgroup", "time"};
  GANTRY_TRY(const auto items, list.Items());
  for (const Json& item : items) {
    LinuxNamespace space;
    GANTRY_CHECK_OK(item.CheckObject());
    GANTRY_CHECK_OK(item["type"].Read(space.type));
    GANTRY_CHECK_OK(item["path"].Read(space.path));
    if (!std::ranges::contains(kTypes, space.type)) {
      return item["type"].Wrong("not a kind of namespace");
    }
    if (!space.path.empty() && !space.path.starts_with('/')) {
      return item["path"].Wrong("not an absolute path");
    }
    if (std::ranges::contains(out, space.type, &LinuxNamespace::type)) {
      return item["type"].Wrong("listed twice");
    }
    out.push_back(std::move(space));
  }
  return {};
}

Status ReadLinux(const Json& part, Spec& out) {
  GANTRY_CHECK_OK(part.CheckObject());
  GANTRY_CHECK_OK(ReadNamespaces(part["namespaces"], out.namespaces));
  GANTRY_CHECK_OK(part["cgroupsPath"].Read(out.cgroups_path));
  GANTRY_TRY(out.resources, ReadResources(part["resources"]));
  out.resources_json = part["resources"].Text();
  return {};
}

Status ReadVersion(const Json& version) {
  std::string text;
  GANTRY_CHECK_OK(version.Read(text));
  if (!text.starts_with("1.")) {
    return version.Wrong(text.empty() ? "missing" : "not a version 1");
  }
  return {};
}

}  // namespace

bool Spec::has_private_pid_namespace() const {
  const LinuxNamespace* space = FindNamespace("pid");
  return space != nullptr && space->path.empty();
}

const LinuxNamespace* Spec::FindNamespace(std::string_view type) const {
  const auto found = std::ranges::find(namespaces, type, &LinuxNamespace::type);
  return found == namespaces.end() ? nullptr : &*found;
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
  GANTRY_TRY(out.mounts, ReadMounts(document["mounts"]));
  GANTRY_CHECK_OK(document["annotations"].Read(out.annotations));
  GANTRY_CHECK_OK(ReadLinux(document["linux"], out));
  out.json = std::move(text);
  return out;
}

Result<Spec> ReadSpec(const std::string& bundle, size_t max_bytes) {
  const std::string file = bundle + "/config.json";
  auto text = ReadFile(file, max_bytes);
  if (!text && (text.error().sys_errno == EISDIR || text.error().sys_errno == ELOOP)) {
    text.error().code = Code::kInvalidArgument;
  }
  if (!text) {
    return std::unexpected(std::move(text).error());
  }
  return ParseSpec(std::move(*text), file);
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
