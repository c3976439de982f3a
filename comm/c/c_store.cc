#include <rankrun/c/store.h>
#include <rankrun/store.h>

#include "comm/c/c_guard.h"

template <>
inline constexpr size_t rankrun::comm::kFirstSize<rankrun_tcp_store_options> =
    offsetof(rankrun_tcp_store_options, listen_fd);

namespace {

using rankrun::Store;
using rankrun::comm::Clear;
using rankrun::comm::CopyOf;
using rankrun::comm::Guarded;
using rankrun::comm::GuardedOr;
using rankrun::comm::ListOf;
using rankrun::comm::NotNull;
using rankrun::comm::OptionsOf;
using rankrun::comm::Text;
using rankrun::comm::TimeoutOf;
using rankrun::comm::ViewOf;
using rankrun::comm::WriteOptions;

constexpr rankrun_tcp_store_options kTcpDefaults = {.size = sizeof(rankrun_tcp_store_options),
                                                    .port = 29500,
                                                    .is_server = 0,
                                                    .world_size = -1,
                                                    .wait_for_workers = 1,
                                                    .timeout_ms = 300'000,
                                                    .host = "127.0.0.1",
                                                    .listen_fd = -1,
                                                    .multi_tenant = 0};

rankrun::TcpStoreOptions Read(const rankrun_tcp_store_options& from) {
  rankrun::TcpStoreOptions options{.host = Text(from.host, "options.host"),
                                   .port = from.port,
                                   .is_server = from.is_server != 0,
                                   .wait_for_workers = from.wait_for_workers != 0,
                                   .timeout = std::chrono::milliseconds(from.timeout_ms),
                                   .listen_fd = from.listen_fd,
                                   .multi_tenant = from.multi_tenant != 0};
  if (from.world_size != -1) options.world_size = from.world_size;
  return options;
}

Store& StoreOf(const rankrun_store* store) { return *NotNull(store, "store").store; }

rankrun_store* HandleOf(std::shared_ptr<Store> store) {
  return new rankrun_store{std::move(store)};
}

std::vector<std::string> KeysOf(const char* const* keys, size_t count) {
  std::vector<std::string> result;
  for (const char* key : ListOf(keys, count, "keys")) result.emplace_back(Text(key, "keys"));
  return result;
}

std::string_view ValueOf(const rankrun_bytes* bytes, const char* name) {
  const rankrun_bytes& given = NotNull(bytes, name);
  return ViewOf(given.data, given.size, name);
}

std::chrono::milliseconds LimitOr(std::chrono::milliseconds otherwise, int64_t timeout_ms) {
  return TimeoutOf(timeout_ms).value_or(otherwise);
}

}  // namespace

extern "C" {

rankrun_status rankrun_tcp_store_options_default(rankrun_tcp_store_options* options) {
  return Guarded([=] { WriteOptions(kTcpDefaults, options); });
}

rankrun_status rankrun_tcp_store(const rankrun_tcp_store_options* options, rankrun_store** store) {
  return Guarded([=] {
    Clear(store, "store");
    auto wanted = Read(OptionsOf(options, kTcpDefaults));
    *store = HandleOf(std::make_shared<rankrun::TcpStore>(wanted));
  });
}

rankrun_status rankrun_file_store(const char* path, const char* run_id, int64_t timeout_ms,
                                  rankrun_store** store) {
  return Guarded([=] {
    Clear(store, "store");
    *store = HandleOf(
        std::make_shared<rankrun::FileStore>(Text(path, "path"), Text(run_id, "run_id"),
                                             LimitOr(std::chrono::seconds(300), timeout_ms)));
  });
}

rankrun_status rankrun_file_store_of_workers(const char* path, const char* run_id,
                                             int32_t world_size, int64_t timeout_ms,
                                             rankrun_store** store) {
  return Guarded([=] {
    Clear(store, "store");
    *store = HandleOf(std::make_shared<rankrun::FileStore>(
        Text(path, "path"), Text(run_id, "run_id"), LimitOr(std::chrono::seconds(300), timeout_ms),
        world_size));
  });
}

rankrun_status rankrun_hash_store(int64_t timeout_ms, rankrun_store** store) {
  return Guarded([=] {
    Clear(store, "store");
    auto timeout = LimitOr(std::chrono::seconds(300), timeout_ms);
    *store = HandleOf(std::make_shared<rankrun::HashStore>(timeout));
  });
}

rankrun_status rankrun_prefix_store(const char* prefix, const rankrun_store* below,
                                    rankrun_store** store) {
  return Guarded([=] {
    Clear(store, "store");
    *store = HandleOf(std::make_shared<rankrun::PrefixStore>(Text(prefix, "prefix"),
                                                             NotNull(below, "below").store));
  });
}

rankrun_status rankrun_store_clone(const rankrun_store* store, rankrun_store** clone) {
  return Guarded([=] {
    Clear(clone, "clone");
    *clone = HandleOf(StoreOf(store).Clone());
  });
}

void rankrun_store_release(rankrun_store* store) { delete store; }

uint16_t rankrun_store_port(const rankrun_store* store) {
  return GuardedOr(uint16_t{0}, [=] {
    const auto* tcp = dynamic_cast<const rankrun::TcpStore*>(&StoreOf(store));
    return tcp == nullptr ? uint16_t{0} : tcp->port();
  });
}

int rankrun_store_has_extended_api(const rankrun_store* store) {
  return GuardedOr(0, [=] { return StoreOf(store).HasExtendedApi() ? 1 : 0; });
}

rankrun_status rankrun_store_set_timeout(rankrun_store* store, int64_t timeout_ms) {
  return Guarded([=] { StoreOf(store).SetTimeout(std::chrono::milliseconds(timeout_ms)); });
}

int64_t rankrun_store_timeout(const rankrun_store* store) {
  return GuardedOr(int64_t{-1}, [=] { return int64_t{StoreOf(store).timeout().count()}; });
}

rankrun_status rankrun_store_set(rankrun_store* store, const char* key, const void* value,
                                 size_t size) {
  return Guarded([=] { StoreOf(store).Set(Text(key, "key"), ViewOf(value, size, "value")); });
}

rankrun_status rankrun_store_get(rankrun_store* store, const char* key, int64_t timeout_ms,
                                 rankrun_bytes** value) {
  return Guarded([=] {
    Clear(value, "value");
    *value = CopyOf(StoreOf(store).Get(Text(key, "key"), TimeoutOf(timeout_ms)));
  });
}

rankrun_status rankrun_store_add(rankrun_store* store, const char* key, int64_t delta,
                                 int64_t* sum) {
  return Guarded([=] {
    int64_t reached = StoreOf(store).Add(Text(key, "key"), delta);
    if (sum != nullptr) *sum = reached;
  });
}

rankrun_status rankrun_store_check(rankrun_store* store, const char* const* keys, size_t count,
                                   int* exist) {
  return Guarded([=] {
    int& answer = NotNull(exist, "exist");
    answer = StoreOf(store).Check(KeysOf(keys, count)) ? 1 : 0;
  });
}

rankrun_status rankrun_store_wait(rankrun_store* store, const char* const* keys, size_t count,
                                  int64_t timeout_ms) {
  return Guarded([=] { StoreOf(store).Wait(KeysOf(keys, count), TimeoutOf(timeout_ms)); });
}

rankrun_status rankrun_store_barrier(rankrun_store* store, const char* key, int32_t world_size,
                                     int64_t timeout_ms) {
  return Guarded(
      [=] { StoreOf(store).Barrier(Text(key, "key"), world_size, TimeoutOf(timeout_ms)); });
}

rankrun_status rankrun_store_compare_set(rankrun_store* store, const char* key,
                                         const rankrun_bytes* expected,
                                         const rankrun_bytes* desired, rankrun_bytes** value,
                                         int* swapped) {
  return Guarded([=] {
    Clear(value, "value");
    auto result = StoreOf(store).CompareSet(Text(key, "key"), ValueOf(expected, "expected"),
                                            ValueOf(desired, "desired"));
    *value = CopyOf(result.value);
    if (swapped != nullptr) *swapped = result.swapped ? 1 : 0;
  });
}

rankrun_status rankrun_store_delete(rankrun_store* store, const char* key, int* existed) {
  return Guarded([=] {
    bool did = StoreOf(store).DeleteKey(Text(key, "key"));
    if (existed != nullptr) *existed = did ? 1 : 0;
  });
}

rankrun_status rankrun_store_append(rankrun_store* store, const char* key, const void* value,
                                    size_t size) {
  return Guarded([=] { StoreOf(store).Append(Text(key, "key"), ViewOf(value, size, "value")); });
}

rankrun_status rankrun_store_multi_get(rankrun_store* store, const char* const* keys, size_t count,
                                       int64_t timeout_ms, rankrun_bytes** values) {
  return Guarded([=] {
    Clear(values, "values");
    *values = CopyOf(StoreOf(store).MultiGet(KeysOf(keys, count), TimeoutOf(timeout_ms)));
  });
}

rankrun_status rankrun_store_multi_set(rankrun_store* store, const char* const* keys,
                                       const rankrun_bytes* values, size_t count) {
  return Guarded([=] {
    std::vector<std::string> texts;
    for (const rankrun_bytes& value : ListOf(values, count, "values")) {
      texts.emplace_back(ValueOf(&value, "values"));
    }
    StoreOf(store).MultiSet(KeysOf(keys, count), texts);
  });
}

rankrun_status rankrun_store_num_keys(rankrun_store* store, int64_t* count) {
  return Guarded([=] { NotNull(count, "count") = StoreOf(store).NumKeys(); });
}

rankrun_status rankrun_store_list_keys(rankrun_store* store, rankrun_bytes** keys, size_t* count) {
  return Guarded([=] {
    Clear(keys, "keys");
    size_t& length = NotNull(count, "count");
    std::vector<std::string> names = StoreOf(store).ListKeys();
    *keys = CopyOf(names);
    length = names.size();
  });
}

rankrun_status rankrun_store_queue_push(rankrun_store* store, const char* key, const void* value,
                                        size_t size) {
  return Guarded([=] { StoreOf(store).QueuePush(Text(key, "key"), ViewOf(value, size, "value")); });
}

rankrun_status rankrun_store_queue_pop(rankrun_store* store, const char* key, int64_t timeout_ms,
                                       rankrun_bytes** value) {
  return Guarded([=] {
    Clear(value, "value");
    if (timeout_ms != 0) {
      *value = CopyOf(StoreOf(store).QueuePop(Text(key, "key"), TimeoutOf(timeout_ms)));
    } else if (auto first = StoreOf(store).TryQueuePop(Text(key, "key"))) {
      *value = CopyOf(*first);
    }
  });
}

rankrun_status rankrun_store_queue_length(rankrun_store* store, const char* key, int64_t* length) {
  return Guarded([=] { NotNull(length, "length") = StoreOf(store).QueueLength(Text(key, "key")); });
}

}  // extern "C"
