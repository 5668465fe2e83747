"""Microsoft's own client, for what somebody else began: a word of the command line for each act, `ACT:NAME`, and a line of JSON for its outcome."""

import contextlib, io, json, os, pathlib, sys, time

from workspace import connect
from azure.ai.ml import PyTorchDistribution, command
from azure.ai.ml.entities import Environment

ml = connect()


def shown(job):
    return {"name": job.name, "status": job.status, "display": job.display_name, "experiment": job.experiment_name, "tags": job.tags}


def listed(_):
    return [shown(job) for job in ml.jobs.list()]


def show(name):
    return shown(ml.jobs.get(name))


class Said(io.StringIO):
    """What is streamed. The client flushes once it has seen the job run; of one that has ended it shows nothing."""

    def flush(self):
        pathlib.Path("flag").touch()


def stream(name):
    said = Said()
    with contextlib.redirect_stdout(said):
        ml.jobs.stream(name)
    return said.getvalue()


def cancel(name):
    ml.jobs.begin_cancel(name, polling_interval=0.2).wait()
    while (found := show(name))["status"] not in ("Completed", "Failed", "Canceled"):
        time.sleep(0.1)
    return found


def submit(name):
    """`NAME,RANKS,COMMAND`, with the code in `code` below the working folder."""
    name, ranks, line = name.split(",", 2)
    more = dict(distribution=PyTorchDistribution(process_count_per_instance=int(ranks)), instance_count=2) if int(ranks) else {}
    image = Environment(name="crosswise", version="1", image="docker.io/library/debian:12")
    made = command(command=line, code="code", environment=image, compute="cpu", name=name, display_name=name, experiment_name="crosswise", **more)
    return shown(ml.jobs.create_or_update(made))


acts = {"list": listed, "show": show, "stream": stream, "cancel": cancel, "submit": submit}
for word in sys.argv[1:]:
    act, _, name = word.partition(":")
    print(json.dumps(acts[act](name)), flush=True)
