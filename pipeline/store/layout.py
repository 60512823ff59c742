"""Where every object of the store lies. `docs/store.md` is the specification; this is its code.

Digests are 64 hex digits. Attempt and run ids start with a UTC time so that listings sort.
"""

from __future__ import annotations

import re
import secrets
import unicodedata
from datetime import UTC, datetime
from hashlib import sha256
from urllib.parse import unquote

from pipeline.errors import UsageError

FORMAT = 1
FORMAT_KEY = "seaglass.json"
ALL_REFS = "v1/refs"
LAST_RUN = "run/"  # what the names of recipes' runs begin with
ALL_PINS = "v1/pins"
LEASES = "v1/leases"
CONDEMNED = "v1/condemned"
_MAX_NAME = 4_000
_MAX_ESCAPED = 200
_ODD = re.compile(r"[^a-z0-9_.+@-]+")  # capitals too: "A" and "a" are one name on some disks
_DIGEST = re.compile(r"[0-9a-f]{64}")


_REMADE = frozenset({"claims", "consumers", "leases", "producers", "recipes"})
_POINTED_AT = frozenset({"locations", "manifests"})
_RUN_DOCUMENT_PARTS = 4  # v1/runs/<run>/plan.json; the diary lies one deeper


def may_be_lost(key: str) -> bool:
    """Whether a power cut may take an object.

    Claims and leases end with their processes, the diary loses its last seconds, edges and markers
    follow from the records.
    """
    parts = key.split("/")
    if parts[:2] == ["v1", "runs"]:
        return len(parts) > _RUN_DOCUMENT_PARTS
    return len(parts) > 1 and parts[1] in _REMADE


def is_believed_later(key: str) -> bool:
    """Whether no one believes an object before another one, written after it, is on the disk."""
    parts = key.split("/")
    return len(parts) > 1 and parts[1] in _POINTED_AT


def follows_from_a_seal(key: str) -> bool:
    """Whether an object that is lost as a whole comes back from a seal; half of one would not."""
    return key.startswith("v1/actions/")


def new_id() -> str:
    """A sortable id that no one else makes: UTC time to the microsecond and 64 random bits."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%S%f}-{secrets.token_hex(8)}"


def is_digest(text: str) -> bool:
    """Whether `text` is a full-length digest."""
    return _DIGEST.fullmatch(text) is not None


def _sharded(kind: str, digest: str) -> str:
    return f"v1/{kind}/{digest[:2]}/{digest}"


def all_shards(kind: str) -> list[str]:
    """The 256 prefixes that the objects of a kind are spread over."""
    return [f"v1/{kind}/{number:02x}" for number in range(256)]


def shard_of(key: str) -> str:
    """The prefix `v1/<kind>/<aa>` that a sharded key lies below."""
    return "/".join(key.split("/")[:3])


def action(action_key: str) -> str:
    """The record: one, immutable; its presence means done."""
    return _sharded("actions", action_key) + ".json"


def recipe(recipe_digest: str) -> str:
    """Prefix of the markers from a recipe digest to action keys."""
    return _sharded("recipes", recipe_digest)


def marker(recipe_digest: str, action_key: str) -> str:
    """One marker."""
    return f"{recipe(recipe_digest)}/{action_key}"


def manifest(content_digest: str) -> str:
    """The logical file list of an artifact or a source."""
    return _sharded("manifests", content_digest) + ".json"


def locations(content_digest: str) -> str:
    """Prefix of the physical copies of an artifact."""
    return _sharded("locations", content_digest)


def location(content_digest: str, attempt: str) -> str:
    """One physical copy."""
    return f"{locations(content_digest)}/{attempt}.json"


def tombstones(content_digest: str) -> str:
    """Prefix of the tombstones of physical copies, one per evicted or corrupt copy."""
    return _sharded("tombstones", content_digest)


def tombstone(content_digest: str, attempt: str) -> str:
    """The end of one physical copy: evicted or corrupt."""
    return f"{tombstones(content_digest)}/{attempt}.json"


def data(attempt: str, path: str) -> str:
    """A data object of one attempt. The logical path is escaped part by part."""
    return f"v1/data/{attempt}/" + "/".join(_escaped(part) for part in path.split("/"))


def producers(content_digest: str) -> str:
    """Prefix of the edges from these bytes to what made them."""
    return _sharded("producers", content_digest)


def producer(content_digest: str, action_key: str) -> str:
    """Edge: this action wrote these bytes."""
    return f"{producers(content_digest)}/{action_key}"


def consumers(content_digest: str) -> str:
    """Prefix of the edges from these bytes to what read them."""
    return _sharded("consumers", content_digest)


def consumer(content_digest: str, action_key: str) -> str:
    """Edge: this action read these bytes."""
    return f"{consumers(content_digest)}/{action_key}"


def parts(action_key: str) -> str:
    """Prefix of finished pieces inside a step."""
    return _sharded("parts", action_key)


def part(action_key: str, part_key: str, generation: int = 0) -> str:
    """One finished piece; a next generation is there once the one before is buried."""
    suffix = f".{generation}" if generation else ""
    return f"{parts(action_key)}/{part_key}{suffix}.json"


def part_tombstone(part: str) -> str:
    """The end of one finished piece, beside it: evicted or corrupt."""
    return part.removesuffix(".json") + ".gone"


def attempts(action_key: str) -> str:
    """Prefix of how attempts at this action ended."""
    return _sharded("attempts", action_key)


def end(action_key: str, attempt: str) -> str:
    """How one attempt ended; the fence, created once."""
    return f"{attempts(action_key)}/{attempt}/end.json"


def late(action_key: str, attempt: str) -> str:
    """A result that came after the record of another attempt."""
    return f"{attempts(action_key)}/{attempt}/late.json"


def claims(action_key: str) -> str:
    """Prefix of the claims on an action."""
    return _sharded("claims", action_key)


def claim(action_key: str, epoch: int) -> str:
    """Who works on an action in this epoch; the highest epoch owns it."""
    return f"{claims(action_key)}/{epoch:08d}.json"


def beat(action_key: str, epoch: int) -> str:
    """The heartbeat of a claim: the one object that is written again, by its owner alone."""
    return f"{claims(action_key)}/{epoch:08d}.beat"


def promotions(action_key: str | None = None) -> str:
    """Prefix of the promotions of one action, or of all: normally empty."""
    return "v1/promotions" if action_key is None else _sharded("promotions", action_key)


def promotion(action_key: str, sequence: int) -> str:
    """One promotion: from here on this attempt's result is the action's; the highest counts."""
    return f"{promotions(action_key)}/{sequence:08d}.json"


def waivers(definition: str | None = None) -> str:
    """Prefix of the waivers of one definition digest, or of all: normally few."""
    return "v1/waivers" if definition is None else _sharded("waivers", definition)


def waiver(definition: str, sequence: int) -> str:
    """One entry in the log of a definition's waivers: accepted, or revoked."""
    return f"{waivers(definition)}/{sequence:08d}.json"


def pins(content_digest: str) -> str:
    """Prefix of the log of an artifact's pins; the highest entry is current."""
    return _sharded("pins", content_digest)


def lease(run_id: str, suffix: str = "json") -> str:
    """What a run holds on to; `beat` is its heartbeat, `end` says that it holds nothing more."""
    return f"{LEASES}/{run_id}.{suffix}"


def lease_more(run_id: str, number: int) -> str:
    """What a run holds besides, since it began."""
    return f"{LEASES}/{run_id}/{number:08d}.json"


def condemned(list_id: str, suffix: str = "json") -> str:
    """The copies that a gc wants to evict; `end` says that all of them have a verdict."""
    return f"{CONDEMNED}/{list_id}.{suffix}"


def verdict(list_id: str, content_digest: str, attempt: str) -> str:
    """What becomes of one condemned copy: created once, by gc or by a run that needs it."""
    return f"v1/verdicts/{list_id}/{content_digest}/{attempt}.json"


def swept(attempt: str) -> str:
    """Prefix of the lists of an attempt's data objects that a gc deleted."""
    return f"v1/swept/{attempt}"


def swept_by(attempt: str, list_id: str) -> str:
    """The data objects of one attempt that one gc deleted."""
    return f"{swept(attempt)}/{list_id}.json"


def probe(name: str) -> str:
    """An object by which storage shows, before the first other one, that it can be a store."""
    return f"v1/probe/{name}.json"


def code(digest: str) -> str:
    """The source text behind a code digest."""
    return f"v1/code/{digest}.json"


def run_folder(run_id: str) -> str:
    """Prefix of everything that one run has written down."""
    return f"v1/runs/{run_id}"


def run(run_id: str, name: str) -> str:
    """An object of one run: `plan.json`, `end.json`."""
    return f"v1/runs/{run_id}/{name}"


def events(run_id: str, writer: str, sequence: int) -> str:
    """One chunk of a writer's event chain."""
    return f"v1/runs/{run_id}/{_escaped(writer)}/{sequence:08d}.jsonl"


def bodies(run_id: str, writer: str, sequence: int) -> str:
    """The bodies of one chunk's events, beside the chain so that one can be redacted."""
    return f"v1/runs/{run_id}/{_escaped(writer)}/{sequence:08d}.bodies.jsonl"


def writer_of(key: str) -> str:
    """Who wrote a chunk of events. An overlong name reads as its head and its digest."""
    return unquote(key.split("/")[3].removeprefix("_"))


def refs(name: str) -> str:
    """Prefix of the append-only log of a name."""
    return f"{ALL_REFS}/{_escaped(checked_name(name))}"


def ref(name: str, sequence: int) -> str:
    """One entry in the log of a name."""
    return f"{refs(name)}/{sequence:08d}.json"


def checked_name(name: str) -> str:
    """A name for people, in Unicode NFC so that no two names look alike by encoding alone."""
    normal = unicodedata.normalize("NFC", name)
    if not normal or not normal.isprintable() or len(normal.encode()) > _MAX_NAME:
        msg = f"name {name[:60]!r} must have 1..{_MAX_NAME} bytes of printable characters"
        raise UsageError(msg)
    return normal


def _escaped(part: str) -> str:
    # The leading underscore keeps names such as "..", ".tmp-" and "con" from meaning anything;
    # what would be too long for a file name on disk keeps its head and gains a digest after "=",
    # which stands in no other escaped name.
    text = "_" + _ODD.sub(_quoted, part)
    if len(text) <= _MAX_ESCAPED:
        return text
    return f"{text[: _MAX_ESCAPED - 66]}={sha256(part.encode()).hexdigest()}"


def _quoted(odd: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in odd[0].encode())
