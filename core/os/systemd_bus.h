// SPDX-License-Identifier: Apache-2.0
//
// What is asked of systemd's manager over D-Bus. libsystemd is loaded when it is asked
// for the first time, so that a node without systemd needs none.
// Source: org.freedesktop.systemd1(5), sd-bus(3).
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include <gantry/error.h>

namespace gantry::os {

/// One of a unit's properties: a number, or a set of processors or memory nodes as the
/// bytes of a bit mask, the lowest first.
struct UnitProperty {
  std::string name;
  std::variant<uint64_t, std::vector<uint8_t>> value;

  bool operator==(const UnitProperty&) const = default;
};

/// Whether systemd is the node's init. Source: sd_booted(3).
bool HasSystemd();

/// The unit's cgroup as systemd has it, absolute. Empty: it has none of its own.
/// Errors: kNotFound: there is no such unit; kUnavailable: systemd cannot be asked.
/// Blocks: up to some seconds. Thread: workers.
Result<std::string> ControlGroupOf(const std::string& scope);

/// Sets them until the next boot; systemd applies them now and whenever it applies the
/// unit's settings again.
/// Errors: as above, and kInvalidArgument: systemd refuses one of them.
/// Blocks: up to some seconds. Thread: workers.
Status SetUnitProperties(const std::string& unit, const std::vector<UnitProperty>& properties);

}  // namespace gantry::os
