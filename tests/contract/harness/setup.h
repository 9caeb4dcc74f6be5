// SPDX-License-Identifier: Apache-2.0
//
// What a run of the contract is about: which backends, and where gantry's programs
// are. Set by the program's main before anything else.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gantry::contract {

/// A backend under test.
struct Subject {
  /// Its name in the configuration, and of its handler.
  std::string name;
  /// Absolute path of its plugin.
  std::string plugin;
  /// JSON objects. `@ROOT@` in them is the run's private folder.
  std::string handler_options = "{}";
  std::string backend_options = "{}";
  /// Programs that must be in PATH.
  std::vector<std::string> programs{};
};

struct Setup {
  /// Where gantryd and gantry-keeper are.
  std::string programs;
  std::vector<Subject> subjects;
  /// Those that are tested; empty: all.
  std::vector<std::string> tested{};
  /// The backend is anybody's: what is optional it may lack, and the log of the
  /// engine is shown only to who asks.
  bool anybodys = false;
  bool verbose = false;
};

Setup& TheSetup();

/// The names of those that are tested, for the tests' parameter.
std::vector<std::string> BackendNames();

/// What was seen of the backend while a test ran. Thread: the test's.
struct Observed {
  /// What the first optional call said that was answered with UNIMPLEMENTED.
  std::string not_supported;
  /// Something was left, or could not be taken down.
  bool left = false;
};

Observed& TheObserved();

/// An answer UNIMPLEMENTED to `method` of the Task or Sandbox service: noted where
/// the call is optional.
void NoteUnimplemented(std::string_view method, std::string_view message);

}  // namespace gantry::contract
