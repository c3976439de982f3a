// store_bench: loads a store server, rankrun's or PyTorch's, and prints the
// cost. Its own thread does little but send and receive, so that the server is
// the bottleneck. See store_vs_torch.sh.

#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "bench/store/store_load.h"
#include "bench/store/store_storm.h"
#include "bench/store/store_waits.h"

namespace rankrun::bench {
namespace {

using Json = nlohmann::ordered_json;

struct Settings {
  std::string host = "127.0.0.1";
  uint16_t port = 0;
  int server_pid = 0;
  double patience_seconds = 10;
  bool json = false;
  double seconds = 1;
  LoadOptions load;
  WaitsOptions waits;
  size_t clients = 4000;
};

double Rounded(double number) { return std::round(number * 1000) / 1000; }

Json ToJson(const LoadFigures& figures) {
  Json json{
      {"requests", figures.requests},
      {"seconds", Rounded(figures.seconds)},
      {"requests_per_second", std::round(static_cast<double>(figures.requests) / figures.seconds)},
      {"us_p50", Rounded(figures.us_p50)},
      {"us_p90", Rounded(figures.us_p90)},
      {"us_p99", Rounded(figures.us_p99)},
      {"us_p99.9", Rounded(figures.us_p999)},
      {"us_max", Rounded(figures.us_max)}};
  if (figures.server) {
    json["server_cpu_us_per_request"] = Rounded(figures.server->cpu_us_per_request);
    json["server_kib_before"] = figures.server->before_kib;
    json["server_kib_open"] = figures.server->open_kib;
    json["server_kib_end"] = figures.server->end_kib;
  }
  return json;
}

Json ToJson(const StormFigures& figures) {
  Json json{{"ms", Rounded(figures.ms)}};
  if (figures.server_cpu_us_per_client) {
    json["server_cpu_us_per_client"] = Rounded(*figures.server_cpu_us_per_client);
  }
  return json;
}

Json ToJson(const WaitsFigures& figures) {
  Json json{{"without", ToJson(figures.without)},
            {"with", ToJson(figures.with)},
            {"latency_ratio", Rounded(figures.with.us_p50 / figures.without.us_p50)}};
  if (figures.with.server && figures.without.server) {
    json["cpu_ratio"] = Rounded(figures.with.server->cpu_us_per_request /
                                figures.without.server->cpu_us_per_request);
  }
  json["register_ms"] = Rounded(figures.register_ms);
  json["release_ms"] = Rounded(figures.release_ms);
  return json;
}

Json ToJson(const WakeFigures& figures) {
  Json json{{"ms", Rounded(figures.ms)}};
  if (figures.server_cpu_us_per_waiter) {
    json["server_cpu_us_per_waiter"] = Rounded(*figures.server_cpu_us_per_waiter);
  }
  return json;
}

template <typename Figures>
Result<Json> AsJson(Result<Figures> figures) {
  if (!figures) return std::move(figures).error();
  return ToJson(*figures);
}

void AddTarget(CLI::App* command, Settings& settings) {
  command->add_option("--host", settings.host, "Numeric address of the server")
      ->capture_default_str();
  command->add_option("--port", settings.port, "Port of the server")
      ->required()
      ->check(CLI::Range(1, 65535));
  command
      ->add_option("--server-pid", settings.server_pid,
                   "Measure CPU time and memory of this process, too")
      ->check(CLI::PositiveNumber);
  command
      ->add_option("--patience", settings.patience_seconds,
                   "Fail when the server sends nothing for this many seconds")
      ->check(CLI::Range(0.1, 3600.0))
      ->capture_default_str();
  command->add_flag("--json", settings.json, "Print one JSON object on one line");
}

void AddSeconds(CLI::App* command, Settings& settings) {
  command->add_option("--seconds", settings.seconds, "Duration of a load, without the warm-up")
      ->check(CLI::Range(0.01, 3600.0))
      ->capture_default_str();
}

void AddLoad(CLI::App& app, Settings& settings) {
  CLI::App* command = app.add_subcommand(
      "load",
      "Requests over and over. SET has no reply, so a PING is sent behind the SETs of each send\n"
      "and its reply awaited; only the SETs count as requests. Latency is per send.");
  AddTarget(command, settings);
  std::map<std::string, Operation> operations = {
      {"get", Operation::kGet}, {"set", Operation::kSet}, {"add", Operation::kAdd}};
  command->add_option("--operation", settings.load.operation, "get, set or add")
      ->required()
      ->transform(CLI::CheckedTransformer(operations));
  command
      ->add_option("--connections", settings.load.connections,
                   "Number of connections, each with its own key")
      ->check(CLI::Range(1, 65'000))
      ->capture_default_str();
  command->add_option("--value-bytes", settings.load.value_bytes, "Size of each value")
      ->check(CLI::Range(0, 1'000'000))
      ->capture_default_str();
  command->add_option("--pipeline", settings.load.pipeline, "Requests per send, on a connection")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  AddSeconds(command, settings);
  command->add_flag("--echo", settings.load.echo,
                    "The server is store_echo: only the length of replies is checked");
}

void AddStorm(CLI::App& app, Settings& settings) {
  CLI::App* command = app.add_subcommand(
      "storm",
      "All clients of a job start at once: each connects, greets the server, increments a counter\n"
      "and waits for a key that the last one sets. Measures the time until all are released.");
  AddTarget(command, settings);
  command->add_option("--clients", settings.clients, "How many")
      ->check(CLI::Range(1, 65'000))
      ->capture_default_str();
}

void AddWaits(CLI::App& app, Settings& settings) {
  CLI::App* command = app.add_subcommand(
      "waits", "One connection's SET and PING, without and with many other keys waited for.");
  AddTarget(command, settings);
  AddSeconds(command, settings);
  command->add_option("--keys", settings.waits.keys, "Number of keys with waits")
      ->check(CLI::Range(1, 2'000'000))
      ->capture_default_str();
  command
      ->add_option("--connections", settings.waits.connections, "Connections that share these keys")
      ->check(CLI::Range(1, 65'000))
      ->capture_default_str();
}

void AddWake(CLI::App& app, Settings& settings) {
  CLI::App* command =
      app.add_subcommand("wake", "Many connections wait for one key, which then is set.");
  AddTarget(command, settings);
  command->add_option("--waiters", settings.clients, "How many")
      ->check(CLI::Range(1, 65'000))
      ->capture_default_str();
}

Result<Target> TargetOf(const Settings& settings) {
  auto address = SocketAddress::FromNumeric(settings.host, settings.port);
  if (!address) return address.error();
  std::chrono::duration<double> patience(settings.patience_seconds);
  return Target{*address, settings.server_pid,
                std::chrono::duration_cast<std::chrono::milliseconds>(patience)};
}

Result<Json> Run(const std::string& command, Settings& settings) {
  auto target = TargetOf(settings);
  if (!target) return target.error();
  settings.load.time = settings.waits.time = std::chrono::duration<double>(settings.seconds);
  if (command == "storm") return AsJson(RunStorm(*target, settings.clients));
  if (command == "waits") return AsJson(RunWaits(*target, settings.waits));
  if (command == "wake") return AsJson(RunWake(*target, settings.clients));
  return AsJson(RunLoad(*target, settings.load));
}

void Print(const Json& figures, bool as_json) {
  if (as_json) {
    std::printf("%s\n", figures.dump().c_str());
    return;
  }
  for (const auto& [name, value] : figures.items()) {
    std::printf("%-28s %s\n", name.c_str(), value.dump().c_str());
  }
}

int Main(int argc, char** argv) {
  Settings settings;
  CLI::App app("Loads a store server and prints the cost.", "store_bench");
  app.require_subcommand(1);
  AddLoad(app, settings);
  AddStorm(app, settings);
  AddWaits(app, settings);
  AddWake(app, settings);
  CLI11_PARSE(app, argc, argv);
  std::string command = app.get_subcommands().front()->get_name();
  auto figures = Run(command, settings);
  if (!figures) {
    std::fprintf(stderr, "store_bench: %s: %s\n", command.c_str(), figures.error().message.c_str());
    return 1;
  }
  Print(*figures, settings.json);
  return 0;
}

}  // namespace
}  // namespace rankrun::bench

int main(int argc, char** argv) { return rankrun::bench::Main(argc, argv); }
