#include "agent/control/control_link.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/format.h"
#include "base/net/peer_user.h"
#include "base/uv/uv_loop.h"
#include "base/uv/uv_work.h"

namespace rankrun::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds kFirstPause{5};
constexpr milliseconds kMaxPause{200};
// After a failure that a retry cannot repair: another version or secret.
constexpr milliseconds kPermanentFailurePause{1000};
// The pauses become short again only after a link was up, or down, for this
// time.
constexpr seconds kLong{1};

TimePoint Now() { return MonotonicClock().Now(); }

// Random, so that the nodes of a job do not dial at the same times.
uint32_t RandomSeed() {
  uint32_t seed;
  std::memcpy(&seed, MakeNonce().data(), sizeof seed);
  return seed;
}

bool IsPermanent(DialFailureKind kind) {
  return kind == DialFailureKind::kOtherVersion || kind == DialFailureKind::kWrongSecret;
}

}  // namespace

// The opening of a credential, which may outlive the connection.
struct ControlLink::CredentialJob {
  ControlLink* link;  // null: the connection is gone
  std::string credential;
  std::function<Result<std::string>(const std::string&)> open;
  Result<std::string> secret = std::string();
};

ControlLink::ControlLink(Loop& loop, LinkOptions options, Callbacks callbacks)
    : loop_(loop),
      options_(std::move(options)),
      callbacks_(std::move(callbacks)),
      secret_(options_.secret),
      since_(Now()),
      random_(RandomSeed()),
      timer_(loop, [this] { OnTimer(); }),
      sweep_(loop, [this] { Sweep(); }) {
  RANKRUN_CHECK(!options_.endpoints.empty(), "a control link has no endpoint");
  DialAfter(NextPause());
}

ControlLink::~ControlLink() {
  Drop();
  Sweep();
}

void ControlLink::Send(std::string_view payload) {
  if (phase_ != Phase::kUp) return;
  auto frame = cipher_->Seal(payload);
  if (!frame) return;
  stream_->Write(std::move(*frame));
  if (stream_->queued_bytes() > options_.unsent_bytes) timer_.Start(seconds(0));
}

void ControlLink::Redirect(const Endpoint& endpoint) {
  loop_.AssertOnLoop();
  if (phase_ == Phase::kClosed) return;
  if (phase_ == Phase::kUp) since_ = Now();
  Drop();
  redirect_ = endpoint;
  DialAfter(NextPause());
}

void ControlLink::Close() {
  loop_.AssertOnLoop();
  Drop();
  phase_ = Phase::kClosed;
}

std::string ControlLink::FailureText(TimePoint now) const {
  if (failures_.empty()) return "";
  std::string text;
  for (const DialFailure& failure : failures_) {
    if (!text.empty()) text += "; ";
    text += failure.ToString();
  }
  return text + " (tried for " +
         FormatSeconds(std::chrono::duration_cast<milliseconds>(now - since_)) + ")";
}

void ControlLink::OnTimer() {
  switch (phase_) {
    case Phase::kPausing:
      return Dial();
    case Phase::kHandshake:
      return FailHandshake(DialFailureKind::kNotRankrun,
                           "it accepts connections but sends nothing within " +
                               FormatSeconds(options_.handshake_timeout) +
                               ": not rankrun, or a stopped rankrun");
    case Phase::kUp:
      return GoDown(Error{ErrorCode::kTimeout,
                          "the coordinator at " + stream_->peer().ToString() + " does not read: " +
                              std::to_string(stream_->queued_bytes()) + " bytes are unsent"});
    case Phase::kDialling:
    case Phase::kClosed:
      return;
  }
}

void ControlLink::Dial() {
  phase_ = Phase::kDialling;
  int dial = ++dials_;
  dial_ = std::make_unique<ControlDial>(
      loop_, target(), first_address_, options_.connect_timeout,
      [this, dial](DialResult result) { OnDialled(dial, std::move(result)); });
}

void ControlLink::OnDialled(int dial, DialResult result) {
  if (dial != dials_) return;
  dropped_dial_ = std::move(dial_);
  sweep_.Start(seconds(0));
  if (auto* failure = std::get_if<DialFailure>(&result)) return OnFailure(std::move(*failure));
  BeginHandshake(std::move(std::get<std::unique_ptr<Stream>>(result)));
}

void ControlLink::BeginHandshake(std::unique_ptr<Stream> stream) {
  phase_ = Phase::kHandshake;
  stream_ = std::move(stream);
  if (auto local = stream_->LocalAddress()) local_address_ = *local;
  peer_address_ = stream_->peer();
  handshake_.emplace(secret_, options_.job_id);
  has_challenge_ = false;
  reader_ = FrameReader(kMaxHandshakeBytes);
  Stream* current = stream_.get();
  stream_->Start({.on_data =
                      [this, current](std::span<const char> bytes) {
                        if (current == stream_.get()) OnData({bytes.data(), bytes.size()});
                      },
                  .on_end =
                      [this, current](const std::optional<Error>& error) {
                        if (current == stream_.get()) OnEnd(error);
                      },
                  .on_drained = {}});
  stream_->Write(ClientHandshake::FirstBytes());
  timer_.Start(options_.handshake_timeout);
}

void ControlLink::OnData(std::string_view bytes) {
  const Stream* current = stream_.get();
  while (current == stream_.get()) {  // a frame may end the connection
    auto frame = reader_.Next(bytes);
    if (!frame) {
      if (phase_ == Phase::kUp) return GoDown(std::move(frame).error().In("from the coordinator"));
      return FailHandshake(DialFailureKind::kNotRankrun,
                           "the program that answers there is not rankrun");
    }
    if (!*frame) return;
    if (phase_ == Phase::kUp) {
      auto message = cipher_->Open(**frame);
      if (!message) return GoDown(Error{ErrorCode::kProtocol, kForgedMessage});
      callbacks_.on_message(std::move(*message));
    } else {
      OnHandshakeFrame(**frame);
    }
  }
}

void ControlLink::OnHandshakeFrame(std::string_view frame) {
  auto failure = has_challenge_ ? handshake_->TakeAnswer(frame) : handshake_->TakeChallenge(frame);
  if (failure) return FailHandshake(failure->kind, std::move(failure->why));
  if (has_challenge_) return GoUp();
  has_challenge_ = true;
  // Not before: until the other side accepts the connection, it has no user.
  if (!IsOfAdmittedUser()) return;
  bool is_handed = !handshake_->credential().empty();
  if (is_handed != bool(options_.open_credential)) {
    return FailHandshake(DialFailureKind::kWrongSecret,
                         is_handed
                             ? "the job there gets its secret by munge, this node does not"
                             : "this node gets the job secret by munge, the job there does not");
  }
  if (is_handed) return OpenCredential();
  SendHello();
}

// Fails the handshake if the coordinator's user may not run it.
bool ControlLink::IsOfAdmittedUser() {
  if (!options_.admits_user || !local_address_) return true;
  PeerUser user = PeerUsers().Find(*local_address_, stream_->peer());
  if (user.kind == PeerUser::Kind::kGone) {
    FailHandshake(DialFailureKind::kReset,
                  "the connection was closed during the handshake, or the kernel does not show "
                  "the user of the program there, which a job without a secret asks for");
  } else if (user.kind == PeerUser::Kind::kKnown && !options_.admits_user(user.uid)) {
    FailHandshake(DialFailureKind::kWrongSecret,
                  "the program that answers there belongs to user " + std::to_string(user.uid) +
                      " of this host, which a job without a secret does not trust");
  } else {
    return true;
  }
  return false;
}

// Opens the credential in the pool, because munged may not answer.
void ControlLink::OpenCredential() {
  credential_job_ = std::make_shared<CredentialJob>(
      CredentialJob{this, handshake_->credential(), options_.open_credential});
  auto job = credential_job_;
  RunInPool(
      loop_, [job] { job->secret = job->open(job->credential); },
      [job] {
        if (job->link != nullptr) job->link->OnCredential(job->secret);
      });
}

void ControlLink::OnCredential(const Result<std::string>& secret) {
  credential_job_.reset();
  if (!secret) return FailHandshake(DialFailureKind::kWrongSecret, secret.error().message);
  handed_secret_.emplace(*secret);
  handshake_->UseSecret(*handed_secret_);
  SendHello();
}

void ControlLink::SendHello() {
  stream_->Write(EncodeFrame(handshake_->Hello(options_.make_hello())));
}

void ControlLink::OnEnd(const std::optional<Error>& error) {
  if (phase_ == Phase::kUp) {
    return GoDown(error ? *error
                        : Error{ErrorCode::kPeerLost, "the coordinator at " +
                                                          stream_->peer().ToString() +
                                                          " closed the connection"});
  }
  if (error)
    return FailHandshake(DialFailureKind::kReset,
                         "the connection broke during the handshake: " + error->message);
  if (has_challenge_)
    return FailHandshake(DialFailureKind::kReset, "the connection was closed during the handshake");
  FailHandshake(
      DialFailureKind::kNotRankrun,
      "it closed the connection without an answer: not rankrun, or a rankrun with too many "
      "handshakes");
}

void ControlLink::GoUp() {
  TimePoint now = Now();
  phase_ = Phase::kUp;
  timer_.Stop();
  cipher_ = handshake_->TakeCipher();
  handshake_.reset();
  reader_.SetMaxBytes(kMaxFrameBytes);
  failures_.clear();
  if (now - up_since_ >= kLong) pauses_ = 0;
  up_since_ = now;
  callbacks_.on_up();
}

void ControlLink::FailHandshake(DialFailureKind kind, std::string why) {
  DialFailure failure{kind, target(), stream_->peer().ToString(), std::move(why)};
  first_address_ += 1;  // the coordinator may be at another address of the name
  Drop();
  OnFailure(std::move(failure));
}

void ControlLink::SetEndpoints(std::vector<Endpoint> endpoints) {
  RANKRUN_CHECK(!endpoints.empty(), "a control link has no endpoint");
  options_.endpoints = std::move(endpoints);
  if (next_ >= options_.endpoints.size()) next_ = 0;
}

void ControlLink::OnFailure(DialFailure failure) {
  auto same = [&](const DialFailure& other) { return other.endpoint == failure.endpoint; };
  std::erase_if(failures_, same);
  failures_.push_back(failure);
  bool pass_is_over = true;
  if (redirect_) {
    redirect_.reset();
  } else {
    next_ = (next_ + 1) % options_.endpoints.size();
    pass_is_over = next_ == 0;
  }
  milliseconds pause = pass_is_over ? NextPause() : milliseconds(0);
  if (pass_is_over && IsPermanent(failure.kind)) pause = std::max(pause, kPermanentFailurePause);
  DialAfter(pause);
  if (callbacks_.on_failed) callbacks_.on_failed(failure);
}

void ControlLink::GoDown(Error why) {
  since_ = Now();
  if (since_ - up_since_ >= kLong) pauses_ = 0;
  Drop();
  DialAfter(NextPause());
  callbacks_.on_down(std::move(why));
}

void ControlLink::Drop() {
  timer_.Stop();
  if (credential_job_) std::exchange(credential_job_, nullptr)->link = nullptr;
  dials_ += 1;
  if (dial_) dropped_dial_ = std::move(dial_);
  if (stream_) {
    stream_->PauseReading();
    dropped_.push_back(std::move(stream_));
  }
  handshake_.reset();
  sweep_.Start(seconds(0));
}

void ControlLink::Sweep() {
  for (auto& stream : dropped_) stream->DiscardInput();
  dropped_.clear();
  dropped_dial_.reset();
}

void ControlLink::DialAfter(milliseconds pause) {
  phase_ = Phase::kPausing;
  timer_.Start(pause);
}

// Returns no pause at first, then 5 ms, doubled each time up to 200 ms, each
// shortened at random by up to a half.
milliseconds ControlLink::NextPause() {
  constexpr int kMaxDoublings = 6;
  int pauses = pauses_++;
  if (pauses == 0) return milliseconds(0);
  const auto longest =
      std::min(kFirstPause * (1 << std::min(pauses - 1, kMaxDoublings)), kMaxPause);
  std::uniform_int_distribution<int64_t> pause((longest.count() + 1) / 2, longest.count());
  return milliseconds(pause(random_));
}

}  // namespace rankrun::agent
