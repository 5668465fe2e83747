"""Microsoft's client of Azure ML, for one act: `azureml.py submit NAME FOLDER`, `list`, `show NAME`, `logs NAME FOLDER`. Where it is comes by the environment."""

import os
import socket
import sys

# Names of the blob service are under `.localhost`, which not every resolver knows.
resolve = socket.getaddrinfo
socket.getaddrinfo = lambda host, *rest, **more: resolve("127.0.0.1" if str(host).endswith("localhost") else host, *rest, **more)

from azure.ai.ml import MLClient, command
from azure.ai.ml.entities import Environment
from azure.identity import ManagedIdentityCredential

base = os.environ["AML_ENDPOINT"]
place = [os.environ[name] for name in ("AML_SUBSCRIPTION", "AML_GROUP", "AML_WORKSPACE")]
cloud = {name: base for name in ("azure_portal", "resource_manager", "active_directory", "registry_discovery_endpoint")}
cloud |= {"aml_resource_id": "https://ml.azure.com", "storage_endpoint": os.environ["AML_STORAGE"]}
client = MLClient(ManagedIdentityCredential(), *place, cloud="TowCloud", cloud_metadata=cloud, enable_telemetry=False)

act, *words = sys.argv[1:]
if act == "submit":
    image = Environment(name="bench", version="1", image="docker.io/library/debian:12")
    made = command(command="sh main.sh", code=words[1], environment=image, compute="cpu", name=words[0], display_name=words[0], experiment_name="bench")
    print(client.jobs.create_or_update(made).name)
elif act == "list":
    for job in client.jobs.list():
        print(job.name, job.status)
elif act == "show":
    print(client.jobs.get(words[0]))
else:
    client.jobs.download(words[0], download_path=words[1])
