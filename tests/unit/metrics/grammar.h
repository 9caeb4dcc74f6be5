// SPDX-License-Identifier: Apache-2.0
//
// Reads metrics' text as strictly as its formats are written down, to check what is served. Shared
// by unit and integration tests.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <gantry/error.h>

namespace gantry::test {

struct Sample {
  /// As it stands there, with `_bucket` and the like.
  std::string name;
  std::map<std::string, std::string> labels;
  double value = 0;
};

struct FamilyText {
  /// counter, gauge or histogram.
  std::string type;
  std::string help;
  std::vector<Sample> samples;
};

/// By the name that TYPE gives.
using MetricsText = std::map<std::string, FamilyText>;

/// Errors: what is wrong, with its line: a name or label that is none, a family that comes twice or
/// has samples elsewhere, one without HELP and TYPE, two samples of the same name and labels, a
/// value that is none, buckets that do not add up, a unit or suffix that does not suit; with
/// `open_metrics`, what that format has of its own.
Result<MetricsText> ReadMetrics(std::string_view text, bool open_metrics);

/// The sum of the samples of that name whose labels include `labels`; 0: there is none.
double SumOf(const MetricsText& metrics, std::string_view name,
             const std::map<std::string, std::string>& labels = {});

}  // namespace gantry::test
