// SPDX-License-Identifier: Apache-2.0
//
// A standard stream as frames on a socket, for what has no half-close: each frame is its length
// in four bytes, the highest first, and so many bytes; a length of 0 is the stream's end. Who
// has read the end closes the connection; who has sent it waits for that, as closing first may
// throw away what is under way (`StreamFraming` in gantry/process.h).
//
// No byte may be lost or doubled by an engine that is killed between any two instructions, and
// how much of a frame is still to come is known to nobody else. So bytes go through a pipe, the
// part, that is filled only when it is empty, and eight bytes of a file in memory say what is
// being done (`FrameState`); the keeper holds both. While the part is being filled nothing is
// taken from it: so what it holds says how far that had come, and what is written down
// afterwards is written before any of it is passed on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

namespace gantry::io {

/// What a copy's source is filled by, where that is a pipe which does not fill by itself.
/// Thread: the relay's.
class Feed {
 public:
  enum class Filled {
    /// The pipe has something.
    kSome,
    /// It has nothing until `fd` is readable.
    kNothing,
    /// It has nothing any more.
    kEnded,
    /// The same, without the end that should have come.
    kCutOff,
  };

  Feed() = default;
  Feed(const Feed&) = delete;
  Feed& operator=(const Feed&) = delete;
  virtual ~Feed() = default;

  /// Errors: the kernel's; then it has ended.
  virtual Result<Filled> Fill() = 0;
  virtual int fd() const = 0;
};

/// What is being done with a frame.
struct FrameState {
  enum class Step : uint32_t {
    /// A header is being put into the part. For who reads `value` has as many bytes of it as the
    /// part; for who writes it is the length.
    kHeader = 0,
    /// Only who reads: the header is being taken out of the part. `value`: the length.
    kHeaderKnown = 1,
    /// The part is empty, or is being filled; `value` bytes of the frame were to come before.
    kFill = 2,
    /// The part is being passed on; `value` bytes of the frame are to come after it.
    kPass = 3,
    /// Only who writes: the end's header is being passed on.
    kPassEnd = 4,
    kEnd = 5,
    /// Only who writes: no frame has begun.
    kNone = 6,
  };

  Step step = Step::kHeader;
  uint32_t value = 0;
};

/// What outlives the engine beside the socket. Owner: the caller; a copy of both is to be with
/// the keeper before the first `Fill`.
struct FrameFiles {
  UniqueFd state;
  /// The part's read end.
  UniqueFd part;

  static Result<FrameFiles> Make();
  Result<FrameFiles> Duplicate() const;

  explicit operator bool() const { return state && part; }
};

/// A feed whose part gets the payload of the frames that come from `socket`.
/// Errors: the kernel's; kInternal: `files` are not such files.
Result<std::unique_ptr<Feed>> ReadFrames(UniqueFd socket, FrameFiles files);
/// A feed whose part gets what comes from `pipe` as frames, and at its end theirs. `pipe`: nobody
/// else reads from it; none: nothing but the end.
Result<std::unique_ptr<Feed>> WriteFrames(UniqueFd pipe, FrameFiles files);

}  // namespace gantry::io
