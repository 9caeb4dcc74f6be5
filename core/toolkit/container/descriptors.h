// SPDX-License-Identifier: Apache-2.0
//
// What a child keeps of its maker's descriptors.
// Source: close_range(2), Linux 5.11.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <vector>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

namespace gantry::container {

/// Closes all above 2 but `kept`. Again: allowed.
Status CloseAllBut(std::vector<int> kept);

/// 0, 1 and 2 become copies of `streams`, of which a negative one is /dev/null; the others stay.
Status SetStreams(const int (&streams)[3]);

/// 0, 1 and 2 belong to `owner`, who may open them anew then, as /dev/stdout is. As runc does:
/// /dev/null stays as it is, and so does what cannot be given away.
Status GiveStreams(uid_t owner);

/// `fd` where `passed_on` descriptors do not come to lie on it.
Result<int> MoveOutOfTheWay(int fd, size_t passed_on);

/// `fd` above 2, where no stream comes to lie on it. Errors: the errno's, also where there is none.
Result<UniqueFd> AboveStreams(UniqueFd fd);

/// `fds` become 3, 4 and so on, and are passed on by execve(2); all others end with it. None of
/// `fds` is used afterwards by its old number.
Status PassOn(const std::vector<int>& fds);

}  // namespace gantry::container
