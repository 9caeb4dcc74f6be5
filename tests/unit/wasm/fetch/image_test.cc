// SPDX-License-Identifier: Apache-2.0
#include "plugins/wasm/fetch/image.h"

#include <fcntl.h>
#include <unistd.h>

#include <functional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/format.h>
#include <gantry/testing/sandbox_context.h>
#include <gantry/toolkit/descriptors/memfd.h>
#include <gantry/toolkit/files/files.h>

#include "core/os/fs.h"
#include "plugins/wasm/fetch/digest.h"
#include "tests/unit/wasm/fetch/fake_store.h"
#include "tests/unit/wasm/fetch/store_server.h"

namespace gantry::wasm::fetch {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

class WasmImage : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) {
      GTEST_SKIP() << "namespaces of its own are for root";
    }
    auto dir = os::TempDir::Create();
    ASSERT_TRUE(dir) << dir.error().message;
    dir_ = std::move(*dir);
    question_.address = dir_.path() + "/c.sock";
    question_.ns = "k8s.io";
    question_.container = "c1";
    question_.program = "/app.wasm";
    question_.max_bytes = 1000;
    question_.limit = kLong;
  }

  void TearDown() override { EXPECT_EQ(context_.Alive(), 0U) << "whoever is asked ends"; }

  Result<FoundImage> Find(const std::string& program = GANTRY_WASM_FETCH) {
    const UniqueFd file(::open(program.c_str(), O_RDONLY | O_CLOEXEC));
    return FindImageModule(context_, file, question_);
  }

  /// With a script in place of the program. The answer goes to 3, the module to 4.
  Result<FoundImage> FindWith(const std::string& script) {
    const std::string path = dir_.path() + "/program";
    IgnoreError(WriteFile(path, "#!/bin/sh\n" + script, 0755), "then it cannot be run");
    return Find(path);
  }

  void ExpectError(const Result<FoundImage>& found, Code code, const std::string& words) {
    ASSERT_FALSE(found) << words;
    EXPECT_EQ(found.error().code, code) << found.error().message;
    EXPECT_THAT(found.error().message, HasSubstr(words));
  }

  os::TempDir dir_;
  FakeStore store_;
  FakeSandboxContext context_;
  ImageQuestion question_;
};

TEST_F(WasmImage, HasItsModule) {
  const std::string module = CoreModule("of the image");
  store_.Use(store_.AddManifest("wasip1", "wasm", {store_.AddLayer(kWasmType, module)}));
  const StoreServer server(store_, question_.address, "k8s.io");
  const auto found = Find();
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_TRUE(found->IsForWasm());
  EXPECT_EQ(found->layers, 1U);
  ASSERT_TRUE(found->module);
  EXPECT_EQ(found->module->size, module.size());
  EXPECT_EQ(DigestText(found->module->digest), DigestOf(module));
  const UniqueFd& file = found->module->file;
  EXPECT_EQ(ReadAt(file.get(), 0, 1000).value_or("?"), module);
  EXPECT_EQ(::fcntl(file.get(), F_GETFL) & O_ACCMODE, O_RDONLY);
  constexpr int kSealed = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
  EXPECT_EQ(::fcntl(file.get(), F_GET_SEALS) & kSealed, kSealed);
}

/// A store that has a look at whoever asks for the container.
class LookingStore : public FakeStore {
 public:
  Result<std::string> ImageOf(const std::string& container) override {
    look();
    return FakeStore::ImageOf(container);
  }

  std::function<void()> look;
};

TEST_F(WasmImage, IsAskedForWithFewSystemCalls) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer has calls of its own";
#endif
  LookingStore store;
  store.Use(store.AddManifest("wasip1", "wasm", {store.AddLayer(kWasmType, CoreModule())}));
  std::string status;
  // Meanwhile it waits for the answer, and nobody else spawns.
  store.look = [&] {
    const HostPid pid = context_.spawned.back()->pid();
    status = ReadFile(Format("/proc/{}/status", pid.value), 1 << 16).value_or("?");
  };
  const StoreServer server(store, question_.address, "k8s.io");
  const auto found = Find();
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_THAT(status, HasSubstr("\nSeccomp:\t2\n"));
}

TEST_F(WasmImage, OfFilesHasNoModule) {
  store_.Use(store_.AddManifest("linux", "amd64", {store_.AddLayer(kTarType, "files")}));
  const StoreServer server(store_, question_.address, "k8s.io");
  const auto found = Find();
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_FALSE(found->IsForWasm());
  EXPECT_FALSE(found->module);
}

TEST_F(WasmImage, AboveTheLimitIsRefused) {
  const std::string module = CoreModule(std::string(2000, 'x'));
  store_.Use(store_.AddManifest("wasip1", "wasm", {store_.AddLayer(kWasmType, module)}));
  const StoreServer server(store_, question_.address, "k8s.io");
  ExpectError(Find(), Code::kResourceExhausted, "2008 bytes, 1000 are allowed");
  question_.max_bytes = 2008;
  EXPECT_TRUE(Find());
}

TEST_F(WasmImage, WithoutContainerdIsUnavailable) {
  ExpectError(Find(), Code::kUnavailable, "'" + question_.address + "'");
}

TEST_F(WasmImage, ThatNobodyAnswersForIsGivenUp) {
  question_.limit = milliseconds(50);
  ExpectError(FindWith("exec sleep 1000\n"), Code::kDeadlineExceeded, question_.address);
  question_.limit = kLong;
  context_.time_left = milliseconds(50);
  ExpectError(FindWith("exec sleep 1000\n"), Code::kDeadlineExceeded, question_.address);
}

TEST_F(WasmImage, WhoseProgramSaysNothingIsAnError) {
  ExpectError(FindWith("exit 7\n"), Code::kInternal, "exit code 7");
  ExpectError(FindWith("echo nonsense >&3\n"), Code::kInternal, "answer of gantry-wasm-fetch");
  ExpectError(FindWith("exec cat /dev/zero >&3\n"), Code::kInternal, "more than 1048576 bytes");
}

TEST_F(WasmImage, IsTheModuleThatTheProgramSays) {
  const auto answer = [](const std::string& digest, size_t size) {
    return Format(R"(echo '{{"module":{{"mediaType":"a","digest":"{}","size":{}}}}}' >&3)", digest,
                  size);
  };
  const std::string write = "printf abc >&4\n";
  EXPECT_TRUE(FindWith(write + answer(DigestOf("abc"), 3)));
  ExpectError(FindWith(write + answer(DigestOf("abd"), 3)), Code::kInternal, DigestOf("abc"));
  ExpectError(FindWith(write + answer(DigestOf("abc"), 4)), Code::kInternal, "3 bytes");
  ExpectError(FindWith(answer(DigestOf("abc"), 3)), Code::kInternal, "0 bytes");
}

TEST_F(WasmImage, IsAskedForWithoutRights) {
  const std::string network = ReadLink("/proc/self/ns/net").value_or("?");
  const auto found = FindWith(
      "see() { sed -n \"s/^$1:[[:space:]]*//p\" /proc/self/status; }\n"
      "told=\"caps $(see CapEff) $(see CapPrm) $(see CapBnd), no new $(see NoNewPrivs),\"\n"
      "[ \"$(readlink /proc/self/ns/net)\" = '" +
      network +
      "' ] || told=\"$told another network,\"\n"
      "told=\"$told files $(ulimit -n), pid $$\"\n"
      "echo '{\"error\":{\"code\":\"ABORTED\",\"message\":\"'\"$told\"'\"}}' >&3\n");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, Code::kAborted) << found.error().message;
  EXPECT_EQ(found.error().message,
            "caps 0000000000000000 0000000000000000 0000000000000000, no new 1, another network, "
            "files 64, pid 1");
}

}  // namespace
}  // namespace gantry::wasm::fetch
