// SPDX-License-Identifier: Apache-2.0
//
// `ctr events`: what containerd tells its subscribers, in order.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/harness/node.h"

namespace gantry::e2e {

struct Event {
  std::string topic;
  std::string body;  ///< JSON.

  /// The value of a field, a string's quotes taken off; empty when absent.
  std::string Field(std::string_view name) const;
};

/// Thread: the test's. Subscribed when the constructor returns.
class Events {
 public:
  explicit Events(const Node& node);

  /// Waits for an event of that topic and of that container (or, with an
  /// exit, of that `process`) and returns all events of the container so far.
  /// Empty when it did not come.
  std::vector<Event> Until(std::string_view topic, const std::string& container,
                           const std::string& process = "");
  /// The same for very many containers: whether it came, no more.
  bool Heard(std::string_view topic, const std::string& container);
  /// Whether it has come by now; `exec`: of that process, where it is not empty.
  bool HasCome(std::string_view topic, const std::string& container, const std::string& exec = "");
  /// All of tasks seen so far.
  std::vector<Event> All() const;
  /// The events of a container seen so far.
  std::vector<Event> Of(const std::string& container) const;
  /// Their topics, without "/tasks/"; an exec's exit as "exit(id)".
  static std::vector<std::string> Topics(const std::vector<Event>& events);
  /// The same, each once where it came again at once: containerd had an event,
  /// and the engine was killed before it knew.
  static std::vector<std::string> TopicsOnce(const std::vector<Event>& events);

 private:
  Program program_;
  /// What `Heard` has looked at.
  size_t heard_ = 0;
  std::set<std::pair<std::string, std::string>> heard_of_;
};

}  // namespace gantry::e2e
