// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/hypervisor/firecracker/documents.h"

#include <gantry/format.h>

namespace gantry::vmm::firecracker {

Document DiskDocument(const Disk& disk) {
  // Writes that the guest has flushed are on the host's disk.
  return {Format("/drives/{}", disk.serial),
          {{"drive_id", disk.serial},
           {"path_on_host", disk.path},
           {"is_root_device", false},
           {"is_read_only", disk.read_only},
           {"cache_type", "Writeback"}}};
}

Document NicDocument(const Nic& nic) {
  Json document = {{"iface_id", nic.id}, {"host_dev_name", nic.tap_name}, {"guest_mac", nic.mac}};
  if (nic.mtu != 0) {
    document["mtu"] = nic.mtu;
  }
  return {Format("/network-interfaces/{}", nic.id), std::move(document)};
}

std::vector<Document> VmDocuments(const VmConfig& config) {
  std::vector<Document> all;
  all.emplace_back("/machine-config", Json{{"vcpu_count", config.cpus.boot},
                                           {"mem_size_mib", config.memory.bytes / kMiB}});
  all.emplace_back("/boot-source", Json{{"kernel_image_path", config.kernel},
                                        {"initrd_path", config.initrd},
                                        {"boot_args", config.cmdline}});
  all.emplace_back("/serial", Json{{"serial_out_path", config.console}});
  all.emplace_back("/entropy", Json::object());
  if (config.balloon) {
    all.emplace_back(
        "/balloon",
        Json{{"amount_mib", 0}, {"deflate_on_oom", true}, {"free_page_reporting", true}});
  }
  if (config.memory.max_bytes > config.memory.bytes) {
    all.emplace_back(
        "/hotplug/memory",
        Json{{"total_size_mib", (config.memory.max_bytes - config.memory.bytes) / kMiB}});
  }
  for (const Disk& disk : config.disks) {
    all.push_back(DiskDocument(disk));
  }
  for (const Nic& nic : config.nics) {
    all.push_back(NicDocument(nic));
  }
  if (config.vsock) {
    all.emplace_back("/vsock",
                     Json{{"guest_cid", config.vsock->cid}, {"uds_path", config.vsock->uds}});
  }
  return all;
}

Json SnapshotDocument(const Snapshot& snapshot) {
  return {{"snapshot_type", "Full"},
          {"snapshot_path", snapshot.directory + "/state"},
          {"mem_file_path", snapshot.directory + "/memory"}};
}

Json LoadDocument(const VmConfig& config, const Snapshot& from) {
  const std::string& directory = from.directory;
  Json document = {
      {"snapshot_path", directory + "/state"},
      {"mem_backend", {{"backend_type", "File"}, {"backend_path", directory + "/memory"}}},
      {"resume_vm", false}};
  for (const Nic& nic : config.nics) {
    document["network_overrides"].push_back(
        {{"iface_id", nic.id}, {"host_dev_name", nic.tap_name}});
  }
  if (config.vsock) {
    document["vsock_override"] = {{"uds_path", config.vsock->uds}};
  }
  return document;
}

}  // namespace gantry::vmm::firecracker
