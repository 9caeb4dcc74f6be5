// SPDX-License-Identifier: Apache-2.0
// Preview 1 makes no sockets, and nobody gives the guest one.
#include "suite.h"

void Test_sock_accept(void) {
  __wasi_fd_t got = -1;
  EXPECT(__WASI_ERRNO_NOTSOCK, __wasi_sock_accept(Given("/"), 0, &got));
  EXPECT(__WASI_ERRNO_NOTSOCK, __wasi_sock_accept(1, __WASI_FDFLAGS_NONBLOCK, &got));
  EXPECT(__WASI_ERRNO_BADF, __wasi_sock_accept(NOT_OPEN, 0, &got));
}

void Test_sock_recv(void) {
  uint8_t bytes[8];
  const __wasi_iovec_t buffer = {bytes, sizeof bytes};
  __wasi_size_t got = 0;
  __wasi_roflags_t flags = 0;
  EXPECT(__WASI_ERRNO_NOTSOCK, __wasi_sock_recv(0, &buffer, 1, 0, &got, &flags));
  EXPECT(__WASI_ERRNO_NOTSOCK,
         __wasi_sock_recv(Given("/"), &buffer, 1, __WASI_RIFLAGS_RECV_PEEK, &got, &flags));
  EXPECT(__WASI_ERRNO_BADF, __wasi_sock_recv(NOT_OPEN, &buffer, 1, 0, &got, &flags));
}

void Test_sock_send(void) {
  const __wasi_ciovec_t buffer = {(const uint8_t*)"x", 1};
  __wasi_size_t put = 0;
  EXPECT(__WASI_ERRNO_NOTSOCK, __wasi_sock_send(1, &buffer, 1, 0, &put));
  EXPECT(__WASI_ERRNO_BADF, __wasi_sock_send(NOT_OPEN, &buffer, 1, 0, &put));
}

void Test_sock_shutdown(void) {
  EXPECT(__WASI_ERRNO_NOTSOCK, __wasi_sock_shutdown(1, __WASI_SDFLAGS_WR));
  EXPECT(__WASI_ERRNO_NOTSOCK, __wasi_sock_shutdown(Given("/"), __WASI_SDFLAGS_RD));
  EXPECT(__WASI_ERRNO_BADF, __wasi_sock_shutdown(NOT_OPEN, __WASI_SDFLAGS_RD));
}
