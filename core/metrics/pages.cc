// SPDX-License-Identifier: Apache-2.0
#include "core/metrics/pages.h"

#include <utility>

#include "core/metrics/render.h"

namespace gantry::metrics {

void Pages::Ask(TextFormat format, std::move_only_function<void(Page)> take) {
  if (moment_ && loop_.Now() - looked_at_ < fresh_) {
    take(PageOf(format));
    return;
  }
  if (served_next_.size() + served_after_.size() >= kMostWaiting) {
    take(nullptr);
    return;
  }
  (looking_ ? served_after_ : served_next_).push_back({format, std::move(take)});
  if (!looking_) {
    Begin();
  }
}

void Pages::Begin() {
  looking_ = true;
  looked_at_ = loop_.Now();
  look_([this](Finish finish) { Have(std::move(finish)); });
}

void Pages::Have(Finish finish) {
  Forget();
  moment_ = finish();
  for (Asked& asked : std::exchange(served_next_, {})) {
    asked.take(PageOf(asked.format));
  }
  looking_ = false;
  served_next_ = std::exchange(served_after_, {});
  if (!served_next_.empty()) {
    Begin();
  }
  loop_.Cancel(forget_);
  forget_ = loop_.After(fresh_, [this] { Forget(); });
}

/// What is young enough is given again; after that it is memory that nobody needs.
void Pages::Forget() {
  moment_.reset();
  prometheus_.reset();
  open_metrics_.reset();
}

Page Pages::PageOf(TextFormat format) {
  Page& page = format == TextFormat::kOpenMetrics ? open_metrics_ : prometheus_;
  if (!page) {
    // NOLINTNEXTLINE(bugprone-unchecked-optional-access): only asked for while there is one.
    page = std::make_shared<const std::string>(Render(*moment_, format));
  }
  return page;
}

}  // namespace gantry::metrics
