"""The result of a verification as one JSON document, which ``--compare`` reads again."""

from __future__ import annotations

import json
from typing import Any

from auditor.text import VALUES, crowded, valid_unicode
from auditor.verify import codec
from auditor.verify.codec import CodecError, short
from auditor.verify.model import Verification

SCHEMA = "zaudit-verify/1"
LARGEST = 64 * 2**20  # characters of a document that is read; a run of an hour has a tenth of them


def document(verification: Verification) -> dict[str, Any]:
    """The verification as JSON data, after ``report/verify_schema.json``. Bytes that were not UTF-8 are spelt out."""
    return {"schema": SCHEMA, "verification": codec.plain(verification, valid_unicode)}


def load(text: str) -> Verification:
    """The verification in a document; what else stands there (the audit report, a comparison) is not read.

    Raises CodecError.
    """
    if len(text) > LARGEST:
        raise CodecError(f"longer than {LARGEST >> 20} MiB: not a result of zaudit verify")
    if crowded(text):
        raise CodecError(f"more than {VALUES:,} values: not a result of zaudit verify")
    try:
        data = json.loads(text, object_pairs_hook=_members)
    except RecursionError:
        raise CodecError("nested too deeply: not a result of zaudit verify") from None
    except CodecError:
        raise
    except ValueError as error:
        raise CodecError(f"not JSON: {short(str(error))}") from None
    if not isinstance(data, dict) or "schema" not in data:
        raise CodecError('no "schema" in it: not a result of zaudit verify')
    if data["schema"] != SCHEMA:
        raise CodecError(f"not a result of zaudit verify, or one of a newer release: this zaudit reads {SCHEMA}")
    if "verification" not in data:
        raise CodecError('"verification" is missing')
    return codec.load(Verification, data["verification"], "verification")


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise CodecError("an object has the same member twice")
    return members
