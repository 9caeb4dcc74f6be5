// SPDX-License-Identifier: Apache-2.0
//
// gantry-wasm-fetch: gets the module of an image out of containerd's content store, where the image
// has it as a layer of its own and not as a file; or says what that store has. It lives for one
// such question, since gRPC's libraries are not to be in the engine, and answers as answer.h says.
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gantry/platform.h>

#include "plugins/wasm/fetch/answer.h"
#include "plugins/wasm/fetch/arguments.h"
#include "plugins/wasm/fetch/confine.h"
#include "plugins/wasm/fetch/containerd_digests.h"
#include "plugins/wasm/fetch/containerd_store.h"
#include "plugins/wasm/fetch/digests.h"

namespace gantry::wasm::fetch {
namespace {

Result<ImageAnswer> Fetch(const FetchArguments& arguments) {
  const auto store = OpenContainerdStore(arguments.address, arguments.ns, arguments.limit);
  return FetchModule(*store, arguments.request, arguments.module);
}

Result<std::string> List(const FetchArguments& arguments) {
  DigestWriter writer(arguments.digests);
  GANTRY_CHECK_OK(ListContent(arguments.address, arguments.limit,
                              [&](std::string_view digest) { return writer.Add(digest); }));
  return writer.Finish();
}

// A sanitizer's own calls are none of those that are left.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kConfined = false;
#else
constexpr bool kConfined = true;
#endif

std::string AnswerTo(const FetchArguments& arguments) {
  if (const Status confined = kConfined ? GiveUpCalls() : Status(); !confined) {
    return ErrorText(confined.error());
  }
  if (arguments.digests < 0) {
    return AnswerText(Fetch(arguments));
  }
  auto listed = List(arguments);
  return listed ? std::move(*listed) : ErrorText(listed.error());
}

int Main(const std::vector<std::string>& words) {
  auto arguments = ReadFetchArguments(words);
  if (!arguments) {
    std::fprintf(stderr, "gantry-wasm-fetch: %s\n%s", arguments.error().message.c_str(),
                 FetchUsage());
    return 2;
  }
  arguments->request.host_architecture = HostPlatform().architecture;
  const std::string text = AnswerTo(*arguments);
  std::string_view left = text;
  while (!left.empty()) {
    const ssize_t wrote = ::write(arguments->result, left.data(), left.size());
    if (wrote < 0 && errno != EINTR) {
      return 1;  // Who asked is gone.
    }
    left.remove_prefix(wrote < 0 ? 0 : static_cast<size_t>(wrote));
  }
  return 0;
}

}  // namespace
}  // namespace gantry::wasm::fetch

int main(int argc, char** argv) {
  return gantry::wasm::fetch::Main(
      std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc));
}
