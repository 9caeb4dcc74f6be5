// SPDX-License-Identifier: Apache-2.0
//
// The control socket, $GANTRY_RUN_DIR/keeper.sock: where shim and gantryctl ask.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string_view>

#include <gantry/error.h>
#include <gantry/unique_fd.h>

#include "core/async/loop.h"
#include "core/keeper/state.h"
#include "core/link/channel.h"

namespace gantry::keeper {

/// Thread: the keeper's only one. Blocks: never.
class Control {
 public:
  static constexpr size_t kMaxClients = 1024;

  /// Sends one answer; does nothing when the client has gone. May be kept.
  class Reply {
   public:
    Reply(Control& control, uint64_t client) : control_(&control), client_(client) {}

    template <class T>
    void operator()(const T& answer) const {
      control_->Send(client_, T::kType, EncodeProto(answer));
    }

    void Fail(const Error& error) const {
      (*this)(link::Failed{static_cast<int32_t>(error.code), error.message});
    }

    uint64_t client() const { return client_; }

   private:
    Control* control_;
    uint64_t client_;
  };

  using Handler = std::function<void(link::Message, Reply)>;

  /// Owner: takes the listening socket.
  Control(async::Loop& loop, UniqueFd listener, Handler handler);
  ~Control();
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

  /// No client is in the middle of a message.
  bool idle() const;

  /// `asker`: the client that the next program is to answer.
  state::Control Save(uint64_t asker) const;
  /// Takes the clients over. The asker's answer, where it is still there.
  std::optional<Reply> Restore(const state::Control& state);

 private:
  void Accept();
  uint64_t Add(UniqueFd socket);
  void Send(uint64_t client, link::Type type, std::string_view body);

  async::Loop& loop_;
  UniqueFd listener_;
  async::WatchId watch_{};
  Handler handler_;
  uint64_t next_ = 1;
  std::map<uint64_t, std::unique_ptr<link::Channel>> clients_;
};

}  // namespace gantry::keeper
