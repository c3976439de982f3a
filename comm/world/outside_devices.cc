#include "comm/world/outside_devices.h"

#include <atomic>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "comm/stores/store_handle.h"
#include "comm/world/outside_description.h"

namespace rankrun::comm {
namespace {

using Kind = Operation::Kind;

static_assert(static_cast<int>(Kind::kAllReduce) == RANKRUN_CALL_ALL_REDUCE &&
              static_cast<int>(Kind::kAllToAll) == RANKRUN_CALL_ALL_TO_ALL &&
              static_cast<int>(Kind::kRecv) == RANKRUN_CALL_RECV);

constexpr std::chrono::seconds kStoreTimeout{300};  // of a wait without its own

// For connecting the backend's own client of the store, and for replies to it.
constexpr std::chrono::seconds kStorePatience{5};

// A call in the form of the backend. Borrows the call.
class CallInC {
 public:
  explicit CallInC(const DeviceCall& call)
      : outputs_(BlocksInC(call.outputs)), inputs_(BlocksInC(call.inputs)) {
    call_ = {.size = sizeof(rankrun_device_call),
             .kind = static_cast<uint8_t>(call.operation.kind),
             .dtype = static_cast<uint8_t>(call.operation.dtype),
             .op = static_cast<uint8_t>(call.operation.op),
             .reserved = 0,
             .factor = call.factor,
             .root = call.operation.root,
             .device = call.device,
             .stream = call.stream,
             .outputs = outputs_.data(),
             .inputs = inputs_.data(),
             .output_count = outputs_.size(),
             .input_count = inputs_.size(),
             .timeout_ms = call.timeout.count()};
  }

  const rankrun_device_call* get() const { return &call_; }

 private:
  const std::vector<rankrun_bytes> outputs_;
  const std::vector<rankrun_bytes> inputs_;
  rankrun_device_call call_;
};

// State of the backend for one group. Lives until its last work is released.
class State {
 public:
  // `below`: a client beside the group's own, on which other threads may wait.
  State(const rankrun_device_backend& backend, const DeviceBackendConfig& config,
        std::unique_ptr<store::Store> below)
      : backend_(backend),
        deaths_(config.deaths),
        name_(config.name),
        ranks_(config.global_ranks.begin(), config.global_ranks.end()),
        below_(std::move(below)),
        store_{StoreOver(*below_, config.key_prefix + "/" + backend.name, kStoreTimeout)},
        group_{.size = sizeof(rankrun_device_group),
               .rank = config.group_rank,
               .world_size = config.world_size(),
               .reserved = 0,
               .global_ranks = ranks_.data(),
               .name = name_.c_str(),
               .store = &store_,
               .is_cancelled =
                   [](const rankrun_device_group* group) {
                     const auto* state = static_cast<const State*>(group->internal);
                     return state->is_aborted() || state->deaths_.has_death() ? 1 : 0;
                   },
               .internal = this} {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (is_created_) backend_.destroy(state_);
  }

  Result<void> Create() {
    auto created = Ask(backend_.create, backend_.context, &group_, &state_);
    is_created_ = static_cast<bool>(created);
    return created;
  }

  void Abort() {
    aborted_.store(true);
    backend_.abort(state_);
  }

  // Returns the error of a call that began then: its real cause if the backend has only
  // ended a wait.
  Error Cause(Error error, TimePoint began) const {
    if (deaths_.has_death()) return deaths_.ErrorSince(began);
    if (is_aborted()) error.code = ErrorCode::kCancelled;
    return error;
  }

  bool is_aborted() const { return aborted_.load(); }
  const rankrun_device_backend& backend() const { return backend_; }
  void* get() const { return state_; }

 private:
  const rankrun_device_backend& backend_;
  const DeathWatch deaths_;
  const std::string name_;
  const std::vector<int32_t> ranks_;
  const std::unique_ptr<store::Store> below_;
  rankrun_store store_;
  const rankrun_device_group group_;
  std::atomic<bool> aborted_ = false;
  void* state_ = nullptr;
  bool is_created_ = false;
};

// Collective or message.
class OutsideWork final : public DeviceMessage {
 public:
  OutsideWork(std::shared_ptr<const State> state, void* work)
      : state_(std::move(state)), work_(work) {}
  ~OutsideWork() override { state_->backend().release(work_); }

  Result<bool> Enqueue() override { return AskForFlag(state_->backend().advance); }
  Result<bool> Test() override {
    auto done = AskForFlag(state_->backend().test);
    if (!state_->is_aborted()) return done;
    return Error{ErrorCode::kCancelled, "the process group was broken meanwhile"};
  }
  Result<void> WaitIn(void* stream) override {
    return Ask(state_->backend().wait_in, work_, stream);
  }

 private:
  template <typename Function>
  Result<bool> AskForFlag(Function function) {
    int flag = 0;
    if (auto ok = Ask(function, work_, &flag); !ok) return state_->Cause(ok.error(), began_);
    return flag != 0;
  }

  const std::shared_ptr<const State> state_;
  void* const work_;
  const TimePoint began_ = MonotonicClock().Now();
};

class OutsideDevices final : public DeviceBackend {
 public:
  explicit OutsideDevices(std::shared_ptr<State> state) : state_(std::move(state)) {}

  Result<void> Check(const DeviceCall& call) const override {
    bool is_message = call.operation.kind == Kind::kSend || call.operation.kind == Kind::kRecv;
    if (is_message && backend().start == nullptr) {
      return Error{ErrorCode::kInvalid,
                   "the backend " + std::string(backend().name) + " has no messages on GPU memory"};
    }
    CallInC in_c(call);
    return Ask(backend().check, state_->get(), in_c.get());
  }
  Result<std::shared_ptr<DeviceWork>> Enqueue(const DeviceCall& call) override {
    auto work = Begin(backend().enqueue, call);
    if (!work) return std::move(work).error();
    return std::shared_ptr<DeviceWork>(*std::move(work));
  }
  Result<std::shared_ptr<DeviceMessage>> Start(const DeviceCall& call) override {
    auto work = Begin(backend().start, call);
    if (!work) return std::move(work).error();
    return std::shared_ptr<DeviceMessage>(*std::move(work));
  }
  void Abort() override { state_->Abort(); }

 private:
  const rankrun_device_backend& backend() const { return state_->backend(); }

  template <typename Function>
  Result<std::shared_ptr<OutsideWork>> Begin(Function function, const DeviceCall& call) {
    const TimePoint began = MonotonicClock().Now();
    CallInC in_c(call);
    void* work = nullptr;
    if (auto ok = Ask(function, state_->get(), in_c.get(), &work); !ok) {
      return state_->Cause(ok.error(), began);
    }
    return std::make_shared<OutsideWork>(state_, work);
  }

  const std::shared_ptr<State> state_;
};

}  // namespace

Result<void> CheckOutsideDevices(const rankrun_device_backend& backend) {
  auto ok = CheckDescription(backend, RANKRUN_DEVICE_BACKEND_VERSION, "rankrun_device_backend");
  if (!ok) return ok;
  // Messages, by both functions or none.
  const bool has_start = backend.start != nullptr;
  const bool has_advance = backend.advance != nullptr;
  return CheckFunctions({{"find_devices", backend.find_devices != nullptr},
                         {"create", backend.create != nullptr},
                         {"destroy", backend.destroy != nullptr},
                         {"check", backend.check != nullptr},
                         {"enqueue", backend.enqueue != nullptr},
                         {"start", has_start || !has_advance},
                         {"advance", has_advance || !has_start},
                         {"test", backend.test != nullptr},
                         {"wait_in", backend.wait_in != nullptr},
                         {"release", backend.release != nullptr},
                         {"abort", backend.abort != nullptr}});
}

Result<DeviceBackendCreator> CreatorOf(const rankrun_device_backend& backend) {
  if (auto found = Ask(backend.find_devices, backend.context); !found) {
    return Error{ErrorCode::kInvalid,
                 "backend " + std::string(backend.name) + ": " + found.error().message};
  }
  return DeviceBackendCreator([&backend](const DeviceBackendConfig& config) {
    return MakeOutsideDevices(backend, config);
  });
}

Result<std::unique_ptr<DeviceBackend>> MakeOutsideDevices(const rankrun_device_backend& backend,
                                                          const DeviceBackendConfig& config) {
  auto store = config.store.CloneWith(kStorePatience, kStorePatience);
  if (!store) return std::move(store).error();
  auto state = std::make_shared<State>(backend, config, *std::move(store));
  if (auto ok = state->Create(); !ok) return ok.error();
  return std::unique_ptr<DeviceBackend>(std::make_unique<OutsideDevices>(std::move(state)));
}

}  // namespace rankrun::comm
