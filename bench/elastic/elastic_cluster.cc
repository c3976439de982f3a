#include "bench/elastic/elastic_cluster.h"

#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <thread>

namespace rankrun::bench {
namespace {

constexpr std::chrono::milliseconds kLook{1};
constexpr int kEndSeconds = 20;

std::string LogPath() { return "/dev/shm/elastic_bench." + std::to_string(getpid()); }

// Returns an unused port outside the ephemeral range.
std::string FreePort() {
  static uint16_t next = static_cast<uint16_t>(21'000 + getpid() % 9'000);
  for (;; ++next) {
    Fd probe(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(next);
    if (bind(probe.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) break;
  }
  return std::to_string(next++);
}

std::vector<std::string> WithEndpoint(std::vector<std::string> flags) {
  for (std::string flag : {"--rdzv-backend=c10d", "--rdzv-id=bench", "--local-addr=localhost",
                           "--max-restarts=9", "--no-python"}) {
    flags.push_back(flag);
  }
  flags.push_back("--rdzv-endpoint=localhost:" + FreePort());
  flags.push_back("--nproc-per-node=" + std::to_string(kWorkersPerNode));
  return flags;
}

}  // namespace

Cluster::Cluster(const Launcher& launcher, std::vector<std::string> flags)
    : launcher_(launcher),
      flags_(WithEndpoint(std::move(flags))),
      path_(LogPath()),
      log_(OpenElasticLog(path_.c_str(), O_RDWR | O_CREAT | O_TRUNC)),
      null_(open("/dev/null", O_WRONLY | O_CLOEXEC)) {
  if (log_ == nullptr) {
    std::perror("elastic_bench: the log of the workers");
    std::exit(1);
  }
}

Cluster::~Cluster() {
  log_->is_over = true;
  for (const auto& [letter, node] : nodes_) Signal(letter, SIGKILL);
  auto until = std::chrono::steady_clock::now() + std::chrono::seconds(kEndSeconds);
  while (waitpid(-1, nullptr, WNOHANG) >= 0) {
    if (std::chrono::steady_clock::now() > until) {
      std::fputs("elastic_bench: a process of a job does not end\n", stderr);
      std::exit(1);
    }
    std::this_thread::sleep_for(kLook);
  }
  munmap(log_, sizeof(ElasticLog));
  unlink(path_.c_str());
}

int64_t Cluster::Start(char letter) {
  SpawnSpec spec{.file = launcher_.program, .arguments = {launcher_.program}};
  spec.arguments.insert(spec.arguments.end(), flags_.begin(), flags_.end());
  // Fixes the coordinator's node, whichever node starts first.
  std::string is_host = letter == 'A' ? "1" : "0";
  spec.arguments.insert(spec.arguments.end(), {"--rdzv-conf=last_call_timeout=1,is_host=" + is_host,
                                               launcher_.worker, path_});
  for (char** entry = environ; *entry != nullptr; ++entry) spec.environment.emplace_back(*entry);
  spec.environment.push_back(std::string("ELASTIC_NODE=") + letter);
  if (std::getenv("ELASTIC_TALK") == nullptr) spec.stdout_fd = spec.stderr_fd = null_.get();
  int64_t now = Now();
  auto process = SpawnProcess(spec);
  if (!process) {
    std::fprintf(stderr, "elastic_bench: %s\n", process.error().message.c_str());
    std::exit(1);
  }
  nodes_.insert_or_assign(letter, Node{std::move(*process), launcher_.has_guardian});
  return now;
}

pid_t Cluster::Node::agent() const {
  if (!has_guardian) return process.pid;
  std::string pid = std::to_string(process.pid);
  std::ifstream children("/proc/" + pid + "/task/" + pid + "/children");
  pid_t first = 0;
  children >> first;
  return first;
}

pid_t Cluster::WorkerOf(char node) const {
  for (int i = std::min<int>(log_->count, kMaxEntries) - 1; i >= 0; --i) {
    const ElasticLog::Entry& entry = log_->entries[i];
    if (entry.at != 0 && entry.kind == ElasticLog::kInMain && entry.node == node) return entry.pid;
  }
  return 0;
}

int64_t Cluster::KillAgent(char node) {
  pid_t agent = nodes_.at(node).agent();
  int64_t now = Now();
  if (agent > 0) kill(agent, SIGKILL);
  return now;
}

int64_t Cluster::KillWorker(char node) {
  pid_t worker = WorkerOf(node);
  int64_t now = Now();
  if (worker > 0) kill(worker, SIGKILL);
  return now;
}

int64_t Cluster::Kill(char node) { return Signal(node, SIGKILL); }

int64_t Cluster::Freeze(char node) { return Signal(node, SIGSTOP); }

int64_t Cluster::Signal(char letter, int number) {
  const Node& node = nodes_.at(letter);
  pid_t agent = node.agent();
  int64_t now = Now();
  kill(node.process.pid, number);
  if (agent > 0 && agent != node.process.pid) kill(agent, number);
  return now;
}

std::optional<int64_t> Cluster::Await(ElasticLog::Kind kind, const std::string& nodes,
                                      int64_t since, int limit) {
  size_t wanted = nodes.size() * kWorkersPerNode;
  auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(limit);
  while (std::chrono::steady_clock::now() < until) {
    std::vector<int64_t> times;
    for (int i = 0; i < std::min<int>(log_->count, kMaxEntries); ++i) {
      const ElasticLog::Entry& entry = log_->entries[i];
      bool counts = entry.at > since && entry.kind == kind;
      if (counts && nodes.find(static_cast<char>(entry.node)) != std::string::npos) {
        times.push_back(entry.at);
      }
    }
    if (times.size() >= wanted) return *std::ranges::max_element(times);
    std::this_thread::sleep_for(kLook);
  }
  return std::nullopt;
}

}  // namespace rankrun::bench
