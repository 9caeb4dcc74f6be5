// SPDX-License-Identifier: Apache-2.0
//
// Keeper: over a change of its program.
#include <unistd.h>

#include <utility>

#include "core/keeper/keeper.h"
#include "core/keeper/note.h"

namespace gantry::keeper {

bool Keeper::IsIdle() const {
  return !ending_ && supervisor_.idle() && spawner_.idle() && deletes_.idle() && control_.idle();
}

state::Keeper Keeper::Save(uint64_t asker) const {
  state::Keeper state;
  state.schema = state::kSchema;
  state.run_dir = options_.run_dir;
  state.alive = options_.alive.get();
  state.started_at_ns = started_at_ns_;
  state.child_defaults = options_.child_defaults;
  state.front_door = front_door_.Save();
  state.instances = instances_.Save();
  state.exits = exits_.Save();
  state.stored = fd_store_.Save();
  state.supervisor = supervisor_.Save();
  state.control = control_.Save(asker);
  state.upgrades = upgrades_;
  state.service_manager = service_manager_.state();
  state.recovering = deaths_.Save();
  state.asked_to_end = asked_to_end_;
  return state;
}

void Keeper::Restore(const state::Keeper& state) {
  started_at_ns_ = state.started_at_ns;
  upgrades_ = state.upgrades + 1;
  asked_to_end_ = state.asked_to_end;
  fd_store_.Restore(state.stored);
  instances_.Restore(state.instances);
  exits_.Restore(state.exits);
  supervisor_.Restore(state.supervisor);
  deaths_.Restore(state.recovering);
  front_door_.Restore(state.front_door, supervisor_.channel(), supervisor_.takes_streams());
  LeaveOut();
  if (supervisor_.channel() != nullptr) {
    if (!deaths_.recovering()) {
      front_door_.Recovered();
    }
    ForgiveLater();
  }
  for (auto& [number, instance] : instances_.all()) {
    if (instance.told.forgotten) {
      BuryLater(instance);
    }
  }
  Note("took over from another program: {} instances, {} connections, {} descriptors",
       instances_.all().size(), front_door_.connections(), fd_store_.size());
  if (const auto asker = control_.Restore(state.control)) {
    (*asker)(link::KeeperUpgraded{getpid()});
  }
  // Children may have ended in between.
  OnSignal();
}

}  // namespace gantry::keeper
