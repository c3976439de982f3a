#include "tests/store/wire/wire_check.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include "store/wire/opcode.h"
#include "tests/store/wire/wire_frames.h"

namespace rankrun::store {
namespace {

// Byte in the head that selects the usual limit.
constexpr unsigned char kUsual = 255;

WireLimits LimitsOf(std::string_view head) {
  auto limit = [&](size_t at, size_t unit, size_t usual) {
    auto byte = static_cast<unsigned char>(head[at]);
    return byte == kUsual ? usual : byte * unit;
  };
  WireLimits limits;
  limits.key_bytes = limit(0, 1, limits.key_bytes);
  limits.value_bytes = limit(1, 4, limits.value_bytes);
  limits.keys_per_request = limit(2, 1, limits.keys_per_request);
  limits.request_bytes = limit(3, 8, limits.request_bytes);
  return limits;
}

// Everything that a decoder reports about one stream.
struct Decoding {
  std::vector<Request> requests;
  std::string error;  // empty: none
  bool within_request = false;
  bool cancels_waits = false;
  bool operator==(const Decoding&) const = default;
};

class Feeder {
 public:
  explicit Feeder(const WireLimits& limits) : decoder_(limits) {}

  // Returns whether the stream has no protocol error so far.
  bool Feed(std::string_view piece) {
    while (true) {
      size_t before = piece.size();
      auto next = decoder_.Next(piece);
      arrived_ += before - piece.size();
      if (!next) {
        decoding_.error = next.error().message;
        const ErrorCode code = next.error().code;
        const bool is_known = code == ErrorCode::kProtocol || code == ErrorCode::kExhausted;
        if (!is_known) wrong_ = "an error has another code";
        return false;
      }
      if (!*next) break;
      decoding_.requests.push_back(std::move(**next));
      arrived_ = 0;
      if (decoder_.held_bytes() != 0) wrong_ = "bytes are held between requests";
    }
    // An empty string has 8 bytes of length on the wire and a std::string here.
    if (decoder_.held_bytes() > arrived_ * sizeof(std::string) / sizeof(uint64_t)) {
      wrong_ = "more bytes are held than have arrived";
    }
    if (!piece.empty()) wrong_ = "input is left though no request is complete";
    return true;
  }

  Decoding Finish() {
    decoding_.within_request = decoding_.error.empty() && decoder_.is_within_request();
    decoding_.cancels_waits = decoder_.cancels_waits();
    return std::move(decoding_);
  }
  const std::string& wrong() const { return wrong_; }

 private:
  RequestDecoder decoder_;
  Decoding decoding_;
  size_t arrived_ = 0;  // bytes of the current request that have arrived
  std::string wrong_;
};

// Each byte of `cuts` is the length of a piece minus one. They are repeated.
Decoding Decode(std::string_view stream, const WireLimits& limits, std::string_view cuts,
                std::string& wrong) {
  Feeder feeder(limits);
  for (size_t i = 0; !stream.empty(); ++i) {
    size_t length = size_t{1} + static_cast<unsigned char>(cuts[i % cuts.size()]);
    std::string_view piece = stream.substr(0, length);
    stream.remove_prefix(piece.size());
    if (!feeder.Feed(piece)) break;
  }
  if (!feeder.wrong().empty()) wrong = feeder.wrong();
  return feeder.Finish();
}

Decoding DecodeWhole(std::string_view stream, const WireLimits& limits, std::string& wrong) {
  Feeder feeder(limits);
  feeder.Feed(stream);
  if (!feeder.wrong().empty()) wrong = feeder.wrong();
  return feeder.Finish();
}

// Encodes as Frames does. WATCH_KEY, which the current dialect lacks, has an
// encoding of our own.
std::string Encoded(const Request& request) {
  auto* watch = std::get_if<WatchKeyRequest>(&request);
  if (watch == nullptr) return EncodeRequest(request);
  std::string get = EncodeRequest(GetRequest{watch->key});
  get.front() = static_cast<char>(Opcode::kWatchKey);
  return get;
}

std::string CompareWithFrames(const Decoding& decoding, const Frames& frames) {
  if (decoding.requests.size() != frames.requests.size()) return "the number of requests differs";
  for (size_t i = 0; i < frames.requests.size(); ++i) {
    if (Encoded(decoding.requests[i]) != frames.requests[i]) {
      return "request " + std::to_string(i + 1) + " encodes to other bytes";
    }
  }
  if (decoding.error.empty() == frames.broken) {
    return frames.broken ? "an error is missed" : "unexpected error: " + decoding.error;
  }
  if (decoding.within_request != frames.within_request) return "the end of a request differs";
  if (!frames.broken && decoding.cancels_waits == frames.old_dialect) return "the dialect differs";
  return "";
}

}  // namespace

std::string CheckWireInput(std::string_view input) {
  if (input.size() < kWireInputHead) return "";
  WireLimits limits = LimitsOf(input);
  std::string_view cuts = input.substr(4, kWireInputHead - 4);
  std::string_view stream = input.substr(kWireInputHead);

  std::string wrong;
  Decoding whole = DecodeWhole(stream, limits, wrong);
  if (!(Decode(stream, limits, cuts, wrong) == whole))
    return "decoded in pieces, the result differs";
  if (!(Decode(stream, limits, {"\0", 1}, wrong) == whole))
    return "decoded byte by byte, the result differs";
  if (!wrong.empty()) return wrong;
  wrong = CompareWithFrames(whole, ReadFrames(stream, limits));
  if (!wrong.empty()) return wrong;

  std::string again = EncodeValidate();
  std::vector<Request> current;
  for (const Request& request : whole.requests) {
    if (std::holds_alternative<WatchKeyRequest>(request)) continue;
    again += EncodeRequest(request);
    current.push_back(request);
  }
  Decoding decoded_again = DecodeWhole(again, WireLimits{}, wrong);
  if (!(decoded_again.requests == current)) return "encoded and decoded again, the result differs";
  return wrong;
}

}  // namespace rankrun::store
