#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include <rankrun/export.h>

// Results that come later. In a fork of the process that made the promise, calls throw
// DistError.
// Source: torch.futures.
namespace rankrun {

class Work;
template <typename T>
class Future;

// Returns the end of an operation as a future. Counts as a wait: the time-out of a message
// starts.
RANKRUN_API Future<void> FutureOf(const Work& work);

// Value of a Future<void>.
struct Nothing {};

namespace comm {

// End of a future, without its value. Thread: any.
class RANKRUN_API FutureEnd {
 public:
  FutureEnd();
  FutureEnd(const FutureEnd&) = delete;
  FutureEnd& operator=(const FutureEnd&) = delete;
  ~FutureEnd();

  // Ends the future, with an exception unless `why` is null. Calls `write` before others see
  // the end. Returns false, and calls nothing, if the future had ended.
  bool Set(
      std::exception_ptr why, const std::function<void()>& write = [] {});
  bool done() const;
  std::exception_ptr exception() const;
  // Wait for the end and throw its exception. AwaitFor returns false after `limit`.
  void Await() const;
  bool AwaitFor(std::chrono::milliseconds limit) const;
  // Calls `next` after the end: in the thread that ends the future, or here.
  void Then(std::function<void()> next);

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace comm

// The side that sets the value of a future. Copies set the same one. Once all are gone
// without a value, the future has a std::future_error (broken_promise).
// Thread: any.
template <typename T>
class Promise {
 public:
  using Value = std::conditional_t<std::is_void_v<T>, Nothing, T>;

  // Return whether this call ended the future; false: it had ended.
  bool SetValue(Value value = {}) const {
    return shared_->end.Set(nullptr, [&] { shared_->value = std::move(value); });
  }
  bool SetException(std::exception_ptr why) const { return shared_->end.Set(std::move(why)); }
  Future<T> future() const { return Future<T>(shared_); }

 private:
  friend class Future<T>;

  struct Shared {
    comm::FutureEnd end;
    std::optional<Value> value;
  };
  struct Owner {
    explicit Owner(std::shared_ptr<Shared> of) : shared(std::move(of)) {}
    ~Owner() {
      shared->end.Set(std::make_exception_ptr(std::future_error(std::future_errc::broken_promise)));
    }
    std::shared_ptr<Shared> shared;
  };

  std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
  std::shared_ptr<Owner> owner_ = std::make_shared<Owner>(shared_);
};

// Result of an operation under way, a value or an exception. Copies have the same result.
// Thread: any.
template <typename T>
class Future {
 public:
  using Value = typename Promise<T>::Value;

  bool done() const { return shared_->end.done(); }
  // Waits for the end. Returns the value, or throws the exception.
  const Value& Wait() const {
    shared_->end.Await();
    return *shared_->value;
  }
  // As Wait, but returns false after `limit`; the operation goes on.
  bool WaitFor(std::chrono::milliseconds limit) const { return shared_->end.AwaitFor(limit); }
  // Null before the end, and after a success.
  std::exception_ptr exception() const { return shared_->end.exception(); }

  // Calls `next` with this future after its end: in the thread that ends it, or here if it
  // has ended. Returns the result of `next`.
  template <typename Next>
  auto Then(Next next) const -> Future<std::invoke_result_t<Next, const Future&>> {
    using Result = std::invoke_result_t<Next, const Future&>;
    Promise<Result> promise;
    shared_->end.Then([self = *this, next = std::move(next), promise]() mutable {
      try {
        if constexpr (std::is_void_v<Result>) {
          next(self);
          promise.SetValue();
        } else {
          promise.SetValue(next(self));
        }
      } catch (...) {
        promise.SetException(std::current_exception());
      }
    });
    return promise.future();
  }

 private:
  friend class Promise<T>;
  using Shared = typename Promise<T>::Shared;

  explicit Future(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}

  std::shared_ptr<Shared> shared_;
};

}  // namespace rankrun
