"""Microsoft's own client against the emulator: every operation is asserted, and named on standard output when it held."""

import contextlib, io, json, os, pathlib, sys, tempfile, time

from workspace import base, connect, place
from azure.ai.ml import Input, MpiDistribution, Output, PyTorchDistribution, command
from azure.ai.ml.entities import AccountKeyConfiguration, AzureBlobDatastore, Data, Environment, ManagedIdentityConfiguration, SshJobService, UserIdentityConfiguration
from azure.ai.ml.exceptions import JobException
from azure.core.exceptions import ClientAuthenticationError, HttpResponseError, ResourceNotFoundError

ml = connect()
code = pathlib.Path(tempfile.mkdtemp(prefix="tow-certify-"))
(code / "main.sh").write_text('echo "hello from $AZUREML_RUN_ID"; cat inner/words.txt\n')
(code / "inner").mkdir()
(code / "inner" / "words.txt").write_text("words of the code\n")
image = Environment(name="certify", version="1", image="docker.io/library/debian:12")


def job(line, name, **more):
    return command(command=line, environment=image, compute="cpu", name=name, display_name=name, experiment_name="certify", **more)


def final(name, wanted="Completed"):
    for _ in range(600):
        found = ml.jobs.get(name)
        if found.status in ("Completed", "Failed", "Canceled"):
            assert found.status == wanted, (name, found.status)
            return found
        time.sleep(0.1)
    raise AssertionError(f"{name} does not end")


def running(name):
    while ml.jobs.get(name).status != "Running":
        time.sleep(0.05)


def refused(kind, act, word):
    try:
        act()
    except kind as error:
        assert word in str(error), str(error)
        return error
    raise AssertionError(f"{word}: not refused")


def log(name, file="user_logs/std_log.txt"):
    folder = pathlib.Path(tempfile.mkdtemp())
    ml.jobs.download(name, download_path=str(folder))
    return next(folder.rglob(file)).read_text()


class Said(io.StringIO):
    """What is streamed. The client flushes once it has seen the job run, and only then the job may go on."""

    def __init__(self, flag):
        super().__init__()
        self.flag = flag

    def flush(self):
        self.flag.touch()


def streamed(name, flag=pathlib.Path(tempfile.mkdtemp()) / "flag"):
    said = Said(flag)
    with contextlib.redirect_stdout(said):
        ml.jobs.stream(name)
    return said.getvalue()


# The operations, in order; later ones use what earlier ones made.
def workspace_get():
    found = ml.workspaces.get(place[2])
    assert found.location == "westus3" and found.storage_account.endswith("devstoreaccount1") and found.discovery_url == base + "/discovery"


def workspace_missing():
    refused(ResourceNotFoundError, lambda: ml.workspaces.get("nowhere"), "ResourceNotFound")


def workspace_list():
    assert [found.name for found in ml.workspaces.list()] == [place[2]]


def token_expired():
    from azure.core.credentials import AccessToken

    class Old:
        def get_token(self, *scopes, **more):
            return AccessToken(os.environ["AML_EXPIRED"], int(time.time()) + 3600)

    refused(ClientAuthenticationError, lambda: connect(credential=Old()).workspaces.get(place[2]), "ExpiredAuthenticationToken")


def compute_list():
    assert sorted((found.name, found.type) for found in ml.compute.list()) == [("cpu", "amlcompute"), ("k8s", "kubernetes")]


def compute_get():
    found = ml.compute.get("cpu")
    assert found.size == "STANDARD_ND96AMSR_A100_V4" and found.max_instances == 8, found


def compute_missing():
    refused(ResourceNotFoundError, lambda: ml.compute.get("none"), "ComputeNotFound")


def datastore_default():
    found = ml.datastores.get_default()
    assert found.name == "workspaceblobstore" and found.container_name.startswith("azureml-blobstore-")


def datastore_list():
    assert {found.name for found in ml.datastores.list()} == {"workspaceblobstore", "workspaceartifactstore"}


def datastore_create():
    store = AzureBlobDatastore(name="mine", account_name="devstoreaccount1", container_name="mine", credentials=AccountKeyConfiguration(account_key=os.environ["AML_KEY"]))
    ml.datastores.create_or_update(store)
    assert ml.datastores.get("mine").container_name == "mine"
    secret = ml.datastores.get("mine", include_secrets=True).credentials
    assert secret.account_key == os.environ["AML_KEY"]


def datastore_delete():
    ml.datastores.delete("mine")
    refused(ResourceNotFoundError, lambda: ml.datastores.get("mine"), "mine")


def environment_create():
    made = ml.environments.create_or_update(Environment(name="debian", version="3", image="docker.io/library/debian:12", description="small"))
    assert made.version == "3" and ml.environments.get("debian", "3").image == "docker.io/library/debian:12"


def environment_list():
    ml.environments.create_or_update(Environment(name="debian", version="4", image="docker.io/library/debian:13"))
    assert [found.version for found in ml.environments.list("debian")] == ["4", "3"]
    assert ml.environments.get("debian", label="latest").version == "4"
    assert "debian" in [found.name for found in ml.environments.list()]


def environment_missing():
    refused(ResourceNotFoundError, lambda: ml.environments.get("debian", "99"), "debian")


def job_plain():
    made = ml.jobs.create_or_update(job("bash main.sh", "plain", code=str(code), tags={"of": "certify"}, description="first"))
    assert made.name == "plain" and made.status in ("NotStarted", "Starting") and made.services["Studio"].endpoint, made
    found = final("plain")
    assert found.tags == {"of": "certify"} and found.description == "first" and found.creation_context.created_at


def job_log():
    assert log("plain") == "hello from plain\nwords of the code\n"


def code_again():
    first = ml.jobs.get("plain").code
    made = ml.jobs.create_or_update(job("bash main.sh", "again", code=str(code)))
    assert made.code == first, (first, made.code)
    final("again")


def code_changed():
    (code / "inner" / "words.txt").write_text("other words\n")
    made = ml.jobs.create_or_update(job("bash main.sh", "changed", code=str(code)))
    assert made.code != ml.jobs.get("plain").code
    final("changed")
    assert log("changed").endswith("other words\n")


def job_stream():
    flag = pathlib.Path(tempfile.mkdtemp()) / "flag"
    ml.jobs.create_or_update(job(f"until test -e {flag}; do sleep 0.01; done; for i in $(seq 40); do echo line $i of 40; sleep 0.05; done", "talks"))
    said = streamed("talks", flag).splitlines()
    assert [line for line in said if line.startswith("line ")] == [f"line {number} of 40" for number in range(1, 41)], said


def job_distributed():
    line = "echo $RANK.$LOCAL_RANK.$NODE_RANK.$WORLD_SIZE.$MASTER_ADDR.$MASTER_PORT.$AZUREML_NODE_COUNT"
    ml.jobs.create_or_update(job(line, "torch", distribution=PyTorchDistribution(process_count_per_instance=2), instance_count=2))
    final("torch")
    said = [log("torch", f"user_logs/std_log_process_{rank}.txt").strip().split(".") for rank in range(4)]
    assert [found[:4] for found in said] == [["0", "0", "0", "4"], ["1", "1", "0", "4"], ["2", "0", "1", "4"], ["3", "1", "1", "4"]], said
    assert len({tuple(found[4:]) for found in said}) == 1 and said[0][-1] == "2", said


def job_mpi():
    ml.jobs.create_or_update(job("echo $OMPI_COMM_WORLD_RANK of $OMPI_COMM_WORLD_SIZE", "mpi", distribution=MpiDistribution(process_count_per_instance=1), instance_count=2))
    final("mpi")
    assert log("mpi", "user_logs/std_log_process_1.txt") == "1 of 2\n"


def job_singularity():
    cluster = os.environ["AML_CLUSTER"]
    made = job("echo on $DEFAULT_IDENTITY_CLIENT_ID; test -n \"$IDENTITY_ENDPOINT\"", "sing", environment_variables={"DEFAULT_IDENTITY_CLIENT_ID": "c"})
    made.compute = cluster
    made.resources = {"instance_count": 1, "properties": {"singularity": {"instanceType": "Singularity.ND96amrs_A100_v4", "slaTier": "Premium", "priority": "High"}}}
    ml.jobs._virtual_cluster_operations.get = lambda name: {"id": name}  # It calls the public host, whatever the cloud.
    made = ml.jobs.create_or_update(made)
    assert made.compute.lower() == cluster.lower() and "AISuperComputer" in made.resources.properties, made.resources
    final("sing")
    assert log("sing") == "on c\n"


def data_create():
    local = pathlib.Path(tempfile.mkdtemp()) / "set"
    local.mkdir()
    (local / "a.txt").write_text("data a\n")
    made = ml.data.create_or_update(Data(name="set", version="1", path=str(local), type="uri_folder"))
    found = ml.data.get("set", "1")
    assert found.path == made.path and found.type == "uri_folder" and "workspaceblobstore" in found.path, found.path


def data_list():
    assert [found.version for found in ml.data.list("set")] == ["1"] and "set" in [found.name for found in ml.data.list()]


def data_missing():
    refused(ResourceNotFoundError, lambda: ml.data.get("set", "7"), "set")


def job_inputs_outputs():
    line = "cat ${{inputs.folder}}/a.txt; echo ${{inputs.number}}; echo made > ${{outputs.out}}/made.txt; mkdir -p outputs; echo kept > outputs/kept.txt"
    inputs = {"folder": Input(type="uri_folder", path="azureml:set:1", mode="ro_mount"), "number": 3}
    ml.jobs.create_or_update(job(line, "moves", inputs=inputs, outputs={"out": Output(type="uri_folder")}))
    final("moves")
    assert log("moves") == "data a\n3\n" and log("moves", "outputs/kept.txt") == "kept\n"


def job_paths():
    file = Input(type="uri_file", path="azureml://datastores/workspaceblobstore/paths/" + ml.data.get("set", "1").path.split("/paths/")[1].rstrip("/") + "/a.txt", mode="download")
    out = Output(type="uri_folder", path="azureml://datastores/workspaceblobstore/paths/chosen/place", mode="upload")
    ml.jobs.create_or_update(job("cp ${{inputs.file}} ${{outputs.out}}/copy.txt; basename $AZURE_ML_INPUT_file", "paths", inputs={"file": file}, outputs={"out": out}))
    assert final("paths").outputs["out"].path.rstrip("/").endswith("chosen/place")
    assert log("paths") == "a.txt\n"


def job_reads_output():
    inputs = {"made": Input(type="uri_folder", path="azureml://datastores/workspaceblobstore/paths/chosen/place")}
    ml.jobs.create_or_update(job("cat ${{inputs.made}}/copy.txt", "reads", inputs=inputs))
    final("reads")
    assert log("reads") == "data a\n"


def job_output_download():
    folder = pathlib.Path(tempfile.mkdtemp())
    ml.jobs.download("moves", download_path=str(folder), output_name="out")
    assert next(folder.rglob("made.txt")).read_text() == "made\n"


def job_failing():
    ml.jobs.create_or_update(job("echo last words; sleep 1; exit 3", "fails"))
    error = refused(JobException, lambda: streamed("fails"), "exited with status code 3")
    assert "UserError" in str(error)
    final("fails", "Failed")
    assert log("fails") == "last words\n"


def job_services():
    keys = SshJobService(ssh_public_keys="ssh-ed25519 AAAA tow", nodes="all")
    ml.jobs.create_or_update(job("sleep 600", "waits", services={"shell": keys}))
    running("waits")
    found = ml.jobs.show_services("waits")
    assert found["shell"].type == "SSH" and found["shell"].status == "Running", found


def job_download_early():
    refused(JobException, lambda: ml.jobs.download("waits", download_path=tempfile.mkdtemp()), "Download is allowed only")


def job_cancel():
    ml.jobs.begin_cancel("waits", polling_interval=0.2).wait()
    final("waits", "Canceled")


def job_identity():
    (code / "token.py").write_text(
        "import json, os, urllib.request\n"
        "address = os.environ['IDENTITY_ENDPOINT'] + '?resource=https://vault.azure.net&api-version=2019-08-01'\n"
        "asked = urllib.request.Request(address, headers={'X-IDENTITY-HEADER': os.environ['IDENTITY_HEADER']})\n"
        "print(json.load(urllib.request.urlopen(asked))['token_type'])\n"
    )
    ml.jobs.create_or_update(job("python3 token.py", "identity", code=str(code), identity=ManagedIdentityConfiguration(client_id="3f9f4e0c-1d0b-4b52-9d0f-6b8a5d9f2c11")))
    final("identity")
    assert log("identity") == "Bearer\n"


def job_user_identity():
    ml.jobs.create_or_update(job("true", "myself", identity=UserIdentityConfiguration()))
    assert final("myself").identity.type == "user_identity"


def job_limit():
    made = job("sleep 600", "limited")
    made.set_limits(timeout=1)
    ml.jobs.create_or_update(made)
    final("limited", "Canceled")


def job_list():
    names = [found.name for found in ml.jobs.list()]
    assert names[0] == "limited" and {"plain", "again", "torch", "fails", "waits"} <= set(names), names


def job_pages():
    names = [found.name for found in ml.jobs.list()]
    assert len(names) == len(set(names)) > int(os.environ["AML_PAGE"]), names


def job_update():
    found = ml.jobs.update("plain", display_name="renamed", tags={"more": "1"})
    assert found.display_name == "renamed" and found.tags == {"of": "certify", "more": "1"}, found.tags


def job_archive():
    ml.jobs.archive("plain")
    assert "plain" not in [found.name for found in ml.jobs.list()]
    assert [found.name for found in ml.jobs.list(list_view_type="ArchivedOnly")] == ["plain"]


def job_restore():
    ml.jobs.restore("plain")
    assert "plain" in [found.name for found in ml.jobs.list()]


def job_same_again():
    line = "bash main.sh"
    made = ml.jobs.create_or_update(job(line, "again", code=str(code_before)))
    assert made.status == "Completed"


def job_immutable():
    error = refused(HttpResponseError, lambda: ml.jobs.create_or_update(job("another command", "plain")), "cannot be changed")
    assert error.error.code == "UserError" and "JobPropertyImmutable" in json.dumps([more.info for more in error.error.additional_info]), error


def job_missing():
    refused(ResourceNotFoundError, lambda: ml.jobs.get("nothing"), "Job nothing not found")
    refused(ResourceNotFoundError, lambda: ml.jobs.begin_cancel("nothing"), "Job nothing not found")


def job_invalid():
    refused(HttpResponseError, lambda: ml.jobs.create_or_update(job("true", "bad", shm_size="2x")), "ShmSize")


def job_delete():
    ml.jobs.begin_delete("again").wait()
    refused(ResourceNotFoundError, lambda: ml.jobs.get("again"), "again")


code_before = pathlib.Path(tempfile.mkdtemp(prefix="tow-certify-"))
(code_before / "main.sh").write_text((code / "main.sh").read_text())
(code_before / "inner").mkdir()
(code_before / "inner" / "words.txt").write_text("words of the code\n")

operations = [
    workspace_get, workspace_missing, workspace_list, token_expired, compute_list, compute_get, compute_missing, datastore_default, datastore_list, datastore_create,
    datastore_delete, environment_create, environment_list, environment_missing, job_plain, job_log, code_again, code_changed, job_stream, job_distributed, job_mpi,
    job_singularity, data_create, data_list, data_missing, job_inputs_outputs, job_paths, job_reads_output, job_output_download, job_failing, job_services,
    job_download_early, job_cancel, job_identity, job_user_identity, job_limit, job_list, job_pages, job_update, job_archive, job_restore, job_same_again, job_immutable, job_missing, job_invalid, job_delete,
]
wanted = sys.argv[1:]
for operation in operations:
    if wanted and operation.__name__ not in wanted:
        continue
    begun = time.time()
    operation()
    print(json.dumps({"operation": operation.__name__, "seconds": round(time.time() - begun, 2)}), flush=True)
