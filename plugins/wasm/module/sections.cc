// SPDX-License-Identifier: Apache-2.0
#include "plugins/wasm/module/sections.h"

#include <array>
#include <cstddef>
#include <string>

#include <gantry/format.h>

#include "plugins/wasm/module/looks_like.h"

namespace gantry::wasm {
namespace {

constexpr size_t kHeaderBytes = 8;

/// A section of a module. `rank`: where it stands among the others; each is there once at most.
struct CoreSection {
  const char* name;
  int rank;
};

constexpr std::array<CoreSection, 14> kCore = {{{"custom", 0},
                                                {"type", 1},
                                                {"import", 2},
                                                {"function", 3},
                                                {"table", 4},
                                                {"memory", 5},
                                                {"global", 7},
                                                {"export", 8},
                                                {"start", 9},
                                                {"element", 10},
                                                {"code", 12},
                                                {"data", 13},
                                                {"data count", 11},
                                                {"tag", 6}}};
constexpr uint8_t kCustom = 0;
constexpr uint8_t kFunction = 3;
constexpr uint8_t kStart = 8;
constexpr uint8_t kCode = 10;
constexpr uint8_t kDataCount = 12;

constexpr std::array<const char*, 13> kOfComponent = {
    "custom", "core module", "core instance", "core type", "component", "instance", "alias",
    "type",   "canon",       "start",         "import",    "export",    "value"};
constexpr uint8_t kNestedModule = 1;
constexpr uint8_t kNestedComponent = 4;
constexpr uint8_t kComponentStart = 9;

/// A part of the file that is being read: from `at` on, up to `end`.
struct Part {
  size_t at = 0;
  size_t end = 0;

  size_t left() const { return end - at; }
};

struct Section {
  uint8_t id = 0;
  const char* name = "";
  /// Of its header in the file.
  size_t offset = 0;
  Part content;
};

class Walk {
 public:
  explicit Walk(std::string_view bytes) : bytes_(bytes) {}

  Status Any(Part part, int depth);

  Shape shape;

 private:
  Status Module(Part part);
  Status Component(Part part, int depth);
  Status Code(const Section& section, uint32_t declared);
  /// Of a module: what section comes next, in its order.
  Result<Section> Next(Part& part, const char* (*name_of)(uint8_t));
  Status Custom(const Section& section);
  /// The count that a list begins with; of its entries each takes a byte at least.
  Result<uint32_t> Count(Section& section);
  Result<uint32_t> Number(Part& part, const Section& section, const char* what);

  std::string_view bytes_;
};

const char* NameInModule(uint8_t id) { return id < kCore.size() ? kCore.at(id).name : nullptr; }

const char* NameInComponent(uint8_t id) {
  return id < kOfComponent.size() ? kOfComponent.at(id) : nullptr;
}

template <class... Args>
std::unexpected<Error> Wrong(const Section& section, std::format_string<Args...> format,
                             Args&&... args) {
  return Fail(Code::kInvalidArgument, "section '{}' at offset {}: {}", section.name, section.offset,
              Format(format, std::forward<Args>(args)...));
}

/// An unsigned number of 32 bits: seven of them in each byte, the lowest first.
Result<uint32_t> Walk::Number(Part& part, const Section& section, const char* what) {
  constexpr int kMostBytes = 5;
  uint32_t value = 0;
  for (int i = 0; i < kMostBytes; ++i) {
    if (part.left() == 0) {
      return Wrong(section, "it ends inside its {}", what);
    }
    const auto byte = static_cast<uint8_t>(bytes_[part.at++]);
    if (i == kMostBytes - 1 && byte > 0x0f) {
      break;
    }
    value |= static_cast<uint32_t>(byte & 0x7f) << (7 * i);
    if (byte < 0x80) {
      return value;
    }
  }
  return Wrong(section, "its {} takes more than 5 bytes or 32 bits", what);
}

Result<uint32_t> Walk::Count(Section& section) {
  GANTRY_TRY(const uint32_t count, Number(section.content, section, "count"));
  if (count > section.content.left()) {
    return Wrong(section, "{} entries cannot be in {} bytes", count, section.content.left());
  }
  return count;
}

Result<Section> Walk::Next(Part& part, const char* (*name_of)(uint8_t)) {
  Section section;
  section.offset = part.at;
  section.id = static_cast<uint8_t>(bytes_[part.at++]);
  section.name = name_of(section.id);
  if (section.name == nullptr) {
    return Fail(Code::kInvalidArgument, "section at offset {}: there is no section {}",
                section.offset, section.id);
  }
  GANTRY_TRY(const uint32_t size, Number(part, section, "size"));
  if (size > part.left()) {
    return Wrong(section, "its {} bytes are more than the {} that are left", size, part.left());
  }
  section.content = {.at = part.at, .end = part.at + size};
  part.at += size;
  return section;
}

Status Walk::Custom(const Section& section) {
  Part content = section.content;
  GANTRY_TRY(const uint32_t size, Number(content, section, "name's length"));
  if (size > content.left()) {
    return Wrong(section, "its name of {} bytes is longer than the section", size);
  }
  return {};
}

Status Walk::Code(const Section& section, uint32_t declared) {
  Section code = section;
  GANTRY_TRY(const uint32_t count, Count(code));
  if (count != declared) {
    return Wrong(section, "{} functions are declared and {} have a body", declared, count);
  }
  for (uint32_t i = 0; i < count; ++i) {
    GANTRY_TRY(const uint32_t size, Number(code.content, section, "body's length"));
    if (size > code.content.left()) {
      return Wrong(section, "the body of function {}, of {} bytes, is longer than the section", i,
                   size);
    }
    code.content.at += size;
  }
  if (code.content.left() != 0) {
    return Wrong(section, "{} bytes follow its last function", code.content.left());
  }
  shape.code_bytes += section.content.left();
  return {};
}

Status Walk::Module(Part part) {
  int rank = 0;
  uint32_t declared = 0;
  bool has_code = false;
  while (part.left() > 0) {
    GANTRY_TRY(Section section, Next(part, NameInModule));
    if (section.id == kCustom) {
      GANTRY_CHECK_OK(Custom(section));
      continue;
    }
    if (kCore.at(section.id).rank <= rank) {
      return Wrong(section, "{}",
                   kCore.at(section.id).rank == rank ? "it is there twice" : "it is out of order");
    }
    rank = kCore.at(section.id).rank;
    if (section.id == kCode) {
      has_code = true;
      GANTRY_CHECK_OK(Code(section, declared));
    } else if (section.id == kStart || section.id == kDataCount) {
      GANTRY_CHECK_OK(Number(section.content, section, "number"));
    } else {
      GANTRY_TRY(const uint32_t count, Count(section));
      if (section.id == kFunction) {
        declared = count;
        shape.functions += count;
      }
    }
    if (shape.functions > kMostFunctions) {
      return Wrong(section, "{} functions; {} at most are compiled", shape.functions,
                   kMostFunctions);
    }
  }
  if (declared > 0 && !has_code) {
    return Fail(Code::kInvalidArgument,
                "at its end, offset {}: {} functions are declared and none has a body", part.end,
                declared);
  }
  return {};
}

Status Walk::Component(Part part, int depth) {
  while (part.left() > 0) {
    GANTRY_TRY(Section section, Next(part, NameInComponent));
    if (section.id == kCustom) {
      GANTRY_CHECK_OK(Custom(section));
    } else if (section.id == kNestedModule || section.id == kNestedComponent) {
      const std::string_view head = bytes_.substr(section.content.at, section.content.left());
      const FileKind wanted =
          section.id == kNestedModule ? FileKind::kModule : FileKind::kComponent;
      if (FileKindOf(head) != wanted) {
        return Wrong(section, "what it holds has no header of one");
      }
      GANTRY_CHECK_OK(Any(section.content, depth + 1));
    } else if (section.id != kComponentStart) {
      GANTRY_CHECK_OK(Count(section));
    }
  }
  return {};
}

/// `depth`: in so many components does it lie.
Status Walk::Any(Part part, int depth) {
  const FileKind kind = FileKindOf(bytes_.substr(part.at, part.left()));
  const Part content = {.at = part.at + kHeaderBytes, .end = part.end};
  if (kind == FileKind::kModule) {
    return Module(content);
  }
  if (depth > kMostNested) {
    return Fail(Code::kInvalidArgument, "component at offset {}: more than {} lie in each other",
                part.at, kMostNested);
  }
  return Component(content, depth);
}

}  // namespace

Result<Shape> WalkSections(std::string_view bytes) {
  const FileKind kind = FileKindOf(bytes.substr(0, kHeadBytes));
  if (!IsWasm(kind)) {
    return Fail(Code::kInvalidArgument, "header at offset 0: it is {}",
                LooksLike(bytes.substr(0, kHeadBytes)));
  }
  Walk walk(bytes);
  walk.shape.component = kind == FileKind::kComponent;
  GANTRY_CHECK_OK(walk.Any({.at = 0, .end = bytes.size()}, 0));
  return walk.shape;
}

}  // namespace gantry::wasm
