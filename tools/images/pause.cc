// SPDX-License-Identifier: Apache-2.0
//
// The pause program of the image that tools/lib/images.sh makes: holds a
// pod's namespaces, reaps what is left to it, ends on SIGTERM and SIGINT.

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

void Reap(int) {
  while (waitpid(-1, nullptr, WNOHANG) > 0) {
  }
}

void End(int) { _exit(0); }

}  // namespace

int main() {
  signal(SIGCHLD, Reap);
  signal(SIGTERM, End);
  signal(SIGINT, End);
  for (;;) {
    pause();
  }
}
