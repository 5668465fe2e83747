"""Reads and writes blobs by Microsoft's own client, so that what `tow` left is judged by code nobody here wrote.

    blobs.py [--url ENDPOINT] [--key KEY | --sas SAS | --bearer TOKEN] [--ca FILE] VERB WORD...

What is found is one JSON value on standard output.
"""

import argparse
import hashlib
import json
import sys
import time

from azure.core.credentials import AccessToken, AzureNamedKeyCredential, AzureSasCredential
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobServiceClient, ContentSettings


class Token:
    """A bearer token made elsewhere."""

    def __init__(self, token):
        self.token = token

    def get_token(self, *_scopes, **_options):
        return AccessToken(self.token, int(time.time()) + 600)


def get(service, container, blob, file):
    with open(file, "wb") as out:
        return service.get_blob_client(container, blob).download_blob(max_concurrency=4).readinto(out)


def put(service, container, blob, file):
    with open(file, "rb") as data:
        service.get_blob_client(container, blob).upload_blob(data, overwrite=True, max_concurrency=4)


def sha256(service, container, blob):
    digest = hashlib.sha256()
    for chunk in service.get_blob_client(container, blob).download_blob(max_concurrency=4).chunks():
        digest.update(chunk)
    return digest.hexdigest()


def names(service, container, prefix=""):
    """Every blob's name and size, in the order of the service."""
    return [[blob.name, blob.size] for blob in service.get_container_client(container).list_blobs(name_starts_with=prefix)]


def properties(service, container, blob):
    found = service.get_blob_client(container, blob).get_blob_properties()
    md5 = found.content_settings.content_md5
    return {
        "size": found.size,
        "etag": found.etag,
        "kind": found.blob_type,
        "metadata": found.metadata,
        "content_type": found.content_settings.content_type,
        "content_md5": bytes(md5).hex() if md5 else None,
        "modified": found.last_modified.isoformat(),
    }


def blocks(service, container, blob):
    """Ids and sizes of the blocks that are committed, and of those that are not."""
    committed, uncommitted = service.get_blob_client(container, blob).get_block_list("all")
    return {"committed": [[block.id, block.size] for block in committed], "uncommitted": [[block.id, block.size] for block in uncommitted]}


def touch(service, container, blob):
    """Gives the blob another ETag without changing its bytes."""
    service.get_blob_client(container, blob).set_http_headers(ContentSettings(content_language="en"))


def delete(service, container, blob):
    service.get_blob_client(container, blob).delete_blob()


def make_container(service, container):
    service.create_container(container)


VERBS = {
    "get": get,
    "put": put,
    "sha256": sha256,
    "list": names,
    "properties": properties,
    "blocks": blocks,
    "touch": touch,
    "delete": delete,
    "make-container": make_container,
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", required=True)
    parser.add_argument("--key")
    parser.add_argument("--sas")
    parser.add_argument("--bearer")
    parser.add_argument("--ca")
    parser.add_argument("verb", choices=VERBS)
    parser.add_argument("words", nargs="*")
    options = parser.parse_args()
    credential = None
    if options.key:
        credential = AzureNamedKeyCredential(options.url.rstrip("/").rsplit("/", 1)[1], options.key)
    elif options.sas:
        credential = AzureSasCredential(options.sas)
    elif options.bearer:
        credential = Token(options.bearer)
    # One try: what a service answers is wanted, not what it answers in the end.
    service = BlobServiceClient(options.url, credential=credential, connection_verify=options.ca or True, retry_total=0)
    try:
        found = VERBS[options.verb](service, *options.words)
    except HttpResponseError as error:
        sys.exit(f"{error.status_code} {error.error_code}: {error.message}")
    json.dump(found, sys.stdout)


main()
