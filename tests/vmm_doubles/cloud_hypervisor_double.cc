// SPDX-License-Identifier: Apache-2.0
#include "tests/vmm_doubles/cloud_hypervisor_double.h"

#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "tests/vmm_doubles/schema.h"

namespace gantry::test {
namespace {

using Json = nlohmann::json;
using enum FieldType;

const Schemas& CloudHypervisorSchemas() {
  static const Schemas all = {
      {"VmConfig",
       {{"payload", kObject, true, "Payload"},
        {"cpus", kObject, false, "Cpus"},
        {"memory", kObject, false, "Memory"},
        {"disks", kList, false, "Disk"},
        {"net", kList, false, "Net"},
        {"fs", kList, false, "Fs"},
        {"vsock", kObject, false, "Vsock"},
        {"rng", kObject, false, "Rng"},
        {"balloon", kObject, false, "Balloon"},
        {"serial", kObject, false, "Console"},
        {"console", kObject, false, "Console"},
        {"landlock_enable", kBoolean}}},
      {"Payload",
       {{"kernel", kString}, {"cmdline", kString}, {"initramfs", kString}, {"firmware", kString}}},
      {"Cpus", {{"boot_vcpus", kInteger, true, "", 1}, {"max_vcpus", kInteger, true, "", 1}}},
      {"Memory",
       {{"size", kInteger, true},
        {"shared", kBoolean},
        {"hotplug_size", kInteger},
        {"hotplug_method", kEnum, false, "Acpi|VirtioMem"},
        {"hugepages", kBoolean},
        {"prefault", kBoolean},
        {"thp", kBoolean}}},
      {"Disk",
       {{"path", kString},
        {"readonly", kBoolean},
        {"direct", kBoolean},
        {"num_queues", kInteger},
        {"queue_size", kInteger},
        {"id", kString},
        {"serial", kString},
        {"image_type", kEnum, false, "FlatVmdk|FixedVhd|Qcow2|Raw|Vhdx|Unknown"},
        {"sparse", kBoolean}}},
      {"Net",
       {{"tap", kString},
        {"mac", kString},
        {"mtu", kInteger},
        {"num_queues", kInteger},
        {"queue_size", kInteger},
        {"id", kString}}},
      {"Fs",
       {{"tag", kString, true},
        {"socket", kString, true},
        {"num_queues", kInteger, true},
        {"queue_size", kInteger, true},
        {"id", kString}}},
      {"Vsock", {{"cid", kInteger, true, "", 3}, {"socket", kString, true}, {"id", kString}}},
      {"Rng", {{"src", kString, true}}},
      {"Balloon",
       {{"size", kInteger, true}, {"deflate_on_oom", kBoolean}, {"free_page_reporting", kBoolean}}},
      {"Console",
       {{"mode", kEnum, true, "Off|Pty|Tty|File|Socket|Null"},
        {"file", kString},
        {"socket", kString}}},
      {"Resize",
       {{"desired_vcpus", kInteger, false, "", 1},
        {"desired_ram", kInteger},
        {"desired_balloon", kInteger}}},
      {"Remove", {{"id", kString, true}}},
      {"Snapshot", {{"destination_url", kString, true}}},
      {"Restore",
       {{"source_url", kString, true},
        {"prefault", kBoolean},
        {"memory_restore_mode", kEnum, false, "Copy|OnDemand|CopyOnWrite"},
        {"resume", kBoolean}}}};
  return all;
}

/// Of requests with a body; all others have none.
const std::map<std::string_view, std::string_view>& Bodies() {
  static const std::map<std::string_view, std::string_view> all = {
      {"vm.create", "VmConfig"},      {"vm.add-disk", "Disk"},
      {"vm.add-net", "Net"},          {"vm.add-fs", "Fs"},
      {"vm.add-vsock", "Vsock"},      {"vm.resize", "Resize"},
      {"vm.remove-device", "Remove"}, {"vm.snapshot", "Snapshot"},
      {"vm.restore", "Restore"}};
  return all;
}

struct Transition {
  std::string_view from;
  std::string_view to;
};

const std::map<std::string_view, Transition>& Transitions() {
  static const std::map<std::string_view, Transition> all = {
      {"vm.boot", {"Created", "Running"}},
      {"vm.pause", {"Running", "Paused"}},
      {"vm.resume", {"Paused", "Running"}},
      // What the guest makes of it is its own affair.
      {"vm.power-button", {"Running", "Running"}},
      {"vm.shutdown", {"Running", "Shutdown"}}};
  return all;
}

RestReply Refuse(int status, const std::string& why) {
  return {status, Json{"Error from API", why}.dump()};
}

}  // namespace

CloudHypervisorDouble::CloudHypervisorDouble(UniqueFd listener, Behind behind,
                                             std::function<void()> shut_down)
    : behind_(std::move(behind)),
      shut_down_(std::move(shut_down)),
      server_(std::move(listener), [this](RestCall& call) { return Handle(call); }) {}

std::set<std::string> CloudHypervisorDouble::Devices() const {
  const std::lock_guard lock(mutex_);
  return devices_;
}

std::string CloudHypervisorDouble::State() const {
  const std::lock_guard lock(mutex_);
  return state_;
}

size_t CloudHypervisorDouble::fds() const {
  const std::lock_guard lock(mutex_);
  return fds_;
}

RestReply CloudHypervisorDouble::Handle(RestCall& call) {
  constexpr std::string_view kRoot = "/api/v1/";
  constexpr size_t kMaxBody = size_t{4} << 20;
  const std::lock_guard lock(mutex_);
  if (!call.target.starts_with(kRoot)) {
    return Refuse(404, "no such endpoint");
  }
  const std::string action = call.target.substr(kRoot.size());
  if (call.method == "GET") {
    if (action == "vmm.ping") {
      return {200, R"({"build_version":"v53.0","version":"53.0.0","pid":1,"features":[]})"};
    }
    if (action != "vm.info") {
      return Refuse(400, "not to be got");
    }
    return state_.empty() ? Refuse(404, "VM is not created")
                          : RestReply{200, Json{{"config", config_},
                                                {"state", state_},
                                                {"memory_actual_size", config_["memory"]["size"]}}
                                               .dump()};
  }
  if (call.method != "PUT" || call.body.size() > kMaxBody) {
    return Refuse(400, "Bad Request");
  }
  const auto kind = Bodies().find(action);
  if ((kind != Bodies().end()) == call.body.empty()) {
    return Refuse(400, "Bad Request");
  }
  const Json body = call.body.empty() ? Json() : Json::parse(call.body, nullptr, false);
  if (kind != Bodies().end()) {
    if (const std::string wrong = WhatIsWrong(CloudHypervisorSchemas(), kind->second, body);
        !wrong.empty()) {
      return Refuse(400, wrong);
    }
  }
  fds_ += call.fds.size();
  return Take(action, body, call.fds);
}

RestReply CloudHypervisorDouble::Take(const std::string& action, const Json& body,
                                      std::vector<UniqueFd>& fds) {
  const auto before = std::tuple(state_, config_, devices_);
  RestReply reply = Act(action, body, fds.size());
  constexpr int kRefused = 300;
  if (!behind_ || reply.status >= kRefused) {
    return reply;
  }
  const std::string why = behind_(action, body, fds);
  if (why.empty()) {
    return reply;
  }
  std::tie(state_, config_, devices_) = before;
  return Refuse(500, why);
}

RestReply CloudHypervisorDouble::Act(const std::string& action, const Json& body, size_t fds) {
  if (action == "vmm.shutdown") {
    return {.then = shut_down_};
  }
  if (action == "vm.create") {
    return Create(body);
  }
  if (action == "vm.restore") {
    if (!state_.empty()) {
      return Refuse(404, "VM is already created");
    }
    config_ = {{"memory", {{"size", 0}}}, {"cpus", {{"boot_vcpus", 1}}}};
    state_ = "Paused";
    return {};
  }
  if (state_.empty()) {
    return Refuse(404, "VM is not created");
  }
  if (action == "vm.add-net" && (fds == 1) == body.contains("tap")) {
    return Refuse(400, "one tap, by name or by descriptor");
  }
  if (action.starts_with("vm.add-")) {
    return Add(body);
  }
  if (action == "vm.remove-device") {
    return devices_.erase(body["id"].get<std::string>()) == 0 ? Refuse(404, "unknown device")
                                                              : RestReply{};
  }
  if (action == "vm.resize") {
    return Resize(body);
  }
  if (action == "vm.snapshot") {
    return state_ == "Paused" ? RestReply{} : Refuse(500, "VM is not paused");
  }
  return ChangeState(action);
}

RestReply CloudHypervisorDouble::Create(const Json& body) {
  if (!state_.empty()) {
    return Refuse(500, "VM is already created");
  }
  if (body.contains("fs") && !body.value(Json::json_pointer("/memory/shared"), false)) {
    return Refuse(400, "vhost-user devices want shared memory");
  }
  config_ = body;
  state_ = "Created";
  for (const char* list : {"disks", "fs"}) {
    for (const Json& one : body.value(list, Json::array())) {
      devices_.insert(one["id"].get<std::string>());
    }
  }
  if (body.contains("vsock")) {
    devices_.insert(body["vsock"]["id"].get<std::string>());
  }
  return {};
}

RestReply CloudHypervisorDouble::Add(const Json& body) {
  const std::string id = body.value("id", "");
  if (!devices_.insert(id).second) {
    return Refuse(409, "identifier " + id + " is not unique");
  }
  return state_ == "Created" ? RestReply{}
                             : RestReply{200, Json{{"id", id}, {"bdf", "0000:00:06.0"}}.dump()};
}

RestReply CloudHypervisorDouble::Resize(const Json& body) {
  const auto cpus = body.find("desired_vcpus");
  if (cpus != body.end() && *cpus > config_["cpus"].value("max_vcpus", 1)) {
    return Refuse(400, "more CPUs than it may have");
  }
  if (cpus != body.end()) {
    config_["cpus"]["boot_vcpus"] = *cpus;
  }
  if (body.contains("desired_balloon")) {
    if (!config_.contains("balloon")) {
      return Refuse(500, "no balloon");
    }
    config_["balloon"]["size"] = body["desired_balloon"];
  }
  if (body.contains("desired_ram")) {
    config_["memory"]["size"] = body["desired_ram"];
  }
  return {};
}

RestReply CloudHypervisorDouble::ChangeState(const std::string& action) {
  const auto transition = Transitions().find(action);
  if (transition == Transitions().end()) {
    return Refuse(404, "no such endpoint");
  }
  if (state_ != transition->second.from) {
    return Refuse(405, "VM is " + state_);
  }
  state_ = transition->second.to;
  return {};
}

}  // namespace gantry::test
