// A child of a worker of RPC may not call; each of the libraries counts its forks.
// Built with an installed rankrun by installed_package.sh.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include <rankrun/rpc.h>

namespace rpc = rankrun::rpc;

int main() {
  rpc::RegisterMethod("echo",
                      [](const rpc::WorkerInfo&, const rpc::Payload& text) { return text; });
  rpc::Init(std::string("w") + getenv("RANK"));
  const pid_t child = fork();
  try {
    const std::string answer = rpc::RpcSync("w1", "echo", {"yes"}).bytes;
    if (child == 0) _exit(1);
    int status = 1;
    waitpid(child, &status, 0);
    rpc::Shutdown();
    return answer == "yes" ? status : 2;
  } catch (const rankrun::DistError& error) {
    if (child != 0) throw;
    _exit(std::string(error.what()).find("is a fork of") != std::string::npos ? 0 : 3);
  }
}
