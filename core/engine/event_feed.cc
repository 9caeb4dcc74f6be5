// SPDX-License-Identifier: Apache-2.0
#include "core/engine/event_feed.h"

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>

#include <gantry/format.h>
#include <gantry/protowire.h>
#include <gantry/toolkit/proto/proto_message.h>

#include "core/log/log.h"

namespace gantry::engine {
namespace {

/// Of one answer.
constexpr size_t kMostAtOnce = 256;
constexpr std::chrono::milliseconds kLongestWait = std::chrono::minutes(1);

int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

/// What the keeper had counted when it was asked last.
struct Counts {
  uint64_t engine_hangs = 0;
  uint64_t keeper_upgrades = 0;

  void Each(this auto& self, auto&& field) {
    field(1, self.engine_hangs);
    field(2, self.keeper_upgrades);
  }
};

/// Source: containerd 2.3.4, api/events/task.proto. Of TaskExit 2 is the exec, 3 the pid, 4 the
/// status; of TaskDelete 2 is the pid, 3 the status; of TaskStart 2 is the pid; of TaskExecStarted
/// 2 is the exec, 3 the pid; of TaskCreate 6 is the pid.
struct FieldsOf {
  uint32_t exec;
  uint32_t pid;
  uint32_t status;
};

struct Kind {
  std::string_view topic;
  const char* type;
  FieldsOf fields;
};

constexpr Kind kKinds[] = {
    {events::kTaskCreate, "container.created", {0, 6, 0}},
    {events::kTaskStart, "container.started", {0, 2, 0}},
    {events::kTaskExit, "container.exited", {2, 3, 4}},
    {events::kTaskDelete, "container.deleted", {0, 2, 3}},
    {events::kTaskExecAdded, "exec.added", {2, 0, 0}},
    {events::kTaskExecStarted, "exec.started", {2, 3, 0}},
    {events::kTaskOom, "container.oom", {0, 0, 0}},
    {events::kTaskPaused, "container.paused", {0, 0, 0}},
    {events::kTaskResumed, "container.resumed", {0, 0, 0}},
    {events::kTaskCheckpointed, "container.checkpointed", {0, 0, 0}},
};

void ReadFields(const std::string& payload, const FieldsOf& fields, v1::Event& out) {
  ProtoReader in(payload);
  while (in.Next()) {
    if (in.field() == fields.exec && in.is_bytes()) {
      out.set_exec_id(in.text());
    } else if (in.field() == fields.pid && !in.is_bytes()) {
      out.set_pid(static_cast<uint32_t>(in.integer()));
    } else if (in.field() == fields.status && !in.is_bytes()) {
      out.set_exit_status(static_cast<uint32_t>(in.integer()));
    }
  }
}

bool IsWanted(const v1::EventsRequest& request, const v1::Event& event) {
  return event.time_ns() >= request.since_ns() &&
         (request.namespace_().empty() || event.namespace_() == request.namespace_()) &&
         (request.id().empty() || event.id() == request.id() || event.sandbox_id() == request.id());
}

}  // namespace

Result<std::unique_ptr<EventFeed>> EventFeed::Open(async::Loop& loop, UniqueFd memfd) {
  GANTRY_TRY(auto recent, events::Recent::Open(std::move(memfd)));
  return std::unique_ptr<EventFeed>(new EventFeed(loop, std::move(recent)));
}

void EventFeed::Add(v1::Event event) {
  if (event.time_ns() == 0) {
    event.set_time_ns(NowNs());
  }
  if (const Status added = recent_->Add(event.SerializeAsString()); !added) {
    LogWarning("an event is lost to who watches: {}", added.error().message);
  }
  // Those who wait may go on at once, and forget their waits.
  for (auto& [number, wait] : std::exchange(waits_, {})) {
    wait.Set();
  }
}

void EventFeed::OnTask(const events::Event& event, const std::string& sandbox) {
  const auto* const kind = std::ranges::find(kKinds, event.topic, &Kind::topic);
  if (kind == std::end(kKinds)) {
    return;
  }
  v1::Event out;
  out.set_type(kind->type);
  out.set_time_ns(event.timestamp_ns);
  out.set_namespace_(event.subject.ns.str());
  out.set_id(event.subject.container.str());
  out.set_sandbox_id(sandbox);
  ReadFields(event.payload, kind->fields, out);
  if (event.topic == events::kTaskExit) {
    // An init has its container's id.
    if (out.exec_id() == out.id()) {
      out.clear_exec_id();
    } else {
      out.set_type("exec.exited");
    }
  }
  Add(std::move(out));
}

void EventFeed::OnSandbox(const events::SandboxEvent& event) {
  v1::Event out;
  out.set_type(Format("sandbox.{}", event.what));
  out.set_namespace_(event.ns.str());
  out.set_id(event.id.str());
  out.set_pid(event.pid);
  if (event.what == "exited" || event.what == "deleted") {
    out.set_exit_status(event.exit.status);
  }
  Add(std::move(out));
}

void EventFeed::Compare(const link::KeeperStatus& keeper) {
  const auto known = DecodeProto<Counts>(recent_->note());
  const Counts before = known ? *known : Counts{};
  if (keeper.keeper_upgrades > before.keeper_upgrades) {
    v1::Event event;
    event.set_type("keeper.upgraded");
    event.set_pid(static_cast<uint32_t>(keeper.keeper_pid));
    event.set_message(Format("upgraded {} time(s)", keeper.keeper_upgrades));
    Add(std::move(event));
  }
  if (keeper.engine_hangs > before.engine_hangs) {
    v1::Event event;
    event.set_type("engine.hung");
    event.set_message(Format("{} time(s)", keeper.engine_hangs - before.engine_hangs));
    Add(std::move(event));
  }
  const Status noted = recent_->SetNote(EncodeProto(
      Counts{.engine_hangs = keeper.engine_hangs, .keeper_upgrades = keeper.keeper_upgrades}));
  IgnoreError(noted, "the same would be told again");
}

void EventFeed::OnKeeper(const link::KeeperStatus& keeper) { Compare(keeper); }

void EventFeed::OnUp(const Engine& engine, const link::KeeperStatus* keeper) {
  if (keeper != nullptr) {
    Compare(*keeper);
  }
  v1::Event event;
  event.set_type(engine.took_over ? "engine.upgraded" : "engine.started");
  event.set_pid(engine.pid);
  event.set_message(Format("version {}", engine.version));
  Add(std::move(event));
}

Status EventFeed::Fill(const v1::EventsRequest& request, v1::EventsResponse& response) const {
  while (response.events_size() == 0) {
    GANTRY_TRY(const events::Recent::Page page, recent_->Read(response.last(), kMostAtOnce));
    response.set_lost(response.lost() + page.lost);
    response.set_last(page.last);
    for (const events::Journal::Record& record : page.records) {
      v1::Event event;
      if (event.ParseFromString(record.body) && IsWanted(request, event)) {
        event.set_number(record.seq);
        *response.add_events() = std::move(event);
      }
    }
    if (page.last == recent_->last()) {
      break;
    }
  }
  return {};
}

async::Task<Result<v1::EventsResponse>> EventFeed::Read(const rpc::CallContext& call,
                                                        v1::EventsRequest request) {
  if (look_) {
    co_await look_();
  }
  v1::EventsResponse response;
  response.set_last(request.after());
  GANTRY_CO_CHECK_OK(Fill(request, response));
  const async::TimePoint until =
      loop_.Now() + std::min(std::chrono::milliseconds(request.wait_ms()), kLongestWait);
  while (response.events_size() == 0 && loop_.Now() < until && !call.abandonment->happened()) {
    const uint64_t number = next_wait_++;
    const async::OneShot<void> wait = waits_[number];
    call.abandonment->Park([own = wait]() mutable { own.Set(); });
    co_await wait.WaitFor(loop_, until - loop_.Now());
    waits_.erase(number);
    GANTRY_CO_CHECK_OK(Fill(request, response));
  }
  co_return response;
}

}  // namespace gantry::engine
