// SPDX-License-Identifier: Apache-2.0
//
// Connections on which clients have opened a stream, between the keeper, which has let them in, and
// the processes whose streams they are. A client connects before the call that makes the process,
// and may be early, late or again: so connections wait for processes here, and processes for
// connections, and both are known by the socket and by the id that containerd gives a stream.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include <gantry/unique_fd.h>

namespace gantry::keeper_client {

/// Thread: the loop's.
class ParkedStreams {
 public:
  struct Stream {
    /// The keeper's number.
    uint64_t connection = 0;
    /// Of ttrpc, on that connection.
    uint32_t stream = 0;
    UniqueFd socket;
  };

  using Arrived = std::function<void(Stream)>;

  /// `took`: the keeper is to be told that it need not look after that connection any more.
  explicit ParkedStreams(std::function<void(uint64_t connection)> took) : took_(std::move(took)) {}

  /// A client has connected. One of that name that still waits is closed: the newer one counts.
  void Opened(const std::string& address, const std::string& id, Stream stream);
  /// A connection that was not taken was closed by its client.
  void Closed(uint64_t connection);

  /// Calls `arrived` with the connection that waits under that name, and with those that come,
  /// until `Forget`. Each comes to the next who awaits it, too, until it is taken.
  uint64_t Await(const std::string& address, const std::string& id, Arrived arrived);
  /// Again: harmless.
  void Forget(uint64_t awaited);
  /// Whoever has awaited it has it for good. Unknown to this object: the keeper is told all the
  /// same.
  void Took(uint64_t connection);

  size_t size() const { return names_.size(); }

 private:
  struct Name {
    std::string address;
    std::string id;

    auto operator<=>(const Name&) const = default;
  };

  struct Entry {
    /// connection 0: none waits.
    Stream parked;
    /// 0: nobody awaits one.
    uint64_t awaited = 0;
    Arrived arrived;
  };

  void Tell(Entry& entry);
  void Tidy(const Name& name);

  std::function<void(uint64_t)> took_;
  std::map<Name, Entry> entries_;
  /// Of those that are parked, by connection.
  std::map<uint64_t, Name> names_;
  std::map<uint64_t, Name> awaited_;
  uint64_t next_ = 1;
};

}  // namespace gantry::keeper_client
