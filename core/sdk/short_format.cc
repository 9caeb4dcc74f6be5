// SPDX-License-Identifier: Apache-2.0
//
// Fields are read as std::vformat's are, which the compiler has checked. What is not known here is
// left out and not refused: nothing of this throws.
#include "core/sdk/short_format.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <concepts>
#include <cstdio>
#include <type_traits>
#include <variant>

namespace gantry {
namespace {

/// What is between the braces of a field, behind the colon.
struct Form {
  bool zeros = false;
  bool prefix = false;
  bool capital = false;
  size_t width = 0;
  int base = 10;
};

/// No message has a number that is wider; a format string is the program's own.
constexpr size_t kMaxWidth = 64;

size_t ReadNumber(std::string_view text, size_t& at) {
  size_t number = 0;
  while (at < text.size() && text[at] >= '0' && text[at] <= '9') {
    number = std::min<size_t>(number * 10 + static_cast<size_t>(text[at++] - '0'), kMaxWidth);
  }
  return number;
}

Form ReadForm(std::string_view text) {
  Form form;
  size_t at = 0;
  if (at < text.size() && text[at] == '#') {
    form.prefix = true;
    ++at;
  }
  if (at < text.size() && text[at] == '0') {
    form.zeros = true;
    ++at;
  }
  form.width = ReadNumber(text, at);
  switch (at < text.size() ? text[at] : 'd') {
    case 'X':
      form.capital = true;
      [[fallthrough]];
    case 'x':
      form.base = 16;
      break;
    case 'o':
      form.base = 8;
      break;
    default:
      break;
  }
  return form;
}

void AddNumber(bool is_negative, unsigned long long size, const Form& form, std::string& out) {
  // As many as an octal number of 64 bits has.
  std::array<char, 24> digits{};
  char* const end =
      std::to_chars(digits.data(), digits.data() + digits.size(), size, form.base).ptr;
  std::string_view prefix;
  if (form.prefix && form.base != 10 && (form.base == 16 || size != 0)) {
    prefix = form.base == 8 ? "0" : form.capital ? "0X" : "0x";
  }
  const size_t length =
      (is_negative ? 1 : 0) + prefix.size() + static_cast<size_t>(end - digits.data());
  const size_t missing = form.width > length ? form.width - length : 0;
  out.append(form.zeros ? 0 : missing, ' ');
  out.append(is_negative ? "-" : "").append(prefix);
  out.append(form.zeros ? missing : 0, '0');
  for (const char* digit = digits.data(); digit != end; ++digit) {
    const bool is_letter = *digit >= 'a';
    out += form.capital && is_letter ? static_cast<char>(*digit - ('a' - 'A')) : *digit;
  }
}

struct Adder {
  const Form& form;
  std::string& out;

  void operator()(std::monostate /*none*/) const { out += "{}"; }

  void operator()(bool value) const { out += value ? "true" : "false"; }

  void operator()(char value) const { out += value; }

  void operator()(const char* value) const { out += value; }

  void operator()(std::string_view value) const { out += value; }

  void operator()(const void* value) const {
    AddNumber(false, reinterpret_cast<uintptr_t>(value), {.prefix = true, .base = 16}, out);
  }

  /// What is left: numbers, and a type's own formatter, which may be anything.
  template <class Other>
  void operator()(const Other& value) const {
    if constexpr (std::integral<Other>) {
      const auto size = static_cast<unsigned long long>(value);
      const bool is_negative = std::is_signed_v<Other> && value < Other{0};
      AddNumber(is_negative, is_negative ? 0 - size : size, form, out);
    } else if constexpr (std::floating_point<Other>) {
      std::array<char, 48> text{};
      std::snprintf(text.data(), text.size(), "%Lg", static_cast<long double>(value));
      out += text.data();
    } else {
      out += "{}";
    }
  }
};

}  // namespace

std::string ShortFormat(std::string_view format, const std::format_args& args) {
  std::string out;
  size_t next = 0;
  for (size_t at = 0; at < format.size();) {
    const char letter = format[at++];
    if (letter != '{' && letter != '}') {
      out += letter;
      continue;
    }
    const bool is_twice = at < format.size() && format[at] == letter;
    if (is_twice || letter == '}') {
      out += letter;
      at += is_twice ? 1 : 0;
      continue;
    }
    const bool has_number = at < format.size() && format[at] >= '0' && format[at] <= '9';
    const size_t index = has_number ? ReadNumber(format, at) : next++;
    const size_t end = std::min(format.find('}', at), format.size());
    const Form form = ReadForm(format.substr(std::min(at + 1, end), end - std::min(at + 1, end)));
    std::visit_format_arg(Adder{form, out}, args.get(index));
    at = std::min(end + 1, format.size());
  }
  return out;
}

}  // namespace gantry
