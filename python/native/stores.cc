// Clients of stores. A store is a capsule; the key of a function is a text, a value bytes.

#include "python/native/arguments.h"
#include "python/native/bytes.h"
#include "python/native/functions.h"
#include "python/native/own_store.h"
#include "python/native/work.h"

namespace rankrun::python {
namespace {

void Release(PyObject* capsule) {
  auto* store = static_cast<rankrun_store*>(PyCapsule_GetPointer(capsule, Arguments::kStore));
  const WithoutLock others_run;  // it may be the last client of a server in this process
  rankrun_store_release(store);
}

// Carries out `make(rankrun_store**)`.
template <typename Make>
PyObject* Open(Arguments& in, Make make) {
  if (!in.Complete()) return nullptr;
  rankrun_store* store = nullptr;
  const bool ok = Succeeds([&] { return make(&store); });
  Ref capsule(store != nullptr ? PyCapsule_New(store, Arguments::kStore, Release) : nullptr);
  return ok ? capsule.Release() : nullptr;
}

// tcp_store(host, port, world_size, is_server, timeout_ms, wait_for_workers, listen_fd,
// multi_tenant)
PyObject* TcpStore(PyObject*, PyObject* const* values, Py_ssize_t count) {
  Arguments in(values, count);
  rankrun_tcp_store_options options;
  options.size = sizeof options;
  rankrun_tcp_store_options_default(&options);
  options.host = in.Text();
  options.port = in.Port();
  options.world_size = in.Int();
  options.is_server = in.Flag() ? 1 : 0;
  options.timeout_ms = in.Integer();
  options.wait_for_workers = in.Flag() ? 1 : 0;
  options.listen_fd = in.Int();
  options.multi_tenant = in.Flag() ? 1 : 0;
  return Open(in, [&](rankrun_store** store) { return rankrun_tcp_store(&options, store); });
}

// file_store(path, run_id, world_size, timeout_ms): a negative size is none.
PyObject* FileStore(PyObject*, PyObject* const* values, Py_ssize_t count) {
  Arguments in(values, count);
  const char *path = in.Text(), *run_id = in.Text();
  const int world_size = in.Int();
  const int64_t timeout = in.Integer();
  return Open(in, [&](rankrun_store** store) {
    return world_size < 0 ? rankrun_file_store(path, run_id, timeout, store)
                          : rankrun_file_store_of_workers(path, run_id, world_size, timeout, store);
  });
}

PyObject* HashStore(PyObject*, PyObject* const* values, Py_ssize_t count) {
  Arguments in(values, count);
  const int64_t timeout = in.Integer();
  return Open(in, [&](rankrun_store** store) { return rankrun_hash_store(timeout, store); });
}

PyObject* PrefixStore(PyObject*, PyObject* const* values, Py_ssize_t count) {
  Arguments in(values, count);
  const char* prefix = in.Text();
  const rankrun_store* below = in.Store();
  return Open(in,
              [&](rankrun_store** store) { return rankrun_prefix_store(prefix, below, store); });
}

// own_store(object, timeout_ms)
PyObject* OwnStore(PyObject*, PyObject* const* values, Py_ssize_t count) {
  Arguments in(values, count);
  PyObject* object = in.Object();
  const int64_t timeout = in.Integer();
  return Open(in, [&](rankrun_store** store) { return OpenOwnStore(object, timeout, store); });
}

PyObject* Clone(PyObject*, PyObject* const* values, Py_ssize_t count) {
  Arguments in(values, count);
  const rankrun_store* from = in.Store();
  return Open(in, [&](rankrun_store** store) { return rankrun_store_clone(from, store); });
}

PyObject* Port(PyObject*, PyObject* const* values, Py_ssize_t count) {
  Arguments in(values, count);
  const rankrun_store* store = in.Store();
  return in.Complete() ? PyLong_FromLong(rankrun_store_port(store)) : nullptr;
}

PyObject* HasExtendedApi(PyObject*, PyObject* const* values, Py_ssize_t count) {
  Arguments in(values, count);
  const rankrun_store* store = in.Store();
  return in.Complete() ? PyBool_FromLong(rankrun_store_has_extended_api(store)) : nullptr;
}

PyObject* SetTimeout(PyObject*, PyObject* const* values, Py_ssize_t count) {
  Arguments in(values, count);
  rankrun_store* store = in.Store();
  const int64_t timeout = in.Integer();
  return Run(in, false, [&](rankrun_work**) { return rankrun_store_set_timeout(store, timeout); });
}

PyObject* Timeout(PyObject*, PyObject* const* values, Py_ssize_t count) {
  Arguments in(values, count);
  const rankrun_store* store = in.Store();
  return in.Complete() ? PyLong_FromLongLong(rankrun_store_timeout(store)) : nullptr;
}

PyObject* Set(PyObject*, PyObject* const* values, Py_ssize_t count) {
  Arguments in(values, count);
  rankrun_store* store = in.Store();
  const char* key = in.Text();
  const rankrun_bytes value = in.Bytes();
  return Run(in, false,
             [&](rankrun_work**) { return rankrun_store_set(store, key, value.data, value.size); });
}

// Carries out `call(rankrun_bytes**)`, and returns the value.
template <typename Call>
PyObject* ValueOf(Arguments& in, Call call) {
  if (!in.Complete()) return nullptr;
  rankrun_bytes* value = nullptr;
  const bool ok = Succeeds([&] { return call(&value); });
  const OwnedBytes owned(value);
  return ok ? ObjectOf(value) : nullptr;
}

// store_get(store, key, timeout_ms)
PyObject* Get(PyObject*, PyObject* const* values, Py_ssize_t count) {
  Arguments in(values, count);
  rankrun_store* store = in.Store();
  const char* key = in.Text();
  const int64_t timeout = in.Integer();
  return ValueOf(
      in, [&](rankrun_bytes** value) { return rankrun_store_get(store, key, timeout, value); });
}

PyObject* Add(PyObject*, PyObject* const* values, Py_ssize_t count) {
  Arguments in(values, count);
  rankrun_store* store = in.Store();
  const char* key = in.Text();
  const int64_t delta = in.Integer();
  int64_t sum = 0;
  if (!in.Complete()) return nullptr;
  if (!Succeeds([&] { return rankrun_store_add(store, key, delta, &sum); })) return nullptr;
  return PyLong_FromLongLong(sum);
}

PyObject* Check(PyObject*, PyObject* const* values, Py_ssize_t count) {
  Arguments in(values, count);
  rankrun_store* store = in.Store();
  const auto keys = in.ListOfTexts();
  int exist = 0;
  if (!in.Complete()) return nullptr;
  auto check = [&] { return rankrun_store_check(store, keys.data(), keys.size(), &exist); };
  return Succeeds(check) ? PyBool_FromLong(exist) : nullptr;
}

// store_wait(store, keys, timeout_ms)
PyObject* Wait(PyObject*, PyObject* const* values, Py_ssize_t count) {
  Arguments in(values, count);
  rankrun_store* store = in.Store();
  const auto keys = in.ListOfTexts();
  const int64_t timeout = in.Integer();
  return Run(in, false, [&](rankrun_work**) {
    return rankrun_store_wait(store, keys.data(), keys.size(), timeout);
  });
}

// store_barrier(store, key, world_size, timeout_ms)
PyObject* Barrier(PyObject*, PyObject* const* values, Py_ssize_t count) {
  Arguments in(values, count);
  rankrun_store* store = in.Store();
  const char* key = in.Text();
  const int world_size = in.Int();
  const int64_t timeout = in.Integer();
  return Run(in, false, [&](rankrun_work**) {
    return rankrun_store_barrier(store, key, world_size, timeout);
  });
}

// store_compare_set(store, key, expected, desired): returns the resulting value.
PyObject* CompareSet(PyObject*, PyObject* const* values, Py_ssize_t count) {
  Arguments in(values, count);
  rankrun_store* store = in.Store();
  const char* key = in.Text();
  const rankrun_bytes expected = in.Bytes(), desired = in.Bytes();
  return ValueOf(in, [&](rankrun_bytes** value) {
    return rankrun_store_compare_set(store, key, &expected, &desired, value, nullptr);
  });
}

PyObject* Delete(PyObject*, PyObject* const* values, Py_ssize_t count) {
  Arguments in(values, count);
  rankrun_store* store = in.Store();
  const char* key = in.Text();
  int existed = 0;
  if (!in.Complete()) return nullptr;
  if (!Succeeds([&] { return rankrun_store_delete(store, key, &existed); })) return nullptr;
  return PyBool_FromLong(existed);
}

PyObject* Append(PyObject*, PyObject* const* values, Py_ssize_t count) {
  Arguments in(values, count);
  rankrun_store* store = in.Store();
  const char* key = in.Text();
  const rankrun_bytes value = in.Bytes();
  return Run(in, false, [&](rankrun_work**) {
    return rankrun_store_append(store, key, value.data, value.size);
  });
}

// store_multi_get(store, keys, timeout_ms)
PyObject* MultiGet(PyObject*, PyObject* const* values, Py_ssize_t count) {
  Arguments in(values, count);
  rankrun_store* store = in.Store();
  const auto keys = in.ListOfTexts();
  const int64_t timeout = in.Integer();
  rankrun_bytes* found = nullptr;
  if (!in.Complete()) return nullptr;
  const bool ok = Succeeds(
      [&] { return rankrun_store_multi_get(store, keys.data(), keys.size(), timeout, &found); });
  const OwnedBytes owned(found);
  return ok ? ListOf(found, found != nullptr ? keys.size() : 0) : nullptr;
}

PyObject* MultiSet(PyObject*, PyObject* const* values, Py_ssize_t count) {
  Arguments in(values, count);
  rankrun_store* store = in.Store();
  const auto keys = in.ListOfTexts();
  const auto contents = in.ListOfBytes();
  if (keys.size() != contents.size() && in.Complete()) {
    return PyErr_Format(PyExc_ValueError, "multi_set: %zu keys and %zu values", keys.size(),
                        contents.size());
  }
  return Run(in, false, [&](rankrun_work**) {
    return rankrun_store_multi_set(store, keys.data(), contents.data(), keys.size());
  });
}

PyObject* NumKeys(PyObject*, PyObject* const* values, Py_ssize_t count) {
  Arguments in(values, count);
  rankrun_store* store = in.Store();
  int64_t number = 0;
  if (!in.Complete()) return nullptr;
  if (!Succeeds([&] { return rankrun_store_num_keys(store, &number); })) return nullptr;
  return PyLong_FromLongLong(number);
}

// store_list_keys(store): names as bytes.
PyObject* ListKeys(PyObject*, PyObject* const* values, Py_ssize_t count) {
  Arguments in(values, count);
  rankrun_store* store = in.Store();
  rankrun_bytes* keys = nullptr;
  size_t number = 0;
  if (!in.Complete()) return nullptr;
  const bool ok = Succeeds([&] { return rankrun_store_list_keys(store, &keys, &number); });
  const OwnedBytes owned(keys);
  return ok ? ListOf(keys, number) : nullptr;
}

PyObject* QueuePush(PyObject*, PyObject* const* values, Py_ssize_t count) {
  Arguments in(values, count);
  rankrun_store* store = in.Store();
  const char* key = in.Text();
  const rankrun_bytes value = in.Bytes();
  return Run(in, false, [&](rankrun_work**) {
    return rankrun_store_queue_push(store, key, value.data, value.size);
  });
}

// store_queue_pop(store, key, timeout_ms): None if the time-out is 0 and the queue empty.
PyObject* QueuePop(PyObject*, PyObject* const* values, Py_ssize_t count) {
  Arguments in(values, count);
  rankrun_store* store = in.Store();
  const char* key = in.Text();
  const int64_t timeout = in.Integer();
  return ValueOf(in, [&](rankrun_bytes** value) {
    return rankrun_store_queue_pop(store, key, timeout, value);
  });
}

PyObject* QueueLength(PyObject*, PyObject* const* values, Py_ssize_t count) {
  Arguments in(values, count);
  rankrun_store* store = in.Store();
  const char* key = in.Text();
  int64_t length = 0;
  if (!in.Complete()) return nullptr;
  if (!Succeeds([&] { return rankrun_store_queue_length(store, key, &length); })) return nullptr;
  return PyLong_FromLongLong(length);
}

}  // namespace

PyMethodDef store_functions[] = {
    {"tcp_store", Function<TcpStore>(), METH_FASTCALL, nullptr},
    {"file_store", Function<FileStore>(), METH_FASTCALL, nullptr},
    {"hash_store", Function<HashStore>(), METH_FASTCALL, nullptr},
    {"prefix_store", Function<PrefixStore>(), METH_FASTCALL, nullptr},
    {"own_store", Function<OwnStore>(), METH_FASTCALL, nullptr},
    {"store_clone", Function<Clone>(), METH_FASTCALL, nullptr},
    {"store_port", Function<Port>(), METH_FASTCALL, nullptr},
    {"store_has_extended_api", Function<HasExtendedApi>(), METH_FASTCALL, nullptr},
    {"store_set_timeout", Function<SetTimeout>(), METH_FASTCALL, nullptr},
    {"store_timeout", Function<Timeout>(), METH_FASTCALL, nullptr},
    {"store_set", Function<Set>(), METH_FASTCALL, nullptr},
    {"store_get", Function<Get>(), METH_FASTCALL, nullptr},
    {"store_add", Function<Add>(), METH_FASTCALL, nullptr},
    {"store_check", Function<Check>(), METH_FASTCALL, nullptr},
    {"store_wait", Function<Wait>(), METH_FASTCALL, nullptr},
    {"store_barrier", Function<Barrier>(), METH_FASTCALL, nullptr},
    {"store_compare_set", Function<CompareSet>(), METH_FASTCALL, nullptr},
    {"store_delete", Function<Delete>(), METH_FASTCALL, nullptr},
    {"store_append", Function<Append>(), METH_FASTCALL, nullptr},
    {"store_multi_get", Function<MultiGet>(), METH_FASTCALL, nullptr},
    {"store_multi_set", Function<MultiSet>(), METH_FASTCALL, nullptr},
    {"store_num_keys", Function<NumKeys>(), METH_FASTCALL, nullptr},
    {"store_list_keys", Function<ListKeys>(), METH_FASTCALL, nullptr},
    {"store_queue_push", Function<QueuePush>(), METH_FASTCALL, nullptr},
    {"store_queue_pop", Function<QueuePop>(), METH_FASTCALL, nullptr},
    {"store_queue_length", Function<QueueLength>(), METH_FASTCALL, nullptr},
    {}};

}  // namespace rankrun::python
