// SPDX-License-Identifier: Apache-2.0
//
// The two text formats that Prometheus and those who do as it does read.
// Source: prometheus.io/docs/instrumenting/exposition_formats (text 0.0.4); OpenMetrics 1.0.0.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <set>
#include <string>
#include <string_view>

namespace gantry::metrics {

class Histogram;

enum class TextFormat { kPrometheus, kOpenMetrics };

/// Of the header Content-Type.
std::string_view ContentTypeOf(TextFormat format);

enum class Kind { kCounter, kGauge, kHistogram };

/// "counter".
std::string_view KindName(Kind kind);

/// Samples of one name and meaning.
struct Family {
  /// As samples have it: a counter's ends in _total.
  std::string_view name;
  Kind kind;
  /// The names of its labels, with commas, for the documentation; "": it has none.
  std::string_view labels;
  /// Without quotes, backslashes and line ends.
  std::string_view help;
};

struct Label {
  std::string_view name;
  std::string_view value;
};

using Labels = std::initializer_list<Label>;

/// Thread: any, one at a time.
class TextWriter {
 public:
  explicit TextWriter(TextFormat format) : format_(format) {}

  /// The samples that follow are of it. Each family is begun once.
  void Begin(const Family& family);

  /// Values of labels are cut to 128 bytes, and what is neither ASCII nor visible in them becomes
  /// '?': backends and images name things.
  void Add(Labels labels, uint64_t value);
  void Add(Labels labels, double value);
  void Add(Labels labels, const Histogram& histogram);

  /// The same, for names that somebody else chooses: where they are those of a sample that there
  /// is, or have become it, this one is left out. Prometheus takes nothing of a text with two.
  void AddNew(Labels labels, uint64_t value);

  /// The text.
  std::string Finish();

 private:
  /// What stands before a value. `bound`: the label of a bucket.
  void Head(std::string_view suffix, Labels labels, std::string_view bound = {});

  TextFormat format_;
  std::string text_;
  std::string_view name_;
  /// What `AddNew` has added of this family.
  std::set<std::string> added_;
};

}  // namespace gantry::metrics
