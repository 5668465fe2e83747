"""Microsoft's own library signs in to the emulator, by each way that asks the login service."""

import os
import sys

from azure.core.exceptions import ClientAuthenticationError
from azure.identity import CertificateCredential, ClientSecretCredential, DeviceCodeCredential, WorkloadIdentityCredential

ENDPOINT = os.environ["AML_ENDPOINT"]
SCOPE = ENDPOINT + "/.default"
TENANT, CLIENT, SECRET = (os.environ["AML_" + name] for name in ("TENANT", "CLIENT", "SECRET"))
COMMON = {"authority": ENDPOINT, "disable_instance_discovery": True}


def secret():
    return ClientSecretCredential(TENANT, CLIENT, SECRET, **COMMON).get_token(SCOPE)


def certificate():
    return CertificateCredential(TENANT, CLIENT, os.environ["AML_CERTIFICATE"], **COMMON).get_token(SCOPE)


def newer_certificate():
    """The form with SHA-256, by the library below the other."""
    import msal

    pem = open(os.environ["AML_CERTIFICATE"]).read()
    known = {"private_key": pem, "public_certificate": pem}
    app = msal.ConfidentialClientApplication(CLIENT, known, authority=f"{ENDPOINT}/{TENANT}", instance_discovery=False)
    answer = app.acquire_token_for_client([SCOPE])
    assert "access_token" in answer, answer
    return type("Token", (), {"token": answer["access_token"]})


def workload():
    return WorkloadIdentityCredential(tenant_id=TENANT, client_id=CLIENT, token_file_path=os.environ["AML_PROOF"], **COMMON).get_token(SCOPE)


def device():
    shown = []
    credential = DeviceCodeCredential("04b07795-8ddb-461a-bbee-02f9e1bf7b46", prompt_callback=lambda *words: shown.append(words), **COMMON)
    first = credential.get_token(SCOPE)
    # Another resource, by the refresh token: nobody is asked again.
    credential.get_token("https://ml.azure.com/.default")
    assert len(shown) == 1, shown
    return first


def wrong_secret():
    try:
        ClientSecretCredential(TENANT, CLIENT, "wrong", **COMMON).get_token(SCOPE)
    except ClientAuthenticationError as error:
        assert "AADSTS7000215" in str(error), error
        return
    raise AssertionError("let in")


for way in (secret, certificate, newer_certificate, workload, device):
    token = way().token
    assert token.count(".") == 2, token
    print(way.__name__)
wrong_secret()
print("wrong_secret")
sys.exit(0)
