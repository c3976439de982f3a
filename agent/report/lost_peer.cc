#include "agent/report/lost_peer.h"

#include <algorithm>
#include <string>

#include "agent/report/named_rank.h"
#include "base/find_last.h"
#include "base/lowercase.h"

namespace rankrun::agent {
namespace {

// All texts are in lower case.
constexpr std::string_view kLostPeer[] = {
    "connection closed by peer",
    "connection reset by peer",
    "connection reset by remote peer",
    "connection was likely closed",
    "connection refused",
    "broken pipe",
    "brokenpipeerror",
    "connectionerror",
    "connectionabortederror",
    "failed to recv, got 0 bytes",
    "socket hang up",
    "ncclremoteerror",
    "remote process exited",
    "distnetworkerror",
    "lost rank ",
    "successfully reached monitoredbarrier, but received errors",
    // Gloo: the peer has made another call.
    "op.preamble.length <= op.nbytes",
    // Python and its libraries: asyncio, http.client, grpc, ssl, aiohttp, httpx, websockets, dask.
    "incompletereaderror",
    "remotedisconnected",
    "statuscode.unavailable",
    "socket closed",
    "ssleoferror",
    "sslzeroreturnerror",
    "serverdisconnectederror",
    "remoteprotocolerror: server disconnected",
    "connectionclosederror",
    "streamclosederror",
    "commclosederror",
    // Rust, and grpc in Go.
    "kind: connectionreset",
    "kind: connectionrefused",
    "kind: connectionaborted",
    "kind: brokenpipe",
    "rpc error: code = unavailable",
    // Java, and JAX.
    "java.net.socketexception: connection reset",
    "another task died",
    // Node.js, MPI and Julia.
    "econnreset",
    "econnrefused",
    "write epipe",
    "mpi_err_proc_failed",
    "eoferror: read end of file",
    "tasks are unhealthy",
    // R.
    "error reading from connection",
    "error writing to connection",
};

// A service outside the job.
constexpr std::string_view kOfServices[] = {
    "couldn't reach",
    "max retries exceeded with url",
    "on the hub",
};

// A wait for other workers that took too long: what it says, and whose text it is. Requests to
// other services have texts of their own.
constexpr std::string_view kTimedOut[] = {
    "timeouterror",
    "timed out",
    "wait timeout after",
    "collective operation timeout",
};
constexpr std::string_view kOfAGroup[] = {
    "gloo",
    "unbound_buffer",
    "nccl",
    "processgroup",
    "monitoredbarrier",
    "tcpstore",
    "diststoreerror",
    "disttimeout",
    "distbackenderror",
    "wait timeout after",
    "collective operation timeout",
};
// Python's and Java's, for their own sockets and barriers, and ZeroMQ's.
constexpr std::string_view kTimeOutLines[] = {
    "timeouterror",
    "timeouterror: timed out",
    "socket.timeout: timed out",
    "java.net.sockettimeoutexception: read timed out",
    "zmq.error.again: resource temporarily unavailable",
};

constexpr std::string_view kInputEnded[] = {
    "eoferror: ran out of input",  "pickle data was truncated", "unexpected eof",
    "failed to fill whole buffer", "kind: unexpectedeof",       "java.io.eofexception",
};

// Ends of the last line of a program that has no exceptions.
constexpr std::string_view kSystemsLostPeer[] = {
    "connection reset by peer", "connection refused", "connection timed out",
    "connection aborted",       "broken pipe",
};
constexpr std::string_view kRustsLostPeer[] = {
    "kind: connectionreset",
    "kind: connectionrefused",
    "kind: connectionaborted",
    "kind: brokenpipe",
};
constexpr std::string_view kSystemsInputEnded[] = {
    "unexpected eof",
    "eof",
    "failed to fill whole buffer",
};

bool Has(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

template <typename Texts>
bool HasAny(std::string_view text, const Texts& parts) {
  return std::ranges::any_of(parts, [&](std::string_view part) { return Has(text, part); });
}

bool HasLine(std::string_view text, std::string_view line) {
  for (size_t at = text.find(line); at != text.npos; at = text.find(line, at + 1)) {
    const size_t end = at + line.size();
    const bool begins = at == 0 || text[at - 1] == '\n';
    if (begins && (end == text.size() || text[end] == '\n')) return true;
  }
  return false;
}

// Removes " [104]" at the end.
void DropNumber(std::string_view& text) {
  const size_t at = FindLast(text, " [");
  if (at == text.npos || !text.ends_with(']')) return;
  const std::string_view number = text.substr(at + 2, text.size() - at - 3);
  if (number.find_first_not_of("0123456789") == number.npos) text = text.substr(0, at);
}

// Returns the last line in lower case. Removes the number that Rust and glog add to the text of
// the system, a full stop, and the ends of quotes and braces.
std::string LastLine(std::string_view text) {
  constexpr std::string_view kEnd = " \n\r\t.\"')}>";
  constexpr std::string_view kNumber = " (os error ";
  const auto trim = [&] { text = text.substr(0, text.find_last_not_of(kEnd) + 1); };
  trim();
  text = text.substr(FindLast(text, "\n") + 1);  // npos + 1 is 0
  if (size_t number = FindLast(text, kNumber); number != text.npos) text = text.substr(0, number);
  DropNumber(text);
  trim();
  return Lowercase(std::string(text));
}

// Returns whether the line is this text, or ends with it behind a colon or an opening quote.
bool IsText(std::string_view line, std::string_view text) {
  if (!line.ends_with(text)) return false;
  line.remove_suffix(text.size());
  const bool is_whole = line.find_first_not_of(" \t") == line.npos;
  return is_whole || line.ends_with(": ") || line.ends_with('"');
}

template <typename Texts>
bool IsAnyText(std::string_view line, const Texts& texts) {
  return std::ranges::any_of(texts, [&](std::string_view text) { return IsText(line, text); });
}

}  // namespace

bool BlamesLostPeer(const LastError& error) {
  if (error.is_exception && error.text.starts_with("EOFError\n")) return true;  // multiprocessing
  if (NamedRankIn(error.text)) return true;
  const std::string text = Lowercase(error.text);
  return HasAny(text, kLostPeer) && !HasAny(text, kOfServices);
}

bool EndsWithLostPeer(const LastError& error) {
  // MPI aborts with this.
  if (Has(error.text, "*** MPI_ERR_PROC_FAILED")) return true;
  const std::string line = LastLine(error.text);
  return IsAnyText(line, kSystemsLostPeer) || HasAny(line, kRustsLostPeer);
}

bool TimedOut(const LastError& error) {
  // A text of Go.
  if (IsText(LastLine(error.text), "i/o timeout")) return true;
  if (!error.is_exception) return false;
  const std::string text = Lowercase(error.text);
  const auto has_line = [&](std::string_view line) { return HasLine(text, line); };
  if (std::ranges::any_of(kTimeOutLines, has_line)) return true;
  return HasAny(text, kTimedOut) && HasAny(text, kOfAGroup);
}

bool InputEnded(const LastError& error) {
  if (error.is_exception) {
    const std::string text = Lowercase(error.text);
    return HasAny(text, kInputEnded) && !Has(text, "syntaxerror");  // of a source file
  }
  const std::string line = LastLine(error.text);
  return IsAnyText(line, kSystemsInputEnded) || Has(line, "kind: unexpectedeof");
}

}  // namespace rankrun::agent
