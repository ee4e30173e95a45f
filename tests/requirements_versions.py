"""What spec 003 says of artifacts and their versions, by clause."""

from __future__ import annotations

ARTIFACTS = {
    "003-S1": "An artifact is stored by agent, name, type and description, one or several in one request.",
    "003-S2": "Content is compared by its SHA-256: unchanged content makes no new version.",
    "003-S3": "Changed content makes one new version, with a folder of what it shows, and current leads to it.",
    "003-S4": "The answer to a stored artifact names the version, and the id, path and tokens of each.",
    "003-S5": "An artifact is retrieved by its id, or by agent, name and version: a number or the current one.",
    "003-S6": "Storing needs the right to write the artifact, retrieving the right to read it.",
    "003-S7": "What is not found is answered clearly, with similar artifacts where there are any, and logged.",
    "003-S8": "An artifact depends on others: required, optional or for reference.",
    "003-S9": "A version is listed only when the bytes of all that it shows are durable and verified.",
}
"""Storing and retrieving artifacts."""

VERSIONS = {
    "003-V1": "A version has the next number, a description, who made it, when, and from which; it can be made on request.",
    "003-V2": "A rollback makes another version current, with its reason in history, and is undone by another rollback.",
    "003-V3": "After a rollback the next version has the highest number plus one, and the current one as its parent.",
    "003-V4": "Old versions are removed: all but the newest, the young, and those always kept.",
    "003-V5": "The current version, and what a snapshot, a package or a continuation names, is never removed.",
    "003-X1": "The examples of the specification run as they stand, under the default template.",
    "003-X2": "A project begins with the specification's context keys when the template is loaded.",
    "003-X3": "The tables of the specification can be read with SQL, as views.",
    "003-V6": "After a kill at any moment artifacts, versions and history agree.",
}
"""Versions of all that agents produced."""
