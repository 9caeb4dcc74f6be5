// SPDX-License-Identifier: Apache-2.0
//
// The container of the tools has the guest's own processes in sight, every right there and a
// writable cgroup file system: so crun runs in it, and the agent can be looked at.
#include "tests/performance/vmm_lab.h"

#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <sstream>
#include <system_error>

#include <nlohmann/json.hpp>

#include <gantry/format.h>
#include <gantry/toolkit/descriptors/unix_socket.h>

#include "tests/harness/vmm_node.h"
#include "tests/performance/output.h"

namespace gantry::bench {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

/// All of linux/capability.h that crun needs in there, and the tools.
const std::vector<std::string>& Capabilities() {
  static const std::vector<std::string> all{
      "CAP_CHOWN",       "CAP_DAC_OVERRIDE",     "CAP_FOWNER",       "CAP_FSETID",  "CAP_KILL",
      "CAP_SETGID",      "CAP_SETUID",           "CAP_SETPCAP",      "CAP_NET_RAW", "CAP_NET_ADMIN",
      "CAP_SYS_CHROOT",  "CAP_SYS_ADMIN",        "CAP_SYS_RESOURCE", "CAP_MKNOD",   "CAP_SETFCAP",
      "CAP_AUDIT_WRITE", "CAP_NET_BIND_SERVICE", "CAP_SYS_PTRACE"};
  return all;
}

/// Root of the guest: with its first process in sight, and all that a runtime has to do.
Result<std::string> ForTools(const std::string& spec, const std::string& pod, const Json& mounts) {
  GANTRY_TRY(const std::string text, InPod(pod, false)(spec));
  Json json = Json::parse(text);
  for (const char* set : {"bounding", "effective", "permitted", "inheritable"}) {
    json["process"]["capabilities"][set] = Capabilities();
  }
  json["process"]["noNewPrivileges"] = false;
  Json& linux_part = json["linux"];
  linux_part.erase("maskedPaths");
  linux_part.erase("readonlyPaths");
  linux_part["resources"] = {{"devices", {{{"allow", true}, {"access", "rwm"}}}}};
  Json kept = Json::array();
  for (const Json& one : linux_part["namespaces"]) {
    if (one["type"] != "pid" && one["type"] != "cgroup") {
      kept.push_back(one);
    }
  }
  linux_part["namespaces"] = kept;
  json["mounts"].push_back({{"destination", "/sys/fs/cgroup"},
                            {"type", "cgroup"},
                            {"source", "cgroup"},
                            {"options", {"nosuid", "noexec", "nodev", "relatime", "rw"}}});
  for (const Json& one : mounts) {
    json["mounts"].push_back(one);
  }
  return json.dump();
}

}  // namespace

std::string WithoutVmm(const Lab& lab) {
  const std::string& image = lab.settings().vmm_image;
  for (const std::string& file :
       {lab.programs() + "/plugins/libgantry_vmm.so", image + "/kernel", image + "/initrd",
        std::string("/usr/bin/qemu-system-x86_64"), std::string("/usr/libexec/virtiofsd")}) {
    std::error_code error;
    if (!fs::exists(file, error)) {
      return "there is no " + file + ": ./run setup vmm, ./run test vmm";
    }
  }
  return "";
}

Side VmmSide(const Lab& lab) {
  Side side = lab.Gantry("vmm");
  side.oci.clear();
  // A guest that is translated, on a busy machine.
  side.limit = std::chrono::minutes(3);
  return side;
}

Instance::SpecChange InPod(const std::string& pod, bool is_sandbox) {
  return [=](const std::string& spec) -> Result<std::string> {
    Json json = Json::parse(spec);
    json["annotations"]["io.kubernetes.cri.container-type"] = is_sandbox ? "sandbox" : "container";
    json["annotations"]["io.kubernetes.cri.sandbox-id"] = pod;
    return json.dump();
  };
}

VmmGuest::VmmGuest(Lab& lab) : lab_(lab), sandbox_(lab, VmmSide(lab)), tools_(lab, VmmSide(lab)) {}

Result<std::unique_ptr<VmmGuest>> VmmGuest::Boot(Lab& lab, const std::string& mounts) {
  const Json more = Json::parse(mounts.empty() ? "[]" : mounts, nullptr, false);
  std::unique_ptr<VmmGuest> guest(new VmmGuest(lab));
  const std::vector<std::string> sleep{"sleep", "100000"};
  GANTRY_CHECK_OK(guest->sandbox_.Run(sleep, InPod(guest->pod(), true)));
  GANTRY_CHECK_OK(guest->tools_.Run(
      sleep, [&](const std::string& spec) { return ForTools(spec, guest->pod(), more); }));
  return guest;
}

Result<std::unique_ptr<VmmGuest::Process>> VmmGuest::Begin(const std::vector<std::string>& argv) {
  GANTRY_TRY(const std::string spec, ProcessSpec(lab_.default_spec(), argv));
  Json json = Json::parse(spec);
  for (const char* set : {"bounding", "effective", "permitted", "inheritable"}) {
    json["capabilities"][set] = Capabilities();
  }
  json["noNewPrivileges"] = false;
  auto process = std::make_unique<Process>();
  process->id = "t" + std::to_string(count_++);
  GANTRY_CHECK_OK(process->stdio.Make(lab_.bundles() + "/io-" + tools_.id() + process->id));
  Phases calls;
  GANTRY_CHECK_OK(tools_.BeginExec(process->id, json.dump(), process->stdio, false, calls));
  return process;
}

Status VmmGuest::Finish(const Process& process) {
  Phases calls;
  return tools_.FinishExec(process.id, calls);
}

Result<std::string> VmmGuest::Say(const std::vector<std::string>& argv) {
  GANTRY_TRY(const auto process, Begin(argv));
  auto line = ReadLine(process->stdio, argv.size() > 1 ? argv[1] : argv[0]);
  GANTRY_CHECK_OK(Finish(*process));
  return line;
}

Result<std::vector<double>> VmmGuest::SayNumbers(const std::vector<std::string>& argv) {
  GANTRY_TRY(const std::string line, Say(argv));
  std::istringstream in(line);
  std::vector<double> numbers;
  for (double number = 0; in >> number;) {
    numbers.push_back(number);
  }
  if (numbers.empty()) {
    return Fail(Code::kInternal, "read what '{}' says: no number in '{}'", argv.back(), line);
  }
  return numbers;
}

Result<UniqueFd> VmmGuest::Listen(uint32_t port) const {
  std::error_code error;
  for (const fs::directory_entry& one :
       fs::directory_iterator(e2e::VmmFolder(lab_.settings()), error)) {
    const std::string hosts = one.path().string() + "/vm/s/v";
    if (!fs::exists(hosts, error)) {
      continue;
    }
    const std::string path = Format("{}_{}", hosts, port);
    GANTRY_TRY(UniqueFd listener, ListenUnix(path));
    // Its vsock device is a user of its own.
    if (chmod(path.c_str(), 0666) != 0) {
      return FailErrno(errno, "let others connect to '{}'", path);
    }
    return listener;
  }
  return Fail(Code::kNotFound, "listen for a guest: there is no machine in '{}'",
              e2e::VmmFolder(lab_.settings()));
}

Status VmmGuest::End() {
  GANTRY_CHECK_OK(tools_.End());
  return sandbox_.End();
}

}  // namespace gantry::bench
