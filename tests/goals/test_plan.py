"""Plans in Markdown and YAML become tasks and subtasks; what is no plan is refused, whatever it is made of."""

from __future__ import annotations

import os
import textwrap
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ctxmgr.errors import CtxmgrError, InvalidInput, NotFound
from ctxmgr.goals.plan import MAX_BYTES, MAX_TITLE, Plan, parse_plan, read_content
from ctxmgr.types.goal import PlannedTask


def _plan(text: str, name: str) -> Plan:
    return parse_plan(textwrap.dedent(text).encode(), name)


def _outline(plan: Plan) -> list[str]:
    """Return the plan as lines: a task, its subtasks indented, '+' before what is done."""
    lines: list[str] = []
    for task in plan.tasks:
        lines.append(("+" if task.done else "") + task.title)
        lines += ["  " + ("+" if part.done else "") + part.title for part in task.subtasks]
    return lines


@pytest.mark.requirement("H-plan")
def test_headings_are_tasks_and_their_lists_subtasks() -> None:
    """The title is the goal, sections are tasks, items subtasks; ticked boxes are done; markup is stripped."""
    plan = _plan(
        """\
        # Create the mathx package
        Some prose.

        ## Create package
        - [x] Create `__init__.py`
        - [ ] Add the **add()** function
        ## Tests
        1. write [tests](http://x)
        2. run them
        ## Docs
        Write the README.
        """,
        "plan.md",
    )

    assert plan.goal == "Create the mathx package"
    assert _outline(plan) == [
        "Create package", "  +Create __init__.py", "  Add the add() function", "Tests", "  write tests", "  run them", "Docs",
    ]  # fmt: skip


@pytest.mark.requirement("H-plan")
def test_nested_lists_are_tasks_and_subtasks() -> None:
    """Without headings the outer items are tasks; boxes drawn as signs count; a task whose parts are done is done."""
    plan = _plan("* one\n  - [X] a\n  - ✅ b\n* two\n\n☐ three\n☑ four\n", "plan.md")

    assert plan.goal is None
    assert _outline(plan) == ["+one", "  +a", "  +b", "two", "three", "+four"]


def test_what_lies_deeper_becomes_a_subtask_under_both_titles() -> None:
    """No step is lost below the level of subtasks, and a note says so."""
    plan = _plan("- task\n  - part\n    - one\n    - [x] two\n      - more\n- last\n", "plan.md")

    assert _outline(plan) == ["task", "  part: one", "  +part: two: more", "last"]
    assert plan.notes == ("2 steps lie below the level of subtasks; each became a subtask under both titles",)


def test_sections_that_only_announce_steps_are_seen_through_and_background_is_left_out() -> None:
    """A section "Tasks" is no task; "Background" is none either, and the person hears of that."""
    plan = _plan("# Goal: ship\n## Background\n- is old\n## Tasks\n- a\n  - b\n- c\n", "plan.md")

    assert plan.goal == "ship"
    assert _outline(plan) == ["a", "  b", "c"]
    assert plan.notes == ("left out: the section 'Background', which reads like background",)


def test_quoted_lists_and_code_are_no_steps() -> None:
    """What is quoted, fenced or front matter holds no steps."""
    plan = _plan("---\ntitle: x\n---\n> - quoted\n\n```\n- code\n```\n- real\n", "plan.md")

    assert _outline(plan) == ["real"]


def test_one_item_above_tasks_with_subtasks_is_the_goal() -> None:
    """A list below a single item, three levels deep, is a goal with its tasks; with two levels it is a task."""
    deep, flat = _plan("- ship\n  - build\n    - a\n  - test\n", "p.md"), _plan("- build\n  - a\n  - b\n", "p.md")

    assert (deep.goal, _outline(deep)) == ("ship", ["build", "  a", "test"])
    assert (flat.goal, _outline(flat)) == (None, ["build", "  a", "  b"])


@pytest.mark.requirement("H-plan")
@pytest.mark.parametrize(
    ("text", "goal", "outline"),
    [
        ("- a\n- b:\n  - c\n  - d\n- e: f\n", None, ["a", "b", "  c", "  d", "e: f"]),
        ("create:\n  - a\n  - b\ntest: done\ndoc: write it\n", None, ["create", "  a", "  b", "+test", "doc: write it"]),
        ("goal: g\ncreate: [a]\ntest:\n", "g", ["create", "  a", "test"]),
        ("ship:\n  build: [a, b]\n  test: todo\n", "ship", ["build", "  a", "  b", "test"]),
        (
            "goal: g\ntasks:\n - title: a\n   status: done\n   owner: me\n   subtasks: [x, y: z, {name: q}]\n",
            "g",
            ["+a", "  +x", "  +y: z", "  +q"],
        ),
        ("tasks:\n  a:\n    steps: [x]\n    done: true\n  b:\n", None, ["+a", "  +x", "b"]),
        ('- "[x] a"\n- "[ ] b"\n- ""\n', None, ["+a", "b"]),
        ("- - a\n  - b\n  - c\n", None, ["a", "  b", "  c"]),
    ],
)
def test_yaml_in_its_usual_forms(text: str, goal: str | None, outline: list[str]) -> None:
    """Lists, mappings, and tasks with fields are understood."""
    plan = _plan(text, "plan.yaml")

    assert (plan.goal, _outline(plan)) == (goal, outline)


def test_fields_without_a_meaning_are_named() -> None:
    """A person sees what of the YAML was not used."""
    assert _plan("- task: a\n  owner: me\n", "plan.yml").notes == ("fields that mean nothing here: owner",)


def test_json_is_yaml_and_the_text_tells_without_an_ending() -> None:
    """JSON is read as YAML; without an ending the beginning of the text says which it is."""
    assert _outline(_plan('{"goal":"g","tasks":["a",{"title":"b","subtasks":["c"]}]}', "-")) == ["a", "b", "  c"]
    assert _outline(_plan("# x\n- a: b\n- c\n", "-")) == ["a: b", "c"]
    assert _plan("tasks: [a]\n", "-").tasks == (PlannedTask(title="a"),)


@pytest.mark.parametrize(
    ("data", "name", "why"),
    [
        (b"just prose\nand more", "a.md", "no step found"),
        (b"", "a.yaml", "no step found"),
        (b"prose", "a.yaml", "no list and no mapping"),
        (b"\xff\xfea\0", "a.md", "no UTF-8 at byte 0"),
        (b"a\0b", "a.md", "not a text"),
        (b"x" * (MAX_BYTES + 1), "a.md", "at most 256 KiB"),
        (b"- a\n" * 10_001, "a.md", "10,001 lines"),
        (b"- " + b"a" * 10_000, "a.md", "line 1 has 10,002 characters"),
        (b"- a\n" * 2_001, "a.md", "2,001 steps"),
        (b"# a\n" * 2_001, "a.md", "2,001 steps"),
        (b"- " * 4_000, "a.md", "no step found"),
        (b"> " * 4_000, "a.md", "no step found"),
        (b"a:\n\t- b", "a.yaml", "line 2: found character '\\t'"),
        (b"- [x] a\n", "a.yaml", "broken YAML, line 1"),
        (b"'" * 5_001, "a.yaml", "broken YAML"),
        (b"- *b", "a.yaml", "undefined alias"),
        (b"a: 1\n---\nb: 2", "a.yaml", "2 documents"),
        (b"[" * 9_999, "a.yaml", "nested deeper"),
        (b"- " * 4_000, "a.yaml", "nested deeper"),
        (b"? " * 4_000 + b"a", "a.yaml", "nested deeper"),
        (b"\n".join(b" " * depth + b"a:" for depth in range(600)), "a.yaml", "nested too deep"),
        (b"\n".join(b" " * depth + b"a:" for depth in range(60)), "a.yaml", "nested deeper"),
        (b"a: &a [*a]", "a.yaml", "nested deeper"),
        (
            b"\n".join(b"a%d: &a%d [%s]" % (n, n, b",".join([b"*a%d" % (n - 1)] * 9) if n else b"x") for n in range(12)),
            "a.yaml",
            "more than 2,000 steps",
        ),
    ],
)
def test_what_is_no_plan_is_refused(data: bytes, name: str, why: str) -> None:
    """Bombs, tabs, broken YAML and endless lines are told apart and told; nothing crashes or hangs."""
    with pytest.raises(InvalidInput, match=name) as refused:
        parse_plan(data, name)

    assert why in refused.value.message


def test_tags_construct_nothing() -> None:
    """A YAML tag that names code is a text like any other."""
    assert _plan("- !!python/object/apply:os.abort ['x']\n", "a.yaml").tasks == (PlannedTask(title="x"),)


def test_titles_are_one_clean_short_line() -> None:
    """Control characters vanish, line ends become blanks, and a title that is too long is cut with a sign."""
    (task,) = parse_plan(b"- a\x1b[31m\x07  b\n  c " + b"x" * 999, "a.md").tasks

    assert task.title.startswith("a[31m b c xxx")
    assert (len(task.title), task.title[-1]) == (MAX_TITLE, "…")


@settings(max_examples=150, deadline=None)
@given(
    st.text(alphabet=st.sampled_from("-*#>:[]{}&*!|'\"?%@` \t\nax1.☐é\u2028"), max_size=200),
    st.sampled_from(["md", "yaml", ""]),
)
@example("# x\n- [x] a\u2028 1\n  - ☐ é `a`\n", "md")  # random texts hardly ever make a step
@example("- a: [x, 1]\n", "yaml")
def test_any_text_is_a_plan_or_refused(text: str, ending: str) -> None:
    """Whatever the text, the answer is a plan whose titles can be shown in a line, or the error for that."""
    try:
        plan = parse_plan(text.encode(), f"p.{ending}")
    except InvalidInput:
        return
    for step in (step for task in plan.tasks for step in (task, *task.subtasks)):
        assert step.title == " ".join(step.title.split())
        assert step.title


def test_a_file_is_read_and_what_is_no_plain_file_is_refused(tmp_path: Path) -> None:
    """A plan comes from a plain file; a missing one, a folder, a pipe and a device are told, and nothing hangs."""
    (tmp_path / "plan.md").write_text("- a\n", "utf-8")
    os.mkfifo(tmp_path / "pipe.md")

    assert read_content(tmp_path / "plan.md") == b"- a\n"
    with pytest.raises(NotFound, match="no such file"):
        read_content(tmp_path / "none.md")
    for odd in (tmp_path, tmp_path / "pipe.md", Path("/dev/zero")):
        with pytest.raises(CtxmgrError, match=r"not a regular file"):
            read_content(odd)
    for broken in ("a\0b", "a" * 5_000):
        with pytest.raises(InvalidInput):
            read_content(tmp_path / broken)
