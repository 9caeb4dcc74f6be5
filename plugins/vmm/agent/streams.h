// SPDX-License-Identifier: Apache-2.0
//
// The streams of a guest's processes: connections that the guest dials (port 1026), each of which
// says first by a token which stream it is. Whoever in the guest dials with something else is
// nobody, and is closed; so is the oldest of those that say nothing, when there are many.
//
// What is taken from here is for `ProcessContext::AttachStream` with `StreamFraming::kFrames`:
// nothing behind the token has been read from it.
//
// It has no thread: `OnReadable` is to be called on a worker when `fd` is readable.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include <gantry/deadline.h>
#include <gantry/error.h>
#include <gantry/unique_fd.h>

namespace gantry::vmm {

/// Thread: any, but for `OnReadable`: one at a time.
class StreamListener {
 public:
  /// Connections that have not said their token.
  static constexpr size_t kMaxUnknown = 64;
  /// Tokens that wait for their connection, or to be taken.
  static constexpr size_t kMaxExpected = 1024;

  /// `listener`: a unix socket that does not block; it stays open as long as this object.
  static Result<std::unique_ptr<StreamListener>> On(UniqueFd listener);
  StreamListener(const StreamListener&) = delete;
  StreamListener& operator=(const StreamListener&) = delete;
  ~StreamListener() = default;

  /// A new token, for a request. Errors: kResourceExhausted.
  Result<std::string> Expect();
  /// The connection that has said `token`; it does not block. Once. Errors: kDeadlineExceeded: it
  /// has not come; then, or later, it is closed. Blocks: up to `deadline`.
  Result<UniqueFd> Take(const std::string& token, Deadline deadline);
  /// Nobody will take it. Again: nothing.
  void Forget(const std::string& token);

  /// Readable when a connection waits, or one of those that are unknown has something to say.
  int fd() const { return epoll_.get(); }

  /// Blocks: never.
  void OnReadable();

 private:
  StreamListener(UniqueFd listener, UniqueFd epoll)
      : listener_(std::move(listener)), epoll_(std::move(epoll)) {}

  struct Unknown {
    UniqueFd socket;
    std::string said;
  };

  void Accept();
  void Hear(size_t number);
  void Drop(size_t number);

  const UniqueFd listener_;
  const UniqueFd epoll_;
  /// Of `OnReadable`. By a number that is never used again.
  std::map<size_t, Unknown> unknown_;
  size_t last_number_ = 0;

  /// Guards what follows.
  std::mutex mutex_;
  std::condition_variable came_;
  std::map<std::string, UniqueFd, std::less<>> expected_;
};

}  // namespace gantry::vmm
