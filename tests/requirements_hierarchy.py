"""The clauses of the hierarchical context management (spec 004), as corrected by rulings 6, 8 and 19."""

from __future__ import annotations

HIERARCHY = {
    "H-1": "A goal has tasks, a task has subtasks, a subtask has attempts, and actions belong to them.",
    "H-2": "Status and progress in per cent are known at every level.",
    "H-transitions": "Which status may follow which is a table, and nothing else happens.",
    "H-reorder": "Tasks are added, inserted, split, dropped and reordered while the work goes on.",
    "H-need": "The context holds the goal, the current task, the active subtask with its attempt, and no other task.",
    "H-recent": "The context holds the last three actions of the active subtask with their results.",
    "H-next": "The context names the next step and the state of the probes.",
    "H-limit": "The context is never longer than asked for, and says what it left out and how to get it.",
    "H-words": "The context has different words at the start, after a resume and after a compaction.",
    "H-A": "Type A: the fourth identical action is refused.",
    "H-B": "Type B: the second B of A-B-A-B is refused.",
    "H-C": "Type C: two failed attempts block the subtask and climb to the task, then to the goal.",
    "H-legitimate": "Repetition whose results change is not refused.",
    "H-blocked": "Blocked actions and their reasons are part of the state and of the context.",
    "H-lift": "A block is lifted by a person's message, by unblocking, or by a continuation.",
    "H-state": "state.json holds the tree, where the work is, loop counts, blocked actions and the probes' state.",
    "H-history": "history.jsonl is the append-only log of every action, in the format of the recorder.",
    "H-loops": "loops.json lists the loops that were found.",
    "H-resume": "After a crash the work goes on at the last step that was acknowledged, or the one in flight.",
    "H-damage": "A damaged, edited or missing state file is set aside and made anew from the history.",
    "H-told": "A resume says what was verified on the disk, what is assumed, and which action was in flight.",
    "H-owner": "One owner at a time: one that was superseded is refused with an error of its own and changes nothing.",
    "H-flat": "Recording an action costs the same however many were recorded before.",
    "H-API": "The quick start of the source document works with the names it uses.",
    "H-source": "Recovery and context packages take the goal's state as a source, and a recovered session updates it.",
    "R-19": "The history is written and synced first; the state file follows, and its previous generation is kept.",
}
