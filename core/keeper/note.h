// SPDX-License-Identifier: Apache-2.0
//
// The keeper's log: one line on stderr (a file) for what an operator must know.
#pragma once

#include <string>
#include <string_view>

#include <gantry/format.h>

namespace gantry::keeper {

/// Writes `<UTC time> keeper: <line>`, with controls escaped: an engine or a plugin may have said
/// some of it. Blocks: as long as a file's write does.
void NoteLine(std::string_view line);

template <class... Args>
void Note(std::format_string<Args...> format, Args&&... args) {
  NoteLine(Format(format, std::forward<Args>(args)...));
}

/// Nanoseconds since 1970.
int64_t NowNs();

}  // namespace gantry::keeper
