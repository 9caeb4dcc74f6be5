// SPDX-License-Identifier: Apache-2.0
#include "core/metrics/text.h"

#include <array>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <utility>

#include "core/metrics/figures.h"

namespace gantry::metrics {
namespace {

constexpr std::string_view kTotal = "_total";
constexpr size_t kLongestValue = 128;

template <class T>
void AppendNumber(std::string& out, T number) {
  std::array<char, 32> digits{};
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), number);
  out.append(digits.data(), end);
}

void AppendValue(std::string& out, std::string_view value) {
  for (const char c : value.substr(0, kLongestValue)) {
    if (c == '\\' || c == '"') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else {
      out += c >= ' ' && c <= '~' ? c : '?';
    }
  }
}

/// OpenMetrics wants a bound's canonical number, Prometheus writes none without need.
std::string BoundText(double bound, TextFormat format) {
  std::string text;
  AppendNumber(text, bound);
  if (format == TextFormat::kOpenMetrics && text.find_first_of(".e") == std::string::npos) {
    text += ".0";
  }
  return text;
}

}  // namespace

std::string_view ContentTypeOf(TextFormat format) {
  return format == TextFormat::kOpenMetrics
             ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
             : "text/plain; version=0.0.4; charset=utf-8";
}

std::string_view KindName(Kind kind) {
  switch (kind) {
    case Kind::kCounter:
      return "counter";
    case Kind::kGauge:
      return "gauge";
    case Kind::kHistogram:
      return "histogram";
  }
  return "";
}

void TextWriter::Begin(const Family& family) {
  name_ = family.name;
  added_.clear();
  std::string_view described = name_;
  if (format_ == TextFormat::kOpenMetrics && described.ends_with(kTotal)) {
    described.remove_suffix(kTotal.size());
  }
  text_.append("# HELP ").append(described).append(" ").append(family.help);
  text_.append("\n# TYPE ").append(described).append(" ").append(KindName(family.kind));
  text_ += '\n';
}

void TextWriter::Head(std::string_view suffix, Labels labels, std::string_view bound) {
  text_.append(name_).append(suffix);
  char before = '{';
  for (const Label& label : labels) {
    text_ += std::exchange(before, ',');
    text_.append(label.name).append("=\"");
    AppendValue(text_, label.value);
    text_ += '"';
  }
  if (!bound.empty()) {
    text_ += std::exchange(before, ',');
    text_.append("le=\"").append(bound).append("\"");
  }
  text_.append(before == ',' ? "} " : " ");
}

void TextWriter::Add(Labels labels, uint64_t value) {
  Head("", labels);
  AppendNumber(text_, value);
  text_ += '\n';
}

void TextWriter::AddNew(Labels labels, uint64_t value) {
  const size_t before = text_.size();
  Head("", labels);
  if (!added_.insert(text_.substr(before)).second) {
    text_.resize(before);
    return;
  }
  AppendNumber(text_, value);
  text_ += '\n';
}

void TextWriter::Add(Labels labels, double value) {
  Head("", labels);
  AppendNumber(text_, value);
  text_ += '\n';
}

void TextWriter::Add(Labels labels, const Histogram& histogram) {
  uint64_t count = 0;
  for (size_t i = 0; i < histogram.buckets().size(); ++i) {
    count += histogram.buckets().at(i);
    Head("_bucket", labels,
         i < Histogram::kBounds.size() ? BoundText(Histogram::kBounds.at(i), format_) : "+Inf");
    AppendNumber(text_, count);
    text_ += '\n';
  }
  Head("_sum", labels);
  AppendNumber(text_, std::chrono::duration<double>(histogram.sum()).count());
  text_ += '\n';
  Head("_count", labels);
  AppendNumber(text_, count);
  text_ += '\n';
}

std::string TextWriter::Finish() {
  if (format_ == TextFormat::kOpenMetrics) {
    text_ += "# EOF\n";
  }
  return std::move(text_);
}

}  // namespace gantry::metrics
