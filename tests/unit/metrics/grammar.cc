// SPDX-License-Identifier: Apache-2.0
//
// Source: prometheus.io/docs/instrumenting/exposition_formats and .../practices/naming; the
// OpenMetrics 1.0.0 specification.
#include "tests/unit/metrics/grammar.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <utility>

namespace gantry::test {
namespace {

bool IsName(std::string_view text, bool colons) {
  const auto good = [&](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || (colons && c == ':');
  };
  return !text.empty() && std::isdigit(static_cast<unsigned char>(text.front())) == 0 &&
         std::ranges::all_of(text, good);
}

std::optional<double> Number(std::string_view text) {
  if (text == "+Inf") {
    return std::numeric_limits<double>::infinity();
  }
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole ? std::optional(value) : std::nullopt;
}

/// `name="value",...}`; what is behind it stays in `text`.
std::optional<std::map<std::string, std::string>> TakeLabels(std::string_view& text) {
  std::map<std::string, std::string> labels;
  for (;;) {
    const size_t equals = text.find("=\"");
    if (equals == std::string_view::npos || !IsName(text.substr(0, equals), false)) {
      return std::nullopt;
    }
    const std::string name(text.substr(0, equals));
    text.remove_prefix(equals + 2);
    std::string value;
    while (!text.empty() && text.front() != '"') {
      char c = text.front();
      text.remove_prefix(1);
      if (c == '\\') {
        const char escaped = text.empty() ? '\0' : text.front();
        if (escaped != '\\' && escaped != '"' && escaped != 'n') {
          return std::nullopt;
        }
        c = escaped == 'n' ? '\n' : escaped;
        text.remove_prefix(1);
      }
      value += c;
    }
    if (text.size() < 2 || !labels.emplace(name, value).second) {
      return std::nullopt;
    }
    const char after = text[1];
    text.remove_prefix(2);
    if (after == '}') {
      return labels;
    }
    if (after != ',') {
      return std::nullopt;
    }
  }
}

/// `NAME VALUE` or `NAME{LABELS} VALUE`.
std::optional<Sample> TakeSample(std::string_view line) {
  Sample sample;
  const size_t end = std::min(line.find('{'), line.find(' '));
  if (end == std::string_view::npos || !IsName(line.substr(0, end), true)) {
    return std::nullopt;
  }
  sample.name = line.substr(0, end);
  const bool labelled = line[end] == '{';
  line.remove_prefix(end + 1);
  if (labelled) {
    auto labels = TakeLabels(line);
    if (!labels || !line.starts_with(' ')) {
      return std::nullopt;
    }
    sample.labels = std::move(*labels);
    line.remove_prefix(1);
  }
  const std::optional<double> value = Number(line);
  if (!value) {
    return std::nullopt;
  }
  sample.value = *value;
  return sample;
}

class Reader {
 public:
  explicit Reader(bool open_metrics) : open_metrics_(open_metrics) {}

  Status Line(std::string_view line) {
    ++number_;
    if (ended_) {
      return Wrong("something after # EOF");
    }
    if (open_metrics_ && line == "# EOF") {
      ended_ = true;
      return {};
    }
    if (line.starts_with("# HELP ")) {
      return Help(line.substr(7));
    }
    if (line.starts_with("# TYPE ")) {
      return Type(line.substr(7));
    }
    return line.starts_with('#') ? Wrong("a comment that is none of the format's") : Value(line);
  }

  Result<MetricsText> Finish() {
    if (open_metrics_ && !ended_) {
      return Wrong("no # EOF at the end");
    }
    for (const auto& [name, family] : families_) {
      GANTRY_CHECK_OK(CheckWhole(name, family));
    }
    return std::move(families_);
  }

 private:
  std::unexpected<Error> Wrong(std::string_view what) const {
    return Fail(Code::kInvalidArgument, "line {}: {}", number_, what);
  }

  Status Help(std::string_view rest) {
    const size_t space = rest.find(' ');
    if (space == std::string_view::npos || rest.size() == space + 1) {
      return Wrong("HELP without a text");
    }
    name_ = rest.substr(0, space);
    if (!IsName(name_, true) || families_.contains(name_)) {
      return Wrong("HELP of what is no name, or came before");
    }
    families_[name_].help = rest.substr(space + 1);
    return {};
  }

  Status Type(std::string_view rest) {
    const size_t space = rest.find(' ');
    if (name_.empty() || rest.substr(0, space) != name_ || !families_[name_].type.empty()) {
      return Wrong("TYPE that does not follow its HELP");
    }
    const std::string_view type = rest.substr(std::min(space + 1, rest.size()));
    if (type != "counter" && type != "gauge" && type != "histogram") {
      return Wrong("no type");
    }
    const bool total = name_.ends_with("_total");
    if (total != (type == "counter" && !open_metrics_)) {
      return Wrong("_total belongs to counters, and in OpenMetrics to their samples alone");
    }
    families_[name_].type = type;
    return {};
  }

  Status Value(std::string_view line) {
    auto sample = TakeSample(line);
    if (!sample) {
      return Wrong("no sample");
    }
    FamilyText& family = families_[name_];
    if (family.type.empty() || !SuitsFamily(sample->name, family.type)) {
      return Wrong("a sample that is not of the family before it");
    }
    if (!seen_.emplace(sample->name, sample->labels).second) {
      return Wrong("a sample that came before");
    }
    if (family.type != "gauge" && !(sample->value >= 0)) {
      return Wrong("a count below zero");
    }
    family.samples.push_back(std::move(*sample));
    return {};
  }

  bool SuitsFamily(const std::string& sample, const std::string& type) const {
    if (type == "histogram") {
      return sample == name_ + "_bucket" || sample == name_ + "_sum" || sample == name_ + "_count";
    }
    return sample == (type == "counter" && open_metrics_ ? name_ + "_total" : name_);
  }

  /// Of each histogram: buckets in order, which do not get smaller, the last +Inf and the count.
  static Status CheckWhole(const std::string& name, const FamilyText& family) {
    if (family.type != "histogram") {
      return {};
    }
    std::map<std::map<std::string, std::string>, std::pair<double, double>> last;
    for (const Sample& sample : family.samples) {
      auto labels = sample.labels;
      if (sample.name.ends_with("_bucket")) {
        const auto bound = Number(labels.contains("le") ? labels["le"] : "");
        labels.erase("le");
        auto [at, first] = last.try_emplace(labels, -1.0, 0.0);
        if (!bound || *bound <= at->second.first || sample.value < at->second.second) {
          return Fail(Code::kInvalidArgument, "{}: buckets out of order", name);
        }
        at->second = {*bound, sample.value};
      } else if (sample.name.ends_with("_count")) {
        const auto at = last.find(labels);
        if (at == last.end() || !std::isinf(at->second.first) ||
            at->second.second != sample.value) {
          return Fail(Code::kInvalidArgument, "{}: its count is not that of its last bucket", name);
        }
      }
    }
    return {};
  }

  const bool open_metrics_;
  size_t number_ = 0;
  bool ended_ = false;
  /// Of the family that lines belong to.
  std::string name_;
  MetricsText families_;
  std::set<std::pair<std::string, std::map<std::string, std::string>>> seen_;
};

}  // namespace

Result<MetricsText> ReadMetrics(std::string_view text, bool open_metrics) {
  if (!text.ends_with('\n')) {
    return Fail(Code::kInvalidArgument, "the last line has no end");
  }
  Reader reader(open_metrics);
  while (!text.empty()) {
    const size_t end = text.find('\n');
    GANTRY_CHECK_OK(reader.Line(text.substr(0, end)));
    text.remove_prefix(end + 1);
  }
  return reader.Finish();
}

double SumOf(const MetricsText& metrics, std::string_view name,
             const std::map<std::string, std::string>& labels) {
  double sum = 0;
  for (const auto& [family, text] : metrics) {
    for (const Sample& sample : text.samples) {
      const bool wanted = std::ranges::all_of(labels, [&](const auto& label) {
        const auto found = sample.labels.find(label.first);
        return found != sample.labels.end() && found->second == label.second;
      });
      sum += sample.name == name && wanted ? sample.value : 0;
    }
  }
  return sum;
}

}  // namespace gantry::test
