"""The formats of secret keys, as their makers document them.

Sources: each maker's documentation of its keys, the public rules of gitleaks and trufflehog, and those of
detect-secrets 1.5 (Apache-2.0), after which quoted values of names like `db_password` are found too.
"""

from __future__ import annotations

from typing import NamedTuple


class KeyFormat(NamedTuple):
    """How the keys of a maker look: a match holds one of `holds`, in lower case; group 1, or all of it, is the key.

    A key begins where a word does, unless it is so telling that it counts `anywhere`.
    """

    kind: str
    holds: tuple[str, ...]
    pattern: str
    anywhere: bool = False


BASIC = "Basic Auth Credentials"
TOKEN = "JSON Web Token"
PRIVATE = "Private Key"


_AT_WORDS = (
    KeyFormat("age secret key", ("age-secret-key-",), r"AGE-SECRET-KEY-(?:PQ-)?1[0-9A-Z]{40,}"),
    KeyFormat("Airtable token", ("pat",), r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}"),
    KeyFormat("Alibaba Cloud key", ("ltai",), r"LTAI[A-Za-z0-9]{12,24}(?![A-Za-z0-9])"),
    KeyFormat("Anthropic key", ("sk-ant-",), r"sk-ant-[\w-]{20,}"),
    KeyFormat("Atlassian token", ("atatt3", "atctt3", "atbb"), r"(?:AT[AC]TT3[\w=-]{60,}|ATBB[A-Za-z0-9]{32})"),
    KeyFormat("Azure DevOps token", ("azdo",), r"[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}"),
    KeyFormat("Azure client secret", ("q~",), r"(?<![\w~.-])[\w~.-]{3}\dQ~[\w~.-]{31,34}"),
    KeyFormat("Azure signature", ("sig=",), r"(?<=[?&])sig=((?:[A-Za-z0-9/+=]|%[0-9A-Fa-f]{2}){30,})"),
    KeyFormat("Azure access key", ("sharedaccesskey=",), r"SharedAccessKey=([A-Za-z0-9+/=]{30,})"),
    KeyFormat(
        BASIC, ("://",), r"[A-Za-z][A-Za-z0-9+.-]{1,20}://[^\s:/@\"'`<>|]{0,80}:([^\s/\"'`<>|]{3,120})@(?=[\w\[])"
    ),
    KeyFormat("Brevo key", ("xkeysib-", "xsmtpsib-"), r"x(?:key|smtp)sib-[0-9a-f]{64}-[A-Za-z0-9]{12,}"),
    KeyFormat("Buildkite token", ("bkua_",), r"bkua_[0-9a-f]{40}"),
    KeyFormat("Cerebras key", ("csk-",), r"csk-[a-z0-9]{40,}"),
    KeyFormat("CircleCI token", ("ccipat_", "cciprj_"), r"CCIP(?:AT|RJ)_[A-Za-z0-9]{20,}_[0-9a-f]{40}"),
    KeyFormat("Cloudflare token", ("v1.0-", "cfut_", "cfat_", "cfk_"), r"v1\.0-[0-9a-f]{24}-[0-9a-f]{146}"),
    KeyFormat("Cloudflare token", ("v1.0-", "cfut_", "cfat_", "cfk_"), r"cf(?:ut|at|k)_[\w-]{30,}"),
    KeyFormat("Databricks token", ("dapi", "dose"), r"(?:dapi|dose)[0-9a-f]{32}(?:-\d)?"),
    KeyFormat("DigitalOcean token", ("_v1_",), r"do[oprs]_v1_[0-9a-f]{64}"),
    KeyFormat("Discord Bot Token", (".",), r"[MNO][A-Za-z\d_-]{23,27}\.[\w-]{6}\.[\w-]{27,}"),
    KeyFormat("Discord webhook", ("/api/webhooks/",), r"discord(?:app)?\.com/api/webhooks/\d+/([\w-]{40,})"),
    KeyFormat("Docker token", ("dckr_",), r"dckr_[a-z]{3}_[\w-]{20,}"),
    KeyFormat("Doppler token", ("dp.",), r"dp\.(?:pt|st|ct|scim|audit|sa|said)\.(?:[\w-]{2,35}\.)?[A-Za-z0-9]{40,44}"),
    KeyFormat("Dropbox token", ("sl.",), r"sl\.(?:u\.)?[\w-]{100,}"),
    KeyFormat("Dynatrace token", ("dt0",), r"dt0[a-z]\d\d\.[A-Z0-9]{8,24}\.[A-Z0-9]{64}"),
    KeyFormat("ElevenLabs key", ("sk_",), r"sk_[0-9a-f]{48}"),
    KeyFormat("Facebook token", ("eaa",), r"EAA[A-Za-z0-9]{80,}"),
    KeyFormat("Figma token", ("figd_", "figo_"), r"fig[do]_[\w-]{30,}"),
    KeyFormat("Firecrawl key", ("fc-",), r"fc-[0-9a-f]{32}"),
    KeyFormat("Fireworks key", ("fw_",), r"fw_(?=[A-Za-z]*\d|[A-Z]*[a-z]+[A-Z])[A-Za-z0-9]{20,}"),
    KeyFormat("Fly.io token", ("fo1_", "fm1", "fm2_"), r"(?:fo1_[\w-]{30,}|fm1[ar]_[\w+/=-]{60,}|fm2_[\w+/=-]{60,})"),
    KeyFormat("GitHub Token", ("gh", "github_pat_"), r"(?:gh[opsur]_[A-Za-z0-9]{30,}|github_pat_\w{40,})"),
    KeyFormat(
        "GitLab Token",
        ("gl", "gr1348941"),
        r"(?:gl(?:agent|cbt|dt|ffct|ft|imt|oas|pat|ptt|rt|rtr|soat|wt)-[\w.-]{20,}|GR1348941[\w-]{20,})",
    ),
    KeyFormat("Google key", ("aiza", "gocspx-", "ya29.", "1//0"), r"AIza[\w-]{35}"),
    KeyFormat("Google key", ("aiza", "gocspx-", "ya29.", "1//0"), r"GOCSPX-[\w-]{24,}"),
    KeyFormat("Google key", ("aiza", "gocspx-", "ya29.", "1//0"), r"ya29\.[\w-]{30,}"),
    KeyFormat("Google key", ("aiza", "gocspx-", "ya29.", "1//0"), r"1//0[\w-]{40,}"),
    KeyFormat("Grafana token", ("glsa_", "glc_"), r"(?:glsa_[A-Za-z0-9]{32}_[0-9a-fA-F]{8}|glc_[A-Za-z0-9+/]{32,})"),
    KeyFormat("Groq key", ("gsk_",), r"gsk_[A-Za-z0-9]{40,}"),
    KeyFormat("HashiCorp token", ("hvs.", "hvb.", "hvr.", ".atlasv1."), r"hv[bsr]\.[\w-]{24,}"),
    KeyFormat("HashiCorp token", ("hvs.", "hvb.", "hvr.", ".atlasv1."), r"[A-Za-z0-9]{14}\.atlasv1\.[\w-]{60,}"),
    KeyFormat("Heroku key", ("hrku-",), r"HRKU-[\w-]{30,}"),
    KeyFormat("HubSpot token", ("pat-",), r"pat-[a-z]{2}\d-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    KeyFormat("Hugging Face token", ("hf_", "api_org_"), r"(?:hf|api_org)_[A-Za-z0-9]{30,}"),
    KeyFormat("Jina key", ("jina_",), r"jina_[\w-]{50,}"),
    KeyFormat(TOKEN, ("eyj",), r"eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]*"),
    KeyFormat("Langfuse key", ("sk-lf-",), r"sk-lf-[0-9a-f-]{36}"),
    KeyFormat("LangSmith key", ("lsv2_",), r"lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}"),
    KeyFormat("LaunchDarkly key", ("api-", "sdk-"), r"(?:api|sdk)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    KeyFormat("Linear key", ("lin_",), r"lin_(?:api|oauth|wh)_[A-Za-z0-9]{30,}"),
    KeyFormat("Mailgun key", ("key-", "-"), r"(?:(?:pub)?key-[0-9a-f]{32}|[0-9a-f]{32}(?:-[0-9a-f]{8}){2}(?![\w-]))"),
    KeyFormat("Mapbox token", ("sk.eyj", "tk.eyj"), r"[st]k\.eyJ[\w-]{20,}\.[\w-]{20,}"),
    KeyFormat("Netlify token", ("nfp_", "nfc_", "nfo_", "nfu_"), r"nf[pcou]_[A-Za-z0-9]{30,}"),
    KeyFormat("New Relic key", ("nra", "nrii-", "nrjs-"), r"NR(?:AK|AA|II|JS|RA|SP)-[A-Za-z0-9-]{19,}"),
    KeyFormat("Nostr key", ("nsec1",), r"nsec1[02-9ac-hj-np-z]{50,}"),
    KeyFormat("Notion token", ("ntn_", "secret_"), r"(?:ntn_\d{8,}[A-Za-z0-9]{30,}|secret_[A-Za-z0-9]{40,})"),
    KeyFormat("NPM tokens", ("npm_",), r"npm_[A-Za-z0-9]{30,}"),
    KeyFormat("NuGet key", ("oy2",), r"oy2[a-z0-9]{43}(?![A-Za-z0-9])"),
    KeyFormat("NVIDIA key", ("nvapi-",), r"nvapi-[\w-]{40,}"),
    KeyFormat(
        "1Password key",
        ("a3-", "ops_eyj"),
        r"(?:A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3,4}" r"|ops_eyJ[\w+/=-]{100,})",
    ),
    KeyFormat("OpenAI Token", ("sk-",), r"sk-(?:proj|svcacct|admin|None)-[\w-]{20,}"),
    KeyFormat("OpenAI Token", ("sk-",), r"sk-(?=[A-Za-z]*\d|[A-Z]*[a-z]+[A-Z])[A-Za-z0-9]{28,}"),
    KeyFormat("OpenRouter key", ("sk-or-",), r"sk-or-(?:v\d-)?[0-9a-f]{40,}"),
    KeyFormat("Perplexity key", ("pplx-",), r"pplx-[A-Za-z0-9]{30,}"),
    KeyFormat("Pinecone key", ("pcsk_",), r"pcsk_\w{40,}"),
    KeyFormat("PlanetScale token", ("pscale_",), r"pscale_(?:tkn|pw|oauth)_[\w.=-]{30,}"),
    KeyFormat("Postman key", ("pmak-",), r"PMAK-[0-9a-f]{24}-[0-9a-f]{34}"),
    KeyFormat("Prefect key", ("pnu_", "pnb_"), r"pn[ub]_[A-Za-z0-9]{30,}"),
    KeyFormat("Pulumi token", ("pul-",), r"pul-[0-9a-f]{40}"),
    KeyFormat("PyPI Token", ("pypi-ag",), r"pypi-Ag[A-Za-z][\w-]{50,}"),
    KeyFormat("Replicate token", ("r8_",), r"r8_[A-Za-z0-9]{30,}"),
    KeyFormat("Resend key", ("re_",), r"re_[A-Za-z0-9]{8}_[A-Za-z0-9]{20,}"),
    KeyFormat("RubyGems key", ("rubygems_",), r"rubygems_[0-9a-f]{48}"),
    KeyFormat("SendGrid API Key", ("sg.",), r"SG\.[\w-]{16,}\.[\w-]{30,}"),
    KeyFormat("Sentry token", ("sntryu_", "sntrys_"), r"sntry[us]_[\w+/=-]{40,}"),
    KeyFormat(
        "Shopify token", ("shpat_", "shpca_", "shppa_", "shpss_", "shptka_"), r"shp(?:at|ca|pa|ss|tka)_[0-9a-fA-F]{32}"
    ),
    KeyFormat(
        "Slack Token",
        ("xox", "xapp-", "xwfp-", "hooks.slack.com"),
        r"(?:xox[a-z](?:\.xox[a-z])?-[\w-]{20,}|(?:xapp|xwfp)-[\w-]{20,}"
        r"|hooks\.slack\.com/(?:services|workflows|triggers)/([\w/+-]{30,}))",
    ),
    KeyFormat("SonarQube token", ("sqp_", "squ_", "sqa_"), r"sq[pua]_[0-9a-f]{40}"),
    KeyFormat("Sourcegraph token", ("sgp_",), r"sgp_(?:[0-9a-f]{16}_|local_)?[0-9a-f]{40}"),
    KeyFormat("Square OAuth Secret", ("sq0", "eaaa"), r"(?:sq0[a-z]{3}-[\w-]{22,}|EAAA[\w-]{56,})"),
    KeyFormat("Stripe Access Key", ("k_live_", "k_test_", "whsec_"), r"[sr]k_(?:live|test)_\w{10,}"),
    KeyFormat("Stripe Access Key", ("k_live_", "k_test_", "whsec_"), r"whsec_[A-Za-z0-9+/=]{24,}"),
    KeyFormat("Supabase key", ("sbp_", "sb_secret_"), r"(?:sbp_(?:v0_)?[0-9a-f]{40}|sb_secret_[\w-]{22,})"),
    KeyFormat("Tailscale key", ("tskey-",), r"tskey-[a-z]+-[A-Za-z0-9-]{16,}"),
    KeyFormat("Tavily key", ("tvly-",), r"tvly-[A-Za-z0-9-]{20,}"),
    KeyFormat("Telegram Bot Token", (":aa",), r"\d{8,11}:AA[\w-]{32,34}(?![\w-])"),
    KeyFormat("Together key", ("tgp_v1_",), r"tgp_v1_[\w-]{40,}"),
    KeyFormat("Twilio API Key", ("ac", "sk"), r"(?:AC|SK)[0-9a-f]{32}(?![0-9a-f])"),
    KeyFormat("Vercel token", ("vcp_", "vci_", "vca_", "vcr_", "vck_"), r"vc[piark]_[A-Za-z0-9]{24,}"),
    KeyFormat("Voyage key", ("pa-",), r"pa-[\w-]{43}(?![\w-])"),
    KeyFormat(
        "WireGuard key", ("privatekey", "presharedkey"), r"(?:PrivateKey|PresharedKey)\s*=\s*([A-Za-z0-9+/]{43}=)"
    ),
    KeyFormat("xAI key", ("xai-",), r"xai-[A-Za-z0-9]{60,}"),
    KeyFormat(
        "bearer or basic authorization",
        ("bearer ", "basic "),
        r"(?i:authorization[\"']?\s*[:=]\s*[\"']?(?:bearer|basic)\s+)([\w+/=.~-]{16,})",
    ),
    KeyFormat(
        "password in a command",
        ("sshpass", "-u", "mysql", "redis-cli"),
        r"(?:sshpass\s+-p\s*|redis-cli\s[^\n|]{0,80}?-a\s+|mysql\w*\s[^\n|]{0,120}?-p|(?<=\s)(?:-u"
        r"|--user)[ =]?[\"']?[^\s:\"'/]{1,60}:)"
        r"(?![$<{\s])([^\s\"'`]{4,})",
    ),
    KeyFormat(
        "proxy address",
        ("hysteria2://", "hy2://", "trojan://", "vless://", "tuic://", "ss://"),
        r"(?:hysteria2|hy2|trojan|vless|tuic|ss)://([^\s@/]{6,120})@",
    ),
    KeyFormat(
        "private key of a wallet",
        ("0x",),
        r"(?i:private key|privater schlüssel|приватный ключ|clave privada|clé privée|私钥|私鑰|秘密鍵)[^\n]{0,40}?"
        r"(0x[0-9a-fA-F]{64})(?![0-9a-fA-F])",
    ),
    KeyFormat(
        "secret key",
        ("_sk_", "secret_", "secret-", "_live_", "-live-", "-sk-"),
        r"(?!pk[_-])[a-z][a-z0-9]{1,20}[_-](?:sk|secret|live)[_-](?=[\w-]*\d)[\w-]{16,120}",
    ),
)
_ANYWHERE = (
    KeyFormat(
        "AWS Access Key", ("a3t", "abia", "acca", "akia", "asia"), r"(?:A3T[A-Z0-9]|ABIA|ACCA|AKIA|ASIA)[0-9A-Z]{16}"
    ),
    KeyFormat("Azure Storage Account access key", ("accountkey=",), r"AccountKey=[A-Za-z0-9+/=]{88}"),
    KeyFormat("Discord Bot Token", (".",), r"[MNO][\w-]{23,25}\.[\w-]{6}\.[\w-]{27}"),
    KeyFormat("GitHub Token", ("gh",), r"gh[opsur]_\w{36}"),
    KeyFormat(
        "GitLab Token", ("gl", "gr1348941"), r"(?:gl(?:agent|cbt|dt|ft|imt|oas|pat|ptt|rt|soat)-|GR1348941)[\w-]{20,}"
    ),
    KeyFormat(TOKEN, ("eyj",), r"eyJ[\w=-]+\.[\w=-]+(?:\.[\w.+/=-]*)?"),
    KeyFormat("Mailchimp Access Key", ("-us",), r"[0-9a-z]{32}-us\d{1,2}"),
    KeyFormat("NPM tokens", ("_authtoken",), r"//\S{1,300}/:_authToken=\s*(?:npm_\S+|[0-9A-Fa-f-]{36})"),
    KeyFormat("OpenAI Token", ("t3blbkfj",), r"sk-[\w-]*[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20}"),
    KeyFormat(
        PRIVATE,
        ("private key", "putty"),
        r"(?:BEGIN (?:(?:DSA|EC|OPENSSH|RSA|SSH2 ENCRYPTED) )?PRIVATE KEY|BEGIN PGP PRIVATE KEY BLOCK"
        r"|PuTTY-User-Key-File-\d)",
    ),
    KeyFormat("PyPI Token", ("pypi-",), r"pypi-Ag(?:EIcHlwaS5vcmc|ENdGVzdC5weXBpLm9yZw)[\w-]{70,}"),
    KeyFormat("SendGrid API Key", ("sg.",), r"SG\.[\w-]{22}\.[\w-]{43}"),
    KeyFormat(
        "Slack Token",
        ("xox", "slack.com"),
        r"(?i:xox[abopsr]-(?:\d+-)+[a-z0-9]+|https://hooks\.slack\.com/services/T\w+/B\w+/\w+)",
    ),
    KeyFormat("Square OAuth Secret", ("sq0csp",), r"sq0csp-[\w\\-]{43}"),
    KeyFormat("Stripe Access Key", ("k_live_",), r"[rs]k_live_[0-9A-Za-z]{24}"),
    KeyFormat("Telegram Bot Token", (":",), r"\d{8,10}:[\w-]{35}"),
    KeyFormat("Twilio API Key", ("ac", "sk"), r"(?:AC|SK)[a-z0-9]{32}"),
)
"""What is so telling that it counts within a word too."""
FORMATS = (*_AT_WORDS, *(form._replace(anywhere=True) for form in _ANYWHERE))
