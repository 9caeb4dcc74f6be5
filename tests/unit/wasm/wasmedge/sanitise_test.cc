// SPDX-License-Identifier: Apache-2.0
#include "plugins/wasm/wasmedge/sanitise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/wasm/module/module_text.h"

namespace gantry::wasm {
namespace {

using testing::HasSubstr;

std::string CustomSection(const std::string& name, const std::string& content) {
  return SectionOf(0, Leb(static_cast<uint32_t>(name.size())) + name + content);
}

TEST(Sanitise, LeavesAModuleAsItIs) {
  EXPECT_EQ(WithoutCustomSections(SmallModule()).value(), SmallModule());
  EXPECT_EQ(WithoutCustomSections(CoreHeader()).value(), CoreHeader());
}

TEST(Sanitise, TakesCustomSectionsOutWhereverTheyAre) {
  const std::string code = CustomSection("wasmedge", std::string(300, '\x7f'));
  const std::string type = SectionOf(1, {"\1\x60\0\0", 4});
  const std::string function = SectionOf(3, {"\1\0", 2});
  const std::string body = SectionOf(10, {"\1\2\0\x0b", 4});
  const std::string module = CoreHeader() + code + type + CustomSection("name", "") + code +
                             function + body + code + CustomSection("", "");
  EXPECT_EQ(WithoutCustomSections(module).value(), CoreHeader() + type + function + body);
}

// Of a section whose length is written with more bytes than it needs.
TEST(Sanitise, KnowsNumbersThatAreLong) {
  using std::string_literals::operator""s;
  const std::string module = CoreHeader() + "\1\x84\x80\0\1\x60\0\0"s + "\0\x89\x80\0\x08wasmedge"s;
  EXPECT_EQ(WithoutCustomSections(module).value(), CoreHeader() + "\1\x84\x80\0\1\x60\0\0"s);
}

TEST(Sanitise, TakesNothingElse) {
  EXPECT_THAT(WithoutCustomSections("\177ELF\2\1\1").error().message, HasSubstr("an ELF program"));
  EXPECT_THAT(WithoutCustomSections(ComponentHeader()).error().message, HasSubstr("a component"));
  EXPECT_THAT(WithoutCustomSections("").error().message, HasSubstr("empty"));
  const std::string module = SmallModule() + CustomSection("wasmedge", "code");
  for (size_t size = 0; size < module.size(); ++size) {
    const auto cut = WithoutCustomSections(module.substr(0, size));
    EXPECT_TRUE(cut || cut.error().code == Code::kInvalidArgument) << size;
  }
  EXPECT_THAT(WithoutCustomSections(CoreHeader() + SectionOf(10, OversizedLeb())).error().message,
              HasSubstr("more than 5 bytes"));
}

}  // namespace
}  // namespace gantry::wasm
