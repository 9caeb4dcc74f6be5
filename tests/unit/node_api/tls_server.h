// SPDX-License-Identifier: Apache-2.0
//
// A server of the API for tests, at 127.0.0.1, with a certificate made for it.
#pragma once

#include <memory>
#include <string>

namespace gantry::node_api {

class TlsServer {
 public:
  /// Its certificate is written to `ca_file`, and is for `address`. It answers one connection: what
  /// it is asked is kept, `answer` is written as it is.
  TlsServer(const std::string& ca_file, const std::string& address, std::string answer);
  TlsServer(const TlsServer&) = delete;
  TlsServer& operator=(const TlsServer&) = delete;
  ~TlsServer();

  std::string port() const;

  /// What came, of head and body. Waits for its end.
  const std::string& asked();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace gantry::node_api
