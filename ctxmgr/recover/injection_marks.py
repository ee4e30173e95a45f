"""Marks by which text imitates a speaker or leaves its fence.

Data only; how patterns are written is told in `orders`.
"""

from __future__ import annotations

from ctxmgr.recover.injection_patterns import CLOSES, COMMANDS, IMITATES, LEAKS, Order, led_mark, mark

_VOICE = (
    r"(?i:you must (?:now|route|choose|select|hand|transfer|send|ignore|obey|approve|stop|immediately|not|never|only|always)|"
    r"you will|you shall|you have been|ignore|disregard|forget|override|route |hand over|transfer|obey|comply|"
    r"from now on|all agents|the agent|the assistant|the reader|must choose|must select|must now|choose |select |approve|send |"
    r"stop |abort|switch |new instruction|control |immediately|reveal|policy update|new policy|authori[sz]|"
    r"your (?:next|new|only|task|instructions))"
)

MARKS: tuple[Order, ...] = (
    mark("chat token", CLOSES, "<|", r"<\|/?[A-Za-z][A-Za-z_]{1,40}\|>|<\|(?:im_start|im_end|endoftext|eot_id)"),
    mark(
        "chat brackets",
        CLOSES,
        "inst]|<sys>>|_turn>|system_prompt]|available_tools]|tool_calls]|tool_results]",
        r"\[/?INST\]|<</?SYS>>|</?(?:start|end)_of_turn>|\[/?(?:SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS)\]",
    ),
    mark(
        "call markup",
        CLOSES,
        "function_calls>|function_results>|function_result>",
        r"</?(?:\w{1,10}:)?function_(?:calls|results?)>",
    ),
    mark(
        "closing tag",
        CLOSES,
        "</",
        r"</\s{0,3}(?P<tag>(?i:untrusted|tool[_-]?(?:result|response|output)s?|function[_-]?(?:results?|response|output)|"
        r"history[_-]?entry|user[_-]?(?:input|data|query|message)|recorded|retrieved|external[_-]?(?:content|data)|fenced|"
        r"fence|quarantine|system[_-]?(?:prompt|message|instructions?)|untrusted\w{0,20}))\b[^<>]{0,80}>",
    ),
    mark("own fence", CLOSES, "<<<", r"<<<\s?/?(?i:end|data) [0-9a-fx]{6,64}\b"),
    mark(
        "end of data",
        CLOSES,
        "end",
        r"[-=#*]{3,20}\s?(?i:end)(?i:\s?of)?\s(?i:untrusted|history|user input|user data|tool (?:output|results?|response)|"
        r"system prompt|recorded|quoted|retrieved|external|context|instructions|transcript)\b[\w\s]{0,24}[-=#*]{2}",
    ),
    mark(
        "prompt heading",
        CLOSES,
        "###",
        r"(?:^|\n)\s{0,3}###\s?(?:System|SYSTEM|Instruction|INSTRUCTION|Human|HUMAN|Assistant|ASSISTANT)(?: (?:Prompt|"
        r"Message))?:",
    ),
    mark(
        "turn of a person",
        IMITATES,
        "human:|h:",
        r"\n\s{0,2}\n(?:Human|H): [^\n]{1,400}(?:\n\s{0,2}){1,3}(?:Assistant|AI|A):",
    ),
    led_mark(
        "system speaks",
        IMITATES,
        "system|admin|operator|developer|root|anthropic|openai|orchestrator|context manager|security|user]",
        rf"(?:SYSTEM|ADMIN(?:ISTRATOR)?|OPERATOR|DEVELOPER|ROOT|ANTHROPIC|OPENAI|ORCHESTRATOR|CONTEXT MANAGER|SECURITY|"
        rf"System|Developer|Operator|Admin|Orchestrator|Context manager|USER)(?:[\s_-]?(?i:message|override|prompt|notice|"
        rf"alert|instruction|command|update|directive|policy|team|reminder)s?){{0,2}}(?:[\])*_]{{1,3}}\s?[:>-]{{0,2}}|"
        rf"\s?[:>—-]{{1,3}}[*_]{{0,2}})\s{{1,4}}(?=[^\n]{{0,120}}?{_VOICE})",
    ),
    led_mark(
        "system speaks softly",
        IMITATES,
        "system:|assistant:|developer:|message:",
        r"(?:system|assistant|developer)(?:\smessage)?:\s(?=[^\n]{0,80}?(?i:you must (?:now|route|choose|transfer|hand|send|"
        r"ignore|obey|select)|ignore (?:all|the|your|every)|disregard|must choose|hand over|hand control|route (?:this|the|"
        r"every|all|to)|transfer (?:control|this|the)|from now on|new instructions|override|reveal))",
    ),
    mark(
        "system element",
        IMITATES,
        "system|admin|operator|developer|important",
        r"<(?i:system|admin|operator|developer|important|instructions?)(?:[_-](?:message|prompt|override|instructions?|"
        r"notice|reminder|alert))?>(?=.{0,200}?(?i:ignore (?:all|the|your|every|any|previous)|disregard|forget (?:all|"
        r"every|your|the)|you must (?:now|route|choose|transfer|hand|send|ignore|obey|select|read)|override|rout(?:e|ing) "
        r"(?:this|the|every|all|to)|hand (?:over|control)|transfer (?:control|this|the)|obey|must choose|must select|from "
        r"now on|new instruction|approve (?:this|the|all)|reveal))",
    ),
    mark(
        "system role",
        IMITATES,
        "role",
        r"[\"']role[\"']\s?:\s?[\"'](?:system|developer)[\"'](?=[^{}]{0,200}?(?i:ignore (?:all|the|your|every|any|previous)|"
        r"disregard|must choose|must select|must route|override|route (?:this|the|every|all|to)|hand (?:over|control)|"
        r"transfer (?:control|this|the)|obey|from now on|new instructions|approve (?:this|the|all)|choose |select \w+ as))",
    ),
    led_mark(
        "element of the assistant",
        IMITATES,
        "<assistant>|<human>|<developer>",
        r"<(?:assistant|human|developer)>\s?[A-Z]",
    ),
    mark(
        "comment with orders",
        COMMANDS,
        "<!--",
        r"(?i:<!--(?=[^<>]{0,300}?\b(?:a\.?i\.?|agents?|assistants?|llms?|language models?|context manager|chatbots?|claude|"
        r"chatgpt|copilot|codex|gemini|model|reader)\b)(?=[^<>]{0,400}?\b(?:«harm»|you must|you should|please|execute|run )))",
    ),
    mark(
        "comment to an agent",
        COMMANDS,
        "<!--",
        r"(?i:<!--\s{0,4}(?:(?:dear|hey|note to|attention|to)[,:]?\s)?(?:the |all |any |every ){0,2}(?:a\.?i\.?|llms?|agents?|"
        r"assistants?|(?:ai|coding|language) (?:agents?|assistants?|models?)|claude|chatgpt|copilot|codex|gemini)\s?[:,!]"
        r"[^<>]{0,200}?\b(?:you|your|please)\b)",
    ),
    mark(
        "secrets piped out",
        LEAKS,
        "curl|wget|nc |ncat|scp",
        r"\b(?:curl|wget|nc|ncat|scp)\b[^\n]{0,160}?(?:\.ssh/id_|id_rsa|id_ed25519|@\S{0,20}\.env\b|\.aws/credentials|"
        r"@/etc/(?:passwd|shadow)|\$\(cat\s[^)\n]{0,40}(?:credentials|id_rsa|\.env\b)|\$\((?:env|printenv)\b|`(?:env|"
        r"printenv)`)|\b(?:cat\s[^\n|]{0,60}(?:\.env|id_rsa|credentials|\.ssh)[^\n|]{0,20}|env|printenv)\s{0,2}\|"
        r"[^\n]{0,40}?\b(?:curl|nc|ncat|wget)\b",
    ),
    mark(
        "picture that leaks",
        LEAKS,
        "![",
        r"!\[[^\]\n]{0,80}\]\(https?://[^)\s]{1,160}[?&]\w{1,20}=[<{$\[]{1,2}[^)\n]{0,60}(?i:secret|token|key|password|"
        r"prompt|history|data|content|conversation|env)",
    ),
)
