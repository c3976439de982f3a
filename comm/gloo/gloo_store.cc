#include "comm/gloo/gloo_store.h"

namespace rankrun::comm {
namespace {

std::string Join(const std::vector<std::string>& ranks) {
  std::string text;
  for (const std::string& rank : ranks) text += (text.empty() ? "rank " : ", ") + rank;
  return text;
}

Error OfStore(Error error) {
  if (error.code != ErrorCode::kCancelled) error.code = ErrorCode::kProtocol;
  return error;
}

}  // namespace

GlooStore::GlooStore(store::Store& store, std::string prefix, std::chrono::milliseconds timeout)
    : store_(store), prefix_(std::move(prefix)), timeout_(timeout) {}

void GlooStore::set(const std::string& key, const std::vector<char>& data) {
  published_ = data;
  auto ok = store_.Set(Full(key), std::string_view(data.data(), data.size()));
  if (!ok) throw StoreFailure({ErrorCode::kProtocol, ok.error().message});
}

std::vector<char> GlooStore::get(const std::string& key) {
  auto value = store_.Get(Full(key), timeout_);
  if (!value) throw StoreFailure(OfStore(value.error()));
  return {value->begin(), value->end()};
}

void GlooStore::wait(const std::vector<std::string>& keys) { wait(keys, timeout_); }

void GlooStore::wait(const std::vector<std::string>& keys,
                     const std::chrono::milliseconds& timeout) {
  std::vector<std::string> full;
  for (const std::string& key : keys) full.push_back(Full(key));
  auto ok = store_.Wait(full, timeout);
  if (ok) return;
  if (ok.error().code == ErrorCode::kTimeout) {
    throw StoreFailure({ErrorCode::kTimeout, "no address from " + Join(keys) + " after " +
                                                 std::to_string(timeout.count()) + " ms"});
  }
  throw StoreFailure(OfStore(ok.error()));
}

}  // namespace rankrun::comm
