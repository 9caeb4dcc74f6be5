// SPDX-License-Identifier: Apache-2.0
#include <csignal>

#include <gmock/gmock.h>

int main(int argc, char** argv) {
  ::signal(SIGPIPE, SIG_IGN);
  testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}
