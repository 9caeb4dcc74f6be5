// SPDX-License-Identifier: Apache-2.0
//
// Who resumes a waiting coroutine, and when. Waking a coroutine in the middle
// of somebody's loop over a map would let it change that map, so a coroutine
// that becomes ready is queued (per thread) and resumed when the outermost
// callback or coroutine that runs now has given control back. It then works for the
// account of who woke it (account.h).
#pragma once

#include <coroutine>

#include "core/async/account.h"

namespace gantry::async {

/// Queues `handle`. With no `ResumeScope` on this thread it is resumed before
/// the call returns.
void ResumeSoon(std::coroutine_handle<> handle);
/// The same on behalf of `account`.
void ResumeSoon(std::coroutine_handle<> handle, AccountPtr account);

/// While one exists on a thread, `ResumeSoon` only queues; the outermost one's
/// destructor resumes what was queued, and what that queues in turn. The loop
/// puts one around each callback, `Start` around a coroutine's first part.
class ResumeScope {
 public:
  ResumeScope();
  ~ResumeScope();
  ResumeScope(const ResumeScope&) = delete;
  ResumeScope& operator=(const ResumeScope&) = delete;
};

}  // namespace gantry::async
