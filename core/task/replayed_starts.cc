// SPDX-License-Identifier: Apache-2.0
#include "core/task/replayed_starts.h"

#include "core/task/container.h"

namespace gantry::task {

bool ReplayedStarts::Contains(const TaskProcess& process) const {
  const Container& container = process.container;
  return running_.contains({KeyOf(*container.group, container.id.str()), process.id.str()});
}

}  // namespace gantry::task
