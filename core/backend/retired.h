// SPDX-License-Identifier: Apache-2.0
//
// Contexts whose object has gone. A backend must not call them any more; one that
// does, from a thread of its own, finds a context that answers that there is
// nothing, and not freed memory.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>

namespace gantry::backend {

/// As many stay; of more the oldest go. Each pins a page of the heap or two.
inline constexpr size_t kMaxRetired = 512;
/// And so long, where the engine has nothing else to do.
inline constexpr std::chrono::seconds kRetiredFor{3};

/// Keeps `context` for a while. Null: nothing. Thread: any.
void Retire(std::shared_ptr<void> context);

/// Lets those go that were retired `age` ago or before. How many stay. Thread: any.
size_t ForgetRetired(std::chrono::nanoseconds age);

}  // namespace gantry::backend
