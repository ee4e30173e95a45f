"""The record types of Codex that are known; any other is reported."""

from __future__ import annotations

import re


def listed(block: str) -> frozenset[str]:
    """Return the words of a text."""
    return frozenset(block.split())


TOP_LEVEL = listed(
    "session_meta response_item event_msg turn_context compacted world_state token_usage_record"
    " inter_agent_communication inter_agent_communication_metadata"
)

CALLS = {
    "function_call": None,
    "custom_tool_call": None,
    "local_shell_call": "local_shell",
    "web_search_call": "web_search",
    "tool_search_call": "tool_search",
    "image_generation_call": "image_generation",
    "mcp_call": None,
}
"""Item types that are tool calls, with the tool's name where the item has none."""

COMPACTIONS = frozenset(("compaction", "compaction_summary", "context_compaction", "compaction_trigger"))

ITEMS = (
    frozenset(("message", "reasoning", "agent_message", "ghost_snapshot", "other", "additional_tools"))
    | COMPACTIONS
    | frozenset(CALLS)
    | listed(
        "function_call_output custom_tool_call_output local_shell_call_output tool_search_output"
        " mcp_tool_call_output mcp_call_output computer_call_output"
    )
)

EVENTS = listed(
    # spoken
    "user_message agent_message agent_message_delta agent_message_content_delta agent_reasoning agent_reasoning_delta"
    " agent_reasoning_raw_content agent_reasoning_raw_content_delta agent_reasoning_section_break"
    " reasoning_content_delta reasoning_raw_content_delta"
    # turns
    " task_started turn_started task_complete turn_complete turn_aborted turn_diff token_count plan_update plan_delta"
    " thread_rolled_back thread_name_updated thread_settings_applied thread_goal_updated session_configured"
    " context_compacted entered_review_mode exited_review_mode undo_started undo_completed shutdown_complete"
    # tools
    " item_started item_updated item_completed exec_command_begin exec_command_end exec_command_output_delta"
    " terminal_interaction patch_apply_begin patch_apply_updated patch_apply_end mcp_tool_call_begin"
    " mcp_tool_call_end dynamic_tool_call_request dynamic_tool_call_response web_search_begin web_search_end"
    " image_generation_begin image_generation_end view_image_tool_call hook_started hook_completed raw_response_item"
    " collab_agent_spawn_begin collab_agent_spawn_end collab_agent_interaction_begin collab_agent_interaction_end"
    " collab_waiting_begin collab_waiting_end collab_close_begin collab_close_end collab_resume_begin"
    " collab_resume_end sub_agent_activity"
    # asked of a person
    " exec_approval_request apply_patch_approval_request request_user_input request_permissions elicitation_request"
    " guardian_assessment guardian_warning"
    # told
    " error stream_error warning deprecation_notice background_event model_reroute model_verification"
    " mcp_startup_update mcp_startup_complete mcp_list_tools_response list_custom_prompts_response"
    " list_skills_response skills_update_available get_history_entry_response conversation_path"
    " realtime_conversation_started realtime_conversation_realtime realtime_conversation_closed"
)

TURN_ITEMS = listed(
    "UserMessage AgentMessage Reasoning CommandExecution FileChange Plan McpToolCall DynamicToolCall CollabToolCall"
    " CollabAgentToolCall WebSearch ImageView ImageGeneration EnteredReviewMode ExitedReviewMode ContextCompaction"
    " HookPrompt SubAgentActivity Sleep"
)

QUESTIONS = listed(
    "exec_approval_request apply_patch_approval_request request_user_input request_permissions elicitation_request"
)
"""Events after which Codex waits for a person."""

EXEC_TYPES = listed("thread.started turn.started turn.completed turn.failed item.started item.updated item.completed error")

EXEC_ITEMS = listed(
    "agent_message reasoning command_execution file_change mcp_tool_call web_search todo_list error collab_tool_call"
)

ROLLOUT_NAME = re.compile(
    r"rollout-.*?([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})\.json(?:l(?:\.zst|\.gz)?)?\Z", re.IGNORECASE
)
