#include "tests/agent/control_check.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "agent/control_frame.h"
#include "agent/control_opening.h"
#include "agent/plain_cbor.h"

namespace rankrun::agent {
namespace {

// All that a reader says to one stream.
struct Told {
  std::vector<std::string> frames;
  std::string error;
  bool within_frame = false;
  bool operator==(const Told&) const = default;
};

constexpr size_t kMostBytes = 4096;

Told Read(std::string_view stream, size_t piece_bytes, std::string& wrong) {
  FrameReader reader(kMostBytes);
  Told told;
  size_t arrived = 0;  // since the last frame
  while (!stream.empty() && told.error.empty()) {
    std::string_view piece = stream.substr(0, piece_bytes);
    stream.remove_prefix(piece.size());
    while (true) {
      const size_t before = piece.size();
      auto next = reader.Next(piece);
      arrived += before - piece.size();
      if (!next) told.error = next.error().message;
      if (!next || !*next) break;
      arrived = 0;
      told.frames.push_back(std::move(**next));
    }
    if (told.error.empty() && !piece.empty()) wrong = "input is left though no frame is complete";
    if (reader.held_bytes() > 2 * arrived + sizeof(std::string)) wrong = "more is held than came";
  }
  told.within_frame = told.error.empty() && reader.is_within_frame();
  return told;
}

std::string CheckFrame(const std::string& frame) {
  const bool is_plain = IsPlainCbor(frame);
  if (is_plain) {
    auto json = nlohmann::json::from_cbor(frame, true, false);
    if (!json.is_discarded()) {
      std::string again;
      nlohmann::json::to_cbor(json, again);
      if (!IsPlainCbor(again)) return "what we write is not plain";
    }
  }
  JobSecret secret("secret");
  ServerOpening server(secret, "job");
  DiallerOpening dialler(secret, "job");
  auto judged = server.Judge(frame);
  if (judged && judged->refusal == OpeningRefusal::kNone) return "a stranger is let in";
  if (judged && !is_plain) return "a hello that is not plain";
  (void)dialler.TakeChallenge(frame);
  if (!dialler.TakeAnswer(frame)) return "a stranger is believed";
  return "";
}

}  // namespace

std::string CheckControlInput(std::string_view input) {
  if (input.empty()) return "";
  const size_t piece_bytes = static_cast<unsigned char>(input.front()) + size_t{1};
  const std::string_view stream = input.substr(1);
  std::string wrong;
  const Told told = Read(stream, piece_bytes, wrong);
  if (told != Read(stream, std::max<size_t>(stream.size(), 1), wrong))
    return "read otherwise whole";
  if (told != Read(stream, 1, wrong)) return "read otherwise byte by byte";
  std::string written;
  for (const std::string& frame : told.frames) written += EncodeFrame(frame);
  if (!stream.starts_with(written)) return "written otherwise than read";
  for (const std::string& frame : told.frames) {
    if (wrong.empty()) wrong = CheckFrame(frame);
  }
  if (wrong.empty()) wrong = CheckFrame(std::string(stream));
  return wrong;
}

}  // namespace rankrun::agent
