// SPDX-License-Identifier: Apache-2.0
//
// The keeper is on every node all the time: what it does not need, it gives back.
#pragma once

namespace gantry::keeper {

/// Makes malloc keep little: one arena, large blocks mapped apart.
void SaveMemory();

/// Gives free heap back, and unmaps the pages of the program's own code and constants;
/// those that are needed come back from the page cache when they are used.
void ReleaseMemory();

}  // namespace gantry::keeper
