// SPDX-License-Identifier: Apache-2.0
#include "plugins/gvisor/container_hooks.h"

#include <utility>

#include <nlohmann/json.hpp>

#include <gantry/format.h>
#include <gantry/json.h>
#include <gantry/number.h>
#include <gantry/toolkit/files/files.h>

#include "plugins/gvisor/launch/child.h"
#include "plugins/gvisor/sentry/durable_call.h"

namespace gantry::gvisor {
namespace {

using Json = nlohmann::json;

constexpr const char* kHookTag = "hook";
constexpr mode_t kStoppedFileMode = 0600;
constexpr size_t kMaxNumber = 16;

std::string StopName(size_t index) { return Format("poststop{}", index); }

/// It would put files of the driver into a root that the sentry does not look at.
/// Source: runsc/specutils/hooks.go.
bool IsForRuncAlone(const Hook& hook) {
  return hook.path.ends_with("/nvidia-container-runtime-hook");
}

}  // namespace

Status ContainerHooks::Read(const std::string& spec_json) {
  GANTRY_TRY(hooks_, ReadHooks(spec_json));
  const Json spec = ReadJson(spec_json, kSpecJson);
  const Json annotations = spec.is_object() ? spec.value("annotations", Json()) : Json();
  if (annotations.is_object()) {
    annotations_ = annotations.dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  return {};
}

Status ContainerHooks::Begin() { return RemoveFile(StoppedPath()); }

void ContainerHooks::SayWhatIsLeftOut(bool gofer) const {
  const auto say = [&](std::string_view kind, std::string_view why) {
    context_.Log(LogLevel::kWarning,
                 Format("container '{}': its hooks of {} are not run: {}", id_.str(), kind, why));
  };
  if (!hooks_.create_container.empty() && !gofer) {
    say("createContainer", "a gofer of runsc since 2026-05 does, if it serves the root");
  }
  if (!hooks_.start_container.empty()) {
    say("startContainer", "they would be programs of the container, which gVisor does not run");
  }
}

std::string ContainerHooks::TagOf(std::string_view what) const {
  return StoreName(what, id_.str());
}

std::string ContainerHooks::State(std::string_view status, HostPid pid) const {
  Json state = {{"ociVersion", "1.2.0"},
                {"id", id_.str()},
                {"status", status},
                {"bundle", bundle_},
                {"annotations", ReadJson(annotations_, kSpecJson)}};
  if (pid) {
    state["pid"] = pid.value;
  }
  return state.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Status ContainerHooks::Run(const Hook& hook, const std::string& state) const {
  if (IsForRuncAlone(hook)) {
    context_.Log(LogLevel::kInfo, Format("container '{}': hook '{}' is for runc, and left out",
                                         id_.str(), hook.path));
    return {};
  }
  const HookPlace place{.context = context_, .bundle = bundle_, .tag = TagOf(kHookTag)};
  GANTRY_TRY(const auto process, StartHook(hook, state, place));
  return AwaitHook(hook, *process, place);
}

Status ContainerHooks::Create(HostPid pid) {
  for (const auto* hooks : {&hooks_.prestart, &hooks_.create_runtime}) {
    for (const Hook& hook : *hooks) {
      GANTRY_CHECK_OK(Run(hook, State("creating", pid)));
    }
  }
  return {};
}

Status ContainerHooks::Start(HostPid pid) {
  for (const Hook& hook : hooks_.poststart) {
    GANTRY_CHECK_OK(Run(hook, State("running", pid)));
  }
  return {};
}

size_t ContainerHooks::Stopped() const {
  const auto text = ReadFile(StoppedPath(), kMaxNumber);
  return text ? static_cast<size_t>(ParseNumber(*text).value_or(0)) : 0;
}

void ContainerHooks::Recover() {
  left_ = context_.FindSpawned(TagOf(kHookTag));
  left_stop_ = context_.FindSpawned(TagOf(StopName(Stopped())));
}

/// One that an engine before this one has started is waited for. It is found as long as nobody
/// has taken note of its end, which is after it has been counted.
Status ContainerHooks::RunStop(size_t index) {
  const Hook& hook = hooks_.poststop[index];
  const HookPlace place{.context = context_, .bundle = bundle_, .tag = TagOf(StopName(index))};
  std::shared_ptr<HostProcess> process = std::exchange(left_stop_, nullptr);
  Status ran;
  if (!process) {
    auto started = StartHook(hook, State("stopped", {}), place);
    if (started) {
      process = *std::move(started);
    } else {
      ran = std::unexpected(std::move(started).error());
    }
  }
  if (process) {
    ran = AwaitHook(hook, *process, place);
  }
  IgnoreError(WriteFile(StoppedPath(), std::to_string(index + 1), kStoppedFileMode),
              "it is of use only if the engine is killed now");
  return ran;
}

void ContainerHooks::Delete() {
  if (const auto left = std::exchange(left_, nullptr)) {
    EndHook(*left);
    IgnoreError(RemoveLog(bundle_, kHookLog), "it goes with the bundle");
  }
  for (size_t i = Stopped(); i < hooks_.poststop.size(); ++i) {
    if (const Status ran = RunStop(i); !ran) {
      context_.Log(LogLevel::kWarning,
                   Format("container '{}': {}", id_.str(), ran.error().message));
    }
  }
}

}  // namespace gantry::gvisor
