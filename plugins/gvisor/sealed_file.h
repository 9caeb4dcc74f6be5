// SPDX-License-Identifier: Apache-2.0
//
// Bytes that are handed to sentries: a file in memory that nobody can change any more. A file of
// the host's could be written through a descriptor that was opened for reading, by a sentry that
// was broken into and is root to the kernel: the next pod would run what it has written.
#pragma once

#include <string>
#include <string_view>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

namespace gantry::gvisor {

enum class FileUse { kRead, kExecute };

/// `name` is what /proc shows; `content` is copied. Open for reading alone, since Linux before 6.7
/// maps no sealed file shared that is open for writing (mm/mmap.c).
/// Errors: kResourceExhausted, kInternal: no file in memory to be had. Thread: any. Blocks: never.
Result<UniqueFd> SealedFile(const std::string& name, std::string_view content, FileUse use);

/// Another open file of the same bytes. Errors: the kernel's.
Result<UniqueFd> OpenedAnew(const UniqueFd& file);

}  // namespace gantry::gvisor
