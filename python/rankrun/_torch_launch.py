"""PyTorch's launch_agent by rankrun: for run.run(), run.main() and elastic_launch().

Everything that reads a command line stays PyTorch's own; a LaunchConfig comes in, and results or
ChildFailedError go out.
"""

import functools
import glob
import os
import signal
import sys
import tempfile

from rankrun import _call, _job


def replacing(original):
    """Returns a launch_agent that takes `original` for configurations that rankrun does not have."""

    @functools.wraps(original)
    def launch_agent(config, entrypoint, args, *others, **named):
        why = _why_not(config, entrypoint, others, named)
        if why is None:
            try:
                return _launch(config, entrypoint, list(args))
            except KeyboardInterrupt:
                raise _stopped(signal.SIGINT) from None
        print(f"rankrun: PyTorch launches this job itself: {why}", file=sys.stderr, flush=True)
        return original(config, entrypoint, args, *others, **named)

    return launch_agent


def _why_not(config, entrypoint, others, named):
    from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs

    if config.rdzv_backend not in ("c10d", "static"):
        return f"rankrun has no rendezvous backend {config.rdzv_backend}"
    if type(config.logs_specs) is not DefaultLogsSpecs:
        return f"rankrun has no logs_specs {type(config.logs_specs).__name__}"
    if config.event_log_handler not in ("null", "console"):
        return f"rankrun has no event_log_handler {config.event_log_handler}"
    if entrypoint is None:
        return "there is no entrypoint"
    if any(value is not None for value in (*others, *named.values())):
        return "a health check server was given"
    return None


def _of_streams(streams):
    """The text of --redirects and --tee for a Std, or a Std for each local rank."""
    if isinstance(streams, dict):
        return ",".join(f"{rank}:{int(std)}" for rank, std in streams.items())
    return str(int(streams))


def _rendezvous(config):
    configs = dict(config.rdzv_configs)
    if config.rdzv_backend == "static":
        yield f"--node-rank={configs.pop('rank', 0)}"
        host, _, port = config.rdzv_endpoint.rpartition(":")
        yield f"--master-addr={host}"
        yield f"--master-port={port}"
    else:
        yield "--rdzv-backend=c10d"
        if config.rdzv_endpoint:
            yield f"--rdzv-endpoint={config.rdzv_endpoint}"
    if configs:
        yield "--rdzv-conf=" + ",".join(f"{key}={value}" for key, value in configs.items())


def _flags(config):
    yield f"--nnodes={config.min_nodes}:{config.max_nodes}"
    yield f"--nproc-per-node={config.nproc_per_node}"
    yield from _rendezvous(config)
    yield f"--max-restarts={config.max_restarts}"
    yield f"--monitor-interval={config.monitor_interval}"
    yield f"--role={config.role}"
    if config.run_id:
        yield f"--rdzv-id={config.run_id}"
    if config.local_addr:
        yield f"--local-addr={config.local_addr}"
    logs = config.logs_specs
    if logs.root_log_dir != os.devnull:
        yield f"--log-dir={logs.root_log_dir}"
    yield f"--redirects={_of_streams(logs._redirects)}"
    yield f"--tee={_of_streams(logs._tee)}"
    if logs._local_ranks_filter:
        yield "--local-ranks-filter=" + ",".join(map(str, sorted(logs._local_ranks_filter)))
    if config.event_log_handler == "console":
        yield "--event-log-handler=console"
    # Later versions of PyTorch have had these.
    numa = getattr(config, "numa_options", None)
    if numa is not None:
        yield f"--numa-binding={numa.affinity_mode.value}"
    if getattr(config, "signals_to_handle", ""):
        yield f"--signals-to-handle={config.signals_to_handle}"
    for stream in ("stdout", "stderr"):
        for text in getattr(config, f"duplicate_{stream}_filters", None) or ():
            yield f"--duplicate-{stream}-filters={text}"
    if getattr(config, "virtual_local_rank", False):
        yield "--virtual-local-rank"
    if getattr(config, "shutdown_timeout", None) is not None:
        yield f"--shutdown-timeout={config.shutdown_timeout}"


def _signals(config):
    names = getattr(config, "signals_to_handle", "SIGTERM,SIGINT,SIGHUP,SIGQUIT").split(",")
    numbers = [getattr(signal, name.strip(), None) for name in names]
    # Ctrl-C reaches the job by the terminal.
    return [number for number in numbers if number is not None and number != signal.SIGINT]


def _launch(config, entrypoint, args):
    if getattr(config, "log_line_prefix_template", None):
        os.environ["TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE"] = config.log_line_prefix_template
    flags = [*_flags(config), "--no-python"]
    if isinstance(entrypoint, str):
        job = _job.run(flags, [entrypoint, *map(str, args)], "torchrun", _signals(config))
        _check(job, config, _name(entrypoint, args))
        return dict.fromkeys(job.ranks())
    with tempfile.TemporaryDirectory(prefix="rankrun-call-") as folder:
        call, results = os.path.join(folder, "call"), os.path.join(folder, "results")
        os.mkdir(results)
        _call.write(call, entrypoint, args)
        program = [sys.executable, "-u", "-m", "rankrun._call", call, results]
        job = _job.run(flags, program, "torchrun", _signals(config))
        _check(job, config, entrypoint.__name__)
        by_rank = _call.read(results)
        return {rank: by_rank.get(rank) for rank in job.ranks()}


def _name(entrypoint, args):
    """As PyTorch names a command in ChildFailedError."""
    if entrypoint != sys.executable:
        return entrypoint
    return next((word for word in args if not str(word).startswith("-")), "")


def _check(job, config, name):
    if job.code == 0:
        return
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError

    ended = job.last("job_ended")
    number = ended.get("signal") or (job.code - 128 if 128 < job.code < 160 else 0)
    failures = _failures(job, config)
    if number and not failures:
        raise _stopped(signal.Signals(number))
    if failures:
        raise ChildFailedError(name=name, failures=failures)
    raise RuntimeError(f"rankrun ended with exit code {job.code}: {ended.get('why', 'see above')}")


def _stopped(number):
    from torch.distributed.elastic.multiprocessing import SignalException

    return SignalException(f"rankrun got {number.name}", number)


def _failures(job, config):
    """The workers of this node that failed by themselves, as ProcessFailure by global rank."""
    from torch.distributed.elastic.multiprocessing.errors import ProcessFailure

    failures = {}
    for event in job.of_last_attempt("worker_ended"):
        if event.get("sent_by_rankrun") or event.get("exit_code") == 0 or "pid" not in event:
            continue
        code = event.get("exit_code", -event.get("signal", 0))
        file = _error_file(config, event.get("attempt", 0), event["local_rank"])
        failures[event["rank"]] = ProcessFailure(event["local_rank"], event["pid"], code, file)
    return failures


def _error_file(config, attempt, local_rank):
    root = glob.escape(config.logs_specs.root_log_dir)
    run = glob.escape(config.run_id.replace("/", "_"))
    found = glob.glob(f"{root}/{run}_*/attempt_{attempt}/{local_rank}/error.json")
    return max(found, key=os.path.getmtime, default="")
