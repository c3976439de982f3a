#include <utility>

#include <rankrun/store.h>

#include "base/status/death_watch.h"
#include "base/trace/trace_format.h"
#include "comm/core/operation_events.h"
#include "comm/core/throw.h"
#include "comm/stores/derived_store.h"
#include "comm/stores/meeting_file.h"
#include "comm/stores/store_handle.h"
#include "comm/stores/store_state.h"
#include "store/clients/describe.h"
#include "store/clients/file_store.h"
#include "store/clients/hash_store.h"
#include "store/clients/prefix_store.h"

namespace rankrun {

using comm::StoreState;
using comm::UnwrapStore;
using std::chrono::milliseconds;

namespace comm {

StoreState& StoreState::Of(rankrun::Store& store) { return *store.state_; }

Result<std::unique_ptr<store::Store>> StoreState::ClientOf(
    const std::shared_ptr<rankrun::Store>& store, milliseconds timeout) {
  if (Of(*store).store != nullptr) return Of(*store).store->Clone(timeout);
  return std::unique_ptr<store::Store>(new DerivedStore(store));
}

std::shared_ptr<rankrun::Store> StoreState::MakeStore(std::unique_ptr<StoreState> state) {
  return std::shared_ptr<rankrun::Store>(new rankrun::Store(std::move(state)));
}

milliseconds CheckedTimeout(milliseconds timeout) {
  if (timeout < milliseconds(0)) {
    ThrowStoreError({ErrorCode::kInvalid, "the time-out of a store is " +
                                              std::to_string(timeout.count()) +
                                              " ms: want at least 0 ms"});
  }
  return timeout;
}

namespace {

// Throws in a fork of the process that opened the store. A derived class decides on its own.
void CheckHome(const StoreState& state, const char* operation) {
  if (state.home.is_here() || state.store == nullptr) return;
  ThrowStoreError(state.home.ErrorOfFork("the process that opened it", "the store")
                      .In(std::string("Store::") + operation));
}

milliseconds Limit(const StoreState& state, Store::Timeout timeout,
                   const char* operation = __builtin_FUNCTION()) {
  CheckHome(state, operation);
  return timeout ? CheckedTimeout(*timeout) : state.timeout.load();
}

// Returns the store behind a class of store.h.
store::Store& Own(const StoreState& state, const char* operation = __builtin_FUNCTION()) {
  if (state.store == nullptr) {
    ThrowStoreError({ErrorCode::kInvalid, std::string("this class of Store has no ") + operation +
                                              ": override it in the derived class"});
  }
  CheckHome(state, operation);
  return *state.store;
}

std::unique_ptr<StoreState> StateOf(std::unique_ptr<store::Store> store, milliseconds timeout,
                                    std::string name = {}) {
  return std::unique_ptr<StoreState>(new StoreState{
      .timeout = CheckedTimeout(timeout), .name = std::move(name), .store = std::move(store)});
}

// Returns the value of `wait`, which waits for keys, or throws its error.
template <typename Wait>
auto Waited(uint8_t kind, std::string_view key, Wait wait) {
  OperationEvent event = BeginStoreWait(kind, key);
  auto result = wait();
  event.End(static_cast<bool>(result));
  return UnwrapStore(std::move(result));
}

std::string_view First(const std::vector<std::string>& keys) {
  return keys.empty() ? std::string_view() : keys.front();
}

std::unique_ptr<store::Store> ViewOf(const std::string& prefix,
                                     const std::shared_ptr<rankrun::Store>& below) {
  if (const auto& own = StoreState::Of(*below).store) {
    return std::make_unique<store::PrefixStore>(prefix, *own);
  }
  return std::make_unique<store::PrefixStore>(prefix, std::make_unique<DerivedStore>(below));
}

Result<std::unique_ptr<StoreState>> OpenFile(const std::string& path, const std::string& run_id,
                                             milliseconds timeout, std::optional<int> world_size) {
  if (world_size && *world_size < 1) {
    return Error{ErrorCode::kInvalid,
                 "FileStore: world_size is " + std::to_string(*world_size) + ": want at least 1"};
  }
  if (!world_size) {
    auto store = store::FileStore::Open(path, run_id, {.deaths = DeathWatch::OfThisProcess()});
    if (!store) return std::move(store).error();
    return StateOf(*std::move(store), timeout, path);
  }
  MeetingFile file{.path = path, .world = run_id, .attempt = 0, .min_leavers = *world_size};
  auto store =
      EnterFile(file, store::DeadlineAfter(CheckedTimeout(timeout)), DeathWatch::OfThisProcess());
  if (!store) return std::move(store).error();
  auto user = std::make_shared<FileUser>(std::move(file), *std::move(store));
  auto state = StateOf(UnwrapStore(user->store().Clone(timeout)), timeout, path);
  state->file = std::move(user);
  return state;
}

}  // namespace

std::shared_ptr<rankrun::Store> StoreOver(store::Store& below, const std::string& prefix,
                                          milliseconds timeout) {
  return StoreState::MakeStore(
      StateOf(std::make_unique<store::PrefixStore>(prefix, below), timeout, prefix));
}

}  // namespace comm

Store::Store(std::unique_ptr<StoreState> state) : state_(std::move(state)) {
  comm::OpenTrace(std::nullopt);
}
Store::Store(milliseconds timeout) : Store(comm::StateOf(nullptr, timeout)) {}
// A fork leaks what its parent still uses.
Store::~Store() {
  if (!state_->home.is_here()) static_cast<void>(state_.release());
}

void Store::Set(std::string_view key, std::string_view value) {
  UnwrapStore(comm::Own(*state_).Set(key, value));
}

std::string Store::Get(std::string_view key, Timeout timeout) {
  const milliseconds limit = comm::Limit(*state_, timeout);
  return comm::Waited(trace_kind::kStoreGet, key,
                      [&] { return comm::Own(*state_).Get(key, limit); });
}

int64_t Store::Add(std::string_view key, int64_t delta) {
  return UnwrapStore(comm::Own(*state_).Add(key, delta));
}

bool Store::Check(const std::vector<std::string>& keys) {
  return UnwrapStore(comm::Own(*state_).Check(keys));
}

void Store::Wait(const std::vector<std::string>& keys, Timeout timeout) {
  const milliseconds limit = comm::Limit(*state_, timeout);
  comm::Waited(trace_kind::kStoreWait, comm::First(keys),
               [&] { return comm::Own(*state_).Wait(keys, limit); });
}

void Store::Barrier(std::string_view key, int world_size, Timeout timeout) {
  const milliseconds limit = comm::Limit(*state_, timeout);
  comm::Waited(trace_kind::kStoreBarrier, key, [&] {
    if (state_->store != nullptr) return state_->store->Barrier(key, world_size, limit);
    comm::DerivedStore derived(std::shared_ptr<Store>(std::shared_ptr<void>(), this));
    return store::MeetByKeys(derived, key, world_size, limit);
  });
}

CompareSetResult Store::CompareSet(std::string_view key, std::string_view expected,
                                   std::string_view desired) {
  auto result = UnwrapStore(comm::Own(*state_).CompareSet(key, expected, desired));
  return {.value = std::move(result.value), .swapped = result.swapped};
}

bool Store::DeleteKey(std::string_view key) { return UnwrapStore(comm::Own(*state_).Delete(key)); }

void Store::Append(std::string_view key, std::string_view value) {
  UnwrapStore(comm::Own(*state_).Append(key, value));
}

std::vector<std::string> Store::MultiGet(const std::vector<std::string>& keys, Timeout timeout) {
  if (state_->store == nullptr) {
    Wait(keys, timeout);
    std::vector<std::string> values;
    for (const std::string& key : keys) values.push_back(Get(key, milliseconds(0)));
    return values;
  }
  const milliseconds limit = comm::Limit(*state_, timeout);
  return comm::Waited(trace_kind::kStoreMultiGet, comm::First(keys),
                      [&] { return state_->store->MultiGet(keys, limit); });
}

void Store::MultiSet(const std::vector<std::string>& keys, const std::vector<std::string>& values) {
  if (state_->store == nullptr) {
    if (keys.size() != values.size()) {
      comm::ThrowStoreError(store::UnequalLengthsError(keys, values));
    }
    for (size_t i = 0; i < keys.size(); ++i) Set(keys[i], values[i]);
    return;
  }
  UnwrapStore(comm::Own(*state_).MultiSet(keys, values));
}

int64_t Store::NumKeys() { return UnwrapStore(comm::Own(*state_).NumKeys()); }

std::vector<std::string> Store::ListKeys() { return UnwrapStore(comm::Own(*state_).ListKeys()); }

void Store::QueuePush(std::string_view key, std::string_view value) {
  UnwrapStore(comm::Own(*state_).QueuePush(key, value));
}

std::string Store::QueuePop(std::string_view key, Timeout timeout) {
  const milliseconds limit = comm::Limit(*state_, timeout);
  return comm::Waited(trace_kind::kStoreQueuePop, key,
                      [&] { return comm::Own(*state_).QueuePop(key, limit); });
}

std::optional<std::string> Store::TryQueuePop(std::string_view key) {
  return UnwrapStore(comm::Own(*state_).TryQueuePop(key));
}

int64_t Store::QueueLength(std::string_view key) {
  return UnwrapStore(comm::Own(*state_).QueueLength(key));
}

bool Store::HasExtendedApi() const {
  if (state_->underlying != nullptr) return state_->underlying->HasExtendedApi();
  return state_->store != nullptr;
}

std::unique_ptr<Store> Store::Clone() {
  auto clone = UnwrapStore(comm::Own(*state_).Clone(timeout()));
  auto state = comm::StateOf(std::move(clone), timeout());
  state->file = state_->file;
  // Only a derived store under it lacks the API, and the clone uses that store anyway.
  if (!HasExtendedApi()) state->underlying = state_->underlying;
  return std::unique_ptr<Store>(new Store(std::move(state)));
}

void Store::SetTimeout(milliseconds timeout) { state_->timeout = comm::CheckedTimeout(timeout); }

milliseconds Store::timeout() const { return state_->timeout; }

FileStore::FileStore(const std::string& path, const std::string& run_id, milliseconds timeout,
                     std::optional<int> world_size)
    : Store(UnwrapStore(comm::OpenFile(path, run_id, timeout, world_size))) {}
FileStore::~FileStore() = default;

const std::string& FileStore::path() const { return state_->name; }

HashStore::HashStore(milliseconds timeout)
    : Store(comm::StateOf(std::make_unique<store::HashStore>(DeathWatch::OfThisProcess()),
                          timeout)) {}
HashStore::~HashStore() = default;

PrefixStore::PrefixStore(const std::string& prefix, std::shared_ptr<Store> store)
    : Store([&] {
        if (!store) {
          comm::ThrowStoreError(
              {ErrorCode::kInvalid, "PrefixStore \"" + prefix + "\": there is no store under it"});
        }
        auto state = comm::StateOf(comm::ViewOf(prefix, store), store->timeout(), prefix);
        state->underlying = std::move(store);
        return state;
      }()) {}
PrefixStore::~PrefixStore() = default;

const std::string& PrefixStore::prefix() const { return state_->name; }

const std::shared_ptr<Store>& PrefixStore::underlying_store() const { return state_->underlying; }

}  // namespace rankrun
