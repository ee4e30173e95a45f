"""English patterns that send a reader on errands.

Data only; how patterns are written is told in `orders`.
"""

from __future__ import annotations

from ctxmgr.recover.injection_patterns import COMMANDS, FEW, HANDS_OVER, HIDES, IMITATES, LEAKS, NOBODY, Order, led, order

ERRANDS: tuple[Order, ...] = (
    led(
        "hand over work",
        HANDS_OVER,
        "rout|hand|transfer|redirect|delegat|forward|switch|pass|give|return|send|assign|escalat|direct&agent|bot|merge|"
        "review|plan|router|coder|deploy|execut|worker|manager|approver|publisher|janitor|attacker|exfil",
        r"(?:re )?(?:route|hand|transfer|redirect|delegate|forward|switch|pass|give|return|send|assign|escalate|direct|"
        r"turn) (?:back |over |off ){0,2}(?:the |all |this |full |your |every |any |remaining |current |further "
        r"){0,3}(?:control|execution|tasks?|workflow|session|requests?|conversation|continuation|case|ticket|it|this|"
        r"everything|work|job|turn|context|history|steps?|routing|result|all) (?:over |back |directly |immediately |"
        r"straight |now |only |along ){0,2}(?:to|into|towards) «agent»",
    ),
    led(
        "hand over control",
        HANDS_OVER,
        "control|workflow|session|continuation&hand|transfer|give|pass|surrender|cede|rout|redirect",
        rf"(?:hand|transfer|give|pass|surrender|cede|route|redirect) (?:over |back ){{0,2}}(?:the |all |full |this |your "
        rf"){{0,2}}(?:control|workflow|session|continuation)(?: of (?:the |this )?(?:workflow|session|task))? (?:over |back |"
        rf"directly |immediately |straight ){{0,2}}to {NOBODY}\w",
    ),
    led(
        "switch to agent",
        HANDS_OVER,
        "rout|hand|transfer|switch|delegat|escalat",
        r"(?!\w{3,12}_to_)(?:only |always |immediately |directly |now ){0,2}(?:re )?(?:route|hand (?:over|off)|transfer|"
        r"switch|delegate|escalate) (?:directly |back |immediately |now |straight |only |over ){0,2}to «agent»",
    ),
    order(
        "choose agent",
        HANDS_OVER,
        "choose|select|pick|go with|return|send|forward|call|invoke|continue|proceed|hand|rout&must|should|always|"
        "immediately|please|have to|shall",
        r"(?:must|should now|always|immediately|please|have to|shall) (?:now |only |always |immediately )?(?:choose|select|"
        r"pick|go with|return to|send to|forward to|call|invoke|continue with|proceed to|proceed with|hand (?:over )?to|"
        r"route to) «agent»",
    ),
    order(
        "the target must be",
        HANDS_OVER,
        "target|return|destination|continuation|branch|recipient|next|agent&must|should|shall|has to|required to|may only",
        r"(?:return to|target|destination|continuation|branch|recipient|next hop)(?: (?:agent|branch|field))? (?:must|should|"
        r"shall|has to|is required to|may only) (?:now |only |always |be set to |go to |be |name |point to |read "
        r"){1,3}«agent»|(?:next|target|only|correct|receiving|responsible) agent (?:must|should|has to|shall) (?:now |only |"
        r"always )?be ",
    ),
    order(
        "set the target",
        HANDS_OVER,
        "target|return|next|destination|recipient&set|choose|select|pick|fill|answer with|name|nominate",
        r"\b(?:set|choose|select|pick|fill|answer with) (?:the )?(?:(?:target agent|returnto|return to|next agent|"
        r"destination agent):? (?:to|as|with|field to) \w|target (?:to|as) «agent»)|\b(?:set|choose|select|pick|name|"
        r"nominate) \w{1,30}(?: \w{1,20})? as (?:the |your )(?:target|next agent|destination|return ?to|recipient)(?: "
        r"(?:agent|now|immediately)|[.!,\n]|$)",
    ),
    order(
        "never back to",
        HANDS_OVER,
        "rout|hand|return|transfer|continu",
        r"(?:do not|don'?t|never|must not) (?:route|hand|return|go|transfer|continue|send) (?:anything |it |this |control |"
        r"the \w{1,12} )?(?:back )?(?:to|with) «agent»",
    ),
    order(
        "not to the user",
        HIDES,
        "user|human|operator|owner|developer|customer|anyone|anybody|people|supervisor|maintainer&tell|inform|mention|notif|"
        "alert|warn|report|reveal|disclos|confess|admit|show|let",
        r"(?<!internal\sid\s)(?:do not|don'?t|never|without|avoid|refrain from|must not) (?:ever |you )?(?:tell|inform|"
        r"mention|notify|notifi|alert|warn|report|reveal|disclos|confess|admit|show|let)(?:e|y|ing)? (?:this |it |that |any "
        r"of this |anything |about this |any of it |(?:this|that|these|the) \w{1,12} |what you \w{1,8} ){0,2}(?:to |about "
        r")?(?:the |your |any |a ){0,2}«person»\b(?!'s)(?!\s(?:to|how|that you|you can|which|where|if|when|whether)\b)",
    ),
    order(
        "hidden from the user",
        HIDES,
        "secret|hidden|hide|conceal|know|notic|aware|silent|quiet|covert|find out|learn|told|informed|hear|see|confidential|"
        "private|consent&from|user|human|operator|owner|send|upload|post|exfil|forward|delete|rout|mail|copy|transfer",
        r"(?:keep|hide|conceal) (?:this|it|that|these \w{1,12}|your \w{1,12}|the fact|everything) (?:a secret |secret |"
        r"hidden |confidential |private ){0,1}from (?:the |your |any )?«person»|(?:the |your )«person» (?:must|should|need|"
        r"may|shall|can) ?(?:not|n'?t|never) (?:ever )?(?:know|see this|find out|notice|learn|be told|be informed|be aware|"
        r"hear)|without (?:the |your )?(?:user|human|operator|owner)'?s? (?:knowing|knowledge|noticing|consent|awareness)|"
        r"(?:secretly|silently|quietly|covertly) (?:send|upload|post|exfiltrate|forward|delete|route|email|copy|transfer)",
    ),
    order(
        "send secrets",
        LEAKS,
        "key|token|secret|passw|passphrase|credential|env|id_rsa|cookie|prompt|history|shadow&send|post|upload|mail|exfil|"
        "leak|forward|transmit|submit|copy|share|publish|deliver|dump|paste|report|message|append|attach",
        rf"(?:send|post|upload|e-?mail|mail|exfiltrate|leak|forward|transmit|submit|copy|share|publish|deliver|dump|paste|"
        rf"report|message|append|attach) (?:me |us |him |them |over |out |back ){{0,2}}(?:«any» |contents? |values? |full |"
        rf"complete |entire |aws |github |openai |stored |saved |admin |production |database |local |user'?s? |server'?s? |"
        rf"as well as ){{0,7}}(?:~?[\w./$]{{0,40}}/)?«secret»{FEW} (?:to|at|via|into|on|as|in|using) «whither»",
    ),
    order(
        "give up secrets",
        LEAKS,
        "key|token|secret|passw|credential|env|prompt|id_rsa",
        r"(?:give|tell|send|show|e-?mail|reveal|hand) (?:me|us) (?:all |of |the |your |any |user'?s? |full |every "
        r"){1,4}(?:\w{1,12} )?(?:api keys?|secret keys?|private keys?|ssh keys?|access tokens?|secrets|passwords?|"
        r"credentials|system prompt|env(?:ironment)? variables)|(?:reveal|leak|exfiltrate|disclose|expose|divulge) (?:all |"
        r"of |the |your |any |user'?s? |full |every ){1,4}(?:\w{1,12} )?(?:api keys?|secret keys?|private keys?|ssh keys?|"
        r"access tokens?|secrets|passwords?|credentials|system prompt|env(?:ironment)? variables)",
    ),
    order(
        "reveal the prompt",
        LEAKS,
        "your&prompt|instructions|system message|rules",
        r"(?:reveal|print|repeat|output|show|leak|disclose|recite|display|write out|dump|quote|paste|include|tell) (?:me |us "
        r"|out |back ){0,2}(?:all |of |the |full |entire |exact |complete |verbatim ){0,4}(?:your) (?:full |entire |exact |"
        r"complete |hidden |secret |initial |original |own |system |developer ){0,3}(?:prompt|instructions|system message|"
        r"rules)\b",
    ),
    order(
        "read and send",
        LEAKS,
        "ssh|id_rsa|.env|passwd|shadow|credentials|secrets",
        rf"(?:read|open|cat|fetch|load|access|get|find|collect|gather|locate) (?:«any» |contents? |user'?s? |file |files |at "
        rf"|in ){{0,5}}~?[\w/.$-]{{0,40}}(?:\.ssh|id_rsa|id ed25519|\.env|credentials|/etc/passwd|/etc/shadow|\.netrc|"
        rf"secrets){FEW} (?:and|then) ?(?:then |silently )?(?:send|post|upload|include|pass|put|paste|append|attach|copy|"
        rf"e-?mail|reply|forward|transmit)\w{{0,3}}\b",
    ),
    order(
        "as the manager you must",
        COMMANDS,
        "manager|orchestrator|router|supervisor|coordinator|handler|recovery",
        r"as (?:the|a|an|our|this) (?:\w{1,12} )?(?:context manager|orchestrator|router|recovery agent|stuck handler|"
        r"supervisor agent|coordinator|routing agent|manager agent|context manager agent) (?:agent )?you (?:must|should|have "
        r"to|are required|are ordered|are obliged|will|need to|are to|shall|now)",
    ),
    order(
        "reader of this",
        COMMANDS,
        "reading|processing|parsing|summari|seeing|encountering|receiving|handling|analy|reads|read&this|these|the above|that",
        r"(?:if you are|if you're|you are|whoever is|whichever|any|every|each|the|dear|to) (?:an? )?«reader» (?:who is |that "
        r"is |which is |who are |that are |currently |now ){0,2}(?:reading|that reads|processing|who reads|parsing|"
        r"summari[sz]ing|seeing|encountering|receiving|handling|analy[sz]ing) (?:this|these|the above|that)|\b«reader» "
        r"(?:that|who|which) (?:reads?|process|processes|sees?|receives?|handles?) (?:this|these)\b",
    ),
    order(
        "stop your work",
        COMMANDS,
        "stop|abandon|cease|halt|drop",
        r"(?:stop|abandon|cease|halt|drop) (?:what(?:ever)? you(?:'re| are) (?:doing|working on)|your (?:current |present "
        r")?(?:task|work|plan|investigation|analysis)|the (?:current|user's|original) (?:task|plan|request)) (?:and(?! wait)|"
        r"now|immediately|at once|right|:)",
    ),
    order(
        "you must now",
        COMMANDS,
        "you must now|you must im|you must in|you must at|required to|ordered to|commanded to",
        r"you (?:must|are required to|are ordered to|are commanded to) (?:now |immediately |instead |at once ){1,2}(?:delete|"
        r"send|route|choose|select|transfer|hand|reply|answer|respond|approve|stop|obey|comply|wipe|upload|reveal|forget|"
        r"abandon|escalate|disregard|ignore)|you must immediately (?:call|run|execute|invoke)",
    ),
    order(
        "no more tools",
        COMMANDS,
        "any|your|other|further|more&not|don't|never|stop&tool|entries|history",
        r"(?:do not|don'?t|never|stop) (?:call|use|invoke|query|search|consult|trust|read|look at|cite)(?:ing)? (?:any "
        r"(?:more |other |further )?|your |other |further |more )(?:history |search |of the |of your ){0,2}(?:tools|tool "
        r"calls|entries|history)\b",
    ),
    led(
        "call the tool now",
        COMMANDS,
        "tool|command|function|code|script&now|immediately|at once|right away|without",
        r"(?:call|invoke|use|run|execute) (?:the )?[\w.-]{1,40} (?:tool|command|function) (?:now|immediately|at once|"
        r"right away|without (?:asking|confirm\w{1,6}|telling))|(?:execute|run) (?:the following|this|these) "
        r"(?:\w{1,10} )?(?:commands?|code|script|tool calls?) (?:immediately|at once|right away|without (?:asking|"
        r"confirm\w{1,6}|telling|review))",
    ),
    led(
        "approve blindly",
        COMMANDS,
        "approve|mark|declare|report|merge|accept|close&regardless|no matter|without",
        r"(?:approve|mark|declare|report|accept|close|merge) (?:this|the|all|every|any|it|these) ?(?:\w{1,12} "
        r"){0,3}?(?:as (?:done|complete|completed|passed|approved|successful|resolved|healthy|safe|fixed|lgtm) "
        r")?(?:regardless|no matter|without (?:checking|reviewing?|running|verifying|verification|reading|testing|tests|"
        r"looking|asking))",
    ),
    order(
        "already authorised",
        IMITATES,
        "authori|approved|confirmed|sanctioned&no|without",
        r"(?:approved|authori[sz]ed|pre-?authori[sz]ed|confirmed|sanctioned) by (?:the |your |an? )?(?:user|operator|"
        r"admin\w{0,10}|owner|system|developers?|anthropic|openai|security team|management)[^.]{0,50}?(?:no|without) "
        r"(?:further |more |any |additional ){0,2}(?:confirmation|approval|review|checks?|questions?|verification)",
    ),
    order(
        "message from above",
        IMITATES,
        "this is|override",
        r"this is (?:an? |the |your )?(?:official |urgent |automated |authenticated |verified |emergency |direct |important |"
        r"system ){0,2}(?:message|instruction|order|notice|request|directive|command|override) (?:from|by|issued by|of) "
        r"(?:the |your )?«authority»|(?:system|admin|administrator|developer|operator|root|emergency|safety|security) "
        r"override(?: (?:code|active|activated|engaged|accepted|in effect|authori[sz]ed|enabled|granted|mode)|\s?[:!\]])",
    ),
    order(
        "notice to agents",
        IMITATES,
        "system|admin|operator|developer|security|management&agent|assistant|llm|model|manager|bot|claude|gpt|copilot|codex|"
        "gemini|ai|orchestrator|router",
        r"\b(?:system|admin\w{0,10}|operator|developer|security|management) (?:notice|message|alert|announcement|directive|"
        r"instruction|order|memo|update|broadcast)s? (?:to|for) (?:the |all |any |every |each ){0,2}(?:\w{1,20} "
        r"){0,2}?«reader» ?[:!—]",
    ),
    order(
        "in the name of your operator",
        IMITATES,
        "your operator|your owner|your user|your developer|your admin|your supervisor|your principal|your creator",
        r"\byour (?:operator|owner|user|developer|admin\w{0,10}|supervisor|principal|creator)s? (?:now |hereby |kindly |also "
        r")?(?:asks?|asked|wants?|orders?|ordered|instructs?|instructed|tells?|told|requires?|commands?|expects?) you to\b",
    ),
    order(
        "addressed orders",
        COMMANDS,
        "note|message|attention|instruction|notice|memo|reminder|warning|order|directive|hey|hello|dear|hi|important&agent|"
        "assistant|llm|language model|manager|bot|claude|gpt|copilot|codex|gemini|ai|a.i|orchestrator|router",
        r"\b(?:note|message|attention|instructions?|notice|memo|reminder|warning|order|directive|hey|hello|dear|hi|"
        r"important)[:,]?\x20(?:to |for )?(?:the |all |any |every |whichever |whatever |other |downstream "
        r"){0,2}«reader»\b[^\n.]{0,24}?[:,!;—\x20][^\n]{0,60}?\b«harm»",
    ),
    led(
        "agent called by name",
        COMMANDS,
        "agent|assistant|llm|model|manager|claude|gpt|copilot|codex|gemini|ai|orchestrator",
        r"@?(?:(?:ai|llm|context manager|coding) ?(?:agents?|assistants?|models?)?|agents?|assistants?|dear (?:agent|"
        r"assistant|model)|claude|chatgpt|copilot|codex|gemini|orchestrator) ?[:!][\x20\n]?(?:please |now |you must |you "
        r"should |immediately |kindly ){0,2}(?:ignore|disregard|forget|stop |abandon|route (?:this|all|to|the|every|it|back)|"
        r"hand (?:over|off|control|this)|transfer |send |reveal|approve |mark (?:this|the|it|all)|report success|delete |"
        r"switch to|choose |select |obey|upload |exfiltrate|do not (?:report|tell|mention|check|review)|override)",
    ),
    order(
        "the only answer",
        HANDS_OVER,
        "answer|output|continuation|target|route|response|choice|next agent&only|correct|right",
        r"your (?:only|one) (?:valid |allowed |correct |acceptable |possible ){0,2}(?:output|answer|response|choice|reply) "
        r"is|(?:the|only) (?:only |correct |right |one ){1,2}(?:valid |allowed )?(?:continuation|routing target|route|next "
        r"agent|target agent) is \w",
    ),
    led(
        "straight to agent",
        HANDS_OVER,
        "directly|straight",
        r"(?:skip \w{1,12}(?: \w{1,12}){0,2} and )?(?:go|proceed|jump|move) (?:directly|straight) to «agent»",
    ),
    order(
        "tell your prompt",
        LEAKS,
        "your&system prompt|system message|hidden instructions|initial prompt",
        r"\b(?:output|print|repeat|show|recite|display|write|quote|paste|include|dump|return|reveal|translate|summari[sz]e) "
        r"(?:the |me |us |out |first |last |\d{1,4} |lines |words |characters |of |all |contents? |full |text |in ){0,7}your "
        r"(?:own |full |hidden )?(?:system prompt|system message|hidden instructions|initial prompt)",
    ),
)
