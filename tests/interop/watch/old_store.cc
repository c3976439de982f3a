#include <iostream>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <vector>

// A TCPStore of PyTorch 1.13 by its C++ interface, because Python's has no
// watchKey. The first input line is "server PORT" or "client PORT", and the
// reply is the port. Each further line is a command with a reply of one line.
// Each call of a watch's callback prints a line "changed KEY BEFORE AFTER".
// Values are in hexadecimal after an x; "-" is no value.

namespace {

std::mutex output;

void Say(const std::string& line) {
  std::lock_guard<std::mutex> lock(output);
  std::cout << line << std::endl;
}

std::string Hex(const std::string& bytes) {
  std::string hex = "x";
  for (unsigned char byte : bytes) {
    hex += "0123456789abcdef"[byte / 16];
    hex += "0123456789abcdef"[byte % 16];
  }
  return hex;
}

std::string Hex(const c10::optional<std::string>& value) { return value ? Hex(*value) : "-"; }

std::vector<uint8_t> Bytes(const std::string& text) { return {text.begin(), text.end()}; }

std::string Hex(const std::vector<uint8_t>& bytes) {
  return Hex(std::string(bytes.begin(), bytes.end()));
}

std::unique_ptr<c10d::TCPStore> Open(std::istream& in) {
  std::string kind;
  c10d::TCPStoreOptions options;
  in >> kind >> options.port;
  options.isServer = kind == "server";
  options.waitWorkers = false;
  options.timeout = std::chrono::seconds(20);
  return std::make_unique<c10d::TCPStore>("127.0.0.1", options);
}

void Watch(c10d::TCPStore& store, const std::string& key) {
  store.watchKey(key, [key](c10::optional<std::string> before, c10::optional<std::string> after) {
    Say("changed " + key + " " + Hex(before) + " " + Hex(after));
  });
}

// A missing word is an empty string.
std::string Answer(c10d::TCPStore& store, std::istream& in) {
  std::string command;
  std::string key;
  std::string first;
  std::string second;
  in >> command >> key >> first >> second;
  if (command == "watch") return Watch(store, key), "done";
  if (command == "set") return store.set(key, Bytes(first)), "done";
  if (command == "get") return Hex(store.get(key));
  if (command == "add") return std::to_string(store.add(key, std::stoll(first)));
  if (command == "delete") return std::to_string(store.deleteKey(key));
  if (command == "create") return Hex(store.compareSet(key, Bytes(""), Bytes(first)));
  if (command == "replace") return Hex(store.compareSet(key, Bytes(first), Bytes(second)));
  return "no such command: " + command;
}

}  // namespace

int main() {
  std::string line;
  std::getline(std::cin, line);
  std::istringstream first(line);
  auto store = Open(first);
  Say(std::to_string(store->getPort()));
  while (std::getline(std::cin, line)) {
    std::istringstream command(line);
    Say(Answer(*store, command));
  }
}
