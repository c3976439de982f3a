#include "cli/store_client.h"

#include <algorithm>

#include "base/printable.h"
#include "cli/output.h"

namespace rankrun::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kDefaultTimeout{10};
// The network needs time even if the caller does not wait for a key.
constexpr seconds kMinForConnecting{1};
constexpr seconds kMinForReplies{10};

milliseconds TimeoutOf(const launcher::ParsedFlags& flags) {
  return flags.Seconds("timeout").value_or(kDefaultTimeout);
}

// Returns the prefix that PyTorch's clients put before a key, including those of
// PrefixStores.
std::string KeyPrefix(const launcher::ParsedFlags& flags) {
  std::string prefix = flags.Has("raw") ? "" : "/";
  if (auto own = flags.Text("prefix")) prefix += *own + "/";
  return prefix;
}

Result<StoreClient> Open(const launcher::ParsedFlags& flags, std::string key_prefix,
                         milliseconds timeout) {
  auto endpoint = FindStore(flags.Text("store"), launcher::VariableOfProcess);
  if (!endpoint) return std::move(endpoint).error();
  store::TcpStoreOptions options{
      .connect_timeout = std::max<milliseconds>(timeout, kMinForConnecting),
      .reply_timeout = std::max<milliseconds>(timeout, kMinForReplies),
      .key_prefix = std::move(key_prefix)};
  auto store = store::TcpStore::Connect(endpoint->host, endpoint->port, options);
  if (!store) {
    Error error = std::move(store).error();
    error.message += "; the address is from " + endpoint->origin;
    return error;
  }
  return StoreClient{std::move(*store), std::move(*endpoint), timeout};
}

}  // namespace

Result<StoreClient> OpenStore(const launcher::ParsedFlags& flags) {
  return Open(flags, KeyPrefix(flags), TimeoutOf(flags));
}

Result<StoreClient> OpenStoreToWatch(const launcher::ParsedFlags& flags) {
  return Open(flags, KeyPrefix(flags), kDefaultTimeout);
}

Result<StoreClient> OpenRawStore(const launcher::ParsedFlags& flags) {
  return Open(flags, "", TimeoutOf(flags));
}

Result<std::vector<std::string>> MissingAfter(store::TcpStore& store,
                                              std::span<const std::string> keys,
                                              milliseconds timeout) {
  if (timeout > milliseconds(0)) {
    auto waited = store.Wait(keys, timeout);
    if (waited) return std::vector<std::string>();
    if (waited.error().code != ErrorCode::kTimeout) return std::move(waited).error();
  }
  // If the server has not answered at all, the first request reports that the
  // connection broke.
  return MissingOf(store, keys);
}

Result<std::vector<std::string>> MissingOf(store::TcpStore& store,
                                           std::span<const std::string> keys) {
  std::vector<std::string> missing;
  for (const std::string& key : keys) {
    auto there = store.Check({&key, 1});
    if (!there) return std::move(there).error();
    if (!*there) missing.push_back(key);
  }
  return missing;
}

Result<std::optional<std::string>> Look(store::TcpStore& store, const std::string& key) {
  auto there = store.Check({&key, 1});
  if (!there) return std::move(there).error();
  if (!*there) return std::optional<std::string>();
  auto value = store.GetNow(key);
  if (!value) return std::move(value).error();
  return std::optional<std::string>(std::move(*value));
}

bool QueueFinder::IsQueue(const std::string& key) {
  if (has_failed_) return false;
  if (!asker_) {
    auto clone = store_.Clone(kToExplain);
    has_failed_ = !clone;
    if (!clone) return false;
    asker_ = std::move(*clone);
  }
  auto length = asker_->QueueLength(key);
  has_failed_ = !length;
  return length && *length > 0;
}

std::string NameKeys(std::span<const std::string> keys) {
  std::string text = keys.size() == 1 ? "key" : "keys";
  for (size_t i = 0; i < keys.size(); ++i) text += (i == 0 ? " " : ", ") + Escaped(keys[i]);
  return text;
}

int FailStore(const Error& error) {
  bool usage = error.code == ErrorCode::kInvalid;
  return Fail(error.message, usage ? kExitUsage : kExitStore);
}

}  // namespace rankrun::cli
