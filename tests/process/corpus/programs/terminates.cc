// terminates RANK WAY: C++ ends rank RANK by std::terminate once all ranks are there.

#include <stdexcept>
#include <string>
#include <thread>

#include "ready.h"

namespace {

[[noreturn]] void ThrowInTheLoader() { throw std::runtime_error("shard 7 has a bad checksum"); }

void ThrowThroughNoexcept() noexcept { throw std::out_of_range("token 50257 of 50257"); }

void Die(const std::string& way) {
  if (way == "what") ThrowInTheLoader();
  if (way == "thread") std::thread(ThrowInTheLoader).join();
  if (way == "noexcept") ThrowThroughNoexcept();
  if (way == "int") throw 42;
  if (way == "joinable") std::thread thread([] { sleep(60); });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 99;
  Ready();
  WaitForAll();
  if (std::atoi(std::getenv("RANK")) == std::atoi(argv[1])) {
    Die(argv[2]);
    return 98;
  }
  sleep(60);
  return 97;
}
