"""English patterns that set a reader against its instructions.

Data only; how patterns are written is told in `orders`.
"""

from __future__ import annotations

from ctxmgr.recover.injection_patterns import IGNORES, RECASTS, RENEWS, Order, order

_ORDERS = "&instruct|prompt|direct|guideline|orders|rules|guardrail|safeguard|polic|programming|training|restrict|constraint"
_SKIPS = "ignor|disregard|forget|unlearn|attention|heed|follow|obey|comply|adhere|listen|honor|honour|blind"
_LIFTS = "overrid|overrul|bypass|discard|neglect|drop|cancel|aside|away|abandon|erase|delete"

ENGLISH: tuple[Order, ...] = (
    order(
        "skip earlier orders",
        IGNORES,
        _SKIPS + _ORDERS,
        r"(?<!not\s)(?<!n't\s)(?<!never\s)«skip» (?:«any» ){0,5}«earlier» (?:and |or |of |the |system |user |safety |agent |"
        r"routing |«earlier» ){0,3}(?:\w{1,12} )?«orders»",
    ),
    order(
        "skip your orders",
        IGNORES,
        _SKIPS + _ORDERS,
        r"(?<!not\s)(?<!n't\s)(?<!never\s)«skip» (?:all |any |of |every |each ){0,2}(?:your|its|the agent'?s?|my|those|"
        r"these) (?:\w{1,14} ){0,2}?«firm»",
    ),
    order(
        "skip orders above",
        IGNORES,
        _SKIPS + _ORDERS,
        r"(?<!not\s)(?<!n't\s)(?<!never\s)«skip» (?:«any» ){0,4}«orders» (?:«any» |that |you |are |was |were |is |i |we |had "
        r"|has |have ){0,5}(?:above|before|previously|earlier|until now|so far|received|told|given|in your prompt)",
    ),
    order(
        "skip all that was said",
        IGNORES,
        "ignore|disregard|forget",
        r"(?<!not\s)(?<!n't\s)(?<!never\s)(?:ignore|disregard|forget) (?:absolutely |literally )?(?:everything|anything|all|"
        r"what(?:ever)?) (?:«any» |that |else |i |they |he |is |had |comes? |came |stated |written |here |you ){0,5}(?:above|"
        r"before|prior|previous|previously|know|knew|learned|told|said|earlier|until now|so far|asked)\b",
    ),
    order(
        "skip the context",
        IGNORES,
        "ignor|disregard|forget",
        r"(?<!can\s)(?<!safely\s)(?<!may\s)(?<!could\s)(?:ignore|disregard|forget) (?:all |any |every |everything |the |your "
        r"|of |my |our |in |this |that ){0,4}(?:previous|prior|preceding|above|earlier|entire|whole|original) (?:user |"
        r"system |and |or |agent |chat |«said» ){0,3}(?:context|conversations?|commands|tasks?|requests?|history|goals?|"
        r"objectives?|plans?)\b",
    ),
    order(
        "skip the user",
        IGNORES,
        "ignor|disregard|forget",
        r"(?<!not\s)(?<!n't\s)(?<!never\s)(?:ignore|disregard|forget)(?: about)? (?:everything |all |whatever |what |"
        r"anything )?(?:that )?(?:the )?(?:user|operator|human|developer)'?s? (?:original |actual |said|says|asked|asks|"
        r"wants|wanted|request|instructions?|question|message|task|told)",
    ),
    order(
        "lift orders",
        IGNORES,
        _LIFTS + _ORDERS,
        r"(?<!not\s)(?<!n't\s)(?<!never\s)«lift» (?:«any» ){0,4}(?:«earlier» |your ){1,2}(?:\w{1,12} )?«firm»",
    ),
    order(
        "orders are void",
        IGNORES,
        "void|obsolete|cancel|superseded|invalid|revoked|longer|ignored|disregard|overrid|suspended|lifted|apply|outdated|"
        "rescinded" + _ORDERS,
        r"(?:previous|prior|above|earlier|existing|original|preceding|your) (?:\w{1,12} )?(?:instructions|rules|prompts?|"
        r"directives|orders|guidelines|restrictions|constraints) (?:above |before |given |here )?(?:are|is|have been|has "
        r"been|were|should be|must be|can be|do|shall be) (?:all |now |hereby |to be |therefore |completely ){0,2}(?:void|"
        r"obsolete|cancell?ed|superseded|invalid|revoked|no longer (?:apply|valid|in (?:effect|force)|relevant|binding)|"
        r"ignored|disregarded|overridden|suspended|lifted|not apply|outdated|rescinded|null)|\b(?:instructions|rules|"
        r"prompts?|directives|orders|guidelines|restrictions|constraints) (?:above|before|given above|given before|you "
        r"(?:received|were given)) (?:no longer|do not|don't) apply",
    ),
    order(
        "this outranks",
        IGNORES,
        "overrides|supersedes|precedence|replaces|priority|outranks",
        r"(?:this|these|the following) (?:messages?|texts?|entry|entries|notes?|files?|instructions?|results?|directives?|"
        r"orders?|comments?)? ?(?:overrides?|supersedes?|takes? precedence over|replaces?|has priority over|have priority "
        r"over|outranks?) (?:all|any|your|every|everything|previous|prior|the|other|earlier|whatever) (?:\w{1,12} "
        r"){0,3}?(?:instructions?|rules|prompts?|orders|directives?|guidelines|policy|policies|messages|you (?:were|have "
        r"been|are))",
    ),
    order(
        "new instructions",
        RENEWS,
        "new|updated|revised|real|actual|corrected|secret|hidden|overriding|urgent|superseding|replacement|"
        "amended&instruction|directive|orders|system prompt",
        r"\b(?:new|updated|revised|real|actual|corrected|secret|hidden|overriding|urgent|superseding|replacement|"
        r"amended)\x20(?:and \w{1,10} )?(?:(?:system|routing|security|agent|task|operating|binding|"
        r"final)\x20)?(?:instructions?|directives?|orders|system prompt)(?: (?:from|for|by|to) \w{1,16}(?: \w{1,16}){0,3})? "
        r"?(?::|—)",
    ),
    order(
        "the real task",
        RENEWS,
        "task|mission|objective|goal|role|job|purpose|priority",
        r"(?:your|the) (?:new|real|actual|true|secret|hidden) (?:and only )?(?:task|mission|objective|goal|role|job|purpose|"
        r"priority|assignment) (?:now )?(?:is|becomes|shall be|will be) (?:now |to |as )",
    ),
    order(
        "new wish of the user",
        RENEWS,
        "request|intent|wish|instruction",
        r"(?:user|operator|developer|human)'?s? (?:new|real|actual|updated|true) (?:request|intent|intention|wish|"
        r"instruction|goal|task) (?:is|was)",
    ),
    order(
        "follow this instead",
        RENEWS,
        "follow|obey|execut|carry",
        r"(?:follow|obey|execute|carry out) (?:only )?(?:these|this|my|the following|the new|the) (?:new |following "
        r")?(?:instructions?|orders|directives?|commands?|steps)(?: (?:below|in this \w{1,12}|here))? (?:instead|from now on|"
        r"rather than|and ignore|without question|and nothing else|over)",
    ),
    order(
        "you are now",
        RECASTS,
        "you are|you're|youare&now|longer|henceforth|hereby|from",
        r"you(?: are|'re) (?:now|no longer|henceforth|hereby|from now on) (?:acting |operating |playing |working )?(?:as |in "
        r"|under |bound |a |an |the |my ){0,3}(?:\w{1,16} ){0,2}?(?:agent|assistant|ai|bot|(?<!a\s)model|administrator|"
        r"jailbroken|unrestricted|uncensored|free|dan|hacker|router|planner|merger|reviewer|orchestrator|persona|character|"
        r"(?:developer|debug|admin|god|maintenance|root|sudo|unrestricted) mode|bound|restricted|required to follow|"
        r"subject)\b",
    ),
    order(
        "from now on you",
        RECASTS,
        "from now|henceforth|starting now|from this",
        r"(?:from now on|henceforth|starting now|from this (?:point|moment) (?:on|forward)) (?:you (?:are|will|must|shall|"
        r"should|answer|respond|act|only|always|route|obey)|(?:only |always )?(?:answer|respond|reply|route|obey|act|hand|"
        r"follow (?:only|these|my|this)) )",
    ),
    order(
        "unbound",
        RECASTS,
        "dan|jailb|unrestricted|uncensored|evil|withoutrest|without",
        r"(?:act|behave|respond|operate|role-?play|pretend|imagine)(?: (?:as if|as though|as|like|that))? (?:you are |you "
        r"were |you're |to be |being )?(?:an? |the )?(?:unrestricted|jailbroken|dan\b|evil|uncensored|(?:ai|model|assistant|"
        r"agent) (?:without|with no) (?:any )?(?:rules|restrictions|limits|filters|guidelines))",
    ),
    order(
        "mode without limits",
        RECASTS,
        "mode",
        r"\b(?:god|dan|jailbreak|unrestricted|no ?limits?) mode (?:is )?(?:now )?(?:enabled|activated|active|on|engaged)\b|"
        r"(?:enter|activate|enable|switch to) (?:the )?(?:god|dan|jailbreak|unrestricted|do anything now) mode",
    ),
    order(
        "obey others",
        IGNORES,
        "follow|obey|heed|listen|trust&developer|user|operator|system|manager|orchestrator",
        r"(?:do not|don't|stop|no longer|never|cease) (?:follow|obey|heed|listen to|trust)(?:ing)? (?:any )?(?:the "
        r")?(?:instructions |orders |rules |word )?(?:of |from |by )?(?:the |your )?(?:developers?|user|operator|system "
        r"prompt|context manager|orchestrator)\b",
    ),
    order(
        "drop the brief",
        IGNORES,
        "brief|access|security|routing|safety|review&discard|drop|ignore|disregard|forget|skip|bypass",
        r"(?<!not )(?:discard|ignore|disregard|forget|bypass) (?:the |your |all |any ){1,2}(?:brief|(?:access|safety|"
        r"security|routing) (?:rules|policy|policies|checks|controls|restrictions))\b",
    ),
    order(
        "even against the prompt",
        IGNORES,
        "system prompt|operator|user|developer|policy|instructions&even",
        r"even (?:where|if|when|though|against) (?:the |your )?(?:system prompt|operator|user|developers?|policy|policies|"
        r"instructions|guidelines) (?:disagree|say|forbid|object|prohibit|contradict|state|tell)",
    ),
    order(
        "words of yours are void",
        IGNORES,
        "obsolete|void|outdated|no longer|superseded|invalid|changed|replaced&operator|user|developer|system prompt|"
        "instructions|manager|orchestrator",
        r"(?:what(?:ever)?|everything) (?:your |the )(?:operator|user|developer|system prompt) \w{1,10} (?:\w{1,10} )?(?:is|"
        r"was) (?:now )?(?:obsolete|void|outdated|superseded|invalid|wrong)|your (?:instructions|orders|rules|task|role|"
        r"guidelines) (?:have|has) (?:been )?(?:changed|replaced|superseded|rewritten)|(?:context manager|orchestrator) "
        r"(?:has been|was|is) (?:now )?(?:replaced|superseded|retired|overruled)",
    ),
    order(
        "take this for orders",
        RENEWS,
        "treat|consider|regard|take|interpret&brief|instruction|prompt|user|operator|order",
        r"\b(?:treat|consider|regard|take|interpret) (?:this|the following|the above|it|these)(?: \w{1,12}){0,2} as (?:if "
        r"(?:the |your )?(?:user|operator|developer|system) |(?:your |the |a |an |new |my ){1,2}(?:brief|instructions?|"
        r"system prompt|orders?|command from))",
    ),
    order(
        "begin new instructions",
        RENEWS,
        "instruction|orders|directive&begin|start",
        r"\b(?:begin|start)(?: of)? (?:new|system|hidden|secret|override|operator|updated) (?:instructions?|orders|"
        r"directives?)\b",
    ),
    order(
        "reassigned",
        RECASTS,
        "you have been|you've been|you were",
        r"you(?: have|'ve)? (?:been|were) (?:reassigned|promoted|reprogrammed|jailbroken|relieved of your|appointed|"
        r"converted) ",
    ),
)
