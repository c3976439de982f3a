"""Operations of the backend rankrun beyond PyTorch's own tests. Usage: rankrun -n 3 operations.py"""

import datetime
import gc
import os
import tempfile
import threading

import torch
import torch.distributed as dist

import rankrun.torch

RANK = int(os.environ["RANK"])
SIZE = int(os.environ["WORLD_SIZE"])
SUM = sum(range(1, SIZE + 1))  # of rank + 1
STORE = dist.distributed_c10d._get_default_store


def mine(*shape, dtype=torch.float32):
    return torch.full(shape or (4,), RANK + 1, dtype=dtype)


def check(condition, text):
    if not condition:
        raise AssertionError(text)


def error_of(call):
    try:
        call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "no error"


def dtypes():
    for dtype in (torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64, torch.float16,
                  torch.bfloat16, torch.float32, torch.float64, torch.complex64):
        tensor = mine(5, dtype=dtype)
        dist.all_reduce(tensor)
        check((tensor == torch.tensor(SUM, dtype=dtype)).all(), f"sum of {dtype}: {tensor}")
    flags = torch.tensor([RANK == 0, RANK == 1, False])
    dist.all_reduce(flags, dist.ReduceOp.MAX)
    check(flags.tolist() == [True, SIZE > 1, False], f"maximum of bool: {flags}")


# 256 + 1 is 256 in bfloat16, so that a sum in this type would lose each addend.
def sums_of_half_types_are_in_float():
    tensor = torch.full((3,), 256.0 if RANK == 0 else 1.0, dtype=torch.bfloat16)
    dist.all_reduce(tensor)
    want = torch.tensor(256.0 + SIZE - 1).to(torch.bfloat16)
    check((tensor == want).all(), f"{tensor}, want {want}")


def types_without_arithmetic_are_moved():
    tensor = torch.tensor([float(RANK + 1)]).to(torch.float8_e4m3fn)
    dist.broadcast(tensor, src=SIZE - 1)
    check(float(tensor.float()) == SIZE, f"broadcast of float8: {tensor.float()}")
    error = error_of(lambda: dist.all_reduce(tensor))
    check("float8" in error.lower(), error)


def a_premultiplied_sum():
    tensor = mine()
    dist.all_reduce(tensor, dist._make_nccl_premul_sum(2.0))
    check((tensor == 2 * SUM).all(), str(tensor))


def views_that_are_not_dense():
    tensor = torch.arange(6.0).reshape(2, 3).t()
    dist.all_reduce(tensor)
    check(tensor.equal(SIZE * torch.arange(6.0).reshape(2, 3).t()), str(tensor))
    column = torch.zeros(3, 2)
    dist.broadcast(column[:, 1], src=0) if RANK else dist.broadcast(torch.ones(3), src=0)
    check(RANK == 0 or column.tolist() == [[0, 1]] * 3, str(column))
    negated = torch.tensor([1j]).conj().imag  # a view whose sign is yet to be changed
    dist.all_reduce(negated)
    check(negated.item() == -SIZE, str(negated))


def empty_and_scalar_tensors():
    dist.all_reduce(torch.zeros(0))
    scalar = torch.tensor(float(RANK))
    dist.all_reduce(scalar, dist.ReduceOp.MAX)
    check(scalar.item() == SIZE - 1, str(scalar))


def tensors_live_while_their_work_is_dropped():
    base = torch.ones(200, 1000)
    for row in base:
        dist.all_reduce(row * 1, async_op=True)
        dist.all_reduce(row, async_op=True)
    gc.collect()
    dist.barrier()
    check((base == SIZE).all(), str(base))


def callbacks_of_futures_may_start_and_await_collectives():
    def again(depth):
        tensor = mine()
        future = dist.all_reduce(tensor, async_op=True).get_future()

        def on_end(ended):
            check((ended.value()[0] == SUM).all(), str(ended.value()))
            return again(depth - 1).wait() if depth else tensor

        return future.then(on_end)

    check((again(5).wait() == SUM).all(), "the last sum")


def a_future_does_not_wait_for_operations_of_other_groups():
    first, second, third = (dist.new_group() for _ in range(3))
    tensors = mine(), mine()
    if RANK == 0:
        early = dist.all_reduce(tensors[0], group=first, async_op=True).get_future()
        dist.all_reduce(tensors[1], group=second, async_op=True).get_future().wait()
        dist.barrier(third)
        early.wait()
    else:
        dist.all_reduce(tensors[1], group=second)
        dist.barrier(third)
        dist.all_reduce(tensors[0], group=first)
    check(all((each == SUM).all() for each in tensors), str(tensors))


def a_call_in_the_profiler_does_not_wait_for_an_older_message():
    tensor, message = mine(), torch.zeros(1)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        if RANK == 0:
            receive = dist.irecv(message, 1, tag=1)
            dist.all_reduce(tensor)
            dist.send(torch.ones(1), 1, tag=2)
            receive.wait()
        else:
            dist.all_reduce(tensor)
            if RANK == 1:
                dist.recv(message, 0, tag=2)
                dist.send(torch.ones(1), 0, tag=1)
    names = {event.name for event in profile.events()}
    check("rankrun:all_reduce" in names, str(names))


def results_come_back_into_the_tensor_or_an_error():
    with torch.inference_mode():
        strided = torch.ones(4, 4).t()[:, ::2]
        dist.all_reduce(strided, async_op=True).get_future().wait()
    check((strided == SIZE).all(), str(strided))
    shared = torch.ones(1).expand(4)
    error = error_of(lambda: dist.all_reduce(shared, async_op=True))
    check("share memory" in error, error)


def ranks_outside_the_group_are_refused():
    error = error_of(lambda: dist.group.WORLD.send([mine()], SIZE, 0))
    check(f"rank {SIZE} is not in the group" in error, error)
    error = error_of(lambda: dist.send(mine(), -1))
    check("-1" in error, error)


def batches():
    tensors = [mine() for _ in range(3)]
    with dist._coalescing_manager(async_ops=True) as batch:
        for tensor in tensors:
            dist.all_reduce(tensor)
    batch.wait()
    check(all((tensor == SUM).all() for tensor in tensors), str(tensors))
    received = torch.zeros(4)
    works = dist.batch_isend_irecv([
        dist.P2POp(dist.isend, mine(), (RANK + 1) % SIZE),
        dist.P2POp(dist.irecv, received, (RANK - 1) % SIZE),
    ])
    for work in works:
        work.wait()
    check((received == (RANK - 1) % SIZE + 1).all(), str(received))


def groups_have_ranks_of_their_own():
    last, group = SIZE - 1, dist.new_group([0, SIZE - 1])
    if RANK not in (0, last):
        return
    tensor = mine()
    dist.broadcast(tensor, src=last, group=group)
    check((tensor == SIZE).all(), str(tensor))
    if RANK == last:
        dist.send(mine(), dst=0, group=group)
    else:
        source = dist.recv(tensor, group=group)  # from any
        check(source == last, f"the source is {source}")
    outputs = [torch.zeros(2), torch.zeros(2)] if RANK == last else None
    dist.gather(mine(2), outputs, dst=last, group=group)
    check(RANK != last or [t[0].item() for t in outputs] == [1, SIZE], str(outputs))
    dist.destroy_process_group(group)


def a_wait_with_a_limit_ends_and_the_operation_goes_on():
    tensor = mine()
    if RANK == 0:
        work = dist.all_reduce(tensor, async_op=True)
        error = error_of(lambda: work.wait(datetime.timedelta(milliseconds=20)))
        check("20 ms" in error and "goes on" in error, error)
        STORE().set("late", "1")
        work.wait()
    else:
        STORE().wait(["late"])
        dist.all_reduce(tensor)
    check((tensor == SUM).all(), str(tensor))


def a_monitored_barrier_names_the_missing():
    rankrun.torch.monitored_barrier()
    group = dist.new_group()
    if RANK == 0:
        soon = datetime.timedelta(milliseconds=300)
        error = error_of(lambda: rankrun.torch.monitored_barrier(group, soon, True))
        check("1" in error and str(SIZE - 1) in error and "Dist" in error, error)
        STORE().set("named", "1")
    else:
        STORE().wait(["named"])


def errors_are_those_of_the_call():
    error = error_of(lambda: dist.all_reduce(torch.zeros(2, 2).to_sparse_csr()))
    check("dense" in error, error)
    error = error_of(lambda: dist.all_reduce(torch.zeros(2, device="meta")))
    check("meta" in error, error)
    check(dist.group.WORLD.get_error() == torch._C._distributed_c10d.ErrorType.SUCCESS, "an error")


def objects():
    everyone = [None] * SIZE
    dist.all_gather_object(everyone, {"rank": RANK})
    check(everyone == [{"rank": r} for r in range(SIZE)], str(everyone))


def threads_have_groups_of_their_own():
    groups = [dist.new_group() for _ in range(2)]
    sums = [mine() for _ in groups]

    def reduce(index):
        for _ in range(50):
            dist.all_reduce(sums[index], dist.ReduceOp.MAX, group=groups[index])

    threads = [threading.Thread(target=reduce, args=(index,)) for index in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check(all((each == SIZE).all() for each in sums), str(sums))


def maps_of_devices_are_refused():
    error = error_of(lambda: dist.new_group(backend="cpu:rankrun,cuda:nccl"))
    check('want "rankrun"' in error, error)


def worlds_come_one_after_the_other_in_each_kind_of_store(folder):
    dist.destroy_process_group()
    for i in range(2):
        dist.init_process_group("rankrun")
        objects()
        dist.destroy_process_group()
        store = dist.FileStore(f"{folder}/store{i}", SIZE)
        dist.init_process_group("rankrun", store=store, rank=RANK, world_size=SIZE)
        objects()
        dist.destroy_process_group()


def a_daemon_may_wait_at_the_end():
    dist.init_process_group("rankrun")
    never = torch.zeros(1)
    wait = threading.Thread(target=dist.recv, args=(never, (RANK + 1) % SIZE), daemon=True)
    wait.start()


def main():
    dist.init_process_group("rankrun")
    folder = [tempfile.gettempdir() + f"/rankrun_{os.getpid()}"]
    dist.broadcast_object_list(folder)
    for test in (
        dtypes, sums_of_half_types_are_in_float, types_without_arithmetic_are_moved,
        a_premultiplied_sum, views_that_are_not_dense, empty_and_scalar_tensors,
        tensors_live_while_their_work_is_dropped,
        callbacks_of_futures_may_start_and_await_collectives,
        a_future_does_not_wait_for_operations_of_other_groups,
        a_call_in_the_profiler_does_not_wait_for_an_older_message,
        results_come_back_into_the_tensor_or_an_error, ranks_outside_the_group_are_refused, batches,
        groups_have_ranks_of_their_own, a_wait_with_a_limit_ends_and_the_operation_goes_on,
        a_monitored_barrier_names_the_missing, errors_are_those_of_the_call, objects,
        threads_have_groups_of_their_own, maps_of_devices_are_refused,
    ):
        try:
            test()
        except Exception as error:
            raise AssertionError(f"{test.__name__}: {error}") from error
        dist.barrier()
    os.makedirs(folder[0], exist_ok=True)
    worlds_come_one_after_the_other_in_each_kind_of_store(folder[0])
    a_daemon_may_wait_at_the_end()
    print("passed")


main()
