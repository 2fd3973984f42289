"""Made-up keys in the shapes that services document, passwords as people write them down, and labelled lines.

Every sample is put together from parts, so that no scanner takes these files for a leak. The shapes are those of the
providers' own documentation and of the rules of public scanners; each is a function of a seeded generator.
"""

import base64
import json
import random
import re
import string
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

Chance = random.Random
HEX, SMALL, BIG, DIGITS = "0123456789abcdef", string.ascii_lowercase, string.ascii_uppercase, string.digits
ALNUM = string.ascii_letters + DIGITS
URL = ALNUM + "_-"
BASE64 = ALNUM + "+/"
BECH32 = "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L"
SAMPLES_EACH = 60
FOLDER = Path(__file__).parents[1] / "secrets/lines"
_ALPHABETS = {"h": HEX, "b": ALNUM, "d": DIGITS}


def word(chance: Chance, length: int, alphabet: str = ALNUM) -> str:
    return "".join(chance.choice(alphabet) for _ in range(length))


def shape(*parts: str | tuple[int, str]) -> Callable[[Chance], str]:
    """A key of fixed parts and of (length, alphabet)."""
    return lambda chance: "".join(part if isinstance(part, str) else word(chance, *part) for part in parts)


def _jwt(chance: Chance) -> str:
    head, body = (
        base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode()
        for part in ({"alg": "HS256", "typ": "JWT"}, {"sub": word(chance, 10, DIGITS), "name": word(chance, 8, SMALL)})
    )
    return f"{head}.{body}.{word(chance, 43, URL)}"


def _pem(kind: str) -> Callable[[Chance], str]:
    def made(chance: Chance) -> str:
        lines = "\n".join(word(chance, 64, BASE64) for _ in range(chance.randint(3, 12)))
        return f"-----BEGIN {kind}-----\n{lines}\n-----END {kind}-----"

    return made


def _service_account(chance: Chance) -> str:
    key = "-----BEGIN PRIVATE " + "KEY-----\\n" + word(chance, 200, BASE64) + "\\n-----END PRIVATE " + "KEY-----\\n"
    sample = json.dumps({"type": "service_account", "private_key_id": word(chance, 40, HEX), "private_key": "@"})
    return sample.replace("@", key)


def _pick(*makers: Callable[[Chance], str]) -> Callable[[Chance], str]:
    return lambda chance: chance.choice(makers)(chance)


SERVICES: dict[str, Callable[[Chance], str]] = {
    "Hugging Face": shape("hf_", (34, string.ascii_letters)),
    "Hugging Face with digits": shape("hf_", (34, ALNUM)),
    "OpenRouter": shape("sk-or-v1-", (64, HEX)),
    "DigitalOcean": _pick(*(shape(f"do{kind}_v1_", (64, HEX)) for kind in "opr")),
    "age": shape("AGE-SECRET-KEY-1", (58, BECH32)),
    "OpenAI": shape("sk-", (20, ALNUM), "T3BlbkFJ", (20, ALNUM)),
    "OpenAI legacy": shape("sk-", (48, ALNUM)),
    "OpenAI project": _pick(*(shape(f"sk-{kind}-", (74, URL), "T3BlbkFJ", (74, URL)) for kind in ("proj", "svcacct"))),
    "OpenAI project, short": shape("sk-proj-", (48, ALNUM)),
    "DeepSeek": shape("sk-", (32, HEX)),
    "Anthropic": _pick(shape("sk-ant-api03-", (93, URL), "AA"), shape("sk-ant-admin01-", (93, URL), "AA")),
    "Google API": shape("AIza", (35, URL)),
    "Google OAuth secret": shape("GOCSPX-", (28, URL)),
    "Google access token": shape("ya29.", (120, URL)),
    "GCP service account": _service_account,
    "AWS access key": _pick(*(shape(kind, (16, BIG + "234567")) for kind in ("AKIA", "ASIA"))),
    "AWS secret": shape("aws_secret_access_key = ", (40, BASE64)),
    "Azure storage": shape("AccountKey=", (86, BASE64), "=="),
    "Azure client secret": shape((3, ALNUM), "8Q~", (34, ALNUM + "_~.-")),
    "Azure SAS": shape(
        "https://a.blob.core.windows.net/c?sv=2022-11-02&sr=c&sig=", (20, ALNUM), "%2B", (20, ALNUM), "%3D"
    ),
    "Azure DevOps": shape((76, ALNUM), "AZDO", (4, ALNUM)),
    "GitHub": _pick(*(shape(f"gh{kind}_", (36, ALNUM)) for kind in "pousr")),
    "GitHub fine-grained": shape("github_pat_", (22, ALNUM), "_", (59, ALNUM)),
    "GitLab": _pick(*(shape(f"{kind}-", (20, URL)) for kind in ("glpat", "gldt", "glrt", "glft", "glsoat"))),
    "Slack": _pick(
        *(shape(f"xox{kind}-", (11, DIGITS), "-", (12, DIGITS), "-", (24, ALNUM)) for kind in "bpars"),
        shape("xapp-1-A", (10, BIG + DIGITS), "-", (13, DIGITS), "-", (64, HEX)),
        shape("https://hooks.slack.com/services/T", (8, BIG + DIGITS), "/B", (8, BIG + DIGITS), "/", (24, ALNUM)),
    ),
    "Stripe": _pick(*(shape(kind, (24, ALNUM)) for kind in ("sk_live_", "rk_live_", "sk_test_", "rk_test_"))),
    "Stripe webhook": shape("whsec_", (32, ALNUM)),
    "Twilio": shape("SK", (32, HEX)),
    "SendGrid": shape("SG.", (22, URL), ".", (43, URL)),
    "Mailgun": _pick(shape("key-", (32, HEX)), shape((32, HEX), "-", (8, HEX), "-", (8, HEX))),
    "Mailchimp": shape((32, HEX), "-us12"),
    "Brevo": shape("xkeysib-", (64, HEX), "-", (16, ALNUM)),
    "Resend": shape("re_", (8, ALNUM), "_", (24, ALNUM)),
    "npm": shape("npm_", (36, ALNUM)),
    "PyPI": shape("pypi-AgEIcHlwaS5vcmc", (80, URL)),
    "RubyGems": shape("rubygems_", (48, HEX)),
    "Docker": _pick(shape("dckr_pat_", (27, URL)), shape("dckr_oat_", (32, URL))),
    "Telegram": shape((10, DIGITS.replace("0", "")), ":AA", (33, URL)),
    "Discord bot": shape("M", (23, ALNUM), ".", (6, URL), ".", (38, URL)),
    "Discord webhook": shape("https://discord.com/api/webhooks/", (19, "123456789"), "/", (68, URL)),
    "Cloudflare token": shape("CLOUDFLARE_API_TOKEN=", (40, URL)),
    "Cloudflare origin CA": shape("v1.0-", (24, HEX), "-", (146, HEX)),
    "Fly.io": _pick(shape("fo1_", (43, URL)), shape("FlyV1 fm2_", (200, BASE64)), shape("fm1r_", (120, BASE64))),
    "Vercel": _pick(shape("vcp_", (56, ALNUM)), shape("vck_", (56, ALNUM)), shape("VERCEL_TOKEN=", (24, ALNUM))),
    "Supabase": _pick(shape("sbp_", (40, HEX)), shape("sb_secret_", (22, URL), "_", (8, ALNUM))),
    "Databricks": _pick(shape("dapi", (32, HEX)), shape("dapi", (32, HEX), "-2")),
    "Linear": _pick(shape("lin_api_", (40, ALNUM)), shape("lin_oauth_", (64, HEX))),
    "Notion": _pick(shape("ntn_", (11, DIGITS), (35, ALNUM)), shape("secret_", (43, ALNUM))),
    "Groq": shape("gsk_", (52, ALNUM)),
    "Replicate": shape("r8_", (37, ALNUM)),
    "xAI": shape("xai-", (80, ALNUM)),
    "Mistral": shape("MISTRAL_API_KEY=", (32, ALNUM)),
    "Perplexity": shape("pplx-", (48, ALNUM)),
    "Voyage": shape("pa-", (43, URL)),
    "Jina": shape("jina_", (32, HEX), (28, URL)),
    "Cohere": shape("cohere api key: ", (40, ALNUM)),
    "Pinecone": shape("pcsk_", (6, ALNUM), "_", (63, ALNUM)),
    "Together": shape("tgp_v1_", (43, URL)),
    "Fireworks": shape("fw_", (24, ALNUM)),
    "Cerebras": shape("csk-", (48, SMALL + DIGITS)),
    "ElevenLabs": shape("sk_", (48, HEX)),
    "Tavily": shape("tvly-dev-", (32, ALNUM)),
    "Firecrawl": shape("fc-", (32, HEX)),
    "NVIDIA": shape("nvapi-", (64, URL)),
    "LangSmith": shape("lsv2_pt_", (32, HEX), "_", (10, HEX)),
    "Langfuse": shape("sk-lf-", (8, HEX), "-", (4, HEX), "-", (4, HEX), "-", (4, HEX), "-", (12, HEX)),
    "Tailscale": _pick(*(shape(f"tskey-{k}-k", (10, ALNUM), "CNTRL-", (32, ALNUM)) for k in ("auth", "api", "client"))),
    "WireGuard": _pick(shape("PrivateKey = ", (43, BASE64), "="), shape("[Peer]\nPresharedKey = ", (43, BASE64), "=")),
    "SSH key": _pem("OPENSSH PRIVATE " + "KEY"),
    "PEM key": _pick(*(_pem(f"{kind}PRIVATE " + "KEY") for kind in ("", "RSA ", "EC ", "DSA ", "ENCRYPTED "))),
    "PGP key": _pem("PGP PRIVATE " + "KEY BLOCK"),
    "JWT": _jwt,
    "Basic auth URL": shape("https://", (6, SMALL), ":", (12, ALNUM + "!$*"), "@git.example.org/x.git"),
    "Database URL": _pick(
        *(
            shape(f"{kind}://app:", (14, ALNUM + "!$*._~-"), "@db.example.org:5432/main")
            for kind in ("postgres", "postgresql+asyncpg", "mysql", "mongodb+srv", "amqps")
        ),
        shape("redis://:", (16, ALNUM), "@cache.example.org:6379/0"),
    ),
    "Heroku": shape("HRKU-AA", (58, URL)),
    "Netlify": shape("nfp_", (36, ALNUM)),
    "Vault": shape("hvs.", (95, URL)),
    "Terraform": shape((14, ALNUM), ".atlasv1.", (67, URL)),
    "Grafana": _pick(shape("glsa_", (32, ALNUM), "_", (8, HEX)), shape("glc_", (60, BASE64))),
    "Sentry": _pick(shape("sntryu_", (64, HEX)), shape("sntrys_eyJ", (90, BASE64), "_", (43, BASE64))),
    "New Relic": shape("NRAK-", (27, BIG + DIGITS)),
    "Datadog": shape("DD_API_KEY=", (32, HEX)),
    "Shopify": _pick(*(shape(f"shp{kind}_", (32, HEX)) for kind in ("at", "ca", "pa", "ss"))),
    "Square": _pick(shape("sq0csp-", (43, URL)), shape("EAAA", (60, URL))),
    "Figma": shape("figd_", (40, URL)),
    "Airtable": shape("pat", (14, ALNUM), ".", (64, HEX)),
    "Atlassian": shape("ATATT3", (186, URL)),
    "HubSpot": shape("pat-na1-", (8, HEX), "-", (4, HEX), "-", (4, HEX), "-", (4, HEX), "-", (12, HEX)),
    "Dropbox": shape("sl.", (130, URL)),
    "Doppler": shape("dp.pt.", (43, ALNUM)),
    "Postman": shape("PMAK-", (24, HEX), "-", (34, HEX)),
    "Pulumi": shape("pul-", (40, HEX)),
    "PlanetScale": _pick(shape("pscale_tkn_", (43, URL)), shape("pscale_pw_", (43, URL))),
    "Prefect": shape("pnu_", (36, ALNUM)),
    "1Password": shape(
        "A3-", *(part for n in (6, 6, 5, 5, 5, 5) for part in ((n, BIG + DIGITS), "-")), (5, BIG + DIGITS)
    ),
    "Dynatrace": shape("dt0c01.", (24, BIG + DIGITS), ".", (64, BIG + DIGITS)),
    "Alibaba": shape("LTAI", (20, ALNUM)),
    "Sourcegraph": shape("sgp_", (40, HEX)),
    "Nostr": shape("nsec1", (58, BECH32.lower())),
    "Authorization header": _pick(
        shape("Authorization: Bearer ", (40, URL)), shape("Authorization: Basic ", (32, ALNUM), "==")
    ),
}
"""A maker of keys for each service."""

AROUND = (
    "For later: {}",
    "- {} (do not share)",
    "`{}`",
    "the new one: {}, works",
    "| prod | {} |",
    '{{"value": "{}"}}',
    "# Accounts\n\n{}\n\nand nothing else",
    "**{}**",
    "({})",
)
"""Where in a note a key may stand."""

LABELS = (
    "password: {}", "Password: {}", "PASSWORD={}", "password = {}", 'password = "{}"', "password='{}'",
    "**Password:** `{}`", "- password: {}", "pwd={}", "pwd: {}", "PW: {}", "pass: {}", "passwd {}", "passphrase: {}",
    "passcode: {}", "Passwort: {}", "Kennwort: {}", "| Passwort | {} |", "Das Passwort ist {}",
    "Das Passwort lautet {}.", "WLAN-Passwort: {}", "WLAN-Schlüssel: {}", "密码：{}", "密码是{}", "口令：{}",
    "密碼: {}", "パスワード：{}", "パスワードは{}です", "비밀번호: {}", "Пароль: {}", "пароль — {}",
    "mot de passe : {}", "mdp: {}", "Le mot de passe est {}", "contraseña: {}", "La contraseña es {}", "clave: {}",
    "senha: {}", "A senha é {}", "wachtwoord: {}", "hasło: {}", "şifre: {}", "lösenord: {}", "heslo: {}",
    "the wifi password is {}", "The wifi password is {}.", "wifi password (guest): {}", "password for the router: {}",
    "The password for the NAS is {}", "the new password is now {}", "changed the password to {}",
    "Wi-Fi: HomeNet / password {}", "user: anna, password: {}", "anna's password -> {}", "DB_PASSWORD={}",
    "export PGPASSWORD='{}'", "mysql --password={} -u root", "sshpass -p {} ssh nas", "password: {}, user: anna",
)  # fmt: skip
"""How people write a password down."""

SIGNS = "!@#$%^&*?-_+."


def password(chance: Chance) -> str:
    """A password as managers or people make them."""
    kind = chance.randrange(5)
    if kind == 0:
        return word(chance, chance.randint(8, 20))
    if kind == 1:
        return word(chance, chance.randint(8, 20), ALNUM + SIGNS)
    if kind == 2:
        return word(chance, chance.randint(10, 16), string.ascii_letters)
    base = "".join(
        chance.choice(("River", "lantern", "Copper", "violet", "Harbor", "Sommer", "maple", "Falcon", "tiger", "Pass"))
        for _ in range(chance.randint(1, 2))
    )
    return f"{base}{chance.choice(SIGNS) if kind == 4 else ''}{chance.randint(10, 2999)}{chance.choice(('', '!', '#'))}"


def labelled(chance: Chance, form: str) -> tuple[str, str]:
    """A note line in `form`, and the password in it."""
    value = password(chance)
    return form.replace("{}", value), value


def lines(name: str) -> Iterator[tuple[str, list[tuple[int, int]]]]:
    """Yield each text of a set, with the spans that are secrets.

    A secret stands in brackets in the file; random values are filled in from a seed.
    """
    for number, row in enumerate((FOLDER / f"{name}.txt").read_text(encoding="utf-8").splitlines()[1:]):
        parts = re.split(r"\{([A-Za-z ]+?)(\d*)\}", row)
        chance = random.Random(f"{name} {number}")
        values = (_value(parts[at], parts[at + 1], chance) for at in range(1, len(parts), 3))
        filled = "".join(parts[::3][:1]) + "".join(a + b for a, b in zip(values, parts[3::3], strict=True))
        text, spans = "", []
        for part in re.split("(⟦[^⟧]*⟧)", filled.replace("⏎", "\n")):
            value = part.strip("⟦⟧")
            if value != part:
                spans.append((len(text), len(text) + len(value)))
            text += value
        yield text, spans


def _value(name: str, length: str, chance: random.Random) -> str:
    if name == "uuid":
        return str(uuid.UUID(int=chance.getrandbits(128), version=4))
    return word(chance, int(length), _ALPHABETS[name]) if length else SERVICES[name](chance)
