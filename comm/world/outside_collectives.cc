#include "comm/world/outside_collectives.h"

#include <utility>
#include <vector>

#include "comm/world/outside_description.h"

namespace rankrun::comm {
namespace {

using Kind = Operation::Kind;

static_assert(static_cast<int>(Kind::kAllReduce) == RANKRUN_CALL_ALL_REDUCE &&
              static_cast<int>(Kind::kBarrier) == RANKRUN_CALL_BARRIER);

// A call in the form of the backend. Borrows the blocks.
class CallInC {
 public:
  CallInC(const Collective& collective, const Call& call, const std::function<bool()>& is_cancelled)
      : is_cancelled_(is_cancelled),
        outputs_(BlocksInC(collective.outputs)),
        inputs_(BlocksInC(collective.inputs)) {
    bool reduces = Reduces(collective.kind);
    DType dtype = reduces ? collective.reduction.dtype : call.operation.dtype;
    call_ = {.size = sizeof(rankrun_backend_call),
             .kind = static_cast<uint8_t>(collective.kind),
             .dtype = static_cast<uint8_t>(dtype),
             .op = static_cast<uint8_t>(reduces ? collective.reduction.op : ReduceOp::kSum),
             .reserved = 0,
             .divisor = reduces ? collective.reduction.divisor : 1,
             .root = collective.root,
             .number = call.operation.number,
             .outputs = outputs_.data(),
             .inputs = inputs_.data(),
             .output_count = outputs_.size(),
             .input_count = inputs_.size(),
             .is_cancelled =
                 [](const rankrun_backend_call* asked) {
                   return static_cast<const CallInC*>(asked->internal)->is_cancelled_() ? 1 : 0;
                 },
             .internal = this};
  }
  CallInC(const CallInC&) = delete;
  CallInC& operator=(const CallInC&) = delete;

  const rankrun_backend_call* get() const { return &call_; }

 private:
  const std::function<bool()>& is_cancelled_;
  const std::vector<rankrun_bytes> outputs_;
  const std::vector<rankrun_bytes> inputs_;
  rankrun_backend_call call_;
};

class OutsideCollectives final : public stream::OwnCollectives {
 public:
  OutsideCollectives(std::shared_ptr<const rankrun_backend> backend, void* state)
      : backend_(std::move(backend)), state_(state) {}
  ~OutsideCollectives() override { backend_->close_group(state_); }

  bool Takes(const Collective& collective, const Call& call) override {
    const std::function<bool()> never = [] { return false; };
    return backend_->takes(state_, CallInC(collective, call, never).get()) != 0;
  }
  Result<void> Run(const Collective& collective, const Call& call,
                   const std::function<bool()>& is_cancelled) override {
    auto ok = Ask(backend_->run, state_, CallInC(collective, call, is_cancelled).get());
    if (ok) return ok;
    return NoRefusal(std::move(ok).error()).In("the backend " + std::string(backend_->name));
  }

 private:
  const std::shared_ptr<const rankrun_backend> backend_;
  void* const state_;
};

}  // namespace

Result<std::unique_ptr<stream::OwnCollectives>> OpenOwnCollectives(
    std::shared_ptr<const rankrun_backend> backend, const rankrun_backend_group* group) {
  if (backend->open_group == nullptr) return std::unique_ptr<stream::OwnCollectives>();
  void* state = nullptr;
  auto ok = Ask(backend->open_group, backend->context, group, &state);
  if (!ok) return NoRefusal(std::move(ok).error());
  return std::unique_ptr<stream::OwnCollectives>(
      std::make_unique<OutsideCollectives>(std::move(backend), state));
}

}  // namespace rankrun::comm
