// SPDX-License-Identifier: Apache-2.0
//
// The calls of a rule, for who reads why it is not met: which calls of a backend they became.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <gantry/error.h>

namespace gantry::contract {

/// Keeps the last ones. `exec`: empty for a container's own. Thread: any.
void NoteCall(std::string_view method, std::string_view container, std::string_view exec,
              const Status& answer);

/// Since the rule began, as lines: "Start of exec 'x1' (Process::Start): ok".
std::vector<std::string> NotedCalls();

void ForgetCalls();

/// Whether a step of a rule is to be skipped, and with it those that follow from it: a backend of
/// anybody's answered with UNIMPLEMENTED to this optional call. What the rest of the rule finds
/// counts all the same.
bool IsLeftOut(std::string_view call, Code answer);

/// The calls of which that was true, in this run.
std::set<std::string> CallsLeftOut();

}  // namespace gantry::contract
