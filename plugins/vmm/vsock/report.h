// SPDX-License-Identifier: Apache-2.0
//
// What the program says on standard error: a line for each event, and no more than 100 of them, as
// a guest can make most of them happen.
#pragma once

#include <format>
#include <string_view>
#include <utility>

#include <gantry/format.h>

namespace gantry::vmm::vsock {

void ReportLine(std::string_view line);

template <class... Args>
void Report(std::format_string<Args...> format, Args&&... args) {
  ReportLine(Format(format, std::forward<Args>(args)...));
}

}  // namespace gantry::vmm::vsock
