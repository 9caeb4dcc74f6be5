// SPDX-License-Identifier: Apache-2.0
//
// Each function reads the message of its name; the numbers are those of
// k8s.io/cri-api. Everything is read into what it is part of, so that a field
// that comes twice is merged as protobuf wants it.
#include <utility>

#include <gantry/pod_config.h>
#include <gantry/protowire.h>

namespace gantry {
namespace {

/// Malformed somewhere inside: all of it is.
using Parsed = bool;

void Put(std::map<std::string, std::string>& map, std::string_view entry, Parsed& ok) {
  std::string key;
  std::string value;
  ProtoReader in(entry);
  while (in.Next()) {
    if (in.field() == 1) {
      key = in.text();
    } else if (in.field() == 2) {
      value = in.text();
    }
  }
  ok = ok && in.ok();
  map[std::move(key)] = std::move(value);
}

NamespaceMode ModeOf(uint64_t number) {
  return number <= 3 ? static_cast<NamespaceMode>(number) : NamespaceMode::kPod;
}

Parsed ReadMetadata(std::string_view bytes, PodConfig& to) {
  ProtoReader in(bytes);
  while (in.Next()) {
    switch (in.field()) {
      case 1:
        to.name = in.text();
        break;
      case 2:
        to.uid = in.text();
        break;
      case 3:
        to.ns = in.text();
        break;
      default:
        break;
    }
  }
  return in.ok();
}

Parsed ReadDns(std::string_view bytes, DnsConfig& to) {
  ProtoReader in(bytes);
  while (in.Next()) {
    switch (in.field()) {
      case 1:
        to.servers.push_back(in.text());
        break;
      case 2:
        to.searches.push_back(in.text());
        break;
      case 3:
        to.options.push_back(in.text());
        break;
      default:
        break;
    }
  }
  return in.ok();
}

Parsed ReadMapping(std::string_view bytes, std::vector<IdMapping>& to) {
  IdMapping mapping;
  ProtoReader in(bytes);
  while (in.Next()) {
    const auto number = static_cast<uint32_t>(in.number());
    switch (in.field()) {
      case 1:
        mapping.host_id = number;
        break;
      case 2:
        mapping.container_id = number;
        break;
      case 3:
        mapping.length = number;
        break;
      default:
        break;
    }
  }
  to.push_back(mapping);
  return in.ok();
}

Parsed ReadUserNamespace(std::string_view bytes, PodConfig& to) {
  Parsed ok = true;
  // It is there, and kPod is its default.
  to.user = NamespaceMode::kPod;
  ProtoReader in(bytes);
  while (in.Next()) {
    switch (in.field()) {
      case 1:
        to.user = ModeOf(in.number());
        break;
      case 2:
        ok = ReadMapping(in.bytes(), to.uids) && ok;
        break;
      case 3:
        ok = ReadMapping(in.bytes(), to.gids) && ok;
        break;
      default:
        break;
    }
  }
  return in.ok() && ok;
}

Parsed ReadNamespaces(std::string_view bytes, PodConfig& to) {
  Parsed ok = true;
  ProtoReader in(bytes);
  while (in.Next()) {
    switch (in.field()) {
      case 1:
        to.network = ModeOf(in.number());
        break;
      case 2:
        to.pid = ModeOf(in.number());
        break;
      case 3:
        to.ipc = ModeOf(in.number());
        break;
      case 5:
        ok = ReadUserNamespace(in.bytes(), to) && ok;
        break;
      default:
        break;
    }
  }
  return in.ok() && ok;
}

Parsed ReadSecurityContext(std::string_view bytes, PodConfig& to) {
  Parsed ok = true;
  ProtoReader in(bytes);
  while (in.Next()) {
    switch (in.field()) {
      case 1:
        ok = ReadNamespaces(in.bytes(), to) && ok;
        break;
      case 4:
        to.readonly_rootfs = in.number() != 0;
        break;
      case 6:
        to.privileged = in.number() != 0;
        break;
      default:
        break;
    }
  }
  return in.ok() && ok;
}

/// 0 is "not given" there.
template <class T>
void Set(std::optional<T>& to, uint64_t value) {
  if (value != 0) {
    to = static_cast<T>(value);
  }
}

Parsed ReadResources(std::string_view bytes, PodResources& to) {
  Parsed ok = true;
  ProtoReader in(bytes);
  while (in.Next()) {
    switch (in.field()) {
      case 1:
        Set(to.cpu_period, in.number());
        break;
      case 2:
        Set(to.cpu_quota, in.number());
        break;
      case 3:
        Set(to.cpu_shares, in.number());
        break;
      case 4:
        Set(to.memory_limit, in.number());
        break;
      case 6:
        to.cpuset_cpus = in.text();
        break;
      case 7:
        to.cpuset_mems = in.text();
        break;
      case 9:
        Put(to.unified, in.bytes(), ok);
        break;
      case 10:
        Set(to.memory_swap_limit, in.number());
        break;
      default:
        break;
    }
  }
  return in.ok() && ok;
}

Parsed ReadLinux(std::string_view bytes, PodConfig& to) {
  Parsed ok = true;
  ProtoReader in(bytes);
  while (in.Next()) {
    switch (in.field()) {
      case 1:
        to.cgroup_parent = in.text();
        break;
      case 2:
        ok = ReadSecurityContext(in.bytes(), to) && ok;
        break;
      case 3:
        Put(to.sysctls, in.bytes(), ok);
        break;
      case 4:
        ok = ReadResources(in.bytes(), to.overhead) && ok;
        break;
      case 5:
        ok = ReadResources(in.bytes(), to.resources) && ok;
        break;
      default:
        break;
    }
  }
  return in.ok() && ok;
}

}  // namespace

Result<PodConfig> ParsePodConfig(std::string_view bytes) {
  PodConfig config;
  Parsed ok = true;
  ProtoReader in(bytes);
  while (in.Next()) {
    switch (in.field()) {
      case 1:
        ok = ReadMetadata(in.bytes(), config) && ok;
        break;
      case 2:
        config.hostname = in.text();
        break;
      case 4:
        ok = ReadDns(in.bytes(), config.dns) && ok;
        break;
      case 6:
        Put(config.labels, in.bytes(), ok);
        break;
      case 7:
        Put(config.annotations, in.bytes(), ok);
        break;
      case 8:
        ok = ReadLinux(in.bytes(), config) && ok;
        break;
      default:
        break;
    }
  }
  if (!in.ok() || !ok) {
    return Fail(Code::kInvalidArgument, "read the pod's configuration: malformed");
  }
  return config;
}

Result<PodResources> ParsePodResources(std::string_view bytes) {
  PodResources resources;
  if (!ReadResources(bytes, resources)) {
    return Fail(Code::kInvalidArgument, "read the pod's resources: malformed");
  }
  return resources;
}

}  // namespace gantry
