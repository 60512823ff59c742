"""The page on object storage: types and caching as a browser needs them, and opened from there."""

from __future__ import annotations

import json

import pytest
import s3fs
from playwright.sync_api import expect

from pipeline.site.publish import publish_site
from tests.site.browsing import chromium, page_in

pytestmark = [pytest.mark.emulator, pytest.mark.slow]

SCRIPT, DOCUMENT = "main.js", "data/overview.head.json"


def test_on_s3_every_file_has_its_type_and_no_cache_may_keep_it(s3_url, study):
    publish_site(study.pages, f"{s3_url}/page")

    client = s3fs.S3FileSystem(skip_instance_cache=True)
    script, head = (
        client.call_s3("head_object", Bucket=s3_url.removeprefix("s3://"), Key=f"page/{name}")
        for name in (SCRIPT, DOCUMENT)
    )

    assert (script["ContentType"], script["CacheControl"]) == (
        "text/javascript; charset=utf-8",
        "no-cache",
    )
    assert (head["ContentType"], head["CacheControl"]) == ("application/json", "no-cache")


def test_on_gcs_every_file_has_its_type_and_no_cache_may_keep_it(gcs_service, gcs_url, study):
    publish_site(study.pages, f"{gcs_url}/page")

    bucket = gcs_url.removeprefix("gs://")
    script, head = (
        json.loads(
            gcs_service.request(
                "GET", f"/storage/v1/b/{bucket}/o/page%2F{name.replace('/', '%2F')}"
            )
        )
        for name in (SCRIPT, DOCUMENT)
    )

    assert (script["contentType"], script["cacheControl"]) == (
        "text/javascript; charset=utf-8",
        "no-cache",
    )
    assert (head["contentType"], head["cacheControl"]) == ("application/json", "no-cache")


def test_a_second_publish_to_a_bucket_writes_nothing(s3_url, study):
    publish_site(study.pages, s3_url)

    again = publish_site(study.pages, s3_url)

    assert again.num_written == 0


@pytest.mark.browser
def test_the_page_works_from_the_buckets_own_address(s3_service, s3_url, study):
    publish_site(study.pages, f"{s3_url}/lab/page")
    client = s3fs.S3FileSystem(skip_instance_cache=True)
    for file in client.find(f"{s3_url}/lab/page"):
        client.chmod(file, acl="public-read")
    address = f"{s3_service.endpoint}/{s3_url.removeprefix('s3://')}/lab/page/index.html"

    with chromium() as browser, page_in(browser) as page:
        page.goto(f"{address}#artifacts/{study.action_key('train')}")

        expect(page.locator("h1")).to_have_text("train")
        page.get_by_role("link", name="Seaglass").click()
        expect(page.get_by_role("button", name="1 failed")).to_be_visible()
