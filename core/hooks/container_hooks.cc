// SPDX-License-Identifier: Apache-2.0
//
// When which hook of a container runs, and what is known of it after a restart. A poststop hook
// is counted in a file after it has ended, and before its process is let go of: the next engine
// finds a hook that still runs by its tag and waits for it, or goes on behind those that were
// counted. So is a poststart hook that has ended well: the Start that was cut short comes again.
// Hooks before the start have no such count: with a new engine the creation is undone, and what is
// left of a hook is killed.
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
constexpr mode_t kCountFileMode = 0600;
constexpr size_t kMaxNumber = 16;

/// Of its file, and in front of the number in its tags.
constexpr const char* NameOf(bool start) { return start ? "poststart" : "poststop"; }

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

Status ContainerHooks::Begin() {
  GANTRY_CHECK_OK(RemoveFile(CountPath(Counted::kStop)));
  const std::string path = CountPath(Counted::kStart);
  return hooks_.poststart.empty() ? RemoveFile(path) : WriteFile(path, "0", kCountFileMode);
}

InsideHooks ContainerHooks::inside() const {
  return {.create_container = !hooks_.create_container.empty(),
          .start_container = !hooks_.start_container.empty()};
}

std::string ContainerHooks::TagOf(std::string_view what) const {
  return Format("{}/{:016x}", what, Fingerprint("", Fingerprint(id_.str())));
}

std::string ContainerHooks::TagOf(Counted which, size_t index) const {
  return TagOf(Format("{}{}", NameOf(which == Counted::kStart), index));
}

std::string ContainerHooks::CountPath(Counted which) const {
  return Format("{}/{}", bundle_, NameOf(which == Counted::kStart));
}

std::optional<size_t> ContainerHooks::CountOf(Counted which) const {
  const auto text = ReadFile(CountPath(which), kMaxNumber);
  return text ? std::optional(static_cast<size_t>(ParseNumber(*text).value_or(0))) : std::nullopt;
}

void ContainerHooks::SetCount(Counted which, size_t count) const {
  IgnoreError(WriteFile(CountPath(which), std::to_string(count), kCountFileMode),
              "it is of use only if the engine is killed now");
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

/// One that an engine before this one has started is waited for. It is found as long as nobody
/// has taken note of its end, which is after it has been counted.
Status ContainerHooks::Run(const Hook& hook, const std::string& state, const std::string& tag,
                           std::shared_ptr<HostProcess> left) const {
  if (IsForRuncAlone(hook)) {
    context_.Log(LogLevel::kInfo, Format("container '{}': hook '{}' is for runc, and left out",
                                         id_.str(), hook.path));
    return {};
  }
  const HookPlace place{.context = context_, .bundle = bundle_, .tag = tag};
  if (!left) {
    GANTRY_TRY(left, StartHook(hook, state, place));
  }
  return AwaitHook(hook, *left, place);
}

Status ContainerHooks::Create(HostPid pid) {
  for (const auto* hooks : {&hooks_.prestart, &hooks_.create_runtime}) {
    for (const Hook& hook : *hooks) {
      GANTRY_CHECK_OK(Run(hook, State("creating", pid), TagOf(kHookTag), nullptr));
    }
  }
  return {};
}

Status ContainerHooks::Start(HostPid pid) {
  for (size_t i = CountOf(Counted::kStart).value_or(0); i < hooks_.poststart.size(); ++i) {
    GANTRY_CHECK_OK(Run(hooks_.poststart[i], State("running", pid), TagOf(Counted::kStart, i),
                        std::exchange(left_start_, nullptr)));
    SetCount(Counted::kStart, i + 1);
  }
  return {};
}

bool ContainerHooks::IsStarting() const {
  return CountOf(Counted::kStart).value_or(hooks_.poststart.size()) < hooks_.poststart.size();
}

void ContainerHooks::Recover() {
  left_ = context_.FindSpawned(TagOf(kHookTag));
  left_start_ = context_.FindSpawned(TagOf(Counted::kStart, CountOf(Counted::kStart).value_or(0)));
  left_stop_ = context_.FindSpawned(TagOf(Counted::kStop, CountOf(Counted::kStop).value_or(0)));
}

void ContainerHooks::Delete() {
  for (auto* left : {&left_, &left_start_}) {
    if (const auto process = std::exchange(*left, nullptr)) {
      EndHook(*process);
      IgnoreError(RemoveHookLog(bundle_), "it goes with the bundle");
    }
  }
  for (size_t i = CountOf(Counted::kStop).value_or(0); i < hooks_.poststop.size(); ++i) {
    const Status ran = Run(hooks_.poststop[i], State("stopped", {}), TagOf(Counted::kStop, i),
                           std::exchange(left_stop_, nullptr));
    SetCount(Counted::kStop, i + 1);
    if (!ran) {
      context_.Log(LogLevel::kWarning,
                   Format("container '{}': {}", id_.str(), ran.error().message));
    }
  }
}

}  // namespace gantry::hooks
