// SPDX-License-Identifier: Apache-2.0
//
// Modules that wait for the compiler, and whose is next. There are few compilers, and whoever
// makes containers may send any number of modules that take minutes each; so what is shared is
// the compiler's time, among tenants, and among the pods of one: next is a module of who has used
// least of it. Who has used none for a while is owed no more than those who used it meanwhile.
// Where there is no room left for a module more, one of who has most there gives way.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <gantry/error.h>

#include "plugins/wasm/asker.h"

namespace gantry::wasm {

/// What each of some names has used of the compiler. Thread: one.
class Accounts {
 public:
  /// To be compared: who has used less is next.
  uint64_t Of(const std::string& name) const;
  /// It is served now: what others have used before counts no more than what it has.
  void Serve(const std::string& name);
  void Charge(const std::string& name, uint64_t amount);

  /// It owes nothing to those who are served now.
  bool IsEven(const std::string& name) const { return Of(name) == served_; }

  /// More names than this are not remembered; those that have used least are forgotten first.
  static constexpr size_t kMost = 64;

  size_t size() const { return used_.size(); }

 private:
  std::map<std::string, uint64_t> used_;
  /// Of who was served last.
  uint64_t served_ = 0;
};

/// Thread: one at a time. Blocks: never.
class CompileQueue {
 public:
  struct Limits {
    /// Modules, and their bytes.
    size_t modules = 0;
    uint64_t bytes = 0;
  };

  struct Job {
    std::string key;
    /// Whose it is.
    Asker asker;
  };

  explicit CompileQueue(const Limits& limits) : limits_(limits) {}

  /// The module `key`, of so many bytes, waits for `asker`. Gives those that have lost their place
  /// to it. Errors: kResourceExhausted: there is no room, and nobody has more there than he.
  Result<std::vector<std::string>> Add(const std::string& key, uint64_t bytes, const Asker& asker);
  /// The module waits for `asker`, too, and comes when it is the turn of either. Of one that does
  /// not wait, and for more than some: nothing.
  void Join(const std::string& key, const Asker& asker);
  /// Takes the module that is next.
  std::optional<Job> Next();
  /// Its compile has taken so long.
  void Charge(const Asker& asker, std::chrono::milliseconds time);

  size_t size() const { return waiting_.size(); }

 private:
  /// For so many one module waits by their own turns; for others it comes by those.
  static constexpr size_t kMostAskers = 16;

  struct Waiting {
    std::string key;
    uint64_t bytes = 0;
    /// At least one; the first is who brought it.
    std::vector<Asker> askers;
  };

  using List = std::list<Waiting>;

  static bool MakeRoom(List& list, const Waiting& wanted, bool by_bytes,
                       std::vector<std::string>& lost);
  uint64_t UsedBySandbox(const Asker& asker) const;
  void Forget();

  const Limits limits_;
  /// In the order in which they came.
  List waiting_;
  Accounts tenants_;
  /// By tenant.
  std::map<std::string, Accounts> sandboxes_;
};

}  // namespace gantry::wasm
