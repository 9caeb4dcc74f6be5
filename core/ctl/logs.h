// SPDX-License-Identifier: Apache-2.0
//
// `gantryctl logs`: what engine, keeper and gantry-grpc have logged, about one sandbox or at all,
// in the order of its times.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <gantry/error.h>

#include "core/ctl/arguments.h"

namespace gantry::ctl {

/// One program's log, whole.
struct LogText {
  /// What its lines are marked with.
  std::string program;
  std::string text;
};

/// The lines of all that name one of `ids`, as a word (empty: all of them), and are not older than
/// `since_ns`, sorted by time. What has no time stays behind the line before it.
std::string LinesAbout(const std::vector<LogText>& logs, const std::vector<std::string>& ids,
                       int64_t since_ns);

/// Errors: kNotFound: there is no log.
Result<std::string> Logs(const Arguments& arguments);

}  // namespace gantry::ctl
