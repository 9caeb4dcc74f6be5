// SPDX-License-Identifier: Apache-2.0
//
// The end of a process that has no pid on this host: it runs in a sandbox with a kernel of its
// own, which tells once how it ended. So that is kept in a file of the bundle first, for an
// engine after this one, then what had told it is let go, then the core hears of it.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include <gantry/container.h>
#include <gantry/error.h>
#include <gantry/ids.h>
#include <gantry/process.h>

namespace gantry {

/// 128 + SIGKILL: the end of a process whose sandbox is gone.
inline constexpr uint32_t kKilledStatus = 137;

/// Now, as the time of an exit.
ExitStatus ExitedNow(uint32_t status);

/// Whether a process that handles no signal would end by it: for what has not been started.
/// Source: signal(7).
bool EndsByDefault(uint32_t signal);

/// What is known of a process.
struct KnownProcess {
  /// In the sandbox; 0: a container's init.
  int32_t pid = 0;
  std::optional<ExitStatus> exit{};
  /// Of a container's init: that is why it has ended.
  bool out_of_memory = false;

  /// Replaces the file. Errors: as `ReplaceFile`. Blocks: on files. Thread: any.
  Status Write(const std::string& path) const;
  /// Errors: kNotFound: no file; kInternal: something else is in it. Blocks: on files.
  /// Thread: any.
  static Result<KnownProcess> Read(const std::string& path);
};

/// Tells the core, as long as the object it is about is there. Thread: any.
class EndReport {
 public:
  /// Of an exec. The contexts must outlive it, up to `Retire`.
  explicit EndReport(ProcessContext& context) : context_(&context) {}

  /// Of a container's init.
  explicit EndReport(ContainerContext& container)
      : context_(&container.init()), container_(&container) {}

  /// `out_of_memory`: that is why its container has ended. Again: nothing.
  void Tell(ExitStatus exit, bool out_of_memory = false);
  /// Tells what is known already. False: it is not known.
  bool TellKnown(const KnownProcess& known);
  /// Its `Process` is being destroyed.
  void Retire();
  bool told() const;
  bool out_of_memory() const;

 private:
  /// Guards what follows; held while the core takes note.
  mutable std::mutex mutex_;
  ProcessContext* context_;
  /// Null: it is an exec.
  ContainerContext* container_ = nullptr;
  bool told_ = false;
  bool out_of_memory_ = false;
};

/// Which process of a sandbox is which exec of a container. Thread: any.
class ExecTable {
 public:
  /// `pid`: in the sandbox.
  void Put(int32_t pid, const ExecId& exec);
  /// Again: nothing.
  void Remove(const ExecId& exec);
  /// Empty: it is none.
  ExecId Find(int32_t pid) const;

 private:
  /// Guards what follows.
  mutable std::mutex mutex_;
  std::map<int32_t, ExecId> execs_;
};

}  // namespace gantry
