// SPDX-License-Identifier: Apache-2.0
//
// A stream of a process, on a connection of its own: what the process writes goes out in frames,
// what comes in frames goes to what it reads; or both, of a terminal. It takes from one side only
// what the other has taken, so a reader that is slow holds up this stream and no other.
//
// The empty frame is the end. Who has read it closes: so when the output has ended, the agent waits
// for the host's close, and when the input has, it closes itself.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

#include "plugins/vmm/guest/loop.h"
#include "plugins/vmm/protocol/frames.h"

namespace gantry::vmm::guest {

/// Thread: the loop's.
class Stream {
 public:
  /// A frame of the host's: what a pipe holds. A longer one is none.
  static constexpr size_t kMaxFrame = size_t{16} << 20;

  /// `socket`: of `Platform::Dial`. `source`: what the process writes to; `sink`: what it reads
  /// from; of a terminal two descriptors of the same. None of them blocks; those that are not there
  /// are empty. `failed`: the host could not be dialled, and that is the errno.
  Stream(Loop& loop, UniqueFd socket, const std::string& token, UniqueFd source, UniqueFd sink,
         std::function<void(int error)> failed);
  /// One whose process is not there yet: it says its token, and reads nothing.
  Stream(Loop& loop, UniqueFd socket, const std::string& token,
         std::function<void(int error)> failed);
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() = default;

  /// The process of such a one has come. `first` goes out in a frame of its own before all else.
  /// Where the host has left meanwhile: nothing.
  void Begin(std::string_view first, UniqueFd source, UniqueFd sink);
  /// It will not come: `last` goes out, and the end.
  void End(std::string_view last);

  /// There is nothing left to do.
  bool done() const { return !socket_; }

  /// It has an output, whose end may have come.
  bool speaks() const { return source_ || source_ended_; }

 private:
  void WatchEnds();
  void OnSocket(uint32_t events);
  void OnSource();
  void OnSink();

  void Connected();
  /// All that is to be sent and can be. False: the connection is gone.
  bool Flush();
  void ReadSocket();
  /// Takes frames apart. False: they are none.
  bool Take(std::string_view bytes);
  void Deliver(std::string_view bytes);
  void EndSink();
  void EndSource();
  void Close();
  void Arm();

  std::function<void(int error)> failed_;
  Loop& loop_;
  UniqueFd socket_;
  UniqueFd source_;
  UniqueFd sink_;
  bool connected_ = false;
  /// There is no process yet.
  bool waits_ = false;
  /// Of the output: its end is among what is to be sent.
  bool source_ended_ = false;
  /// Of the input: its end has come.
  bool input_ended_ = false;
  std::string to_socket_;
  std::string to_sink_;
  std::array<char, protocol::kHeaderBytes> header_{};
  size_t header_has_ = 0;
  size_t frame_left_ = 0;
  Loop::Watch on_socket_;
  Loop::Watch on_source_;
  Loop::Watch on_sink_;
};

}  // namespace gantry::vmm::guest
