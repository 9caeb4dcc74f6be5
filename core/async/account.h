// SPDX-License-Identifier: Apache-2.0
//
// What is done and held on somebody's behalf (a sandbox's), added up.
//
// A thread works for one account at a time, or for none: `Charged` says for which.
// On the loop a coroutine that is resumed works for whom it was woken by
// (resume.h), so what a request leads to is mostly on its account; what other
// threads tell the loop (the keeper, timers) is on none.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace gantry::async {

struct Account {
  explicit Account(std::string whose) : name(std::move(whose)) {}

  /// For messages.
  const std::string name;
  /// What threads of this process spent on it, in nanoseconds. Thread: any.
  std::atomic<uint64_t> cpu_ns{0};
  /// Calls that are not answered, and the bytes that they and what they left hold
  /// in memory. Thread: loop.
  size_t calls = 0;
  size_t bytes = 0;
};

using AccountPtr = std::shared_ptr<Account>;

/// As long as it lives this thread's CPU time goes to `account` (null: to nobody);
/// then to the one from before again. Thread: any, and to be destroyed on the same.
/// Costs two readings of the thread's clock where the account changes, else nothing.
class Charged {
 public:
  explicit Charged(AccountPtr account);
  ~Charged();
  Charged(const Charged&) = delete;
  Charged& operator=(const Charged&) = delete;

  /// Whom this thread works for. Null: nobody.
  static const AccountPtr& Current();

 private:
  /// Of whom it was before. Only with `changed_`.
  AccountPtr before_;
  bool changed_;
};

/// Bytes held for an account, until it is destroyed. Thread: loop.
class HeldBytes {
 public:
  HeldBytes() = default;

  HeldBytes(AccountPtr account, size_t bytes) : account_(std::move(account)), bytes_(bytes) {
    Add();
  }

  HeldBytes(HeldBytes&& other) noexcept
      : account_(std::move(other.account_)), bytes_(std::exchange(other.bytes_, 0)) {}

  HeldBytes& operator=(HeldBytes&& other) noexcept {
    if (this != &other) {
      Drop();
      account_ = std::move(other.account_);
      bytes_ = std::exchange(other.bytes_, 0);
    }
    return *this;
  }

  HeldBytes(const HeldBytes&) = delete;
  HeldBytes& operator=(const HeldBytes&) = delete;

  ~HeldBytes() { Drop(); }

 private:
  void Add() {
    if (account_) {
      account_->bytes += bytes_;
    }
  }

  void Drop() {
    if (const AccountPtr account = std::move(account_)) {
      account->bytes -= std::exchange(bytes_, 0);
    }
  }

  AccountPtr account_;
  size_t bytes_ = 0;
};

}  // namespace gantry::async
