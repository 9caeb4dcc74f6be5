// SPDX-License-Identifier: Apache-2.0
//
// The events that containerd expects of a shim, ready to be published: topic,
// type and encoded message.
// Source: containerd 2.3.4, api/events/task.proto and core/runtime/events.go.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <gantry/error.h>
#include <gantry/ids.h>
#include <gantry/process.h>

namespace gantry::events {

inline constexpr std::string_view kTaskCreate = "/tasks/create";
inline constexpr std::string_view kTaskStart = "/tasks/start";
inline constexpr std::string_view kTaskExit = "/tasks/exit";
inline constexpr std::string_view kTaskDelete = "/tasks/delete";
inline constexpr std::string_view kTaskExecAdded = "/tasks/exec-added";
inline constexpr std::string_view kTaskExecStarted = "/tasks/exec-started";
inline constexpr std::string_view kTaskOom = "/tasks/oom";
inline constexpr std::string_view kTaskPaused = "/tasks/paused";
inline constexpr std::string_view kTaskResumed = "/tasks/resumed";
inline constexpr std::string_view kTaskCheckpointed = "/tasks/checkpointed";

/// Whose event it is and who is to hear of it. Events of one subject are
/// published in the order in which they were made.
struct Subject {
  /// Path of containerd's ttrpc socket.
  std::string address;
  Namespace ns;
  ContainerId container;

  auto operator<=>(const Subject&) const = default;
};

struct Event {
  Subject subject;
  std::string topic;
  /// Of `payload`: "containerd.events.TaskExit".
  std::string type_url;
  std::string payload;
  /// Nanoseconds since the epoch; never 0, which containerd refuses.
  int64_t timestamp_ns = 0;
};

/// A mount as containerd described it.
struct RootfsMount {
  std::string type;
  std::string source;
  std::string target;
  std::vector<std::string> options;
};

struct TaskCreateFields {
  std::string bundle;
  std::vector<RootfsMount> rootfs;
  std::string standard_in;
  std::string standard_out;
  std::string standard_err;
  bool terminal = false;
  std::string checkpoint;
  uint32_t pid = 0;
};

/// Each makes the event of that name, dated now.
Event TaskCreate(Subject subject, const TaskCreateFields& fields);
Event TaskStart(Subject subject, uint32_t pid);
/// `exec` empty: the container's init has ended.
Event TaskExit(Subject subject, const ExecId& exec, uint32_t pid, ExitStatus exit);
Event TaskDelete(Subject subject, uint32_t pid, ExitStatus exit);
Event TaskExecAdded(Subject subject, const ExecId& exec);
Event TaskExecStarted(Subject subject, const ExecId& exec, uint32_t pid);
Event TaskOom(Subject subject);
Event TaskPaused(Subject subject);
Event TaskResumed(Subject subject);
Event TaskCheckpointed(Subject subject, std::string_view checkpoint);

/// The ForwardRequest that carries `event`.
/// Source: containerd 2.3.4, api/services/ttrpc/events/v1/events.proto.
std::string EncodeForward(const Event& event);

/// For the journal: everything that `event` is.
std::string EncodeEvent(const Event& event);
/// Errors: kDataLoss for what `EncodeEvent` did not make.
Result<Event> DecodeEvent(std::string_view bytes);

/// google.protobuf.Timestamp.
std::string EncodeTimestamp(int64_t since_epoch_ns);

}  // namespace gantry::events
