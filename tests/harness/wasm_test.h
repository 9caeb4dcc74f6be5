// SPDX-License-Identifier: Apache-2.0
//
// The fixture of tests that are about the wasm backend alone: guests of tests/guests, which are
// bound into a container of the busybox image.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

#include "tests/harness/e2e_test.h"

namespace gantry::e2e {

class WasmTest : public E2eTest {
 protected:
  void SetUp() override;

  /// Where the guest `name` is in the container: /guests/NAME.wasm.
  static std::string Guest(const std::string& name);

  /// For `ctr run`: `flags`, and the folder of the guests.
  static Words WithGuests(Words flags);

  /// `ctr run --rm` of a guest with `flags`; `words`: its name and its arguments.
  Output RunGuest(Words words, const Words& flags = {}, std::optional<std::string_view> input = {});

  /// In the background; waits for `line` where it is not empty. The test removes it.
  Program StartGuest(const std::string& id, Words words, const std::string& line = "",
                     const Words& flags = {});

  /// In the background; `words`: its path and its arguments.
  Program Start(const std::string& id, const Words& words, const Words& flags,
                const Program::Options& options);

  /// `hello` or what is made of it, whose input the test writes and ends. It has said its first
  /// word then: what ctr is given before the task is there, it forgets to close.
  Program StartWithInput(Words words, const Words& flags = {});

  /// It has one thread, no capability, and a filter.
  static void ExpectConfined(pid_t pid);

  /// What `tool.wasm` is called in a container.
  static Words Tool(Words words);
};

}  // namespace gantry::e2e
