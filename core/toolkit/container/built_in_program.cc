// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>

#include <gantry/toolkit/container/built_in_program.h>

namespace gantry::container {

std::span<char> BuiltInProgram::StackOfThread() const {
  pthread_attr_t attributes{};
  if (::pthread_getattr_np(::pthread_self(), &attributes) != 0) {
    return {};
  }
  void* lowest = nullptr;
  size_t size = 0;
  const int failed = ::pthread_attr_getstack(&attributes, &lowest, &size);
  ::pthread_attr_destroy(&attributes);
  return failed == 0 ? std::span(static_cast<char*>(lowest), size) : std::span<char>();
}

}  // namespace gantry::container
