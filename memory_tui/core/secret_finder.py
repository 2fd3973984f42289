"""Text that looks like a password or a key: its kind, its position, never the secret itself.

Three things are looked for: keys in the form that their maker documents (detect-secrets' patterns, run on strings, and
a table here of the services that it does not know), values after a word like password, in many languages and in
Markdown, and long words that are too random to be made up by a person. Nothing is verified over the network. Its
plugins for hexadecimal digits and public addresses are left out, because notes are full of commits, digests and hosts
that are no secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from detect_secrets.plugins.base import RegexBasedDetector
    from detect_secrets.plugins.high_entropy_strings import Base64HighEntropyString

LABELLED, RANDOM = "labelled password or key", "random-looking text"
_LEFT_OUT = frozenset({"Public IP (ipv4)", "Basic Auth Credentials"})
"""Too common to be a secret, and found better by a form of ours."""
_LONGEST_PIECE = 8000
"""Characters that are looked at together, because some patterns take quadratic time; cut between lines where it can."""

_WINDOW, _OVERLAP = 600, 200
"""Characters of a long line in which a label and its value are looked for together, and those looked at twice."""

# What every match of a plugin's patterns holds, in lower case: most texts are ruled out by it fifty times faster.
_WORDS = ("key", "pass", "pwd", "pw", "token")
_HOLDS: Mapping[str, tuple[str, ...]] = {
    "Artifactory Credentials": ("akc", *(f"ap{sign}" for sign in "0123456789abcdef")),
    "AWS Access Key": ("a3t", "abia", "acca", "akia", "asia", "aws"),
    "Azure Storage Account access key": ("accountkey=",),
    "Cloudant Credentials": (*_WORDS, "cloudant.com"),
    "GitHub Token": ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
    "IBM Cloud IAM Key": _WORDS,
    "IBM COS HMAC Credentials": ("secret",),
    "JSON Web Token": ("eyj",),
    "Mailchimp Access Key": ("-us",),
    "NPM tokens": ("_authtoken",),
    "OpenAI Token": ("t3blbkfj",),
    "Private Key": ("private key", "putty"),
    "PyPI Token": ("pypi-",),
    "SendGrid API Key": ("sg.",),
    "Slack Token": ("xox", "slack.com"),
    "SoftLayer Credentials": (*_WORDS, "softlayer.com"),
    "Square OAuth Secret": ("sq0csp",),
    "Stripe Access Key": ("k_live_",),
    "Telegram Bot Token": (":",),
}
_HOLDS_BY_WORD = tuple((word, kind) for kind, words in _HOLDS.items() for word in words)
MASK = "***"


class _Form(NamedTuple):
    """How the keys of a maker look: a match holds one of `holds`, in lower case; group 1, or all of it, is the key."""

    kind: str
    holds: tuple[str, ...]
    pattern: str


# Documented by the makers, and in the public rules of gitleaks and trufflehog. A key begins where a word does.
_FORMS = (
    _Form("age secret key", ("age-secret-key-",), r"AGE-SECRET-KEY-(?:PQ-)?1[0-9A-Z]{40,}"),
    _Form("Airtable token", ("pat",), r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}"),
    _Form("Alibaba Cloud key", ("ltai",), r"LTAI[A-Za-z0-9]{12,24}(?![A-Za-z0-9])"),
    _Form("Anthropic key", ("sk-ant-",), r"sk-ant-[\w-]{20,}"),
    _Form("Atlassian token", ("atatt3", "atctt3", "atbb"), r"(?:AT[AC]TT3[\w=-]{60,}|ATBB[A-Za-z0-9]{32})"),
    _Form("Azure DevOps token", ("azdo",), r"[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}"),
    _Form("Azure client secret", ("q~",), r"(?<![\w~.-])[\w~.-]{3}\dQ~[\w~.-]{31,34}"),
    _Form("Azure signature", ("sig=",), r"(?<=[?&])sig=((?:[A-Za-z0-9/+=]|%[0-9A-Fa-f]{2}){30,})"),
    _Form("Azure access key", ("sharedaccesskey=",), r"SharedAccessKey=([A-Za-z0-9+/=]{30,})"),
    _Form(
        "Basic Auth Credentials",
        ("://",),
        r"[A-Za-z][A-Za-z0-9+.-]{1,20}://[^\s:/@\"'`<>|]{0,80}:([^\s/\"'`<>|]{3,120})@(?=[\w\[])",
    ),
    _Form("Brevo key", ("xkeysib-", "xsmtpsib-"), r"x(?:key|smtp)sib-[0-9a-f]{64}-[A-Za-z0-9]{12,}"),
    _Form("Buildkite token", ("bkua_",), r"bkua_[0-9a-f]{40}"),
    _Form("Cerebras key", ("csk-",), r"csk-[a-z0-9]{40,}"),
    _Form("CircleCI token", ("ccipat_", "cciprj_"), r"CCIP(?:AT|RJ)_[A-Za-z0-9]{20,}_[0-9a-f]{40}"),
    _Form(
        "Cloudflare token",
        ("v1.0-", "cfut_", "cfat_", "cfk_"),
        r"(?:v1\.0-[0-9a-f]{24}-[0-9a-f]{146}"
        r"|cf(?:ut|at|k)_[\w-]{30,})",
    ),
    _Form("Databricks token", ("dapi", "dose"), r"(?:dapi|dose)[0-9a-f]{32}(?:-\d)?"),
    _Form("DigitalOcean token", ("_v1_",), r"do[oprs]_v1_[0-9a-f]{64}"),
    _Form("Discord Bot Token", (".",), r"[MNO][A-Za-z\d_-]{23,27}\.[\w-]{6}\.[\w-]{27,}"),
    _Form("Discord webhook", ("/api/webhooks/",), r"discord(?:app)?\.com/api/webhooks/\d+/([\w-]{40,})"),
    _Form("Docker token", ("dckr_",), r"dckr_[a-z]{3}_[\w-]{20,}"),
    _Form("Doppler token", ("dp.",), r"dp\.(?:pt|st|ct|scim|audit|sa|said)\.(?:[\w-]{2,35}\.)?[A-Za-z0-9]{40,44}"),
    _Form("Dropbox token", ("sl.",), r"sl\.(?:u\.)?[\w-]{100,}"),
    _Form("Dynatrace token", ("dt0",), r"dt0[a-z]\d\d\.[A-Z0-9]{8,24}\.[A-Z0-9]{64}"),
    _Form("ElevenLabs key", ("sk_",), r"sk_[0-9a-f]{48}"),
    _Form("Facebook token", ("eaa",), r"EAA[A-Za-z0-9]{80,}"),
    _Form("Figma token", ("figd_", "figo_"), r"fig[do]_[\w-]{30,}"),
    _Form("Firecrawl key", ("fc-",), r"fc-[0-9a-f]{32}"),
    _Form("Fireworks key", ("fw_",), r"fw_(?=[A-Za-z]*\d|[A-Z]*[a-z]+[A-Z])[A-Za-z0-9]{20,}"),
    _Form("Fly.io token", ("fo1_", "fm1", "fm2_"), r"(?:fo1_[\w-]{30,}|fm1[ar]_[\w+/=-]{60,}|fm2_[\w+/=-]{60,})"),
    _Form("GitHub Token", ("gh", "github_pat_"), r"(?:gh[opsur]_[A-Za-z0-9]{30,}|github_pat_\w{40,})"),
    _Form(
        "GitLab Token",
        ("gl", "gr1348941"),
        r"(?:gl(?:agent|cbt|dt|ffct|ft|imt|oas|pat|ptt|rt|rtr|soat|wt)-[\w.-]{20,}"
        r"|GR1348941[\w-]{20,})",
    ),
    _Form(
        "Google key",
        ("aiza", "gocspx-", "ya29.", "1//0"),
        r"(?:AIza[\w-]{35}"
        r"|GOCSPX-[\w-]{24,}"
        r"|ya29\.[\w-]{30,}"
        r"|1//0[\w-]{40,})",
    ),
    _Form("Grafana token", ("glsa_", "glc_"), r"(?:glsa_[A-Za-z0-9]{32}_[0-9a-fA-F]{8}|glc_[A-Za-z0-9+/]{32,})"),
    _Form("Groq key", ("gsk_",), r"gsk_[A-Za-z0-9]{40,}"),
    _Form(
        "HashiCorp token",
        ("hvs.", "hvb.", "hvr.", ".atlasv1."),
        r"(?:hv[bsr]\.[\w-]{24,}"
        r"|[A-Za-z0-9]{14}\.atlasv1\.[\w-]{60,})",
    ),
    _Form("Heroku key", ("hrku-",), r"HRKU-[\w-]{30,}"),
    _Form("HubSpot token", ("pat-",), r"pat-[a-z]{2}\d-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    _Form("Hugging Face token", ("hf_", "api_org_"), r"(?:hf|api_org)_[A-Za-z0-9]{30,}"),
    _Form("Jina key", ("jina_",), r"jina_[\w-]{50,}"),
    _Form("JSON Web Token", ("eyj",), r"eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]*"),
    _Form("Langfuse key", ("sk-lf-",), r"sk-lf-[0-9a-f-]{36}"),
    _Form("LangSmith key", ("lsv2_",), r"lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}"),
    _Form("LaunchDarkly key", ("api-", "sdk-"), r"(?:api|sdk)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    _Form("Linear key", ("lin_",), r"lin_(?:api|oauth|wh)_[A-Za-z0-9]{30,}"),
    _Form("Mailgun key", ("key-", "-"), r"(?:(?:pub)?key-[0-9a-f]{32}|[0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8}(?![\w-]))"),
    _Form("Mapbox token", ("sk.eyj", "tk.eyj"), r"[st]k\.eyJ[\w-]{20,}\.[\w-]{20,}"),
    _Form("Netlify token", ("nfp_", "nfc_", "nfo_", "nfu_"), r"nf[pcou]_[A-Za-z0-9]{30,}"),
    _Form("New Relic key", ("nra", "nrii-", "nrjs-"), r"NR(?:AK|AA|II|JS|RA|SP)-[A-Za-z0-9-]{19,}"),
    _Form("Nostr key", ("nsec1",), r"nsec1[02-9ac-hj-np-z]{50,}"),
    _Form("Notion token", ("ntn_", "secret_"), r"(?:ntn_\d{8,}[A-Za-z0-9]{30,}|secret_[A-Za-z0-9]{40,})"),
    _Form("NPM tokens", ("npm_",), r"npm_[A-Za-z0-9]{30,}"),
    _Form("NuGet key", ("oy2",), r"oy2[a-z0-9]{43}(?![A-Za-z0-9])"),
    _Form("NVIDIA key", ("nvapi-",), r"nvapi-[\w-]{40,}"),
    _Form(
        "1Password key",
        ("a3-", "ops_eyj"),
        r"(?:A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3,4}"
        r"|ops_eyJ[\w+/=-]{100,})",
    ),
    _Form(
        "OpenAI Token",
        ("sk-",),
        r"(?:sk-(?:proj|svcacct|admin|None)-[\w-]{20,}"
        r"|sk-(?=[A-Za-z]*\d|[A-Z]*[a-z]+[A-Z])[A-Za-z0-9]{28,})",
    ),
    _Form("OpenRouter key", ("sk-or-",), r"sk-or-(?:v\d-)?[0-9a-f]{40,}"),
    _Form("Perplexity key", ("pplx-",), r"pplx-[A-Za-z0-9]{30,}"),
    _Form("Pinecone key", ("pcsk_",), r"pcsk_\w{40,}"),
    _Form("PlanetScale token", ("pscale_",), r"pscale_(?:tkn|pw|oauth)_[\w.=-]{30,}"),
    _Form("Postman key", ("pmak-",), r"PMAK-[0-9a-f]{24}-[0-9a-f]{34}"),
    _Form("Prefect key", ("pnu_", "pnb_"), r"pn[ub]_[A-Za-z0-9]{30,}"),
    _Form("Pulumi token", ("pul-",), r"pul-[0-9a-f]{40}"),
    _Form("PyPI Token", ("pypi-ag",), r"pypi-Ag[A-Za-z][\w-]{50,}"),
    _Form("Replicate token", ("r8_",), r"r8_[A-Za-z0-9]{30,}"),
    _Form("Resend key", ("re_",), r"re_[A-Za-z0-9]{8}_[A-Za-z0-9]{20,}"),
    _Form("RubyGems key", ("rubygems_",), r"rubygems_[0-9a-f]{48}"),
    _Form("SendGrid API Key", ("sg.",), r"SG\.[\w-]{16,}\.[\w-]{30,}"),
    _Form("Sentry token", ("sntryu_", "sntrys_"), r"sntry[us]_[\w+/=-]{40,}"),
    _Form(
        "Shopify token",
        ("shpat_", "shpca_", "shppa_", "shpss_", "shptka_"),
        r"shp(?:at"
        r"|ca"
        r"|pa"
        r"|ss"
        r"|tka)_[0-9a-fA-F]{32}",
    ),
    _Form(
        "Slack Token",
        ("xox", "xapp-", "xwfp-", "hooks.slack.com"),
        r"(?:xox[a-z](?:\.xox[a-z])?-[\w-]{20,}"
        r"|(?:xapp|xwfp)-[\w-]{20,}"
        r"|hooks\.slack\.com/(?:services|workflows|triggers)/([\w/+-]{30,}))",
    ),
    _Form("SonarQube token", ("sqp_", "squ_", "sqa_"), r"sq[pua]_[0-9a-f]{40}"),
    _Form("Sourcegraph token", ("sgp_",), r"sgp_(?:[0-9a-f]{16}_|local_)?[0-9a-f]{40}"),
    _Form("Square OAuth Secret", ("sq0", "eaaa"), r"(?:sq0[a-z]{3}-[\w-]{22,}|EAAA[\w-]{56,})"),
    _Form(
        "Stripe Access Key",
        ("k_live_", "k_test_", "whsec_"),
        r"(?:[spr]k_(?:live|test)_\w{10,}"
        r"|whsec_[A-Za-z0-9+/=]{24,})",
    ),
    _Form("Supabase key", ("sbp_", "sb_secret_"), r"(?:sbp_(?:v0_)?[0-9a-f]{40}|sb_secret_[\w-]{22,})"),
    _Form("Tailscale key", ("tskey-",), r"tskey-[a-z]+-[A-Za-z0-9-]{16,}"),
    _Form("Tavily key", ("tvly-",), r"tvly-[A-Za-z0-9-]{20,}"),
    _Form("Telegram Bot Token", (":aa",), r"\d{8,11}:AA[\w-]{32,34}(?![\w-])"),
    _Form("Together key", ("tgp_v1_",), r"tgp_v1_[\w-]{40,}"),
    _Form("Twilio API Key", ("ac", "sk"), r"(?:AC|SK)[0-9a-f]{32}(?![0-9a-f])"),
    _Form("Vercel token", ("vcp_", "vci_", "vca_", "vcr_", "vck_"), r"vc[piark]_[A-Za-z0-9]{24,}"),
    _Form("Voyage key", ("pa-",), r"pa-[\w-]{43}(?![\w-])"),
    _Form("WireGuard key", ("privatekey", "presharedkey"), r"(?:PrivateKey|PresharedKey)\s*=\s*([A-Za-z0-9+/]{43}=)"),
    _Form("xAI key", ("xai-",), r"xai-[A-Za-z0-9]{60,}"),
    _Form(
        "bearer or basic authorization",
        ("bearer ", "basic "),
        r"(?i:authorization[\"']?\s*[:=]\s*[\"']?(?:bearer|basic)\s+)([\w+/=.~-]{16,})",
    ),
    _Form(
        "password in a command",
        ("sshpass", "curl"),
        r"(?:sshpass\s+-p\s*"
        r"|curl\s[^\n]{0,200}?(?:-u|--user)[ =]?[\"']?[^\s:\"']{1,60}:)(?![$<{])([^\s\"']{4,})",
    ),
)  # fmt: skip
_BASIC = "Basic Auth Credentials"
_RUN = re.compile(r"[\w+/=.~-]{16}", re.ASCII)
"""What every key of `_FORMS` holds, but those in an address or a command."""
_FORMS_BY_WORD = tuple((word, form) for form in _FORMS for word in form.holds)
_LINES_BY_WORD = tuple((word, form) for word, form in _FORMS_BY_WORD if word in ("://", "sshpass", "curl"))
_PRIVATE_KEY = re.compile(r"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----")

_WORD_HINTS = (
    *(
        "pass",
        "pw",
        "pin",
        "contrase",
        "senha",
        "mot de",
        "mdp",
        "clave",
        "kennwort",
        "wachtwoord",
        "ordenord",
        "senord",
    ),
    *(
        "has\u0142o",
        "haslo",
        "ifre",
        "heslo",
        "parola",
        "jelsz",
        "salasana",
        "adgangskode",
        "kodeord",
        "schl\u00fcssel",
    ),
    *(
        "密",
        "口令",
        "パス",
        "暗証",
        "암호",
        "비밀",
        "парол",
        "كلمة",
        "סיסמ",
        "κωδικ",
        "रहस्य",
        "पासवर्ड",
        "mật kh",
        "sandi",
    ),
)
_NAME_HINTS = ("key", "token", "secret")
_LABELS_HOLD = (*_WORD_HINTS, *_NAME_HINTS)

_HINTS = frozenset(
    {
        *_LABELS_HOLD,
        *(word for words in _HOLDS.values() for word in words),
        *(word for form in _FORMS for word in form.holds),
    }
) - {":", "-", ".", "gh", "gl", "ac", "sk"}
"""What a text has to hold, in lower case, to be looked through at all; keys of no other mark are long words."""

# As people write them in notes: `**Password:** x`, `| Passwort | x |`, `密码：x`, `the password for the NAS is x`.
_STRONG = (
    r"passw(?:or[dt]|d)|passphrase|passcode|pass[- ]?code|mot de passe|contrase(?:ñ|n\u0303|n)a|senha|kennwort"
    r"|wachtwoord|has[łl]o|(?:ş|s\u0327|s)ifre|l(?:ö|o\u0308)senord|heslo|parola|jelsz[oó]|salasana|adgangskode|kodeord"
    r"|парол[ьяею]|密[码碼]|口令|パスワード|パスコード|暗証番号|암호|비밀번호|كلمة (?:المرور|السر)|סיסמה|κωδικός|पासवर्ड"
    r"|mật khẩu|kata sandi|(?:wlan|wi-?fi|netzwerk|network)[ -]?(?:schlüssel|key|psk)"
)
_WEAK = r"(?<![^\W_])(?:pass|pwd|pw|psk|mdp|clave|pin(?:[ -]?code)?)(?![^\W_])"
_NAMES = (
    r"(?:api|access|auth|secret|private|bearer|app(?:lication)?|account|service|license|master|signing|encryption)"
    r"[ _-]?(?:key|token)|token|secret|(?<=[a-z0-9]_)key"
)
_OF = (
    r"(?:\s*\([^()\n]{0,40}\)"
    r"|\s+(?:for|of|to|on|at|für|zum|zur|vom|von|pour|del?|para|do|da|di|per)\s+[^\n:=.;,|]{1,40}?)?"
)
_JOINED = (
    r"(?:[:=：|→]|=>|->|:=|[—–]|(?:\bis\b|\bwas\b|\bist\b|\blautet\b|\best\b|\bes\b|\bé|\bè)"
    r"(?:\s+(?:now|jetzt|nun)\b)?:?|[はが是为為])"
)
_LABEL = re.compile(
    rf"(?:(?P<word>{_STRONG})|(?P<weak>{_WEAK})|(?P<name>{_NAMES}))[\"'*_`)\]]{{0,4}}"
    rf"(?:{_OF}\s*[\"'*_`)\]]{{0,4}}{_JOINED}|(?P<bare>\s+(?:to\s+|now\s+|as\s+)?))(?P<open>[\s\"'*_`|]{{0,6}})",
    re.IGNORECASE,
)
_SHORTEST = {"word": 4, "name": 16}
_BETWEEN = re.compile(r"[^A-Za-z\u00c0-\u024f]+")
_GAP = re.compile(r"(?:[<{].*|.*\*{3}.*|x{3,}|\.{3,}|pass(?:word)?|pw|pwd|secret|token)", re.IGNORECASE)
_VALUE = re.compile(r"[^\s\u3000-\u303f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uff00-\uffef]+")
_QUOTED = {mark: re.compile(rf"[^{mark}\n]{{3,200}}(?={mark})") for mark in "\"'`"}
_PIN = re.compile(r"\d{4,12}")
_IDENTIFIER = re.compile(r"[A-Za-z]+(?:[_-](?:[a-z]+|[A-Z]+|v?\d{1,4})){2,}")
_ADDRESS = re.compile(r"\b(?:https?|ftp|file|mailto|obsidian|data):\S+|\bsha\d{1,3}-\S+|\bAAAA[A-Z]\S+", re.ASCII)
"""Links, images written out, digests of packages and public keys: long and random-looking, and no secret."""
_LONG = re.compile(r"[A-Za-z0-9+/_=-]{24,}")
_ENTROPY_BITS = 4.0
"""Bits a character; detect-secrets asks for 4.5 in quoted text of any length, which 24 characters hardly ever have."""
_CHANGES = 0.38
"""Share of neighbours that are of two classes (small, capital, digit). In random text it is 0.62, in words 0.1."""
_REST = re.compile(r"[A-Za-z0-9_+/=.~-]*")
_NO_VALUE = re.compile(
    r"\d{1,4}[-./:]\d{1,2}(?:[-./:]\d{1,4}|$)"  # dates and times
    r"|v?\d+(?:\.\d+)+$"  # versions
    r"|\d+[- ]?(?:char|digit|letter|sign|zeichen|stellig|bit|byte|day|tag|month|monat|min|hour|stunde|week|woche|year"
    r"|jahr)"
    r"|[<\[{][a-z]*$|.*(?:://|\.{3}|…|x{4}|\*{3}|•{3})"  # addresses and gaps
    r"|\W*(?:1|last|kee|nord|dash)pass|\W*(?:bit|vault)warden"  # where it is kept
    r"|[\w.+-]+@[\w-]+(?:\.[\w-]+)*\.[a-z]{2,6}$"  # addresses of people
    r"|(?:~|\.{1,2})?/[\w.-]+/|[\w./-]+\.(?:md|txt|py|js|ts|sh|env|json|ya?ml|toml|pdf|png|jpe?g|html?|kdbx)$|\[\["
    r"|(?:null|none|nil|true|false|undefined)\b|(?:process\.env|os\.|self\.|config\.|settings\.|env\.|secrets?\.)",
    re.IGNORECASE,
)
_REFERENCE = re.compile(
    r"\$\{.*|\$\(.*|\$[A-Z_][A-Z0-9_]*|\$[a-z_]+|%[A-Z_]+%|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|[a-z_][a-z_.]{2,}[\w.]*[\[(].*[\])]"
)
"""A value that names where the secret is: `${VAR}`, `$(command)`, `DB_PASSWORD`, `getenv("X")`."""
_WORDLIKE = re.compile(r"[A-Z]?[a-z]+(?:[A-Z][a-z]{2,})*[A-Z]{0,3}|[A-Z]+")
"""Letters as names and words have them: password, GitHub, keePassXC."""
_UNSPOKEN = re.compile(
    r"[bcdfghjklmnpqrstvwxz]{6}|q[^u]|[bcdfghkmpqtvz]x|j[bcdfghklmnpqrstvwxyz]|[bcdfghklmpqtvwxyz]j|v[bcdfghjkmnpqtwxz]"
    r"|w[gjkmpqtvxz]|x[bdgjklmnrswz]|z[bdfgjkmnpqrsvx]|[cfgjkmpqsvwx]z|[bcdfghjklmnpqrstvwxz]q|[bcdfghjkmpqtvx]v|[fhjkpqv]g"
    r"|k[bcdfgmpqt]|h[bcdfghjkpqvxz]|[fgmv]k|^[^aeiouyäöüéèáíóú]{3,}$",
    re.IGNORECASE,
)
"""Letters that hardly ever stand together in a word, and words without a vowel."""
_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_METHODS = re.compile(r"(?:sha|md|argon|bcrypt|pbkdf|base|utf|aes|oauth|rfc|cve|http|ipv|rsa|ed)-?\d", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Finding:
    """That something at `start` to `end` (characters) looks like a secret: of which `kind`, and in which line from 1.

    It does not hold the text, so that no log or traceback can.
    """

    kind: str
    line: int
    start: int
    end: int


def find(text: str) -> tuple[Finding, ...]:
    """Everything in `text` that looks like a secret, by position, without overlaps."""
    spans = [
        (at + start, at + end, kind)
        for at, piece in _pieces(text)
        for start, end, kind in (*_known(piece), *_labelled(piece), *_random(piece))
    ]
    spans += _private(text)
    found: list[Finding] = []
    line, counted = 1, 0
    for start, end, kind in sorted(spans, key=lambda span: (span[0], -span[1])):
        if found and start < found[-1].end:
            last = found[-1]
            # The first to begin has the more telling name, unless it is only said to be random.
            kind = kind if last.kind in (RANDOM, LABELLED) and kind != RANDOM else last.kind
            found[-1] = Finding(kind, last.line, last.start, max(end, last.end))
        else:
            line += text.count("\n", counted, start)
            counted = start
            found.append(Finding(kind, line, start, end))
    return tuple(found)


def masked(text: str) -> str:
    """`text` without what looks like a secret, for titles and lists; plain text costs next to nothing."""
    if not (_LONG.search(text) or any(word in text.lower() for word in _HINTS)):
        return text
    parts: list[str] = []
    at = 0
    for found in find(text):
        parts += (text[at : found.start], MASK)
        at = found.end
    return "".join((*parts, text[at:]))


def kinds(text: str) -> tuple[str, ...]:
    """The kinds of what `find` finds, each once."""
    return tuple(dict.fromkeys(found.kind for found in find(text)))


def _pieces(text: str) -> Iterator[tuple[int, str]]:
    """Parts of `text` with their positions; mostly all of it. They are cut between lines, else between words."""
    at = 0
    while len(text) - at > _LONGEST_PIECE:
        most = at + _LONGEST_PIECE
        end = text.rfind("\n", at, most) + 1 or text.rfind(" ", at, most) + 1 or most
        yield at, text[at:end]
        at = end
    yield at, text[at:]


def _private(text: str) -> Iterator[tuple[int, int, str]]:
    """Private keys from their first line to their last, however long."""
    at = 0
    while (begun := text.find("-----BEGIN", at)) >= 0:
        at = begun + 1
        if match := _PRIVATE_KEY.match(text, begun):
            end = text.find("-----END", match.end())
            line = text.find("\n", end) if end >= 0 else -1
            at = line if line >= 0 else len(text)
            yield begun, at, "Private Key"


@lru_cache(maxsize=1)
def _plugins() -> tuple[RegexBasedDetector, ...]:
    from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class
    from detect_secrets.plugins.base import RegexBasedDetector

    makers: Mapping[str, type[object]] = get_mapping_from_secret_type_to_class()
    found = (makers[name]() for name in sorted(makers) if name not in _LEFT_OUT)
    return tuple(plugin for plugin in found if isinstance(plugin, RegexBasedDetector))


def _known(text: str) -> Iterator[tuple[int, int, str]]:
    """Keys whose maker gave them a form of their own."""
    small = text.lower()
    runs = _RUN.search(text) is not None
    by_word = _FORMS_BY_WORD if runs else _LINES_BY_WORD
    for form in dict.fromkeys([form for word, form in by_word if word in small]):
        for match in _compiled(form.pattern).finditer(text):
            group = 1 if match.re.groups and match[1] is not None else 0
            if form.kind == _BASIC and (_REFERENCE.fullmatch(match[1]) or _GAP.fullmatch(match[1])):
                continue
            yield *match.span(group), form.kind
    named = {kind for word, kind in _HOLDS_BY_WORD if word in small}
    for plugin in _plugins():
        if plugin.secret_type in named or (runs and plugin.secret_type not in _HOLDS):
            yield from _matches(text, plugin)


def _matches(text: str, plugin: RegexBasedDetector) -> Iterator[tuple[int, int, str]]:
    for pattern in plugin.denylist:
        for match in pattern.finditer(text):
            if any(plugin.analyze_string(match[0])):
                start = match.start() + len(match[0]) - len(match[0].lstrip())
                yield start, _end(text, match), plugin.secret_type


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """`pattern` where no letter or digit stands before it."""
    return re.compile(rf"(?<![A-Za-z0-9]){pattern}")


def _end(text: str, match: re.Match[str]) -> int:
    """Where what `match` begins ends: some patterns know only how a key starts."""
    rest = _REST.match(text, match.end())
    return rest.end() if rest and not match[0][-1].isspace() else match.end()


def _labelled(text: str) -> Iterator[tuple[int, int, str]]:
    """Values after a word like password."""
    small = text.lower()
    held = [word for word in _LABELS_HOLD if word in small]
    if not held:
        return
    at = 0
    for line in text.split("\n"):
        small = line.lower()
        if any(word in small for word in held):
            for cut in range(0, max(1, len(line) - _OVERLAP), _WINDOW - _OVERLAP):
                window = line[cut : cut + _WINDOW]
                yield from ((at + cut + start, at + cut + end, LABELLED) for start, end in _values(window))
        at += len(line) + 1


def _values(line: str) -> Iterator[tuple[int, int]]:
    from detect_secrets.filters import heuristic
    from detect_secrets.plugins import keyword

    for match in _LABEL.finditer(line):
        quote = match["open"][-1:]
        at = match.end()
        found = _QUOTED[quote].match(line, at) if quote in _QUOTED else None
        if found is None or " " in found[0]:
            found = _VALUE.match(line, at)
        raw = found[0].rstrip(".,;:") if found else ""
        if not found or _REFERENCE.fullmatch(raw) or (match["name"] and _IDENTIFIER.fullmatch(raw)):
            continue
        value = found[0].partition(',"')[0].rstrip(".,;:)]}>*_|\"'`")
        if match["bare"]:
            fits = match["name"] is None and _bare_secret(value)
        else:
            fits = len(value) >= _SHORTEST["name" if match["name"] else "word"] and _may_be_secret(value)
        if fits:
            yield at, at + len(value)
    for pattern, group in keyword.QUOTES_REQUIRED_DENYLIST_REGEX_TO_GROUP.items():
        for match in pattern.finditer(line):
            value = match[group]
            if (
                len(value) >= 4
                and not re.search(r"\s", value)
                and not _placeholder(value)
                and not heuristic.is_not_alphanumeric_string(value)
            ):
                yield match.span(group)


def _placeholder(value: str) -> bool:
    """Whether `value` is a template, a reference, a date, an address or a gap to be filled."""
    from detect_secrets.filters import heuristic

    return bool(heuristic.is_templated_secret(value) or _REFERENCE.fullmatch(value) or _NO_VALUE.match(value))


def _may_be_secret(value: str) -> bool:
    """Whether `value`, after a label and a sign, is neither a placeholder nor a word."""
    if _placeholder(value):
        return False
    if value.isdecimal():
        return bool(_PIN.fullmatch(value))
    letters = [sign for sign in value if sign.isalpha()]
    if not letters or max(letters) > "\u024f":
        return False
    if any(not sign.isalpha() and sign not in "_-./'’:@," for sign in value):
        return True
    return len(value) >= 8 and not all(_spoken(part) for part in _BETWEEN.split(value))


def _bare_secret(value: str) -> bool:
    """Whether `value`, which merely follows a label, can be nothing but a secret."""
    if len(value) < 8 or _METHODS.match(value) or not value.isascii() or _placeholder(value):
        return False
    digits = sum(sign.isdigit() for sign in value)
    if not any(sign.isalpha() for sign in value):
        return False
    odd = digits and any(not sign.isalnum() and sign not in "_-./':,()" for sign in value)
    return digits > 1 or bool(odd) or not all(_spoken(part) for part in _BETWEEN.split(value))


def _spoken(letters: str) -> bool:
    """Whether `letters` are those of a word or a name."""
    if not letters or not letters.isascii():
        return True
    if not _WORDLIKE.fullmatch(letters):
        return False
    return all(part.isupper() or not _UNSPOKEN.search(part) for part in _PART.findall(letters))


def _random(text: str) -> Iterator[tuple[int, int, str]]:
    """Long words that nobody can have made up."""
    addresses: list[tuple[int, int]] | None = None
    for match in _LONG.finditer(text):
        word = match[0]
        if not _is_random(word):
            continue
        if addresses is None:
            addresses = [found.span() for found in _ADDRESS.finditer(text)]
        if not any(start <= match.start() < end for start, end in addresses):
            yield *match.span(), RANDOM


def _is_random(word: str) -> bool:
    from detect_secrets.filters import heuristic

    classes = ["d" if sign.isdigit() else "A" if sign.isupper() else "a" for sign in word if sign.isalnum()]
    if len(set(classes)) < 3:
        return False
    changes = sum(one != other for one, other in pairwise(classes))
    return (
        changes >= _CHANGES * (len(classes) - 1)
        and _entropy(word) > _ENTROPY_BITS
        and not heuristic.is_potential_uuid(word)
        and not heuristic.is_sequential_string(word)
    )


def _entropy(word: str) -> float:
    return _base64().calculate_shannon_entropy(word)


@lru_cache(maxsize=1)
def _base64() -> Base64HighEntropyString:
    from detect_secrets.plugins.high_entropy_strings import Base64HighEntropyString

    return Base64HighEntropyString(_ENTROPY_BITS)
