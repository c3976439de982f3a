#include "agent/control/munge.h"

#include <dlfcn.h>
#include <munge.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>

namespace rankrun::agent {
namespace {

constexpr const char* kLibrary = "libmunge.so.2";

// The functions of libmunge that we use. Never unloaded.
struct Library {
  decltype(&munge_encode) encode;
  decltype(&munge_decode) decode;
  decltype(&munge_strerror) strerror;
  decltype(&munge_ctx_create) create;
  decltype(&munge_ctx_set) set;
  decltype(&munge_ctx_strerror) context_error;
  decltype(&munge_ctx_destroy) destroy;
};

template <typename Function>
bool Find(void* handle, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(handle, name));
  return function != nullptr;
}

Result<Library> Load() {
  void* handle = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return Error{ErrorCode::kNotFound, dlerror()};
  Library library;
  bool is_complete = Find(handle, "munge_encode", library.encode) &&
                     Find(handle, "munge_decode", library.decode) &&
                     Find(handle, "munge_strerror", library.strerror) &&
                     Find(handle, "munge_ctx_create", library.create) &&
                     Find(handle, "munge_ctx_set", library.set) &&
                     Find(handle, "munge_ctx_strerror", library.context_error) &&
                     Find(handle, "munge_ctx_destroy", library.destroy);
  if (!is_complete) return Error{ErrorCode::kNotFound, std::string(kLibrary) + " is incomplete"};
  return library;
}

// A munge context for credentials of this user.
class Context {
 public:
  Context(const Library& library, const std::string& socket)
      : library_(library), context_(library.create()) {
    const uid_t user = geteuid();
    library.set(context_, MUNGE_OPT_UID_RESTRICTION, user);
    if (!socket.empty()) library.set(context_, MUNGE_OPT_SOCKET, socket.c_str());
  }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context() { library_.destroy(context_); }

  munge_ctx_t get() const { return context_; }

  Error ErrorOf(munge_err_t error) const {
    const char* text = library_.context_error(context_);
    bool is_absent = error == EMUNGE_SOCKET;
    return {is_absent ? ErrorCode::kNotFound : ErrorCode::kSystem,
            std::string("munge: ") + (text != nullptr ? text : library_.strerror(error))};
  }

 private:
  const Library& library_;
  const munge_ctx_t context_;
};

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};

bool IsUsable(munge_err_t error) {
  return error == EMUNGE_SUCCESS || error == EMUNGE_CRED_EXPIRED || error == EMUNGE_CRED_REWOUND ||
         error == EMUNGE_CRED_REPLAYED;
}

}  // namespace

Result<std::string> MakeCredential(const std::string& secret, const std::string& socket) {
  auto library = Load();
  if (!library) return std::move(library).error();
  Context context(*library, socket);
  char* text = nullptr;
  munge_err_t error =
      library->encode(&text, context.get(), secret.data(), static_cast<int>(secret.size()));
  std::unique_ptr<char, Free> credential(text);
  if (error != EMUNGE_SUCCESS) return context.ErrorOf(error);
  return std::string(credential.get());
}

Result<std::string> OpenCredential(const std::string& credential, const std::string& socket) {
  auto library = Load();
  if (!library) return std::move(library).error();
  Context context(*library, socket);
  void* bytes = nullptr;
  int size = 0;
  uid_t user = 0;
  gid_t group = 0;
  munge_err_t error =
      library->decode(credential.c_str(), context.get(), &bytes, &size, &user, &group);
  std::unique_ptr<void, Free> secret(bytes);
  if (!IsUsable(error)) {
    Error why = context.ErrorOf(error);
    if (why.code == ErrorCode::kSystem) why.code = ErrorCode::kInvalid;
    return why;
  }
  if (user != geteuid()) {
    return Error{ErrorCode::kInvalid,
                 "munge: the credential is that of user " + std::to_string(user)};
  }
  if (bytes == nullptr || size <= 0) return Error{ErrorCode::kInvalid, "munge: no secret inside"};
  return std::string(static_cast<const char*>(bytes), static_cast<size_t>(size));
}

}  // namespace rankrun::agent
