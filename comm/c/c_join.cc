#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <rankrun/c/join.h>
#include <rankrun/dist_error.h>
#include <rankrun/join.h>

#include "comm/c/c_guard.h"

using rankrun::JoinArguments;
using rankrun::JoinHook;
using rankrun::JoinOptions;
using rankrun::comm::FailuresOfThisThread;
using rankrun::comm::GroupOf;
using rankrun::comm::Guarded;
using rankrun::comm::GuardedOr;
using rankrun::comm::ListOf;
using rankrun::comm::NotNull;
using rankrun::comm::OptionsOf;
using rankrun::comm::WriteOptions;

namespace {

struct HookFailed : rankrun::DistError {
  HookFailed(rankrun_status result, const std::string& reason)
      : DistError(reason), status(result) {}
  rankrun_status status;
};

void Call(const std::function<rankrun_status()>& hook) {
  uint64_t before = FailuresOfThisThread();
  rankrun_status status = hook();
  if (status == RANKRUN_OK) return;
  bool has_reason = FailuresOfThisThread() > before;
  throw HookFailed(
      status, "Join: a hook failed: " +
                  (has_reason ? rankrun_last_error() : "it returned " + std::to_string(status)));
}

class HookInC final : public JoinHook {
 public:
  explicit HookInC(const rankrun_joinable& joinable) : joinable_(joinable) {}
  void MainHook() override {
    if (joinable_.main_hook == nullptr) return;
    Call([this] { return joinable_.main_hook(joinable_.context); });
  }
  void PostHook(bool is_last_joiner) override {
    if (joinable_.post_hook == nullptr) return;
    Call([&] { return joinable_.post_hook(joinable_.context, is_last_joiner ? 1 : 0); });
  }

 private:
  const rankrun_joinable joinable_;
};

class JoinableInC final : public rankrun::Joinable {
 public:
  explicit JoinableInC(const rankrun_joinable& joinable) : joinable_(joinable) {}
  std::unique_ptr<JoinHook> MakeJoinHook(const JoinArguments&) override {
    return std::make_unique<HookInC>(joinable_);
  }
  rankrun::ProcessGroup& join_process_group() const override { return GroupOf(joinable_.group); }

 private:
  const rankrun_joinable joinable_;
};

constexpr rankrun_join_options kDefaults{
    .size = sizeof(rankrun_join_options), .enable = 1, .throw_on_early_termination = 0};

}  // namespace

struct rankrun_join {
  std::vector<std::unique_ptr<JoinableInC>> joinables;
  std::unique_ptr<rankrun::Join> join;
};

extern "C" {

rankrun_status rankrun_join_options_default(rankrun_join_options* options) {
  return Guarded([=] { WriteOptions(kDefaults, options); });
}

rankrun_join* rankrun_join_begin(const rankrun_joinable* joinables, size_t count,
                                 const rankrun_join_options* options) {
  return GuardedOr<rankrun_join*>(nullptr, [=] {
    rankrun_join_options chosen = OptionsOf(options, kDefaults);
    auto made = std::make_unique<rankrun_join>();
    std::vector<rankrun::Joinable*> all;
    for (const rankrun_joinable& joinable : ListOf(joinables, count, "joinables")) {
      made->joinables.push_back(std::make_unique<JoinableInC>(joinable));
      all.push_back(made->joinables.back().get());
    }
    made->join = std::make_unique<rankrun::Join>(
        std::move(all),
        JoinOptions{.enable = chosen.enable != 0,
                    .throw_on_early_termination = chosen.throw_on_early_termination != 0});
    return made.release();
  });
}

rankrun_status rankrun_join_notify(rankrun_join* join) {
  return Guarded(
      [=] { static_cast<void>(NotifyJoinContext(*NotNull(join, "join").joinables.front())); });
}

rankrun_status rankrun_join_finish(rankrun_join* join) {
  rankrun_status of_hook = RANKRUN_OK;
  rankrun_status status = Guarded([&] {
    try {
      NotNull(join, "join").join->Finish();
    } catch (const HookFailed& failed) {
      of_hook = failed.status;
      throw;
    }
  });
  return of_hook == RANKRUN_OK || status == RANKRUN_INTERRUPTED ? status : of_hook;
}

void rankrun_join_end(rankrun_join* join) { delete join; }

}  // extern "C"
