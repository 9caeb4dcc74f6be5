// SPDX-License-Identifier: Apache-2.0
#include "plugins/wasm/module/sections.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <gantry/format.h>

#include "tests/unit/wasm/module/module_text.h"

namespace gantry::wasm {
namespace {

using testing::HasSubstr;

/// The error; "": there is none.
std::string WhyNot(const std::string& bytes) {
  const auto shape = WalkSections(bytes);
  if (shape) {
    return "";
  }
  EXPECT_EQ(shape.error().code, Code::kInvalidArgument);
  return shape.error().message;
}

TEST(WasmSections, TakesAModule) {
  const auto shape = WalkSections(SmallModule());
  ASSERT_TRUE(shape) << shape.error().message;
  EXPECT_FALSE(shape->component);
  EXPECT_EQ(shape->functions, 1U);
  EXPECT_EQ(shape->code_bytes, 4U);
}

TEST(WasmSections, TakesOneThatHasNothing) {
  EXPECT_EQ(WhyNot(CoreHeader()), "");
  EXPECT_EQ(WhyNot(ComponentHeader()), "");
}

TEST(WasmSections, TakesCustomSectionsAnywhereAndTagsBetweenMemoryAndGlobal) {
  const std::string custom = SectionOf(0, "\4name");
  EXPECT_EQ(WhyNot(CoreHeader() + custom + SectionOf(1, std::string(1, '\0')) + custom + custom),
            "");
  const std::string none(1, '\0');
  EXPECT_EQ(
      WhyNot(CoreHeader() + SectionOf(5, none) + SectionOf(13, none) + SectionOf(6, none) +
             SectionOf(9, none) + SectionOf(12, none) + SectionOf(10, none) + SectionOf(11, none)),
      "");
}

TEST(WasmSections, RefusesWhatIsNone) {
  EXPECT_THAT(WhyNot(""), HasSubstr("header at offset 0: it is empty"));
  EXPECT_THAT(WhyNot("\177ELF\2\1\1"), HasSubstr("an ELF program"));
  EXPECT_THAT(WhyNot(CoreHeader().substr(0, 6)), HasSubstr("cut off in its header"));
}

TEST(WasmSections, RefusesANumberThatIsTooLongInEachSection) {
  struct Named {
    uint8_t id;
    const char* name;
    const char* what;
  };

  for (const Named& one :
       {Named{0, "custom", "name's length"}, Named{1, "type", "count"}, Named{2, "import", "count"},
        Named{3, "function", "count"}, Named{4, "table", "count"}, Named{5, "memory", "count"},
        Named{6, "global", "count"}, Named{7, "export", "count"}, Named{8, "start", "number"},
        Named{9, "element", "count"}, Named{10, "code", "count"}, Named{11, "data", "count"},
        Named{12, "data count", "number"}, Named{13, "tag", "count"}}) {
    const std::string why = WhyNot(CoreHeader() + SectionOf(one.id, OversizedLeb()));
    EXPECT_EQ(why, Format("section '{}' at offset 8: its {} takes more than 5 bytes or 32 bits",
                          one.name, one.what));
    const std::string size =
        WhyNot(CoreHeader() + std::string(1, static_cast<char>(one.id)) + OversizedLeb());
    EXPECT_EQ(size, Format("section '{}' at offset 8: its size takes more than 5 bytes or 32 bits",
                           one.name));
  }
  EXPECT_THAT(WhyNot(CoreHeader() + SectionOf(1, "\xff\xff\xff\xff\x7f")),
              HasSubstr("more than 5 bytes or 32 bits"))
      << "the fifth byte has four bits of the number";
}

TEST(WasmSections, RefusesWhatIsCutOffAnywhere) {
  const std::string whole = SmallModule();
  // Between sections less of a module is one, but for the code that is missing.
  for (size_t size = whole.size() - 1; size > 12 + 4; --size) {
    EXPECT_NE(WhyNot(whole.substr(0, size)), "") << size;
  }
  EXPECT_THAT(WhyNot(whole.substr(0, whole.size() - 1)), HasSubstr("'code' at offset 30"));
  EXPECT_THAT(WhyNot(CoreHeader() + "\1"), HasSubstr("it ends inside its size"));
}

TEST(WasmSections, RefusesOrderAndSecondOnes) {
  const std::string none(1, '\0');
  EXPECT_EQ(WhyNot(CoreHeader() + SectionOf(2, none) + SectionOf(1, none)),
            "section 'type' at offset 11: it is out of order");
  EXPECT_EQ(WhyNot(CoreHeader() + SectionOf(1, none) + SectionOf(1, none)),
            "section 'type' at offset 11: it is there twice");
  EXPECT_EQ(WhyNot(CoreHeader() + SectionOf(14, none)),
            "section at offset 8: there is no section 14");
}

TEST(WasmSections, RefusesMoreThanThereIs) {
  EXPECT_EQ(WhyNot(CoreHeader() + SectionOf(2, "\5\1\1")),
            "section 'import' at offset 8: 5 entries cannot be in 2 bytes");
  EXPECT_EQ(WhyNot(CoreHeader() + SectionOf(0, "\x09name")),
            "section 'custom' at offset 8: its name of 9 bytes is longer than the section");
  const std::string declared = SectionOf(3, std::string("\1\0", 2));
  EXPECT_THAT(WhyNot(CoreHeader() + declared), HasSubstr("1 functions are declared and none"));
  EXPECT_THAT(WhyNot(CoreHeader() + declared + SectionOf(10, std::string("\2\1\1\1\1", 5))),
              HasSubstr("1 functions are declared and 2 have a body"));
  EXPECT_THAT(WhyNot(CoreHeader() + declared + SectionOf(10, std::string("\1\7\0\x0b", 4))),
              HasSubstr("the body of function 0, of 7 bytes, is longer than the section"));
  EXPECT_THAT(WhyNot(CoreHeader() + declared + SectionOf(10, std::string("\1\2\0\x0b\0\0", 6))),
              HasSubstr("2 bytes follow its last function"));
}

TEST(WasmSections, RefusesTooManyFunctions) {
  const std::string most = Leb(kMostFunctions) + std::string(kMostFunctions, '\0');
  EXPECT_THAT(WhyNot(CoreHeader() + SectionOf(3, most)), HasSubstr("none has a body"));
  const std::string more = Leb(kMostFunctions + 1) + std::string(kMostFunctions + 1, '\0');
  EXPECT_EQ(WhyNot(CoreHeader() + SectionOf(3, more)),
            "section 'function' at offset 8: 100001 functions; 100000 at most are compiled");
}

TEST(WasmSections, CountsThoseOfAllModulesInAComponent) {
  const uint32_t half = kMostFunctions / 2 + 1;
  std::string bodies = Leb(half);
  for (uint32_t i = 0; i < half; ++i) {
    bodies += std::string("\2\0\x0b", 3);
  }
  const std::string module =
      CoreHeader() + SectionOf(3, Leb(half) + std::string(half, '\0')) + SectionOf(10, bodies);
  const auto one = WalkSections(ComponentHeader() + SectionOf(1, module));
  ASSERT_TRUE(one) << one.error().message;
  EXPECT_TRUE(one->component);
  EXPECT_EQ(one->functions, half);
  EXPECT_THAT(WhyNot(ComponentHeader() + SectionOf(1, module) + SectionOf(1, module)),
              HasSubstr("100002 functions"));
}

TEST(WasmSections, LooksIntoWhatAComponentHolds) {
  EXPECT_EQ(WhyNot(ComponentHeader() + SectionOf(1, SmallModule()) +
                   SectionOf(4, ComponentHeader() + SectionOf(1, SmallModule()))),
            "");
  EXPECT_EQ(WhyNot(ComponentHeader() + SectionOf(1, "\177ELF")),
            "section 'core module' at offset 8: what it holds has no header of one");
  EXPECT_EQ(WhyNot(ComponentHeader() + SectionOf(4, CoreHeader())),
            "section 'component' at offset 8: what it holds has no header of one");
  EXPECT_EQ(WhyNot(ComponentHeader() + SectionOf(1, CoreHeader() + SectionOf(1, OversizedLeb()))),
            "section 'type' at offset 18: its count takes more than 5 bytes or 32 bits");
  for (uint8_t id = 1; id <= 12; ++id) {
    if (id != 1 && id != 4 && id != 9) {
      EXPECT_THAT(WhyNot(ComponentHeader() + SectionOf(id, OversizedLeb())),
                  HasSubstr("its count takes more than 5 bytes"))
          << int{id};
    }
  }
}

TEST(WasmSections, RefusesComponentsInEachOtherWithoutEnd) {
  std::string nested = ComponentHeader();
  for (int i = 0; i < kMostNested; ++i) {
    nested = ComponentHeader() + SectionOf(4, nested);
  }
  EXPECT_EQ(WhyNot(nested), "");
  EXPECT_THAT(WhyNot(ComponentHeader() + SectionOf(4, nested)), HasSubstr("more than 16 lie"));
}

}  // namespace
}  // namespace gantry::wasm
