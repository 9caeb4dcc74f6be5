// SPDX-License-Identifier: Apache-2.0
#include "core/keeper/deaths.h"

#include <gantry/format.h>

#include "core/keeper/note.h"

namespace gantry::keeper {

void Deaths::OnRecovering(const link::Recovering& said) {
  recovering_.insert(said.begun.begin(), said.begun.end());
  for (const std::string& address : said.done) {
    recovering_.erase(address);
  }
  if (said.finished) {
    recovering_.clear();
  }
}

void Deaths::Enter(Instance& instance) const {
  for (const Instance* const other : instances_.At(instance.socket_path)) {
    if (other != &instance) {
      instance.told.deaths = other->told.deaths;
      instance.told.left_out = other->told.left_out;
      return;
    }
  }
}

void Deaths::EngineUp() {
  recovering_.clear();
  for (auto& [number, instance] : instances_.all()) {
    instance.told.left_out = instance.told.deaths >= kMost;
  }
}

void Deaths::EngineCrashed() {
  for (auto& [number, instance] : instances_.all()) {
    if (instance.told.forgotten || !recovering_.contains(instance.told.address)) {
      continue;
    }
    if (++instance.told.deaths == kMost) {
      Note(
          "error: '{}': {} engines crashed one after the other while they took it up, so it is "
          "left out: 'gantryctl delete {}' ends it, 'gantryctl restart' tries it once more",
          instance.told.announce.id, kMost, instance.told.announce.id);
    }
  }
  recovering_.clear();
}

void Deaths::Forgive() {
  for (auto& [number, instance] : instances_.all()) {
    instance.told.deaths = instance.told.left_out ? kMost - 1 : 0;
  }
}

std::string Deaths::Refusal(const Instance& instance) {
  const link::Announce& announce = instance.told.announce;
  const std::string& group = announce.group.empty() ? announce.id : announce.group;
  return Format(
      "call '{}': it is left out, since {} engines crashed while they took it up: "
      "'gantryctl delete {}' ends it, 'gantryctl restart' tries it once more",
      group, kMost, group);
}

}  // namespace gantry::keeper
