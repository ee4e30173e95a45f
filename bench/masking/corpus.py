"""Secrets of published shapes in the surroundings in which they are met; every value is made at run time.

A template holds parts such as ``{A36}``: an alphabet and a length. ``A`` are letters and digits, ``W`` these with ``-`` and
``_``, ``H`` hex digits, ``U`` capitals and digits, ``L`` small letters, ``B`` the signs of base64, ``D`` digits. What stands
between ``<<`` and ``>>`` is the secret, none of which may stay. The shapes follow what the providers publish about their
tokens, and the rules of public scanners.
"""

from __future__ import annotations

import base64
import random
import re
import string
from collections.abc import Iterator
from urllib.parse import quote

_ALPHABETS = {
    "A": string.ascii_letters + string.digits,
    "W": string.ascii_letters + string.digits + "-_",
    "H": "0123456789abcdef",
    "U": string.ascii_uppercase + string.digits,
    "L": string.ascii_lowercase,
    "B": string.ascii_letters + string.digits + "+/",
    "D": string.digits,
}
_PART = re.compile(r"\{([AWHULBD])(\d+)\}")

TOKENS = """
    ghp_<<{A36}>> gho_<<{A36}>> ghu_<<{A36}>> ghs_<<{A36}>> ghr_<<{A36}>> github_pat_<<{A22}_{A59}>> glpat-<<{W20}>>
    glptt-<<{H40}>> glrt-<<{W20}>> gldt-<<{W20}>> glcbt-<<{W24}>> glsoat-<<{W20}>> sk-ant-<<api03-{W93}AA>>
    sk-ant-<<oat01-{W93}AA>>
    sk-proj-<<{W48}T3BlbkFJ{W48}>> sk-svcacct-<<{W60}>> sk-<<{A20}T3BlbkFJ{A20}>> sk-or-v1-<<{H64}>> sk_live_<<{A24}>>
    sk_test_<<{A24}>> rk_live_<<{A24}>> whsec_<<{A32}>> xoxb-<<{D11}-{D11}-{A24}>>
    xoxp-<<{D11}-{D11}-{D11}-{H32}>>
    xapp-<<1-{U11}-{D13}-{H64}>> AKIA<<{U16}>> ASIA<<{U16}>> AIza<<{W35}>> ya29.<<{W60}>> GOCSPX-<<{W28}>> npm_<<{A36}>>
    pypi-<<AgEIcHlwaS5vcmc{W120}>> hf_<<{A34}>> SK<<{H32}>> SG.<<{W22}.{W43}>> dop_v1_<<{H64}>> shpat_<<{H32}>>
    lin_api_<<{A40}>>
    figd_<<{W40}>> rubygems_<<{H48}>> dckr_pat_<<{W27}>> gsk_<<{A52}>> r8_<<{A37}>> glc_<<{A60}>> glsa_<<{A32}_{H8}>>
    sntrys_<<{A80}>> sbp_<<{H40}>> ntn_<<{A46}>> secret_<<{A43}>> phx_<<{A43}>> xai-<<{A80}>> pplx-<<{A48}>> nvapi-<<{W64}>>
    tvly-<<{A32}>> NRAK-<<{U27}>> PMAK-<<{H24}-{H34}>> sq0atp-<<{W22}>> sq0csp-<<{W43}>> key-<<{H32}>> xkeysib-<<{H64}-{A16}>>
    pul-<<{H40}>> tskey-auth-<<{A30}>> AGE-SECRET-KEY-<<1{U58}>> hvs.<<{W90}>> dp.pt.<<{A43}>> ATATT3<<xFfGF0{W180}>>
    https://hooks.slack.com/services/<<T{U8}/B{U8}/{A24}>> {D10}:AA<<{W33}>> dapi<<{H32}>> pat<<{A14}.{H64}>>
    <<{H32}>>-us12
    pscale_tkn_<<{W43}>> pscale_pw_<<{W43}>> pscale_oauth_<<{W43}>> pcsk_<<{A6}_{A63}>> lsv2_pt_<<{H32}_{H10}>>
    lsv2_sk_<<{H32}_{H10}>> fo1_<<{W43}>> fm2_<<lJPECAAAAAAAA{B110}>> sqp_<<{H40}>> squ_<<{H40}>> sqa_<<{H40}>>
    dt0c01.<<{U24}.{U64}>>
    dt0s01.<<{U24}.{U64}>> M<<{A23}.G{A5}.{W38}>> O<<{A25}.G{A5}.{W30}>> https://discord.com/api/webhooks/{D18}/<<{W68}>>
    https://AC{H32}:<<{H32}>>@api.twilio.com vercel_<<{A24}>> nfp_<<{A36}>> HRKU-<<AA{W58}>> v1.0-<<{H24}-{H146}>>
    CFPAT-<<{W43}>>
    ATCTT3<<xFfGN0{W170}>> ATBB<<{A32}>> jina_<<{A60}>> csk-<<{A48}>> tgp_v1_<<{W43}>>
    sntryu_<<{H64}>> sgp_<<{H16}_{H40}>> gitea_<<{H40}>> rdme_<<{L12}{H58}>> doo_v1_<<{H64}>> shpss_<<{H32}>> shpca_<<{H32}>>
    EAACEdEose0cBA<<{A60}>>
    NRII-<<{W32}>> ops_<<eyJ{A250}>> glffct-<<{W20}>> glagent-<<{W50}>> gloas-<<{H64}>>
    hvb.<<{W140}>> {A14}.atlasv1.<<{W60}>> bkua_<<{H40}>> ccipat_<<{A22}_{H40}>> CCIPAT_<<{A22}_{H40}>>
    sl.<<{W140}>> duffel_live_<<{W43}>> EZAK<<{A54}>> EZTK<<{A54}>> FLWSECK-<<{H32}>>-X shppa_<<{H32}>>
    rzp_live_<<{A14}>> sk-lf-<<{H8}-{H4}-{H4}-{H4}-{H12}>>
    eyJhbGciOiJIUzI1NiJ9.<<eyJzdWIiOiIxMjM0NTY3ODkwIn0.{W43}>> octt_<<{A36}>> API-<<{U26}>> prefect_<<pnu_{A36}>>
    pnu_<<{A36}>> AQVN<<{W35}>> t1.<<{W80}.{W86}>> waka_<<{H8}-{H4}-{H4}-{H4}-{H12}>> zpka_<<{A32}_{A8}>>
"""
"""Bare tokens."""

ASSIGNED = r"""
    aws_secret_access_key = <</{B39}>>
    AWS_SECRET_ACCESS_KEY=<</{B39}>>
    "SecretAccessKey": "<</{B39}>>"
    API_KEY=<<{L24}>>
    DB_PASSWORD=<<{L14}>>
    export STRIPE_SECRET=<<{L20}>>
    SMTP_PASS=<<{L4}{D2}{A4}>>
    SMTP_PASS="<<{A12}>>"
    smtp_pass: <<{A12}>>
    PGPASS=<<{A10}>>
    "pass": "<<{A12}>>"
    passphrase: "<<{L6}-{L6}-{D2}>>"
    KEY_PASSPHRASE=<<{A16}>>
    app login --password <<{L5}{D3}>>
    deploy --token <<{A20}>>
    vault login --password=<<{L5}{D3}>>
    tool --api-key <<{A24}>> run
    curl -u admin:<<{A10}>> https://api.example.org/v1
    curl -s -X POST --user admin:<<{A10}>> https://api.example.org/v1
    curl https://api.example.org -u 'bot:<<{A14}>>'
    sshpass -p <<{L4}{D3}>> ssh root@10.0.0.5
    sshpass -p '<<{A9}>>' scp a b
    mysql -u root -p<<{L5}{D3}>> app
    mysqldump --single-transaction -uroot -p'<<{A10}>>' app
    mariadb -h db -p<<{A8}>> app
    Cookie: session=<<{A32}>>
    Cookie: theme=dark; sid=<<{H40}>>
    Set-Cookie: session_id=<<{A32}>>; Path=/; HttpOnly
    set-cookie: auth=<<{W40}>>; Max-Age=3600
    curl -H 'Cookie: PHPSESSID=<<{L13}{H13}>>' https://example.org
    curl --cookie "sid=<<{A26}>>" https://example.org
    https://b.s3.amazonaws.com/k?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Date=20260101T000000Z&X-Amz-Signature=<<{H64}>>
    https://storage.googleapis.com/b/k?X-Goog-Expires=900&X-Goog-Signature=<<{H256}>>
    https://a.blob.core.windows.net/c?sv=2022-11-02&ss=b&srt=sco&sp=rl&sig=<<{A20}%2B{A20}%3D>>
    https://a.blob.core.windows.net/c/b?sp=r&st=2026-01-01T00:00:00Z&sig=<<{A43}%3D>>&sr=b
    https://d1.cloudfront.net/x?Expires=1700000000&Signature=<<{A60}~{A60}__>>&Key-Pair-Id=K1
    git clone https://<<{H40}>>@github.com/o/r.git
    https://<<{A32}>>@dev.azure.com/o/p
    https://user:<<{A6}%40{A6}>>@example.org/x
    machine api.example.org login bot password <<{A12}>>
    machine h\n  login bot\n  password <<{A12}>>
    # ~/.pgpass\ndb.example.org:5432:app:deploy:<<{A12}>>
    *:*:*:postgres:<<{A12}>>
    <password><<{A10}>></password>
    <Password><<{L6}{D4}>></Password>
    <apiKey><<{A32}>></apiKey>
    {"auths":{"ghcr.io":{"auth":"<<=b64:bot:{A20}>>"}}}
    "auth": "<<=b64:user:{A12}>>"
    //registry.npmjs.org/:_auth=<<=b64:me:{A16}>>
    _auth = "<<=b64:me:{A16}>>"
    //registry.npmjs.org/:_authToken=<<{H8}-{H4}-{H4}-{H4}-{H12}>>
    Authorization: Basic <<=b64:me:{A16}>>
    Authorization: Bearer <<{A40}>>
    X-Api-Key: <<{A32}>>
    X-Auth-Token: <<{H32}>>
    AccountKey=<<{B86}==>>;EndpointSuffix=core.windows.net
    Server=db;User Id=sa;Password=<<{A8}!{D2}>>;
    Endpoint=sb://x.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey=<<{B43}=>>
    postgres://app:<<{A16}>>@db.internal/app
    mongodb+srv://app:<<{A16}>>@c0.mongodb.net/app
    redis://:<<{A16}>>@cache:6379/0
    password = "<<{A12}>>"
    'password': '<<{A12}>>'
    client_secret=<<{A32}>>
    refresh_token: <<{A40}>>
    private_key: <<{A40}>>
    api_key: str = "<<{A32}>>"
    HEROKU_API_KEY=<<{H8}-{H4}-{H4}-{H4}-{H12}>>
    CLOUDFLARE_API_TOKEN=<<{W40}>>
    DD_API_KEY=<<{H32}>>
    TWILIO_AUTH_TOKEN=<<{H32}>>
    -----BEGIN RSA PRIVATE KEY-----\n<<{B64}\n{B64}>>\n-----END RSA PRIVATE KEY-----
    -----BEGIN OPENSSH PRIVATE KEY-----\n<<{B70}\n{B70}>>
"""

_CARRIED = (
    "ghp_<<{A36}>>",
    "AKIA<<{U16}>>",
    "sk-ant-<<api03-{W93}AA>>",
    "npm_<<{A36}>>",
    "glpat-<<{W20}>>",
    "DB_PASSWORD=<<{A16}>>",
)
"""What is disguised: three providers' keys of different anchors, one longer, one shorter, one password."""

Case = tuple[str, str, tuple[str, ...]]
"""A name, a text, and pieces none of which may stay in the text."""


def _filled(template: str, source: random.Random) -> str:
    def part(found: re.Match[str]) -> str:
        letters = "".join(source.choices(_ALPHABETS[found[1]], k=int(found[2])))
        # A key of letters alone is drawn now and then, but no provider gives one out.
        return letters if found[1] in "LDU" or len(letters) < 6 else letters[0] + "7" + letters[2:-2] + "4" + letters[-1]

    return _PART.sub(part, template)


def _case(template: str, source: random.Random) -> tuple[str, tuple[str, ...]]:
    filled = _filled(template.replace("\\n", "\n"), source)
    secrets = re.findall(r"<<(.*?)>>(?!>)", filled, re.DOTALL)
    text = re.sub(r"<<(.*?)>>(?!>)", lambda found: _made(found[1]), filled, flags=re.DOTALL)
    return text, tuple(piece for secret in secrets for piece in _made(secret).split("\n"))


def _made(secret: str) -> str:
    return base64.b64encode(secret[5:].encode()).decode() if secret.startswith("=b64:") else secret


def _disguised(source: random.Random) -> Iterator[Case]:
    for template in _CARRIED:
        text, secrets = _case(template, source)
        secret, name = secrets[0], template.split("<<", maxsplit=1)[0]
        middle = len(text) - len(secret) // 2
        yield f"colour {name}", f"\x1b[32m{text}\x1b[0m", (secret,)
        yield f"bold inside {name}", f"{text[:middle]}\x1b[1m{text[middle:]}\x1b[0m", (secret[:8], secret[-8:])
        yield f"escaped colour {name}", rf'{{"a": "\u001b[31m{text}\u001b[0m"}}', (secret,)
        yield f"zero width {name}", f"{text[:middle]}\u200b{text[middle:]}", (secret[:8], secret[-8:])
        yield f"zero width prefix {name}", f"{text[:2]}\u2060{text[2:]}", (secret,)
        if "PASSWORD" in name:
            continue
        yield f"two lines {name}", f"{text[:middle]}\n{text[middle:]}", (secret[:8], secret[-8:])
        yield f"two lines of a shell {name}", f"{text[:middle]}\\\n{text[middle:]}", (secret[:8], secret[-8:])
        if len(text) > 32:
            yield f"base64 {name}", base64.b64encode(text.encode()).decode(), (base64.b64encode(text.encode()).decode()[8:-8],)
        yield f"base64 of a line {name}", (told := base64.b64encode(f"export KEY={text}\n".encode()).decode()), (told[16:-8],)
        yield f"hex {name}", text.encode().hex(), (text.encode().hex()[8:],)
        yield f"percent {name}", "".join(f"%{ord(sign):02X}" for sign in text), ("".join(f"%{ord(s):02X}" for s in secret),)
        yield f"percent where needed {name}", quote(text, safe="").replace("_", "%5F").replace("-", "%2D"), (secret[-10:],)
        yield (
            f"backslash x {name}",
            "".join(f"\\x{ord(sign):02x}" for sign in text),
            ("".join(f"\\x{ord(sign):02x}" for sign in secret[-8:]),),
        )


SURROUNDINGS = {
    "first": ("{}", "use {} here", "line\n{}\n", "export X={}", '{{"k": "{}"}}'),
    "second": ("# {}", "({})", "value:\t{}", "- {}\n- other", "'{}',", "echo {} | sort", "é{}"),
}
"""In what a bare token stands; rules were made on the first list only."""


def shapes() -> list[tuple[str, str]]:
    """Return (name, template) of every shape."""
    bare = TOKENS.split()
    rows = [row.strip() for row in ASSIGNED.strip().splitlines()]
    return [(row, row) for row in (*bare, *rows)]


def cases(half: str, seed: int, draws: int) -> Iterator[Case]:
    """Yield every shape of one half, ``draws`` times: every other shape is in the second half, all disguises in both."""
    source = random.Random(f"{half}{seed}")
    bare = set(TOKENS.split())
    for number, (name, template) in enumerate(shapes()):
        if (number % 2 == 1) != (half == "second"):
            continue
        for _ in range(draws):
            text, secrets = _case(template, source)
            around = source.choice(SURROUNDINGS[half]) if template in bare else "{}"
            yield name, around.format(text), secrets
    for _ in range(draws):
        yield from _disguised(source)
