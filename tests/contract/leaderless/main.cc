// SPDX-License-Identifier: Apache-2.0
//
// A process whose first thread has ended while another waits: a zombie to whoever looks at
// it, and alive.
#include <pthread.h>
#include <unistd.h>

namespace {

void* WaitForEver(void*) {
  for (;;) {
    pause();
  }
}

}  // namespace

int main() {
  pthread_t thread{};
  if (pthread_create(&thread, nullptr, WaitForEver, nullptr) != 0) {
    return 1;
  }
  pthread_exit(nullptr);
}
