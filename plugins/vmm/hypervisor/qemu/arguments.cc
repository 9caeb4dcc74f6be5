// SPDX-License-Identifier: Apache-2.0
#include "plugins/vmm/hypervisor/qemu/arguments.h"

#include <algorithm>
#include <string>
#include <utility>

#include <gantry/format.h>
#include <gantry/toolkit/process/spawn_builder.h>

#include "plugins/vmm/hypervisor/qemu/devices.h"

namespace gantry::vmm::qemu {
namespace {

/// A comma ends a value, two are one. Source: qemu(1), "-drive ... use double commas".
std::string Escaped(const std::string& value) {
  std::string escaped;
  for (const char c : value) {
    escaped.append(c == ',' ? 2 : 1, c);
  }
  return escaped;
}

class Builder {
 public:
  Builder(const VmConfig& config, const QemuOptions& options)
      : config_(config), options_(options) {}

  Result<SpawnRequest> Build(UniqueFd listener) {
    AddMachine();
    AddControl(std::move(listener));
    if (config_.kernel.empty()) {
      return Fail(Code::kInvalidArgument, "VM: no kernel");
    }
    Add("-kernel", config_.kernel);
    Add("-initrd", config_.initrd);
    Add("-append", config_.cmdline);
    AddOwnDevices();
    GANTRY_CHECK_OK(AddDevices());
    if (config_.from) {
      Add("-incoming", "defer");
    }
    GANTRY_TRY(const UniqueFd program, OpenVmm(Vmm::kQemu, options_.program, "qemu-system-x86"));
    return child_.Finish(options_.program, program);
  }

 private:
  void Add(std::string option, std::string value) {
    child_.Add(std::move(option));
    child_.Add(std::move(value));
  }

  void AddJson(std::string option, const Json& value) { Add(std::move(option), value.dump()); }

  void AddMachine() {
    const bool microvm = options_.machine == QemuMachine::kMicrovm;
    const bool kvm = options_.accelerator == Accelerator::kKvm;
    Add("-name", Format("guest={},debug-threads=on", config_.id));
    // Under TCG a microvm measures its clock with the old timer, which is left out otherwise.
    Add("-machine", microvm ? Format("microvm,acpi=on,pcie=on,rtc=on,pit={0},pic={0},"
                                     "memory-backend=mem",
                                     kvm ? "off" : "on")
                            : std::string("q35,sata=off,usb=off,smbus=off,vmport=off,"
                                          "memory-backend=mem"));
    Add("-accel", kvm ? "kvm" : "tcg,thread=multi");
    Add("-cpu", kvm ? "host" : "max");
    Add("-smp", Format("cpus={},maxcpus={}", config_.cpus.boot,
                       std::max(config_.cpus.boot, config_.cpus.max)));
    const Memory& memory = config_.memory;
    Add("-m", memory.max_bytes > memory.bytes
                  ? Format("size={}M,maxmem={}M", memory.bytes / kMiB, memory.max_bytes / kMiB)
                  : Format("size={}M", memory.bytes / kMiB));
    AddJson("-object", MemoryObject(memory, "mem", memory.bytes));
    child_.Add({"-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-S"});
    Add("-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny");
  }

  void AddControl(UniqueFd listener) {
    Add("-chardev",
        Format("socket,id=control,fd={},server=on,wait=off", child_.Pass(std::move(listener))));
    Add("-mon", "chardev=control,mode=control");
    Add("-chardev", Format("file,id=console,path={},append=on", Escaped(config_.console)));
    Add("-serial", "chardev:console");
  }

  void AddOwnDevices() {
    for (uint32_t port = 0; port < config_.hotplug_ports; ++port) {
      AddJson("-device", Port(port));
    }
    AddJson("-object", {{"qom-type", "rng-random"}, {"id", "rng"}, {"filename", "/dev/urandom"}});
    AddJson("-device", {{"driver", "virtio-rng-pci"}, {"rng", "rng"}});
    if (config_.balloon) {
      AddJson("-device", {{"driver", "virtio-balloon-pci"},
                          {"id", "balloon"},
                          {"deflate-on-oom", true},
                          {"free-page-reporting", true}});
    }
    const Memory& memory = config_.memory;
    if (memory.max_bytes > memory.bytes) {
      // What is added lies in a file of its own: the one at boot is a template's.
      const Memory more = {.backing = memory.backing == MemoryBacking::kPrivate
                                          ? MemoryBacking::kPrivate
                                          : MemoryBacking::kShared,
                           .file = {}};
      AddJson("-object", MemoryObject(more, "more", memory.max_bytes - memory.bytes));
      AddJson("-device", {{"driver", "virtio-mem-pci"},
                          {"id", "more-memory"},
                          {"memdev", "more"},
                          {"block-size", kMemoryBlock},
                          {"requested-size", 0}});
    }
  }

  Status AddDevices() {
    const Place boot;
    for (const Disk& disk : config_.disks) {
      GANTRY_TRY(const DiskSource source, PassDisk(disk));
      AddJson("-blockdev", DiskNode(disk, source));
      AddJson("-device", DiskDevice(disk, boot));
    }
    for (const Nic& nic : config_.nics) {
      if (!nic.tap) {
        return Fail(Code::kInvalidArgument, "VM: NIC '{}' has no tap", nic.id);
      }
      GANTRY_TRY(UniqueFd tap, nic.tap.Duplicate());
      AddJson("-netdev", NicBackend(nic, Format("{}", child_.Pass(std::move(tap)))));
      AddJson("-device", NicDevice(nic, boot));
    }
    // Those of a VM that is restored come when its state is there.
    return config_.from ? Status() : AddVhostDevices();
  }

  /// Of a set of its own, which is numbered as the descriptor is.
  Result<DiskSource> PassDisk(const Disk& disk) {
    DiskSource source = SourceOf(disk);
    if (options_.opens_disks_for_it) {
      GANTRY_TRY(UniqueFd file, OpenDisk(disk));
      const int number = child_.Pass(std::move(file));
      Add("-add-fd",
          Format("fd={0},set={0},opaque={1}", number, BackendId(Kind::kDisk, disk.serial)));
      source.filename = Format("/dev/fdset/{}", number);
    }
    return source;
  }

  Status AddVhostDevices() {
    const Place boot;
    for (const FileSystem& one : config_.file_systems) {
      Add("-chardev", Format("socket,id={},path={}", BackendId(Kind::kFileSystem, one.tag),
                             Escaped(one.socket)));
      AddJson("-device", FileSystemDevice(one, boot));
    }
    return config_.vsock ? AddVsock(*config_.vsock) : Status();
  }

  Status AddVsock(const Vsock& vsock) {
    const Place boot;
    if (vsock.vhost) {
      GANTRY_TRY(UniqueFd vhost, vsock.vhost.Duplicate());
      AddJson("-device", VsockDevice(vsock, Format("{}", child_.Pass(std::move(vhost))), boot));
      return {};
    }
    Add("-chardev",
        Format("socket,id={},path={}", BackendId(Kind::kVsock, ""), Escaped(vsock.vhost_user)));
    AddJson("-device", VsockDevice(vsock, "", boot));
    return {};
  }

  const VmConfig& config_;
  const QemuOptions& options_;
  SpawnBuilder child_;
};

}  // namespace

Result<SpawnRequest> Arguments(const VmConfig& config, const QemuOptions& options,
                               UniqueFd listener) {
  return Builder(config, options).Build(std::move(listener));
}

}  // namespace gantry::vmm::qemu
