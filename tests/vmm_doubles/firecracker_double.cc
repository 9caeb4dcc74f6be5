// SPDX-License-Identifier: Apache-2.0
#include "tests/vmm_doubles/firecracker_double.h"

#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "tests/vmm_doubles/schema.h"

namespace gantry::test {
namespace {

using Json = nlohmann::json;
using enum FieldType;

const Schemas& FirecrackerSchemas() {
  static const Schemas all = {
      {"Machine",
       {{"vcpu_count", kInteger, true, "", 1},
        {"mem_size_mib", kInteger, true, "", 1},
        {"smt", kBoolean},
        {"track_dirty_pages", kBoolean},
        {"huge_pages", kEnum, false, "None|Transparent|2M"}}},
      {"BootSource",
       {{"kernel_image_path", kString, true}, {"initrd_path", kString}, {"boot_args", kString}}},
      {"Drive",
       {{"drive_id", kString, true},
        {"is_root_device", kBoolean, true},
        {"path_on_host", kString},
        {"is_read_only", kBoolean},
        {"partuuid", kString},
        {"cache_type", kEnum, false, "Unsafe|Writeback"},
        {"io_engine", kEnum, false, "Sync|Async"}}},
      {"Nic",
       {{"iface_id", kString, true},
        {"host_dev_name", kString, true},
        {"guest_mac", kString},
        {"mtu", kInteger, false, "", 68}}},
      {"Vsock", {{"guest_cid", kInteger, true, "", 3}, {"uds_path", kString, true}}},
      {"Entropy", {}},
      {"Serial", {{"serial_out_path", kString}}},
      {"Balloon",
       {{"amount_mib", kInteger, true},
        {"deflate_on_oom", kBoolean, true},
        {"stats_polling_interval_s", kInteger},
        {"free_page_hinting", kBoolean},
        {"free_page_reporting", kBoolean}}},
      {"BalloonUpdate", {{"amount_mib", kInteger, true}}},
      {"MemoryHotplug",
       {{"total_size_mib", kInteger, true},
        {"slot_size_mib", kInteger, false, "", 128},
        {"block_size_mib", kInteger, false, "", 2}}},
      {"MemorySize", {{"requested_size_mib", kInteger, true}}},
      {"Action", {{"action_type", kEnum, true, "FlushMetrics|InstanceStart|SendCtrlAltDel"}}},
      {"Vm", {{"state", kEnum, true, "Paused|Resumed"}}},
      {"SnapshotCreate",
       {{"snapshot_path", kString, true},
        {"mem_file_path", kString, true},
        {"snapshot_type", kEnum, false, "Full|Diff"}}},
      {"SnapshotLoad",
       {{"snapshot_path", kString, true},
        {"mem_backend", kObject, true, "MemoryBackend"},
        {"resume_vm", kBoolean},
        {"track_dirty_pages", kBoolean},
        {"network_overrides", kList, false, "NetworkOverride"},
        {"vsock_override", kObject, false, "VsockOverride"},
        {"clock_realtime", kBoolean}}},
      {"MemoryBackend",
       {{"backend_type", kEnum, true, "File|Uffd"}, {"backend_path", kString, true}}},
      {"NetworkOverride", {{"iface_id", kString, true}, {"host_dev_name", kString, true}}},
      {"VsockOverride", {{"uds_path", kString, true}}}};
  return all;
}

enum class When { kBefore, kAfter, kBeforeOrPci };

struct Rule {
  std::string_view kind;
  When when;
};

/// By method and target; of those with an id, without it.
const std::map<std::string_view, Rule>& Rules() {
  static const std::map<std::string_view, Rule> all = {
      {"PUT /machine-config", {"Machine", When::kBefore}},
      {"PUT /boot-source", {"BootSource", When::kBefore}},
      {"PUT /drives/", {"Drive", When::kBeforeOrPci}},
      {"PUT /network-interfaces/", {"Nic", When::kBeforeOrPci}},
      {"PUT /vsock", {"Vsock", When::kBefore}},
      {"PUT /entropy", {"Entropy", When::kBefore}},
      {"PUT /serial", {"Serial", When::kBefore}},
      {"PUT /balloon", {"Balloon", When::kBefore}},
      {"PUT /hotplug/memory", {"MemoryHotplug", When::kBefore}},
      {"PUT /snapshot/load", {"SnapshotLoad", When::kBefore}},
      {"PUT /snapshot/create", {"SnapshotCreate", When::kAfter}},
      {"PATCH /vm", {"Vm", When::kAfter}},
      {"PATCH /balloon", {"BalloonUpdate", When::kAfter}},
      {"PATCH /hotplug/memory", {"MemorySize", When::kAfter}}};
  return all;
}

RestReply Fault(const std::string& why) { return {400, Json{{"fault_message", why}}.dump()}; }

/// "/drives/" of "/drives/d1": those with an id.
std::string WithoutId(const std::string& target) {
  for (const std::string_view folder : {"/drives/", "/network-interfaces/"}) {
    if (target.starts_with(folder)) {
      return std::string(folder);
    }
  }
  return target;
}

}  // namespace

FirecrackerDouble::FirecrackerDouble(const std::string& path, bool pci, Behind behind)
    : pci_(pci),
      behind_(std::move(behind)),
      server_(path, [this](RestCall& call) { return Handle(call); }) {}

std::set<std::string> FirecrackerDouble::Devices() const {
  const std::lock_guard lock(mutex_);
  return told_;
}

std::string FirecrackerDouble::State() const {
  const std::lock_guard lock(mutex_);
  return state_;
}

RestReply FirecrackerDouble::Handle(RestCall& call) {
  const std::lock_guard lock(mutex_);
  const Json body = Json::parse(call.body, nullptr, false);
  const auto before = std::tuple(state_, told_, machine_, balloon_, plugged_);
  RestReply reply = Take(call, body);
  constexpr int kRefused = 300;
  if (!behind_ || call.method == "GET" || reply.status >= kRefused) {
    return reply;
  }
  const std::string why = behind_(call.method + " " + call.target, body, call.fds);
  if (why.empty()) {
    return reply;
  }
  std::tie(state_, told_, machine_, balloon_, plugged_) = before;
  return Fault(why);
}

RestReply FirecrackerDouble::Take(const RestCall& call, const Json& body) {
  constexpr size_t kMaxBody = 51'200;
  if (call.body.size() > kMaxBody || !call.fds.empty()) {
    return Fault("a body that is too long, or descriptors");
  }
  if (call.method == "GET") {
    return Get(call.target);
  }
  if (call.method == "DELETE") {
    return Delete(call.target);
  }
  if (call.method == "PUT" && call.target == "/actions") {
    const std::string wrong = WhatIsWrong(FirecrackerSchemas(), "Action", body);
    return wrong.empty() ? Act(body["action_type"]) : Fault(wrong);
  }
  const auto rule = Rules().find(call.method + " " + WithoutId(call.target));
  if (rule == Rules().end()) {
    return Fault("Invalid request method and/or path: " + call.method + " " + call.target);
  }
  if (const std::string wrong = WhatIsWrong(FirecrackerSchemas(), rule->second.kind, body);
      !wrong.empty()) {
    return Fault(wrong);
  }
  const bool started = state_ != "Not started";
  const When when = rule->second.when;
  if (started && (when == When::kBefore || (when == When::kBeforeOrPci && !pci_))) {
    return Fault("The requested operation is not supported after starting the microVM.");
  }
  if (!started && when == When::kAfter) {
    return Fault("The requested operation is not supported before starting the microVM.");
  }
  return call.method == "PUT" ? Put(call.target, body) : Patch(call.target, body);
}

RestReply FirecrackerDouble::Get(const std::string& target) {
  if (target == "/version") {
    return {200, R"({"firecracker_version":"1.17.0"})"};
  }
  if (target == "/") {
    return {
        200,
        Json{
            {"app_name", "Firecracker"}, {"id", "vm"}, {"state", state_}, {"vmm_version", "1.17.0"}}
            .dump()};
  }
  if (target == "/machine-config") {
    return {200, machine_.dump()};
  }
  if (target == "/vm/config") {
    Json config = {{"machine-config", machine_}, {"drives", Json::array()}};
    for (const std::string& one : told_) {
      if (one.starts_with("/drives/")) {
        config["drives"].push_back({{"drive_id", one.substr(std::size("/drives"))}});
      }
    }
    return {200, config.dump()};
  }
  if (target == "/balloon" && told_.contains(target)) {
    return {200, Json{{"amount_mib", balloon_}, {"deflate_on_oom", true}}.dump()};
  }
  if (target == "/hotplug/memory" && told_.contains(target)) {
    return {200, Json{{"plugged_size_mib", plugged_}, {"requested_size_mib", plugged_}}.dump()};
  }
  return Fault("Invalid request method and/or path: GET " + target);
}

RestReply FirecrackerDouble::Act(const std::string& action) {
  const bool started = state_ != "Not started";
  if (action == "InstanceStart") {
    if (started || !told_.contains("/boot-source") || !told_.contains("/machine-config")) {
      return Fault("The microVM cannot be started.");
    }
    state_ = "Running";
    return {};
  }
  return started ? RestReply{} : Fault("not supported before starting the microVM");
}

RestReply FirecrackerDouble::Put(const std::string& target, const Json& body) {
  if (target == "/snapshot/load") {
    if (!told_.empty()) {
      return Fault(
          "Loading a microVM snapshot not allowed after configuring boot-specific "
          "resources.");
    }
    told_.insert("/snapshot/load");
    machine_ = {{"vcpu_count", 1}, {"mem_size_mib", 256}};
    state_ = body.value("resume_vm", false) ? "Running" : "Paused";
    return {};
  }
  if (target == "/snapshot/create") {
    return state_ == "Paused" ? RestReply{} : Fault("the microVM is not paused");
  }
  if (target == "/machine-config") {
    machine_ = body;
  }
  const std::string id = target.substr(target.find_last_of('/') + 1);
  for (const char* name : {"drive_id", "iface_id"}) {
    if (body.contains(name) && body[name] != id) {
      return Fault("The id from the path does not match the id from the body!");
    }
  }
  if (!told_.insert(target).second && state_ != "Not started") {
    return Fault("a device with that id exists already");
  }
  return {};
}

RestReply FirecrackerDouble::Patch(const std::string& target, const Json& body) {
  if (target == "/vm") {
    state_ = body["state"] == "Paused" ? "Paused" : "Running";
    return {};
  }
  if (!told_.contains(target)) {
    return Fault("there is no such device");
  }
  if (target == "/balloon") {
    balloon_ = body["amount_mib"];
  } else {
    plugged_ = body["requested_size_mib"];
  }
  return {};
}

RestReply FirecrackerDouble::Delete(const std::string& target) {
  if (!pci_ || state_ == "Not started") {
    return Fault("Invalid request method and/or path: DELETE " + target);
  }
  return told_.erase(target) == 0 ? Fault("there is no such device") : RestReply{};
}

}  // namespace gantry::test
