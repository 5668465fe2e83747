"""One file up or down by Microsoft's own client.

sdk.py up|down ENDPOINT ACCOUNT KEY CONTAINER BLOB FILE PARALLEL BLOCK
"""

import sys

from azure.core.credentials import AzureNamedKeyCredential
from azure.storage.blob import BlobServiceClient

way, endpoint, account, key, container, blob, file, parallel, block = sys.argv[1:]
sizes = {
    "max_block_size": int(block),
    "max_single_put_size": int(block),
    "min_large_block_upload_threshold": 1,
    "max_chunk_get_size": int(block),
    "max_single_get_size": int(block),
}
client = BlobServiceClient(endpoint, credential=AzureNamedKeyCredential(account, key), **sizes).get_blob_client(container, blob)
if way == "up":
    with open(file, "rb") as data:
        client.upload_blob(data, overwrite=True, max_concurrency=int(parallel))
else:
    with open(file, "wb") as data:
        client.download_blob(max_concurrency=int(parallel)).readinto(data)
