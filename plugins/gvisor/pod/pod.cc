// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/pod/pod.h"

#include <signal.h>

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include <gantry/json.h>

namespace gantry::gvisor {
namespace {

using Json = nlohmann::json;

}  // namespace

std::string PodRecord::RootId(const SandboxId& sandbox) const {
  if (!root.empty()) {
    return root;
  }
  return own_id.empty() ? sandbox.str() : own_id;
}

std::string PodRecord::ToJson() const {
  const Json json = {{"root", root},
                     {"own_id", own_id},
                     {"pid", pid},
                     {"start_time", start_time},
                     {"by_create", by_create},
                     {"gofer_pid", gofer_pid},
                     {"gofer_start_time", gofer_start_time},
                     {"socket", socket},
                     {"bundle", place.bundle},
                     {"cgroups", place.cgroups},
                     {"flags", place.flags},
                     {"runsc", runsc},
                     {"asks_for_mounts", asks_for_mounts},
                     {"runs_hooks", runs_hooks},
                     {"conf", conf},
                     {"volumes", volumes},
                     {"host_network", host_network},
                     {"no_ipv6", no_ipv6},
                     {"netns", netns},
                     {"network", network},
                     {"started", state.started},
                     {"paused", state.wanted},
                     {"stopped", state.stopped},
                     {"oom_kills", oom_kills},
                     {"out_of_memory", out_of_memory}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<PodRecord> PodRecord::FromJson(const std::string& text) {
  const Json json = ReadJson(text, kSpecJson);
  PodRecord record;
  // The one seam to a library that throws: a record that was damaged.
  try {
    json.at("root").get_to(record.root);
    record.own_id = json.value("own_id", std::string());
    json.at("pid").get_to(record.pid);
    json.at("start_time").get_to(record.start_time);
    json.at("socket").get_to(record.socket);
    json.at("bundle").get_to(record.place.bundle);
    json.at("cgroups").get_to(record.place.cgroups);
    json.at("flags").get_to(record.place.flags);
    json.at("runsc").get_to(record.runsc);
    json.at("asks_for_mounts").get_to(record.asks_for_mounts);
    json.at("conf").get_to(record.conf);
    json.at("host_network").get_to(record.host_network);
    json.at("netns").get_to(record.netns);
    json.at("network").get_to(record.network);
    json.at("started").get_to(record.state.started);
    json.at("paused").get_to(record.state.wanted);
    json.at("stopped").get_to(record.state.stopped);
    // Not there where an engine before these has saved it.
    record.volumes = json.value("volumes", std::vector<Volume>());
    record.no_ipv6 = json.value("no_ipv6", false);
    record.runs_hooks = json.value("runs_hooks", false);
    record.oom_kills = json.value("oom_kills", uint64_t{0});
    record.by_create = json.value("by_create", false);
    record.gofer_pid = json.value("gofer_pid", 0);
    record.gofer_start_time = json.value("gofer_start_time", uint64_t{0});
    record.out_of_memory = json.value("out_of_memory", false);
  } catch (const Json::exception& e) {
    return Fail(Code::kDataLoss, "read the state of a sandbox: {}", e.what());
  }
  return record;
}

Deadline Pod::StepDeadline(int steps) const {
  return std::chrono::steady_clock::now() + std::min(context_.TimeLeft(), steps * options_.timeout);
}

PodRecord Pod::record() const {
  const MutexLock lock(mutex_);
  return record_;
}

Status Pod::Change(const std::function<void(PodRecord&)>& change) {
  std::string text;
  PodRecord before;
  {
    const MutexLock lock(mutex_);
    before = record_;
    change(record_);
    text = record_.ToJson();
  }
  Status saved = context_.Save(std::move(text));
  if (!saved) {
    const MutexLock lock(mutex_);
    record_ = std::move(before);
  }
  return saved;
}

void Pod::Load(PodRecord record) {
  const MutexLock lock(mutex_);
  record_ = std::move(record);
}

std::shared_ptr<Sentry> Pod::sentry() const {
  const MutexLock lock(mutex_);
  return sentry_;
}

std::shared_ptr<HostProcess> Pod::process() const {
  const MutexLock lock(mutex_);
  return process_;
}

void Pod::Have(std::shared_ptr<HostProcess> process, std::shared_ptr<Sentry> sentry) {
  const MutexLock lock(mutex_);
  process_ = std::move(process);
  sentry_ = std::move(sentry);
}

Sentry::Save Pod::StateSaver() {
  return [this](const SentryState& state) {
    return Change([&](PodRecord& record) { record.state = state; });
  };
}

std::shared_ptr<forward::PortForward> Pod::forward() const {
  const MutexLock lock(mutex_);
  return forward_;
}

void Pod::Have(std::shared_ptr<forward::PortForward> forward) {
  const MutexLock lock(mutex_);
  forward_ = std::move(forward);
}

bool Pod::IsAlive() const {
  const auto here = process();
  return here && !here->Ended();
}

Status Pod::KillIfItHangs(Error error, std::chrono::steady_clock::time_point asked) {
  // The call that it was asked in may have had a little less time.
  const auto its_time = options_.timeout * 9 / 10;
  const auto here = process();
  if (error.code != Code::kDeadlineExceeded || !here ||
      std::chrono::steady_clock::now() - asked < its_time) {
    return std::unexpected(std::move(error));
  }
  context_.Log(LogLevel::kError, Format("{}: it hangs, and is killed", error.message));
  return here->Ended() ? Status() : here->Signal(SIGKILL);
}

void Pod::ApplyOomScores() {
  if (const auto here = process()) {
    SetOomScore(context_, *here, oom_scores_.OfSandbox());
  }
}

Result<UniqueFd> Pod::Runsc() { return context_.Take(kRunscName); }

}  // namespace gantry::gvisor
