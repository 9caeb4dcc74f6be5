// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string_view>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>
#include <gantry/toolkit/oci/json.h>
#include <gantry/toolkit/oci/resources.h>

#include "plugins/vmm/storage/arrangement.h"
#include "plugins/vmm/storage/choice.h"
#include "plugins/vmm/storage/disk_file.h"
#include "plugins/vmm/storage/layout.h"

namespace gantry::vmm {
namespace {

/// Of the guest's processor; others would have to be set aside when it boots.
constexpr uint64_t kHugePage = uint64_t{2} << 20;
constexpr std::string_view kHugePageName = "2MB";
/// A limit that is none.
constexpr uint64_t kNoLimit = uint64_t{1} << 50;

std::string MappingText(const std::vector<IdMapping>& mappings) {
  std::string text;
  for (const IdMapping& one : mappings) {
    text += Format("{}:{}:{},", one.container_id, one.host_id, one.length);
  }
  return text;
}

/// As the container's own ids are.
bool IsMapped(const oci::SpecMount& mount) {
  return std::ranges::any_of(mount.options, [](const std::string& option) {
    return option == "idmap" || option == "ridmap";
  });
}

bool MayWrite(const oci::Device& device, const std::vector<cgroup::DeviceRule>& rules) {
  bool may = true;
  for (const cgroup::DeviceRule& rule : rules) {
    if (rule.allow && rule.type == 'b' && rule.major == device.major &&
        rule.minor == device.minor) {
      may = rule.write;
    }
  }
  return may;
}

Result<std::vector<cgroup::DeviceRule>> RulesOf(const oci::Spec& spec) {
  const std::string text = spec.resources_json.empty() ? "{}" : spec.resources_json;
  GANTRY_TRY(const auto object, oci::Json::Parse(text, "linux.resources"));
  return oci::ReadDeviceRules(object);
}

}  // namespace

Status Arranger::AddMount(size_t place, oci::SpecMount mount, const oci::Spec& spec,
                          const std::string& bundle) {
  GANTRY_TRY(const bool needed, NeedsSource(mount));
  if (!needed) {
    return {};
  }
  if (mount.uid_mappings.empty() && IsMapped(mount)) {
    mount.uid_mappings = spec.linux_spec.uid_mappings;
    mount.gid_mappings = spec.linux_spec.gid_mappings;
  }
  const bool relative = !mount.source.empty() && !mount.source.starts_with('/');
  GANTRY_TRY(Source source, LookAt(relative ? bundle + "/" + mount.source : mount.source));
  GANTRY_TRY(made_.guest.binds[place], AddVolume(mount, std::move(source)));
  return {};
}

Result<std::string> Arranger::AddVolume(const oci::SpecMount& mount, Source source) {
  GANTRY_TRY(const Way way, ChooseWay(mount, source));
  switch (way) {
    case Way::kMemory:
      return AddMemory(source);
    case Way::kHugePages:
      return AddHugePages(source);
    case Way::kDisk:
      return AddDisk(mount, source);
    default:
      return !request_.traits.file_systems && IsCopied(mount, source)
                 ? AddCopy(source)
                 : AddShared(mount, std::move(source));
  }
}

// The container's own, made anew for each: a pod's name and servers do not change.
Result<std::string> Arranger::AddCopy(const Source& source) {
  size_t bytes = 0;
  for (const protocol::File& file : made_.copies) {
    bytes += file.content.size();
  }
  GANTRY_TRY(std::string content,
             ReadFile(Format("/proc/self/fd/{}", source.fd.get()), kMostCopied - bytes));
  Item item{.number = table_.NewNumber()};
  item.path = VolumeInGuest(item.number);
  item.detach = {item.path};
  made_.copies.push_back(
      {.path = item.path, .content = std::move(content), .mode = source.mode & 0777U});
  return Put(std::move(item)).path;
}

// A volume that is read-only for this container is so on the node, too, but where others of the
// pod write to it: it has to be the same file system for all of them.
Result<std::string> Arranger::AddShared(const oci::SpecMount& mount, Source source) {
  GANTRY_CHECK_OK(NeedFileSystems());
  const BindWords words = ReadBindWords(mount);
  BindRequest bind{.directory = source.kind == SourceKind::kDirectory,
                   .recursive = words.recursive,
                   .read_only = words.read_only && !IsPods(source),
                   .follows = words.follows,
                   .uid_mappings = mount.uid_mappings,
                   .gid_mappings = mount.gid_mappings};
  Item item{.number = table_.NewNumber(), .shared = true};
  item.key = Format("bind:{}:{}{}{}:{}:{}", source.identity, bind.recursive ? 'r' : '-',
                    bind.read_only ? 'o' : 'w', bind.follows ? 'f' : '-',
                    MappingText(bind.uid_mappings), MappingText(bind.gid_mappings));
  item.path = Format("{}/{}", kGuestShared, NameOf(item.number));
  item.detach = {item.path};
  const Item& put = Put(std::move(item));
  made_.sources[put.number] = {.source = std::move(source), .words = std::move(bind)};
  return put.path;
}

Result<std::string> Arranger::AddDisk(const oci::SpecMount& mount, const Source& source) {
  GANTRY_CHECK_OK(NeedDisks("a block device with a file system"));
  const bool read_only = ReadBindWords(mount).read_only || mount.type != "ext4";
  if (!read_only) {
    GANTRY_CHECK_OK(CheckUnused(source.path));
  }
  Item item{.number = table_.NewNumber(),
            .key = Format("disk:{}:{}:{}", mount.type, source.identity, read_only),
            .disk = source.path,
            .read_only = read_only};
  item.path = VolumeInGuest(item.number);
  item.detach = {item.path};
  item.mounts = {{.type = mount.type, .serial = item.serial(), .target = item.path}};
  if (read_only) {
    item.mounts.front().options = {"ro"};
  }
  return Put(std::move(item)).path;
}

std::string Arranger::AddMemory(const Source& source) {
  Item item{.number = table_.NewNumber(), .key = "memory:" + source.identity};
  item.path = VolumeInGuest(item.number);
  item.detach = {item.path};
  std::vector<std::string> options = {"mode=1777", "nosuid", "nodev", "noexec"};
  if (source.file_system_bytes != 0) {
    options.push_back(Format("size={}", source.file_system_bytes));
  }
  item.mounts = {{.type = "tmpfs", .source = "shm", .target = item.path, .options = options}};
  return Put(std::move(item)).path;
}

Result<std::string> Arranger::AddHugePages(const Source& source) {
  if (source.block_bytes != kHugePage) {
    return Fail(Code::kFailedPrecondition,
                "huge pages of {} bytes: a guest has those of {} bytes only", source.block_bytes,
                kHugePage);
  }
  Item item{.number = table_.NewNumber(), .key = "hugepages:" + source.identity};
  item.path = VolumeInGuest(item.number);
  item.detach = {item.path};
  item.mounts = {{.type = "hugetlbfs",
                  .source = "hugetlbfs",
                  .target = item.path,
                  .options = {"pagesize=2M", Format("mode={:o}", source.mode),
                              Format("uid={}", source.uid), Format("gid={}", source.gid)}}};
  return Put(std::move(item)).path;
}

Status Arranger::AddDevice(const oci::Device& device, const oci::Spec& spec) {
  if (device.type != 'b') {
    return {};  // `CheckSpec` has let it.
  }
  GANTRY_CHECK_OK(NeedDisks("a block device"));
  GANTRY_TRY(const std::string disk, DiskFileOf(device.major, device.minor));
  GANTRY_CHECK_OK(CheckUnused(disk));
  GANTRY_TRY(const auto rules, RulesOf(spec));
  Item item{.number = table_.NewNumber(), .disk = disk, .read_only = !MayWrite(device, rules)};
  item.key = Format("device:{}:{}:{}", device.major, device.minor, item.read_only);
  item.path = VolumeInGuest(item.number);
  item.detach = {item.path};
  item.mounts = {{.type = protocol::kDeviceFile, .serial = item.serial(), .target = item.path}};
  made_.guest.disks[device.path] = Put(std::move(item)).path;
  return {};
}

// What the limit promises has to be there: a guest's kernel makes no huge pages by itself.
Status Arranger::AddHugePageLimit(const oci::Spec& spec) {
  const std::string text = spec.resources_json.empty() ? "{}" : spec.resources_json;
  GANTRY_TRY(const auto object, oci::Json::Parse(text, "linux.resources"));
  GANTRY_TRY(const auto limits, object["hugepageLimits"].Items());
  for (const oci::Json& one : limits) {
    std::string size;
    uint64_t limit = 0;
    GANTRY_CHECK_OK(one["pageSize"].Read(size));
    GANTRY_CHECK_OK(one["limit"].Read(limit));
    if (limit == 0 || limit >= kNoLimit) {
      continue;
    }
    if (size == kHugePageName) {
      Put({.number = table_.NewNumber(), .huge_pages = limit / kHugePage});
    } else {
      return Fail(Code::kFailedPrecondition, "huge pages of '{}': a guest has those of {} only",
                  size, kHugePageName);
    }
  }
  return {};
}

}  // namespace gantry::vmm
