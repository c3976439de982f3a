#include "cli/store_client.h"

#include <algorithm>
#include <cstdlib>

#include "base/printable.h"
#include "cli/output.h"

namespace rankrun::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kDefaultTimeout{10};
// Who does not want to wait for a key still has to wait for the network.
constexpr seconds kLeastForConnecting{1};
constexpr seconds kLeastForReplies{10};

std::optional<std::string> Variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

milliseconds TimeoutOf(const launcher::ParsedFlags& flags) {
  return flags.Seconds("timeout").value_or(kDefaultTimeout);
}

// What PyTorch's clients put before a key, PrefixStores included.
std::string KeyPrefix(const launcher::ParsedFlags& flags) {
  std::string prefix = flags.Has("raw") ? "" : "/";
  if (auto own = flags.Text("prefix")) prefix += *own + "/";
  return prefix;
}

Result<StoreClient> Open(const launcher::ParsedFlags& flags, std::string key_prefix,
                         milliseconds timeout) {
  auto endpoint = FindStore(flags.Text("store"), Variable);
  if (!endpoint) return std::move(endpoint).error();
  store::TcpStoreOptions options{
      .connect_timeout = std::max<milliseconds>(timeout, kLeastForConnecting),
      .reply_timeout = std::max<milliseconds>(timeout, kLeastForReplies),
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
  // Asked for also when the server has not answered at all: the first look
  // then says that the connection broke.
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
