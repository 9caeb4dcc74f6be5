// SPDX-License-Identifier: Apache-2.0
//
// Text of somebody else as a part of one line of a log: no line is forged, and no terminal
// that shows it is told what to do.
#pragma once

#include <string>
#include <string_view>

namespace gantry::log {

/// Appends `text` to `out`, at most until `out` has `limit` bytes: newline and tab as \n and
/// \t, other controls and what is no UTF-8 as \xNN. The controls of Latin-1 (U+0080 to U+009F),
/// which terminals obey, too, count as such in either form.
void AppendPrintable(std::string& out, std::string_view text, size_t limit = std::string::npos);

std::string Printable(std::string_view text);

}  // namespace gantry::log
