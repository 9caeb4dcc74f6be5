// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace gantry::wasm {

/// A guest for a test to run, each in a process of its own.
struct Guest {
  /// Of tests/guests, without `.wasm`.
  std::string name;
  std::vector<std::string> args;
  std::vector<std::string> env = {};
  std::string entry = {};
  /// Path here, path there; a name there that ends in `:ro` is for reading only.
  std::vector<std::pair<std::string, std::string>> directories = {};
  uint64_t memory = 0;
  bool network = false;
  /// Taken by the guest; -1: none.
  int listener = -1;
  /// Of the guest; -1: nothing to read, and files to be looked at at its end.
  int in = -1;
  int out = -1;
  int err = -1;
  /// Of its main thread, in bytes; 0: as it is.
  uint64_t stack = 0;
  /// Its root, which takes the right to change it; empty: as it is.
  std::string root = {};
  /// It is not run.
  bool only_prepare = false;
};

struct GuestEnd {
  /// gantry_wasm_error.
  int prepared = -1;
  /// gantry_wasm_end, of what was prepared.
  int end = -1;
  uint32_t code = 0;
  std::string why;
  /// Where `out` and `err` were -1.
  std::string out;
  std::string err;
  /// Of the process, as waitpid says: 0 unless it died.
  int status = -1;
};

/// The artifact of a guest of tests/guests, open for reading; compiled once in a process.
int ArtifactOf(const std::string& name);

/// gantry_wasm_kind.
uint32_t KindOf(const std::string& name);

class RunningGuest {
 public:
  explicit RunningGuest(const Guest& guest);
  RunningGuest(const RunningGuest&) = delete;
  RunningGuest& operator=(const RunningGuest&) = delete;
  /// Kills it.
  ~RunningGuest();

  pid_t Pid() const { return pid_; }

  /// Its threads, as /proc says.
  int Threads() const;
  /// Waits for its end.
  GuestEnd End();

 private:
  pid_t pid_ = -1;
  int report_;
  int out_;
  int err_;
};

GuestEnd RunGuest(const Guest& guest);

}  // namespace gantry::wasm
