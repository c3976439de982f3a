#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "agent/inspect/inspect_server.h"
#include "agent/inspect/request.h"
#include "agent/inspect/socket_folder.h"
#include "base/clock.h"
#include "base/uv/uv_timer.h"

namespace rankrun {
class Loop;
}

namespace rankrun::agent {

// Answers `rankctl` about the job: opens the socket, has each request answered by this node and,
// if it concerns all nodes, by the others.
// Thread: loop.  Lifetime: may not end inside its callbacks.
class Inspector {
 public:
  using Reply = std::function<void(std::string json)>;
  struct Callbacks {
    // Answers for this node with one JSON object, at once or later.
    std::function<void(const InspectRequest&, Reply)> answer;
    // Asks the other nodes; OnAnswer and OnOver follow. Returns false if none can be asked now.
    // Empty in a job of one node.
    std::function<bool(uint64_t number, const InspectRequest& request)> ask_others = {};
  };
  struct Options {
    SocketPlaces places;
    std::string name;  // of the socket
    std::string node;  // name of this node
  };

  Inspector(Loop& loop, Options options, Callbacks callbacks);
  Inspector(const Inspector&) = delete;
  Inspector& operator=(const Inspector&) = delete;
  ~Inspector();

  // Opens the socket soon, so that the start of the workers does not wait for it. A job without a
  // socket is a job that `rankctl` cannot see: a warning says why.
  void OpenSoon();

  // Answers a request that another node has passed on, in at most `room` bytes.
  void AnswerFor(const std::string& request, size_t room, Reply reply);

  // The answer of another node to ask_others, and the end of all answers. `missing` are the
  // nodes that have not answered.
  void OnAnswer(uint64_t number, const std::string& node, std::string_view json);
  void OnOver(uint64_t number, const std::vector<std::string>& missing);
  // The other nodes were not asked, because too many questions of this node are under way.
  void OnRefused(uint64_t number);

 private:
  struct Opening;
  struct Query {
    InspectServer::ClientId client;
    bool is_answered = false;  // by this node
    bool is_over = true;       // the others have answered, or were not asked
    std::vector<std::string> missing = {};
    std::string note = {};  // why there are no others
    TimePoint deadline = {};
  };

  void Open();
  void OnOpened(Opening& opening);
  void OnRequest(InspectServer::ClientId client, const std::string& line);
  void EndIfComplete(uint64_t number);
  void ArmDeadline();
  void OnDeadline();

  Loop& loop_;
  const Options options_;
  const Callbacks callbacks_;
  std::shared_ptr<Inspector*> self_;  // null in the copies of the pool once this object is gone
  std::unique_ptr<InspectServer> server_;
  std::map<uint64_t, Query> queries_;
  uint64_t last_query_ = 0;
  bool is_opening_ = false;  // in the pool
  Timer open_;
  Timer deadline_;
};

}  // namespace rankrun::agent
