// SPDX-License-Identifier: Apache-2.0
#include "plugins/wasm/fetch/arguments.h"

#include <fcntl.h>

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/format.h>
#include <gantry/unique_fd.h>

namespace gantry::wasm::fetch {
namespace {

using ::testing::HasSubstr;

class WasmFetchArguments : public ::testing::Test {
 protected:
  WasmFetchArguments() : open_(::open("/dev/null", O_RDWR | O_CLOEXEC)) {}

  std::vector<std::string> Words() const {
    return {"--address=/run/c.sock", "--namespace=k8s.io", "--container=c1", "--program=/app.wasm",
            "--max-bytes=100",       "--limit-ms=5",       Fd("result"),     Fd("module")};
  }

  std::string Fd(const std::string& name) const { return Format("--{}={}", name, open_.get()); }

  UniqueFd open_;
};

TEST_F(WasmFetchArguments, AreRead) {
  const auto read = ReadFetchArguments(Words());
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->address, "/run/c.sock");
  EXPECT_EQ(read->ns, "k8s.io");
  EXPECT_EQ(read->request.container, "c1");
  EXPECT_EQ(read->request.program, "/app.wasm");
  EXPECT_EQ(read->request.max_bytes, 100U);
  EXPECT_EQ(read->limit, std::chrono::milliseconds(5));
  EXPECT_EQ(read->result, open_.get());
  EXPECT_EQ(read->module, open_.get());
}

TEST_F(WasmFetchArguments, NameAnImageInPlaceOfAContainer) {
  auto words = Words();
  words[2] = "--image=docker.io/library/app:1";
  const auto read = ReadFetchArguments(words);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->request.image, "docker.io/library/app:1");
  words.emplace_back("--container=c1");
  EXPECT_FALSE(ReadFetchArguments(words)) << "one of both";
}

TEST_F(WasmFetchArguments, AskForAllDigests) {
  const auto read = ReadFetchArguments({"--address=/run/c.sock", Fd("result"), Fd("digests")});
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->digests, open_.get());
  EXPECT_FALSE(ReadFetchArguments({"--address=/run/c.sock", Fd("digests")}));
}

TEST_F(WasmFetchArguments, ThatAreMissingAreAskedFor) {
  for (const size_t left_out : {0, 1, 2, 4, 6, 7}) {
    auto words = Words();
    words.erase(words.begin() + static_cast<std::ptrdiff_t>(left_out));
    EXPECT_FALSE(ReadFetchArguments(words)) << Words()[left_out];
  }
}

TEST_F(WasmFetchArguments, ThatAreWrongAreNamed) {
  for (const std::string& bad :
       {std::string("--address=c.sock"), "--address=/" + std::string(200, 'x'),
        std::string("--max-bytes=0"), std::string("--max-bytes=x"), std::string("--limit-ms=0"),
        std::string("--result=1"), std::string("--module=99999"), std::string("--other=1"),
        std::string("--max-bytes")}) {
    auto words = Words();
    words.push_back(bad);
    const auto read = ReadFetchArguments(words);
    ASSERT_FALSE(read) << bad;
    EXPECT_EQ(read.error().code, Code::kInvalidArgument) << bad;
    EXPECT_THAT(read.error().message, HasSubstr(bad.substr(bad.find('=') + 1))) << bad;
  }
}

}  // namespace
}  // namespace gantry::wasm::fetch
