#include "agent/inspect/inspector.h"

#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/log.h"
#include "base/uv/uv_loop.h"
#include "base/uv/uv_work.h"

namespace rankrun::agent {
namespace {

using Json = nlohmann::ordered_json;

// After the first output of fast programs, and before a user asks.
constexpr std::chrono::milliseconds kOpenDelay{20};
// Beyond the time that the coordinator waits for the other nodes.
constexpr std::chrono::milliseconds kMoreTime{500};
constexpr size_t kMaxQueries = 256;
constexpr ptrdiff_t kMaxQueriesOfClient = 16;  // leaves room for others
constexpr const char* kTooMany = "too many requests are under way";

// Requests that other nodes may pass on. They may end the job anyway, by a message of their own.
bool MayBeRelayed(InspectRequest::Kind kind) {
  return kind == InspectRequest::Kind::kStatus || kind == InspectRequest::Kind::kLogs ||
         kind == InspectRequest::Kind::kDrain || kind == InspectRequest::Kind::kStacks;
}

std::string ErrorLine(const std::string& message) {
  return Json{{"error", message}}.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// `json` is the answer itself, so it is not parsed again.
std::string AnswerLine(const std::string& node, std::string_view json) {
  std::string name = Json(node).dump(-1, ' ', false, Json::error_handler_t::replace);
  return R"({"node":)" + name + R"(,"answer":)" + std::string(json) + "}";
}

}  // namespace

// Between the loop and the pool.
struct Inspector::Opening {
  std::shared_ptr<Inspector*> owner;
  Options options;
  Result<InspectSocket> socket = Error{ErrorCode::kCancelled, ""};
};

Inspector::Inspector(Loop& loop, Options options, Callbacks callbacks)
    : loop_(loop),
      options_(std::move(options)),
      callbacks_(std::move(callbacks)),
      self_(std::make_shared<Inspector*>(this)),
      open_(loop, [this] { Open(); }),
      deadline_(loop, [this] { OnDeadline(); }) {}

Inspector::~Inspector() {
  *self_ = nullptr;
  if (!is_opening_) return;
  std::vector<std::string> folders = FindSpareFolders(options_.places.spare_prefix, geteuid());
  std::ranges::copy(options_.places.folders, std::back_inserter(folders));
  for (const std::string& folder : folders) unlink((folder + "/" + options_.name).c_str());
}

void Inspector::OpenSoon() { open_.Start(kOpenDelay); }

void Inspector::Open() {
  auto opening = std::make_shared<Opening>();
  opening->owner = self_;
  opening->options = options_;
  is_opening_ = true;
  RunInPool(
      loop_,
      [opening] {
        opening->socket =
            ListenForInspection(opening->options.places, geteuid(), opening->options.name);
      },
      [opening] {
        if (*opening->owner != nullptr) return (*opening->owner)->OnOpened(*opening);
        if (opening->socket) unlink(opening->socket->path.c_str());
      });
}

void Inspector::OnOpened(Opening& opening) {
  is_opening_ = false;
  Result<void> started;
  if (opening.socket) {
    const InspectSocket& socket = *opening.socket;
    if (!socket.warning.empty()) {
      LogWarn(socket.warning + "; the socket for rankctl is " + socket.path);
    }
    server_ = std::make_unique<InspectServer>(
        loop_, *std::move(opening.socket),
        [this](auto client, const std::string& line) { OnRequest(client, line); });
    started = server_->Start();
  } else {
    started = std::move(opening.socket).error();
  }
  if (started) return;
  std::string text = "rankctl cannot inspect this job: " + started.error().message;
  return started.error().code == ErrorCode::kInvalid ? LogWarn(text) : LogDebug(text);
}

void Inspector::OnRequest(InspectServer::ClientId client, const std::string& line) {
  auto request = DecodeRequest(line);
  if (!request) return server_->SendLast(client, ErrorLine(request.error().message));
  const auto of_client =
      std::ranges::count(queries_, client, [](const auto& entry) { return entry.second.client; });
  if (queries_.size() >= kMaxQueries || of_client >= kMaxQueriesOfClient) {
    return server_->SendLast(client, ErrorLine(kTooMany));
  }
  uint64_t number = ++last_query_;
  const Duration limit = AnswerTimeOf(request->kind) + kMoreTime;
  Query query{.client = client, .deadline = std::chrono::steady_clock::now() + limit};
  if (request->all_nodes && callbacks_.ask_others) {
    query.is_over = !callbacks_.ask_others(number, *request);
    if (query.is_over) query.note = "the coordinator cannot be reached";
  }
  queries_.emplace(number, std::move(query));
  ArmDeadline();
  callbacks_.answer(*request, [owner = self_, number](const std::string& json) {
    Inspector* self = *owner;
    auto found = self != nullptr ? self->queries_.find(number) : decltype(queries_)::iterator();
    if (self == nullptr || found == self->queries_.end()) return;
    found->second.is_answered = true;
    self->server_->Send(found->second.client, AnswerLine(self->options_.node, json));
    self->EndIfComplete(number);
  });
}

void Inspector::AnswerFor(const std::string& request, size_t room, Reply reply) {
  auto decoded = DecodeRequest(request);
  if (!decoded) return reply(ErrorLine(decoded.error().message));
  if (!MayBeRelayed(decoded->kind)) return reply(ErrorLine("not a request for other nodes"));
  decoded->room = std::min(room, kMaxAnswerBytes);
  callbacks_.answer(*decoded, std::move(reply));
}

void Inspector::OnAnswer(uint64_t number, const std::string& node, std::string_view json) {
  auto found = queries_.find(number);
  if (found == queries_.end()) return;
  // Another node may run another version, so its answer is checked before it is passed on.
  // A newline would end its line early.
  if (json.find('\n') != std::string_view::npos || !Json::accept(json)) {
    found->second.missing.push_back(node);
    return;
  }
  server_->Send(found->second.client, AnswerLine(node, json));
}

void Inspector::OnOver(uint64_t number, const std::vector<std::string>& missing) {
  auto found = queries_.find(number);
  if (found == queries_.end()) return;
  Query& query = found->second;
  query.is_over = true;
  query.missing.insert(query.missing.end(), missing.begin(), missing.end());
  EndIfComplete(number);
}

void Inspector::OnRefused(uint64_t number) {
  auto found = queries_.find(number);
  if (found == queries_.end()) return;
  found->second.note = kTooMany;
  found->second.is_over = true;
  EndIfComplete(number);
}

void Inspector::EndIfComplete(uint64_t number) {
  Query& query = queries_.at(number);
  if (!query.is_answered || !query.is_over) return;
  Json line{{"over", true}, {"missing", query.missing}};
  if (!query.note.empty()) line["note"] = query.note;
  server_->SendLast(query.client, line.dump(-1, ' ', false, Json::error_handler_t::replace));
  queries_.erase(number);
}

void Inspector::ArmDeadline() {
  if (queries_.empty()) return deadline_.Stop();
  auto first = std::ranges::min_element(queries_, {},
                                        [](const auto& entry) { return entry.second.deadline; });
  const auto left = first->second.deadline - std::chrono::steady_clock::now();
  deadline_.Start(std::max(Duration::zero(), left));
}

void Inspector::OnDeadline() {
  const TimePoint now = std::chrono::steady_clock::now();
  std::vector<uint64_t> late;
  for (auto& [number, query] : queries_) {
    if (query.deadline > now) continue;
    if (!query.is_answered) query.missing.push_back(options_.node);
    if (!query.is_over) query.note = "the coordinator has not answered in time";
    query.is_answered = query.is_over = true;
    late.push_back(number);
  }
  for (uint64_t number : late) EndIfComplete(number);
  ArmDeadline();
}

}  // namespace rankrun::agent
