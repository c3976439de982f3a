#include <utility>

#include <rankrun/store.h>

#include "base/status/death_watch.h"
#include "comm/core/throw.h"
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

milliseconds Limit(const StoreState& state, Store::Timeout timeout) {
  return timeout ? CheckedTimeout(*timeout) : state.timeout.load();
}

std::unique_ptr<StoreState> StateOf(std::unique_ptr<store::Store> store, milliseconds timeout,
                                    std::string name = {}) {
  return std::unique_ptr<StoreState>(new StoreState{
      .timeout = CheckedTimeout(timeout), .name = std::move(name), .store = std::move(store)});
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

Store::Store(std::unique_ptr<StoreState> state) : state_(std::move(state)) {}
Store::~Store() = default;

void Store::Set(std::string_view key, std::string_view value) {
  UnwrapStore(state_->store->Set(key, value));
}

std::string Store::Get(std::string_view key, Timeout timeout) {
  return UnwrapStore(state_->store->Get(key, comm::Limit(*state_, timeout)));
}

int64_t Store::Add(std::string_view key, int64_t delta) {
  return UnwrapStore(state_->store->Add(key, delta));
}

bool Store::Check(const std::vector<std::string>& keys) {
  return UnwrapStore(state_->store->Check(keys));
}

void Store::Wait(const std::vector<std::string>& keys, Timeout timeout) {
  UnwrapStore(state_->store->Wait(keys, comm::Limit(*state_, timeout)));
}

void Store::Barrier(std::string_view key, int world_size, Timeout timeout) {
  UnwrapStore(state_->store->Barrier(key, world_size, comm::Limit(*state_, timeout)));
}

CompareSetResult Store::CompareSet(std::string_view key, std::string_view expected,
                                   std::string_view desired) {
  auto result = UnwrapStore(state_->store->CompareSet(key, expected, desired));
  return {.value = std::move(result.value), .swapped = result.swapped};
}

bool Store::DeleteKey(std::string_view key) { return UnwrapStore(state_->store->Delete(key)); }

void Store::Append(std::string_view key, std::string_view value) {
  UnwrapStore(state_->store->Append(key, value));
}

std::vector<std::string> Store::MultiGet(const std::vector<std::string>& keys, Timeout timeout) {
  return UnwrapStore(state_->store->MultiGet(keys, comm::Limit(*state_, timeout)));
}

void Store::MultiSet(const std::vector<std::string>& keys, const std::vector<std::string>& values) {
  UnwrapStore(state_->store->MultiSet(keys, values));
}

int64_t Store::NumKeys() { return UnwrapStore(state_->store->NumKeys()); }

std::vector<std::string> Store::ListKeys() { return UnwrapStore(state_->store->ListKeys()); }

void Store::QueuePush(std::string_view key, std::string_view value) {
  UnwrapStore(state_->store->QueuePush(key, value));
}

std::string Store::QueuePop(std::string_view key, Timeout timeout) {
  return UnwrapStore(state_->store->QueuePop(key, comm::Limit(*state_, timeout)));
}

std::optional<std::string> Store::TryQueuePop(std::string_view key) {
  return UnwrapStore(state_->store->TryQueuePop(key));
}

int64_t Store::QueueLength(std::string_view key) {
  return UnwrapStore(state_->store->QueueLength(key));
}

std::unique_ptr<Store> Store::Clone() {
  auto clone = UnwrapStore(state_->store->Clone(timeout()));
  auto state = comm::StateOf(std::move(clone), timeout());
  state->file = state_->file;
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
        auto view = std::make_unique<store::PrefixStore>(prefix, *store->state_->store);
        auto state = comm::StateOf(std::move(view), store->timeout(), prefix);
        state->underlying = std::move(store);
        return state;
      }()) {}
PrefixStore::~PrefixStore() = default;

const std::string& PrefixStore::prefix() const { return state_->name; }

const std::shared_ptr<Store>& PrefixStore::underlying_store() const { return state_->underlying; }

}  // namespace rankrun
