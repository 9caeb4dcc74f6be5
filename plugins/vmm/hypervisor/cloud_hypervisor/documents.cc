// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/hypervisor/cloud_hypervisor/documents.h"

#include <algorithm>
#include <string>

#include <gantry/format.h>

namespace gantry::vmm::cloud_hypervisor {

std::string DiskId(std::string_view serial) { return Format("disk-{}", serial); }

std::string NicId(std::string_view id) { return Format("nic-{}", id); }

std::string FileSystemId(std::string_view tag) { return Format("fs-{}", tag); }

Json DiskDocument(const Disk& disk) {
  // "Raw" is said, since the first bytes of a raw image are its writer's: looked at, they could
  // make another format of it, with the host's files behind it.
  return {{"id", DiskId(disk.serial)},
          {"path", disk.path},
          {"readonly", disk.read_only},
          {"serial", disk.serial},
          {"image_type", "Raw"}};
}

Json NicDocument(const Nic& nic) {
  Json document = {{"id", NicId(nic.id)}, {"mac", nic.mac}};
  if (nic.mtu != 0) {
    document["mtu"] = nic.mtu;
  }
  return document;
}

Json FileSystemDocument(const FileSystem& file_system) {
  constexpr int kQueueSize = 1024;
  return {{"id", FileSystemId(file_system.tag)},
          {"tag", file_system.tag},
          {"socket", file_system.socket},
          {"num_queues", 1},
          {"queue_size", kQueueSize}};
}

Json VsockDocument(const Vsock& vsock) {
  return {{"id", "vsock"}, {"cid", vsock.cid}, {"socket", vsock.uds}};
}

namespace {

Json MemoryDocument(const Memory& memory) {
  Json document = {{"size", memory.bytes}, {"shared", memory.backing == MemoryBacking::kShared}};
  if (memory.max_bytes > memory.bytes) {
    document["hotplug_method"] = "VirtioMem";
    document["hotplug_size"] = memory.max_bytes - memory.bytes;
  }
  return document;
}

template <class Device, class Document>
Json ListOf(const std::vector<Device>& devices, Document document) {
  Json list = Json::array();
  for (const Device& device : devices) {
    list.push_back(document(device));
  }
  return list;
}

}  // namespace

Json VmDocument(const VmConfig& config) {
  Json document = {
      {"payload",
       {{"kernel", config.kernel}, {"initramfs", config.initrd}, {"cmdline", config.cmdline}}},
      {"cpus",
       {{"boot_vcpus", config.cpus.boot},
        {"max_vcpus", std::max(config.cpus.boot, config.cpus.max)}}},
      {"memory", MemoryDocument(config.memory)},
      {"rng", {{"src", "/dev/urandom"}}},
      {"serial", {{"mode", "File"}, {"file", config.console}}},
      {"console", {{"mode", "Off"}}}};
  if (config.balloon) {
    document["balloon"] = {{"size", 0}, {"deflate_on_oom", true}, {"free_page_reporting", true}};
  }
  if (!config.disks.empty()) {
    document["disks"] = ListOf(config.disks, DiskDocument);
  }
  if (!config.file_systems.empty()) {
    document["fs"] = ListOf(config.file_systems, FileSystemDocument);
  }
  if (config.vsock) {
    document["vsock"] = VsockDocument(*config.vsock);
  }
  return document;
}

}  // namespace gantry::vmm::cloud_hypervisor
