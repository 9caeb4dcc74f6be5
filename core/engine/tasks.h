// SPDX-License-Identifier: Apache-2.0
//
// The Task service, the Sandbox service, what both work with, and the recovery, put together; and
// who of them hears what the keeper says.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gantry/error.h>

#include "core/async/account.h"
#include "core/async/co.h"
#include "core/events/event.h"
#include "core/events/sandbox_event.h"
#include "core/link/messages.h"
#include "core/pod/pod_map.h"
#include "core/pod/sandbox_service.h"
#include "core/recovery/recovery.h"
#include "core/rpc/method_table.h"
#include "core/task/components.h"
#include "core/task/service.h"

namespace gantry::engine {

/// Thread: loop.
class Tasks final {
 public:
  explicit Tasks(const task::Parts& parts);
  Tasks(const Tasks&) = delete;
  Tasks& operator=(const Tasks&) = delete;
  ~Tasks();

  /// Puts the methods of both services into `table`.
  Status Register(rpc::MethodTable& table);

  /// Who hears what happens to pods.
  void Observe(events::SandboxObserver observer) { sandbox_service_.Observe(std::move(observer)); }

  /// The pod that the container of an event is in; empty: none, or it is not there any more.
  std::string SandboxOf(const events::Subject& subject) const;

  // From the keeper.
  void InstanceAdded(link::InstanceAdded instance);
  void InstanceRemoved(link::InstanceRemoved gone);
  /// Everything from before a restart has been told: takes it all up again.
  /// `stored`: the names in the descriptor store.
  void SnapshotEnd(std::vector<std::string> stored);
  /// containerd has lost an instance: the keeper is answered when nothing of it is left.
  void DeleteCall(const link::DeleteCall& call);

  // For gantryctl.
  const task::Containers& containers() const { return components_.containers; }

  /// All that are more than expected.
  std::vector<task::PodPtr> Pods() const { return pods_.All(); }

  const std::map<uint64_t, link::InstanceAdded>& instances() const {
    return components_.instances.all();
  }

  const task::BackendCalls& backend_calls() const { return components_.calls; }

  const metrics::Figures& figures() const { return components_.figures; }

  /// Of the sandbox whose calls come on that socket; null: there is none.
  async::AccountPtr AccountAt(const std::string& address) const {
    return components_.instances.AccountAt(address);
  }

 private:
  async::Task<void> AnswerDeleteCall(link::DeleteCall call);
  void Note(const link::InstanceAdded& instance, std::string_view what);

  /// containerds by where they take events: the addresses by which containers are found. Entries
  /// are few, and stay.
  std::map<std::string, std::string> containerd_at_;
  task::PodMap pods_;
  task::Components components_;
  task::SandboxService sandbox_service_;
  task::Recovery recovery_;
  task::Service service_;
  /// Those of before this engine's time have been told.
  bool told_ = false;
};

}  // namespace gantry::engine
