// Messages between two ranks, which are global ranks; a source may be -1, any rank.

#include "python/native/arguments.h"
#include "python/native/functions.h"
#include "python/native/work.h"

namespace rankrun::python {
namespace {

// send(group, tensor, destination, tag, timeout_ms)
PyObject* Send(PyObject*, PyObject* const* values, Py_ssize_t count) {
  Arguments in(values, count);
  rankrun_group* group = in.Group();
  const rankrun_tensor tensor = in.Tensor();
  const int destination = in.Int(), tag = in.Int();
  const int64_t timeout = in.Integer();
  return Run(in, false, [&](rankrun_work**) {
    return rankrun_send(group, &tensor, destination, tag, timeout);
  });
}

// recv(group, tensor, source, tag, timeout_ms): returns the sender, -1 for no member.
PyObject* Receive(PyObject*, PyObject* const* values, Py_ssize_t count) {
  Arguments in(values, count);
  rankrun_group* group = in.Group();
  const rankrun_tensor tensor = in.Tensor();
  const int source = in.Int(), tag = in.Int();
  const int64_t timeout = in.Integer();
  int sender = -1;
  const Ref none(Run(in, false, [&](rankrun_work**) {
    return rankrun_recv(group, &tensor, source, tag, timeout, &sender);
  }));
  return none ? PyLong_FromLong(sender) : nullptr;
}

// isend(group, tensor, destination, tag)
PyObject* BeginSend(PyObject*, PyObject* const* values, Py_ssize_t count) {
  Arguments in(values, count);
  rankrun_group* group = in.Group();
  const rankrun_tensor tensor = in.Tensor();
  const int destination = in.Int(), tag = in.Int();
  return Run(in, true, [&](rankrun_work** work) {
    return rankrun_isend(group, &tensor, destination, tag, work);
  });
}

// irecv(group, tensor, source, tag)
PyObject* BeginReceive(PyObject*, PyObject* const* values, Py_ssize_t count) {
  Arguments in(values, count);
  rankrun_group* group = in.Group();
  const rankrun_tensor tensor = in.Tensor();
  const int source = in.Int(), tag = in.Int();
  return Run(in, true,
             [&](rankrun_work** work) { return rankrun_irecv(group, &tensor, source, tag, work); });
}

// batch(group, tensors, are_sends, peers, tags): lists of one length. Returns their works.
PyObject* Batch(PyObject*, PyObject* const* values, Py_ssize_t count) {
  Arguments in(values, count);
  rankrun_group* group = in.Group();
  const auto tensors = in.Tensors();
  const auto are_sends = in.ListOf<int32_t>(), peers = in.ListOf<int32_t>(),
             tags = in.ListOf<int32_t>();
  if (!in.Complete()) return nullptr;
  for (const auto* list : {&are_sends, &peers, &tags}) {
    if (list->size() == tensors.size()) continue;
    PyErr_SetString(PyExc_TypeError, "batch: want lists of one length");
    return nullptr;
  }
  std::vector<rankrun_message> messages;
  for (size_t i = 0; i < tensors.size(); ++i) {
    messages.push_back({.tensor = tensors[i],
                        .is_send = are_sends[i],
                        .peer = peers[i],
                        .tag = tags[i],
                        .reserved = 0});
  }
  std::vector<rankrun_work*> works(messages.size());
  if (!Succeeds(
          [&] { return rankrun_batch(group, messages.data(), messages.size(), works.data()); })) {
    // Messages under way continue without a handle, so their memory is never released.
    for (PyObject* owner : in.owners()) Ref::To(owner).Release();
    return nullptr;
  }
  Ref list(PyList_New(0));
  const auto owners = in.owners();
  for (size_t i = 0; i < works.size(); ++i) {
    const Ref work(NewWork(works[i], {owners[i]}));
    if (!list || !work || PyList_Append(list.get(), work.get()) != 0) list = Ref();
  }
  return list.Release();
}

}  // namespace

PyMethodDef message_functions[] = {{"send", Function<Send>(), METH_FASTCALL, nullptr},
                                   {"recv", Function<Receive>(), METH_FASTCALL, nullptr},
                                   {"isend", Function<BeginSend>(), METH_FASTCALL, nullptr},
                                   {"irecv", Function<BeginReceive>(), METH_FASTCALL, nullptr},
                                   {"batch", Function<Batch>(), METH_FASTCALL, nullptr},
                                   {}};

}  // namespace rankrun::python
