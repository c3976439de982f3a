#include "tests/store/wire_check.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include "store/opcode.h"
#include "tests/store/wire_frames.h"

namespace rankrun::store {
namespace {

// In the head, the byte for no limit but the usual one.
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

// All that a decoder says to one stream.
struct Told {
  std::vector<Request> requests;
  std::string error;  // empty: none
  bool within_request = false;
  bool cancels_waits = false;
  bool operator==(const Told&) const = default;
};

class Feeder {
 public:
  explicit Feeder(const WireLimits& limits) : decoder_(limits) {}

  // Whether there was no protocol error.
  bool Feed(std::string_view piece) {
    while (true) {
      const size_t before = piece.size();
      auto next = decoder_.Next(piece);
      arrived_ += before - piece.size();
      if (!next) {
        told_.error = next.error().message;
        if (next.error().code != ErrorCode::kProtocol) wrong_ = "an error has another code";
        return false;
      }
      if (!*next) break;
      told_.requests.push_back(std::move(**next));
      arrived_ = 0;
      if (decoder_.held_bytes() != 0) wrong_ = "bytes are held between requests";
    }
    // A string of no bytes takes eight for its length, and a std::string here.
    if (decoder_.held_bytes() > arrived_ * sizeof(std::string) / sizeof(uint64_t)) {
      wrong_ = "more is held than has arrived";
    }
    if (!piece.empty()) wrong_ = "input is left though no request is complete";
    return true;
  }

  Told Finish() {
    told_.within_request = told_.error.empty() && decoder_.is_within_request();
    told_.cancels_waits = decoder_.cancels_waits();
    return std::move(told_);
  }
  const std::string& wrong() const { return wrong_; }

 private:
  RequestDecoder decoder_;
  Told told_;
  size_t arrived_ = 0;  // of the request that is read
  std::string wrong_;
};

// `cuts`, each a byte, are the lengths of pieces, less one, over and over.
Told Decode(std::string_view stream, const WireLimits& limits, std::string_view cuts,
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

Told DecodeWhole(std::string_view stream, const WireLimits& limits, std::string& wrong) {
  Feeder feeder(limits);
  feeder.Feed(stream);
  if (!feeder.wrong().empty()) wrong = feeder.wrong();
  return feeder.Finish();
}

// As in Frames: that of WATCH_KEY, which the current dialect lacks, is one of
// our own.
std::string Encoded(const Request& request) {
  auto* watch = std::get_if<WatchKeyRequest>(&request);
  if (watch == nullptr) return EncodeRequest(request);
  std::string get = EncodeRequest(GetRequest{watch->key});
  get.front() = static_cast<char>(Opcode::kWatchKey);
  return get;
}

std::string CompareWithFrames(const Told& told, const Frames& frames) {
  if (told.requests.size() != frames.requests.size()) return "another number of requests";
  for (size_t i = 0; i < frames.requests.size(); ++i) {
    if (Encoded(told.requests[i]) != frames.requests[i]) {
      return "request " + std::to_string(i + 1) + " encodes to other bytes";
    }
  }
  if (told.error.empty() == frames.broken) {
    return frames.broken ? "an error is missed" : "no reason for: " + told.error;
  }
  if (told.within_request != frames.within_request) return "the end of a request is mistaken";
  if (!frames.broken && told.cancels_waits == frames.old_dialect) return "the dialect is mistaken";
  return "";
}

}  // namespace

std::string CheckWireInput(std::string_view input) {
  if (input.size() < kWireInputHead) return "";
  const WireLimits limits = LimitsOf(input);
  const std::string_view cuts = input.substr(4, kWireInputHead - 4);
  const std::string_view stream = input.substr(kWireInputHead);

  std::string wrong;
  const Told whole = DecodeWhole(stream, limits, wrong);
  if (!(Decode(stream, limits, cuts, wrong) == whole)) return "cut, something else is decoded";
  if (!(Decode(stream, limits, {"\0", 1}, wrong) == whole)) return "byte by byte, it differs";
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
  const Told decoded_again = DecodeWhole(again, WireLimits{}, wrong);
  if (!(decoded_again.requests == current)) return "encoded, it decodes to something else";
  return wrong;
}

}  // namespace rankrun::store
