"""The workspace that the environment names, as Microsoft's own client sees it."""

import os, socket

# Names of the blob service are under `.localhost`, which not every resolver knows.
resolve = socket.getaddrinfo
socket.getaddrinfo = lambda host, *rest, **more: resolve("127.0.0.1" if str(host).endswith("localhost") else host, *rest, **more)

from azure.ai.ml import MLClient
from azure.identity import ManagedIdentityCredential

base, storage = os.environ["AML_ENDPOINT"], os.environ["AML_STORAGE"]
place = [os.environ[name] for name in ("AML_SUBSCRIPTION", "AML_GROUP", "AML_WORKSPACE")]
cloud = dict(azure_portal=base, resource_manager=base, active_directory=base, aml_resource_id="https://ml.azure.com",
             registry_discovery_endpoint=base, storage_endpoint=storage)


def connect(workspace=place[2], credential=None):
    return MLClient(credential or ManagedIdentityCredential(), place[0], place[1], workspace, cloud="TowCloud", cloud_metadata=cloud, enable_telemetry=False)
