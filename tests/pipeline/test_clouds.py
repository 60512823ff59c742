"""What only a cloud can do wrong: the requests that are sent, buckets that are not there."""

import os
from urllib.parse import parse_qs, urlsplit

import aiohttp
import botocore.session
import fsspec
import pytest

from pipeline.errors import StoreError
from pipeline.store.remote import RemoteAdapter
from pipeline.store.store import open_store
from tests.services import FOREIGN, cloudless

pytestmark = pytest.mark.emulator

SMALL = b"x"
LARGE = b"x" * (50 << 20)  # from here on gcsfs uploads in pieces, for which it asks beforehand


@pytest.fixture
def traced(gcs_url):
    """An adapter, and the requests that its client sends, as (method, query)."""
    sent = []
    trace = aiohttp.TraceConfig()

    async def note(session, context, request):
        sent.append((request.method, parse_qs(urlsplit(str(request.url)).query)))

    trace.on_request_start.append(note)
    filesystem = fsspec.filesystem(
        "gs", session_kwargs={"trace_configs": [trace]}, skip_instance_cache=True
    )
    return RemoteAdapter(gcs_url, filesystem, gcs_url.removeprefix("gs://")), sent


@pytest.mark.parametrize(
    ("data", "kind"), [(SMALL, "multipart"), (LARGE, "resumable")], ids=["small", "large"]
)
def test_a_create_asks_gcs_for_generation_zero_whatever_its_size(traced, data, kind):
    adapter, sent = traced

    adapter.create("v1/a", data)

    first = next(query for method, query in sent if method == "POST")
    assert first["uploadType"] == [kind]
    assert first["ifGenerationMatch"] == ["0"]


def test_a_heartbeat_asks_gcs_for_no_generation(traced):
    adapter, sent = traced

    adapter.replace("v1/a", SMALL)

    assert ["ifGenerationMatch" in query for method, query in sent if method == "POST"] == [False]


@pytest.mark.parametrize("kind", ["gcs", "s3"])
def test_a_bucket_that_is_not_there_is_a_fault_that_names_it(kind, request):
    protocol = request.getfixturevalue(f"{kind}_url").partition("://")[0]
    store = open_store(f"{protocol}://seaglass-none/store")

    assert store.record("0" * 64) is None
    with pytest.raises(
        StoreError, match=f"{protocol}://seaglass-none/store: there is no such buck"
    ):
        store.prepare()
    with pytest.raises(StoreError, match="there is no such bucket, or it is not for you"):
        store.adapter.list("v1/actions")


def test_no_account_of_the_user_reaches_a_test(s3_url):
    session = botocore.session.Session()

    assert session.get_credentials().access_key == "test"
    assert session.full_config["profiles"] == {}


def test_a_cloudless_environment_holds_no_setting_of_a_cloud():
    mine = {"AWS_PROFILE": "me", "FSSPEC_GS_TOKEN": "t", "https_proxy": "p", "PATH": "/bin"}

    found = cloudless(mine)

    assert found["PATH"] == "/bin"
    assert found.keys().isdisjoint(mine.keys() - {"PATH"})
    assert {v for k, v in found.items() if k.startswith(FOREIGN)} == {os.devnull, "true", "false"}
