// SPDX-License-Identifier: Apache-2.0
//
// A program that the maker of a container has in itself: the container's process calls it in place
// of finding and executing a file, as an engine wants it whose guests are no programs of Linux.
//
// The process is the container's in all but the execution, which would do more, and the maker does
// that: descriptors that execve(2) would close are closed, dispositions of signals are the default
// ones, and nothing waits in the process's memory that is another container's. What execve(2)
// leaves to a program is left to nobody here: no capability, in no set, whatever the spec says;
// no_new_privs, whatever the spec says; nobody without rights over the node looks into it
// (PR_SET_DUMPABLE). Labels are those of the running process, not of what it executes.
//
// Thread: the only one of its process, which is a copy of the maker's. All of it is called in
// that process, in this order, once: `Prepare` and `Filter`, then, behind the gate, `Run`.
// Source: execve(2), "Effect on process attributes"; seccomp(2).
#pragma once

#include <linux/filter.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

#include <gantry/error.h>
#include <gantry/toolkit/oci/spec.h>

namespace gantry::container {

/// What the program is to be.
struct ProgramStart {
  /// Of a process that joins a container: its `process`, and root, mounts and annotations of the
  /// container. Of its environment as it is: with no HOME of the maker's. Borrowed until `Prepare`
  /// returns.
  const oci::Spec& spec;
  /// Those of `BuiltInProgram::Descriptors`, in their order, to be closed by the program.
  std::vector<int> descriptors;
};

/// What the maker does between the program's own filter and its run, and that filter has to let
/// through: sendmsg(2), recvmsg(2) and close(2), by which it waits at the gate and says what fails;
/// brk(2), munmap(2) and madvise(2), by which it gives back the memory that the making took: of the
/// heap, and of the stack of the thread that `Make` or `Join` was called on, below that call.
/// Called on a stack that is not its thread's, a coroutine's, that stack stays as it is.
struct AfterFilter {
  /// And seccomp(2), with SECCOMP_SET_MODE_FILTER and these flags: the spec has a filter, too.
  std::optional<unsigned> seccomp_flags;
};

class BuiltInProgram {
 public:
  BuiltInProgram() = default;
  BuiltInProgram(const BuiltInProgram&) = delete;
  BuiltInProgram& operator=(const BuiltInProgram&) = delete;
  virtual ~BuiltInProgram() = default;

  /// Of the maker's, which `Prepare` is given. Borrowed.
  virtual std::vector<int> Descriptors() const = 0;

  /// All that can be done before the start. The root is entered, user, rights and working directory
  /// are the process's; limits on resources come after it. What it opens stays open, and is above
  /// the descriptors that are passed on. Errors: make `Make` and `Join` fail with them.
  virtual Status Prepare(const ProgramStart& start) = 0;

  /// A filter of the program's own, which the kernel asks beside that of the spec; empty: none. It
  /// is loaded before the gate, since the kernel takes its time for that; the one of the spec
  /// behind it. Errors: make `Make` and `Join` fail with them.
  virtual Result<std::vector<sock_filter>> Filter(const AfterFilter& after) = 0;

  /// Runs it to its end: the exit code. From here on `MadeProcess::Start` has succeeded.
  virtual int Run() = 0;

  /// The maker's question before all that, on its own thread: where that one's stack is, by the
  /// word of the C library; empty: it does not know. Here, so that a maker without such a program
  /// has nothing of it.
  virtual std::span<char> StackOfThread() const;
};

}  // namespace gantry::container
