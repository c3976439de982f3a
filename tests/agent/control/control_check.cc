#include "tests/agent/control/control_check.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "agent/control/cbor.h"
#include "agent/control/control_frame.h"
#include "agent/control/control_handshake.h"

namespace rankrun::agent {
namespace {

// The results of reading one stream.
struct ReadResult {
  std::vector<std::string> frames;
  std::string error;
  bool within_frame = false;
  bool operator==(const ReadResult&) const = default;
};

constexpr size_t kMaxBytes = 4096;

ReadResult Read(std::string_view stream, size_t piece_bytes, std::string& wrong) {
  FrameReader reader(kMaxBytes);
  ReadResult result;
  size_t arrived = 0;  // since the last frame
  while (!stream.empty() && result.error.empty()) {
    std::string_view piece = stream.substr(0, piece_bytes);
    stream.remove_prefix(piece.size());
    while (true) {
      size_t before = piece.size();
      auto next = reader.Next(piece);
      arrived += before - piece.size();
      if (!next) result.error = next.error().message;
      if (!next || !*next) break;
      arrived = 0;
      result.frames.push_back(std::move(**next));
    }
    if (result.error.empty() && !piece.empty())
      wrong = "the reader leaves input without a complete frame";
    if (reader.held_bytes() > 2 * arrived + sizeof(std::string))
      wrong = "the reader holds more than twice the arrived bytes";
  }
  result.within_frame = result.error.empty() && reader.is_within_frame();
  return result;
}

std::string CheckFrame(const std::string& frame) {
  auto map = ParseCborMap(frame);
  if (map && !ParseCborMap(CborOf(*map))) return "a map cannot be read after it was written";
  JobSecret secret("secret");
  ServerHandshake server(secret, "job");
  ClientHandshake client(secret, "job");
  auto judged = server.Judge(frame);
  if (judged && judged->refusal == HandshakeRefusal::kNone) return "a stranger is accepted";
  if (judged && !map) return "a hello is not a map";
  (void)client.TakeChallenge(frame);
  if (!client.TakeAnswer(frame)) return "the answer of a stranger is accepted";
  return "";
}

}  // namespace

std::string CheckControlInput(std::string_view input) {
  if (input.empty()) return "";
  size_t piece_bytes = static_cast<unsigned char>(input.front()) + size_t{1};
  std::string_view stream = input.substr(1);
  std::string wrong;
  ReadResult result = Read(stream, piece_bytes, wrong);
  if (result != Read(stream, std::max<size_t>(stream.size(), 1), wrong))
    return "the frames differ if the input arrives as a whole";
  if (result != Read(stream, 1, wrong))
    return "the frames differ if the input arrives byte by byte";
  std::string written;
  for (const std::string& frame : result.frames) written += EncodeFrame(frame);
  if (!stream.starts_with(written)) return "a frame differs after it was written again";
  for (const std::string& frame : result.frames) {
    if (wrong.empty()) wrong = CheckFrame(frame);
  }
  if (wrong.empty()) wrong = CheckFrame(std::string(stream));
  return wrong;
}

}  // namespace rankrun::agent
