// SPDX-License-Identifier: Apache-2.0
#include "plugins/wasm/cache/compile_queue.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace gantry::wasm {

uint64_t Accounts::Of(const std::string& name) const {
  const auto found = used_.find(name);
  return found == used_.end() ? served_ : std::max(found->second, served_);
}

void Accounts::Serve(const std::string& name) { served_ = Of(name); }

void Accounts::Charge(const std::string& name, uint64_t amount) {
  used_[name] = Of(name) + amount;
  std::erase_if(used_, [this](const auto& one) { return one.second <= served_; });
  if (used_.size() > kMost) {
    used_.erase(std::ranges::min_element(used_, {}, [](const auto& one) { return one.second; }));
  }
}

/// One of `list` gives way, of who has most there by count or bytes: of all tenants, or else of
/// the tenant's own sandboxes. False: nobody would have as much left as he with `wanted`.
bool CompileQueue::MakeRoom(List& list, const Waiting& wanted, bool by_bytes,
                            std::vector<std::string>& lost) {
  const auto weight = [by_bytes](const Waiting& one) { return by_bytes ? one.bytes : 1; };
  const Asker& who = wanted.askers.front();
  const auto give_way = [&](const auto& name_of) {
    std::map<std::string, uint64_t> held;
    for (const Waiting& one : list) {
      held[name_of(one.askers.front())] += weight(one);
    }
    held.erase("");
    const uint64_t own = held[name_of(who)] + weight(wanted);
    const auto most =
        std::ranges::max_element(held, {}, [](const auto& one) { return one.second; });
    // The one that came last, and that nobody else waits for.
    const auto last = std::find_if(list.rbegin(), list.rend(), [&](const Waiting& one) {
      return std::ranges::all_of(one.askers,
                                 [&](const Asker& asker) { return name_of(asker) == most->first; });
    });
    if (last == list.rend() || most->first == name_of(who) || most->second - weight(*last) < own) {
      return false;
    }
    lost.push_back(last->key);
    list.erase(std::next(last).base());
    return true;
  };
  return give_way([](const Asker& asker) { return "t" + asker.tenant; }) ||
         give_way([&who](const Asker& asker) {
           return asker.tenant == who.tenant ? "s" + asker.sandbox : std::string();
         });
}

Result<std::vector<std::string>> CompileQueue::Add(const std::string& key, uint64_t bytes,
                                                   const Asker& asker) {
  Waiting wanted{.key = key, .bytes = bytes, .askers = {asker}};
  List left = waiting_;
  std::vector<std::string> lost;
  for (;;) {
    uint64_t all = bytes;
    for (const Waiting& one : left) {
      all += one.bytes;
    }
    const bool too_many = left.size() + 1 > limits_.modules;
    if (!too_many && all <= limits_.bytes) {
      break;
    }
    if (!MakeRoom(left, wanted, !too_many, lost)) {
      return Fail(Code::kResourceExhausted,
                  "compile the module: {} others wait for the compiler, try again later",
                  waiting_.size());
    }
  }
  left.push_back(std::move(wanted));
  waiting_ = std::move(left);
  return lost;
}

void CompileQueue::Join(const std::string& key, const Asker& asker) {
  const auto found = std::ranges::find(waiting_, key, &Waiting::key);
  if (found != waiting_.end() && found->askers.size() < kMostAskers &&
      !std::ranges::contains(found->askers, asker)) {
    found->askers.push_back(asker);
  }
}

uint64_t CompileQueue::UsedBySandbox(const Asker& asker) const {
  const auto found = sandboxes_.find(asker.tenant);
  return found == sandboxes_.end() ? 0 : found->second.Of(asker.sandbox);
}

std::optional<CompileQueue::Job> CompileQueue::Next() {
  auto next = waiting_.end();
  const Asker* whose = nullptr;
  const auto used = [this](const Asker& asker) {
    return std::pair(tenants_.Of(asker.tenant), UsedBySandbox(asker));
  };
  for (auto one = waiting_.begin(); one != waiting_.end(); ++one) {
    for (const Asker& asker : one->askers) {
      // Sandboxes of two tenants are not compared: the one that came first stays.
      if (whose == nullptr || used(asker).first < used(*whose).first ||
          (asker.tenant == whose->tenant && used(asker) < used(*whose))) {
        next = one;
        whose = &asker;
      }
    }
  }
  if (whose == nullptr) {
    return std::nullopt;
  }
  Job job{.key = next->key, .asker = *whose};
  waiting_.erase(next);
  tenants_.Serve(job.asker.tenant);
  sandboxes_[job.asker.tenant].Serve(job.asker.sandbox);
  return job;
}

void CompileQueue::Charge(const Asker& asker, std::chrono::milliseconds time) {
  const auto amount = static_cast<uint64_t>(std::max<int64_t>(1, time.count()));
  tenants_.Charge(asker.tenant, amount);
  sandboxes_[asker.tenant].Charge(asker.sandbox, amount);
  Forget();
}

/// Tenants that owe nothing and for whom nothing waits.
void CompileQueue::Forget() {
  std::erase_if(sandboxes_, [this](const auto& one) {
    return tenants_.IsEven(one.first) &&
           std::ranges::none_of(waiting_, [&](const Waiting& waiting) {
             return std::ranges::contains(waiting.askers, one.first, &Asker::tenant);
           });
  });
}

}  // namespace gantry::wasm
