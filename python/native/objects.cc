// Objects as bytes. Those that are received are lists of bytes.

#include <algorithm>

#include "python/native/arguments.h"
#include "python/native/bytes.h"
#include "python/native/functions.h"
#include "python/native/work.h"

namespace rankrun::python {
namespace {

// Carries out `call(rankrun_bytes**)`, which gives `count` objects.
template <typename Call>
PyObject* Receive(Arguments& in, size_t count, Call call) {
  if (!in.Complete()) return nullptr;
  rankrun_bytes* received = nullptr;
  const bool ok = Succeeds([&] { return call(&received); });
  const OwnedBytes owned(received);
  if (!ok) return nullptr;
  return ListOf(received, received != nullptr ? count : 0);
}

size_t MembersOf(const rankrun_group* group) {
  return static_cast<size_t>(std::max(0, rankrun_world_size(group)));
}

// broadcast_objects(group, objects, root, timeout_ms)
PyObject* BroadcastObjects(PyObject*, PyObject* const* values, Py_ssize_t count) {
  Arguments in(values, count);
  rankrun_group* group = in.Group();
  const auto objects = in.ListOfBytes();
  const int root = in.Int();
  const int64_t timeout = in.Integer();
  return Receive(in, objects.size(), [&](rankrun_bytes** received) {
    return rankrun_broadcast_objects(group, objects.data(), objects.size(), root, timeout,
                                     received);
  });
}

// all_gather_object(group, object, timeout_ms)
PyObject* AllGatherObject(PyObject*, PyObject* const* values, Py_ssize_t count) {
  Arguments in(values, count);
  rankrun_group* group = in.Group();
  const rankrun_bytes object = in.Bytes();
  const int64_t timeout = in.Integer();
  return Receive(in, MembersOf(group), [&](rankrun_bytes** received) {
    return rankrun_all_gather_object(group, &object, timeout, received);
  });
}

// gather_object(group, object, root, timeout_ms): an empty list on other ranks.
PyObject* GatherObject(PyObject*, PyObject* const* values, Py_ssize_t count) {
  Arguments in(values, count);
  rankrun_group* group = in.Group();
  const rankrun_bytes object = in.Bytes();
  const int root = in.Int();
  const int64_t timeout = in.Integer();
  return Receive(in, MembersOf(group), [&](rankrun_bytes** received) {
    return rankrun_gather_object(group, &object, root, timeout, received);
  });
}

// scatter_objects(group, objects, root, timeout_ms): `objects` is empty on other ranks. A list of
// one.
PyObject* ScatterObjects(PyObject*, PyObject* const* values, Py_ssize_t count) {
  Arguments in(values, count);
  rankrun_group* group = in.Group();
  const auto objects = in.ListOfBytes();
  const int root = in.Int();
  const int64_t timeout = in.Integer();
  return Receive(in, 1, [&](rankrun_bytes** received) {
    return rankrun_scatter_objects(group, objects.empty() ? nullptr : objects.data(),
                                   objects.size(), root, timeout, received);
  });
}

// send_objects(group, objects, destination, tag, timeout_ms)
PyObject* SendObjects(PyObject*, PyObject* const* values, Py_ssize_t count) {
  Arguments in(values, count);
  rankrun_group* group = in.Group();
  const auto objects = in.ListOfBytes();
  const int destination = in.Int(), tag = in.Int();
  const int64_t timeout = in.Integer();
  return Run(in, false, [&](rankrun_work**) {
    return rankrun_send_objects(group, objects.data(), objects.size(), destination, tag, timeout);
  });
}

// recv_objects(group, number, source, tag, timeout_ms): returns (sender, objects).
PyObject* ReceiveObjects(PyObject*, PyObject* const* values, Py_ssize_t count) {
  Arguments in(values, count);
  rankrun_group* group = in.Group();
  const auto number = static_cast<size_t>(in.Integer());
  const int source = in.Int(), tag = in.Int();
  const int64_t timeout = in.Integer();
  int sender = -1;
  const Ref objects(Receive(in, number, [&](rankrun_bytes** received) {
    return rankrun_recv_objects(group, number, source, tag, timeout, received, &sender);
  }));
  return objects ? Py_BuildValue("(iO)", sender, objects.get()) : nullptr;
}

}  // namespace

PyMethodDef object_functions[] = {
    {"broadcast_objects", Function<BroadcastObjects>(), METH_FASTCALL, nullptr},
    {"all_gather_object", Function<AllGatherObject>(), METH_FASTCALL, nullptr},
    {"gather_object", Function<GatherObject>(), METH_FASTCALL, nullptr},
    {"scatter_objects", Function<ScatterObjects>(), METH_FASTCALL, nullptr},
    {"send_objects", Function<SendObjects>(), METH_FASTCALL, nullptr},
    {"recv_objects", Function<ReceiveObjects>(), METH_FASTCALL, nullptr},
    {}};

}  // namespace rankrun::python
