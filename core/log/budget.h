// SPDX-License-Identifier: Apache-2.0
//
// Who may still log. A line costs its call site's allowance for its subject (the sandbox or
// container that it is about), and its subject's for all sites; beyond the bound for all
// together only subjects have their say that have said little. So nobody's flood fills the
// log, and nobody's flood is the reason why another one's line is missing.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory_resource>
#include <string_view>
#include <unordered_map>

namespace gantry::log {

/// Thread: one at a time.
class Budget {
 public:
  using Clock = std::chrono::steady_clock;

  static constexpr std::chrono::seconds kWindow{5};
  /// Of one call site about one subject, in a window; of lines that are errors.
  static constexpr uint32_t kBurst = 20;
  static constexpr uint32_t kErrorBurst = 200;
  /// Of one subject.
  static constexpr uint32_t kSubjectBurst = 400;
  /// Of all; and what a subject has nevertheless.
  static constexpr uint32_t kGlobalBurst = 4000;
  static constexpr uint32_t kFloor = 10;
  /// So many sites and subjects are remembered, those that logged last.
  static constexpr size_t kRemembered = 2048;

  /// Whether a line may be written, and if so how many like it were not before.
  struct Answer {
    bool admitted = false;
    uint32_t suppressed = 0;
  };

  /// @param memory  outlives this; asked for few large pieces, see pool_
  explicit Budget(std::pmr::memory_resource* memory = std::pmr::new_delete_resource());

  Answer Admit(const void* file, uint32_t line, bool is_error, std::string_view subject,
               Clock::time_point now);
  void Clear();

 private:
  struct Entry {
    uint64_t key = 0;
    uint32_t count = 0;
    uint32_t suppressed = 0;
    Clock::time_point begin;
  };

  /// Its entry of this window, the newest now.
  Entry& Find(uint64_t key, Clock::time_point now);

  /// What is remembered outlives the calls that it came with. Strewn over the heap, each entry
  /// would keep a page from the kernel that is free but for it: 1.4 MB after 100 containers.
  std::pmr::unsynchronized_pool_resource pool_;
  /// The newest first.
  std::pmr::list<Entry> entries_;
  std::pmr::unordered_map<uint64_t, std::pmr::list<Entry>::iterator> by_key_;
  Entry all_;
};

}  // namespace gantry::log
