"""Parse the names of items: artifacts, context keys, failures, executions, records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast

from ctxmgr.access.patterns import check_owner, is_unnameable, parse_pattern, quoted
from ctxmgr.errors import InvalidInput
from ctxmgr.store.repositories.artifacts import ARTIFACT_ID

Form = Literal["owner", "artifact", "id", "context", "record"]
Context = Literal["project_context", "task_context", "error_context", "execution_history", "goal_context"]
RecordType = Literal["entry", "snapshot", "continuation"]

CONTEXTS = ("project_context", "task_context", "error_context", "execution_history", "goal_context")
RECORDS = ("entry", "snapshot", "continuation")
FORMS = (
    "use AGENT/*, AGENT/NAME, the id of an artifact, project_context, task_context, error_context, execution_history, "
    "goal_context, entry:SESSION@42, entry:ID, snapshot:ID or continuation:ID"
)
_LONGEST = 1_024


@dataclass(frozen=True, slots=True)
class ItemName:
    """Something that was named.

    Attributes:
        text: as it was written.
        form: all artifacts of an owner, one artifact by its owner and name or by its id, a context, or a record.
        source: the owner; of a context or record what kind it is.
        name: of the artifact; of a record what identifies it.
    """

    text: str
    form: Form
    source: str
    name: str


def parse_named(text: str) -> ItemName:
    """Return what a text names.

    Raises:
        InvalidInput: it has none of the forms.
    """
    if text in CONTEXTS:
        return ItemName(text, "context", text, text)
    kind, colon, identity = text.partition(":")
    if colon and kind in RECORDS:
        if not identity.strip() or len(text) > _LONGEST or is_unnameable(text):
            raise InvalidInput(f"{quoted(text)} names no {kind}", FORMS)
        return ItemName(text, "record", kind, identity)
    if ARTIFACT_ID.fullmatch(text):
        return ItemName(text, "id", "", text)
    try:
        pattern = parse_pattern(text)
    except InvalidInput as error:
        raise InvalidInput(error.message, FORMS) from None
    if pattern.form not in ("agent", "exact"):
        raise InvalidInput(f"{quoted(text)} names no owner of artifacts", FORMS)
    if pattern.form == "agent":
        return ItemName(text, "owner", check_owner(pattern.agent), "*")
    return ItemName(text, "artifact", pattern.agent, pattern.name)


def as_context(named: ItemName) -> Context:
    """Return which context is named."""
    return cast("Context", named.source)
