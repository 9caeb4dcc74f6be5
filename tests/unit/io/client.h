// SPDX-License-Identifier: Apache-2.0
//
// containerd's client as the streams see it: it makes the fifos and opens its
// ends in the background with a blocking open(2).
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include <gantry/unique_fd.h>

#include "core/io/process_io.h"
#include "core/os/fs.h"
#include "tests/unit/io/fakes.h"

namespace gantry::io {

/// Reads a fifo until its end. Ends with the object in any case.
class Reader {
 public:
  /// `limit`: stops and closes after that many bytes.
  explicit Reader(std::string path, size_t limit = SIZE_MAX, bool paused = false);
  ~Reader();
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  void Resume() { paused_ = false; }

  /// Waits for the end (or the limit); false when it does not come.
  bool AwaitEnd();
  bool AwaitText(const std::string& text);

  bool at_end() const { return ended_; }

  size_t size();
  std::string text();

 private:
  void Run(size_t limit);

  const std::string path_;
  UniqueFd stop_;
  std::atomic<bool> paused_;
  std::atomic<bool> stopping_ = false;
  std::atomic<bool> ended_ = false;
  std::mutex mutex_;
  std::string text_;
  std::thread thread_;
};

/// Opens a fifo for writing as the client does and writes `text`; closed with
/// the object.
class Writer {
 public:
  explicit Writer(const std::string& path);
  /// Everything, or false after 10 s.
  bool Write(std::string_view text);

  void Close() { fd_.reset(); }

 private:
  UniqueFd fd_;
};

/// A terminal in raw mode.
struct Terminal {
  Terminal();

  UniqueFd master;
  UniqueFd slave;
};

/// `bytes` characters that differ everywhere.
std::string Pattern(size_t bytes);

class IoTest : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) { return dir_.path() + "/" + name; }

  std::string Fifo(const std::string& name);
  std::string File(const std::string& name, const std::string& text, int mode = 0644);
  std::string Contents(const std::string& name);

  /// Opens the streams and fails the test where that does not work.
  std::unique_ptr<ProcessIo> Open(const StdioPaths& paths);
  /// The engine crashes and a new one comes.
  void Restart(std::unique_ptr<ProcessIo>& io, const StdioPaths& paths);
  bool Drained(ProcessIo& io);

  /// What the engine's loop has still to do may use the relay.
  void TearDown() override { host_.Settle(); }

  StdioOptions options_;
  os::TempDir dir_ = os::TempDir::Create().value();
  FakeHost host_;
  std::unique_ptr<Relay> relay_ = std::make_unique<Relay>();
};

}  // namespace gantry::io
