// SPDX-License-Identifier: Apache-2.0
//
// What is said of an exception that nobody catches, before the agent's end, which is the machine's.
// In place of libstdc++'s own function of this name, which brings what makes types' names readable:
// 57 KB in each machine.
#include <cstdio>
#include <cstdlib>
#include <exception>

namespace __gnu_cxx {  // NOLINT(bugprone-reserved-identifier): the library's

// NOLINTNEXTLINE(bugprone-reserved-identifier)
void __verbose_terminate_handler() {
  if (const std::exception_ptr thrown = std::current_exception()) {
    try {
      std::rethrow_exception(thrown);
    } catch (const std::exception& exception) {
      std::fprintf(stderr, "gantry-agent: nobody catches: %s\n", exception.what());
    } catch (...) {
      std::fputs("gantry-agent: nobody catches an exception\n", stderr);
    }
  }
  std::abort();
}

}  // namespace __gnu_cxx
