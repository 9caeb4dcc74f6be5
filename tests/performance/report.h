// SPDX-License-Identifier: Apache-2.0
//
// The table and the files: rows with their targets, and under them where the
// time of a row goes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <gantry/error.h>

#include "tests/performance/samples.h"

namespace gantry::bench {

/// One line of the table. `ratio` is ours by peer.
struct Row {
  std::string id;
  std::string what;
  std::string unit;
  std::optional<double> ours;
  std::optional<double> peer;
  /// In words: "ratio <= 0.8". Empty: a figure without a target.
  std::string target;
  std::optional<bool> met;
  bool not_here = false;  ///< See Report::AddNotHere.

  std::optional<double> ratio() const;

  /// Ours by peer at most, below, or at least `limit`.
  Row RatioAtMost(double limit) &&;
  Row RatioBelow(double limit) &&;
  Row RatioAtLeast(double limit) &&;
  /// Ours at most `limit`, whatever the peer's.
  Row AtMost(double limit) &&;
};

class Report {
 public:
  void Add(Row row);
  /// A part of a row's figure, in its unit.
  void AddPhases(const std::string& row, const Pair& pair);
  /// Of these parts alone.
  void AddPhases(const std::string& row, const Pair& pair, const std::vector<std::string>& names);
  void AddPart(const std::string& row, const std::string& part, double ours, double peer);

  /// A line under the table.
  void AddNote(const std::string& note) { notes_.push_back(note); }

  /// A row that could not be measured, and why.
  void AddFailure(const std::string& row, const Error& error);

  /// A row that needs another host than this one; `needs` says what. Not a failure.
  void AddNotHere(const std::string& row, const std::string& needs);

  /// For people.
  std::string Table() const;
  /// Writes FOLDER/bench.json and FOLDER/bench-parts.json: lists of objects,
  /// one on each line. Errors: as open(2).
  Status Write(const std::string& folder) const;

  bool failed() const { return failed_; }

 private:
  struct Part {
    std::string row;
    std::string part;
    double ours = 0;
    double peer = 0;
  };

  std::vector<Row> rows_;
  std::vector<Part> parts_;
  std::vector<std::string> notes_;
  bool failed_ = false;
};

}  // namespace gantry::bench
