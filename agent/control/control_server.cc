#include "agent/control/control_server.h"

#include "agent/control/control_frame.h"
#include "agent/control/control_handshake.h"
#include "agent/control/session_cipher.h"
#include "base/format.h"
#include "base/log.h"
#include "base/uv/uv_loop.h"
#include "base/uv/uv_stream.h"

namespace rankrun::agent {
namespace {

using std::chrono::seconds;

constexpr size_t kWarningsPerSecond = 5;

}  // namespace

struct ControlServer::Peer {
  enum class Stage {
    kPreamble,
    kHello,
    kOpen,
    kDraining,  // refused: its last bytes are not sent yet
    kEnded
  };

  const PeerId id;
  const std::unique_ptr<Stream> stream;
  Stage stage = Stage::kPreamble;
  FrameReader reader{kMaxHandshakeBytes};
  std::string head;                              // preamble and version, while incomplete
  std::unique_ptr<ServerHandshake> handshake{};  // until the connection is open
  std::unique_ptr<SessionCipher> cipher{};       // since then
  std::optional<Error> lost{};                   // pending report for on_lost

  bool is_in_handshake() const { return stage == Stage::kPreamble || stage == Stage::kHello; }
};

ControlServer::ControlServer(Loop& loop, ControlServerOptions options, Callbacks callbacks)
    : loop_(loop),
      options_(std::move(options)),
      callbacks_(std::move(callbacks)),
      secret_(options_.secret),
      handshakes_(store::WithinOpenFiles(options_.handshakes)),
      deadline_(loop, [this] { OnDeadline(); }),
      sweep_(loop, [this] { Sweep(); }),
      warn_window_(loop, [this] { OnWarnWindowOver(); }) {}

ControlServer::~ControlServer() {
  for (auto& [id, peer] : peers_) peer->stream->DiscardInput();
}

Result<void> ControlServer::Listen(uint16_t port) {
  return Listen({{.address = *SocketAddress::FromNumeric("0.0.0.0", port), .optional = true},
                 {.address = *SocketAddress::FromNumeric("::", port), .optional = true}});
}

Result<void> ControlServer::Listen(const std::vector<store::BindAddress>& addresses) {
  auto listeners = store::ListenOnOnePort(
      loop_, addresses, [this](std::unique_ptr<Stream> stream) { Adopt(std::move(stream), {}); });
  if (!listeners) return std::move(listeners).error();
  listeners_ = std::move(*listeners);
  return {};
}

uint16_t ControlServer::port() const { return listeners_.front()->address().port(); }

void ControlServer::Adopt(std::unique_ptr<Stream> stream, std::string_view first_bytes) {
  loop_.AssertOnLoop();
  if (!MayConnect(*stream)) return stream->DiscardInput();
  PeerId id = next_id_++;
  std::unique_ptr<Peer> owned(new Peer{.id = id, .stream = std::move(stream), .head = {}});
  Peer* peer = owned.get();
  if (!EnterHandshakes(*peer)) return peer->stream->DiscardInput();
  peers_.emplace(id, std::move(owned));
  StartDeadline(*peer);
  peer->stream->Start(
      {.on_data =
           [this, peer](std::span<const char> bytes) {
             OnData(*peer, {bytes.data(), bytes.size()});
           },
       .on_end = [this, peer](const std::optional<Error>& error) { OnEnd(*peer, error); },
       .on_drained =
           [this, peer] {
             if (peer->stage == Peer::Stage::kDraining) End(*peer);
           }});
  OnData(*peer, first_bytes);
}

void ControlServer::Send(PeerId id, std::string_view payload) {
  if (Peer* peer = FindOpen(id)) SendSealed(*peer, payload);
}

void ControlServer::Refuse(PeerId id, std::string_view payload) {
  Peer* peer = FindOpen(id);
  if (peer == nullptr) return;
  SendSealed(*peer, payload);
  peer->lost.reset();
  if (peer->stage == Peer::Stage::kOpen) Drain(*peer);
}

void ControlServer::Close(PeerId id) {
  auto found = peers_.find(id);
  if (found == peers_.end()) return;
  found->second->lost.reset();
  End(*found->second);
}

ControlServer::Peer* ControlServer::FindOpen(PeerId id) {
  loop_.AssertOnLoop();
  auto found = peers_.find(id);
  bool is_open = found != peers_.end() && found->second->stage == Peer::Stage::kOpen;
  return is_open ? found->second.get() : nullptr;
}

void ControlServer::OnData(Peer& peer, std::string_view bytes) {
  if (peer.stage == Peer::Stage::kPreamble) bytes = ReadPreamble(peer, bytes);
  while (peer.stage == Peer::Stage::kHello || peer.stage == Peer::Stage::kOpen) {
    auto frame = peer.reader.Next(bytes);
    if (!frame && peer.stage == Peer::Stage::kOpen) return Lose(peer, std::move(frame).error());
    if (!frame) return TurnAway(peer, frame.error().message);
    if (!*frame) return;
    if (peer.stage == Peer::Stage::kHello) {
      OnHello(peer, **frame);
    } else {
      auto message = peer.cipher->Open(**frame);
      if (!message) return Lose(peer, Error{ErrorCode::kProtocol, kForgedMessage});
      callbacks_.on_message(peer.id, std::move(*message));
    }
  }
}

// Returns the bytes behind the preamble.
std::string_view ControlServer::ReadPreamble(Peer& peer, std::string_view bytes) {
  std::string_view part = bytes.substr(0, kFirstBytes - peer.head.size());
  bytes.remove_prefix(part.size());
  peer.head += part;
  if (!kControlPreamble.starts_with(peer.head.substr(0, kControlPreamble.size()))) {
    TurnAway(peer, "its first bytes are not those of a rankrun");
    return {};
  }
  if (peer.head.size() < kFirstBytes) return {};
  int version = static_cast<unsigned char>(peer.head.back());
  peer.head = {};
  peer.stage = Peer::Stage::kHello;
  peer.handshake = std::make_unique<ServerHandshake>(secret_, options_.job_id, options_.credential);
  Write(peer, EncodeFrame(peer.handshake->Challenge()));
  if (version != kControlVersion) {
    Warn("refused the node at " + peer.stream->peer().ToString() + ": it speaks version " +
         std::to_string(version) + " of the control protocol, this one version " +
         std::to_string(kControlVersion) + ": all nodes need the same rankrun");
    Drain(peer);
  }
  return bytes;
}

void ControlServer::OnHello(Peer& peer, const std::string& frame) {
  auto judged = peer.handshake->Judge(frame);
  if (!judged) return TurnAway(peer, judged.error().message);
  Write(peer, EncodeFrame(judged->answer));
  if (judged->refusal != HandshakeRefusal::kNone) {
    Warn("refused the node at " + peer.stream->peer().ToString() + ": " + judged->why);
    bool is_told = callbacks_.on_wrong_secret && !judged->claimed_hello.empty();
    if (is_told) callbacks_.on_wrong_secret(judged->claimed_hello);
    return Drain(peer);
  }
  auto local = peer.stream->LocalAddress();
  if (!local) return TurnAway(peer, local.error().message);
  handshakes_.Leave(peer.id);
  peer.handshake.reset();
  peer.cipher = std::move(judged->cipher);
  peer.reader.SetMaxBytes(kMaxFrameBytes);
  peer.stage = Peer::Stage::kOpen;
  callbacks_.on_hello(peer.id, std::move(judged->hello), peer.stream->peer(), *local);
}

void ControlServer::OnEnd(Peer& peer, const std::optional<Error>& error) {
  if (peer.stage != Peer::Stage::kOpen) return End(peer);
  Lose(peer, error ? *error
                   : Error{ErrorCode::kPeerLost,
                           peer.stream->peer().ToString() + " closed the connection"});
}

void ControlServer::SendSealed(Peer& peer, std::string_view payload) {
  if (auto frame = peer.cipher->Seal(payload)) Write(peer, std::move(*frame));
}

void ControlServer::Write(Peer& peer, std::string frame) {
  peer.stream->Write(std::move(frame));
  size_t unsent_bytes = peer.stream->queued_bytes();
  if (peer.stage != Peer::Stage::kOpen || unsent_bytes <= options_.unsent_bytes) return;
  Lose(peer, Error{ErrorCode::kTimeout, peer.stream->peer().ToString() + " does not read: " +
                                            std::to_string(unsent_bytes) + " bytes are unsent"});
}

// Ends the connection when all bytes are sent, or at a deadline.
void ControlServer::Drain(Peer& peer) {
  if (peer.stream->queued_bytes() == 0) return End(peer);
  peer.stage = Peer::Stage::kDraining;
  peer.stream->PauseReading();
  StartDeadline(peer);
}

void ControlServer::TurnAway(Peer& peer, const std::string& why) {
  Warn("closed the connection from " + peer.stream->peer().ToString() + ": " + why);
  End(peer);
}

// Sweep calls on_lost later, because the owner may be the caller of this.
void ControlServer::Lose(Peer& peer, Error why) {
  if (peer.stage == Peer::Stage::kOpen) peer.lost = std::move(why);
  End(peer);
}

void ControlServer::End(Peer& peer) {
  if (peer.stage == Peer::Stage::kEnded) return;
  peer.stage = Peer::Stage::kEnded;
  peer.stream->PauseReading();
  handshakes_.Leave(peer.id);
  ended_.push_back(peer.id);
  sweep_.Start(seconds(0));
}

void ControlServer::Sweep() {
  for (PeerId id : std::exchange(ended_, {})) {
    auto peer = std::move(peers_.extract(id).mapped());
    peer->stream->DiscardInput();
    auto lost = std::move(peer->lost);
    peer.reset();
    if (lost) callbacks_.on_lost(id, std::move(*lost));
  }
}

bool ControlServer::MayConnect(const Stream& stream) {
  if (!options_.admits_user) return true;
  auto local = stream.LocalAddress();
  std::string problem =
      local ? peer_users_.ReasonToRefuse(*local, stream.peer(), options_.admits_user)
            : local.error().message;
  if (!problem.empty()) {
    Warn("refused a connection from " + stream.peer().ToString() + ": " + problem);
  }
  return problem.empty();
}

// Returns whether there is room, if need be after closing another connection.
bool ControlServer::EnterHandshakes(const Peer& peer) {
  auto replaced = handshakes_.Enter(peer.id, peer.stream->peer(), MonotonicClock().Now());
  if (!replaced) return true;
  constexpr const char* kWhy = "too many connections are in the handshake";
  if (*replaced == peer.id) {
    Warn("refused a connection from " + peer.stream->peer().ToString() + ": " + kWhy);
    return false;
  }
  TurnAway(*peers_.at(*replaced), kWhy);
  return true;
}

void ControlServer::StartDeadline(Peer& peer) {
  if (deadlines_.empty()) deadline_.Start(options_.handshake_timeout);
  deadlines_.emplace_back(MonotonicClock().Now() + options_.handshake_timeout, peer.id);
}

void ControlServer::OnDeadline() {
  TimePoint now = MonotonicClock().Now();
  while (!deadlines_.empty() && deadlines_.front().first <= now) {
    auto found = peers_.find(deadlines_.front().second);
    deadlines_.pop_front();
    if (found == peers_.end()) continue;
    Peer& peer = *found->second;
    if (peer.is_in_handshake()) {
      TurnAway(peer, "no hello within " + FormatSeconds(options_.handshake_timeout));
    } else if (peer.stage == Peer::Stage::kDraining) {
      End(peer);
    }
  }
  if (!deadlines_.empty()) deadline_.Start(deadlines_.front().first - now);
}

// Limits the rate of warnings, because strangers cause them.
void ControlServer::Warn(const std::string& message) {
  if (warnings_ == 0) warn_window_.Start(seconds(1));
  warnings_ += 1;
  if (warnings_ <= kWarningsPerSecond) LogWarn("control: " + message);
}

void ControlServer::OnWarnWindowOver() {
  if (warnings_ > kWarningsPerSecond) {
    LogWarn("control: closed or refused " + std::to_string(warnings_ - kWarningsPerSecond) +
            " more connections within a second");
  }
  warnings_ = 0;
}

}  // namespace rankrun::agent
