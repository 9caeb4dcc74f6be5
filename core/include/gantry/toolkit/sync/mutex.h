// SPDX-License-Identifier: Apache-2.0
//
// A mutex that says what it guards, so that clang checks it (-Wthread-safety, in
// `./run check`): std::mutex of libstdc++ has none of the attributes. For other compilers the
// macros are nothing.
//
//   class Names {
//     void Add(std::string name) {
//       const MutexLock lock(mutex_);
//       names_.push_back(std::move(name));
//     }
//     void Sort() GANTRY_REQUIRES(mutex_);
//     Mutex mutex_;
//     std::vector<std::string> names_ GANTRY_GUARDED_BY(mutex_);
//   };
//
// Source of the attributes: https://clang.llvm.org/docs/ThreadSafetyAnalysis.html
#pragma once

#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define GANTRY_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define GANTRY_THREAD_ATTRIBUTE(x)
#endif

/// Of a variable: only with this mutex held.
#define GANTRY_GUARDED_BY(mutex) GANTRY_THREAD_ATTRIBUTE(guarded_by(mutex))
/// Of a pointer: what it points to.
#define GANTRY_PT_GUARDED_BY(mutex) GANTRY_THREAD_ATTRIBUTE(pt_guarded_by(mutex))
/// Of a function: whoever calls it holds the mutex.
#define GANTRY_REQUIRES(...) GANTRY_THREAD_ATTRIBUTE(requires_capability(__VA_ARGS__))
/// Of a function: whoever calls it does not hold the mutex; it takes it itself.
#define GANTRY_EXCLUDES(...) GANTRY_THREAD_ATTRIBUTE(locks_excluded(__VA_ARGS__))
/// Of a function that clang cannot follow; says why.
#define GANTRY_NO_THREAD_SAFETY_ANALYSIS GANTRY_THREAD_ATTRIBUTE(no_thread_safety_analysis)

namespace gantry {

class GANTRY_THREAD_ATTRIBUTE(capability("mutex")) Mutex {
 public:
  Mutex() = default;
  ~Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void Lock() GANTRY_THREAD_ATTRIBUTE(acquire_capability()) { mutex_.lock(); }

  void Unlock() GANTRY_THREAD_ATTRIBUTE(release_capability()) { mutex_.unlock(); }

 private:
  friend class MutexLock;

  std::mutex mutex_;
};

/// Holds the mutex while it lives, but between `Unlock` and `Lock`. Thread: one.
class GANTRY_THREAD_ATTRIBUTE(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) GANTRY_THREAD_ATTRIBUTE(acquire_capability(mutex))
      : lock_(mutex.mutex_) {}

  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  ~MutexLock() GANTRY_THREAD_ATTRIBUTE(release_capability()) {}

  void Lock() GANTRY_THREAD_ATTRIBUTE(acquire_capability()) { lock_.lock(); }

  void Unlock() GANTRY_THREAD_ATTRIBUTE(release_capability()) { lock_.unlock(); }

  /// For a std::condition_variable, whose `wait` gives it back as it was. A predicate is a
  /// function of its own to clang: `[this]() GANTRY_REQUIRES(mutex_) { ... }`.
  std::unique_lock<std::mutex>& native() { return lock_; }

 private:
  std::unique_lock<std::mutex> lock_;
};

}  // namespace gantry
