// planter HOST PORT KEY [USER]: a client of a store, as this user. It sets KEY and prints the value
// of the key `planted`, or "nothing".

#include <grp.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>

#include <rankrun/store.h>

namespace {

bool Become(uid_t user) {
  return setgroups(0, nullptr) == 0 && setgid(user) == 0 && setuid(user) == 0;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 4) return 2;
  const bool is_stranger = count > 4;
  if (is_stranger && !Become(static_cast<uid_t>(std::atoi(arguments[4])))) return 3;
  try {
    rankrun::TcpStore store({.host = arguments[1],
                             .port = static_cast<uint16_t>(std::atoi(arguments[2])),
                             .timeout = std::chrono::seconds(is_stranger ? 5 : 60)});
    store.Set(arguments[3], "yes");
    std::printf("%s\n", store.Check({"planted"}) ? store.Get("planted").c_str() : "nothing");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
