// SPDX-License-Identifier: Apache-2.0
//
// The engine's end of the link to the keeper: questions with answers as
// coroutines, and what the keeper says of its own accord through one observer.
// The messages and their order are in core/link/messages.h.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include <gantry/error.h>
#include <gantry/host_process.h>
#include <gantry/toolkit/process/process_id.h>
#include <gantry/unique_fd.h>

#include "core/async/co.h"
#include "core/async/loop.h"
#include "core/keeper_client/parked_streams.h"
#include "core/link/channel.h"
#include "core/link/messages.h"
#include "core/os/process.h"

namespace gantry::keeper_client {

/// What the keeper says unasked. Thread: loop.
class KeeperObserver {
 public:
  virtual ~KeeperObserver() = default;

  virtual void OnInstanceAdded(link::InstanceAdded instance) = 0;
  virtual void OnInstanceRemoved(link::InstanceRemoved removed) = 0;
  /// A process ended. Comes again to the next engine until `AckExit`.
  virtual void OnExit(const link::Exit& exit) = 0;
  /// What an engine before this one spawned by name and what still runs.
  virtual void OnNamedSpawn(const link::NamedSpawn& spawn) = 0;
  virtual void OnEndedNames(const link::EndedNames& ended) = 0;
  /// Those whose ends the keeper waits for: they need no `Adopt`.
  virtual void OnWatched(const link::Watched& watched) = 0;
  /// Names in the descriptor store, as an earlier engine left them.
  virtual void OnStoredNames(std::vector<std::string> names) = 0;
  /// Everything from before has been said; requests follow.
  virtual void OnSnapshotEnd() = 0;
  virtual void OnRequest(link::Request request) = 0;
  virtual void OnConnectionClosed(uint64_t connection) = 0;
  virtual void OnDeleteCall(const link::DeleteCall& call) = 0;
  /// The keeper is gone: the engine has nothing left to do.
  virtual void OnKeeperLost(Error error) = 0;

  /// The keeper wanted to know whether the loop turns, and was told.
  virtual void OnPinged() {}

 protected:
  KeeperObserver() = default;
};

struct SpawnedProcess {
  ProcessId id;
  UniqueFd pidfd;
};

/// A descriptor for the keeper's store.
struct ToStore {
  std::string name;
  UniqueFd fd;
  link::StoreAs as = link::StoreAs::kItself;
};

/// Thread: loop. Must outlive every coroutine it has started.
class KeeperLink {
 public:
  /// Owner: takes the socket; `observer` must outlive the link.
  KeeperLink(async::Loop& loop, UniqueFd socket, KeeperObserver& observer);
  KeeperLink(const KeeperLink&) = delete;
  KeeperLink& operator=(const KeeperLink&) = delete;
  ~KeeperLink();

  /// Says who we are; the snapshot follows. The keeper ends an engine that does not
  /// turn its loop for `answers_within` (zero: it does not look), or notes it.
  Status SayHello(std::chrono::milliseconds answers_within, bool keep_hanging);

  /// `group`: the address of the group for which it is, whose limits it gets; "": none's.
  /// Errors: kNotFound where the program is missing; kFailedPrecondition where the keeper is of
  /// before it could confine a process as asked; else as the step that failed, named in the
  /// message.
  async::Task<Result<SpawnedProcess>> Spawn(SpawnRequest request, std::string group = {});
  /// Makes the end of an orphan known. With `start_time` 0: the newest process
  /// of that pid, also one that has just been reaped. Answers its start time.
  /// `name`: finds it again, as the tag of a spawn. Errors: kNotFound; kFailedPrecondition
  /// where the keeper is of before it could give a name.
  async::Task<Result<uint64_t>> Adopt(HostPid pid, uint64_t start_time, std::string name = {});
  /// The end of a process is on record elsewhere, or matters no more.
  void AckExit(const ProcessId& process);

  /// Errors: kResourceExhausted: the store is full.
  async::Task<Status> Put(std::string name, UniqueFd fd);
  /// All in one message. After an error some of them may be stored.
  async::Task<Status> PutAll(std::vector<ToStore> all);
  async::Task<Result<UniqueFd>> Take(std::string name);
  /// Several with one question; one result for each, in their order.
  async::Task<std::vector<Result<UniqueFd>>> TakeAll(std::vector<std::string> names);
  void Drop(std::string name);
  /// How processes ended that were spawned under names that begin with `prefix` is asked for by
  /// nobody any more.
  void ForgetEnded(std::string prefix);
  /// Returns when everything has been taken in that the keeper had sent when it read
  /// this: the replayed requests, too, where it is called at the snapshot's end.
  async::Task<void> Sync();

  /// A container that joins the group of `address` without a `start` of its own.
  async::Task<Result<link::InstanceAdded>> AddMember(std::string address, std::string id,
                                                     std::string bundle);
  /// Says nothing where the keeper has this very last resort.
  void Protect(uint64_t instance, link::LastResort last_resort);
  void Forget(link::Forget tombstone);
  void Respond(uint64_t connection, uint32_t stream, std::string payload);
  void AnswerDelete(const link::DeleteDone& done);

  /// Clients' streams that no process has yet. Those that are taken, the keeper is told of.
  ParkedStreams& streams() { return streams_; }

  /// What is taken up now, so that a crash is blamed on it. A keeper of before it is not told.
  void TellRecovery(const link::Recovering& said);

  /// All that was said has left this process.
  bool flushed() const { return channel_->queued_bytes() == 0; }

 private:
  struct Pending;

  void OnMessage(link::Message message);
  void OnAnswer(uint64_t tag, link::Message message);
  bool Keep(link::Message& message);
  bool Announce(const link::Message& message);
  async::Task<Result<link::Message>> Ask(uint64_t tag, link::Type type, std::string body,
                                         std::vector<UniqueFd> fds);
  /// True: it was for `handler`, or is not what its type says, which is logged.
  template <class T, class Handler>
  bool Deliver(const link::Message& message, Handler&& handler);

  KeeperObserver& observer_;
  uint64_t next_tag_ = 1;
  bool hears_recovery_ = false;
  bool keeper_confines_ = false;
  bool keeper_fills_roots_ = false;
  std::map<uint64_t, Pending*> pending_;
  /// A digest of what the keeper has, by instance.
  std::unordered_map<uint64_t, size_t> protected_;
  std::unique_ptr<link::Channel> channel_;
  ParkedStreams streams_;
};

}  // namespace gantry::keeper_client
