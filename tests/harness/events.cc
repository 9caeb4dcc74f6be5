// SPDX-License-Identifier: Apache-2.0
#include "tests/harness/events.h"

#include <algorithm>
#include <sstream>

namespace gantry::e2e {
namespace {

// A line is `DATE TIME ZONE ZONE NAMESPACE TOPIC JSON`.
Event Parse(const std::string& line) {
  const size_t topic = line.find(" /");
  const size_t body = line.find(' ', topic + 1);
  if (topic == std::string::npos || body == std::string::npos) {
    return {};
  }
  return {line.substr(topic + 1, body - topic - 1), line.substr(body + 1)};
}

}  // namespace

std::string Event::Field(std::string_view name) const {
  const std::string key = "\"" + std::string(name) + "\":";
  size_t begin = body.find(key);
  if (begin == std::string::npos) {
    return "";
  }
  begin += key.size();
  const bool quoted = body[begin] == '"';
  const size_t end = quoted ? body.find('"', ++begin) : body.find_first_of(",}", begin);
  return body.substr(begin, end - begin);
}

Events::Events(const Node& node) : program_(node.CtrWords({"events"})) {
  // `ctr events` does not say when it is subscribed, so something harmless
  // happens until it shows.
  static int counter = 0;
  const std::string mark = "mark" + std::to_string(++counter);
  Eventually([&] {
    node.Ctr({"namespaces", "label", node.settings().ns, "mark=" + mark});
    return program_.ReadUntil(mark, std::chrono::milliseconds(50));
  });
}

bool Events::HasCome(std::string_view topic, const std::string& container,
                     const std::string& exec) {
  program_.ReadWhile([] { return false; }, std::chrono::milliseconds(10));
  return std::ranges::any_of(Of(container), [&](const Event& event) {
    return event.topic == topic && (exec.empty() || event.Field("exec_id") == exec);
  });
}

std::vector<Event> Events::Of(const std::string& container) const {
  std::vector<Event> found = All();
  std::erase_if(found,
                [&](const Event& event) { return event.Field("container_id") != container; });
  return found;
}

std::vector<Event> Events::Until(std::string_view topic, const std::string& container,
                                 const std::string& process) {
  size_t searched = 0;
  const bool came = program_.ReadWhile([&] {
    const std::string& out = program_.out();
    for (size_t end = out.find('\n', searched); end != std::string::npos;
         end = out.find('\n', searched)) {
      const Event event = Parse(out.substr(searched, end - searched));
      searched = end + 1;
      if (event.topic == topic && event.Field("container_id") == container &&
          (process.empty() || event.Field("id") == process)) {
        return true;
      }
    }
    return false;
  });
  return came ? Of(container) : std::vector<Event>();
}

bool Events::Heard(std::string_view topic, const std::string& container) {
  const std::pair<std::string, std::string> wanted{topic, container};
  return program_.ReadWhile([&] {
    const std::string& out = program_.out();
    for (size_t end = out.find('\n', heard_); end != std::string::npos;
         end = out.find('\n', heard_)) {
      const Event event = Parse(out.substr(heard_, end - heard_));
      heard_ = end + 1;
      heard_of_.insert({event.topic, event.Field("container_id")});
    }
    return heard_of_.contains(wanted);
  });
}

std::vector<Event> Events::All() const {
  std::vector<Event> found;
  std::istringstream lines(program_.out());
  for (std::string line; std::getline(lines, line);) {
    Event event = Parse(line);
    if (event.topic.starts_with("/tasks/")) {
      found.push_back(std::move(event));
    }
  }
  return found;
}

std::vector<std::string> Events::Topics(const std::vector<Event>& events) {
  std::vector<std::string> topics;
  for (const Event& event : events) {
    std::string topic = event.topic.substr(std::string_view("/tasks/").size());
    const std::string id = event.Field("id");
    if (topic == "exit" && id != event.Field("container_id")) {
      topic += "(" + id + ")";
    }
    topics.push_back(topic);
  }
  return topics;
}

std::vector<std::string> Events::TopicsOnce(const std::vector<Event>& events) {
  std::vector<std::string> topics = Topics(events);
  const auto repeated = std::ranges::unique(topics);
  topics.erase(repeated.begin(), repeated.end());
  return topics;
}

}  // namespace gantry::e2e
