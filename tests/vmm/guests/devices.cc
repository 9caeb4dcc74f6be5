// SPDX-License-Identifier: Apache-2.0
//
// A guest that says on its console what it has and what comes and goes, a line each, as the kernel
// tells of devices. How it ends is the kernel's command line's to say:
//
//     gantry.end=panic | off | reset       as soon as it has loaded its modules
#include "plugins/vmm/guest/devices.h"

#include <dirent.h>
#include <sys/reboot.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <set>
#include <string>

#include "plugins/vmm/guest/first.h"
#include "plugins/vmm/guest/modules.h"

namespace gantry::vmm {
namespace {

void Say(const std::string& line) {
  const std::string whole = "gantry guest: " + line + "\n";
  [[maybe_unused]] const ssize_t written = write(STDOUT_FILENO, whole.data(), whole.size());
}

void Check(const Status& done) {
  if (!done) {
    Say(done.error().message);
  }
}

std::string FirstWordOf(const std::string& path) {
  std::string word;
  std::ifstream(path) >> word;
  return word;
}

void Write(const std::string& path, const char* text) { std::ofstream(path) << text; }

/// What is said of each entry of a folder of /sys.
template <class Say>
std::set<std::string> Found(const char* folder, Say say) {
  std::set<std::string> found;
  DIR* const entries = opendir(folder);
  if (entries == nullptr) {
    return found;
  }
  while (const dirent* const entry = readdir(entries)) {
    if (entry->d_name[0] != '.') {
      found.insert(say(std::string(folder) + "/" + entry->d_name));
    }
  }
  closedir(entries);
  found.erase("");
  return found;
}

std::string DiskAt(const std::string& path) {
  const std::string serial = FirstWordOf(path + "/serial");
  return serial.empty() ? "" : "disk " + serial + " read-only " + FirstWordOf(path + "/ro");
}

std::string NicAt(const std::string& path) {
  const std::string address = FirstWordOf(path + "/address");
  return address == "00:00:00:00:00:00" ? ""
                                        : "nic " + address + " mtu " + FirstWordOf(path + "/mtu");
}

/// Takes a processor that is there into use.
std::string CpuAt(const std::string& path) {
  if (FirstWordOf(path + "/online") == "0") {
    Write(path + "/online", "1");
  }
  return "";
}

std::string Memory() {
  struct sysinfo info{};
  sysinfo(&info);
  return "memory " + std::to_string((info.totalram * info.mem_unit) >> 20) + " MiB";
}

std::set<std::string> LookAround() {
  Found("/sys/devices/system/cpu", CpuAt);
  std::set<std::string> all = Found("/sys/block", DiskAt);
  all.merge(Found("/sys/class/net", NicAt));
  all.insert("cpus " + std::to_string(get_nprocs()));
  all.insert(Memory());
  return all;
}

/// Returns where the guest is to panic.
bool EndsAsAsked() {
  std::string cmdline;
  std::getline(std::ifstream("/proc/cmdline") >> std::ws, cmdline);
  if (cmdline.contains("gantry.end=off")) {
    reboot(RB_POWER_OFF);
  }
  if (cmdline.contains("gantry.end=reset")) {
    reboot(RB_AUTOBOOT);
  }
  return cmdline.contains("gantry.end=panic");
}

/// What a device's parts are is told before the device itself is, so each look that a word of the
/// kernel's begins sees them all; and what goes is gone when the port that it was in is told of.
[[noreturn]] void Watch(guest::DeviceEvents& events) {
  std::set<std::string> known;
  for (bool first = true;; first = false) {
    std::set<std::string> now = LookAround();
    for (const std::string& one : now) {
      if (!known.contains(one)) {
        Say("has " + one);
      }
    }
    for (const std::string& one : known) {
      if (!now.contains(one)) {
        Say("lost " + one);
      }
    }
    known = std::move(now);
    if (first) {
      Say("ready");
    }
    events.Await(Deadline::max());
  }
}

int Main() {
  Check(guest::MountSystem());
  auto events = guest::DeviceEvents::Listen();
  if (!events) {
    Say(events.error().message);
    return 1;
  }
  Check(guest::LoadModules("/modules/early"));
  Check(guest::LoadModules("/modules/late"));
  Write("/sys/devices/system/memory/auto_online_blocks", "online_movable");
  if (EndsAsAsked()) {
    return 1;
  }
  Watch(*events);
}

}  // namespace
}  // namespace gantry::vmm

int main() { return gantry::vmm::Main(); }
