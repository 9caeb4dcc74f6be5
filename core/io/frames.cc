// SPDX-License-Identifier: Apache-2.0
//
// Each loop looks at what the part holds first, and every step leaves something by which the
// next engine tells whether it was done: that is what makes a killed engine harmless here, so
// no step may be merged with the one before it.
#include "core/io/frames.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include <gantry/toolkit/descriptors/memfd.h>
#include <gantry/toolkit/descriptors/pipe.h>

#include "core/os/fifo.h"
#include "core/os/poll.h"
#include "core/os/splice.h"

namespace gantry::io {
namespace {

using Step = FrameState::Step;

constexpr size_t kHeaderBytes = 4;
constexpr size_t kFrameChunk = size_t{64} << 10;

class Frames : public Feed {
 public:
  Frames(UniqueFd from, FrameFiles files, UniqueFd part_in)
      : from_(std::move(from)), files_(std::move(files)), part_in_(std::move(part_in)) {}

  /// As an engine before this one has left it; a new one begins with `first`.
  Status Load(Step first) {
    GANTRY_TRY(const std::string bytes, ReadAt(files_.state.get(), 0, sizeof(state_)));
    if (bytes.empty()) {
      return Set(first, 0);
    }
    if (bytes.size() == sizeof(state_)) {
      std::memcpy(&state_, bytes.data(), sizeof(state_));
    }
    if (bytes.size() != sizeof(state_) || state_.step > Step::kNone) {
      return Fail(Code::kInternal, "take up the frames of a stream: what is on record is no state");
    }
    return {};
  }

  Result<Filled> Fill() override {
    for (;;) {
      GANTRY_TRY(const size_t held, os::BytesQueued(files_.part.get()));
      GANTRY_TRY(const std::optional<Filled> filled, Next(held));
      if (filled) {
        return *filled;
      }
    }
  }

  int fd() const override { return from_.get(); }

 protected:
  /// None: to be asked again. `held`: bytes in the part.
  virtual Result<std::optional<Filled>> Next(size_t held) = 0;

  const FrameState& state() const { return state_; }

  int part() const { return files_.part.get(); }

  int part_in() const { return part_in_.get(); }

  /// A page is written as a whole or, by who is killed, not at all.
  Status Set(Step step, uint32_t value) {
    const FrameState next{.step = step, .value = value};
    std::array<char, sizeof(next)> bytes{};
    std::memcpy(bytes.data(), &next, sizeof(next));
    GANTRY_CHECK_OK(WriteAt(files_.state.get(), 0, {bytes.data(), bytes.size()}));
    state_ = next;
    return {};
  }

  Result<std::optional<Filled>> FillPart(size_t held) {
    if (held > 0) {
      GANTRY_CHECK_OK(Set(Step::kPass, state_.value - static_cast<uint32_t>(held)));
      return Filled::kSome;
    }
    GANTRY_TRY(const Transfer moved, os::Splice(from_.get(), part_in_.get(),
                                                std::min<size_t>(state_.value, kFrameChunk)));
    if (moved.end) {
      return Filled::kCutOff;
    }
    return moved.would_block ? std::optional(Filled::kNothing) : std::nullopt;
  }

 private:
  const UniqueFd from_;
  const FrameFiles files_;
  const UniqueFd part_in_;
  FrameState state_;
};

class Reader : public Frames {
 public:
  using Frames::Frames;

 private:
  Result<std::optional<Filled>> Next(size_t held) override {
    switch (state().step) {
      case Step::kHeader:
        return held == kHeaderBytes ? Then(Set(Step::kHeaderKnown, state().value))
                                    : TakeHeader(held);
      case Step::kHeaderKnown:
        if (held > 0) {
          std::array<char, kHeaderBytes> header{};
          return Then(os::ReadSome(part(), header));
        }
        return Then(Set(state().value == 0 ? Step::kEnd : Step::kFill, state().value));
      case Step::kFill:
        return FillPart(held);
      case Step::kPass:
        if (held > 0) {
          return Filled::kSome;
        }
        return Then(state().value == 0 ? Set(Step::kHeader, 0) : Set(Step::kFill, state().value));
      default:
        return Filled::kEnded;
    }
  }

  template <class Done>
  static Result<std::optional<Filled>> Then(const Done& done) {
    GANTRY_CHECK_OK(done);
    return std::optional<Filled>();
  }

  /// Looks at bytes of it, writes them down, then moves them: they are in the socket or in the
  /// part, and what is written down is right either way.
  Result<std::optional<Filled>> TakeHeader(size_t held) {
    std::array<unsigned char, kHeaderBytes> bytes{};
    const ssize_t seen = recv(fd(), bytes.data(), kHeaderBytes - held, MSG_PEEK | MSG_DONTWAIT);
    if (seen == 0) {
      return Filled::kCutOff;
    }
    if (seen < 0) {
      if (errno == EAGAIN || errno == EINTR) {
        return errno == EAGAIN ? std::optional(Filled::kNothing) : std::nullopt;
      }
      return FailErrno(errno, "read a frame of a stream");
    }
    uint32_t value = state().value;
    for (size_t i = 0; i < static_cast<size_t>(seen); ++i) {
      const size_t shift = 8 * (kHeaderBytes - 1 - held - i);
      value = (value & ~(uint32_t{0xff} << shift)) | (uint32_t{bytes.at(i)} << shift);
    }
    GANTRY_CHECK_OK(Set(Step::kHeader, value));
    GANTRY_TRY(const Transfer moved, os::Splice(fd(), part_in(), static_cast<size_t>(seen)));
    return moved.would_block ? std::optional(Filled::kNothing) : std::nullopt;
  }
};

class Writer : public Frames {
 public:
  using Frames::Frames;

 private:
  Result<std::optional<Filled>> Next(size_t held) override {
    switch (state().step) {
      case Step::kNone:
        return Begin();
      case Step::kHeader:
        return PutHeader(held);
      case Step::kFill:
        return FillPart(held);
      case Step::kPass:
      case Step::kPassEnd:
        if (held > 0) {
          return Filled::kSome;
        }
        GANTRY_CHECK_OK(Set(AfterPass(), state().value));
        return std::optional<Filled>();
      default:
        return Filled::kEnded;
    }
  }

  Step AfterPass() const {
    if (state().step == Step::kPassEnd) {
      return Step::kEnd;
    }
    return state().value == 0 ? Step::kNone : Step::kFill;
  }

  /// What the pipe has is a frame: it stays there until then, as nobody else reads.
  Result<std::optional<Filled>> Begin() {
    size_t length = 0;
    if (fd() >= 0) {
      // In this order: what comes between the two is seen by the second.
      GANTRY_TRY(length, os::BytesQueued(fd()));
      GANTRY_TRY(const uint32_t ready, os::Poll(fd(), EPOLLIN, {}));
      if (length == 0 && (ready & EPOLLHUP) == 0) {
        return (ready & EPOLLIN) == 0 ? std::optional(Filled::kNothing) : std::nullopt;
      }
      if (length == 0 && (ready & EPOLLIN) != 0) {
        return std::optional<Filled>();
      }
    }
    GANTRY_CHECK_OK(Set(Step::kHeader, static_cast<uint32_t>(length)));
    return std::optional<Filled>();
  }

  Result<std::optional<Filled>> PutHeader(size_t held) {
    const uint32_t length = state().value;
    if (held == kHeaderBytes) {
      GANTRY_CHECK_OK(Set(length == 0 ? Step::kPassEnd : Step::kPass, length));
      return Filled::kSome;
    }
    const std::array<char, kHeaderBytes> header = {
        static_cast<char>(length >> 24), static_cast<char>(length >> 16),
        static_cast<char>(length >> 8), static_cast<char>(length)};
    // Into an empty pipe: all of it.
    GANTRY_CHECK_OK(os::WriteSome(part_in(), header));
    return std::optional<Filled>();
  }
};

template <class Kind>
Result<std::unique_ptr<Feed>> Open(UniqueFd from, FrameFiles files, Step first) {
  GANTRY_TRY(UniqueFd part_in, os::OpenPipeEnd(files.part.get(), os::PipeEnd::kWrite));
  if (from) {
    GANTRY_CHECK_OK(SetNonblocking(from.get(), true));
  }
  auto frames = std::make_unique<Kind>(std::move(from), std::move(files), std::move(part_in));
  GANTRY_CHECK_OK(frames->Load(first));
  return std::unique_ptr<Feed>(std::move(frames));
}

}  // namespace

Result<FrameFiles> FrameFiles::Make() {
  FrameFiles made;
  GANTRY_TRY(made.state, CreateMemfd("gantry-frames"));
  GANTRY_TRY(auto ends, MakePipe());
  made.part = std::move(ends.first);
  return made;
}

Result<FrameFiles> FrameFiles::Duplicate() const {
  FrameFiles copy;
  GANTRY_TRY(copy.state, state.Duplicate());
  GANTRY_TRY(copy.part, part.Duplicate());
  return copy;
}

Result<std::unique_ptr<Feed>> ReadFrames(UniqueFd socket, FrameFiles files) {
  return Open<Reader>(std::move(socket), std::move(files), Step::kHeader);
}

Result<std::unique_ptr<Feed>> WriteFrames(UniqueFd pipe, FrameFiles files) {
  return Open<Writer>(std::move(pipe), std::move(files), Step::kNone);
}

}  // namespace gantry::io
