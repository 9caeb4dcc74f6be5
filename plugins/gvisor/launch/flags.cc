// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/launch/flags.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include <gantry/number.h>

namespace gantry::gvisor {
namespace {

using Json = nlohmann::json;

/// What a pod may set though the operator has not allowed it to set all.
/// Source: runsc/config/flags.go, isFlagExplicitlyAllowed and its list.
bool IsHarmless(std::string_view name, std::string_view value) {
  constexpr std::array<std::string_view, 8> kNames = {
      "debug",           "debug-command",   "debug-to-user-log", "strace",
      "strace-syscalls", "strace-log-size", "host-uds",          "net-disconnect-ok"};
  return std::ranges::contains(kNames, name) || (name == "oci-seccomp" && value == "true");
}

/// As Go reads a truth value. Source: strconv.ParseBool.
std::optional<bool> Truth(std::string_view text) {
  constexpr std::array<std::string_view, 6> kTrue = {"1", "t", "T", "TRUE", "true", "True"};
  constexpr std::array<std::string_view, 6> kFalse = {"0", "f", "F", "FALSE", "false", "False"};
  if (std::ranges::contains(kTrue, text)) {
    return true;
  }
  return std::ranges::contains(kFalse, text) ? std::optional(false) : std::nullopt;
}

/// Those that gantry gives itself, or that are only for runsc's command line.
bool IsOurs(std::string_view name) {
  constexpr std::array<std::string_view, 12> kNames = {
      "root",         "log",       "log-fd",         "debug-log",
      "debug-log-fd", "panic-log", "panic-log-fd",   "coverage-report",
      "coverage-fd",  "network",   "ignore-cgroups", "allow-flag-override"};
  return std::ranges::contains(kNames, name);
}

/// A flag whose values the sentry numbers.
struct Choice {
  const char* name = nullptr;
  const char* field = nullptr;
  std::array<std::string_view, 3> values{};
};

/// Those that the sentry asks for with each container. Source: runsc/config/config.go;
/// runsc/boot/vfs.go.
constexpr std::array<Choice, 3> kChoices = {{
    {"host-fifo", "HostFifo", {"none", "open"}},
    {"character-device-policy",
     "CharacterDevicePolicy",
     {"emulated-only", "prefer-emulated", "passthrough"}},
    {"in-sandbox-cgroup", "InSandboxCgroup", {"v1", "v2"}},
}};

class Reader {
 public:
  explicit Reader(const Flags& flags) : flags_(flags) {}

  const std::string* Find(const std::string& name) const {
    const auto found = flags_.all.find(name);
    return found == flags_.all.end() ? nullptr : &found->second;
  }

  /// False: it is set to something that is no truth value.
  bool Is(const std::string& name, bool otherwise) const {
    const std::string* text = Find(name);
    return text == nullptr ? otherwise : Truth(*text).value_or(otherwise);
  }

  int64_t Number(const std::string& name, int64_t otherwise) const {
    const std::string* text = Find(name);
    return text == nullptr ? otherwise : ParseNumber(*text).value_or(otherwise);
  }

 private:
  const Flags& flags_;
};

std::unexpected<Error> Bad(std::string_view name, std::string_view value, std::string_view why) {
  return Fail(Code::kInvalidArgument, "check option 'runsc_config.{}': '{}': {}", name, value, why);
}

Result<Network> ReadNetwork(const Flags& flags) {
  const std::string* text = Reader(flags).Find("network");
  if (text == nullptr || *text == "sandbox") {
    return Network::kSandbox;
  }
  if (*text == "host") {
    return Network::kHost;
  }
  if (*text == "none") {
    return Network::kNone;
  }
  return Bad("network", *text, "must be sandbox, host or none");
}

/// `root:self`, `all:memory`, `root:dir=/x`, `none`; a size may follow.
Result<Overlay> ReadOverlay(const Flags& flags) {
  const std::string* text = Reader(flags).Find("overlay2");
  Overlay overlay;
  if (text == nullptr || text->empty()) {
    return overlay;
  }
  if (*text == "none") {
    overlay.medium = Overlay::Medium::kNone;
    return overlay;
  }
  std::string_view medium(*text);
  overlay.mounts = medium.starts_with("all:");
  if (!overlay.mounts && !medium.starts_with("root:")) {
    return Bad("overlay2", *text, "must be none, or root: or all: with a medium");
  }
  medium.remove_prefix(medium.find(':') + 1);
  medium = medium.substr(0, medium.find(','));
  if (medium == "self") {
    overlay.medium = Overlay::Medium::kSelf;
  } else if (medium == "memory") {
    overlay.medium = Overlay::Medium::kMemory;
  } else if (medium.starts_with("dir=/")) {
    overlay.medium = Overlay::Medium::kDirectory;
    overlay.directory = medium.substr(4);
  } else {
    return Bad("overlay2", *text, "the medium must be self, memory or dir=PATH");
  }
  return overlay;
}

/// `annotations`: of the pod.
Result<LogFlags> ReadLogs(const Flags& flags, const Annotations& annotations) {
  const Reader read(flags);
  LogFlags logs;
  for (const auto& [name, field] :
       {std::pair("debug-log", &LogFlags::debug), std::pair("debug-command", &LogFlags::commands),
        std::pair("panic-log", &LogFlags::panic),
        std::pair("coverage-report", &LogFlags::coverage)}) {
    if (const std::string* text = read.Find(name)) {
      logs.*field = *text;
    }
  }
  logs.debug_to_user = read.Is("debug-to-user-log", false);
  if (const auto folder = annotations.find(kLogFolderAnnotation); folder != annotations.end()) {
    logs.user = UserLogIn(folder->second);
  }
  GANTRY_CHECK_OK(logs.Check());
  return logs;
}

/// What would ask for more than is given to sentry and gofer here.
Status CheckPossible(const Flags& flags) {
  const Reader read(flags);
  if (!read.Is("directfs", true)) {
    return Bad("directfs", "false", "this backend gives sentries the files directly");
  }
  for (const char* name :
       {"nvproxy", "tpuproxy", "rootless", "rdmaproxy", "reproduce-nat", "reproduce-nftables"}) {
    if (read.Is(name, false)) {
      return Bad(name, "true", "this backend cannot do that");
    }
  }
  for (const char* name : {"qdisc-tbf-rate", "qdisc-tbf-burst", "num-network-channels",
                           "network-processors-per-channel"}) {
    const std::string* text = read.Find(name);
    if (text != nullptr && ParseNumber(*text).value_or(-1) < 0) {
      return Bad(name, *text, "must be a number");
    }
  }
  const std::string* stop = read.Find("control-rpc-stop-timeout");
  if (stop != nullptr && (*stop == "0" || *stop == "0s")) {
    return Bad("control-rpc-stop-timeout", *stop, "exit codes would be lost");
  }
  return {};
}

/// Those of the only bundle that runsc has. Source: runsc/config/config_bundles.go.
constexpr std::string_view kBundle = "experimental-high-performance";
constexpr std::array<std::pair<const char*, const char*>, 3> kBundleFlags = {
    {{"directfs", "true"}, {"overlay2", "root:self"}, {"platform", "systrap"}}};

/// `given`: of the handler; a flag that it has not is as the bundle has it.
Status ApplyBundle(const std::string& key, const Flags& given, Flags& flags) {
  const Reader read(given);
  const bool all = read.Is("allow-flag-override", false);
  for (const auto& [name, value] : kBundleFlags) {
    const std::string* const own = read.Find(name);
    if (own != nullptr && *own != value && !all) {
      return Fail(Code::kInvalidArgument,
                  "check annotation '{}': it sets '{}' to '{}', the handler's runsc_config to "
                  "'{}', and does not allow it (allow-flag-override)",
                  key, name, value, *own);
    }
    flags.all[name] = value;
  }
  return {};
}

Status ApplyBundles(Flags& flags, const Annotations& annotations) {
  const Flags given = flags;
  for (const auto& [key, value] : annotations) {
    if (!key.starts_with(kBundleAnnotation)) {
      continue;
    }
    if (value != "true") {
      return Fail(Code::kInvalidArgument, "check annotation '{}': '{}': must be true, or not there",
                  key, value);
    }
    if (key.substr(kBundleAnnotation.size()) == kBundle) {
      GANTRY_CHECK_OK(ApplyBundle(key, given, flags));
    } else {
      flags.unknown_bundles.push_back(key.substr(kBundleAnnotation.size()));
    }
  }
  return {};
}

Status Override(Flags& flags, const Annotations& annotations) {
  const bool all = Reader(flags).Is("allow-flag-override", false);
  for (const auto& [key, value] : annotations) {
    if (!key.starts_with(kFlagAnnotation)) {
      continue;
    }
    const std::string name = key.substr(kFlagAnnotation.size());
    if (!all && !IsHarmless(name, value)) {
      return Fail(Code::kInvalidArgument,
                  "check annotation '{}': the handler's runsc_config does not allow it "
                  "(allow-flag-override)",
                  key);
    }
    flags.all[name] = value;
  }
  return {};
}

}  // namespace

Result<Flags> MakeFlags(const std::map<std::string, std::string>& given,
                        const Annotations& annotations) {
  Flags flags;
  flags.all = given;
  GANTRY_CHECK_OK(ApplyBundles(flags, annotations));
  GANTRY_CHECK_OK(Override(flags, annotations));
  GANTRY_CHECK_OK(CheckPossible(flags));
  GANTRY_TRY(flags.network, ReadNetwork(flags));
  GANTRY_TRY(flags.overlay, ReadOverlay(flags));
  GANTRY_TRY(flags.logs, ReadLogs(flags, annotations));
  const Reader read(flags);
  if (const std::string* platform = read.Find("platform")) {
    flags.platform = *platform;
  }
  if (const std::string* policy = read.Find("sidecar-release-enforcement-policy")) {
    std::string upper = *policy;
    std::ranges::transform(upper, upper.begin(), [](unsigned char c) { return std::toupper(c); });
    flags.same_release = upper != "NEVER";
  }
  return flags;
}

std::vector<std::string> Flags::Arguments() const {
  std::vector<std::string> arguments;
  for (const auto& [name, value] : all) {
    if (!IsOurs(name)) {
      arguments.push_back(Format("--{}={}", name, value));
    }
  }
  constexpr std::array<const char*, 3> kNetworks = {"sandbox", "host", "none"};
  arguments.push_back(std::string("--network=") + kNetworks.at(static_cast<size_t>(network)));
  return arguments;
}

NetworkOptions Flags::NetworkFlags() const {
  const Reader read(*this);
  NetworkOptions options;
  options.host_gso = read.Is("gso", options.host_gso);
  options.gvisor_gso = read.Is("software-gso", options.gvisor_gso);
  options.gvisor_gro = read.Is("gvisor-gro", options.gvisor_gro);
  options.tx_checksum_offload = read.Is("tx-checksum-offload", options.tx_checksum_offload);
  options.rx_checksum_offload = read.Is("rx-checksum-offload", options.rx_checksum_offload);
  if (const std::string* qdisc = read.Find("qdisc"); qdisc != nullptr) {
    options.qdisc = *qdisc == "none"  ? QueueingDiscipline::kNone
                    : *qdisc == "tbf" ? QueueingDiscipline::kTbf
                                      : QueueingDiscipline::kFifo;
  }
  options.tbf_rate = static_cast<uint64_t>(read.Number("qdisc-tbf-rate", 0));
  options.tbf_burst = static_cast<uint64_t>(read.Number("qdisc-tbf-burst", 0));
  options.log_packets = read.Is("log-packets", false);
  options.channels = static_cast<uint32_t>(read.Number("num-network-channels", 1));
  options.processors_per_channel =
      static_cast<uint32_t>(read.Number("network-processors-per-channel", 0));
  return options;
}

std::string Flags::ConfJson() const {
  const Reader read(*this);
  const auto shared = [&](const char* name, bool otherwise) {
    const std::string* text = read.Find(name);
    return static_cast<int>(text == nullptr ? otherwise : *text == "shared");
  };
  Json conf = {{"Platform", platform},
               {"Network", static_cast<int>(network)},
               {"FileAccess", shared("file-access", false)},
               {"FileAccessMounts", shared("file-access-mounts", true)},
               {"DirectFS", true},
               {"EnableRaw", read.Is("net-raw", false)},
               {"OCISeccomp", read.Is("oci-seccomp", false)},
               {"DCache", read.Number("dcache", -1)},
               {"FDLimit", read.Number("fdlimit", -1)}};
  // Only where it says something: releases without such a flag do not know the field.
  for (const auto& [name, field, values] : kChoices) {
    const std::string* value = read.Find(name);
    const auto found =
        value == nullptr || value->empty() ? values.end() : std::ranges::find(values, *value);
    if (found != values.end() && found != values.begin()) {
      conf[field] = found - values.begin();
    }
  }
  return conf.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace gantry::gvisor
