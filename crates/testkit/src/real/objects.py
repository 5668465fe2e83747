"""Reads and writes objects by Amazon's own client, so that what `tow` left is judged by code nobody here wrote.

    objects.py --url ENDPOINT VERB WORD...

What is found is one JSON value on standard output.
"""

import argparse
import hashlib
import json
import sys

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError


def get(client, bucket, key, file):
    client.download_file(bucket, key, file)


def put(client, bucket, key, file):
    client.upload_file(file, bucket, key)


def sha256(client, bucket, key):
    digest = hashlib.sha256()
    for chunk in client.get_object(Bucket=bucket, Key=key)["Body"].iter_chunks(1 << 20):
        digest.update(chunk)
    return digest.hexdigest()


def names(client, bucket, prefix=""):
    """Every object's name and size, in the order of the service."""
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
    return [[entry["Key"], entry["Size"]] for page in pages for entry in page.get("Contents", [])]


def properties(client, bucket, key):
    found = client.head_object(Bucket=bucket, Key=key)
    return {"size": found["ContentLength"], "etag": found["ETag"], "metadata": found["Metadata"], "modified": found["LastModified"].isoformat()}


def uploads(client, bucket):
    """Uploads in parts that were begun and not ended."""
    return [[entry["Key"], entry["UploadId"]] for entry in client.list_multipart_uploads(Bucket=bucket).get("Uploads", [])]


def delete(client, bucket, key):
    client.delete_object(Bucket=bucket, Key=key)


def make_bucket(client, bucket):
    client.create_bucket(Bucket=bucket)


VERBS = {
    "get": get,
    "put": put,
    "sha256": sha256,
    "list": names,
    "properties": properties,
    "uploads": uploads,
    "delete": delete,
    "make-bucket": make_bucket,
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--url", required=True)
    parser.add_argument("--access-key", required=True)
    parser.add_argument("--secret-key", required=True)
    parser.add_argument("verb", choices=VERBS)
    parser.add_argument("words", nargs="*")
    options = parser.parse_args()
    client = boto3.client(
        "s3",
        endpoint_url=options.url,
        region_name="us-east-1",
        aws_access_key_id=options.access_key,
        aws_secret_access_key=options.secret_key,
        # One try: what a service answers is wanted, not what it answers in the end.
        config=Config(retries={"total_max_attempts": 1}, s3={"addressing_style": "path"}),
    )
    try:
        found = VERBS[options.verb](client, *options.words)
    except ClientError as error:
        sys.exit(f"{error.response['ResponseMetadata']['HTTPStatusCode']} {error.response['Error']['Code']}: {error}")
    json.dump(found, sys.stdout)


main()
