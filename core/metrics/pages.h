// SPDX-License-Identifier: Apache-2.0
//
// The texts that scrapers get. One moment is looked at at a time, whoever asks meanwhile gets the
// next one, and one that is young is given again: so many scrapers cost as much as a few.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/async/loop.h"
#include "core/metrics/moment.h"
#include "core/metrics/text.h"

namespace gantry::metrics {

/// Shared by all who are sent it.
using Page = std::shared_ptr<const std::string>;

/// Thread: the loop's that it is made with.
class Pages {
 public:
  /// Gives the moment; what takes time is done in it. Called on the loop's thread, once.
  using Finish = std::move_only_function<Moment()>;
  using Done = std::move_only_function<void(Finish)>;
  /// Looks at the engine, and calls `done` once, on the same loop, now or later.
  using Look = std::move_only_function<void(Done done)>;

  /// `fresh`: for so long a moment is given again.
  Pages(async::Loop& loop, Look look, async::Duration fresh)
      : loop_(loop), look_(std::move(look)), fresh_(fresh) {}

  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  ~Pages() { loop_.Cancel(forget_); }

  /// So many wait for a page at most.
  static constexpr size_t kMostWaiting = 512;

  /// `take` gets the page, now or later; null: too many wait.
  void Ask(TextFormat format, std::move_only_function<void(Page)> take);

 private:
  struct Asked {
    TextFormat format;
    std::move_only_function<void(Page)> take;
  };

  void Begin();
  void Have(Finish finish);
  Page PageOf(TextFormat format);
  void Forget();

  async::Loop& loop_;
  Look look_;
  const async::Duration fresh_;
  /// A look is under way, or those who wait for it get its page.
  bool looking_ = false;
  /// Those who came before it; those who came since.
  std::vector<Asked> served_next_;
  std::vector<Asked> served_after_;
  async::TimePoint looked_at_{};
  /// The last one while it is young, and what was made of it.
  std::optional<Moment> moment_;
  Page prometheus_;
  Page open_metrics_;
  async::TimerId forget_;
};

}  // namespace gantry::metrics
