#include "base/uv/uv_name_lookup.h"

#include <netdb.h>
#include <uv.h>

#include <memory>
#include <utility>

#include "base/uv/uv_loop.h"

namespace rankrun {
namespace {

struct FreeUvAddresses {
  void operator()(addrinfo* list) const { uv_freeaddrinfo(list); }
};

Error LookupError(const std::string& host, int status) {
  bool is_unknown = status == UV_EAI_NONAME || status == UV_EAI_NODATA;
  return Error{is_unknown ? ErrorCode::kNotFound : ErrorCode::kSystem,
               "look up " + host + ": " + uv_strerror(status)};
}

}  // namespace

struct NameLookup::Request {
  uv_getaddrinfo_t request;
  std::string host;
  NameLookup* owner;  // null once it has ended

  static void Done(uv_getaddrinfo_t* request, int status, addrinfo* list) {
    std::unique_ptr<addrinfo, FreeUvAddresses> owned(list);
    std::unique_ptr<Request> self(static_cast<Request*>(request->data));
    NameLookup* owner = self->owner;
    if (owner == nullptr) return;
    owner->request_ = nullptr;
    if (status != 0) return owner->on_done_(LookupError(self->host, status));
    std::vector<SocketAddress> addresses;
    for (const addrinfo* entry = list; entry != nullptr; entry = entry->ai_next) {
      addresses.push_back(SocketAddress::FromRaw(entry->ai_addr));
    }
    owner->on_done_(std::move(addresses));
  }
};

NameLookup::NameLookup(Loop& loop, const std::string& host, uint16_t port, OnDone on_done)
    : on_done_(std::move(on_done)), later_(loop, [this] { on_done_(*std::move(failure_)); }) {
  loop.AssertOnLoop();
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  std::unique_ptr<Request> request(new Request{{}, host, this});
  request->request.data = request.get();
  int status = uv_getaddrinfo(loop.raw(), &request->request, Request::Done, host.c_str(),
                              std::to_string(port).c_str(), &hints);
  if (status == 0) {
    request_ = request.release();
  } else {
    failure_ = LookupError(host, status);
    later_.Start(std::chrono::seconds(0));
  }
}

NameLookup::~NameLookup() {
  if (request_ == nullptr) return;
  request_->owner = nullptr;
  uv_cancel(reinterpret_cast<uv_req_t*>(&request_->request));  // has no effect once it has begun
}

}  // namespace rankrun
