#include "cli/jobs/job_client.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "agent/process/descendants.h"
#include "base/format.h"
#include "base/printable.h"

namespace rankrun::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMaxLineBytes = size_t{1} << 20;  // an answer has 64 KiB
constexpr size_t kReadBytes = 64 * 1024;

Duration TimeoutOf(const agent::InspectRequest& request) {
  return AnswerTimeOf(request.kind) + std::chrono::seconds(1);
}

bool IsOfOwnJob(int fd) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return false;
  return geteuid() == 0 || peer.uid == geteuid() || peer.uid == 0;
}

std::string TextOf(const Json& json, const char* name) {
  auto found = json.find(name);
  return found != json.end() && found->is_string() ? OneLine(found->get<std::string>()) : "";
}

Error Garbled() { return {ErrorCode::kProtocol, "the agent's answer has another form"}; }

}  // namespace

Result<JobClient> JobClient::Connect(const std::string& path, pid_t agent) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return Error{ErrorCode::kInvalid, path};
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  Fd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return SystemError("open a socket", errno);
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    bool is_gone = errno == ECONNREFUSED || errno == ENOENT;
    if (is_gone) return Error{ErrorCode::kNotFound, path + ": no agent listens"};
    // The agent has accepted none of many connections.
    if (errno == EAGAIN) return JobClient(Fd(), agent).Silent(TimeoutOf({}));
    return SystemError("connect to " + path, errno);
  }
  if (!IsOfOwnJob(fd.get())) {
    return Error{ErrorCode::kInvalid, path + " is the socket of another user's process"};
  }
  return JobClient(std::move(fd), agent);
}

Error JobClient::Silent(Duration timeout) const {
  return {ErrorCode::kTimeout, "the agent (pid " + std::to_string(agent_) +
                                   ") has not answered for " + FormatSeconds(timeout) + ": " +
                                   agent::DescribeProcess(agent_)};
}

// `is_last` may change with each answer, so that it is a copy.
Result<JobAnswers> JobClient::Ask(const agent::InspectRequest& request, const IsLast& is_last) {
  const Duration timeout = TimeoutOf(request);
  std::string line = EncodeRequest(request) + "\n";
  ssize_t sent = send(fd_.get(), line.data(), line.size(), MSG_NOSIGNAL);
  if (sent != static_cast<ssize_t>(line.size())) {
    return errno == EAGAIN ? Silent(timeout) : Error{ErrorCode::kPeerLost, "the job is over"};
  }
  TimePoint deadline = std::chrono::steady_clock::now() + timeout;
  JobAnswers answers;
  while (true) {
    auto answer = ReadLine(deadline, timeout);
    if (!answer) return std::move(answer).error();
    Json json = Json::parse(*answer, nullptr, false);
    if (!json.is_object()) return Garbled();
    if (json.contains("error")) return Error{ErrorCode::kInvalid, TextOf(json, "error")};
    if (auto found = json.find("answer"); found != json.end()) {
      if (!found->is_object()) return Garbled();
      answers.nodes.push_back({TextOf(json, "node"), found->dump()});
      if (is_last && is_last(answers.nodes.back())) return answers;
      continue;
    }
    answers.note = TextOf(json, "note");
    for (const Json& node : json.value("missing", Json::array())) {
      if (node.is_string()) answers.missing.push_back(OneLine(node.get<std::string>()));
    }
    return answers;
  }
}

Result<std::string> JobClient::ReadLine(TimePoint deadline, Duration timeout) {
  std::array<char, kReadBytes> buffer;
  for (size_t searched = 0; true;) {
    if (size_t end = input_.find('\n', searched); end != std::string::npos) {
      std::string line = input_.substr(0, end);
      input_.erase(0, end + 1);
      return line;
    }
    searched = input_.size();
    if (searched > kMaxLineBytes) return Garbled();
    auto left = deadline - std::chrono::steady_clock::now();
    if (left <= Duration::zero()) return Silent(timeout);
    pollfd waiting{.fd = fd_.get(), .events = POLLIN, .revents = 0};
    auto ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
    if (poll(&waiting, 1, static_cast<int>(ms)) <= 0) continue;
    ssize_t count = recv(fd_.get(), buffer.data(), buffer.size(), 0);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (count <= 0) return Error{ErrorCode::kPeerLost, "the job is over"};
    input_.append(buffer.data(), static_cast<size_t>(count));
  }
}

}  // namespace rankrun::cli
