// SPDX-License-Identifier: Apache-2.0
//
// How a worker asks the loop: it posts the question and blocks for the answer.
// For backends' calls into their contexts, which come from worker threads while
// all state lives on the loop.
#pragma once

#include <future>
#include <memory>
#include <type_traits>
#include <utility>

#include "core/async/co.h"
#include "core/async/loop.h"

namespace gantry::async {

namespace internal {

template <class F, class T>
Task<void> AnswerOnLoop(std::shared_ptr<F> question, std::shared_ptr<std::promise<T>> answer) {
  if constexpr (std::is_void_v<T>) {
    co_await (*question)();
    answer->set_value();
  } else {
    answer->set_value(co_await (*question)());
  }
}

template <class T>
struct TaskValue;

template <class T>
struct TaskValue<Task<T>> {
  using Type = T;
};

}  // namespace internal

/// Runs `question`, a function that returns a `Task<T>`, on the loop and gives
/// its value. On the loop's own thread this would wait for itself: not allowed.
/// Thread: any but the loop's. Blocks: until the loop has answered; for ever
/// when the loop has ended, so the loop must outlive the workers.
template <class F>
auto Ask(Loop& loop, F question) {
  using T = typename internal::TaskValue<std::invoke_result_t<F&>>::Type;
  auto kept = std::make_shared<F>(std::move(question));
  auto answer = std::make_shared<std::promise<T>>();
  auto future = answer->get_future();
  loop.Post([kept, answer] { Start(internal::AnswerOnLoop<F, T>(kept, answer)); });
  return future.get();
}

/// The same for a function that does not wait.
template <class F>
auto Call(Loop& loop, F function) {
  using T = std::invoke_result_t<F&>;
  auto answer = std::make_shared<std::promise<T>>();
  auto future = answer->get_future();
  loop.Post([kept = std::make_shared<F>(std::move(function)), answer] {
    if constexpr (std::is_void_v<T>) {
      (*kept)();
      answer->set_value();
    } else {
      answer->set_value((*kept)());
    }
  });
  return future.get();
}

}  // namespace gantry::async
