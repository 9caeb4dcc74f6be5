// SPDX-License-Identifier: Apache-2.0
//
// When which hook of a container runs, and what is known of it after a restart. A poststop hook
// is counted in a file after it has ended, and before its process is let go of: the next engine
// finds a hook that still runs by its tag and waits for it, or goes on behind those that were
// counted. Hooks before the start have no such count: with a new engine the creation is undone,
// and what is left of a hook is killed.
#include "core/hooks/container_hooks.h"

#include <utility>

#include <nlohmann/json.hpp>

#include <gantry/fingerprint.h>
#include <gantry/format.h>
#include <gantry/json.h>
#include <gantry/number.h>
#include <gantry/toolkit/files/files.h>

namespace gantry::hooks {
namespace {

using Json = nlohmann::json;

constexpr const char* kHookTag = "hook";
constexpr mode_t kStoppedFileMode = 0600;
constexpr size_t kMaxNumber = 16;

std::string StopName(size_t index) { return Format("poststop{}", index); }

/// It puts the driver's files into a root file system as runc mounts it, which is not where
/// processes that are none of the host's look. Source: runsc 2026-09, runsc/specutils/hooks.go.
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

InsideHooks ContainerHooks::inside() const {
  return {.create_container = !hooks_.create_container.empty(),
          .start_container = !hooks_.start_container.empty()};
}

std::string ContainerHooks::TagOf(std::string_view what) const {
  return Format("{}/{:016x}", what, Fingerprint("", Fingerprint(id_.str())));
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
    IgnoreError(RemoveHookLog(bundle_), "it goes with the bundle");
  }
  for (size_t i = Stopped(); i < hooks_.poststop.size(); ++i) {
    if (const Status ran = RunStop(i); !ran) {
      context_.Log(LogLevel::kWarning,
                   Format("container '{}': {}", id_.str(), ran.error().message));
    }
  }
}

}  // namespace gantry::hooks
