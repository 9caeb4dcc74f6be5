// SPDX-License-Identifier: Apache-2.0
//
// Events as containerd's protobuf messages, and as records of the journal. The messages are
// written by hand, field by field in ascending order, with zero left out as protobuf does. The
// time is taken when the event is made, not when it is sent, since containerd may be away for
// hours in between.
#include "core/events/event.h"

#include <chrono>
#include <map>
#include <utility>

#include <gantry/protowire.h>

namespace gantry::events {
namespace {

constexpr int64_t kNanosPerSecond = 1'000'000'000;

// Fields of a record in the journal.
constexpr uint32_t kAddressField = 1;
constexpr uint32_t kNamespaceField = 2;
constexpr uint32_t kContainerField = 3;
constexpr uint32_t kTopicField = 4;
constexpr uint32_t kTypeField = 5;
constexpr uint32_t kPayloadField = 6;
constexpr uint32_t kTimestampField = 7;

int64_t NowNanos() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

/// Protobuf leaves out what is zero.
void Number(ProtoWriter& out, uint32_t field, uint32_t value) {
  if (value != 0) {
    out.Varint(field, value);
  }
}

Event Make(Subject subject, std::string_view topic, std::string_view type, ProtoWriter fields) {
  return Event{std::move(subject), std::string(topic), "containerd.events." + std::string(type),
               fields.Take(), NowNanos()};
}

/// Every task event begins with the container's id.
ProtoWriter Begin(const Subject& subject) {
  ProtoWriter out;
  out.Text(1, subject.container.str());
  return out;
}

std::string EncodeMount(const RootfsMount& mount) {
  ProtoWriter out;
  out.Text(1, mount.type);
  out.Text(2, mount.source);
  out.Text(3, mount.target);
  for (const std::string& option : mount.options) {
    out.Bytes(4, option);
  }
  return out.Take();
}

std::string EncodeTaskIo(const TaskCreateFields& fields) {
  ProtoWriter out;
  out.Text(1, fields.standard_in);
  out.Text(2, fields.standard_out);
  out.Text(3, fields.standard_err);
  if (fields.terminal) {
    out.Bool(4, true);
  }
  return out.Take();
}

}  // namespace

Event TaskCreate(Subject subject, const TaskCreateFields& fields) {
  ProtoWriter out = Begin(subject);
  out.Text(2, fields.bundle);
  for (const RootfsMount& mount : fields.rootfs) {
    out.Bytes(3, EncodeMount(mount));
  }
  out.Bytes(4, EncodeTaskIo(fields));
  out.Text(5, fields.checkpoint);
  Number(out, 6, fields.pid);
  return Make(std::move(subject), kTaskCreate, "TaskCreate", std::move(out));
}

Event TaskStart(Subject subject, uint32_t pid) {
  ProtoWriter out = Begin(subject);
  Number(out, 2, pid);
  return Make(std::move(subject), kTaskStart, "TaskStart", std::move(out));
}

Event TaskExit(Subject subject, const ExecId& exec, uint32_t pid, ExitStatus exit) {
  ProtoWriter out = Begin(subject);
  out.Text(2, exec.empty() ? subject.container.str() : exec.str());
  Number(out, 3, pid);
  Number(out, 4, exit.status);
  out.Bytes(5, EncodeTimestamp(exit.exited_at_ns));
  return Make(std::move(subject), kTaskExit, "TaskExit", std::move(out));
}

Event TaskDelete(Subject subject, uint32_t pid, ExitStatus exit) {
  ProtoWriter out = Begin(subject);
  Number(out, 2, pid);
  Number(out, 3, exit.status);
  out.Bytes(4, EncodeTimestamp(exit.exited_at_ns));
  return Make(std::move(subject), kTaskDelete, "TaskDelete", std::move(out));
}

Event TaskExecAdded(Subject subject, const ExecId& exec) {
  ProtoWriter out = Begin(subject);
  out.Text(2, exec.str());
  return Make(std::move(subject), kTaskExecAdded, "TaskExecAdded", std::move(out));
}

Event TaskExecStarted(Subject subject, const ExecId& exec, uint32_t pid) {
  ProtoWriter out = Begin(subject);
  out.Text(2, exec.str());
  Number(out, 3, pid);
  return Make(std::move(subject), kTaskExecStarted, "TaskExecStarted", std::move(out));
}

Event TaskOom(Subject subject) {
  ProtoWriter out = Begin(subject);
  return Make(std::move(subject), kTaskOom, "TaskOOM", std::move(out));
}

Event TaskPaused(Subject subject) {
  ProtoWriter out = Begin(subject);
  return Make(std::move(subject), kTaskPaused, "TaskPaused", std::move(out));
}

Event TaskResumed(Subject subject) {
  ProtoWriter out = Begin(subject);
  return Make(std::move(subject), kTaskResumed, "TaskResumed", std::move(out));
}

Event TaskCheckpointed(Subject subject, std::string_view checkpoint) {
  ProtoWriter out = Begin(subject);
  out.Text(2, checkpoint);
  return Make(std::move(subject), kTaskCheckpointed, "TaskCheckpointed", std::move(out));
}

std::string EncodeForward(const Event& event) {
  ProtoWriter any;
  any.Text(1, event.type_url);
  any.Text(2, event.payload);
  ProtoWriter envelope;
  envelope.Bytes(1, EncodeTimestamp(event.timestamp_ns));
  envelope.Text(2, event.subject.ns.str());
  envelope.Text(3, event.topic);
  envelope.Bytes(4, any.str());
  ProtoWriter request;
  request.Bytes(1, envelope.str());
  return request.Take();
}

std::string EncodeEvent(const Event& event) {
  ProtoWriter out;
  out.Text(kAddressField, event.subject.address);
  out.Text(kNamespaceField, event.subject.ns.str());
  out.Text(kContainerField, event.subject.container.str());
  out.Text(kTopicField, event.topic);
  out.Text(kTypeField, event.type_url);
  out.Text(kPayloadField, event.payload);
  out.Int(kTimestampField, event.timestamp_ns);
  return out.Take();
}

Result<Event> DecodeEvent(std::string_view bytes) {
  std::map<uint32_t, std::string> fields;
  Event event;
  ProtoReader in(bytes);
  while (in.Next()) {
    if (in.is_bytes()) {
      fields[in.field()] = in.text();
    } else if (in.field() == kTimestampField) {
      event.timestamp_ns = in.integer();
    }
  }
  Result<Namespace> ns = Namespace::Parse(fields[kNamespaceField]);
  Result<ContainerId> container = ContainerId::Parse(fields[kContainerField]);
  if (!in.ok() || !ns || !container) {
    return Fail(Code::kDataLoss, "decode stored event: malformed record");
  }
  event.subject = {std::move(fields[kAddressField]), std::move(*ns), std::move(*container)};
  event.topic = std::move(fields[kTopicField]);
  event.type_url = std::move(fields[kTypeField]);
  event.payload = std::move(fields[kPayloadField]);
  return event;
}

std::string EncodeTimestamp(int64_t since_epoch_ns) {
  // Nanoseconds count forward from the second, before 1970 too.
  int64_t seconds = since_epoch_ns / kNanosPerSecond;
  int64_t nanos = since_epoch_ns % kNanosPerSecond;
  if (nanos < 0) {
    seconds -= 1;
    nanos += kNanosPerSecond;
  }
  ProtoWriter out;
  if (seconds != 0) {
    out.Int(1, seconds);
  }
  if (nanos != 0) {
    out.Int(2, nanos);
  }
  return out.Take();
}

}  // namespace gantry::events
