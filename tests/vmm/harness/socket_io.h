// SPDX-License-Identifier: Apache-2.0
//
// Bytes over a socket, each call within a minute.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <gantry/deadline.h>
#include <gantry/error.h>
#include <gantry/unique_fd.h>

namespace gantry::vmm {

/// All of `size` bytes. Errors: kUnavailable: the end came before; kDeadlineExceeded.
Result<std::string> ReadFrom(int socket, size_t size);
/// All until the end.
Result<std::string> ReadToEnd(int socket);
Status WriteTo(int socket, std::string_view data);

/// Whether `socket` has something to read by then, a listener somebody who waits.
bool IsReadable(int socket, Deadline deadline);
/// Who connects first. Errors: kDeadlineExceeded.
Result<UniqueFd> AwaitConnection(const UniqueFd& listener, Deadline deadline);

}  // namespace gantry::vmm
