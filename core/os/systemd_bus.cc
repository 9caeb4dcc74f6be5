// SPDX-License-Identifier: Apache-2.0
#include "core/os/systemd_bus.h"

#include <atomic>

#include <gantry/format.h>
#include <gantry/toolkit/files/files.h>

#include "core/os/sd_bus.h"

namespace gantry::os {
namespace {

constexpr char kBooted[] = "/run/systemd/system";
/// What conflicts with the job that is asked for gives way.
constexpr char kReplace[] = "replace";

std::atomic<bool> is_there_for_test = false;

/// Builds a message; after an error nothing more is done.
class Builder {
 public:
  Builder(const SdBusLibrary& library, sd_bus_message* message)
      : library_(library), message_(message) {}

  int status() const { return status_; }

  template <class... Values>
  Builder& Put(const char* types, Values... values) {
    return Do([&] { return library_.sd_bus_message_append(message_, types, values...); });
  }

  Builder& Open(char type, const char* content) {
    return Do([&] { return library_.sd_bus_message_open_container(message_, type, content); });
  }

  Builder& Close() {
    return Do([&] { return library_.sd_bus_message_close_container(message_); });
  }

  template <class T>
  Builder& PutArray(char type, const char* types, const std::vector<T>& values) {
    return Open('v', types)
        .Do([&] {
          return library_.sd_bus_message_append_array(message_, type, values.data(),
                                                      values.size() * sizeof(T));
        })
        .Close();
  }

  // The kinds of a property's value, as variants.
  void PutValue(uint64_t number) { Put("v", "t", number); }

  void PutValue(bool yes) { Put("v", "b", static_cast<int>(yes)); }

  void PutValue(const std::string& text) { Put("v", "s", text.c_str()); }

  void PutValue(const ByteMask& bytes) { PutArray('y', "ay", bytes); }

  void PutValue(const UnitPids& pids) { PutArray('u', "au", pids); }

  void PutValue(const DeviceList& devices) {
    Open('v', "a(ss)").Open('a', "(ss)");
    for (const auto& [device, rights] : devices) {
      Put("(ss)", device.c_str(), rights.c_str());
    }
    Close().Close();
  }

  /// `a(sv)`.
  Builder& Put(const std::vector<UnitProperty>& properties) {
    Open('a', "(sv)");
    for (const UnitProperty& property : properties) {
      Open('r', "sv").Put("s", property.name.c_str());
      std::visit([this](const auto& value) { PutValue(value); }, property.value);
      Close();
    }
    return Close();
  }

 private:
  template <class F>
  Builder& Do(F append) {
    if (status_ >= 0) {
      status_ = append();
    }
    return *this;
  }

  const SdBusLibrary& library_;
  sd_bus_message* message_;
  int status_ = 0;
};

/// Calls `method` of the manager with what `build` puts into the message.
template <class F>
Result<SdBusMessage> Ask(SystemdConnection& systemd, const char* method, std::string_view what,
                         F build) {
  GANTRY_TRY(const SdBusMessage message, systemd.Message(method));
  Builder builder(systemd.library(), message.get());
  build(builder);
  if (builder.status() < 0) {
    return NotBuilt(builder.status());
  }
  return systemd.Call(message.get(), what);
}

}  // namespace

bool HasSystemd() { return is_there_for_test || Exists(kBooted); }

Result<std::string> ControlGroupOf(const std::string& scope, Deadline by) {
  const std::string what = Format("find scope '{}'", scope);
  GANTRY_TRY(SystemdConnection systemd, SystemdConnection::Open(by));
  GANTRY_TRY(const SdBusMessage answer,
             Ask(systemd, "GetUnit", what, [&](Builder& out) { out.Put("s", scope.c_str()); }));
  const char* path = nullptr;
  if (systemd.library().sd_bus_message_read(answer.get(), "o", &path) < 0) {
    return Fail(Code::kUnavailable, "{}: systemd's answer is no path of an object", what);
  }
  return systemd.ScopeProperty(path, "ControlGroup", what);
}

Status SetUnitProperties(const std::string& unit, const std::vector<UnitProperty>& properties,
                         Deadline by) {
  constexpr int kRuntime = 1;
  GANTRY_TRY(SystemdConnection systemd, SystemdConnection::Open(by));
  const auto answer =
      Ask(systemd, "SetUnitProperties", Format("set properties of '{}'", unit),
          [&](Builder& out) { out.Put("sb", unit.c_str(), kRuntime).Put(properties); });
  return answer ? Status() : std::unexpected(answer.error());
}

Status StartTransientUnit(const std::string& unit, const std::vector<UnitProperty>& properties,
                          Deadline by) {
  const std::string what = Format("start '{}'", unit);
  GANTRY_TRY(SystemdConnection systemd, SystemdConnection::Open(by));
  GANTRY_CHECK_OK(systemd.WatchJobs(unit));
  GANTRY_TRY(const SdBusMessage answer, Ask(systemd, "StartTransientUnit", what, [&](Builder& out) {
               // Without units that come with it.
               out.Put("ss", unit.c_str(), kReplace).Put(properties).Open('a', "(sa(sv))").Close();
             }));
  GANTRY_TRY(const std::string result, systemd.AwaitJob(answer.get(), what));
  if (result != "done") {
    return Fail(Code::kFailedPrecondition, "{}: systemd says '{}'; see journalctl -u '{}'", what,
                result, unit);
  }
  return {};
}

Status StopUnit(const std::string& unit, Deadline by) {
  const std::string what = Format("stop '{}'", unit);
  const auto gone = [](const Error& error) { return error.code == Code::kNotFound; };
  GANTRY_TRY(SystemdConnection systemd, SystemdConnection::Open(by));
  GANTRY_CHECK_OK(systemd.WatchJobs(unit));
  const auto stopping =
      Ask(systemd, "StopUnit", what, [&](Builder& out) { out.Put("ss", unit.c_str(), kReplace); });
  if (!stopping) {
    return gone(stopping.error()) ? Status() : std::unexpected(stopping.error());
  }
  // However it ends: it may be failed then, too.
  GANTRY_CHECK_OK(systemd.AwaitJob(stopping->get(), what));
  const auto forgotten =
      Ask(systemd, "ResetFailedUnit", what, [&](Builder& out) { out.Put("s", unit.c_str()); });
  return forgotten || gone(forgotten.error()) ? Status() : std::unexpected(forgotten.error());
}

SystemdForTest::SystemdForTest() { is_there_for_test = true; }

SystemdForTest::~SystemdForTest() { is_there_for_test = false; }

}  // namespace gantry::os
