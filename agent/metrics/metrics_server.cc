#include "agent/metrics/metrics_server.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <utility>

#include "agent/metrics/http_request.h"
#include "base/log.h"
#include "base/net/socket_address.h"

namespace rankrun::agent {
namespace {

constexpr size_t kMaxConnections = 16;
constexpr std::chrono::seconds kClientTimeout{5};
// Time to read and drop the rest of a request. A socket that is closed with unread input
// sends a reset, which destroys the response.
constexpr std::chrono::seconds kLingerTimeout{1};
constexpr std::chrono::milliseconds kAcceptPause{100};
constexpr const char* kOtherUser = "want a program of the job's user; --metrics-open admits all";

}  // namespace

// One client, from its connection to its end. Ends by a call of on_end, once.
class MetricsServer::Connection {
 public:
  struct Rules {
    const HostNames& hosts;
    bool is_refused;  // whatever it asks
  };

  Connection(MetricsServer& server, Fd fd, Rules rules)
      : server_(server),
        fd_(std::move(fd)),
        rules_(rules),
        deadline_(server.loop_, [this] { End(); }) {}

  Result<void> Start() {
    auto poll = Poll::Open(server_.loop_, fd_.get(), [this] { Read(); });
    if (!poll) return std::move(poll).error();
    read_poll_ = std::move(*poll);
    read_poll_->Start();
    deadline_.Start(kClientTimeout);
    return {};
  }
  bool has_ended() const { return has_ended_; }

 private:
  void End() {
    if (std::exchange(has_ended_, true)) return;
    read_poll_->Stop();
    if (write_poll_) write_poll_->Stop();
    deadline_.Stop();
    server_.drop_.Start(std::chrono::milliseconds(0));
  }

  void Read() {
    std::array<char, 16 * 1024> bytes;
    const ssize_t count = recv(fd_.get(), bytes.data(), bytes.size(), 0);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (count <= 0) return End();
    if (is_answered_) return;  // dropped
    request_.append(bytes.data(), static_cast<size_t>(count));
    auto answer = AnswerTo(request_, rules_.hosts);
    if (!answer) return;
    is_answered_ = true;
    if (rules_.is_refused) answer = HttpAnswer{.status = 403, .advice = kOtherUser};
    response_ = FormatResponse(*answer, answer->wants_metrics ? server_.render_() : "");
    Write();
  }

  void Write() {
    while (!response_.empty()) {
      const ssize_t count = send(fd_.get(), response_.data(), response_.size(), MSG_NOSIGNAL);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0 && errno == EAGAIN) return AwaitRoom();
      if (count < 0) return End();
      response_.erase(0, static_cast<size_t>(count));
    }
    if (write_poll_) write_poll_->Stop();
    shutdown(fd_.get(), SHUT_WR);
    deadline_.Start(kLingerTimeout);
  }

  void AwaitRoom() {
    if (write_poll_) return;
    write_fd_ = Fd(fcntl(fd_.get(), F_DUPFD_CLOEXEC, 0));  // a Poll has a descriptor of its own
    auto poll = Poll::Open(
        server_.loop_, write_fd_.get(), [this] { Write(); }, Poll::Event::kWritable);
    if (!write_fd_ || !poll) return End();
    write_poll_ = std::move(*poll);
    write_poll_->Start();
  }

  MetricsServer& server_;
  Fd fd_;
  Fd write_fd_;
  const Rules rules_;
  std::string request_;
  std::string response_;
  bool is_answered_ = false;
  bool has_ended_ = false;
  std::unique_ptr<Poll> read_poll_;
  std::unique_ptr<Poll> write_poll_;
  Timer deadline_;
};

MetricsServer::MetricsServer(Loop& loop, MetricsSocket socket, std::function<std::string()> render)
    : loop_(loop),
      socket_(std::move(socket)),
      render_(std::move(render)),
      retry_(loop, [this] { accept_poll_->Start(); }),
      drop_(loop, [this] { DropEnded(); }) {}

MetricsServer::~MetricsServer() = default;

Result<std::unique_ptr<MetricsServer>> MetricsServer::Open(Loop& loop, MetricsSocket socket,
                                                           std::function<std::string()> render) {
  std::unique_ptr<MetricsServer> server(
      new MetricsServer(loop, std::move(socket), std::move(render)));
  auto poll = Poll::Open(loop, server->socket_.fd(), [raw = server.get()] { raw->Accept(); });
  if (!poll) return std::move(poll).error();
  server->accept_poll_ = std::move(*poll);
  server->accept_poll_->Start();
  return server;
}

void MetricsServer::Accept() {
  Fd fd(accept4(socket_.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (fd) return Add(std::move(fd));
  if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
    LogDebug(SystemError("--metrics: accept a connection", errno).message);
    accept_poll_->Stop();
    retry_.Start(kAcceptPause);
  }
}

void MetricsServer::Add(Fd fd) {
  // Ended connections leave at the next turn of the loop, before the next Accept.
  if (connections_.size() >= kMaxConnections) connections_.pop_front();
  const Connection::Rules rules{.hosts = socket_.hosts(), .is_refused = IsRefused(fd)};
  auto connection = std::make_unique<Connection>(*this, std::move(fd), rules);
  if (connection->Start()) connections_.push_back(std::move(connection));
}

// Refuses a client that is gone without a word, because its user is not known.
bool MetricsServer::IsRefused(const Fd& client) {
  if (!socket_.is_private()) return false;
  auto local = SocketAddress::LocalOf(client.get());
  auto peer = SocketAddress::PeerOf(client.get());
  if (!local || !peer) return true;
  const PeerUser user = peer_users_.Find(*local, *peer);
  if (user.kind != PeerUser::Kind::kKnown) return user.kind == PeerUser::Kind::kGone;
  if (IsOwnUserOrRoot(user.uid)) return false;
  if (!std::exchange(has_warned_, true)) {
    LogWarn("--metrics: refused a program of user " + std::to_string(user.uid) +
            "; --metrics-open admits all users");
  }
  return true;
}

void MetricsServer::DropEnded() {
  std::erase_if(connections_, [](const auto& connection) { return connection->has_ended(); });
}

}  // namespace rankrun::agent
