"""The shapes of providers' tokens, from which the patterns of masking are built.

A row of `TOKENS` is (kind, beginnings, regular expression for the rest, where the shape is published). The beginnings are
public and stay readable; the rest is the secret. The sieves of `ctxmgr.log.masking` are built from these rows too. A row of
`FRAMED` also needs a branch in one of the sieves and in `ctxmgr.log.mask_prefilter`, written by hand. The module imports
nothing, because every hook loads it.
"""

from __future__ import annotations

ALNUM = "[A-Za-z0-9]"
WORD = r"[A-Za-z0-9_\-]"
HEX = "[0-9a-fA-F]"
UUID = f"{HEX}{{8}}-{HEX}{{4}}-{HEX}{{4}}-{HEX}{{4}}-{HEX}{{12}}"


MIN_ENCODED = 40
"""Length in characters of the shortest encoded text that is decoded: base64 of 30 bytes, hex of 20."""

OWNERS = "api|access|secret|private|account|auth|encryption|signing|master|shared|license"
"""Words before "key" that make it the name of a secret."""


def word_start(what: str, inside: str | None = None) -> str:
    """Return an expression of lookbehinds, to be put behind ``what``, which requires that a word begins with ``what``.

    A word begins after any character that can't be inside a word (``inside``), or right after an escape, whose last letter does
    not belong to the word.
    """
    escapes = (r"\\[bfnrt]", r"\\u[0-9a-f]{4}", r"\[[0-9]m", r"\[[0-9]{2}m")
    return "|".join((f"(?<!{inside or WORD}{what})", *(f"(?<={escape}{what})" for escape in escapes)))


TOKENS: tuple[tuple[str, str, str, str], ...] = (
    ("github", "ghp_ gho_ ghu_ ghs_ ghr_", f"{ALNUM}{{36,}}+", "docs.github.com: GitHub's token formats"),
    ("github", "github_pat_", "[A-Za-z0-9_]{40,}+", "docs.github.com: GitHub's token formats"),
    (
        "gitlab",
        "glpat- glptt- glcbt- glimt- glrt- gldt- glft- glsoat- gloas- glffct- glagent-",
        f"{WORD}{{20,}}+",
        "docs.gitlab.com: token prefixes",
    ),
    ("stripe", "sk_live_ sk_test_ rk_live_ rk_test_", f"{ALNUM}{{16,}}+", "docs.stripe.com/keys"),
    ("stripe", "whsec_", "[A-Za-z0-9+/=]{24,}+", "docs.stripe.com/webhooks"),
    ("npm", "npm_", f"{ALNUM}{{36,}}+", "docs.npmjs.com: about access tokens"),
    ("huggingface", "hf_", f"{ALNUM}{{30,}}+", "huggingface.co/docs/hub/security-tokens"),
    ("shopify", "shpat_ shpss_ shpca_ shppa_", f"{HEX}{{32,}}+", "shopify.dev: authentication"),
    ("digitalocean", "dop_v1_ doo_v1_ dor_v1_", f"{HEX}{{64}}", "docs.digitalocean.com: personal access tokens"),
    ("linear", "lin_api_ lin_oauth_", f"{ALNUM}{{32,}}+", "linear.app/developers"),
    ("figma", "figd_", f"{WORD}{{36,}}+", "figma.com/developers: access tokens"),
    ("rubygems", "rubygems_", f"{HEX}{{48}}", "guides.rubygems.org/api-key-scopes"),
    ("docker", "dckr_pat_ dckr_oat_", f"{WORD}{{20,}}+", "docs.docker.com: access tokens"),
    ("groq", "gsk_", f"{ALNUM}{{40,}}+", "console.groq.com/docs"),
    ("replicate", "r8_", f"{ALNUM}{{36,}}+", "replicate.com/docs: API tokens"),
    ("grafana", "glsa_", f"{ALNUM}{{32}}_{HEX}{{8}}", "grafana.com/docs: service accounts"),
    ("grafana", "glc_", "[A-Za-z0-9+/=]{32,}+", "grafana.com/docs: cloud access policies"),
    ("sentry", "sntrys_ sntryu_", "[A-Za-z0-9+/=_]{40,}+", "docs.sentry.io: auth tokens"),
    ("supabase", "sbp_", f"{HEX}{{40}}", "supabase.com/docs: access tokens"),
    ("supabase", "sb_secret_", f"{WORD}{{24,}}+", "supabase.com/docs: API keys"),
    ("notion", "ntn_", f"{ALNUM}{{40,}}+", "developers.notion.com: authorization"),
    ("notion", "secret_", f"{ALNUM}{{43}}", "developers.notion.com: authorization"),
    ("posthog", "phx_", f"{ALNUM}{{40,}}+", "posthog.com/docs/api"),
    ("planetscale", "pscale_tkn_ pscale_pw_ pscale_oauth_", r"[A-Za-z0-9_=\-.]{32,}+", "planetscale.com/docs: secret scanning"),
    ("pinecone", "pcsk_", f"{ALNUM}{{5,8}}_{ALNUM}{{40,}}+", "docs.pinecone.io: API keys"),
    ("langsmith", "lsv2_pt_ lsv2_sk_", f"{HEX}{{32}}_{HEX}{{10}}", "docs.smith.langchain.com: API keys"),
    ("fly", "fo1_", f"{WORD}{{32,}}+", "fly.io/docs/security/tokens"),
    ("fly", "fm1r_ fm1a_ fm2_", "[A-Za-z0-9+/=,_]{60,}+", "fly.io/docs/security/tokens"),
    ("sonar", "sqp_ squ_ sqa_", f"{HEX}{{40}}", "docs.sonarsource.com: managing tokens"),
    # A digit is required, or a long name such as ``vercel_deploymentEnvironmentVariables`` would match.
    ("vercel", "vercel_ vcp_ vci_ vca_ vcr_ vck_", f"(?=[A-Za-z]{{0,40}}[0-9]){ALNUM}{{24,}}+", "vercel.com/docs: tokens"),
    ("netlify", "nfp_ nfc_ nfo_ nfu_", f"{ALNUM}{{36,}}+", "docs.netlify.com: access tokens"),
    ("jina", "jina_", f"(?=[A-Za-z]{{0,40}}[0-9]){ALNUM}{{40,}}+", "jina.ai: API keys"),
    ("together", "tgp_v1_", f"{WORD}{{40,}}+", "docs.together.ai: API keys"),
    ("sourcegraph", "sgp_", f"(?:{HEX}{{16}}_|local_)?{HEX}{{40}}", "sourcegraph.com/docs: access tokens"),
    ("readme", "rdme_", "[a-z0-9]{70}", "docs.readme.com: API keys"),
    ("gitea", "gitea_", f"{HEX}{{40}}", "docs.gitea.com"),
    ("1password", "ops_", f"eyJ{WORD}{{200,}}+", "developer.1password.com: service accounts"),
    ("buildkite", "bkua_", f"{HEX}{{40}}", "buildkite.com/docs: token security"),
    ("circleci", "CCIPAT_ CCIPRJ_ ccipat_", f"{ALNUM}{{22}}_{HEX}{{40}}", "circleci.com/docs: API tokens"),
    ("duffel", "duffel_live_ duffel_test_", f"{WORD}{{43}}", "duffel.com/docs"),
    ("octopus", "octt_", f"{ALNUM}{{36}}", "GitHub's list of supported secrets"),
    ("prefect", "pnu_ pnb_", f"{ALNUM}{{36}}", "docs.prefect.io: API keys"),
    ("wakatime", "waka_", UUID, "wakatime.com/developers"),
    ("zuplo", "zpka_", f"{ALNUM}{{32}}_{ALNUM}{{8}}", "zuplo.com/docs: API key format"),
    ("openai", "sk-", f"{WORD}{{20,}}+", "platform.openai.com, docs.anthropic.com, openrouter.ai: API keys"),
    ("cerebras", "csk-", f"{ALNUM}{{40,}}+", "inference-docs.cerebras.ai"),
    ("slack", "xoxa- xoxb- xoxe- xoxo- xoxp- xoxr- xoxs- xapp-", r"[A-Za-z0-9\-]{20,}+", "api.slack.com: token types"),
    ("xai", "xai-", f"{ALNUM}{{60,}}+", "docs.x.ai"),
    ("perplexity", "pplx-", f"{ALNUM}{{40,}}+", "docs.perplexity.ai"),
    ("nvidia", "nvapi-", f"{WORD}{{50,}}+", "docs.api.nvidia.com"),
    ("tavily", "tvly-", f"{WORD}{{20,}}+", "docs.tavily.com"),
    ("postman", "PMAK-", f"{HEX}{{24}}-{HEX}{{34}}", "learning.postman.com: API keys"),
    ("newrelic", "NRAK-", "[A-Z0-9]{27}", "docs.newrelic.com: API keys"),
    ("newrelic", "NRII- NRRA- NRSP-", f"{WORD}{{32,}}+", "docs.newrelic.com: API keys"),
    ("square", "sq0atp- sq0csp-", f"{WORD}{{22,}}+", "developer.squareup.com: access tokens"),
    ("google", "GOCSPX-", f"{WORD}{{28}}", "developers.google.com/identity: client secrets"),
    ("pypi", "pypi-", f"AgE{WORD}{{50,}}+", "pypi.org/help: API tokens"),
    ("mailgun", "key-", f"{HEX}{{32}}(?!{ALNUM})", "documentation.mailgun.com"),
    ("brevo", "xkeysib- xsmtpsib-", f"{HEX}{{64}}(?:-{ALNUM}{{16}})?", "developers.brevo.com"),
    ("pulumi", "pul-", f"{HEX}{{40}}", "pulumi.com/docs: access tokens"),
    ("tailscale", "tskey-", f"{WORD}{{20,}}+", "tailscale.com/kb: key prefixes"),
    ("age", "AGE-SECRET-KEY-", "1[A-Z0-9]{58}", "github.com/FiloSottile/age: the format"),
    ("heroku", "HRKU-", f"(?:AA{WORD}{{58}}|{UUID})", "devcenter.heroku.com: authentication"),
    ("contentful", "CFPAT-", f"{WORD}{{43}}", "contentful.com/developers: personal access tokens"),
    ("octopus", "API-", "(?=[A-Z]{0,24}[0-9])[A-Z0-9]{26,30}(?![A-Za-z0-9])", "octopus.com/docs: API keys"),
    ("flutterwave", "FLWSECK- FLWSECK_TEST-", f"{HEX}{{32}}", "developer.flutterwave.com: authentication"),
    ("sendgrid", "SG.", rf"{WORD}{{16,}}+\.{WORD}{{32,}}+", "docs.sendgrid.com: API keys"),
    ("google", "ya29.", f"{WORD}{{20,}}+", "developers.google.com/identity: access tokens"),
    ("vault", "hvs. hvb. hvr.", f"{WORD}{{24,}}+", "developer.hashicorp.com/vault: tokens"),
    ("terraform", ".atlasv1.", f"{WORD}{{60,}}+", "developer.hashicorp.com/terraform: API tokens"),
    ("doppler", "dp.pt. dp.st. dp.ct. dp.sa.", f"{ALNUM}{{40,}}+", "docs.doppler.com: auth token formats"),
    ("dynatrace", "dt0c01. dt0s01. dt0s16.", r"[A-Z0-9]{24}\.[A-Z0-9]{64}", "docs.dynatrace.com: token format"),
    ("dropbox", "sl.", f"(?=[A-Za-z]{{0,60}}[0-9]){WORD}{{120,}}+", "dropbox.com/developers: OAuth guide"),
    ("cloudflare", "v1.0-", f"{HEX}{{24}}-{HEX}{{146}}", "developers.cloudflare.com: origin CA keys"),
    ("yandex", "t1.", rf"{WORD}{{60,}}+\.{WORD}{{80,}}+", "yandex.cloud/docs: IAM tokens"),
    # Except the key in AWS's own documentation, which has nine characters and then EXAMPLE.
    ("aws", "AKIA ASIA ABIA ACCA", f"(?!{ALNUM}{{9}}EXAMPLE)[A-Z0-9]{{16}}(?!{ALNUM})", "docs.aws.amazon.com: IAM identifiers"),
    ("google", "AIza", f"{WORD}{{35}}", "cloud.google.com/docs: API keys"),
    ("atlassian", "ATATT3 ATCTT3", r"[A-Za-z0-9_=\-]{60,}+", "developer.atlassian.com, GitHub's list of supported secrets"),
    ("bitbucket", "ATBB", f"(?=[A-Za-z]{{0,31}}[0-9]){ALNUM}{{32}}", "support.atlassian.com: app passwords"),
    ("facebook", "EAACEdEose0cBA", f"{ALNUM}{{20,}}+", "developers.facebook.com: access tokens"),
    ("yandex", "AQVN", f"{WORD}{{35,38}}(?!{WORD})", "yandex.cloud/docs: API keys"),
    ("easypost", "EZAK", f"{ALNUM}{{54}}", "docs.easypost.com: authentication"),
    ("twilio", "SK", f"[0-9a-f]{{32}}(?!{ALNUM})", "twilio.com/docs: API keys"),
)
"""Tokens with a literal beginning. It has an anchor, one of ``_-.AS``, with at least 16 word characters behind it."""

FRAMED: tuple[tuple[str, str, str, str], ...] = (
    (
        "slack",
        r"slack\.com/",
        r"slack\.com/(?:services|workflows)/([A-Z0-9]{6,16}/[A-Z0-9]{6,16}/[A-Za-z0-9/]{16,}+)",
        "api.slack.com: webhooks",
    ),
    ("discord", "/api/webhooks/", rf"/api/webhooks/[0-9]{{16,20}}/({WORD}{{60,70}})", "discord.com/developers: webhooks"),
    ("telegram", ":AA", rf":A(?<=[0-9]:A)(A{WORD}{{33}})", "core.telegram.org/bots: authorising your bot"),
    ("razorpay", "rzp_", rf"rzp_(?:{word_start('rzp_')})(?:live|test)_({ALNUM}{{14,}}+)", "razorpay.com/docs: API keys"),
    (
        "databricks",
        "dapi",
        rf"dapi(?:{word_start('dapi')})([0-9a-f]{{32}}(?:-[0-9]{{1,2}})?)(?!{ALNUM})",
        "docs.databricks.com: personal access tokens",
    ),
    (
        "airtable",
        "pat",
        rf"pat(?:{word_start('pat')})({ALNUM}{{14}}\.[0-9a-f]{{64}})",
        "airtable.com/developers: personal access tokens",
    ),
    (
        "mailchimp",
        "-us",
        r"-us(?<=([0-9a-f]{32})-us)(?<![0-9A-Za-z][0-9a-f]{32}-us)[0-9]{1,2}(?![A-Za-z0-9])",
        "mailchimp.com/developer: API keys",
    ),
    (
        "discord",
        rf"\.(?=[AS_\-]{{0,5}}[B-RT-Za-z0-9]){WORD}{{6}}\.{WORD}{{27}}",
        rf"[MNO](?:{word_start('[MNO]')})({WORD}{{23,27}}\.(?=[AS_\-]{{0,5}}[B-RT-Za-z0-9]){WORD}{{6}}\.{WORD}{{27,38}})(?!{WORD})",
        "discord.com/developers: bot tokens",
    ),
    ("easypost", "EZTK", rf"EZTK(?:{word_start('EZTK')})({ALNUM}{{54}})", "docs.easypost.com: authentication"),
    ("jwt", "eyJ", rf"eyJ(?:{word_start('eyJ')})({WORD}{{6,}}+\.eyJ{WORD}{{4,}}+\.{WORD}*+)", "RFC 7519"),
)
"""Tokens that are recognised by text inside or before them: (kind, pattern that every line with one matches, full pattern with
a group around the secret, source). Each has a case in ``bench/masking/corpus.py`` that shows its place in the sieves."""


def token_starts() -> list[str]:
    """Return the literal beginnings of all tokens in `TOKENS`."""
    return [start for _, starts, _, _ in TOKENS for start in starts.split()]
