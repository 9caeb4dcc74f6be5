// SPDX-License-Identifier: Apache-2.0
//
// What gantry-init does, for other programs that are called as it is (docs/gantry-init.md): one
// that has words of its own, and a program in itself which the container's process calls in place
// of executing a file. `GatedProcess` (gated_process.h) starts it.
//
// What runs in a container is not heard any more: the gate, the answers and the terminal's socket
// are the maker's, and the channel to the container's process is closed before its guest runs.
#pragma once

#include <functional>
#include <string>

#include <gantry/error.h>
#include <gantry/toolkit/container/built_in_program.h>

namespace gantry::init {

struct GatedProgram {
  /// As errors call it.
  std::string name;
  /// Of its own words, for who calls it with one that is not known.
  std::string usage{};
  /// Takes its own word `--NAME=VALUE`; false: it is none. Null: it has none.
  /// Errors: kInvalidArgument, naming the word.
  std::function<Result<bool>(const std::string& name, const std::string& value)> take_word{};
  /// Called in the container's process. Borrowed; null: a file of the container's is executed.
  container::BuiltInProgram* program = nullptr;
};

/// The descriptor that is the value of the word `name`. Errors: kInvalidArgument: it is not open,
/// or a standard stream.
Result<int> DescriptorIn(const std::string& name, const std::string& value);

/// The whole of main(): its exit code. To be called before anything else, on the only thread: the
/// program goes on from its beginning in a sealed copy of itself, unless it is in one already.
/// Blocks: until the container has ended, or runs, with --sibling.
int RunGatedProgram(int argc, char** argv, char** envp, const GatedProgram& of);

}  // namespace gantry::init
