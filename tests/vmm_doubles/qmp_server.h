// SPDX-License-Identifier: Apache-2.0
//
// A QEMU's monitor without a QEMU: it greets, negotiates, answers what the double says, and goes
// wrong as a test wants. Like QEMU it serves one client at a time and then waits for the next.
// Source: QEMU 10.0, docs/interop/qmp-spec.rst.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

#include <gantry/unique_fd.h>

namespace gantry::test {

enum class QmpFault {
  /// No answer.
  kSilence,
  /// The answer, after that of the next request.
  kLate,
  /// The connection ends without an answer.
  kDrop,
  /// A part of the answer, then the connection's end.
  kHalf,
  /// `bytes` before the answer.
  kBytes,
};

/// Thread: its own.
class QmpServer {
 public:
  /// A member "return" or "error".
  using Handler =
      std::function<nlohmann::json(const nlohmann::json& request, std::vector<UniqueFd>& fds)>;

  QmpServer(UniqueFd listener, Handler handler);
  QmpServer(const QmpServer&) = delete;
  QmpServer& operator=(const QmpServer&) = delete;
  ~QmpServer();

  /// The next request of that name goes wrong in that way. It has its effect all the same.
  void FailNext(const std::string& command, QmpFault fault, std::string bytes = {});
  /// An event, or anything, to whoever is connected.
  void Say(const std::string& line);
  void Emit(const std::string& event, const nlohmann::json& data);
  /// Ends the connection that there is.
  void CutOff();

  /// Without their ids, each in its line, in order.
  std::vector<std::string> Requests() const;
  int connections() const;

 private:
  struct Wrong {
    std::string command;
    QmpFault fault;
    std::string bytes;
  };

  void Accept();
  void Serve(int fd);
  /// False: the connection has ended.
  bool Answer(int fd, const std::string& line, std::vector<UniqueFd>& fds);
  bool Reply(int fd, const std::string& command, std::string text);
  void Send(int fd, std::string_view text);

  const Handler handler_;
  UniqueFd listener_;
  /// Guards all below.
  mutable std::mutex mutex_;
  UniqueFd connection_;
  std::vector<Wrong> wrong_;
  std::vector<std::string> requests_;
  std::string late_;
  int connections_ = 0;
  bool ended_ = false;
  std::thread thread_;
};

nlohmann::json Returns(nlohmann::json value = nlohmann::json::object());
nlohmann::json QmpError(const std::string& error_class, const std::string& text);

}  // namespace gantry::test
