#include "bench/store/store_traffic.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "store/wire/wire.h"

namespace rankrun::bench {
namespace {

std::string Numbered(const char* format, size_t number) {
  char text[32];
  std::snprintf(text, sizeof text, format, number);
  return text;
}

std::string Encode(const store::Reply& reply) {
  std::string bytes;
  store::AppendReply(bytes, reply);
  return bytes;
}

}  // namespace

Traffic::Traffic(const LoadOptions& options, size_t peer)
    : peer_(peer),
      echo_(options.echo),
      counts_(options.operation == Operation::kAdd),
      key_(Numbered("/bench/%05zu", peer)),
      value_(Numbered("%08zx", peer)),
      batch_requests_(options.pipeline),
      batch_replies_(options.pipeline) {
  value_.resize(options.value_bytes, 'x');
  store::PingRequest ping{static_cast<uint32_t>(peer)};
  std::string request;
  switch (options.operation) {
    case Operation::kGet:
      request = EncodeRequest(store::GetRequest{key_});
      reply_ = Encode(store::ValueReply{value_});
      break;
    case Operation::kSet:
      request = EncodeRequest(store::SetRequest{key_, value_});
      reply_ = Encode(store::PingReply{ping.nonce});
      batch_replies_ = 1;
      break;
    case Operation::kAdd:
      value_ = "0";
      request = EncodeRequest(store::AddRequest{key_, 1});
      reply_ = Encode(store::NumberReply{sum_ = 1});
      break;
  }
  for (size_t i = 0; i < options.pipeline; ++i) batch_ += request;
  if (options.operation == Operation::kSet) batch_ += EncodeRequest(ping);
}

Greeting Traffic::greeting() const {
  if (echo_) {
    uint32_t sizes[] = {static_cast<uint32_t>(batch_.size()),
                        static_cast<uint32_t>(batch_replies_ * reply_.size())};
    std::string header(reinterpret_cast<const char*>(sizes), sizeof sizes);
    return {header, header};
  }
  // One send with VALIDATE first and the PING last. The reply to the PING
  // proves that everything was handled.
  store::PingRequest ping{static_cast<uint32_t>(peer_)};
  return {store::EncodeValidate() + EncodeRequest(store::SetRequest{key_, value_}) +
              EncodeRequest(ping),
          Encode(store::PingReply{ping.nonce})};
}

Result<bool> Traffic::Take(std::string_view bytes) {
  while (!bytes.empty() && replies_ < batch_replies_) {
    size_t count = std::min(bytes.size(), reply_.size() - taken_);
    if (!echo_ && std::memcmp(bytes.data(), reply_.data() + taken_, count) != 0) break;
    bytes.remove_prefix(count);
    taken_ += count;
    if (taken_ < reply_.size()) return false;
    taken_ = 0;
    replies_ += 1;
    if (counts_) {
      sum_ += 1;
      std::memcpy(reply_.data(), &sum_, sizeof sum_);
    }
  }
  if (!bytes.empty()) {
    return Error{ErrorCode::kProtocol, "connection " + std::to_string(peer_) +
                                           ": a wrong reply to request " +
                                           std::to_string(replies_ + 1) + " of a send"};
  }
  if (replies_ < batch_replies_) return false;
  replies_ = 0;
  return true;
}

}  // namespace rankrun::bench
