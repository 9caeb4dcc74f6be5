// SPDX-License-Identifier: Apache-2.0
#include "plugins/wasm/fetch/containerd_store.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/unique_fd.h>

#include "core/os/fs.h"
#include "plugins/wasm/fetch/module_of.h"
#include "tests/unit/wasm/fetch/fake_store.h"
#include "tests/unit/wasm/fetch/store_server.h"

namespace gantry::wasm::fetch {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

class WasmContainerdStore : public ::testing::Test {
 protected:
  std::string Address() const { return dir_.path() + "/c.sock"; }

  Result<std::string> Get(Store& store, const std::string& digest, uint64_t most = 0) {
    std::string text;
    GANTRY_CHECK_OK(store.Read(digest, most, [&](std::string_view bytes) -> Status {
      text += bytes;
      return {};
    }));
    return text;
  }

  os::TempDir dir_ = *os::TempDir::Create();
  FakeStore there_;
};

TEST_F(WasmContainerdStore, IsAskedOverItsSocket) {
  const Blob blob = there_.Add("application/wasm", CoreModule("some bytes"));
  there_.Use(blob);
  const StoreServer server(there_, Address(), "k8s.io");
  const auto store = OpenContainerdStore(Address(), "k8s.io", kLong);
  EXPECT_EQ(store->ImageOf("c1").value_or("?"), "image");
  const auto target = store->TargetOf("image");
  ASSERT_TRUE(target) << target.error().message;
  EXPECT_EQ(target->media_type, "application/wasm");
  EXPECT_EQ(target->digest, blob.digest);
  EXPECT_EQ(target->size, blob.size);
  EXPECT_EQ(Get(*store, blob.digest).value_or("?"), CoreModule("some bytes"));
  EXPECT_EQ(Get(*store, blob.digest, 8).value_or("?"), CoreModule());
}

TEST_F(WasmContainerdStore, OfAnotherNamespaceHasNothing) {
  there_.Use(there_.Add("application/wasm", CoreModule()));
  const StoreServer server(there_, Address(), "k8s.io");
  const auto store = OpenContainerdStore(Address(), "default", kLong);
  const auto image = store->ImageOf("c1");
  ASSERT_FALSE(image);
  EXPECT_EQ(image.error().code, Code::kNotFound);
  EXPECT_THAT(image.error().message, HasSubstr("'default'"));
  EXPECT_THAT(image.error().message, HasSubstr("container 'c1'"));
}

TEST_F(WasmContainerdStore, SaysWhatIsNotThere) {
  const StoreServer server(there_, Address(), "k8s.io");
  const auto store = OpenContainerdStore(Address(), "k8s.io", kLong);
  for (const Error& error : {store->ImageOf("c9").error(), store->TargetOf("i9").error(),
                             Get(*store, DigestOf("9")).error()}) {
    EXPECT_EQ(error.code, Code::kNotFound) << error.message;
    EXPECT_THAT(error.message, HasSubstr("ask containerd at '" + Address() + "'"));
  }
}

TEST_F(WasmContainerdStore, EndsAReadWithTheErrorOfItsReader) {
  const Blob blob = there_.Add("application/wasm", CoreModule(std::string(100'000, 'x')));
  const StoreServer server(there_, Address(), "k8s.io");
  const auto store = OpenContainerdStore(Address(), "k8s.io", kLong);
  const Status read = store->Read(blob.digest, 0, [](std::string_view) -> Status {
    return Fail(Code::kResourceExhausted, "too much");
  });
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, Code::kResourceExhausted);
  EXPECT_EQ(Get(*store, blob.digest).value_or("?").size(), blob.size) << "it can be asked again";
}

TEST_F(WasmContainerdStore, WhereNobodyListensIsUnavailable) {
  const auto store = OpenContainerdStore(Address(), "k8s.io", kLong);
  for (const Error& error : {store->ImageOf("c1").error(), store->TargetOf("image").error(),
                             Get(*store, DigestOf("x")).error()}) {
    EXPECT_EQ(error.code, Code::kUnavailable) << error.message;
    EXPECT_THAT(error.message, HasSubstr("'" + Address() + "'"));
  }
}

TEST_F(WasmContainerdStore, ThatDoesNotAnswerIsLeftAtTheLimit) {
  const UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, Address().c_str(), sizeof(address.sun_path) - 1);
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  ASSERT_EQ(::listen(listener.get(), 1), 0);
  const auto store = OpenContainerdStore(Address(), "k8s.io", milliseconds(50));
  const auto image = store->ImageOf("c1");
  ASSERT_FALSE(image);
  EXPECT_EQ(image.error().code, Code::kDeadlineExceeded) << image.error().message;
  EXPECT_THAT(image.error().message, HasSubstr("'" + Address() + "'"));
}

}  // namespace
}  // namespace gantry::wasm::fetch
