// SPDX-License-Identifier: Apache-2.0
//
// What systemd's manager is asked for over D-Bus (sd_bus.h).
// Source: org.freedesktop.systemd1(5).
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gantry/deadline.h>
#include <gantry/error.h>

namespace gantry::os {

/// What `UnitProperty::value` may be besides a number.
using ByteMask = std::vector<uint8_t>;
using UnitPids = std::vector<uint32_t>;
using DeviceList = std::vector<std::pair<std::string, std::string>>;

/// One of a unit's properties: a number, a set of processors or memory nodes as the bytes of a bit
/// mask, the lowest first; yes or no, a text, processes, or devices with their rights ("rwm").
struct UnitProperty {
  std::string name;
  std::variant<uint64_t, ByteMask, bool, std::string, UnitPids, DeviceList> value;

  bool operator==(const UnitProperty&) const = default;
};

/// How long a question may take that has no limit of its own.
inline constexpr std::chrono::seconds kSystemdAnswers{5};

inline Deadline SystemdAnswersBy() { return std::chrono::steady_clock::now() + kSystemdAnswers; }

/// Whether systemd is the node's init. Source: sd_booted(3).
bool HasSystemd();

/// The unit's cgroup as systemd has it, absolute. Empty: it has none of its own.
/// Errors: kNotFound: there is no such unit; kUnavailable: systemd cannot be asked, or does not
/// answer. Blocks: until `by`. Thread: workers.
Result<std::string> ControlGroupOf(const std::string& scope, Deadline by = SystemdAnswersBy());

/// Sets them until the next boot; systemd applies them now and whenever it applies the
/// unit's settings again.
/// Errors: as above, and kInvalidArgument: systemd refuses one of them.
/// Blocks: until `by`. Thread: workers.
Status SetUnitProperties(const std::string& unit, const std::vector<UnitProperty>& properties,
                         Deadline by = SystemdAnswersBy());

/// Starts a unit of that name that has nothing but `properties`, and waits until it has started.
/// Errors: as above; kAlreadyExists: there is a unit of that name; kFailedPrecondition: it has
/// not come up. Blocks: until `by`. Thread: workers.
Status StartTransientUnit(const std::string& unit, const std::vector<UnitProperty>& properties,
                          Deadline by);

/// Ends it, waits until it has ended, and has systemd forget how. Absent: fine.
/// Errors: kUnavailable. Blocks: until `by`. Thread: workers.
Status StopUnit(const std::string& unit, Deadline by);

/// Tests: systemd is there, whatever the node has, as long as this lives; it is then asked at
/// $DBUS_SYSTEM_BUS_ADDRESS.
class SystemdForTest {
 public:
  SystemdForTest();
  SystemdForTest(const SystemdForTest&) = delete;
  SystemdForTest& operator=(const SystemdForTest&) = delete;
  ~SystemdForTest();
};

}  // namespace gantry::os
