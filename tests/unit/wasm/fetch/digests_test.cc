// SPDX-License-Identifier: Apache-2.0
#include "plugins/wasm/fetch/digests.h"

#include <fcntl.h>
#include <unistd.h>

#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/format.h>
#include <gantry/testing/sandbox_context.h>
#include <gantry/toolkit/descriptors/memfd.h>
#include <gantry/toolkit/files/files.h>

#include "core/os/fs.h"
#include "plugins/wasm/fetch/answer.h"
#include "tests/unit/wasm/fetch/fake_store.h"
#include "tests/unit/wasm/fetch/store_server.h"

namespace gantry::wasm::fetch {
namespace {

using ::testing::HasSubstr;

TEST(WasmDigestWriter, LeavesOutWhatIsOfAnotherAlgorithm) {
  const UniqueFd file = *CreateMemfd("digests");
  DigestWriter writer(file.get());
  EXPECT_TRUE(writer.Add(DigestOf("one")));
  EXPECT_TRUE(writer.Add("sha512:" + std::string(128, '0')));
  EXPECT_TRUE(writer.Add("rubbish"));
  const auto answer = writer.Finish();
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(*ReadDigestsAnswer(*answer), 1U);
  const Sha256Digest one = Sha256Of("one");
  EXPECT_EQ(*ReadAt(file.get(), 0, 100), std::string(one.begin(), one.end()));
}

TEST(WasmDigestWriter, WritesNoMoreThanItMay) {
  const UniqueFd file = *CreateMemfd("digests");
  DigestWriter writer(file.get());
  const std::string digest = DigestOf("one");
  for (size_t i = 0; i < kMaxDigests; ++i) {
    ASSERT_TRUE(writer.Add(digest));
  }
  EXPECT_EQ(writer.Add(digest).error().code, Code::kResourceExhausted);
}

TEST(WasmDigestsAnswer, IsNoOther) {
  EXPECT_EQ(*ReadDigestsAnswer("{\"digests\":0}\n"), 0U);
  // As what there is not, nothing would be left in the cache.
  for (const char* line : {"{}", "[]", "", "{\"digests\":-1}", "{\"digests\":\"1\"}",
                           R"({"platform":{"os":"","architecture":""},"layers":[]})"}) {
    const auto read = ReadDigestsAnswer(line);
    ASSERT_FALSE(read) << line;
    EXPECT_EQ(read.error().code, Code::kInternal) << line;
  }
  EXPECT_EQ(
      ReadDigestsAnswer(ErrorText({Code::kUnavailable, 0, "gone", std::string()})).error().code,
      Code::kUnavailable);
}

class WasmDigests : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) {
      GTEST_SKIP() << "namespaces of its own are for root";
    }
  }

  void TearDown() override { EXPECT_EQ(context_.Alive(), 0U) << "whoever is asked ends"; }

  Result<std::set<Sha256Digest>> Find(const std::string& program = GANTRY_WASM_FETCH) {
    const UniqueFd file(::open(program.c_str(), O_RDONLY | O_CLOEXEC));
    return FindDigests(context_, file, address_, kLong);
  }

  os::TempDir dir_ = *os::TempDir::Create();
  const std::string address_ = dir_.path() + "/c.sock";
  FakeStore store_;
  FakeSandboxContext context_;
};

TEST_F(WasmDigests, AreThoseOfTheContentStore) {
  store_.Add(kWasmType, "one");
  store_.Add(kWasmType, "two");
  store_.Add(kTarType, "three");
  const StoreServer server(store_, address_, "k8s.io");
  const auto found = Find();
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(*found, (std::set<Sha256Digest>{Sha256Of("one"), Sha256Of("two"), Sha256Of("three")}));
}

TEST_F(WasmDigests, AreNoneOfAStoreThatHasNone) {
  const StoreServer server(store_, address_, "k8s.io");
  const auto found = Find();
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_TRUE(found->empty());
}

TEST_F(WasmDigests, AreNotKnownWhereNobodyListens) {
  const auto found = Find();
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, Code::kUnavailable) << found.error().message;
}

/// The answer goes to 3, the digests to 4.
TEST_F(WasmDigests, AreNotBelievedWithoutTheirNumber) {
  const std::string path = dir_.path() + "/program";
  for (const char* script : {"echo '{\"digests\":1}' >&3", "echo '{\"digests\":0}' >&3; echo x >&4",
                             "echo '{\"digests\":99999999999}' >&3", "exit 3", "echo '{}' >&3"}) {
    ASSERT_TRUE(WriteFile(path, Format("#!/bin/sh\n{}\n", script), 0755));
    const auto found = Find(path);
    ASSERT_FALSE(found) << script;
    EXPECT_EQ(found.error().code, Code::kInternal) << script << found.error().message;
  }
}

}  // namespace
}  // namespace gantry::wasm::fetch
