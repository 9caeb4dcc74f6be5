// SPDX-License-Identifier: Apache-2.0
//
// An engine that does nothing by itself: it sends its link (descriptor 3) to the
// test's socket and waits. The test then speaks for it. A byte from the test ends it with that
// number, the end of the stream as well; SIGTERM as any program.
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

#include <gantry/toolkit/descriptors/unix_socket.h>

int main() {
  const char* const path = std::getenv("GANTRY_TEST_ENGINE_SOCKET");
  if (path == nullptr) {
    return 2;
  }
  const auto socket = gantry::ConnectUnix(path);
  if (!socket) {
    return 3;
  }
  const std::array<int, 1> fds = {3};
  const std::array<char, 1> hello = {'e'};
  if (!gantry::SendWithFds(socket->get(), hello, fds)) {
    return 4;
  }
  close(3);
  pollfd wanted{socket->get(), POLLIN, 0};
  poll(&wanted, 1, 60'000);
  char number = 0;
  return read(socket->get(), &number, 1) == 1 ? number : 5;
}
